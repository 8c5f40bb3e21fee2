//! What an adapter relies on: wakers, times, and that nothing is kept for ever.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use futures::channel::oneshot;
use mrtr_core::{
    Entropy, Timestamp,
    catalog::Change,
    handler::{Ctx, Service, ToolResult},
    http::ReplyClass,
    legacy::{Config, Handled, Session, Stream},
    seal::Principal,
};
use mrtr_tests::{
    legacy::{Client, drain, parse, text},
    world::START,
};
use serde_json::{Value, json};

use super::{NEWEST, all, client, n, number, service, shown};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Count {
    /// Whether it was woken since it was last asked.
    fn woken(&self) -> bool {
        self.0.swap(0, Ordering::Relaxed) > 0
    }
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(START + millis)
}

fn http_session(service: Service) -> Session {
    let mut session =
        Session::on_http(service, Config::default(), Principal::Anonymous, Entropy::new([3; 32]));
    let params = json!({"protocolVersion": NEWEST, "capabilities": all()});
    say(&mut session, json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params}));
    say(&mut session, json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    session
}

fn say(session: &mut Session, message: Value) -> Handled {
    session.handle(message.to_string().as_bytes(), at(0))
}

fn start(session: &mut Session, id: i64) -> Stream {
    let params = json!({"name": "t", "_meta": {"progressToken": id}});
    match say(session, json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})) {
        Handled::Running(id) => Stream::Request(id),
        other => panic!("{other:?}"),
    }
}

/// Polls until nothing is left to send; what was sent.
fn rest(session: &mut Session, waker: &Waker) -> Vec<Value> {
    let mut said = Vec::new();
    while let Poll::Ready(transmit) = session.poll(&mut Context::from_waker(waker), at(0)) {
        said.push(if transmit.bytes.is_empty() { Value::Null } else { parse(&transmit.bytes) });
    }
    said
}

/// Whatever gives a session something to send wakes whoever drives it: a call, an answer, a cancellation, I/O of a handler,
/// a change, a ping, a stream that is lost (a new time), opened or taken up, the end.
#[test]
fn everything_wakes_the_driver() {
    let (done, wait) = oneshot::channel::<()>();
    let wait = Arc::new(Mutex::new(Some(wait)));
    let changing = service(move |ctx: Ctx| {
        let wait = wait.clone();
        async move {
            let answer = shown(number(&ctx, "a").await);
            let waits = wait.lock().expect("a lock").take();
            if let Some(waits) = waits {
                let _ = waits.await;
            }
            Ok(ToolResult::text(answer))
        }
    });
    let mut session = http_session(changing.announce_changes());
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    assert!(rest(&mut session, &waker).is_empty() && !count.woken());
    let first = start(&mut session, 1);
    assert!(count.woken());
    let ask = rest(&mut session, &waker).remove(0);
    session.lose(&first, at(0));
    assert!(count.woken());
    rest(&mut session, &waker);
    assert_eq!(session.resume("1-0"), Some(first));
    assert!(count.woken());
    rest(&mut session, &waker);
    say(&mut session, json!({"jsonrpc": "2.0", "id": ask["id"], "result": n(1)}));
    assert!(count.woken());
    assert!(rest(&mut session, &waker).is_empty());
    count.woken();
    done.send(()).expect("it waits");
    assert!(count.woken());
    assert_eq!(text(&rest(&mut session, &waker)[0]), "1");
    start(&mut session, 2);
    rest(&mut session, &waker);
    count.woken();
    say(
        &mut session,
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}),
    );
    assert!(count.woken());
    assert_eq!(rest(&mut session, &waker).len(), 2);
    session.open_standalone();
    assert!(count.woken());
    rest(&mut session, &waker);
    assert!(session.changed(&Change::Tools) && count.woken());
    assert_eq!(rest(&mut session, &waker).len(), 1);
    assert!(session.ping() && count.woken());
    rest(&mut session, &waker);
    session.end();
    assert!(count.woken() && session.is_over());
}

/// Each POST may drive its own call: `poll_stream` runs that one, wakes for that one, and ends with its stream.
#[test]
fn one_stream_can_be_driven_alone() {
    let mut session =
        http_session(service(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "a").await))) }));
    let streams = [start(&mut session, 1), start(&mut session, 2)];
    let counts = [Arc::new(Count::default()), Arc::new(Count::default())];
    let wakers = counts.clone().map(Waker::from);
    let poll = |session: &mut Session, which: usize| {
        session.poll_stream(&streams[which], &mut Context::from_waker(&wakers[which]), at(0))
    };
    let mut asks = Vec::new();
    for which in [0, 1] {
        let Poll::Ready(Some(ask)) = poll(&mut session, which) else { panic!("it asks") };
        assert_eq!(ask.stream, streams[which]);
        asks.push(parse(&ask.bytes));
        assert!(poll(&mut session, which).is_pending());
    }
    say(&mut session, json!({"jsonrpc": "2.0", "id": asks[1]["id"], "result": n(2)}));
    assert!(!counts[0].woken() && counts[1].woken());
    let Poll::Ready(Some(done)) = poll(&mut session, 1) else { panic!("it is done") };
    assert!(done.last && text(&parse(&done.bytes)) == "2");
    assert!(matches!(poll(&mut session, 1), Poll::Ready(None)));
    assert!(poll(&mut session, 0).is_pending());
}

/// R-228, R-239: a call that is cancelled before the client was ready has asked nothing, so there is nothing to take back.
#[test]
fn what_was_never_asked_is_not_cancelled_r239() {
    let mut client =
        Client::silent(service(
            |ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "a").await))) },
        ));
    client.initialize(NEWEST, all());
    let call = client.call();
    assert!(client.drain().is_empty());
    client.notify("notifications/cancelled", json!({"requestId": call}));
    client.initialized();
    assert!(client.drain().is_empty());
}

/// What comes after the end of a session meets nobody.
#[test]
fn nothing_runs_after_the_end() {
    let mut client = client(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "a").await))) });
    client.call();
    let ask = client.only();
    client.session.end();
    assert!(client.session.is_over());
    client.answer(&ask, n(1));
    let call = br#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"t"}}"#;
    let Handled::Reply { class, .. } = client.session.handle(call, client.now) else { panic!("it runs") };
    assert_eq!(class, ReplyClass::UnknownSession);
    assert!(client.drain().is_empty() && !client.session.ping() && client.session.wake_at().is_none());
}

/// A cancelled call whose stream is lost leaves nothing behind; its id is free again.
#[test]
fn a_cancelled_lost_call_is_forgotten() {
    let mut session =
        http_session(service(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "a").await))) }));
    for _ in 0..100 {
        let stream = start(&mut session, 1);
        drain(&mut session, at(0));
        session.lose(&stream, at(0));
        say(
            &mut session,
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        );
        assert!(drain(&mut session, at(0)).is_empty());
        assert_eq!(session.wake_at(), None);
    }
}

/// Streams that are kept to be taken up again are as many as calls may run, the latest; and calls that nobody lets speak
/// count as running.
#[test]
fn few_streams_are_kept() {
    let mut session = http_session(service(|ctx: Ctx| async move {
        ctx.progress(1.0, None, None);
        Ok(ToolResult::text("done"))
    }));
    for id in 1..=40 {
        start(&mut session, id);
        assert_eq!(drain(&mut session, at(0)).len(), 2);
    }
    let kept: Vec<u64> = (1..=40).filter(|stream| session.resume(&format!("{stream}-0")).is_some()).collect();
    assert_eq!(kept.len(), 17, "sixteen, and the one that ended last: {kept:?}");
    assert_eq!(kept.last(), Some(&40));
    // All those were taken up, and nobody reads them.
    let params = json!({"name": "t"});
    let refused =
        say(&mut session, json!({"jsonrpc": "2.0", "id": 50, "method": "tools/call", "params": params}));
    let Handled::Reply { bytes, .. } = refused else { panic!("it runs") };
    assert_eq!(parse(&bytes)["error"]["code"], -32603);
    assert_eq!(drain(&mut session, at(0)).len(), 17);
    start(&mut session, 51);
    drain(&mut session, at(0));
    let patience = Config::default().resume;
    assert!(drain(&mut session, at(0).saturating_add(patience)).is_empty());
    assert!((1..=60).all(|stream| session.resume(&format!("{stream}-0")).is_none()));
    assert_eq!(patience, Duration::from_secs(30));
}

/// A change that still waits to be told is not told twice.
#[test]
fn changes_do_not_pile_up() {
    let quiet = service(|_: Ctx| async { Ok(ToolResult::text("")) }).announce_changes();
    let mut client = Client::new(quiet, NEWEST, all());
    for _ in 0..1_000 {
        assert!(client.session.changed(&Change::Tools) && client.session.changed(&Change::Prompts));
    }
    assert_eq!(client.drain().len(), 2);
}

/// A call that never stops talking does not keep the others from being heard, nor from running.
#[test]
fn every_call_gets_its_turn() {
    let mut client = client(|ctx: Ctx| async move {
        if ctx.wants_progress() {
            for step in 1u32.. {
                ctx.progress(f64::from(step), None, None);
                give_way(1).await;
            }
        }
        give_way(1_000).await;
        Ok(ToolResult::text("done"))
    });
    let params = json!({"name": "t", "_meta": {"progressToken": 1}});
    client.start("tools/call", params.clone());
    let quiet = client.call();
    client.start("tools/call", params);
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut heard = 0;
    loop {
        match client.session.poll(&mut Context::from_waker(&waker), client.now) {
            Poll::Ready(transmit) => {
                heard += 1;
                if parse(&transmit.bytes)["id"] == quiet {
                    break;
                }
            }
            Poll::Pending => assert!(count.woken(), "it rests before all is said"),
        }
        assert!(heard < 100, "only the loud are heard");
    }
}

/// Lets others run this often.
async fn give_way(mut turns: u32) {
    futures::future::poll_fn(|cx| {
        if turns == 0 {
            return Poll::Ready(());
        }
        turns -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// R-228, R-239: a question that ended while it waited for the client to be ready is not asked any more.
#[test]
fn an_ended_question_is_not_asked_later() {
    let asking = service(|ctx: Ctx| async move {
        let answer = shown(number(&ctx, "a").await);
        ctx.progress(1.0, None, Some(&answer));
        futures::future::pending::<()>().await;
        Ok(ToolResult::text(answer))
    });
    let mut session =
        Session::on_http(asking, Config::default(), Principal::Anonymous, Entropy::new([3; 32]));
    let params = json!({"protocolVersion": NEWEST, "capabilities": all()});
    say(&mut session, json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params}));
    let stream = start(&mut session, 1);
    assert!(drain(&mut session, at(0)).is_empty());
    session.lose(&stream, at(0));
    assert!(drain(&mut session, at(30_000)).is_empty());
    say(&mut session, json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(session.resume("1-0"), Some(stream));
    let said = drain(&mut session, at(30_000));
    assert_eq!((said.len(), &parse(&said[0].bytes)["params"]["message"]), (1, &json!("Ended")));
}

/// R-242: a stream that is taken up after its call has ended wakes the driver: there is something to send.
#[test]
fn taking_up_what_has_ended_wakes_the_driver_r242() {
    let mut session =
        http_session(service(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "a").await))) }));
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let stream = start(&mut session, 1);
    let ask = rest(&mut session, &waker).remove(0);
    session.lose(&stream, at(0));
    say(&mut session, json!({"jsonrpc": "2.0", "id": ask["id"], "result": n(1)}));
    assert!(rest(&mut session, &waker).is_empty());
    count.woken();
    assert_eq!(session.resume("1-0"), Some(stream));
    assert!(count.woken());
    assert_eq!(text(&rest(&mut session, &waker)[0]), "1");
}
