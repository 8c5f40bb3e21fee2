//! What shows that somebody may answer.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use http::HeaderValue;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::keys::{
    file::{self, FileFault},
    random_text, shown,
};

/// Characters that a token has at least: 128 random bits in base64.
const LEAST: usize = 22;

/// Characters that a token has at most.
const MOST: usize = 512;

/// The token of an inbox on a loopback address. `Debug` does not show it.
#[derive(Clone)]
pub struct InboxToken(Zeroizing<String>);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It cannot be guessed only if it is long, and no header can carry everything.
    #[error("the inbox's token has to be 22 to 512 characters without spaces, as `mrtr keygen` makes them")]
    Text,
    /// The environment variable is not there.
    #[error("the environment variable {0} is not set")]
    Unset(String),
    /// The file cannot be read or written.
    #[error("the file with the inbox's token, {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Others can read or change the file.
    #[error("the file with the inbox's token, {}, may be used by others (mode {mode:03o}): chmod 600", path.display())]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// What is in the file is none.
    #[error("{}: {error}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: Box<Self>,
    },
    /// The system gives no entropy for one.
    #[error("no entropy for the inbox's token: {0}")]
    Entropy(io::Error),
}

impl InboxToken {
    /// A token of 22 to 512 visible ASCII characters. White space around it does not matter.
    ///
    /// # Errors
    ///
    /// [`TokenError::Text`].
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let fits = (LEAST..=MOST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(Self(Zeroizing::new(text.into()))) } else { Err(TokenError::Text) }
    }

    /// The token in an environment variable.
    ///
    /// # Errors
    ///
    /// There is none, or it is not fit.
    pub fn from_env(name: &str) -> Result<Self, TokenError> {
        let text = std::env::var_os(name).ok_or_else(|| TokenError::Unset(shown(name)))?;
        Self::new(&text.into_string().map(Zeroizing::new).map_err(|_| TokenError::Text)?)
    }

    /// The token in a file that only its owner can read.
    ///
    /// # Errors
    ///
    /// It cannot be read, others may read or change it, or what is in it is not fit.
    pub fn from_file(path: &Path) -> Result<Self, TokenError> {
        let text = file::read(path).map_err(|fault| match fault {
            FileFault::Io(error) => TokenError::File { path: path.into(), error },
            FileFault::Mode(mode) => TokenError::Mode { path: path.into(), mode },
        })?;
        Self::new(&text).map_err(|error| TokenError::In { path: path.into(), error: Box::new(error) })
    }

    /// Makes a token and writes it into a file that only its owner can read.
    ///
    /// # Errors
    ///
    /// If the file is there already, or cannot be written.
    pub fn make_file(path: &Path) -> Result<Self, TokenError> {
        let text = random_text().map_err(TokenError::Entropy)?;
        file::write_new(path, &text).map_err(|error| TokenError::File { path: path.into(), error })?;
        Self::from_file(path)
    }

    /// The value of `Authorization` that shows it.
    #[must_use]
    pub fn authorization(&self) -> HeaderValue {
        let value = Zeroizing::new(format!("Bearer {}", *self.0));
        // Only visible characters are in it.
        let mut value = HeaderValue::from_str(&value).unwrap_or_else(|_| HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }

    /// Whether this value of `Authorization` shows it. Takes as long for every wrong token of the right length.
    pub(super) fn admits(&self, given: &HeaderValue) -> bool {
        let given = given.as_bytes();
        let Some((scheme, token)) = given.iter().position(|byte| *byte == b' ').map(|at| given.split_at(at))
        else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"bearer") && bool::from(token.trim_ascii().ct_eq(self.0.as_bytes()))
    }
}

impl fmt::Debug for InboxToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InboxToken(…)")
    }
}

impl TokenError {
    /// Whether there is no such file.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::File { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_whole_or_not_at_all() {
        let text = "abcdefghijklmnopqrstuvwxyz";
        let token = InboxToken::new(&format!(" {text}\n")).unwrap();
        let admits = |value: &str| token.admits(&HeaderValue::from_str(value).unwrap());
        assert!(admits(&format!("Bearer {text}")) && admits(&format!("bearer  {text}")));
        for wrong in ["", "Bearer", "Bearer ", text, &format!("Basic {text}"), &format!("Bearer {text}x")] {
            assert!(!admits(wrong), "{wrong:?}");
        }
        assert!(
            !admits(&format!("Bearer {}", &text[1..])) && !admits(&format!("Bearer {}", text.to_uppercase()))
        );
        assert_eq!(token.authorization(), format!("Bearer {text}"));
        assert!(!format!("{token:?} {:?}", token.authorization()).contains("abc"));
    }

    #[test]
    fn what_could_be_guessed_or_carried_by_no_header_is_no_token() {
        for wrong in [
            "",
            "short",
            &"x".repeat(21),
            &"x".repeat(513),
            "ä".repeat(20).as_str(),
            &format!("{0} {0}", "x".repeat(20)),
        ] {
            assert!(matches!(InboxToken::new(wrong), Err(TokenError::Text)), "{wrong:?}");
        }
        assert!(InboxToken::new(&random_text().unwrap()).is_ok());
    }

    /// It shares files' rules with keys, and not their name.
    #[test]
    fn a_fault_of_the_file_is_one_of_the_tokens_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("mrtr-token-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        InboxToken::make_file(&at("good")).unwrap();
        std::fs::copy(at("good"), at("open")).unwrap();
        std::fs::set_permissions(at("open"), std::fs::Permissions::from_mode(0o644)).unwrap();
        std::fs::copy(at("good"), at("short")).unwrap();
        std::fs::write(at("short"), "short").unwrap();
        std::os::unix::fs::symlink(at("nothing"), at("link")).unwrap();
        let nowhere = "it is a symbolic link to a file that is not there";
        for (made, name, said, missing) in [
            (true, "good", "exists", false),
            (true, "link", nowhere, false),
            (false, "link", nowhere, true),
            (false, "none", "o such file", true),
            (false, "open", "mode 644", false),
            (false, "short", "22 to 512 characters", false),
        ] {
            let path = at(name);
            let error = if made { InboxToken::make_file(&path) } else { InboxToken::from_file(&path) };
            let error = error.unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains(said) && text.contains("inbox's token") && !text.contains("key file"),
                "{text}"
            );
            assert!(text.contains(path.to_str().unwrap()), "{text}");
            assert_eq!(error.is_missing(), missing, "{text}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
