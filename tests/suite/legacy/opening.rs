//! Both eras on one pipe: R-052.

use std::task::{Context, Poll, Waker};

use mrtr_core::{
    Entropy, Timestamp,
    handler::{Ctx, Reception, ToolResult},
    legacy::{Config, Handled, Pipe, Piped},
    seal::Principal,
    server::RoundEnv,
};
use mrtr_tests::{
    legacy::{parse, text},
    world::{START, World},
};
use serde_json::{Value, json};

use super::{NEWEST, all, n, number, shown};

const NOW: Timestamp = Timestamp::from_unix_millis(START);

struct Both {
    world: World,
    pipe: Pipe,
}

impl Both {
    fn new() -> Self {
        let world =
            World::new(|ctx: Ctx| async move { Ok(ToolResult::text(shown(number(&ctx, "a").await))) });
        let pipe =
            Pipe::new(world.service.clone(), Config::default(), Principal::Anonymous, Entropy::new([2; 32]));
        Self { world, pipe }
    }

    /// What a legacy session says at once; `None` if the message is modern.
    fn send(&mut self, message: &Value) -> Option<Value> {
        match self.pipe.handle(message.to_string().as_bytes(), NOW) {
            Piped::Modern => None,
            Piped::Legacy(Handled::Reply { bytes, .. }) => Some(parse(&bytes)),
            Piped::Legacy(Handled::Running(_) | Handled::Accepted) => Some(Value::Null),
            other => panic!("{other:?}"),
        }
    }

    fn next(&mut self) -> Value {
        match self.pipe.poll(&mut Context::from_waker(Waker::noop()), NOW) {
            Poll::Ready(transmit) => parse(&transmit.bytes),
            Poll::Pending => panic!("nothing is said"),
        }
    }
}

/// G-44, trap 21: the era is the message's; both are live at once, and their calls do not meet.
#[test]
fn both_eras_on_one_pipe_r052() {
    let mut both = Both::new();
    let bare = |id: i64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": NEWEST, "capabilities": all()}});
    // Before anything: what says no version is for the modern era to refuse; a ping is a ping.
    assert_eq!(both.send(&bare(1)), None);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(both.send(&ping).expect("a pong")["result"], json!({}));
    let Reception::Reply { bytes, .. } = both.world.service.receive(
        bare(1).to_string().as_bytes(),
        RoundEnv::new(NOW, Entropy::new([1; 32]), Principal::Anonymous),
    ) else {
        panic!("no reply")
    };
    assert_eq!(serde_json::from_slice::<Value>(&bytes).expect("JSON")["error"]["code"], -32602);
    // `initialize` with modern `_meta` is a modern request.
    let mut modern = initialize.clone();
    modern["params"]["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    assert_eq!(both.send(&modern), None);
    // Bad parameters begin nothing.
    let bad = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
    assert_eq!(both.send(&bad).expect("a reply")["error"]["code"], -32602);
    assert_eq!(both.send(&bare(1)), None);
    assert_eq!(both.send(&initialize).expect("a reply")["result"]["protocolVersion"], NEWEST);
    assert_eq!(
        both.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})),
        Some(Value::Null)
    );
    // A legacy call and a modern exchange, interleaved.
    assert_eq!(both.send(&bare(1)), Some(Value::Null));
    let ask = both.next();
    assert_eq!(ask["method"], "elicitation/create");
    let first = both.world.call(json!({}));
    assert_eq!(first.keys(), ["a"]);
    let request = both.world.request("tools/call", json!({"name": "t"}));
    assert_eq!(both.send(&request), None);
    let cancel =
        |id: i64| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    assert_eq!(both.send(&cancel(77)), None);
    assert_eq!(both.send(&json!({"jsonrpc": "2.0", "id": ask["id"], "result": n(4)})), Some(Value::Null));
    let done = both.next();
    assert_eq!((&done["id"], text(&done)), (&json!(1), "4"));
    assert_eq!(both.world.retry(&first, json!({"a": n(5)})).text(), "5");
    assert_eq!(both.send(&bare(2)), Some(Value::Null));
    both.next();
    assert_eq!(both.send(&cancel(2)), Some(Value::Null));
    assert_eq!(both.next()["method"], "notifications/cancelled");
    assert_eq!(both.pipe.wake_at(), None);
}

/// A server of the modern era alone leaves everything to it.
#[test]
fn a_modern_server_has_no_sessions_r053() {
    let mut both = Both::new();
    let mut config = Config::default();
    config.versions.clear();
    both.pipe = Pipe::new(both.world.service.clone(), config, Principal::Anonymous, Entropy::new([2; 32]));
    let initialize =
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": NEWEST}});
    assert_eq!(both.send(&initialize), None);
    assert!(both.pipe.session().is_none());
}
