//! The inbox: questions for hosts that cannot show them (W-16, design §9).

use std::time::Duration;

use mrtr_core::{
    Limits,
    bridge::{HostKind, InboxError, InboxId, Reason, Transport},
    jsonrpc::Json,
    seal::Principal,
    wire::{AskKind, ClientCapabilities, Era},
};
use mrtr_tests::bridge::{Said, World, config, form};
use serde_json::{Value, json};

use super::{rests, text};

fn world(era: Era) -> World {
    let mut config = config(&[("up", Transport::Pipe, era)]);
    let mut inbox = ClientCapabilities::default();
    (inbox.elicitation, inbox.form) = (true, true);
    config.inbox = inbox;
    World::new(config)
}

fn parse(text: &str) -> Json<'_> {
    Json::parse(text, &Limits::default()).unwrap()
}

/// The upstream is promised host and inbox together; only what the host lacks is diverted; its call is held 25 s with signs of life, then gets a state alone until there is an answer.
#[test]
fn a_modern_hosts_question_w16() {
    let mut world = world(Era::Legacy);
    let (host, _) = world.call("alice", &json!({"roots": {}}), &json!({}));
    let (link, promise, said) = world.begin("2025-11-25");
    assert_eq!(promise, json!({"elicitation": {"form": {}}, "roots": {}}));
    let call = said[1].json()["id"].as_i64().unwrap();
    world.up(link, &form(json!(5), "Sure?"));
    // What the host can answer goes to the host.
    world.up(link, &json!({"jsonrpc": "2.0", "id": 6, "method": "roots/list"}));
    world.pass(Duration::from_millis(10));
    let reply = world.reply(host);
    assert_eq!(reply["result"]["inputRequests"].as_object().unwrap().len(), 1);
    let entry = world.bridge.inbox().next().unwrap();
    assert_eq!(
        (entry.id, entry.principal, entry.upstream, entry.target, entry.kind),
        (InboxId(1), Principal::Authenticated(b"alice"), "up", "t", AskKind::Form)
    );
    assert_eq!(serde_json::from_str::<Value>(entry.question).unwrap()["params"]["message"], "Sure?");
    let retry =
        json!({"requestState": reply["result"]["requestState"], "inputResponses": {"u2": {"roots": []}}});
    let (host, _) = world.call("alice", &json!({"roots": {}}), &retry);
    assert_eq!(world.sent().1["id"], 6);
    world.pass(Duration::from_secs(25));
    let said = world.take();
    assert!(matches!(said[0], Said::Alive { host: to } if to == host), "{said:?}");
    let reply = said[1].json();
    assert_eq!(reply["result"].get("inputRequests"), None);
    let (host, _) =
        world.call("alice", &json!({"roots": {}}), &json!({"requestState": reply["result"]["requestState"]}));
    assert!(world.take().is_empty());
    assert_eq!(
        world
            .bridge
            .answer_inbox(InboxId(1), "ops", parse(r#"{"action":"maybe"}"#), world.now)
            .map_err(|error| matches!(error, InboxError::Answer(_))),
        Err(true)
    );
    // What does not fit the form is for who gives it to hear, and the question waits on (R-132).
    let misfit = world.bridge.answer_inbox(
        InboxId(1),
        "ops",
        parse(r#"{"action":"accept","content":{"n":5}}"#),
        world.now,
    );
    assert!(misfit.unwrap_err().to_string().starts_with("the answer does not fit the form: n: "));
    assert!(world.bridge.poll_output().is_none());
    let answer = world
        .bridge
        .answer_inbox(InboxId(1), "ops", parse(r#"{"action":"accept","content":{"n":"x"}}"#), world.now)
        .unwrap();
    assert_eq!((answer.by.as_str(), answer.accepted), ("ops", true));
    world.send_raw(mrtr_core::bridge::HostId(0), "");
    assert_eq!(
        world.sent().1,
        json!({"jsonrpc": "2.0", "id": 5, "result": {"action": "accept", "content": {"n": "x"}}})
    );
    assert_eq!(
        world.bridge.answer_inbox(InboxId(1), "ops", parse("{}"), world.now),
        Err(InboxError::Unknown)
    );
    world.result(link, call, text("done"));
    assert_eq!(world.reply(host)["result"]["content"], text("done")["content"]);
    rests(&world);
}

/// Unanswered questions expire; declined and withdrawn ones are gone; a kind that nobody can answer is `-32021` as ever.
#[test]
fn questions_that_nobody_answers_w16() {
    for ending in ["expire", "decline", "cancel", "die"] {
        let mut world = world(Era::Legacy);
        let (mut host, _) = world.call("alice", &json!({}), &json!({}));
        let (link, _, said) = world.begin("2025-11-25");
        let call = said[1].json()["id"].as_i64().unwrap();
        world.up(link, &form(json!(5), "Sure?"));
        assert_eq!(world.bridge.counts().inbox, 1);
        match ending {
            "expire" => {
                // The host stays with it; nobody else does.
                let mut answered = None;
                for _ in 0..100 {
                    world.pass(Duration::from_secs(25));
                    for said in world.take() {
                        match &said {
                            Said::Host { .. } => {
                                let state = said.json()["result"]["requestState"].clone();
                                host = world.call("alice", &json!({}), &json!({"requestState": state})).0;
                            }
                            Said::Up { .. } => answered = Some(said.json()),
                            _ => {}
                        }
                    }
                }
                assert_eq!(answered.unwrap()["result"], json!({"action": "cancel"}));
            }
            "decline" => {
                world.bridge.decline_inbox(InboxId(1), "ops", world.now).unwrap();
                world.send_raw(mrtr_core::bridge::HostId(0), "");
                assert_eq!(world.sent().1["result"], json!({"action": "decline"}));
            }
            "cancel" => world.up(
                link,
                &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}),
            ),
            _ => world.bridge.close_upstream(link, world.now),
        }
        assert_eq!(world.bridge.counts().inbox, 0, "{ending}");
        assert!(world.bridge.inbox().next().is_none());
        if ending != "die" {
            world.result(link, call, text("done"));
            assert_eq!(world.reply(host)["result"]["content"], text("done")["content"]);
        }
    }
    let mut world = world(Era::Legacy);
    world.call("alice", &json!({}), &json!({}));
    let (link, _, _) = world.begin("2025-11-25");
    world.up(link, &json!({"jsonrpc": "2.0", "id": 6, "method": "roots/list"}));
    assert_eq!(world.take()[0].json()["error"]["code"], -32021);
}

/// A legacy host's call is held throughout.
#[test]
fn a_legacy_hosts_question_w16() {
    let mut world = world(Era::Modern);
    let host = world.host(HostKind::Session, "alice");
    world.send(host, &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}}));
    let said = world.take();
    let Said::Up { link, call: Some(id), .. } = said[1] else { panic!("{said:?}") };
    world.result(link, id, json!({"resultType": "complete", "supportedVersions": [], "capabilities": {}}));
    world.take();
    world.send(host, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}}));
    let (_, sent) = world.sent();
    assert_eq!(
        sent["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"],
        json!({"elicitation": {"form": {}}})
    );
    let ask = json!({"method": "elicitation/create", "params": {"message": "Sure?", "requestedSchema": {}}});
    world.result(
        link,
        sent["id"].as_i64().unwrap(),
        json!({"resultType": "input_required", "inputRequests": {"k": ask}, "requestState": "s"}),
    );
    assert_eq!(world.bridge.poll_timeout().unwrap().1, Reason::Alive);
    world.pass(Duration::from_secs(600));
    assert!(world.take().iter().all(|said| matches!(said, Said::Alive { .. })));
    world
        .bridge
        .answer_inbox(InboxId(1), "ops", parse(r#"{"action":"accept","content":{}}"#), world.now)
        .unwrap();
    world.send_raw(mrtr_core::bridge::HostId(0), "");
    let (_, sent) = world.sent();
    assert_eq!(
        (&sent["params"]["inputResponses"], &sent["params"]["requestState"]),
        (&json!({"k": {"action": "accept", "content": {}}}), &json!("s"))
    );
    world.result(link, sent["id"].as_i64().unwrap(), json!({"resultType": "complete", "content": []}));
    assert_eq!(world.reply(host)["result"], json!({"content": []}));
    rests(&world);
}

/// A legacy host before a legacy server: the server is promised host and inbox together, what the host lacks is diverted,
/// what it can is asked of it; the rest of what it has declared goes through as it is.
#[test]
fn a_legacy_hosts_question_of_a_legacy_server_w16() {
    for ending in ["answer", "expire", "upstream cancels", "upstream ends", "host leaves", "call ends"] {
        let mut config = config(&[("up", Transport::Http, Era::Legacy)]);
        let mut inbox = ClientCapabilities::default();
        (inbox.elicitation, inbox.form) = (true, true);
        config.inbox = inbox;
        let mut world = World::new(config);
        let host = world.host(HostKind::Session, "alice");
        let declared = json!({"roots": {"listChanged": true}, "vendor": {"x": 1.50}});
        world.send(host, &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": declared}}));
        let (link, promise, _) = world.begin("2025-11-25");
        assert_eq!(
            promise,
            json!({"roots": {"listChanged": true}, "vendor": {"x": 1.50}, "elicitation": {"form": {}}})
        );
        world.send(host, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        world.take();
        world
            .send(host, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}}));
        let call = world.sent().1["id"].as_i64().unwrap();
        world.up_raw(link, Some(call), &form(json!("q"), "Sure?").to_string());
        assert!(world.take().is_empty());
        world.up_raw(link, Some(call), r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#);
        assert_eq!(world.only().json()["method"], "roots/list");
        let entry = world.bridge.inbox().next().unwrap();
        assert_eq!((entry.principal, entry.target), (Principal::Authenticated(b"alice"), "t"));
        match ending {
            "answer" => {
                let answer = parse(r#"{"action":"accept","content":{"n":"x"}}"#);
                world.bridge.answer_inbox(InboxId(1), "ops", answer, world.now).unwrap();
                world.send_raw(mrtr_core::bridge::HostId(0), "");
                let sent = world.sent().1;
                assert_eq!(
                    (&sent["id"], &sent["result"]),
                    (&json!("q"), &json!({"action": "accept", "content": {"n": "x"}}))
                );
                world.result(link, call, text("done"));
                assert!(
                    world
                        .take()
                        .iter()
                        .any(|said| said.json()["result"]["content"] == text("done")["content"])
                );
                rests(&world);
            }
            "expire" => {
                world.pass(Duration::from_secs(1_800));
                assert_eq!(world.sent().1["result"], json!({"action": "cancel"}));
            }
            "upstream cancels" => world.up(
                link,
                &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "q"}}),
            ),
            "upstream ends" => world.bridge.close_upstream(link, world.now),
            "host leaves" => world.leave(host),
            _ => world.result(link, call, text("done")),
        }
        assert_eq!(world.bridge.counts().inbox, 0, "{ending}");
    }
}
