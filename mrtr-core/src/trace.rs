//! The macros of `tracing`, or, without the feature, ones that check their arguments and do nothing.
//!
//! What is logged: keys, kinds, rounds, sizes, reasons. Never a token, an answer, a secret, a principal.

#[cfg(feature = "tracing")]
#[allow(unused_imports)]
pub(crate) use tracing::{debug, warn};

/// A field that may be missing.
#[cfg(feature = "tracing")]
pub(crate) fn shown<T: core::fmt::Display>(value: Option<T>) -> Option<tracing::field::DisplayValue<T>> {
    value.map(tracing::field::display)
}

#[cfg(not(feature = "tracing"))]
pub(crate) const fn shown<T: Copy + core::fmt::Display>(value: Option<T>) -> Option<T> {
    value
}

#[cfg(not(feature = "tracing"))]
mod quiet {
    macro_rules! quiet {
        ($($key:ident $(= $(% $(@ $disp:tt)?)? $value:expr)?,)* $text:literal) => {{
            $($(let _ = &$value;)?)*
        }};
    }
    #[allow(unused_imports)]
    pub(crate) use quiet as debug;
    #[allow(unused_imports)]
    pub(crate) use quiet as warn;
}
#[cfg(not(feature = "tracing"))]
#[allow(unused_imports)]
pub(crate) use quiet::{debug, warn};
