//! A saved exchange for disks that others can read.
//!
//! ```text
//! "mrtrs" version 1 | blob of kind `Saved`, tied to the origin
//! ```

use alloc::vec::Vec;

use super::{Client, Exchange, InputRequired, ResumeError};
use crate::{
    Entropy,
    seal::{BlobKind, SealError, Sealer},
};

const MAGIC: &[u8; 5] = b"mrtrs";
const FORMAT: u8 = 1;

impl Exchange<InputRequired> {
    /// [`save`](Exchange::save), sealed: nobody without the key can read or change it, nor have it resumed for another
    /// server than `origin`. It carries no expiry of its own; what it resumes is under the server's.
    ///
    /// # Errors
    ///
    /// [`SealError::Readable`] if the sealer only signs; nothing is appended then.
    pub fn save_sealed(
        &self,
        origin: &str,
        sealer: &Sealer,
        entropy: &Entropy,
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        if sealer.is_readable() {
            return Err(SealError::Readable);
        }
        let mut plain = zeroize::Zeroizing::new(Vec::new());
        self.save(origin, &mut plain);
        let blob = sealer.seal_blob(BlobKind::Saved, origin.as_bytes(), &plain, entropy)?;
        out.extend_from_slice(MAGIC);
        out.push(FORMAT);
        out.extend_from_slice(&blob);
        Ok(())
    }
}

impl Client {
    /// Takes up an exchange that [`Exchange::save_sealed`] wrote; as [`resume`](Client::resume). Any key of the sealer's
    /// ring will do.
    ///
    /// # Errors
    ///
    /// As [`resume`](Client::resume), and [`ResumeError::Sealed`] if it does not open: it was changed, or sealed under
    /// another key, for another audience or for another origin.
    pub fn resume_sealed(
        &self,
        sealed: &[u8],
        origin: &str,
        sealer: &Sealer,
    ) -> Result<Exchange<InputRequired>, ResumeError> {
        self.may_hold(sealed)?;
        let rest = sealed.strip_prefix(MAGIC).ok_or(ResumeError::NotAnExchange)?;
        let (format, blob) = rest.split_first().ok_or(ResumeError::NotAnExchange)?;
        if *format != FORMAT {
            return Err(ResumeError::Format(*format));
        }
        let plain =
            sealer.open_blob(BlobKind::Saved, origin.as_bytes(), blob).map_err(ResumeError::Sealed)?;
        self.resume(&plain, origin)
    }
}
