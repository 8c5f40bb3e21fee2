//! The door of a bridge's inbox.

use std::path::PathBuf;

use mrtr_core::bridge::Config;
use mrtr_tokio::bridge::{self, InboxToken};
use tokio::{
    net::{TcpListener, UnixListener},
    task::JoinHandle,
};

use super::Bridge;
use crate::{Failure, inbox::Place};

/// A door that nobody stands at yet.
pub(super) enum Door {
    Socket(UnixListener, PathBuf),
    Loopback(TcpListener, InboxToken, Option<PathBuf>),
}

/// A door that is served, and the file that goes with it.
pub(super) struct Served(JoinHandle<()>, Option<PathBuf>);

impl Door {
    /// Opens it, if there is to be one, and says so in the configuration.
    pub(super) async fn open(args: &Bridge, config: &mut Config) -> Result<Option<Self>, Failure> {
        let Some(place) = &args.inbox else { return Ok(None) };
        let can = &mut config.inbox;
        (can.form, can.url, can.sampling, can.roots) = (true, true, true, true);
        match place {
            Place::Socket(path) => {
                args.inbox_token.check_socket()?;
                let listener = bridge::bind_inbox(path);
                let listener =
                    listener.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
                Ok(Some(Self::Socket(listener, path.clone())))
            }
            Place::Loopback(address) => {
                let listener = TcpListener::bind(address).await;
                let listener = listener.map_err(|error| Failure::new(format!("{address}: {error}")))?;
                let (token, made) = args.inbox_token.make(*address)?;
                Ok(Some(Self::Loopback(listener, token, made)))
            }
        }
    }

    pub(super) fn serve(self, bridge: &bridge::Bridge) -> Served {
        let bridge = bridge.clone();
        match self {
            Self::Socket(listener, path) => {
                Served(tokio::spawn(async move { bridge.serve_inbox(listener).await }), Some(path))
            }
            Self::Loopback(listener, token, made) => {
                let serving = async move {
                    if let Err(error) = bridge.serve_inbox_at(listener, token).await {
                        tracing::error!(%error, "the inbox cannot be served");
                    }
                };
                Served(tokio::spawn(serving), made)
            }
        }
    }
}

impl Served {
    pub(super) fn end(self) {
        self.0.abort();
        if let Some(path) = self.1 {
            let _ = std::fs::remove_file(path);
        }
    }
}
