//! `mrtr serve`: the example tools for others.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use mrtr_core::{handler::Service, seal::Sealer};
use mrtr_tokio::{
    example_tools,
    keys::{self, KeySource},
    server::{self, Anonymous, Bind, Endpoint, Identity, LegacyConfig},
    stdio,
};
use tokio::net::TcpListener;

use crate::{
    Failure,
    args::{Keys, Serve},
    show,
};

pub(crate) async fn run(serve: Serve) -> Result<(), Failure> {
    let sealer = sealer(&serve.keys, example_tools::NAME)?;
    let service = example_tools::service(sealer).map_err(Failure::new)?;
    match serve.listen {
        Some(address) => http(service, address, &serve).await,
        None => {
            let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
            let mut options = stdio::Options::default();
            options.legacy = (!serve.modern_only).then(LegacyConfig::default);
            let served =
                stdio::serve(service, Identity::Anonymous, input, output, options, asked_to_stop()).await;
            served.map_err(Failure::new)
        }
    }
}

/// The sealer of the keys that the options name; they are read again at SIGHUP.
pub(crate) fn sealer(from: &Keys, audience: &str) -> Result<Sealer, Failure> {
    let keys = match (&from.key_file, &from.key_env) {
        (Some(path), _) => Some(keys::Keys::file(path)),
        (None, Some(name)) => Some(keys::Keys::env(name)),
        (None, None) if from.accept_key_file.is_some() => {
            return Err(Failure::usage(
                "--accept-key-file needs a key to seal with: --key-file or --key-env",
            ));
        }
        (None, None) => None,
    };
    match keys {
        Some(mut keys) => {
            if let Some(path) = &from.accept_key_file {
                keys = keys.accept_file(path);
            }
            let sealer = keys.sealer(audience).map_err(Failure::new)?;
            reload_when_told(keys, sealer.clone())?;
            Ok(sealer)
        }
        None => KeySource::Ephemeral.sealer(audience).map_err(Failure::new),
    }
}

async fn http(service: Service, address: SocketAddr, serve: &Serve) -> Result<(), Failure> {
    let listener =
        TcpListener::bind(address).await.map_err(|error| Failure::new(format!("{address}: {error}")))?;
    let address = listener.local_addr().map_err(Failure::new)?;
    let loopback = address.ip().is_loopback();
    let bind = if loopback { Bind::Loopback } else { Bind::Network };
    let builder = Endpoint::builder(service, Anonymous::new());
    let builder = if serve.modern_only { builder } else { builder.legacy(LegacyConfig::default()) };
    let endpoint = builder
        .bind(bind, |mut gate| {
            for host in &serve.hosts {
                gate = gate.allow_host(host)?;
            }
            for origin in &serve.origins {
                gate = gate.allow_origin(origin)?;
            }
            Ok(gate)
        })
        .map_err(|error: server::NotAName| Failure::usage(error))?
        .build();
    let options = server::Options::default();
    show::result(&url(address, &options.path));
    server::serve(listener, endpoint, options, asked_to_stop()).await.map_err(Failure::new)
}

/// Where an endpoint is that listens at this address. `localhost` is 127.0.0.1 everywhere, and nothing else everywhere.
pub(crate) fn url(address: SocketAddr, path: &str) -> String {
    match address.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST) => format!("http://localhost:{}{path}", address.port()),
        IpAddr::V4(_) | IpAddr::V6(_) => format!("http://{address}{path}"),
    }
}

/// Reads the keys again at each SIGHUP, as long as the process lives.
#[cfg(unix)]
fn reload_when_told(keys: keys::Keys, sealer: Sealer) -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut told = signal(SignalKind::hangup()).map_err(Failure::new)?;
    tokio::spawn(async move {
        while told.recv().await.is_some() {
            match keys.reload(&sealer) {
                Ok(()) => {
                    tracing::warn!(mints = %sealer.minting(), keys = sealer.key_use().len(), "the keys were read again")
                }
                Err(error) => tracing::error!(error = %error, "the keys stay as they were"),
            }
        }
    });
    Ok(())
}

/// There is nothing that tells: keys are rotated by restarts.
#[cfg(not(unix))]
fn reload_when_told(_: keys::Keys, _: Sealer) -> Result<(), Failure> {
    Ok(())
}

/// Ready at Ctrl-C, and where there is such a thing at SIGTERM.
pub(crate) async fn asked_to_stop() {
    let interrupt = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<()>();
    tokio::select! {
        () = interrupt => {}
        () = terminate => {}
    }
}
