//! Where sealing secrets come from (G-53, R-077).
//!
//! A secret is 32 random bytes or more, the same on every replica and after every restart. In files and
//! environment variables it stands as base64url without padding, as [`generate`] makes it.
//!
//! ```
//! use mrtr_tokio::keys::{self, KeySource};
//!
//! let text = keys::generate()?;
//! let sealer = KeySource::Bytes(&keys::decode(&text)?).sealer("files")?;
//! assert_eq!(sealer.audience(), "files");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Rotation
//!
//! [`Keys`] names where the secrets of a running server are, one that mints and any number that it accepts besides;
//! [`Keys::reload`] reads them again. Replacing OLD by NEW without refusing a call that waits for its answer takes three
//! steps, each of them on **every** replica before the next begins:
//!
//! 1. Append NEW to the accepted keys, reload. Everybody opens what NEW seals, nobody mints with it yet.
//! 2. Write NEW into the minting key's file, and have OLD among the accepted ones; reload. Both may stand there:
//!    a key that mints is accepted anyway.
//! 3. Wait for the longest TTL in use: 600 s, or what a sealer or a tool says instead. Until then
//!    [`Sealer::key_use`] may count states that were opened under OLD. Then take OLD away, reload.
//!
//! For `mrtr serve`, with `--key-file mint --accept-key-file accepted`:
//!
//! ```text
//! mrtr keygen --out new
//! cat mint new > accepted      # with mode 600, then SIGHUP to each replica
//! mv new mint                  # SIGHUP to each replica; wait 10 minutes
//! : > accepted                 # SIGHUP to each replica
//! ```

use std::{
    io,
    path::{Path, PathBuf},
    sync::Once,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use mrtr_core::seal::{KeyRing, KeyTooShort, RingError, Sealer, Secret};
use zeroize::Zeroizing;

pub(crate) mod file;
mod rotation;

use file::FileFault;
pub use rotation::Keys;

/// Where a secret comes from. `Debug` shows no bytes.
#[derive(Clone, Copy)]
#[allow(clippy::exhaustive_enums)]
pub enum KeySource<'a> {
    /// A file that only its owner can read, with the text of a key.
    File(&'a Path),
    /// An environment variable with the text of a key.
    Env(&'a str),
    /// The bytes themselves, from a secret store, say.
    Bytes(&'a [u8]),
    /// A key made now, that nothing but this process ever knows. A state does not outlive the process, and no
    /// other replica takes it; this is said once, as a warning.
    Ephemeral,
}

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file cannot be read.
    #[error("the key file {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Others can read or change the file.
    #[error("the key file {} may be used by others (mode {mode:03o}): chmod 600", path.display())]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The environment variable is not there.
    #[error("the environment variable {0} is not set")]
    Unset(String),
    /// The text is not a key's.
    #[error("not the text of a key: base64url without padding, as `mrtr keygen` makes it")]
    Text,
    /// Too few bytes.
    #[error(transparent)]
    TooShort(#[from] KeyTooShort),
    /// One of several keys is not good.
    #[error("{place}: {error}")]
    At {
        /// Which one: the file, and the line of it if there is more than one.
        place: String,
        /// What is wrong with it.
        error: Box<Self>,
    },
    /// A file without a key, where there must be one.
    #[error("the key file {} holds no key", .0.display())]
    Empty(PathBuf),
    /// Two keys that cannot be used together.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// The system gives no entropy.
    #[error("no entropy for a key: {0}")]
    Entropy(io::Error),
}

impl KeyError {
    /// The environment variable of this name is not there. What does not look like the name of one is not repeated: it may
    /// be the secret itself, given in the wrong place.
    #[must_use]
    pub fn unset(name: &str) -> Self {
        Self::Unset(shown(name))
    }

    fn at(self, place: impl std::fmt::Display) -> Self {
        Self::At { place: place.to_string(), error: Box::new(self) }
    }
}

impl KeySource<'_> {
    /// Reads the secret.
    ///
    /// # Errors
    ///
    /// If there is none, or one that is not fit to seal with.
    pub fn secret(self) -> Result<Secret, KeyError> {
        match self {
            Self::Bytes(bytes) => Ok(Secret::from_bytes(bytes)?),
            Self::File(path) => secret(&read(path)?).map_err(|error| error.at(path.display())),
            Self::Env(name) => {
                let text = std::env::var_os(name).ok_or_else(|| KeyError::unset(name))?;
                let text = text.into_string().map(Zeroizing::new).map_err(|_| KeyError::Text);
                text.and_then(|text| secret(&text)).map_err(|error| error.at(name))
            }
            Self::Ephemeral => {
                static WARNED: Once = Once::new();
                WARNED.call_once(|| {
                    tracing::warn!(
                        "states are sealed with a key that only this process knows: after a restart, and on any \
                         other replica, calls that wait for an answer are refused"
                    );
                });
                Ok(Secret::from_bytes(&*random().map_err(KeyError::Entropy)?)?)
            }
        }
    }

    /// A sealer that encrypts under this secret alone, for the service that `audience` names: the same name on
    /// all replicas, never a version, host, port or process (G-52).
    ///
    /// # Errors
    ///
    /// Those of [`secret`](Self::secret).
    pub fn sealer(self, audience: &str) -> Result<Sealer, KeyError> {
        Ok(Sealer::encrypted(&KeyRing::new(self.secret()?), audience))
    }
}

impl core::fmt::Debug for KeySource<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::File(path) => write!(f, "File({})", path.display()),
            Self::Env(name) => write!(f, "Env({name})"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Ephemeral => f.write_str("Ephemeral"),
        }
    }
}

/// The text of a new key: 32 random bytes.
///
/// # Errors
///
/// [`KeyError::Entropy`].
pub fn generate() -> Result<Zeroizing<String>, KeyError> {
    random_text().map_err(KeyError::Entropy)
}

/// 32 random bytes as text: a key, or another secret that cannot be guessed.
pub(crate) fn random_text() -> io::Result<Zeroizing<String>> {
    Ok(encode(&*random()?))
}

/// Writes a new key into a file that only its owner can read. A file that is there already is left alone.
///
/// # Errors
///
/// If the file exists or cannot be written.
pub fn generate_file(path: &Path) -> Result<(), KeyError> {
    let text = generate()?;
    file::write_new(path, &text).map_err(|error| KeyError::File { path: path.into(), error })
}

/// The bytes of a key's text. White space around it does not matter.
///
/// # Errors
///
/// [`KeyError::Text`].
pub fn decode(text: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let bytes = URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| KeyError::Text)?;
    if bytes.is_empty() { Err(KeyError::Text) } else { Ok(Zeroizing::new(bytes)) }
}

fn encode(bytes: &[u8]) -> Zeroizing<String> {
    Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes))
}

fn random() -> io::Result<Zeroizing<[u8; 32]>> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *bytes)?;
    Ok(bytes)
}

fn secret(text: &str) -> Result<Secret, KeyError> {
    Ok(Secret::from_bytes(&decode(text)?)?)
}

/// The name of an environment variable in an error. What does not look like one may be the secret itself, given in the
/// wrong place.
pub(crate) fn shown(name: &str) -> String {
    let usual = |byte: u8| byte == b'_' || byte.is_ascii_uppercase() || byte.is_ascii_digit();
    match name.bytes().all(usual) {
        true => name.into(),
        false => "that was named".into(),
    }
}

/// The text of a key file.
fn read(path: &Path) -> Result<Zeroizing<String>, KeyError> {
    file::read(path).map_err(|fault| match fault {
        FileFault::Io(error) => KeyError::File { path: path.into(), error },
        FileFault::Mode(mode) => KeyError::Mode { path: path.into(), mode },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_bytes_are_one_to_one() {
        for length in 0..70_u8 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(37)).collect();
            let text = encode(&bytes);
            match decode(&text) {
                Ok(back) => assert_eq!(*back, bytes),
                Err(_) => assert!(bytes.is_empty()),
            }
        }
        assert_eq!(&*encode(b"\xfb\xff\xfe"), "-__-");
        for broken in ["", "A", "AA==", "AB", "A+", "A A", "é"] {
            assert!(matches!(decode(broken), Err(KeyError::Text)), "{broken:?}");
        }
        assert_eq!(**decode(" AA\n").unwrap(), [0]);
    }

    #[test]
    fn short_keys_and_missing_ones_are_named() {
        assert!(matches!(KeySource::Bytes(&[1; 31]).secret(), Err(KeyError::TooShort(_))));
        let error = KeySource::Env("MRTR_NO_SUCH_KEY").secret().unwrap_err();
        assert_eq!(error.to_string(), "the environment variable MRTR_NO_SUCH_KEY is not set");
        // The key itself in the place of a name.
        let error = KeySource::Env("c2VjcmV0LXNlY3JldC1zZWNyZXQ").secret().unwrap_err();
        assert_eq!(error.to_string(), "the environment variable that was named is not set");
        assert_eq!(format!("{:?}", KeySource::Bytes(&[7; 32])), "Bytes(32)");
    }

    #[cfg(unix)]
    #[test]
    fn files_of_others_are_refused_and_never_overwritten() {
        use std::os::unix::fs::PermissionsExt as _;
        let path = std::env::temp_dir().join(format!("mrtr-key-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        generate_file(&path).unwrap();
        let made = KeySource::File(&path).secret().unwrap();
        assert!(matches!(generate_file(&path), Err(KeyError::File { .. })));
        assert_eq!(KeySource::File(&path).secret().unwrap().key_id(), made.key_id());
        // A link that leads nowhere is there to one and not there to the other.
        let link = path.with_extension("link");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(path.with_extension("none"), &link).unwrap();
        for error in [generate_file(&link).unwrap_err(), KeySource::File(&link).secret().unwrap_err()] {
            let text =
                format!("the key file {}: it is a symbolic link to a file that is not there", link.display());
            assert!(error.to_string().ends_with(&text), "{error}");
        }
        std::fs::remove_file(&link).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = KeySource::File(&path).secret().unwrap_err();
        assert!(matches!(error, KeyError::Mode { mode: 0o640, .. }), "{error}");
        std::fs::remove_file(&path).unwrap();
    }
}
