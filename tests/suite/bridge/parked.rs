//! Modern host, legacy upstream: the life of a parked call (BT-7, R-249…R-256, G-45…G-47, B-13, B-18, B-28, B-71).

use std::time::Duration;

use mrtr_core::{
    bridge::{HostId, LinkId, Reason, Transport},
    http::ReplyClass,
    wire::Era,
};
use mrtr_tests::bridge::{Said, World, config, form};
use serde_json::{Value, json};

use super::{accept, all, forms, rests, text};

/// A call that runs at a legacy upstream: its host, its id there, the session, its id here.
struct Running {
    world: World,
    host: HostId,
    link: LinkId,
    call: i64,
}

fn running(transport: Transport, capabilities: &Value, params: &Value) -> Running {
    let mut world = World::single(transport, Era::Legacy);
    let (host, _) = world.call("alice", capabilities, params);
    let (link, promise, said) = world.begin("2025-11-25");
    assert_eq!(promise.get("elicitation").is_some(), capabilities.get("elicitation").is_some());
    assert_eq!(said[0].json()["method"], "notifications/initialized");
    let sent = said[1].json();
    assert_eq!(sent["method"], "tools/call");
    let call = sent["id"].as_i64().unwrap();
    Running { world, host, link, call }
}

fn wait() -> Duration {
    Duration::from_millis(10)
}

impl Running {
    /// The upstream asks, and the questions go out.
    fn ask(&mut self, ids: &[i64]) -> Value {
        for id in ids {
            self.world.up(self.link, &form(json!(id), &format!("q{id}")));
        }
        assert!(self.world.take().is_empty());
        assert_eq!(self.world.bridge.poll_timeout().unwrap().1, Reason::Coalesced);
        self.world.pass(wait());
        self.world.reply(self.host)
    }

    fn retry(&mut self, state: &Value, answers: Value) {
        self.host =
            self.world.call("alice", &forms(), &json!({"requestState": state, "inputResponses": answers})).0;
    }
}

/// BT-7: several questions share a round; answers reach the upstream; its result comes unflattened.
#[test]
fn questions_become_input_required_bt7_r248_r251_r256_g41() {
    for transport in [Transport::Pipe, Transport::Http] {
        let mut run = running(transport, &forms(), &json!({}));
        let reply = run.ask(&[70, 71]);
        let result = &reply["result"];
        assert_eq!(result["resultType"], "input_required");
        assert_eq!(
            result["_meta"]["io.modelcontextprotocol/serverInfo"],
            json!({"name": "old", "version": "2"})
        );
        assert_eq!(result["inputRequests"].as_object().unwrap().len(), 2);
        assert_eq!(
            result["inputRequests"]["u1"],
            json!({"method": "elicitation/create", "params": form(json!(0), "q70")["params"]})
        );
        assert_eq!(run.world.bridge.counts().parked, 1);
        run.retry(&result["requestState"], json!({"u1": accept("a"), "u2": {"action": "decline"}}));
        let said = run.world.take();
        let answers: Vec<Value> = said.iter().map(Said::json).collect();
        assert_eq!(
            answers,
            [
                json!({"jsonrpc": "2.0", "id": 70, "result": accept("a")}),
                json!({"jsonrpc": "2.0", "id": 71, "result": {"action": "decline"}}),
            ]
        );
        // The next round, with keys that were never used (BT-1).
        let reply = run.ask(&[72]);
        assert!(reply["result"]["inputRequests"].get("u3").is_some(), "{reply}");
        run.retry(&reply["result"]["requestState"], json!({"u3": accept("c")}));
        run.world.take();
        let result = json!({"content": [{"type": "text", "text": "a"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}], "structuredContent": {"n": 1.5}, "isError": false, "_meta": {"v": 1}});
        run.world.result(run.link, run.call, result.clone());
        let mut reply = run.world.reply(run.host);
        let got = reply["result"].as_object_mut().unwrap();
        assert_eq!(got.remove("resultType"), Some(json!("complete")));
        assert_eq!(
            got["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/serverInfo"),
            Some(json!({"name": "old", "version": "2"}))
        );
        assert_eq!(Value::Object(got.clone()), result);
        rests(&run.world);
    }
}

/// B-13: no session of a modern client is needed; B-18: nothing spins.
#[test]
fn a_parked_call_rests_b13_b18() {
    let mut run = running(Transport::Pipe, &forms(), &json!({}));
    run.ask(&[7]);
    run.world.pass(Duration::from_secs(119));
    assert!(run.world.take().is_empty());
}

/// BT-7: progress and logs while a host's request is open, and while none is; R-200: only what was asked for.
#[test]
fn progress_and_logs_bt7_g35_r196_r200() {
    let mut world = World::single(Transport::Pipe, Era::Legacy);
    let host = world.host(mrtr_core::bridge::HostKind::Post, "alice");
    let mut meta = mrtr_tests::bridge::meta(forms());
    meta["progressToken"] = json!("p");
    meta["io.modelcontextprotocol/logLevel"] = json!("warning");
    let mut request =
        json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "t", "_meta": meta}});
    world.send(host, &request);
    let (link, _, said) = world.begin("2025-11-25");
    // BT-8: the level is set before the call.
    let level = said[1].json();
    assert_eq!(
        (&level["method"], &level["params"]),
        (&json!("logging/setLevel"), &json!({"level": "warning"}))
    );
    let sent = said[2].json();
    let call = sent["id"].as_i64().unwrap();
    assert_eq!(sent["params"]["_meta"], json!({"progressToken": call}));
    world.result(link, level["id"].as_i64().unwrap(), json!({}));
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": call, "progress": 3}});
    let log = |level: &str| json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": level, "data": 1}});
    world.up(link, &progress);
    assert_eq!(world.reply(host)["params"], json!({"progressToken": "p", "progress": 3}));
    world.up(link, &log("error"));
    assert_eq!(world.reply(host)["params"], json!({"level": "error", "data": 1}));
    world.up(link, &log("info"));
    assert!(world.take().is_empty());
    world.up(link, &form(json!("x"), "m"));
    world.pass(wait());
    let state = world.reply(host)["result"]["requestState"].clone();
    world.up(link, &progress);
    world.up(link, &log("error"));
    assert!(world.take().is_empty());
    // The next round has its own token (G-35).
    let host = world.host(mrtr_core::bridge::HostKind::Post, "alice");
    request["params"]["requestState"] = state;
    request["params"]["inputResponses"] = json!({"u1": accept("a")});
    request["params"]["_meta"]["progressToken"] = json!(9);
    world.send(host, &request);
    assert_eq!(world.sent().1["result"], accept("a"));
    world.up(link, &progress);
    assert_eq!(world.reply(host)["params"]["progressToken"], 9);
}

/// BT-7: partial answers are passed on at once, the rest is asked again under its keys with a fresh state.
#[test]
fn partial_answers_bt7() {
    let mut run = running(Transport::Pipe, &forms(), &json!({}));
    let first = run.ask(&[1, 2]);
    run.retry(&first["result"]["requestState"], json!({"u2": accept("b"), "other": {}}));
    assert_eq!(run.world.sent().1, json!({"jsonrpc": "2.0", "id": 2, "result": accept("b")}));
    run.world.pass(wait());
    let second = run.world.reply(run.host);
    assert_eq!(second["result"]["inputRequests"], json!({"u1": first["result"]["inputRequests"]["u1"]}));
    assert_ne!(second["result"]["requestState"], first["result"]["requestState"]);
    assert_eq!(run.world.bridge.counts().asked_again, 1);
    run.retry(&second["result"]["requestState"], json!({"u1": accept("a")}));
    assert_eq!(run.world.sent().1["id"], 1);
}

/// BT-7, R-249, G-11: whoever may not have it gets the one sentence, and the parked call is untouched; A5: nothing is consumed by a malformed answer.
#[test]
fn what_is_refused_leaves_it_untouched_bt7() {
    let mut run = running(Transport::Pipe, &forms(), &json!({}));
    let state = run.ask(&[1])["result"]["requestState"].clone();
    for (principal, params) in [
        ("bob", json!({"requestState": state, "inputResponses": {"u1": accept("x")}})),
        (
            "alice",
            json!({"requestState": state, "inputResponses": {"u1": accept("x")}, "arguments": {"a": 2}}),
        ),
        ("alice", json!({"requestState": "AAAA", "inputResponses": {"u1": accept("x")}})),
    ] {
        let (host, _) = run.world.call(principal, &forms(), &params);
        assert_eq!(
            run.world.reply(host)["error"],
            json!({"code": -32602, "message": "Invalid or expired requestState"})
        );
    }
    run.retry(&state, json!({"u1": {"action": "perhaps"}}));
    let reply = run.world.reply(run.host);
    assert_eq!(reply["error"]["code"], -32602);
    assert!(reply["error"]["message"].as_str().unwrap().contains("inputResponses[\"u1\"].action"), "{reply}");
    run.retry(&state, json!({"u1": accept("a")}));
    assert_eq!(run.world.sent().1["result"], accept("a"));
}

/// BT-7, B4: the same retry again waits for, or gets, the same outcome; another one with that state does not.
#[test]
fn a_retry_that_comes_twice_bt7_b4() {
    let mut run = running(Transport::Http, &forms(), &json!({}));
    let state = run.ask(&[1])["result"]["requestState"].clone();
    run.retry(&state, json!({"u1": accept("a")}));
    let first = run.host;
    assert_eq!(run.world.sent().1["id"], 1);
    let mut waiting = Vec::new();
    for _ in 0..4 {
        run.retry(&state, json!({"u1": accept("a")}));
        waiting.push(run.host);
    }
    assert!(run.world.take().is_empty());
    run.retry(&state, json!({"u1": accept("a")}));
    assert_eq!(run.world.reply(run.host)["error"]["data"], json!({"retry": true}));
    run.retry(&state, json!({"u1": accept("b")}));
    assert_eq!(run.world.reply(run.host)["error"]["code"], -32602);
    run.world.result(run.link, run.call, text("done"));
    let said = run.world.take();
    let hosts: Vec<HostId> = said
        .iter()
        .map(|said| match said {
            Said::Host { host, .. } => *host,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(hosts, [vec![first], waiting].concat());
    // Design §9: delivered but lost: kept for the state's remaining life.
    run.retry(&state, json!({"u1": accept("a")}));
    assert_eq!(run.world.reply(run.host)["result"]["content"], text("done")["content"]);
    run.retry(&state, json!({"u1": accept("c")}));
    assert_eq!(run.world.reply(run.host)["error"]["code"], -32602);
    assert_eq!(run.world.bridge.counts().kept, 1);
    run.world.pass(Duration::from_secs(601));
    assert_eq!(run.world.bridge.counts().kept, 0);
    rests(&run.world);
}

/// BT-7: the reply with the next questions was lost: the same retry gets the same questions.
#[test]
fn a_lost_round_is_found_again_bt7() {
    let mut run = running(Transport::Pipe, &forms(), &json!({}));
    let state = run.ask(&[1])["result"]["requestState"].clone();
    run.retry(&state, json!({"u1": accept("a")}));
    run.world.take();
    let next = run.ask(&[2]);
    run.retry(&state, json!({"u1": accept("a")}));
    let again = run.world.reply(run.host);
    assert_eq!(again["result"]["inputRequests"], next["result"]["inputRequests"]);
    run.retry(&again["result"]["requestState"], json!({"u2": accept("b")}));
    assert_eq!(run.world.sent().1["id"], 2);
    // Both states of that round name it: the second use is the same retry.
    run.retry(&next["result"]["requestState"], json!({"u2": accept("z")}));
    assert_eq!(run.world.reply(run.host)["error"]["code"], -32602);
}

/// BT-7: the upstream finishes, fails or dies while the call is parked: the next valid retry learns of it, once and for all.
#[test]
fn outcomes_while_parked_bt7() {
    let mut run = running(Transport::Pipe, &forms(), &json!({}));
    let state = run.ask(&[1])["result"]["requestState"].clone();
    run.world.result(run.link, run.call, text("done"));
    assert!(run.world.take().is_empty());
    // Its answers are not looked at.
    run.retry(&state, json!({"u1": {"action": "perhaps"}}));
    assert_eq!(run.world.reply(run.host)["result"]["content"], text("done")["content"]);

    let mut run = running(Transport::Pipe, &forms(), &json!({}));
    let state = run.ask(&[1])["result"]["requestState"].clone();
    run.world.bridge.close_upstream(run.link, run.world.now);
    run.retry(&state, json!({"u1": accept("a")}));
    assert_eq!(run.world.reply(run.host)["error"]["code"], -32603);
    assert_eq!(run.world.bridge.counts().lost, 1);
    rests(&run.world);
}

/// G-47, BT-7, B-28: nobody comes back: questions are answered `cancel`, sampling and roots by an error, the call is cancelled.
#[test]
fn abandoned_calls_end_bt7_g47_b28() {
    for (transport, seconds) in [(Transport::Pipe, 120), (Transport::Http, 600)] {
        let mut run = running(transport, &all(), &json!({}));
        run.world.up(run.link, &form(json!(1), "m"));
        run.world.up(run.link, &json!({"jsonrpc": "2.0", "id": 2, "method": "roots/list"}));
        run.world.pass(wait());
        run.world.take();
        assert_eq!(run.world.bridge.poll_timeout().unwrap().1, Reason::Abandoned);
        run.world.pass(Duration::from_secs(seconds));
        let said: Vec<Value> = run.world.take().iter().map(Said::json).collect();
        assert_eq!(said[0], json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "cancel"}}));
        assert_eq!((&said[1]["id"], &said[1]["error"]["code"]), (&json!(2), &json!(-32603)));
        assert_eq!(
            (&said[2]["method"], &said[2]["params"]["requestId"]),
            (&json!("notifications/cancelled"), &json!(run.call))
        );
        assert_eq!(run.world.bridge.counts().abandoned, 1);
        rests(&run.world);
        // The session takes nothing else until it has ended the call; it has five seconds.
        run.world.pass(Duration::from_secs(5));
        assert!(matches!(run.world.only(), Said::Closed { .. }));
    }
}

/// what the host did not declare: `-32021`, the question refused, the call cancelled; also in a later round that declares less.
#[test]
fn undeclared_questions_r249_r250() {
    let mut run = running(Transport::Pipe, &forms(), &json!({}));
    run.world.up(run.link, &json!({"jsonrpc": "2.0", "id": 9, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}));
    let said = run.world.take();
    let Said::Host { last: Some(class), .. } = said[0] else { panic!("{said:?}") };
    assert_eq!(class, ReplyClass::MissingCapability);
    assert_eq!(said[0].json()["error"]["data"], json!({"requiredCapabilities": {"sampling": {}}}));
    assert_eq!((&said[1].json()["id"], &said[1].json()["error"]["code"]), (&json!(9), &json!(-32602)));
    assert_eq!(said[2].json()["method"], "notifications/cancelled");
    rests(&run.world);

    let mut run = running(Transport::Pipe, &all(), &json!({}));
    let state = run.ask(&[1])["result"]["requestState"].clone();
    let less = json!({"roots": {}});
    let (host, _) = run.world.call(
        "alice",
        &less,
        &json!({"requestState": state, "inputResponses": {"u1": accept("a")}}),
    );
    run.world.take();
    run.world.up(run.link, &form(json!(2), "again"));
    let said = run.world.take();
    let Said::Host { host: to, .. } = said[0] else { panic!("{said:?}") };
    assert_eq!((to, &said[0].json()["error"]["code"]), (host, &json!(-32021)));
}

/// BT-7: the upstream takes its question back: a later answer to it is ignored; all taken back: held, then state-only (design §9).
#[test]
fn questions_that_are_taken_back_bt7() {
    let mut run = running(Transport::Pipe, &forms(), &json!({}));
    let state = run.ask(&[1, 2])["result"]["requestState"].clone();
    let cancel =
        |id: i64| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    run.world.up(run.link, &cancel(1));
    run.retry(&state, json!({"u1": accept("a"), "u2": accept("b")}));
    assert_eq!(run.world.sent().1["id"], 2);
    let state = run.ask(&[3])["result"]["requestState"].clone();
    run.world.up(run.link, &cancel(3));
    run.retry(&state, json!({"u3": accept("a")}));
    assert!(run.world.take().is_empty());
    assert_eq!(run.world.bridge.poll_timeout().unwrap().1, Reason::Alive);
    run.world.pass(Duration::from_secs(25));
    let said = run.world.take();
    assert!(matches!(said[0], Said::Alive { .. }), "{said:?}");
    let reply = said[1].json();
    assert_eq!(reply["result"].get("inputRequests"), None);
    assert!(reply["result"]["requestState"].is_string());
    run.retry(&reply["result"]["requestState"], json!({}));
    run.world.result(run.link, run.call, text("done"));
    assert_eq!(run.world.reply(run.host)["result"]["content"], text("done")["content"]);
}

/// R-262, design §9: the stream of a first round closes: cancelled at once; that of a later one: five seconds, in which the same retry takes it up.
#[test]
fn streams_that_close_r262() {
    let mut run = running(Transport::Pipe, &forms(), &json!({}));
    run.world.bridge.close_host(run.host, run.world.now);
    run.world.send_raw(run.host, "");
    assert_eq!(run.world.sent().1["method"], "notifications/cancelled");
    rests(&run.world);

    let mut run = running(Transport::Pipe, &forms(), &json!({}));
    let state = run.ask(&[1])["result"]["requestState"].clone();
    run.retry(&state, json!({"u1": accept("a")}));
    run.world.take();
    run.world.bridge.close_host(run.host, run.world.now);
    run.world.pass(Duration::from_secs(4));
    assert!(run.world.take().is_empty());
    run.retry(&state, json!({"u1": accept("a")}));
    run.world.result(run.link, run.call, text("done"));
    assert_eq!(run.world.reply(run.host)["result"]["content"], text("done")["content"]);

    let mut run = running(Transport::Pipe, &forms(), &json!({}));
    let state = run.ask(&[1])["result"]["requestState"].clone();
    run.retry(&state, json!({"u1": accept("a")}));
    run.world.take();
    run.world.bridge.close_host(run.host, run.world.now);
    run.world.pass(Duration::from_secs(5));
    assert_eq!(run.world.sent().1["method"], "notifications/cancelled");
    // Between two rounds a closed connection means nothing.
    let mut run = running(Transport::Pipe, &forms(), &json!({}));
    run.ask(&[1]);
    run.world.bridge.close_host(run.host, run.world.now);
    run.world.pass(Duration::from_secs(60));
    assert!(run.world.take().is_empty());
    assert_eq!(run.world.bridge.counts().parked, 1);
}

/// R-253, G-45: a question when nothing that may ask is in flight: `-32602` for the upstream. `ping` is answered here (BT-8).
#[test]
fn questions_out_of_place_r253_g45_bt8() {
    let mut run = running(Transport::Pipe, &forms(), &json!({}));
    run.world.result(run.link, run.call, text("done"));
    run.world.take();
    run.world.up(run.link, &form(json!("late"), "m"));
    let (_, reply) = run.world.sent();
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!("late"), &json!(-32602)));
    run.world.up(run.link, &json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}));
    assert_eq!(run.world.sent().1, json!({"jsonrpc": "2.0", "id": 3, "result": {}}));
    run.world.up(run.link, &json!({"jsonrpc": "2.0", "id": 4, "method": "vendor/ask"}));
    assert_eq!(run.world.sent().1["error"]["code"], -32601);
    // A question that is none is refused, and the call goes on.
    let mut run = running(Transport::Pipe, &forms(), &json!({}));
    run.world.up(
        run.link,
        &json!({"jsonrpc": "2.0", "id": 4, "method": "elicitation/create", "params": {"message": 1}}),
    );
    assert_eq!(run.world.sent().1["error"]["code"], -32602);
    run.world.result(run.link, run.call, text("done"));
    assert_eq!(run.world.reply(run.host)["result"]["content"], text("done")["content"]);
}

/// Design §9: an ask with a progress token gets a sign of life every 15 s while it is parked; so does a host that waits.
#[test]
fn signs_of_life() {
    let mut run = running(Transport::Http, &forms(), &json!({}));
    run.world.pass(Duration::from_secs(31));
    assert_eq!(run.world.take().len(), 2);
    let mut ask = form(json!(1), "m");
    ask["params"]["_meta"] = json!({"progressToken": "up"});
    run.world.up(run.link, &ask);
    run.world.pass(wait());
    let reply = run.world.reply(run.host);
    assert_eq!(reply["result"]["inputRequests"]["u1"]["params"].get("_meta"), None);
    run.world.pass(Duration::from_secs(31));
    let beats: Vec<Value> = run.world.take().iter().map(|said| said.json()["params"].clone()).collect();
    assert_eq!(beats.len(), 2);
    assert_eq!(beats[0]["progressToken"], "up");
    assert!(beats[0]["progress"].as_i64() < beats[1]["progress"].as_i64());
}

/// Design §9: a handle of another process is "lost", never a second run.
#[test]
fn handles_of_another_process() {
    let mut run = running(Transport::Pipe, &forms(), &json!({}));
    let state = run.ask(&[1])["result"]["requestState"].clone();
    let mut other = World::seeded(config(&[("up", Transport::Pipe, Era::Legacy)]), 77);
    let (host, _) =
        other.call("alice", &forms(), &json!({"requestState": state, "inputResponses": {"u1": accept("a")}}));
    let reply = other.reply(host);
    assert_eq!(reply["error"]["code"], -32603);
    assert!(reply["error"]["message"].as_str().unwrap().contains("not run again"));
}
