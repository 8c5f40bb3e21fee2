//! Entries in Redis: get, and compare-and-set by a script, which one Redis carries out as one step.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use mrtr_core::ledger::{Command, Operation, StoreEvent};
use redis::{AsyncConnectionConfig, Client, RedisResult, Value, aio::MultiplexedConnection};
use tokio::time::timeout;

use super::Store;

/// `KEYS[1]` the entry; `ARGV`: 1 if something is expected, what, 1 if something is to be put there, what, when
/// it is forgotten. Answers `{1}` if it did, else `{0, what is there}`.
const COMPARE_AND_SET: &str = "\
local have = redis.call('GET', KEYS[1])
local expected = false
if ARGV[1] == '1' then expected = ARGV[2] end
if have ~= expected then return {0, have} end
if ARGV[3] == '1' then
  redis.call('SET', KEYS[1], ARGV[4], 'PXAT', ARGV[5])
else
  redis.call('DEL', KEYS[1])
end
return {1}";

/// What a command may take, with the connection if there is none.
const PATIENCE: Duration = Duration::from_secs(2);

/// A ledger's entries in one Redis (6.2 or newer) or a replica set's primary, shared by all replicas of a service.
///
/// It must not evict: `maxmemory-policy noeviction`, which is checked when it connects. And it must not forget
/// otherwise: after an asynchronous fail-over the last claims may be gone, and a state whose claim is gone can be
/// used again.
///
/// Redis forgets entries by its own clock, which should be that of the replicas give or take
/// [`Policy::retention`](mrtr_core::ledger::Policy::retention).
#[derive(Clone)]
pub struct Redis(Arc<Inner>);

struct Inner {
    client: Client,
    held: Mutex<Held>,
    /// One connects, the others wait for what comes of it.
    connecting: tokio::sync::Mutex<()>,
    patience: Duration,
}

/// The connection that all commands share; none after a failure: the next command connects anew.
struct Held {
    connection: Option<MultiplexedConnection>,
    /// Which one it is.
    number: u64,
}

/// Why a Redis cannot be used, for a ledger or between bridges.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedisError {
    /// It is no address of a Redis. What it is is not said: there may be a password in it.
    #[error("not the url of a Redis, redis://[user:password@]host[:port][/database]")]
    Url,
    /// The address asks for TLS, which is not spoken here.
    #[error("no TLS is spoken to a Redis here: give redis:// to a proxy beside this process that speaks it")]
    Tls,
    /// Nobody answers at the address, or who answers is no Redis.
    #[error("the Redis cannot be reached: {0}")]
    Unreachable(#[source] redis::RedisError),
    /// It did not answer in time.
    #[error("the Redis did not answer within {0:?}")]
    Silent(Duration),
    /// It would forget entries when its memory is full, and with them that a state was used, or what was said.
    #[error("the Redis evicts keys (maxmemory-policy {policy:?}): it has to be \"noeviction\"")]
    Evicts {
        /// Its policy; empty if it does not say.
        policy: String,
    },
}

impl Redis {
    /// Connects to `redis://[user:password@]host[:port][/database]` and checks that nothing is evicted there.
    ///
    /// # Errors
    ///
    /// [`RedisError`]; the address with its password is not in it.
    pub async fn connect(url: &str) -> Result<Self, RedisError> {
        let (client, connection) = checked(url).await?;
        let held = Mutex::new(Held { connection: Some(connection), number: 0 });
        let connecting = tokio::sync::Mutex::default();
        Ok(Self(Arc::new(Inner { client, held, connecting, patience: PATIENCE })))
    }
}

/// A Redis that answers and evicts nothing.
pub(crate) async fn checked(url: &str) -> Result<(Client, MultiplexedConnection), RedisError> {
    let client = Client::open(url).map_err(|_| not_opened(url))?;
    let asked = async {
        let mut connection = connect(&client, PATIENCE).await?;
        // Not `CONFIG GET`, which services that are managed by others often forbid.
        let info = redis::cmd("INFO").arg("memory").query_async::<String>(&mut connection).await?;
        Ok((info, connection))
    };
    let asked = timeout(PATIENCE, asked).await.map_err(|_| RedisError::Silent(PATIENCE))?;
    let (info, connection) = asked.map_err(RedisError::Unreachable)?;
    let policy = info.lines().find_map(|line| line.trim().strip_prefix("maxmemory_policy:"));
    match policy {
        Some("noeviction") => Ok((client, connection)),
        other => Err(RedisError::Evicts { policy: other.unwrap_or_default().to_owned() }),
    }
}

/// A connection whose commands may take as long as this. By itself the client waits half a second, for a Redis far away too
/// short a time.
pub(crate) async fn connect(client: &Client, patience: Duration) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(patience));
    client.get_multiplexed_async_connection_with_config(&config).await
}

/// Why there is no client for an address.
fn not_opened(url: &str) -> RedisError {
    let scheme = url.trim_start().split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("rediss" | "valkeys") => RedisError::Tls,
        _ => RedisError::Url,
    }
}

impl Inner {
    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        // Nothing panics while it is held.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> Option<(MultiplexedConnection, u64)> {
        let held = self.held();
        held.connection.clone().map(|connection| (connection, held.number))
    }

    /// The connection that all commands share, and its number.
    async fn connection(&self) -> RedisResult<(MultiplexedConnection, u64)> {
        if let Some(known) = self.known() {
            return Ok(known);
        }
        let _one = self.connecting.lock().await;
        if let Some(known) = self.known() {
            return Ok(known);
        }
        let connection = connect(&self.client, self.patience).await?;
        let mut held = self.held();
        held.number = held.number.wrapping_add(1);
        held.connection = Some(connection.clone());
        Ok((connection, held.number))
    }

    /// Lets a connection go that has failed; one that was made since stays.
    fn drop_connection(&self, number: u64) {
        let mut held = self.held();
        if held.number == number {
            held.connection = None;
        }
    }

    /// Carries out a command; `used` is the connection that it went to.
    async fn carry_out(&self, command: &Command, used: &mut Option<u64>) -> RedisResult<StoreEvent> {
        let (mut connection, number) = self.connection().await?;
        *used = Some(number);
        let name = command.key.to_string();
        match &command.operation {
            Operation::Get => {
                let said: Value = redis::cmd("GET").arg(name).query_async(&mut connection).await?;
                current(said)
            }
            Operation::CompareAndSet { expected, new, expires } => {
                let mut script = redis::cmd("EVAL");
                script.arg(COMPARE_AND_SET).arg(1).arg(name);
                for bytes in [expected, new] {
                    script.arg(u8::from(bytes.is_some())).arg(bytes.as_deref().unwrap_or_default());
                }
                script.arg(expires.as_unix_millis());
                let said: Vec<Value> = script.query_async(&mut connection).await?;
                match <[Value; 2]>::try_from(said) {
                    Ok([Value::Int(0), have]) => current(have),
                    Err(said) if said == [Value::Int(1)] => Ok(StoreEvent::Applied),
                    Ok(_) | Err(_) => Err(no_reply()),
                }
            }
        }
    }
}

/// What is there.
fn current(have: Value) -> RedisResult<StoreEvent> {
    if have == Value::Nil {
        return Ok(StoreEvent::Current(None));
    }
    let Value::BulkString(bytes) = have else { return Err(no_reply()) };
    Ok(StoreEvent::Current(Some(bytes)))
}

/// It has said something that it never says: that is no word on the entry.
fn no_reply() -> redis::RedisError {
    (redis::ErrorKind::UnexpectedReturnType, "no reply to this command").into()
}

impl Store for Redis {
    async fn apply(&self, command: Command) -> StoreEvent {
        let mut used = None;
        let error = match timeout(self.0.patience, self.0.carry_out(&command, &mut used)).await {
            Ok(Ok(event)) => return event,
            // Its memory is full, and it does not evict.
            Ok(Err(error)) if is_out_of_memory(&error) => {
                tracing::error!("the ledger's Redis is full");
                return StoreEvent::Full;
            }
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        tracing::warn!(entry = %command.key, error = ?error.map(|error| error.kind()), "the ledger's Redis failed");
        if let Some(used) = used {
            self.0.drop_connection(used);
        }
        StoreEvent::Unavailable
    }
}

fn is_out_of_memory(error: &redis::RedisError) -> bool {
    error.code() == Some("OOM") || error.to_string().contains("OOM command not allowed")
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("patience", &self.0.patience).finish_non_exhaustive()
    }
}
