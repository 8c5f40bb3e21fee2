//! Sessions at legacy upstreams over HTTP that take nothing, or let go of their streams at once. Their pauses are real:
//! what is bounded is beneath the sockets, which know of no virtual time.

use std::net::SocketAddr;

use tokio::{sync::mpsc, time::Instant};

use super::*;

/// What came there, and when.
type Seen = mpsc::UnboundedReceiver<(String, Instant)>;

/// A server of 2025-11-25. It begins sessions and answers calls; `accepts` says whether it accepts notifications, and its
/// event stream is `events` and ends.
async fn server(accepts: bool, events: &'static str) -> (SocketAddr, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, seen) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                let Some((method, body)) = request(&mut stream).await else { return };
                let said = body["method"].as_str().unwrap_or(&method).to_owned();
                let _ = sender.send((said.clone(), Instant::now()));
                let json = |result: Value| {
                    let body = json!({"jsonrpc": "2.0", "id": body["id"], "result": result}).to_string();
                    ("200 OK", "Content-Type: application/json\r\nMcp-Session-Id: s\r\n", body)
                };
                let (status, more, body) = match &*said {
                    "initialize" => {
                        json(json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                        "serverInfo": {"name": "s", "version": "1"}}))
                    }
                    "tools/call" => json(json!({"content": []})),
                    "GET" => ("200 OK", "Content-Type: text/event-stream\r\n", events.into()),
                    "DELETE" => ("200 OK", "", String::new()),
                    _ if accepts => ("202 Accepted", "", String::new()),
                    _ => std::future::pending().await,
                };
                let length = body.len();
                let reply = format!(
                    "HTTP/1.1 {status}\r\nConnection: close\r\n{more}Content-Length: {length}\r\n\r\n{body}"
                );
                let _ = stream.write_all(reply.as_bytes()).await;
            });
        }
    });
    (address, seen)
}

/// The method of a request and its body.
async fn request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if bytes.len() >= end + 4 + length {
                let method = head.split(' ').next().unwrap().to_ascii_uppercase();
                return Some((method, serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default()));
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// A call by a host that cannot be asked anything, of about this many bytes.
fn mute(id: u32, bytes: usize) -> String {
    call(id, "t", &json!({"x": "x".repeat(bytes)}).to_string()).replace(r#"{"elicitation":{}}"#, "{}")
}

async fn fronted(address: SocketAddr, limit: usize) -> Fronted {
    let reach = Reach::url(&format!("http://{address}/mcp"), &client::Options::default()).unwrap();
    let mut config = config(reach.transport(), Era::Legacy);
    config.limits.message_bytes = limit;
    let mut options = Options::default();
    (options.grace, options.queued_bytes) = (Duration::from_millis(200), 0);
    front(Bridge::start(config, vec![reach], options).unwrap(), Anonymous::new()).await
}

/// What waits for a server that does not accept what it is told is bounded (`Options::queued_bytes`): over it the session is
/// given up at once, with all calls in it, and not only when the server has had its ten seconds.
#[tokio::test]
async fn what_waits_for_a_session_that_takes_nothing_is_bounded() {
    let (address, mut seen) = server(false, "").await;
    let fronted = fronted(address, 16 << 10).await;
    let [one, two, three] = [1, 2, 3].map(|id| mute(id, 7 << 10));
    let more = async {
        // Once it holds this back, nothing more goes out.
        while seen.recv().await.unwrap().0 != "notifications/initialized" {}
        tokio::join!(fronted.modern("", &two), fronted.modern("", &three))
    };
    let all = async { tokio::join!(fronted.modern("", &one), more) };
    let (first, (second, third)) = tokio::time::timeout(Duration::from_secs(8), all).await.expect("given up");
    for (status, reply) in [first, second, third] {
        assert_eq!((status, &reply["error"]["code"]), (200, &json!(-32603)), "{reply}");
        assert_eq!(reply["error"]["data"], json!({"kind": "broken"}), "{reply}");
    }
    while let Ok((what, _)) = seen.try_recv() {
        assert_eq!(what, "DELETE", "nothing was said after what was not accepted");
    }
    fronted.end().await;
}

/// R-242: a server that ends its stream and says `retry: 0` is not asked again without a pause.
#[tokio::test]
async fn a_stream_that_ends_at_once_is_taken_up_with_pauses_r242() {
    let (address, mut seen) = server(true, "retry: 0\n\n").await;
    let fronted = fronted(address, 1 << 20).await;
    assert_eq!(fronted.modern("", &mute(1, 1)).await.1["result"]["content"], json!([]));
    let mut before: Option<Instant> = None;
    let mut taken = 0;
    // The default would be a second.
    while taken < 4 {
        let next = tokio::time::timeout(Duration::from_millis(900), seen.recv()).await;
        let (what, at) = next.expect("taken up again").unwrap();
        if what != "GET" {
            continue;
        }
        if let Some(before) = before.replace(at) {
            assert!(at - before >= Duration::from_millis(100), "{:?}", at - before);
            taken += 1;
        }
    }
    fronted.end().await;
}
