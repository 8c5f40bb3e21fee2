//! Streams that a legacy host loses and takes up again, over real connections.

use super::*;

/// A response that is read event by event.
struct Events {
    stream: TcpStream,
    held: String,
}

impl Events {
    /// Reads up to and including this text.
    async fn until(&mut self, wanted: &str) -> String {
        loop {
            if let Some(at) = self.held.find(wanted) {
                let rest = self.held.split_off(at + wanted.len());
                return std::mem::replace(&mut self.held, rest);
            }
            let mut bytes = [0; 4096];
            let read = self.stream.read(&mut bytes).await.unwrap();
            assert!(read > 0, "ended before {wanted:?}: {}", self.held);
            self.held.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        }
    }

    /// The next event with a message: its id and the message.
    async fn message(&mut self) -> (String, Value) {
        let before = self.until("event: message\ndata: ").await;
        let id = before.rsplit("id: ").next().unwrap().split('\n').next().unwrap().to_owned();
        let data = self.until("\n\n").await;
        (id, serde_json::from_str(data.trim()).unwrap())
    }

    async fn rest(mut self) -> String {
        self.stream.read_to_string(&mut self.held).await.unwrap();
        self.held
    }
}

/// R-242, R-239: a host that has lost the stream of its call takes it up where it was: the question that was on its way
/// comes, nothing comes twice, and the response ends it.
#[tokio::test]
async fn a_lost_stream_is_taken_up_again() {
    let fronted = front(bridge(example(), Era::Modern), Anonymous::new()).await;
    let (_, head, _) = fronted.ask("POST", "/mcp", LEGACY, &initialize()).await;
    let id = head.split("mcp-session-id: ").nth(1).unwrap().split("\r\n").next().unwrap();
    let session = format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
    let post = format!("{LEGACY}{session}");
    fronted.ask("POST", "/mcp", &post, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let events = async |method: &str, more: &str, body: &str| Events {
        stream: fronted.send(method, "/mcp", more, body).await,
        held: String::new(),
    };
    let resume = async |last: &str| {
        let more = format!("Accept: text/event-stream\r\n{session}Last-Event-ID: {last}\r\n");
        let mut taken = events("GET", &more, "").await;
        let head = taken.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        taken
    };
    let answer = async |asked: &Value, content: Value| {
        let result = json!({"action": "accept", "content": content});
        let body = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string();
        assert_eq!(fronted.ask("POST", "/mcp", &post, &body).await.0, 202);
    };
    // A stream of its own, which begins with an event that it could be taken up from.
    let mut other = events("GET", &format!("Accept: text/event-stream\r\n{session}"), "").await;
    let opened = other.until("data:\n\n").await;
    assert!(opened.contains("id: ") && opened.contains("-0\n"), "{opened}");

    let plan = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"plan","arguments":{"city":"Oslo"}}}"#;
    let mut first = events("POST", &post, plan).await;
    let (one, days) = first.message().await;
    assert_eq!(days["method"], "elicitation/create");
    drop(first);
    // Nothing was missed yet. What comes now comes here.
    let mut second = resume(&one).await;
    answer(&days, json!({"days": 2})).await;
    let (two, pace) = second.message().await;
    assert_ne!(one, two);
    drop(second);
    // It comes again to whoever has not seen it, once, and the one who was there is cut off.
    let mut third = resume(&one).await;
    assert_eq!(third.message().await, (two.clone(), pace.clone()));
    let mut fourth = resume(&one).await;
    assert_eq!(fourth.message().await, (two.clone(), pace.clone()));
    assert!(!third.rest().await.contains("event: message"));
    drop(fourth);
    // The response comes while nobody is there.
    answer(&pace, json!({"pace": "slow"})).await;
    while fronted.bridge.counts().await.unwrap().open > 0 {}
    let mut fifth = resume(&two).await;
    let (three, response) = fifth.message().await;
    assert_eq!(
        (&response["id"], &response["result"]["content"][0]["text"]),
        (&json!(7), &json!("Oslo, 2 days, slow"))
    );
    assert!(!fifth.rest().await.contains("event: message"), "it is the last word");
    // For whoever has seen it all it just ends.
    assert!(!resume(&three).await.rest().await.contains("event: message"));
    // Another session's, or nobody's.
    let nowhere = format!("Accept: text/event-stream\r\n{session}Last-Event-ID: 99-1\r\n");
    assert_eq!(fronted.ask("GET", "/mcp", &nowhere, "").await.0, 400);
    drop(other);
    fronted.end().await;
}
