//! A call that waits for answers, as a file that only its owner can read.
//!
//! ```text
//! {"mrtr":"call","format":1,"sealed":false,"url":"https://…","at":"2026-…Z","keys":["days"]}⏎
//! the exchange as the library saves it
//! ```
//!
//! The first line is for people and says where to go on; what the exchange is tied to is in the exchange itself, which
//! is looked at before anything is sent.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use mrtr_core::seal::Sealer;
use mrtr_tokio::{
    client::{Client, Waiting},
    clock::{self, Clock},
    keys::KeySource,
};
use serde_json::{Value, json};

use crate::{Failure, utc::utc};

/// What saved calls are sealed for.
const AUDIENCE: &str = "mrtr-call";

/// Files over this size are not read.
const MOST: u64 = 64 << 20;

/// Where a call is saved, and how.
pub(crate) struct Store {
    pub(crate) path: PathBuf,
    key_file: Option<PathBuf>,
    sealer: Option<Sealer>,
}

/// A saved call.
pub(crate) struct Saved {
    /// The url of its server, unless that is a child, or the url has a query, which may be somebody's secret.
    pub(crate) url: Option<String>,
    pub(crate) sealed: bool,
    exchange: Vec<u8>,
}

impl Store {
    pub(crate) fn new(path: &Path, key_file: Option<&Path>) -> Result<Self, Failure> {
        let sealer = key_file.map(|path| KeySource::File(path).sealer(AUDIENCE)).transpose();
        let key_file = key_file.map(PathBuf::from);
        Ok(Self { path: path.into(), key_file, sealer: sealer.map_err(Failure::new)? })
    }

    /// Whether something is there already, which is not overwritten, or no folder to write into: known before the call
    /// is made, for afterwards it would be lost.
    pub(crate) fn must_be_free(&self) -> Result<(), Failure> {
        if fs::symlink_metadata(&self.path).is_ok() {
            return Err(self.fault("is there already"));
        }
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
                Err(self.fault(format_args!("there is no folder {}", folder.display())))
            }
            _ => Ok(()),
        }
    }

    /// What is typed to carry the call on, for a shell.
    pub(crate) fn command(&self, client: &Client) -> String {
        let mut command = format!("mrtr resume {}", word(&self.path));
        if let Some(path) = &self.key_file {
            command.push_str(&format!(" --key-file {}", word(path)));
        }
        match (client.server(), address(client)) {
            (_, Some(_)) => {}
            (server, None) if server.starts_with("stdio:") => command.push_str(" --stdio -- CMD…"),
            (_, None) => command.push_str(" URL"),
        }
        command
    }

    fn fault(&self, what: impl std::fmt::Display) -> Failure {
        Failure::new(format!("{}: {what}", self.path.display()))
    }

    /// Writes a call, whole or not at all; what the file held before is gone then.
    pub(crate) fn write(&self, client: &Client, waiting: &Waiting) -> Result<(), Failure> {
        let mut exchange = Vec::new();
        match &self.sealer {
            None => waiting.save(&mut exchange),
            Some(sealer) => {
                let entropy = clock::entropy().map_err(Failure::new)?;
                waiting.save_sealed(sealer, &entropy, &mut exchange).map_err(Failure::new)?;
            }
        }
        let keys: Vec<&str> = waiting.asks().map(|ask| ask.key()).collect();
        let head = json!({
            "mrtr": "call",
            "format": 1,
            "sealed": self.sealer.is_some(),
            "url": address(client),
            "at": utc(Clock::system().now()),
            "keys": keys,
        });
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.tmp", std::process::id()));
        let beside = self.path.with_file_name(name);
        let written = self.create(&beside, &head, &exchange).and_then(|()| fs::rename(&beside, &self.path));
        written.map_err(|error| {
            let _ = fs::remove_file(&beside);
            self.fault(error)
        })
    }

    fn create(&self, path: &Path, head: &Value, exchange: &[u8]) -> io::Result<()> {
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        writeln!(file, "{head}")?;
        file.write_all(exchange)?;
        file.sync_all()
    }

    pub(crate) fn read(&self) -> Result<Saved, Failure> {
        let mut bytes = Vec::new();
        File::open(&self.path)
            .and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes))
            .map_err(|error| self.fault(error))?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MOST {
            return Err(self.fault("too large for a saved call"));
        }
        let no_call = || self.fault("not a saved call");
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(no_call)?;
        let exchange = bytes.split_off(end + 1);
        let head: Value = serde_json::from_slice(&bytes).map_err(|_| no_call())?;
        if head.get("mrtr") != Some(&Value::from("call")) {
            return Err(no_call());
        }
        if head.get("format") != Some(&Value::from(1)) {
            return Err(self.fault("saved in a format of another version of mrtr"));
        }
        let sealed = head.get("sealed").and_then(Value::as_bool).unwrap_or(false);
        let url = head.get("url").and_then(Value::as_str).map(String::from);
        Ok(Saved { url, sealed, exchange })
    }

    /// The call that was saved, if it belongs to this server.
    pub(crate) fn load(&self, client: &Client, saved: &Saved) -> Result<Waiting, Failure> {
        let loaded = match (&self.sealer, saved.sealed) {
            (None, false) => client.load(&saved.exchange),
            (Some(sealer), true) => client.load_sealed(&saved.exchange, sealer),
            (None, true) => return Err(self.fault("sealed: give its key with --key-file")),
            // Otherwise whoever can write the file could have it taken for one that is.
            (Some(_), false) => return Err(self.fault("not sealed, though there is a --key-file")),
        };
        loaded.map_err(|error| self.fault(error))
    }

    pub(crate) fn remove(&self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(file = %self.path.display(), %error, "the saved call is over, and could not be removed");
        }
    }
}

/// The url of the server, if it may stand in the file.
fn address(client: &Client) -> Option<&str> {
    Some(client.server()).filter(|server| !server.starts_with("stdio:") && !server.contains('?'))
}

/// A path as one word of a shell's.
fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,=".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word() {
        for (path, expected) in [
            ("/tmp/call-1.mrtr", "/tmp/call-1.mrtr"),
            ("a call", "'a call'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
        ] {
            assert_eq!(word(Path::new(path)), expected);
        }
    }
}
