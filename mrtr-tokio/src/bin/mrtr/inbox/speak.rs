//! One request to an inbox, and its reply.

use std::{fmt::Display, net::SocketAddr, path::Path, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper_util::rt::TokioIo;
use mrtr_tokio::bridge::InboxToken;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpStream, UnixStream},
    time::timeout,
};

use super::place::Opened;
use crate::{Failure, failure::Exit};

/// How long an inbox may take to reply. It replies from memory, at once: one that does not is a bridge that was stopped, or
/// no inbox, and somebody waits at a terminal.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of a reply: all questions that wait, thousands of them. Whatever is at the address may send without end.
const REPLY_BYTES: usize = 64 << 20;

pub(super) async fn ask(inbox: &Opened, request: &str) -> Result<Value, Failure> {
    ask_within(inbox, request, REPLY_BYTES).await
}

async fn ask_within(inbox: &Opened, request: &str, limit: usize) -> Result<Value, Failure> {
    let asked = async {
        match inbox {
            Opened::Socket(path) => at_socket(path, request, limit).await,
            Opened::Loopback(address, token) => at_address(*address, token, request, limit).await,
        }
    };
    match timeout(PATIENCE, asked).await {
        Ok(asked) => asked,
        Err(_) => {
            let place = match inbox {
                Opened::Socket(path) => path.display().to_string(),
                Opened::Loopback(address, _) => address.to_string(),
            };
            let text = format!(
                "{place}: no reply within {} s: the bridge was stopped, or this is no inbox",
                PATIENCE.as_secs()
            );
            Err(Failure::with(Exit::Transport, text))
        }
    }
}

async fn at_socket(path: &Path, request: &str, limit: usize) -> Result<Value, Failure> {
    let lost = |error: &dyn Display| Failure::with(Exit::Transport, format!("{}: {error}", path.display()));
    let mut stream = UnixStream::connect(path).await.map_err(|error| lost(&error))?;
    stream.write_all(format!("{request}\n").as_bytes()).await.map_err(|error| lost(&error))?;
    let mut reply = Vec::new();
    // One byte more than may be, to tell the two cases apart.
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    BufReader::new(stream.take(most)).read_until(b'\n', &mut reply).await.map_err(|error| lost(&error))?;
    if reply.is_empty() {
        return Err(lost(&"the connection was closed without a reply"));
    }
    if reply.len() > limit {
        return Err(too_long(&path.display(), limit));
    }
    read(&path.display(), &reply)
}

/// Straight to the address: no proxy is to see the token.
async fn at_address(
    address: SocketAddr,
    token: &InboxToken,
    request: &str,
    limit: usize,
) -> Result<Value, Failure> {
    let lost = |error: &dyn Display| Failure::with(Exit::Transport, format!("{address}: {error}"));
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
    let body = Limited::new(response.into_body(), limit).collect().await;
    carrying.abort();
    let body = body.map_err(|error| match error.is::<LengthLimitError>() {
        true => too_long(&address, limit),
        false => lost(&error),
    })?;
    let body = body.to_bytes();
    match status {
        StatusCode::OK => read(&address, &body),
        StatusCode::UNAUTHORIZED => Err(Failure::with(
            Exit::Refused,
            "this is not the inbox's token: it is of another bridge, or of an old one",
        )),
        status => Err(match read(&address, &body) {
            Err(failure) if failure.exit == Exit::Refused => failure,
            Ok(_) | Err(_) => {
                Failure::with(Exit::Protocol, format!("{address} is no inbox (status {status})"))
            }
        }),
    }
}

fn too_long(place: &dyn Display, limit: usize) -> Failure {
    Failure::with(Exit::Limit, format!("{place}: the reply is over the limit of {limit} bytes"))
}

/// An inbox replies with an object: what was asked for, or an error that is a text.
fn read(place: &dyn Display, reply: &[u8]) -> Result<Value, Failure> {
    let wrong = |what: &dyn Display| Failure::with(Exit::Protocol, format!("{place} is no inbox: {what}"));
    let reply: Value = serde_json::from_slice(reply).map_err(|error| wrong(&error))?;
    match reply.as_object().map(|reply| reply.get("error")) {
        Some(None) => Ok(reply),
        Some(Some(Value::String(error))) => Err(Failure::with(Exit::Refused, error)),
        Some(Some(_)) => Err(wrong(&"its error is not a text")),
        None => Err(wrong(&"its reply is not an object")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tokio::{
        io::{AsyncRead, AsyncWrite},
        net::{TcpListener, UnixListener},
        time::Instant,
    };

    use super::*;

    fn list() -> String {
        String::from(r#"{"op":"list"}"#)
    }

    fn token() -> InboxToken {
        InboxToken::new("0123456789-abcdefghijkl").unwrap()
    }

    fn socket(name: &str) -> (UnixListener, PathBuf) {
        let path = std::env::temp_dir().join(format!("mrtr-speak-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        (UnixListener::bind(&path).unwrap(), path)
    }

    /// Reads a request and says this.
    async fn says(mut stream: impl AsyncRead + AsyncWrite + Unpin, text: &str) {
        let mut request = Vec::new();
        while !request.ends_with(b"}") && !request.ends_with(b"}\n") {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0);
        }
        // Whoever has read enough closes.
        let _ = stream.write_all(text.as_bytes()).await;
    }

    /// Whatever else is there and speaks JSON.
    #[test]
    fn a_reply_is_an_object() {
        for reply in [&b"[]"[..], b"null", b"\"x\"", b"5", b"{\"error\":5}", b"{\"error\":{}}", b"{"] {
            let failure = read(&"there", reply).unwrap_err();
            assert!(failure.exit == Exit::Protocol && failure.text.contains("there"), "{}", failure.text);
        }
        assert_eq!(read(&"there", b"{\"error\":\"no\"}").unwrap_err().exit, Exit::Refused);
    }

    /// A bridge that was stopped, or anything else that takes connections and says nothing, costs a few seconds.
    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_reply_is_given_up() {
        let (_silent, path) = socket("silent");
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = silent.local_addr().unwrap();
        for inbox in [Opened::Socket(path.clone()), Opened::Loopback(address, token())] {
            let begin = Instant::now();
            let failure = ask(&inbox, &list()).await.unwrap_err();
            assert_eq!((failure.exit, begin.elapsed().as_secs()), (Exit::Transport, 10));
            assert!(failure.text.contains("no reply within 10 s"), "{}", failure.text);
        }
        std::fs::remove_file(path).unwrap();
    }

    /// What is at the address may send as much as it likes: exactly the bound is read.
    #[tokio::test]
    async fn a_reply_is_bounded() {
        let (at_socket, path) = socket("endless");
        let at_address = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = at_address.local_addr().unwrap();
        let reply = format!("{:62}", r#"{"entries":[]}"#);
        for (more, fits) in [("", true), (" ", false)] {
            let line = format!("{reply}{more}\n");
            let whole = format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{line}\r\n",
                line.len()
            );
            let cases = [
                (Opened::Socket(path.clone()), line.clone()),
                // Without an end.
                (
                    Opened::Loopback(address, token()),
                    format!("{whole}{}", if fits { "0\r\n\r\n" } else { "" }),
                ),
            ];
            for (inbox, text) in cases {
                let serving = async {
                    match &inbox {
                        Opened::Socket(_) => says(at_socket.accept().await.unwrap().0, &text).await,
                        Opened::Loopback(..) => says(at_address.accept().await.unwrap().0, &text).await,
                    }
                };
                let request = list();
                let (asked, ()) = tokio::join!(ask_within(&inbox, &request, 63), serving);
                match fits {
                    true => assert_eq!(asked.unwrap(), serde_json::json!({"entries": []})),
                    false => {
                        let failure = asked.unwrap_err();
                        assert_eq!(failure.exit, Exit::Limit, "{}", failure.text);
                        assert!(failure.text.contains("over the limit of 63 bytes"), "{}", failure.text);
                    }
                }
            }
        }
        let nothing = async { says(at_socket.accept().await.unwrap().0, "").await };
        let (inbox, request) = (Opened::Socket(path.clone()), list());
        let (asked, ()) = tokio::join!(ask(&inbox, &request), nothing);
        let failure = asked.unwrap_err();
        assert!(
            failure.exit == Exit::Transport && failure.text.contains("without a reply"),
            "{}",
            failure.text
        );
        std::fs::remove_file(path).unwrap();
    }
}
