//! mrtr-core
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod digest;
pub mod jsonrpc;
pub mod wire;

mod entropy;
mod error;
mod limits;
mod time;
pub(crate) mod trace;

pub use entropy::Entropy;
pub use error::{ErrorCode, RpcError};
pub use limits::Limits;
pub use time::Timestamp;
