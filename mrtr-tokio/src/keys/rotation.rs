//! Secrets of a running server, read again when they change.

use std::path::{Path, PathBuf};

use mrtr_core::seal::{KeyRing, RingError, Sealer, Secret};

use super::{KeyError, KeySource, read, secret};

/// Where the secrets of a server are: one that mints, any number that are accepted besides. See
/// [Rotation](super#rotation).
///
/// ```
/// use mrtr_tokio::keys::{self, Keys};
///
/// let dir = std::env::temp_dir().join(format!("mrtr-doc-keys-{}", std::process::id()));
/// std::fs::create_dir_all(&dir)?;
/// let (mint, accepted) = (dir.join("mint"), dir.join("accepted"));
/// # let _ = (std::fs::remove_file(&mint), std::fs::remove_file(&accepted));
/// keys::generate_file(&mint)?;
/// keys::generate_file(&accepted)?;
///
/// let keys = Keys::file(&mint).accept_file(&accepted);
/// let sealer = keys.sealer("files")?; // a clone goes to the server
/// assert_eq!(sealer.key_use().len(), 2);
///
/// std::fs::write(&accepted, "")?; // later
/// keys.reload(&sealer)?;
/// assert_eq!(sealer.key_use().len(), 1);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Keys {
    mint: Place,
    accept: Vec<Place>,
}

#[derive(Clone, Debug)]
enum Place {
    File(PathBuf),
    Env(String),
}

impl Keys {
    /// Mints with the one key of a file that only its owner can read.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { mint: Place::File(path.into()), accept: Vec::new() }
    }

    /// Mints with the key of an environment variable. It stays the same as long as the process lives: to be rotated
    /// by restarts.
    #[must_use]
    pub fn env(name: impl Into<String>) -> Self {
        Self { mint: Place::Env(name.into()), accept: Vec::new() }
    }

    /// Also accepts the keys of a file that only its owner can read: one a line, or none.
    #[must_use]
    pub fn accept_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.accept.push(Place::File(path.into()));
        self
    }

    /// Also accepts the key of an environment variable.
    #[must_use]
    pub fn accept_env(mut self, name: impl Into<String>) -> Self {
        self.accept.push(Place::Env(name.into()));
        self
    }

    /// Reads all of them.
    ///
    /// # Errors
    ///
    /// If one is missing, readable by others, or no key.
    pub fn ring(&self) -> Result<KeyRing, KeyError> {
        let mint = match &self.mint {
            Place::File(path) => KeySource::File(path),
            Place::Env(name) => KeySource::Env(name),
        };
        let mut ring = KeyRing::new(mint.secret()?);
        for place in &self.accept {
            match place {
                Place::File(path) => {
                    for secret in secrets(path)? {
                        accept(&mut ring, secret)?;
                    }
                }
                Place::Env(name) => accept(&mut ring, KeySource::Env(name).secret()?)?,
            }
        }
        Ok(ring)
    }

    /// A sealer that encrypts with these keys; `audience` as for [`KeySource::sealer`].
    ///
    /// # Errors
    ///
    /// Those of [`ring`](Self::ring).
    pub fn sealer(&self, audience: &str) -> Result<Sealer, KeyError> {
        Ok(Sealer::encrypted(&self.ring()?, audience))
    }

    /// Reads all of them again and gives them to `sealer` and its clones, also those of running servers. Says in the
    /// log which keys are in force and what each of them was used for. Blocks: a few small files are read.
    ///
    /// # Errors
    ///
    /// Those of [`ring`](Self::ring); the keys then stay as they were.
    pub fn reload(&self, sealer: &Sealer) -> Result<(), KeyError> {
        sealer.set_ring(&self.ring()?);
        for uses in sealer.key_use() {
            tracing::info!(
                key = %uses.key,
                mints = uses.mints,
                sealed = uses.sealed,
                opened = uses.opened,
                opened_retired = uses.opened_retired,
                "a key is in force"
            );
        }
        Ok(())
    }

    /// A ring of all keys in these files, one a line, to look at states with.
    ///
    /// # Errors
    ///
    /// Those of [`ring`](Self::ring), and [`KeyError::Empty`] for a file without a key.
    pub fn read_all(files: &[impl AsRef<Path>]) -> Result<Option<KeyRing>, KeyError> {
        let mut ring: Option<KeyRing> = None;
        for path in files {
            let path = path.as_ref();
            let secrets = secrets(path)?;
            if secrets.is_empty() {
                return Err(KeyError::Empty(path.into()));
            }
            for secret in secrets {
                match &mut ring {
                    Some(ring) => accept(ring, secret)?,
                    None => ring = Some(KeyRing::new(secret)),
                }
            }
        }
        Ok(ring)
    }
}

/// Files may overlap while keys are moved from one to the other.
fn accept(ring: &mut KeyRing, secret: Secret) -> Result<(), KeyError> {
    match ring.accept(secret) {
        Ok(()) | Err(RingError::SameSecret(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn secrets(path: &Path) -> Result<Vec<Secret>, KeyError> {
    let text = read(path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(index, line): (usize, &str)| {
        secret(line).map_err(|error| error.at(format_args!("{}, line {}", path.display(), index + 1)))
    };
    lines.map(read).collect()
}

#[cfg(test)]
#[cfg(unix)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::keys::generate;

    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("mrtr-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            path
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// G-53, B-17: the steps of a rotation with files; a clone in use follows.
    #[test]
    fn b_17_a_rotation_with_files() {
        let dir = Dir::new("rotation");
        let (old, new) = (generate().unwrap(), generate().unwrap());
        let [old_id, new_id] = [&old, &new].map(|text| secret(text).unwrap().key_id());
        let mint = dir.write("mint", &old);
        let accepted = dir.write("accepted", "");
        let keys = Keys::file(&mint).accept_file(&accepted);
        let sealer = keys.sealer("files").unwrap();
        let in_use = sealer.clone();
        let ids = || in_use.key_use().iter().map(|it| it.key).collect::<Vec<_>>();
        assert_eq!(ids(), [old_id]);
        for (mint, accepted, expected) in [
            (&old, format!("{}\n\n {}\n", &*old, &*new), vec![old_id, new_id]),
            (&new, format!("{}\n{}", &*old, &*new), vec![new_id, old_id]),
            (&new, String::from("\n"), vec![new_id]),
        ] {
            dir.write("mint", mint);
            dir.write("accepted", &accepted);
            keys.reload(&sealer).unwrap();
            assert_eq!(ids(), expected);
        }
    }

    /// Nothing changes where one key of all is not good; the error says which, and shows none.
    #[test]
    fn a_reload_is_all_or_nothing() {
        let dir = Dir::new("reload");
        let (old, new) = (generate().unwrap(), generate().unwrap());
        let mint = dir.write("mint", &old);
        let accepted = dir.write("accepted", &old);
        let keys = Keys::file(&mint).accept_file(&accepted);
        let sealer = keys.sealer("files").unwrap();
        let before = sealer.minting();
        dir.write("mint", &new);
        dir.write("accepted", &format!("{}\nAAAA\n", &*old));
        let error = keys.reload(&sealer).unwrap_err().to_string();
        assert!(error.contains("accepted, line 2") && !error.contains("AAAA"), "{error}");
        dir.write("accepted", &format!("{}\nnot a key\n", &*old));
        let error = keys.reload(&sealer).unwrap_err().to_string();
        assert!(error.contains("line 2") && !error.contains("not a key\n"), "{error}");
        std::fs::set_permissions(&accepted, std::fs::Permissions::from_mode(0o604)).unwrap();
        assert!(matches!(keys.reload(&sealer), Err(KeyError::Mode { mode: 0o604, .. })));
        std::fs::remove_file(&accepted).unwrap();
        assert!(matches!(keys.reload(&sealer), Err(KeyError::File { .. })));
        // A file to mint with holds one key.
        dir.write("accepted", "");
        dir.write("mint", &format!("{}\n{}\n", &*old, &*new));
        assert!(keys.reload(&sealer).is_err());
        assert_eq!((sealer.minting(), sealer.key_use().len()), (before, 1));
        dir.write("mint", &new);
        keys.reload(&sealer).unwrap();
        assert_ne!(sealer.minting(), before);
    }
}
