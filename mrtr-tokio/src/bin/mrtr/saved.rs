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
        Ok(Self { path: path.into(), sealer: sealer.map_err(Failure::new)? })
    }

    /// Whether something is there already, which is not overwritten.
    pub(crate) fn must_be_free(&self) -> Result<(), Failure> {
        match fs::symlink_metadata(&self.path) {
            Ok(_) => Err(self.fault("is there already")),
            Err(_) => Ok(()),
        }
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
        let url =
            Some(client.server()).filter(|server| !server.starts_with("stdio:") && !server.contains('?'));
        let head = json!({
            "mrtr": "call",
            "format": 1,
            "sealed": self.sealer.is_some(),
            "url": url,
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
