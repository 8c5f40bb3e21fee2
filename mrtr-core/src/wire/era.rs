//! Protocol revisions and what divides them.

/// A revision of the protocol that mrtr speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Version {
    /// 2025-03-26: no elicitation.
    V2025_03_26,
    /// 2025-06-18: forms only, a smaller form language.
    V2025_06_18,
    /// 2025-11-25: the server asks over a held connection.
    V2025_11_25,
    /// 2026-07-28: the server replies early and is asked again.
    V2026_07_28,
}

/// How a revision lets a server ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums)]
pub enum Era {
    /// Sessions, `initialize`, requests from the server (2025-11-25 and before).
    Legacy,
    /// Stateless requests, `_meta`, interim results (2026-07-28).
    Modern,
}

impl Version {
    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// Reads the name on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "2025-03-26" => Some(Self::V2025_03_26),
            "2025-06-18" => Some(Self::V2025_06_18),
            "2025-11-25" => Some(Self::V2025_11_25),
            "2026-07-28" => Some(Self::V2026_07_28),
            _ => None,
        }
    }

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era it belongs to.
    #[must_use]
    pub const fn era(self) -> Era {
        match self {
            Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => Era::Legacy,
            Self::V2026_07_28 => Era::Modern,
        }
    }
}

impl core::fmt::Display for Version {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}
