//! `mrtr bridge`: any host before any server.

#[cfg(unix)]
mod inbox;
mod peers;
mod upstreams;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use http::{HeaderName, request::Parts};
use mrtr_core::{
    bridge::{Config, Upstream},
    wire::{Era, Implementation},
};
use mrtr_tokio::{
    bridge::{self, Front, Reach},
    server::{self, Anonymous, Bind, Bounds, Identity, Misconfigured, Principals},
};
use tokio::net::TcpListener;

use crate::{
    Failure,
    args::{self, Keys},
    failure::Exit,
    serve::{self, asked_to_stop, sealer},
    show,
};

/// The name that the bridge's own states are for: the same on all replicas.
const AUDIENCE: &str = "mrtr-bridge";

#[derive(Args)]
#[group(id = "bridge")]
#[command(group = clap::ArgGroup::new("front").required(true))]
#[command(group = clap::ArgGroup::new("back").required(true))]
#[command(
    override_usage = "mrtr bridge [OPTIONS] --listen [ADDR] -- CMD…\n       \
    mrtr bridge [OPTIONS] --listen [ADDR] --upstream URL\n       \
    mrtr bridge [OPTIONS] --stdio --upstream URL\n       \
    mrtr bridge [OPTIONS] --stdio -- CMD…\n       \
    mrtr bridge [OPTIONS] --listen [ADDR] | --stdio --config FILE",
    after_help = HELP
)]
pub(crate) struct Bridge {
    /// Serves hosts of all revisions over HTTP at this address, port 0 for any; 127.0.0.1:3000 if it is left out. The
    /// endpoint's url is printed.
    #[arg(
        long, value_name = "ADDR", group = "front", num_args = 0..=1, default_missing_value = "127.0.0.1:3000",
        help_heading = "Hosts", value_parser = args::address
    )]
    listen: Option<SocketAddr>,
    /// Serves the host that has started this, on standard input and output.
    #[arg(long, group = "front", help_heading = "Hosts")]
    stdio: bool,
    /// A further name that may stand in `Host`: `mcp.example.com`, `mcp.example.com:8443`.
    #[arg(long = "allow-host", value_name = "HOST", conflicts_with = "stdio", help_heading = "Hosts")]
    hosts: Vec<String>,
    /// Pages of this origin may call: `https://app.example.com`.
    #[arg(long = "allow-origin", value_name = "ORIGIN", conflicts_with = "stdio", help_heading = "Hosts")]
    origins: Vec<String>,
    /// The header in which a proxy before the bridge names who calls, and which it takes from everybody else. Left out:
    /// everybody is nobody in particular, and requests with `Authorization` are refused.
    #[arg(long, value_name = "NAME", conflicts_with = "stdio", help_heading = "Hosts")]
    principal_header: Option<HeaderName>,
    /// The url of the server.
    #[arg(long, value_name = "URL", group = "back", help_heading = "Servers")]
    upstream: Option<String>,
    /// The environment variable with a token for the server, sent as `Authorization: Bearer` to its origin alone. A
    /// host's own token is never passed on.
    #[arg(long, value_name = "NAME", requires = "upstream", help_heading = "Servers")]
    bearer_env: Option<String>,
    /// A file (TOML) that names several servers; see below.
    #[arg(long, value_name = "FILE", group = "back", help_heading = "Servers")]
    config: Option<PathBuf>,
    /// The server's revision. Left out: it is found out, by `server/discover` and then `initialize`.
    #[arg(long, value_enum, conflicts_with = "config", help_heading = "Servers")]
    era: Option<ServerEra>,
    /// What the server is called, with --origin prefix. Left out: a part of its url or its command.
    #[arg(long, value_name = "NAME", conflicts_with = "config", help_heading = "Servers")]
    name: Option<String>,
    /// A tool of a legacy server, by its own name for it, whose calls are made again with each retry instead of waiting
    /// here for answers: any process with the key takes the next round. What it does before its last question it does
    /// once a round, so name only what may be done twice; what the server says of that is not read.
    #[arg(long, value_name = "TOOL", conflicts_with = "config", help_heading = "Servers")]
    replay: Vec<String>,
    /// Whether questions begin with the name of the server that asks. Always with several servers.
    #[arg(long, value_enum, default_value_t, value_name = "HOW", help_heading = "Servers")]
    origin: Origin,
    /// The proxy for urls, `http://host:port`, instead of the one that HTTPS_PROXY and the like say; `none` for none.
    #[arg(long, value_name = "URL", help_heading = "Servers")]
    proxy: Option<String>,
    /// A file with certificates (PEM) that servers' may be issued by, beside the system's.
    #[arg(long, value_name = "FILE", help_heading = "Servers")]
    ca_file: Option<PathBuf>,
    /// Questions that a host cannot show wait here for `mrtr inbox` to answer them: at a socket of this path, which only
    /// you can open, or at an address on this machine, 127.0.0.1:PORT, for whoever has its token. Left out: the server
    /// hears that they cannot be asked, as it always does if it and the host are both modern: nothing waits here then.
    #[cfg(unix)]
    #[arg(long, value_name = "ADDR|PATH", help_heading = "Inbox")]
    inbox: Option<crate::inbox::Place>,
    #[cfg(unix)]
    #[command(flatten)]
    inbox_token: crate::inbox::TokenArgs,
    #[command(flatten)]
    keys: Keys,
    #[command(flatten)]
    peers: peers::Peers,
    /// Processes of one server for modern hosts. Each call that could be asked something has one for itself until it is
    /// over, and all of one principal half of them at most; without --principal-header everybody is one. Each session of
    /// a legacy host has one for itself, too: 16 at most, or as many as are given here if that is more. Left out: 4.
    #[arg(long, value_name = "N", help_heading = "Bounds", value_parser = at_least_one)]
    processes: Option<usize>,
    /// Requests under way at a time, of one principal. Left out: 1000.
    #[arg(long, value_name = "N", help_heading = "Bounds", value_parser = at_least_one)]
    quota_calls: Option<usize>,
    /// Calls that wait for answers at a time, of one principal. Over it, calls that could be asked something are
    /// refused. Left out: 10000.
    #[arg(long, value_name = "N", help_heading = "Bounds", value_parser = at_least_one)]
    quota_parked: Option<usize>,
    /// Seconds that calls which wait for answers are still served after SIGTERM or Ctrl-C, while no new ones are taken. A
    /// second of either cuts them off.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, help_heading = "Bounds")]
    drain: u64,
    /// The server's command.
    #[arg(last = true, value_name = "CMD", group = "back")]
    server: Vec<String>,
}

const HELP: &str = "\
Examples:
  mrtr bridge --listen -- npx -y @modelcontextprotocol/server-everything
      an old server for new hosts, at http://localhost:3000/mcp
  mrtr bridge --stdio --upstream https://mcp.example.com/mcp
      any server for a host that starts its servers, as the command in its configuration
  mrtr bridge --listen --inbox 127.0.0.1:3001 -- old-server
      questions that a host cannot show wait for: mrtr inbox list --inbox 127.0.0.1:3001

The file of --config:
  [upstreams.files]                     # the name stands before those of its tools: files__read
  command = [\"old-server\", \"--root\", \"/srv\"]
  replay = [\"search\"]                   # its tools that are run again instead of waiting: --replay
  [upstreams.files.env]
  LEVEL = \"2\"
  [upstreams.calendar]
  url = \"https://calendar.example.com/mcp\"
  bearer_env = \"CALENDAR_TOKEN\"         # the variable, not the token
  era = \"modern\"                        # or \"legacy\"; left out: found out

Beside the endpoint, --listen serves /healthz (503 while it drains) and /metrics (Prometheus).
A call that waits for an answer of a legacy server lives in one process. With several, the same keys
and --redis, a retry may come to any of them; without --redis, send a principal always to the same
one. A legacy host's session stays with its process in either case. Calls of modern servers, and of
tools named with --replay, may go to any process that has the keys.";

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ServerEra {
    /// 2026-07-28.
    Modern,
    /// 2025-11-25 and before.
    Legacy,
}

impl From<ServerEra> for Era {
    fn from(era: ServerEra) -> Self {
        match era {
            ServerEra::Modern => Self::Modern,
            ServerEra::Legacy => Self::Legacy,
        }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Origin {
    Prefix,
    #[default]
    None,
}

/// A server before it is known.
struct Server {
    name: String,
    reach: Reach,
    era: Option<Era>,
    /// Tools that are replayed.
    replay: Vec<String>,
}

pub(crate) async fn run(args: Bridge) -> Result<(), Failure> {
    let options = peers::options(&args.peers, &args.keys).await?;
    let sealer = sealer(&args.keys, AUDIENCE)?;
    let servers = upstreams::named(&args)?;
    let mut upstreams = Vec::new();
    let mut reaches = Vec::new();
    let limits = mrtr_core::Limits::default();
    let eras = eras_of(&servers, &limits).await?;
    for (server, era) in servers.into_iter().zip(eras) {
        tracing::info!(upstream = %server.name, ?era, "an upstream is known");
        if era == Era::Modern && !server.replay.is_empty() {
            tracing::warn!(upstream = %server.name, "a server of this revision needs no replay: nothing waits here");
        }
        let mut upstream = Upstream::new(server.name, server.reach.transport(), era);
        upstream.replay = server.replay.into_iter().map(String::into_boxed_str).collect();
        upstreams.push(upstream);
        reaches.push(server.reach);
    }
    let mut config = Config::new(Implementation::new(AUDIENCE, env!("CARGO_PKG_VERSION")), sealer, upstreams);
    config.name_origin = args.origin == Origin::Prefix;
    let bounds = [
        (args.processes, &mut config.pool.processes),
        (args.quota_calls, &mut config.quota.calls),
        (args.quota_parked, &mut config.quota.parked),
    ];
    for (given, place) in bounds {
        *place = given.unwrap_or(*place);
    }
    // What one server is granted must be there.
    config.pool.processes_in_all = config.pool.processes_in_all.max(config.pool.processes);
    config.pool.own_processes = config.pool.own_processes.max(config.pool.processes);
    #[cfg(unix)]
    let door = inbox::Door::open(&args, &mut config).await?;
    let bridge = bridge::Bridge::start(config, reaches, options).map_err(Failure::usage)?;
    #[cfg(unix)]
    let door = door.map(|door| door.serve(&bridge));
    let done = match args.listen {
        Some(address) => listen(&bridge, address, &args).await,
        None => {
            let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
            let served = bridge.serve_pipe(Identity::Anonymous, input, output, asked_to_stop()).await;
            served.map_err(Failure::new)
        }
    };
    #[cfg(unix)]
    if let Some(door) = door {
        door.end();
    }
    bridge.close().await;
    done
}

/// Says what is waited for, if it takes long: a server may have to be fetched first, and one may never say a word.
async fn told_of<T>(name: &str, asking: impl Future<Output = T>) -> T {
    let mut asking = std::pin::pin!(asking);
    match tokio::time::timeout(Duration::from_secs(3), &mut asking).await {
        Ok(found) => found,
        Err(_) => {
            tracing::warn!(server = name, "it has not said yet which revision it speaks; --era would tell");
            asking.await
        }
    }
}

/// The eras of all servers, found out side by side.
async fn eras_of(servers: &[Server], limits: &mrtr_core::Limits) -> Result<Vec<Era>, Failure> {
    let mut asking = tokio::task::JoinSet::new();
    for (index, server) in servers.iter().enumerate() {
        let (known, name, reach, limits) =
            (server.era, server.name.clone(), server.reach.clone(), limits.clone());
        asking.spawn(async move {
            match known {
                Some(era) => Ok((index, era)),
                None => told_of(&name, reach.era(&limits))
                    .await
                    .map(|era| (index, era))
                    .map_err(|error| Failure::with(Exit::Transport, format!("{name}: {error}"))),
            }
        });
    }
    let mut eras = Vec::new();
    while let Some(found) = asking.join_next().await {
        eras.push(found.map_err(Failure::new)??);
    }
    eras.sort_by_key(|(index, _)| *index);
    Ok(eras.into_iter().map(|(_, era)| era).collect())
}

async fn listen(bridge: &bridge::Bridge, address: SocketAddr, args: &Bridge) -> Result<(), Failure> {
    let listener =
        TcpListener::bind(address).await.map_err(|error| Failure::new(format!("{address}: {error}")))?;
    let address = listener.local_addr().map_err(Failure::new)?;
    let loopback = address.ip().is_loopback();
    let bind = if loopback { Bind::Loopback } else { Bind::Network };
    let front = match args.principal_header.clone() {
        None => Front::new(bridge.clone(), Anonymous::new(), Bounds::default()),
        Some(header) => Front::new(bridge.clone(), FromHeader(header), Bounds::default()),
    };
    let front = front.bind(bind, |mut gate| {
        for host in &args.hosts {
            gate = gate.allow_host(host)?;
        }
        for origin in &args.origins {
            gate = gate.allow_origin(origin)?;
        }
        Ok(gate)
    });
    let front = front.map_err(Failure::usage)?;
    let options = server::Options::default();
    show::result(&serve::url(address, &options.path));
    let drain = Duration::from_secs(args.drain);
    let stop = async {
        asked_to_stop().await;
        tracing::warn!(
            seconds = drain.as_secs(),
            "no new calls are taken; those that wait for answers are served"
        );
        tokio::select! {
            () = bridge.drain() => {}
            () = tokio::time::sleep(drain) => tracing::warn!("calls are cut off at the end of --drain"),
            () = asked_to_stop() => tracing::warn!("calls are cut off"),
        }
    };
    front.serve(listener, options, stop).await.map_err(Failure::new)
}

/// Whom the proxy before this names.
struct FromHeader(HeaderName);

impl Principals for FromHeader {
    fn identify(&self, head: &Parts) -> Result<Identity, Misconfigured> {
        let mut values = head.headers.get_all(&self.0).iter();
        match (values.next(), values.next()) {
            (Some(one), None) if !one.is_empty() => Ok(Identity::authenticated(one.as_bytes())),
            _ => Err(Misconfigured(format!(
                "a request without one value of `{}`: the proxy that names who calls is missing",
                self.0
            ))),
        }
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err(String::from("at least 1")),
        Ok(count) => Ok(count),
        Err(_) => Err(String::from("not a number")),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        pin::pin,
        sync::{Arc, Mutex},
    };

    use tokio::time::{sleep, timeout};

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Log {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_say_its_revision_is_named_after_three_seconds() {
        let log = Log::default();
        let writer = log.clone();
        let logged = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
        let _logged = tracing::subscriber::set_default(logged);
        assert_eq!(
            told_of("prompt", async {
                sleep(Duration::from_millis(2_999)).await;
                7
            })
            .await,
            7
        );
        let mut waiting = pin!(told_of("silent", sleep(Duration::from_secs(60))));
        assert!(timeout(Duration::from_millis(2_999), &mut waiting).await.is_err());
        assert_eq!(log.text(), "", "nobody is named before");
        assert!(timeout(Duration::from_millis(2), &mut waiting).await.is_err());
        let text = log.text();
        assert!(text.contains("WARN") && text.contains("silent") && text.contains("--era"), "{text}");
        // It is waited for all the same, and named once.
        waiting.await;
        assert_eq!(log.text(), text);
    }
}
