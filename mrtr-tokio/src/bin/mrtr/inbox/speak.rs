//! One request to an inbox, and its reply.

use std::{net::SocketAddr, path::Path};

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use mrtr_tokio::bridge::InboxToken;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpStream, UnixStream},
};

use super::place::Opened;
use crate::{Failure, failure::Exit};

pub(super) async fn ask(inbox: &Opened, request: &Value) -> Result<Value, Failure> {
    match inbox {
        Opened::Socket(path) => at_socket(path, request).await,
        Opened::Loopback(address, token) => at_address(*address, token, request).await,
    }
}

async fn at_socket(path: &Path, request: &Value) -> Result<Value, Failure> {
    let lost = |error: std::io::Error| Failure::with(Exit::Transport, format!("{}: {error}", path.display()));
    let mut stream = UnixStream::connect(path).await.map_err(lost)?;
    stream.write_all(format!("{request}\n").as_bytes()).await.map_err(lost)?;
    let mut reply = String::new();
    BufReader::new(stream).read_line(&mut reply).await.map_err(lost)?;
    read(reply.as_bytes())
}

/// Straight to the address: no proxy is to see the token.
async fn at_address(address: SocketAddr, token: &InboxToken, request: &Value) -> Result<Value, Failure> {
    let lost = |error: &dyn std::fmt::Display| Failure::with(Exit::Transport, format!("{address}: {error}"));
    let stream = TcpStream::connect(address).await.map_err(|error| lost(&error))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| lost(&error))?;
    let carrying = tokio::spawn(connection);
    let request = Request::post("/inbox")
        .header(header::HOST, address.to_string())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::AUTHORIZATION, token.authorization())
        .body(Full::new(Bytes::from(request.to_string())))
        .map_err(Failure::new)?;
    let response = sender.send_request(request).await.map_err(|error| lost(&error))?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(|error| lost(&error))?.to_bytes();
    carrying.abort();
    match status {
        StatusCode::OK => read(&body),
        StatusCode::UNAUTHORIZED => Err(Failure::with(
            Exit::Refused,
            "this is not the inbox's token: it is of another bridge, or of an old one",
        )),
        status => Err(match read(&body) {
            Err(failure) if failure.exit == Exit::Refused => failure,
            Ok(_) | Err(_) => {
                Failure::with(Exit::Protocol, format!("{address} is no inbox (status {status})"))
            }
        }),
    }
}

fn read(reply: &[u8]) -> Result<Value, Failure> {
    let reply: Value = serde_json::from_slice(reply).map_err(|error| Failure::with(Exit::Protocol, error))?;
    match reply.get("error").and_then(Value::as_str) {
        Some(error) => Err(Failure::with(Exit::Refused, error)),
        None => Ok(reply),
    }
}
