//! The endpoint without sockets, under virtual time.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use mrtr_core::{
    Limits,
    handler::Service,
    server::{Config, Server},
    wire::Implementation,
};
use mrtr_tokio::{
    example_tools::{self, Inbox},
    keys::KeySource,
    server::{Anonymous, Bind, Endpoint, FromExtension, ReplyBody},
};
use serde_json::{Value, json};

use crate::support::{call, headers, service};

/// A body in pieces, which may never end.
pub(crate) struct Pieces {
    pieces: Vec<Bytes>,
    endless: bool,
}

impl Pieces {
    pub(crate) fn whole(text: &str) -> Self {
        Self { pieces: vec![Bytes::copy_from_slice(text.as_bytes())], endless: false }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.pieces.pop() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None if self.endless => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}

pub(crate) fn post(body: &str, pieces: Pieces) -> Request<Pieces> {
    let mut request = Request::post("/mcp").header("Host", "localhost");
    for (name, value) in headers(body) {
        request = request.header(name, value);
    }
    request.body(pieces).unwrap()
}

pub(crate) async fn text(response: Response<ReplyBody>) -> String {
    let mut body = Box::pin(response.into_body());
    let mut bytes = Vec::new();
    while let Some(Ok(frame)) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        bytes.extend_from_slice(&frame.into_data().unwrap());
    }
    String::from_utf8(bytes).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_slow_body_is_given_up() {
    let (service, _seen) = service(Limits::default());
    let endpoint = Endpoint::new(service, Anonymous::new());
    let started = tokio::time::Instant::now();
    let body = call(1, "echo", r#"{"text":"hi"}"#);
    let slow = Pieces { pieces: vec![Bytes::from_static(b"{")], endless: true };
    let response = endpoint.call(post(&body, slow)).await;
    assert_eq!(response.status(), 408);
    assert_eq!(started.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_limit_is_refused_whatever_it_said() {
    let mut limits = Limits::default();
    limits.message_bytes = 1_000;
    let (service, _seen) = service(limits);
    let endpoint = Endpoint::new(service, Anonymous::new());
    let body = call(1, "echo", r#"{"text":"hi"}"#);
    // Said to be too long: refused unread, or this would wait for ever.
    let mut said = post(&body, Pieces { pieces: Vec::new(), endless: true });
    said.headers_mut().insert("content-length", "1001".parse().unwrap());
    assert_eq!(endpoint.call(said).await.status(), 413);
    // Not said: refused as soon as it is.
    let pieces = vec![Bytes::from(vec![b' '; 600]); 2];
    let response = endpoint.call(post(&body, Pieces { pieces, endless: true })).await;
    assert_eq!(response.status(), 413);
    assert!(text(response).await.contains("-32600"));
    // Exactly the limit is fine.
    let mut padded = body.clone();
    padded.push_str(&" ".repeat(1_000 - body.len()));
    assert_eq!(endpoint.call(post(&body, Pieces::whole(&padded))).await.status(), 200);
}

/// G-26: the example with a subject that changes between rounds. A yes to three files deletes no fourth one: it is asked
/// again, and the yes to that question deletes what it named.
#[tokio::test(start_paused = true)]
async fn g26_a_yes_to_other_files_deletes_nothing() {
    let inbox = Inbox::growing_every(Duration::from_secs(30));
    let sealer = KeySource::Bytes(&[7; 32]).sealer("tests").unwrap();
    let config = Config::new(Implementation::new("tests", "1"), sealer);
    let service = example_tools::add(Service::new(Server::new(config)), &inbox).unwrap();
    let endpoint = Endpoint::new(service, Anonymous::new());
    let send = async |more: Value| {
        let mut body: Value = serde_json::from_str(&call(1, "delete_files", "{}")).unwrap();
        let params = body["params"].as_object_mut().unwrap();
        params.extend(more.as_object().unwrap().clone());
        let body = body.to_string();
        let response = endpoint.call(post(&body, Pieces::whole(&body))).await;
        serde_json::from_str::<Value>(&text(response).await).unwrap()["result"].take()
    };
    let yes = |asked: &Value| json!({"requestState": asked["requestState"], "inputResponses": {"sure": {"action": "accept"}}});
    let message =
        |asked: &Value| asked["inputRequests"]["sure"]["params"]["message"].as_str().unwrap().to_owned();

    let first = send(json!({})).await;
    assert!(message(&first).starts_with("Delete 3 files for ever?"), "{first}");
    tokio::time::advance(Duration::from_secs(31)).await;
    let second = send(yes(&first)).await;
    assert!(message(&second).starts_with("Delete 4 files for ever?"), "{second}");
    assert_eq!(inbox.files().len(), 4);
    let done = send(yes(&second)).await;
    assert_eq!(done["content"][0]["text"], "Deleted 4 files.");
    assert!(inbox.files().is_empty());
}

/// A sender that is told no in the middle of its body is read for another second, so that it comes to look; not if it has
/// not begun.
#[tokio::test(start_paused = true)]
async fn who_still_sends_gets_to_read_why_it_was_refused() {
    let mut limits = Limits::default();
    limits.message_bytes = 1_000;
    let (service, _seen) = service(limits);
    let endpoint = Endpoint::new(service, Anonymous::new());
    let body = call(1, "echo", r#"{"text":"hi"}"#);
    let megabyte = Bytes::from(vec![b' '; 1 << 20]);
    // By its head, by its body; read to its end, for a second, for so many bytes, not at all.
    for (header, pieces, endless, waits) in [
        (("accept", "text/plain"), 10, false, 0),
        (("accept", "text/plain"), 10, true, 1),
        (("x-more", "1"), 10, true, 1),
        (("x-more", "1"), 40, true, 0),
        (("expect", "100-continue"), 10, true, 0),
    ] {
        let started = tokio::time::Instant::now();
        let mut request = post(&body, Pieces { pieces: vec![megabyte.clone(); pieces], endless });
        request.headers_mut().insert(header.0, header.1.parse().unwrap());
        if header.0 == "expect" {
            request.headers_mut().insert("accept", "text/plain".parse().unwrap());
        }
        let status = endpoint.call(request).await.status().as_u16();
        assert_eq!(status, if header.0 == "x-more" { 413 } else { 406 }, "{header:?}");
        assert_eq!(started.elapsed(), Duration::from_secs(waits), "{header:?} {pieces} {endless}");
    }
}

/// A body that, as many streams do, takes it ill to be asked again after its end.
struct Once {
    piece: Option<Result<Bytes, std::io::Error>>,
    over: bool,
}

impl Body for Once {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        assert!(!self.over, "asked after its end");
        let piece = self.piece.take();
        self.over = !matches!(piece, Some(Ok(_)));
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }
}

#[tokio::test]
async fn a_body_is_not_asked_after_its_end() {
    let (service, _seen) = service(Limits::default());
    let endpoint = Endpoint::builder(service, Anonymous::new()).legacy(Default::default()).build();
    let text = call(1, "echo", r#"{"text":"hi"}"#);
    let session = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;
    let legacy = || {
        let head =
            Request::post("/mcp").header("Host", "localhost").header("Content-Type", "application/json");
        head.header("Accept", "application/json, text/event-stream").body(()).unwrap()
    };
    let modern = || post(&text, Pieces::whole("")).map(drop);
    let broken = Err(std::io::Error::other("broke off"));
    for (head, piece, status) in [
        (modern(), Some(Ok(Bytes::from(text.clone()))), 200),
        (legacy(), Some(Ok(Bytes::from_static(session.as_bytes()))), 200),
        (modern(), Some(broken), 400),
        (modern(), None, 400),
    ] {
        let request = head.map(|()| Once { piece, over: false });
        assert_eq!(endpoint.call(request).await.status(), status);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_reply_is_kept_alive_by_comments_r_180() {
    let (service, mut seen) = service(Limits::default());
    let endpoint = Endpoint::new(service, Anonymous::new());
    let body = call(1, "wait", "{}");
    let started = tokio::time::Instant::now();
    let response = endpoint.call(post(&body, Pieces::whole(&body))).await;
    assert_eq!(seen.next().await, "waiting");
    assert_eq!(started.elapsed(), Duration::from_secs(15));
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = Box::pin(response.into_body());
    for _ in 0..2 {
        let frame = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await.unwrap().unwrap();
        assert!(frame.into_data().unwrap().starts_with(b":"));
    }
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    drop(body);
    assert_eq!(seen.next().await, "dropped");
}

#[tokio::test]
async fn credentials_are_not_ignored_by_oversight() {
    let body = call(1, "who", "{}");
    let with_credentials = || {
        let mut request = post(&body, Pieces::whole(&body));
        request.headers_mut().insert("authorization", "Bearer secret".parse().unwrap());
        request
    };
    let strict = Endpoint::new(service(Limits::default()).0, Anonymous::new());
    let response = strict.call(with_credentials()).await;
    assert_eq!(response.status(), 500);
    assert!(!text(response).await.contains("secret"));
    assert_eq!(strict.call(post(&body, Pieces::whole(&body))).await.status(), 200);

    let lax = Endpoint::new(service(Limits::default()).0, Anonymous::with_authorization_ignored());
    let response = lax.call(with_credentials()).await;
    assert_eq!(response.status(), 200);
    assert!(text(response).await.contains("nobody"));
}

#[derive(Clone)]
struct User(&'static str);

#[tokio::test]
async fn a_state_of_one_principal_is_refused_from_another_g_10() {
    let principals = FromExtension::new(|user: &User| user.0);
    let endpoint = Endpoint::new(service(Limits::default()).0, principals);
    let as_user = |body: &str, user: Option<User>| {
        let mut request = post(body, Pieces::whole(body));
        if let Some(user) = user {
            request.extensions_mut().insert(user);
        }
        request
    };
    let who = call(1, "who", "{}");
    assert_eq!(endpoint.call(as_user(&who, None)).await.status(), 500);
    assert!(text(endpoint.call(as_user(&who, Some(User("ada")))).await).await.contains("ada"));

    let asked = text(endpoint.call(as_user(&call(1, "name", "{}"), Some(User("ada")))).await).await;
    let state = asked.split("\"requestState\":\"").nth(1).unwrap().split('"').next().unwrap();
    let retry = crate::support::request(
        2,
        "tools/call",
        &format!(
            "\"name\":\"name\",\"arguments\":{{}},\"requestState\":\"{state}\",\
             \"inputResponses\":{{\"name\":{{\"action\":\"accept\",\"content\":{{\"name\":\"Ada\"}}}}}},"
        ),
        "",
    );
    let stolen = text(endpoint.call(as_user(&retry, Some(User("eve")))).await).await;
    assert!(stolen.contains("Invalid or expired requestState"), "{stolen}");
    let own = text(endpoint.call(as_user(&retry, Some(User("ada")))).await).await;
    assert!(own.contains("Are you Ada?"), "{own}");
}

#[tokio::test]
async fn pages_of_an_allowed_origin_may_read_r_159() {
    let endpoint = Endpoint::builder(service(Limits::default()).0, Anonymous::new())
        .bind(Bind::Network, |gate| {
            gate.allow_host("mcp.example.com")?.allow_origin("https://app.example.com")
        })
        .unwrap()
        .build();
    let body = call(1, "who", "{}");
    let from = |host: &str, origin: &str| {
        let mut request = post(&body, Pieces::whole(&body));
        request.headers_mut().insert("host", host.parse().unwrap());
        request.headers_mut().insert("origin", origin.parse().unwrap());
        request
    };
    let allowed = endpoint.call(from("mcp.example.com", "https://app.example.com")).await;
    assert_eq!(allowed.status(), 200);
    assert_eq!(allowed.headers()["access-control-allow-origin"], "https://app.example.com");
    assert_eq!(endpoint.call(from("mcp.example.com", "https://evil.example.com")).await.status(), 403);
    assert_eq!(endpoint.call(from("evil.example.com", "https://app.example.com")).await.status(), 403);

    let mut preflight = from("mcp.example.com", "https://app.example.com");
    *preflight.method_mut() = http::Method::OPTIONS;
    preflight.headers_mut().insert("access-control-request-method", "POST".parse().unwrap());
    let preflight = endpoint.call(preflight).await;
    assert_eq!((preflight.status().as_u16(), text(preflight).await.as_str()), (204, ""));
}

#[tokio::test]
async fn the_set_up_is_asked_for_each_request() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let principals = |_: &http::request::Parts| {
        ASKED.fetch_add(1, Ordering::Relaxed);
        Ok(mrtr_tokio::server::Identity::authenticated(*b"x"))
    };
    let endpoint = Endpoint::new(service(Limits::default()).0, principals);
    let body = call(1, "who", "{}");
    for _ in 0..3 {
        endpoint.call(post(&body, Pieces::whole(&body))).await;
    }
    assert_eq!(ASKED.load(Ordering::Relaxed), 3);
}

/// R-159: a request has one host: that of its target, where it has one (an absolute target, HTTP/2). Beside another `Host`
/// it is refused, whichever of the two is ours.
#[tokio::test(start_paused = true)]
async fn r_159_a_target_and_a_host_are_one_name() {
    let (service, _seen) = service(Limits::default());
    let endpoint = Endpoint::new(service, Anonymous::new());
    let body = call(1, "echo", r#"{"text":"hi"}"#);
    for (target, host, status) in [
        ("http://localhost/mcp", Some("localhost"), 200),
        ("http://LocalHost:80/mcp", Some("localhost:80"), 200),
        ("http://localhost/mcp", None, 200),
        ("http://evil.example/mcp", None, 403),
        ("http://evil.example/mcp", Some("localhost"), 403),
        ("http://localhost/mcp", Some("evil.example"), 403),
        ("http://localhost@evil.example/mcp", Some("localhost"), 403),
    ] {
        let mut request = post(&body, Pieces::whole(&body));
        *request.uri_mut() = target.parse().unwrap();
        request.headers_mut().remove("host");
        if let Some(host) = host {
            request.headers_mut().insert("host", host.parse().unwrap());
        }
        assert_eq!(endpoint.call(request).await.status(), status, "{target} {host:?}");
    }
}

/// A response to HEAD brings nothing, whoever serves: over HTTP/2 content would break the stream.
#[tokio::test(start_paused = true)]
async fn the_response_to_head_has_no_content() {
    let endpoint = Endpoint::new(service(Limits::default()).0, Anonymous::new());
    for (method, empty) in [("HEAD", true), ("PUT", false)] {
        let mut request = post(&call(1, "echo", "{}"), Pieces::whole(""));
        *request.method_mut() = method.parse().unwrap();
        let response = endpoint.call(request).await;
        assert_eq!(response.status(), 405);
        let said = response.headers().get("content-length").map(|length| length.to_str().unwrap().to_owned());
        let body = text(response).await;
        assert_eq!(body.is_empty(), empty, "{method}: {body}");
        assert!(!empty || said.is_some_and(|length| length != "0"));
    }
}
