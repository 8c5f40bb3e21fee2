//! mrtr-core
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod catalog;
pub mod client;
pub mod digest;
pub mod form;
pub mod framing;
#[cfg(feature = "std")]
pub mod handler;
pub mod http;
pub mod journal;
pub mod jsonrpc;
#[cfg(feature = "std")]
pub mod legacy;
pub mod seal;
pub mod server;
pub mod tape;
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
