//! A server on a pair of pipes, under virtual time.

use mrtr_core::{Limits, catalog::Change, handler::Service};
use mrtr_tokio::{
    server::Identity,
    stdio::{Options, serve},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    sync::oneshot,
    task::JoinHandle,
};

use crate::support::{Seen, call, call_with_progress, request, service};

pub(crate) struct Peer {
    input: Option<WriteHalf<DuplexStream>>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    pub(crate) served: JoinHandle<std::io::Result<()>>,
    stop: Option<oneshot::Sender<()>>,
}

pub(crate) fn start(limits: Limits, options: Options) -> (Peer, Seen) {
    let (service, seen) = service(limits);
    (serve_on_a_pipe(service, options), seen)
}

pub(crate) fn serve_on_a_pipe(service: Service, options: Options) -> Peer {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (input, output) = tokio::io::split(theirs);
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(serve(service, Identity::Anonymous, input, output, options, async {
        let _ = stopped.await;
    }));
    let (output, input) = tokio::io::split(ours);
    Peer { input: Some(input), output: BufReader::new(output).lines(), served, stop: Some(stop) }
}

impl Peer {
    pub(crate) async fn send(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).await.unwrap();
        input.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn line(&mut self) -> String {
        self.output.next_line().await.unwrap().unwrap()
    }

    pub(crate) async fn close(&mut self) {
        self.input.take().unwrap().shutdown().await.unwrap();
    }
}

fn cancel(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}

#[tokio::test(start_paused = true)]
async fn requests_run_side_by_side_r_183() {
    let (mut peer, mut seen) = start(Limits::default(), Options::default());
    peer.send(&call(1, "wait", "{}")).await;
    assert_eq!(seen.next().await, "waiting");
    peer.send(&call(2, "echo", r#"{"text":"hi"}"#)).await;
    assert!(peer.line().await.contains("\"id\":2"));
    seen.go.notify_one();
    assert!(peer.line().await.contains("\"id\":1"));
    peer.close().await;
    peer.served.await.unwrap().unwrap();
    assert_eq!(peer.output.next_line().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_stops_and_says_nothing_more_r_188_r_191() {
    let (mut peer, mut seen) = start(Limits::default(), Options::default());
    peer.send(&call_with_progress(1, "wait")).await;
    assert!(peer.line().await.contains("notifications/progress"));
    assert_eq!(seen.next().await, "waiting");
    // Of somebody unknown first: ignored.
    peer.send(&cancel(9)).await;
    peer.send(&cancel(1)).await;
    assert_eq!(seen.next().await, "dropped");
    peer.send(&call(2, "echo", r#"{"text":"hi"}"#)).await;
    assert!(peer.line().await.contains("\"id\":2"));
    peer.close().await;
    assert_eq!(peer.output.next_line().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_commit_is_not_cancelled_but_its_reply_is_a12() {
    let (mut peer, mut seen) = start(Limits::default(), Options::default());
    peer.send(&call(1, "commit", "{}")).await;
    assert_eq!(seen.next().await, "committing");
    peer.send(&cancel(1)).await;
    peer.send(&call(2, "echo", r#"{"text":"hi"}"#)).await;
    assert!(peer.line().await.contains("\"id\":2"));
    seen.go.notify_one();
    assert_eq!(seen.next().await, "committed");
    peer.close().await;
    assert_eq!(peer.output.next_line().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn an_id_is_not_taken_twice_at_once_r_002() {
    let (mut peer, mut seen) = start(Limits::default(), Options::default());
    peer.send(&call(1, "wait", "{}")).await;
    assert_eq!(seen.next().await, "waiting");
    peer.send(&call(1, "echo", r#"{"text":"hi"}"#)).await;
    let refused = peer.line().await;
    assert!(refused.contains("-32600") && refused.contains("\"id\":1"), "{refused}");
    seen.go.notify_one();
    assert!(peer.line().await.contains("went on"));
    // Once it is over, the id is free.
    assert_eq!(seen.next().await, "dropped");
    peer.send(&call(1, "echo", r#"{"text":"hi"}"#)).await;
    assert!(peer.line().await.contains("hi"));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_message_costs_one_line() {
    let mut limits = Limits::default();
    limits.message_bytes = 1_000;
    let mut options = Options::default();
    options.requests = 1;
    let (mut peer, mut seen) = start(limits, options);
    peer.send("what?").await;
    assert!(peer.line().await.contains("-32700"));
    peer.send(&"x".repeat(1_001)).await;
    assert!(peer.line().await.contains("Limits::message_bytes"));
    peer.send(&call(1, "wait", "{}")).await;
    assert_eq!(seen.next().await, "waiting");
    peer.send(&call(2, "echo", r#"{"text":"hi"}"#)).await;
    let refused = peer.line().await;
    assert!(refused.contains("\"id\":2") && refused.contains("too many requests"), "{refused}");
}

/// G-38: many messages that are each within their bound do not add up to more than all may take.
#[tokio::test(start_paused = true)]
async fn lines_share_a_bound_of_bytes() {
    let mut limits = Limits::default();
    limits.message_bytes = 800;
    let mut options = Options::default();
    options.request_bytes = 1_000;
    let (mut peer, mut seen) = start(limits, options);
    let long = |id, bytes: usize| format!("{:bytes$}", call(id, "echo", r#"{"text":"hi"}"#));
    let bytes = 400;
    peer.send(&format!("{:bytes$}", call(1, "wait", "{}"))).await;
    assert_eq!(seen.next().await, "waiting");
    peer.send(&long(2, 600)).await;
    assert!(long(2, 0).len() <= 600 && peer.line().await.contains("hi"));
    peer.send(&long(3, 601)).await;
    let refused = peer.line().await;
    assert!(refused.contains("\"id\":3") && refused.contains("too many bytes"), "{refused}");
    seen.go.notify_one();
    assert!(peer.line().await.contains("went on"));
    peer.send(&long(4, 800)).await;
    assert!(peer.line().await.contains("hi"));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_input_lets_requests_finish_for_a_while() {
    let (mut peer, mut seen) = start(Limits::default(), Options::default());
    peer.send(&call(1, "wait", "{}")).await;
    peer.send(&call(2, "wait", "{}")).await;
    assert_eq!((seen.next().await, seen.next().await), ("waiting", "waiting"));
    let ended = tokio::time::Instant::now();
    // A last line without its newline counts.
    peer.input.as_mut().unwrap().write_all(call(3, "echo", r#"{"text":"last"}"#).as_bytes()).await.unwrap();
    peer.close().await;
    assert!(peer.line().await.contains("last"));
    seen.go.notify_one();
    assert!(peer.line().await.contains("went on"));
    // The other one is cut off.
    assert_eq!(peer.output.next_line().await.unwrap(), None);
    assert_eq!(ended.elapsed(), Options::default().grace);
    peer.served.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn subscriptions_are_served_cancelled_and_closed_r_205() {
    let options = Options::default();
    let changes = options.changes.clone();
    let (mut peer, _seen) = start(Limits::default(), options);
    for id in [1, 2] {
        let wanted = "\"notifications\":{\"toolsListChanged\":true},";
        peer.send(&request(id, "subscriptions/listen", wanted, "")).await;
        assert!(peer.line().await.contains("acknowledged"));
    }
    changes.notify(Change::Tools);
    let mut heard = [peer.line().await, peer.line().await];
    heard.sort();
    assert!(heard.iter().all(|line| line.contains("notifications/tools/list_changed")), "{heard:?}");
    peer.send(&cancel(1)).await;
    peer.send(&call(3, "echo", r#"{"text":"hi"}"#)).await;
    assert!(peer.line().await.contains("\"id\":3"));
    changes.notify(Change::Tools);
    assert!(peer.line().await.contains("list_changed"));
    drop(peer.stop.take());
    let closing = peer.line().await;
    assert!(closing.contains("\"id\":2") && closing.contains("\"result\""), "{closing}");
    assert_eq!(peer.output.next_line().await.unwrap(), None);
    peer.served.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_falls_behind_is_closed_in_order() {
    let options = Options::default();
    let changes = options.changes.clone();
    let (mut peer, _seen) = start(Limits::default(), options);
    peer.send(&request(1, "subscriptions/listen", "\"notifications\":{\"toolsListChanged\":true},", ""))
        .await;
    assert!(peer.line().await.contains("acknowledged"));
    for _ in 0..2_000 {
        changes.notify(Change::Tools);
    }
    let line = peer.line().await;
    assert!(line.contains("\"id\":1") && line.contains("\"result\""), "{line}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_is_gone_ends_the_server() {
    let (mut peer, mut seen) = start(Limits::default(), Options::default());
    peer.send(&call(1, "wait", "{}")).await;
    assert_eq!(seen.next().await, "waiting");
    let served = peer.served;
    drop((peer.input, peer.output));
    assert_eq!(seen.next().await, "dropped");
    served.await.unwrap().unwrap();
}
