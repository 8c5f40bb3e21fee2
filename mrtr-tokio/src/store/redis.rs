//! Entries in Redis: get, and compare-and-set by a script, which one Redis carries out as one step.

use std::{fmt, sync::Arc, time::Duration};

use mrtr_core::ledger::{Command, Operation, StoreEvent};
use redis::{Client, aio::MultiplexedConnection};
use tokio::{sync::Mutex, time::timeout};

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

/// What a command may take.
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
    /// `None` after a failure: the next command connects anew.
    connection: Mutex<Option<MultiplexedConnection>>,
    patience: Duration,
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
        let connection = Mutex::new(Some(connection));
        Ok(Self(Arc::new(Inner { client, connection, patience: PATIENCE })))
    }
}

/// A Redis that answers and evicts nothing.
pub(crate) async fn checked(url: &str) -> Result<(Client, MultiplexedConnection), RedisError> {
    let client = Client::open(url).map_err(|_| not_opened(url))?;
    let asked = async {
        let mut connection = client.get_multiplexed_async_connection().await?;
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

/// Why there is no client for an address.
fn not_opened(url: &str) -> RedisError {
    let scheme = url.trim_start().split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("rediss" | "valkeys") => RedisError::Tls,
        _ => RedisError::Url,
    }
}

impl Inner {
    /// The connection that all commands share.
    async fn connection(&self) -> Result<MultiplexedConnection, redis::RedisError> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = &*held {
            return Ok(connection.clone());
        }
        let connection = self.client.get_multiplexed_async_connection().await?;
        *held = Some(connection.clone());
        Ok(connection)
    }

    async fn carry_out(&self, command: &Command) -> Result<StoreEvent, redis::RedisError> {
        let mut connection = self.connection().await?;
        let name = command.key.to_string();
        match &command.operation {
            Operation::Get => {
                redis::cmd("GET").arg(name).query_async(&mut connection).await.map(StoreEvent::Current)
            }
            Operation::CompareAndSet { expected, new, expires } => {
                let mut script = redis::cmd("EVAL");
                script.arg(COMPARE_AND_SET).arg(1).arg(name);
                for bytes in [expected, new] {
                    script.arg(u8::from(bytes.is_some())).arg(bytes.as_deref().unwrap_or_default());
                }
                script.arg(expires.as_unix_millis());
                let said: Vec<redis::Value> = script.query_async(&mut connection).await?;
                let mut said = said.into_iter();
                let done: Option<u8> = said.next().map(redis::from_redis_value).transpose()?;
                let current: Option<Option<Vec<u8>>> =
                    said.next().map(redis::from_redis_value).transpose()?;
                Ok(if done == Some(1) { StoreEvent::Applied } else { StoreEvent::Current(current.flatten()) })
            }
        }
    }
}

impl Store for Redis {
    async fn apply(&self, command: Command) -> StoreEvent {
        let error = match timeout(self.0.patience, self.0.carry_out(&command)).await {
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
        *self.0.connection.lock().await = None;
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
