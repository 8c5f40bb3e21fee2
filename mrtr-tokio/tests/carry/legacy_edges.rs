//! Sessions over loopback when things cross: streams taken up while they are read, ends in the middle of calls, answers
//! and cancellations that meet, more calls than may run.

use std::{sync::Arc, time::Duration};

use mrtr_tokio::server::{Bounds, LegacyConfig};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    legacy::{CALL, Client, HELLO, NAME, SURE, event},
    support::{Raw, Seen},
};

const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;

async fn client() -> (Client, Seen) {
    let (client, seen, _) = Client::begin("2025-11-25", LegacyConfig::default(), Bounds::default()).await;
    (client, seen)
}

fn call(id: u32, tool: &str) -> String {
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {},
        "_meta": {"progressToken": id}}});
    call.to_string()
}

async fn take_up(client: &Client, event: &str) -> Raw {
    client.send("GET", &format!("Last-Event-ID: {event}\r\n"), "").await
}

/// R-242, R-231: a stream that is taken up while the POST still reads it goes to the newcomer alone, from the event it
/// names; the former response ends. The question keeps its id, and its answer meets it once.
#[tokio::test]
async fn a_stream_is_taken_over_in_mid_question_r_242() {
    let (client, _seen) = client().await;
    let (mut post, question) = client.ask().await;
    // Nothing came after the question; so its own id brings nothing, and an earlier one brings it again.
    let (stream, number) = question.id.split_once('-').unwrap();
    assert_eq!(number, "0");
    let mut second = take_up(&client, &question.id).await;
    post.until("\r\n0\r\n\r\n").await;
    let mut third = take_up(&client, &question.id).await;
    second.until("\r\n0\r\n\r\n").await;
    assert_eq!(client.post(NAME).await.status, 202);
    let next = event(&mut third).await;
    assert_eq!(next.id, format!("{stream}-1"));
    assert!(next.data.contains(r#""id":2,"method":"elicitation/create""#));
    let mut fourth = take_up(&client, &question.id).await;
    assert_eq!(event(&mut fourth).await.data, next.data);
    // The same answer twice at once.
    let (one, other) = tokio::join!(client.post(SURE), client.post(SURE));
    assert_eq!((one.status, other.status), (202, 202));
    assert_eq!(event(&mut fourth).await.data, HELLO);
    fourth.until("\r\n0\r\n\r\n").await;
}

/// R-242: many take up one stream at the same time; one of them has it to its end, and no message is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_has_the_stream_r_242() {
    for _ in 0..8 {
        let (client, _seen) = client().await;
        let (post, question) = client.ask().await;
        drop(post);
        let client = Arc::new(client);
        let mut readers = JoinSet::new();
        let begun = Arc::new(tokio::sync::Semaphore::new(0));
        for _ in 0..6 {
            let (client, id, begun) = (Arc::clone(&client), question.id.clone(), Arc::clone(&begun));
            readers.spawn(async move {
                let mut stream = take_up(&client, &id).await;
                stream.until("\r\n\r\n").await;
                begun.add_permits(1);
                stream.rest_of_chunks().await
            });
        }
        drop(begun.acquire_many(6).await.unwrap());
        assert_eq!(client.post(NAME).await.status, 202);
        // Until the second question is out, which is when its answer is taken.
        let last = tokio::time::timeout(Duration::from_secs(20), async {
            let mut last = take_up(&client, &question.id).await;
            // One that had it before may have read it already; it is sent again all the same.
            assert!(event(&mut last).await.data.contains(r#""id":2"#));
            assert_eq!(client.post(SURE).await.status, 202);
            event(&mut last).await.data
        });
        assert_eq!(last.await.unwrap(), HELLO);
        // The others' responses have all ended.
        while let Some(read) = readers.join_next().await {
            let read = read.unwrap();
            assert!(!read.contains("Hello, Ada!"), "{read}");
        }
    }
}

/// A12, R-241: DELETE in the middle of a commit: the stream ends, the commit goes on, the session is gone.
#[tokio::test]
async fn a_commit_outlives_its_session_a12() {
    let (client, mut seen) = client().await;
    let mut stream = client.send("POST", "", &call(1, "commit")).await;
    assert_eq!(seen.next().await, "committing");
    assert_eq!(client.send("DELETE", "", "").await.response().await.status, 202);
    let ended = tokio::time::timeout(Duration::from_secs(5), stream.response()).await.unwrap();
    assert_eq!(ended.status, 404, "{}", ended.head);
    assert_eq!(client.post(&call(2, "echo")).await.status, 404);
    seen.go.notify_one();
    assert_eq!(seen.next().await, "committed");
}

/// R-188, R-239: a call that is cancelled when its answer has just come, and one whose second question is out: nothing
/// more is said, whatever comes late.
#[tokio::test]
async fn a_cancellation_crosses_an_answer_r_188() {
    let (client, _seen) = client().await;
    let (mut stream, _) = client.ask().await;
    assert_eq!(client.post(NAME).await.status, 202);
    assert!(event(&mut stream).await.data.contains(r#""id":2,"method":"elicitation/create""#));
    assert_eq!(client.post(CANCEL).await.status, 202);
    // Its question is taken back on its own stream, which then ends without a response.
    let rest = stream.until("\r\n0\r\n\r\n").await;
    assert!(rest.contains("notifications/cancelled") && rest.contains("\"requestId\":2"), "{rest}");
    assert!(!rest.contains("\"result\""), "{rest}");
    for late in [SURE, NAME, CANCEL] {
        assert_eq!(client.post(late).await.status, 202);
    }
    // The id is free again, and the session goes on.
    let mut stream = client.send("POST", "", CALL).await;
    let again = event(&mut stream).await;
    let asked: Value = serde_json::from_str(&again.data).unwrap();
    assert_eq!(asked["id"], 3);
    assert_eq!(client.post(&NAME.replace("\"id\":1", "\"id\":3")).await.status, 202);
    assert!(event(&mut stream).await.data.contains(r#""id":4"#));
}

/// Design §7: sixteen calls run in a session, the seventeenth is refused by name, and whatever asks nothing is served all
/// the while; when one has ended there is room.
#[tokio::test]
async fn the_seventeenth_call_is_refused() {
    let (client, mut seen) = client().await;
    let mut streams = Vec::new();
    for id in 1..=16 {
        let mut stream = client.send("POST", "", &call(id, "wait")).await;
        assert!(event(&mut stream).await.data.contains("notifications/progress"));
        assert_eq!(seen.next().await, "waiting");
        streams.push(stream);
    }
    let refused = client.post(&call(17, "wait")).await;
    assert_eq!(refused.status, 200);
    assert!(
        refused.body.contains("16 calls at a time") && refused.body.contains("\"id\":17"),
        "{}",
        refused.body
    );
    let ping = client.post(r#"{"jsonrpc":"2.0","id":18,"method":"ping"}"#).await;
    assert!(ping.body.contains(r#""id":18,"result":{}"#), "{}", ping.body);
    seen.go.notify_one();
    assert_eq!(seen.next().await, "dropped");
    let mut stream = client.send("POST", "", &call(17, "wait")).await;
    // The one that has ended frees its place once its response was taken.
    let mut data = event(&mut stream).await.data;
    if data.contains("16 calls at a time") {
        for stream in &mut streams {
            if tokio::time::timeout(Duration::from_millis(50), event(stream)).await.is_ok() {
                break;
            }
        }
        stream = client.send("POST", "", &call(17, "wait")).await;
        data = event(&mut stream).await.data;
    }
    assert!(data.contains("notifications/progress"), "{data}");
}

/// R-158: a batch is refused whole, of whatever it is made, and runs nothing of itself; the session goes on.
#[tokio::test]
async fn batches_are_refused_r_158() {
    for version in ["2025-11-25", "2025-03-26"] {
        let (client, _seen, _) = Client::begin(version, LegacyConfig::default(), Bounds::default()).await;
        for batch in [format!("[{CALL}]"), format!("[{NAME},{SURE}]"), format!("[{CANCEL}]"), "[]".into()] {
            let refused = client.post(&batch).await;
            assert_eq!(refused.status, 400, "{batch}");
            assert!(refused.body.contains("-32600"), "{}", refused.body);
        }
        let echo = call(5, "echo").replace("{},", "{\"text\":\"hi\"},");
        assert!(client.post(&echo).await.body.contains("\"hi\""));
    }
}

/// R-232: comments come on a stream that was taken up, and on the standalone one, as on the POST's own.
#[tokio::test]
async fn comments_on_every_stream_r_232() {
    let mut bounds = Bounds::default();
    bounds.keep_alive = Duration::from_millis(20);
    let (client, _seen, _) = Client::begin("2025-11-25", LegacyConfig::default(), bounds).await;
    let (stream, question) = client.ask().await;
    drop(stream);
    for mut stream in [take_up(&client, &question.id).await, client.send("GET", "", "").await] {
        stream.until(":\n\n").await;
        stream.until(":\n\n").await;
    }
}
