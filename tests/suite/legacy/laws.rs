//! Whatever a client sends, in whatever order: no panic, no end of messages, no reply without a request, none twice.

use std::{collections::BTreeSet, time::Duration};

use futures::future;
use mrtr_core::handler::{Ctx, ToolResult};
use mrtr_tests::legacy::Client;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{NARROW, NEWEST, OLDEST, all, n, number, service, shown};

async fn handler(ctx: Ctx) -> super::Result<ToolResult> {
    let roots = async { format!("{:?}", ctx.roots("r").optional().await) };
    let number = async { shown(number(&ctx, "a").await) };
    let (roots, number) = future::join(roots, number).await;
    ctx.checkpoint().await?;
    let sure = format!("{:?}", ctx.confirm("sure", "Sure?").await);
    Ok(ToolResult::text(format!("{roots} {number} {sure}")))
}

#[derive(Clone, Debug)]
enum Act {
    Call(i64),
    Answer(usize, u8),
    Cancel(i64),
    Initialize(u8),
    Initialized,
    Pass(u16),
    Plain(u8),
    Bytes(Vec<u8>),
    Cut(i64, usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0i64..20).prop_map(Act::Call),
        8 => (0usize..12, 0u8..6).prop_map(|(which, how)| Act::Answer(which, how)),
        2 => (0i64..20).prop_map(Act::Cancel),
        1 => (0u8..4).prop_map(Act::Initialize),
        1 => Just(Act::Initialized),
        2 => any::<u16>().prop_map(Act::Pass),
        1 => any::<u8>().prop_map(Act::Plain),
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Act::Bytes),
        1 => (0i64..20, 0usize..200).prop_map(|(id, length)| Act::Cut(id, length)),
    ]
}

fn call(id: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t", "_meta": {"progressToken": id}}})
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 150 } else { 2_000 }))]

    /// G-38, R-005, R-191, R-229, R-239: every call that was taken is answered once or was cancelled; our ids are never used
    /// twice; what is out is never more than what calls have asked.
    #[test]
    fn a_session_keeps_order(acts in prop::collection::vec(act(), 1..60)) {
        let mut client = Client::silent(service(handler));
        let mut running = BTreeSet::new();
        let mut asked = BTreeSet::new();
        let mut asks: Vec<Value> = Vec::new();
        let mut begun = false;
        for act in acts {
            let at_once = match act {
                Act::Call(id) => {
                    let said = client.send(&call(id));
                    if said.is_none() {
                        prop_assert!(begun && running.insert(id));
                    }
                    said
                }
                Act::Answer(which, how) => {
                    let Some(ask) = asks.get(which) else { continue };
                    let roots = json!({"roots": []});
                    let result = [n(i64::from(how)), json!({"action": "cancel"}), roots.clone(), roots, json!(null), n(11)];
                    let message = if how == 4 {
                        json!({"jsonrpc": "2.0", "id": ask["id"], "error": {"code": -1, "message": "no"}})
                    } else {
                        json!({"jsonrpc": "2.0", "id": ask["id"], "result": result[usize::from(how)]})
                    };
                    client.send(&message)
                }
                Act::Cancel(id) => {
                    running.remove(&id);
                    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
                }
                Act::Initialize(which) => {
                    let version = [NEWEST, NARROW, OLDEST, "x"][usize::from(which)];
                    begun = true;
                    Some(client.initialize(version, all()))
                }
                Act::Initialized => client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})),
                Act::Pass(millis) => {
                    client.pass(Duration::from_millis(u64::from(millis)));
                    None
                }
                Act::Plain(which) => {
                    let method = ["tools/list", "ping", "logging/setLevel", "nonsense"][usize::from(which % 4)];
                    Some(client.request(method, json!({"level": "info"})))
                }
                Act::Bytes(bytes) => client.send_bytes(&bytes),
                Act::Cut(id, length) => {
                    let text = call(id).to_string();
                    let cut = text.len().min(length);
                    if cut == text.len() { continue }
                    client.send_bytes(&text.as_bytes()[..cut])
                }
            };
            prop_assert!(at_once.is_none_or(|said| said.get("result").is_some() || said.get("error").is_some()));
            for said in client.drain() {
                if said.get("method").is_none() {
                    prop_assert!(running.remove(&said["id"].as_i64().expect("ours")), "{said}");
                } else if said.get("id").is_some() {
                    prop_assert!(asked.insert(said["id"].as_i64().expect("ours")), "{said}");
                    asks.push(said);
                    asks.truncate(12);
                }
            }
        }
    }

    /// G-38: any bytes at all, before and after the beginning.
    #[test]
    fn any_bytes_are_survived(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..20), ready in any::<bool>()) {
        let mut client = if ready { Client::new(service(handler), NEWEST, all()) } else { Client::silent(service(handler)) };
        for line in lines {
            client.send_bytes(&line);
            client.drain();
        }
    }
}
