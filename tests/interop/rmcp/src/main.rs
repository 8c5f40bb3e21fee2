//! The official Rust SDK as a peer: `rmcp-peer server http | server stdio | client http URL | client stdio CMD…`.

mod client;
mod server;

use std::{env, error::Error, process::ExitCode};

type Fallible<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Fallible<ExitCode> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["server", "http"] => server::over_http().await?,
        ["server", "stdio"] => server::over_stdio().await?,
        ["client", "http", url] => return client::over_http(url).await,
        ["client", "stdio", program, arguments @ ..] => return client::over_stdio(program, arguments).await,
        _ => return Err("usage: rmcp-peer server http|stdio, rmcp-peer client http URL|stdio CMD…".into()),
    }
    Ok(ExitCode::SUCCESS)
}
