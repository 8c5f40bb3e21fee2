//! A server that misbehaves, over HTTP and stdio: carries the cases of [`mrtr_core::testkit`], for tests of clients.
//!
//! ```no_run
//! # async fn serve() -> std::io::Result<()> {
//! // Every case at its own path: http://127.0.0.1:3000/asks-for-ever
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
//! let told = |case: &str, fault: &str| eprintln!("{case}: the client {fault}");
//! mrtr_tokio::hostile::http(listener, told, std::future::pending()).await
//! # }
//! ```
//!
//! | file | what |
//! |---|---|
//! | `http` | each case at its own path |
//! | `stdio` | one case on a pair of pipes |

mod http;
mod stdio;

pub use http::http;
pub use stdio::{Ended, stdio};

/// Is told what a client does wrong: the case's name, and the fault as words that follow "the client".
///
/// Implemented for closures.
pub trait Watch: Send + Sync + 'static {
    /// A message of the client shows a fault.
    fn fault(&self, case: &'static str, fault: &'static str);
}

impl<F: Fn(&'static str, &'static str) + Send + Sync + 'static> Watch for F {
    fn fault(&self, case: &'static str, fault: &'static str) {
        self(case, fault);
    }
}
