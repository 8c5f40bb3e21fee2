//! Other processes of the same bridge.

use clap::Args;
use mrtr_tokio::bridge::Options;

use crate::{Failure, args::Keys};

#[derive(Args)]
pub(crate) struct Peers {
    /// The Redis through which several processes of one bridge hand calls to one another:
    /// `redis://[user:password@]host[:port][/database]`. They need the same key. It must not evict (noeviction).
    #[arg(long, value_name = "URL", conflicts_with = "stdio", help_heading = "Processes")]
    redis: Option<String>,
    /// The environment variable with that url: others on this machine can read what stands on a command line.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["stdio", "redis"], help_heading = "Processes")]
    redis_env: Option<String>,
}

impl Peers {
    /// The variable that the url, with its password, is in.
    pub(super) fn env(&self) -> Option<&str> {
        self.redis_env.as_deref()
    }
}

/// How the bridge is carried, with its way to others if there is to be one.
pub(super) async fn options(args: &Peers, keys: &Keys) -> Result<Options, Failure> {
    let options = Options::default();
    let (url, from) = match (&args.redis, &args.redis_env) {
        (Some(url), _) => (url.clone(), "--redis"),
        (None, Some(name)) => match std::env::var(name) {
            Ok(url) => (url, "--redis-env"),
            Err(_) => return Err(Failure::unset("--redis-env", name)),
        },
        (None, None) => return Ok(options),
    };
    if keys.key_file.is_none() && keys.key_env.is_none() {
        return Err(Failure::usage(format!(
            "{from} needs a key that all processes have: --key-file or --key-env"
        )));
    }
    connect(options, &url, from).await
}

#[cfg(feature = "redis")]
async fn connect(mut options: Options, url: &str, from: &str) -> Result<Options, Failure> {
    use crate::failure::Exit;
    use mrtr_tokio::store::RedisError;
    let peers = mrtr_tokio::bridge::Peers::connect(url).await;
    let peers = peers.map_err(|error| {
        let is_typed_so = matches!(error, RedisError::Url | RedisError::Tls);
        let exit = if is_typed_so { Exit::Usage } else { Exit::Transport };
        Failure::with(exit, format!("{from}: {error}"))
    })?;
    options.peers = Some(peers);
    Ok(options)
}

#[cfg(not(feature = "redis"))]
async fn connect(_: Options, _: &str, from: &str) -> Result<Options, Failure> {
    Err(Failure::usage(format!(
        "{from}: this program was built without the feature `redis`: build it with `--features redis`"
    )))
}
