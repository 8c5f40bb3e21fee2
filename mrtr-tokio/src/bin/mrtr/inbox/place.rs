//! Where an inbox is, and what opens it: the same for the bridge that has it and for who answers.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::Args;
use mrtr_tokio::bridge::InboxToken;

use crate::Failure;

/// A socket's path, or an address on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Socket(PathBuf),
    Loopback(SocketAddr),
}

/// How to speak to an inbox.
pub(super) enum Opened {
    Socket(PathBuf),
    Loopback(SocketAddr, InboxToken),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return match (address.ip().is_loopback(), address.port()) {
                (false, _) => Err(String::from(
                    "an inbox listens on this machine only, at 127.0.0.1:PORT: whoever opens it may answer for everybody",
                )),
                (true, 0) => Err(String::from("the port has to be said: `mrtr inbox` must know it")),
                (true, _) => Ok(Self::Loopback(address)),
            };
        }
        let port = text.rsplit_once(':').map(|(_, port)| port);
        let numeric =
            port.is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
        if numeric && !text.contains('/') {
            return Err(String::from(
                "an address is numbers, 127.0.0.1:PORT; a file of this name is ./NAME:PORT",
            ));
        }
        if text.is_empty() {
            return Err(String::from("an address, 127.0.0.1:PORT, or the path of a socket"));
        }
        Ok(Self::Socket(text.into()))
    }
}

/// The token of an inbox at an address.
#[derive(Args, Default)]
#[group(id = "inbox-token")]
pub(crate) struct TokenArgs {
    /// With --inbox ADDR: the environment variable with its token, of 22 characters or more (see `mrtr keygen`).
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        conflicts_with = "inbox_token_file",
        requires = "inbox",
        help_heading = "Inbox"
    )]
    inbox_token_env: Option<String>,
    /// With --inbox ADDR: the file with its token, which only you can read. The bridge makes it if it is not there. Left
    /// out: one in the folder that XDG_RUNTIME_DIR names, or the one for temporary files, while the bridge runs.
    #[arg(long, global = true, value_name = "FILE", requires = "inbox", help_heading = "Inbox")]
    inbox_token_file: Option<PathBuf>,
}

impl TokenArgs {
    /// The variable that the token is in.
    pub(crate) fn env(&self) -> Option<&str> {
        self.inbox_token_env.as_deref()
    }

    const fn is_given(&self) -> bool {
        self.inbox_token_env.is_some() || self.inbox_token_file.is_some()
    }

    /// The token that a bridge wants to see, and the file to be removed when it ends.
    pub(crate) fn make(&self, address: SocketAddr) -> Result<(InboxToken, Option<PathBuf>), Failure> {
        if let Some(name) = &self.inbox_token_env {
            return InboxToken::from_env(name).map(|token| (token, None)).map_err(Failure::usage);
        }
        if let Some(path) = &self.inbox_token_file {
            let found = match InboxToken::from_file(path) {
                Err(error) if error.is_missing() => InboxToken::make_file(path),
                found => found,
            };
            return found.map(|token| (token, None)).map_err(Failure::usage);
        }
        let path = usual(address);
        // The address is this process's alone, so whoever has written it has died.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::new(format!("{}: {error}", path.display())));
            }
            Ok(()) | Err(_) => {}
        }
        let token = InboxToken::make_file(&path).map_err(Failure::new)?;
        Ok((token, Some(path)))
    }

    /// How to speak to an inbox.
    pub(super) fn open(&self, place: &Place) -> Result<Opened, Failure> {
        match place {
            Place::Socket(path) => self.check_socket().map(|()| Opened::Socket(path.clone())),
            Place::Loopback(address) => Ok(Opened::Loopback(*address, self.find(*address)?)),
        }
    }

    /// No token belongs to a socket.
    pub(crate) fn check_socket(&self) -> Result<(), Failure> {
        match self.is_given() {
            true => Err(Failure::usage("the inbox is a file that only you can open: no token belongs to it")),
            false => Ok(()),
        }
    }

    fn find(&self, address: SocketAddr) -> Result<InboxToken, Failure> {
        let found = match (&self.inbox_token_env, &self.inbox_token_file) {
            (Some(name), _) => InboxToken::from_env(name),
            (None, Some(path)) => InboxToken::from_file(path),
            (None, None) => InboxToken::from_file(&usual(address)),
        };
        found.map_err(|error| match error.is_missing() && !self.is_given() {
            true => Failure::usage(format!(
                "{error}: is there a bridge with --inbox {address}? A token of one's own is given by --inbox-token-env or \
                 --inbox-token-file"
            )),
            false => Failure::usage(error),
        })
    }
}

/// Where a token is that nobody has chosen.
fn usual(address: SocketAddr) -> PathBuf {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| Path::new(folder).is_absolute());
    let folder = folder.map_or_else(std::env::temp_dir, PathBuf::from);
    folder.join(format!("mrtr-inbox-{}-{}.token", address.ip(), address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_socket_or_an_address_on_this_machine() {
        for path in ["box.sock", "/run/box", "./127.0.0.1:3001", "a:b", "box:", "/run/localhost:3001"] {
            assert_eq!(path.parse(), Ok(Place::Socket(path.into())));
        }
        for address in ["127.0.0.1:3001", "[::1]:3001", "127.9.9.9:1"] {
            assert_eq!(address.parse(), Ok(Place::Loopback(address.parse().unwrap())));
        }
        for wrong in [
            "0.0.0.0:3001",
            "[::]:3001",
            "192.0.2.1:3001",
            "127.0.0.1:0",
            "localhost:3001",
            "127.0.0.1:99999",
            "",
        ] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }
}
