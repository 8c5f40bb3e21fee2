//! The name under which a store keeps one sealed state.

use core::fmt;

use sha2::{Digest as _, Sha256};

/// One sealed state: (audience, exchange id, round).
///
/// `round` is the number of states that this exchange had handed out before: rounds with questions and
/// state-only rounds counted together, because each of them is a state of its own that is used once.
///
/// The audience is hashed, so that a key is 36 bytes (or at most 90 characters) whatever an operator calls a
/// service. A key is not secret and proves nothing; it may be logged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    audience: [u8; 16],
    exchange: [u8; 16],
    round: u32,
}

impl Key {
    /// Bytes of [`Key::to_bytes`].
    pub const BYTES: usize = 36;

    /// The key of the state that opened round `round` of an exchange at `audience`.
    #[must_use]
    pub fn new(audience: &str, exchange: [u8; 16], round: u32) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"mrtr/v1/ledger/audience");
        hash.update(audience.as_bytes());
        let hash: [u8; 32] = hash.finalize().into();
        let mut short = [0; 16];
        for (to, from) in short.iter_mut().zip(hash) {
            *to = from;
        }
        Self { audience: short, exchange, round }
    }

    /// The exchange it belongs to.
    #[must_use]
    pub const fn exchange(&self) -> [u8; 16] {
        self.exchange
    }

    /// For stores whose keys are bytes: audience hash 16 ‖ exchange id 16 ‖ round 4, big-endian.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        let parts = self.audience.into_iter().chain(self.exchange).chain(self.round.to_be_bytes());
        for (to, from) in out.iter_mut().zip(parts) {
            *to = from;
        }
        out
    }
}

/// For stores whose keys are text: `mrtr:ledger:1:<audience hash>:<exchange id>:<round>`, lower-case
/// hexadecimal and a decimal round.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mrtr:ledger:1:")?;
        for byte in self.audience {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(":")?;
        for byte in self.exchange {
            write!(f, "{byte:02x}")?;
        }
        write!(f, ":{}", self.round)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn every_part_tells_keys_apart() {
        let key = Key::new("billing", [7; 16], 1);
        for other in [
            Key::new("billing ", [7; 16], 1),
            Key::new("billing", [8; 16], 1),
            Key::new("billing", [7; 16], 2),
        ] {
            assert_ne!(key, other);
            assert_ne!(key.to_bytes(), other.to_bytes());
            assert_ne!(key.to_string(), other.to_string());
        }
    }

    #[test]
    fn text_is_bounded_whatever_the_audience() {
        let key = Key::new(&"long\n ".repeat(10_000), [0xab; 16], u32::MAX).to_string();
        assert_eq!(key.len(), 90);
        assert!(key.ends_with(":abababababababababababababababab:4294967295"));
    }
}
