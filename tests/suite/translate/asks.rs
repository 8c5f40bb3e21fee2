//! Questions and answers: BT-1…BT-5.

use mrtr_core::{
    jsonrpc::RequestId,
    translate::{
        ModernAsk, Origin, Unsayable, Wording, answer_to_legacy, answer_to_modern, ask_to_legacy,
        ask_to_modern, promise, understood,
    },
    wire::{AskFault, AskKind, ClientCapabilities, InputRequest, Version},
};

use super::{json, written};

fn modern(
    method: &str,
    params: Option<&str>,
    host: ClientCapabilities,
    origin: Origin<'_>,
) -> (String, ModernAsk) {
    let mut ask = None;
    let text = written(|out| {
        ask = Some(ask_to_modern(out, method, params.map(json), host, origin).expect("a question"));
    });
    (text, ask.unwrap())
}

/// BT-1, BT-2, R-251: only method and params of 2026 get through, to the byte.
#[test]
fn a_form_for_a_modern_host_bt1_bt2_r251_r247() {
    let params = concat!(
        r#"{"mode":"form", "message":"Wie hei\u00dft du?","requestedSchema":{"type":"object","properties":{"#,
        r#""n":{"type":"string","pattern":"^a","enumNames":[]},"big":{"type":"integer","maximum":18446744073709551616}}},"#,
        r#""task":{"ttl":5},"x":1.0,"_meta":{"progressToken":7,"io.modelcontextprotocol/related-task":{"taskId":"t"},"v/k":1}}"#
    );
    let (text, ask) = modern("elicitation/create", Some(params), ClientCapabilities::ALL, Origin::Untouched);
    assert_eq!(
        text,
        concat!(
            r#"{"method":"elicitation/create","params":{"mode":"form", "message":"Wie hei\u00dft du?","requestedSchema":"#,
            r#"{"type":"object","properties":{"n":{"type":"string","pattern":"^a","enumNames":[]},"big":{"type":"integer","#,
            r#""maximum":18446744073709551616}}},"x":1.0,"_meta":{"v/k":1}}}"#
        )
    );
    assert_eq!((ask.kind, ask.progress_token), (AskKind::Form, Some(RequestId::from(7))));
    // G-39: a `_meta` with nothing of a vendor's goes.
    let params = r#"{"_meta":{"progressToken":"t"},"message":"m","requestedSchema":{}}"#;
    let (text, ask) = modern("elicitation/create", Some(params), ClientCapabilities::ALL, Origin::Untouched);
    assert_eq!(text, r#"{"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}"#);
    assert_eq!(ask.progress_token, Some(RequestId::from("t")));
}

/// BT-2, B-71, R-264: `elicitationId` is kept back, the url goes through unmodified.
#[test]
fn a_url_for_a_modern_host_bt2_b71_r264() {
    let params = r#"{"mode":"url","elicitationId":"e-1","message":"m","url":"https:\/\/x.example/?a=%20#f"}"#;
    let (text, ask) =
        modern("elicitation/create", Some(params), ClientCapabilities::ALL, Origin::Named("a\"b"));
    assert_eq!(
        text,
        r#"{"method":"elicitation/create","params":{"mode":"url","message":"[a\"b] m","url":"https:\/\/x.example/?a=%20#f"}}"#
    );
    assert_eq!(ask.elicitation_id.as_deref(), Some("e-1"));
    assert_eq!(ask.kind, AskKind::Url);
}

/// BT-3: `includeContext` only where declared, tools without `execution`, all else as it is.
#[test]
fn sampling_for_a_modern_host_bt3_r264() {
    let params = concat!(
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"t"},"_meta":{"a":1}}],"maxTokens":10,"#,
        r#""includeContext":"thisServer","metadata":{"x":null},"tools":[{"name":"t","execution":{"taskSupport":"optional"},"inputSchema":{}}]}"#
    );
    let mut host = ClientCapabilities::ALL;
    let (text, ask) = modern("sampling/createMessage", Some(params), host, Origin::Untouched);
    assert_eq!(
        text,
        concat!(
            r#"{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"t"},"#,
            r#""_meta":{"a":1}}],"maxTokens":10,"includeContext":"thisServer","metadata":{"x":null},"tools":[{"name":"t","inputSchema":{}}]}}"#
        )
    );
    assert!(ask.needs.tools);
    host.sampling_context = false;
    let (text, _) = modern("sampling/createMessage", Some(params), host, Origin::Named("up"));
    assert!(!text.contains("includeContext"), "{text}");
    assert!(text.ends_with(r#","_meta":{"dev.mrtr/origin":"up"}}}"#), "{text}");
}

/// BT-4: roots with empty params, and none.
#[test]
fn roots_for_a_modern_host_bt4() {
    let of = |params, origin| modern("roots/list", params, ClientCapabilities::ALL, origin).0;
    assert_eq!(of(None, Origin::Untouched), r#"{"method":"roots/list"}"#);
    assert_eq!(
        of(None, Origin::Named("u")),
        r#"{"method":"roots/list","params":{"_meta":{"dev.mrtr/origin":"u"}}}"#
    );
    assert_eq!(
        of(Some(r#"{"_meta":{"progressToken":1}}"#), Origin::Untouched),
        r#"{"method":"roots/list","params":{}}"#
    );
    assert_eq!(
        of(Some(r#"{"_meta":{"progressToken":1,"v/k":2}}"#), Origin::Named("u")),
        r#"{"method":"roots/list","params":{"_meta":{"v/k":2,"dev.mrtr/origin":"u"}}}"#
    );
}

/// BT-1: three methods and no others; nothing is appended for what is no question.
#[test]
fn what_is_no_question_bt1() {
    for (method, params) in [
        ("tools/call", Some("{}")),
        ("elicitation/create", None),
        ("elicitation/create", Some(r#"{"message":"m","mode":"card"}"#)),
        ("sampling/createMessage", Some(r#"{"messages":[]}"#)),
        ("roots/list", Some("[]")),
    ] {
        let mut out = Vec::new();
        let fault =
            ask_to_modern(&mut out, method, params.map(json), ClientCapabilities::ALL, Origin::Untouched);
        assert!(fault.is_err(), "{method}");
        assert!(out.is_empty());
    }
    let fault =
        ask_to_modern(&mut Vec::new(), "ping", None, ClientCapabilities::ALL, Origin::Untouched).unwrap_err();
    assert_eq!(fault, AskFault::UnknownMethod("ping".into()));
}

fn legacy(ask: &str, version: Version, capabilities: ClientCapabilities) -> Result<String, Unsayable> {
    let ask = InputRequest::from_json(json(ask)).expect("an ask");
    let wording = Wording { version, capabilities, elicitation_id: "e-9", origin: Origin::Untouched };
    let mut out = Vec::new();
    let said = ask_to_legacy(&mut out, 12, &ask, &wording);
    assert!(said.is_ok() || out.is_empty());
    said.map(|()| written(|again| again.extend_from_slice(&out)))
}

/// BT-1, BT-2, R-252, R-233: an id, `jsonrpc` and a fresh `elicitationId`.
#[test]
fn asks_for_a_legacy_host_bt1_bt2_bt3_bt4_r252() {
    let (all, v) = (ClientCapabilities::ALL, Version::V2025_11_25);
    let url = r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x.example/","elicitationId":"theirs"}}"#;
    assert_eq!(
        legacy(url, v, all).unwrap(),
        r#"{"jsonrpc":"2.0","id":12,"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x.example/","elicitationId":"e-9"}}"#
    );
    assert_eq!(
        legacy(r#"{"method":"roots/list"}"#, v, all).unwrap(),
        r#"{"jsonrpc":"2.0","id":12,"method":"roots/list"}"#
    );
    let sampling = concat!(
        r#"{"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[{"role":"user","content":["#,
        r#"{"type":"tool_result","toolUseId":"t","content":[],"structuredContent":[1]},"#,
        r#"{"type":"tool_result","toolUseId":"u","content":[],"structuredContent":{"a":1.0}}]}],"includeContext":"none","#,
        r#""tools":[{"name":"a","outputSchema":{"type":"array"}},{"name":"b","outputSchema":{"type":"object"}}]}}"#
    );
    let mut some = all;
    some.sampling_context = false;
    assert_eq!(
        legacy(sampling, v, some).unwrap(),
        concat!(
            r#"{"jsonrpc":"2.0","id":12,"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[{"role":"user","content":["#,
            r#"{"type":"tool_result","toolUseId":"t","content":[]},"#,
            r#"{"type":"tool_result","toolUseId":"u","content":[],"structuredContent":{"a":1.0}}]}],"#,
            r#""tools":[{"name":"a"},{"name":"b","outputSchema":{"type":"object"}}]}}"#
        )
    );
    assert_eq!(legacy(sampling, v, ClientCapabilities::default()), Err(Unsayable::Undeclared));
}

/// BT-5: forms in the words of 2025-06-18; urls and multi-selects have none there.
#[test]
fn downgrade_bt5() {
    let form = |field: &str| {
        format!(
            r#"{{"method":"elicitation/create","params":{{"mode":"form","message":"m","requestedSchema":{{"$schema":"s","type":"object","properties":{{"a":{field}}}}}}}}}"#
        )
    };
    let (all, v) = (ClientCapabilities::ALL, Version::V2025_06_18);
    assert_eq!(
        legacy(&form(r#"{"type":"string","oneOf":[{"const":"x","title":"X"}],"default":"x"}"#), v, all)
            .unwrap(),
        r#"{"jsonrpc":"2.0","id":12,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","enum":["x"],"enumNames":["X"]}}}}}"#
    );
    let multi = form(r#"{"type":"array","items":{"type":"string","enum":["x"]}}"#);
    assert!(matches!(legacy(&multi, v, all), Err(Unsayable::Form(_))));
    let url =
        r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x.example/"}}"#;
    assert_eq!(legacy(url, v, all), Err(Unsayable::Undeclared));
    let blocks = r#"{"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[{"role":"user","content":[]}]}}"#;
    assert_eq!(legacy(blocks, v, all), Err(Unsayable::Blocks));
    assert_eq!(legacy(&multi, Version::V2025_03_26, all), Err(Unsayable::Undeclared));
}

/// BT-2…BT-4: what of an answer passes, the same both ways; R-017: a `resultType` inside one does not.
#[test]
fn answers_bt2_bt3_bt4_r017() {
    let cases = [
        (
            AskKind::Form,
            r#"{"action":"accept","content":{"n": 1.50},"_meta":{"a":1},"resultType":"complete"}"#,
            Some(r#"{"action":"accept","content":{"n": 1.50}}"#),
        ),
        (AskKind::Form, r#"{"action":"decline","content":{"n":1}}"#, Some(r#"{"action":"decline"}"#)),
        (AskKind::Url, r#"{"action":"accept","content":{}}"#, Some(r#"{"action":"accept"}"#)),
        (
            AskKind::Sampling,
            r#"{"role":"assistant","content":{"type":"text","text":"t"},"model":"m","stopReason":"s","_meta":{"v":1},"resultType":"complete","x":1}"#,
            Some(
                r#"{"role":"assistant","content":{"type":"text","text":"t"},"model":"m","stopReason":"s","_meta":{"v":1},"x":1}"#,
            ),
        ),
        (
            AskKind::Roots,
            r#"{"roots":[{"uri":"file:///a","_meta":{}}],"_meta":{},"x":1}"#,
            Some(r#"{"roots":[{"uri":"file:///a","_meta":{}}]}"#),
        ),
        (AskKind::Form, r#"{"action":"yes"}"#, None),
        (AskKind::Sampling, r#"{"action":"accept"}"#, None),
        (AskKind::Roots, r#"{"roots":[{"uri":"http://a"}]}"#, None),
    ];
    for (kind, value, expected) in cases {
        for translate in [answer_to_legacy, answer_to_modern] {
            let mut out = Vec::new();
            assert_eq!(translate(&mut out, kind, json(value)).is_ok(), expected.is_some());
            assert_eq!(String::from_utf8(out).unwrap(), expected.unwrap_or_default());
        }
    }
}

/// G-46, R-246: never more is promised than the host has, nor more than the revision reads out of it.
#[test]
fn promises_g46_r246() {
    let mut urls = ClientCapabilities::default();
    (urls.elicitation, urls.url) = (true, true);
    assert_eq!(promise(urls, Version::V2025_11_25).1, r#"{"elicitation":{"url":{}}}"#);
    assert_eq!(promise(urls, Version::V2025_06_18).1, "{}");
    let all = ClientCapabilities::ALL;
    assert_eq!(
        promise(all, Version::V2025_06_18).1,
        r#"{"elicitation":{"form":{}},"sampling":{"context":{}},"roots":{}}"#
    );
    assert!(!promise(all, Version::V2025_03_26).1.contains("elicitation"));
    assert!(promise(all, Version::V2025_11_25).1.contains(r#""sampling":{"tools":{},"context":{}}"#));
    for version in [Version::V2025_03_26, Version::V2025_06_18, Version::V2025_11_25] {
        let understood = understood(all, version);
        assert_eq!(understood.url, version == Version::V2025_11_25);
        assert_eq!(understood.form, version >= Version::V2025_06_18);
    }
}
