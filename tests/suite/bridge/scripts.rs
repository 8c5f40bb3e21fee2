//! What the fuzz target does, with scripts made of plausible lines.

#[path = "../../../fuzz/src/bridge.rs"]
mod driver;

use proptest::prelude::*;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}},"roots":{}}}"#;

/// Lines that lead somewhere.
fn lines() -> Vec<String> {
    let call = |more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"t","arguments":{{"a":1}},{more}{META}}}}}"#
        )
    };
    let first = call("");
    let retry =
        call(r#""requestState":"$S","inputResponses":{"u1":{"action":"accept"},"k":{"action":"decline"}},"#);
    let result = |result: &str| format!(r#"u{{"jsonrpc":"2.0","id":$I,"result":{result}}}"#);
    let ask = r#""method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#;
    vec![
        format!("p{first}"),
        format!("p{}", first.replace(r#""t""#, r#""b__t""#)),
        format!("h{first}"),
        format!("p{retry}"),
        format!("p{retry}"),
        format!(r#"p{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#),
        format!(r#"p{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true,"resourceSubscriptions":["r:x"]}},{META}}}}}"#),
        format!(r#"p{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{META}}}}}"#),
        r#"h{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}}}}"#.into(),
        r#"h{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into(),
        r#"h{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}"#.into(),
        r#"h{"jsonrpc":"2.0","id":8,"method":"resources/subscribe","params":{"uri":"r:x"}}"#.into(),
        r#"h{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#.into(),
        r#"h{"jsonrpc":"2.0","id":3,"result":{"action":"accept","content":{}}}"#.into(),
        r#"h{"jsonrpc":"2.0","id":4,"error":{"code":-1,"message":"no"}}"#.into(),
        result(r#"{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}"#),
        result(r#"{"protocolVersion":"2025-06-18","capabilities":{}}"#),
        result(r#"{"content":[],"resultType":"complete","capabilities":{"tools":{"listChanged":true}}}"#),
        result(&format!(r#"{{"resultType":"input_required","inputRequests":{{"k":{{{ask}}}}},"requestState":"theirs"}}"#)),
        result(r#"{"resultType":"input_required","requestState":""}"#),
        r#"u{"jsonrpc":"2.0","id":$I,"error":{"code":-32042,"message":"m","data":{"elicitations":[{"elicitationId":"e","message":"m","url":"https://x.example"}]}}}"#.into(),
        r#"u{"jsonrpc":"2.0","id":$I,"error":{"code":-32020,"message":"m"}}"#.into(),
        format!(r#"u{{"jsonrpc":"2.0","id":"q",{ask}}}"#),
        format!(r#"u{{"jsonrpc":"2.0","id":"q2",{ask}}}"#),
        r#"u{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#.into(),
        r#"u{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}"#.into(),
        r#"u{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.into(),
        r#"u{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$I,"progress":1}}"#.into(),
        r#"u{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e"}}"#.into(),
        "t".into(),
        "t".into(),
        "c".into(),
        "k".into(),
        "p{".into(),
        "u{\"jsonrpc\":\"2.0\",\"id\":$I,\"result\"".into(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_in_whatever_order(first in 0u8..64, picks in prop::collection::vec(0usize..35, 1..60)) {
        let lines = lines();
        let mut script = vec![first];
        for pick in picks {
            script.extend_from_slice(lines[pick % lines.len()].as_bytes());
            script.push(b'\n');
        }
        driver::drive(&script);
    }
}
