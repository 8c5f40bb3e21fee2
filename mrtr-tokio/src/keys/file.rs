//! Files that hold a secret, of whatever kind: only their owner can read them.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::Path,
};

use zeroize::Zeroizing;

/// What is wrong with such a file; whoever reads it says what it was for.
#[derive(Debug)]
pub(crate) enum FileFault {
    /// It cannot be read or written.
    Io(io::Error),
    /// Others can read or change it: its permission bits.
    #[cfg_attr(not(unix), allow(dead_code))]
    Mode(u32),
}

/// Bytes that are read: far more than any secret has.
const FILE_BYTES: u64 = 64 << 10;

/// The text of a file that only its owner can read.
pub(crate) fn read(path: &Path) -> Result<Zeroizing<String>, FileFault> {
    let failed = |error| FileFault::Io(explained(path, error));
    let file = File::open(path).map_err(failed)?;
    // Of the open file, not of the path: what is checked is what is read.
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::MetadataExt::mode(&file.metadata().map_err(failed)?) & 0o777;
        if mode & 0o077 != 0 {
            return Err(FileFault::Mode(mode));
        }
    }
    let mut text = Zeroizing::new(String::with_capacity(128));
    file.take(FILE_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_BYTES {
        let error = io::Error::new(io::ErrorKind::InvalidData, "it has more than 64 KiB");
        return Err(FileFault::Io(error));
    }
    Ok(text)
}

/// Writes a line into a new file that only its owner can read. What is there already is left alone.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|error| explained(path, error))?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

/// Of a link that leads nowhere the system says that the file is not there, or that it is: as one reads or writes.
fn explained(path: &Path, error: io::Error) -> io::Error {
    let odd = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists);
    let link = || fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    match odd && link() && !path.exists() {
        true => io::Error::new(error.kind(), "it is a symbolic link to a file that is not there"),
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A secret is not what is left of a larger file.
    #[test]
    fn a_file_that_is_too_large_is_none() {
        let path = std::env::temp_dir().join(format!("mrtr-large-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        let largest = "a".repeat(64 << 10);
        for (more, fits) in [("", true), ("a", false)] {
            write_new(&path, "").unwrap();
            fs::write(&path, format!("{largest}{more}")).unwrap();
            match read(&path) {
                Ok(text) => assert!(fits && text.len() == 64 << 10),
                Err(FileFault::Io(error)) => {
                    assert!(!fits && error.to_string().contains("64 KiB"), "{error}")
                }
                Err(FileFault::Mode(mode)) => panic!("{mode:o}"),
            }
            fs::remove_file(&path).unwrap();
        }
    }
}
