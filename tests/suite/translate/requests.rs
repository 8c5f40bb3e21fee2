//! Parameters of requests: BT-8, R-093, R-258.

use mrtr_core::{
    jsonrpc::RequestId,
    translate::{ModernMeta, params_to_legacy, params_to_modern},
    wire::{Implementation, LogLevel},
};
use proptest::prelude::*;

use super::{json, written};

/// BT-8: the protocol's members of `_meta` stay on their leg; vendors' ones and `traceparent` cross.
#[test]
fn params_for_a_legacy_server_bt8_r258() {
    let params = concat!(
        r#"{"name":"t", "arguments":{"n":18446744073709551616,"e":1e5},"unknown":[ ],"_meta":{"#,
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","traceparent":"00-a-b-01","progressToken":"host's","#,
        r#""io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info"},"#,
        r#""inputResponses":{"a":{}},"requestState":"s"}"#
    );
    let own = RequestId::from(5);
    let of = |params, token| written(|out| params_to_legacy(out, json(params), token));
    assert_eq!(
        of(params, Some(&own)),
        r#"{"name":"t", "arguments":{"n":18446744073709551616,"e":1e5},"unknown":[ ],"_meta":{"traceparent":"00-a-b-01","progressToken":5}}"#
    );
    assert_eq!(of(r#"{"_meta":{"io.modelcontextprotocol/clientInfo":{}}}"#, None), "{}");
    assert_eq!(of("{}", Some(&own)), r#"{"_meta":{"progressToken":5}}"#);
    assert_eq!(of(r#"{"a":1}"#, Some(&own)), r#"{"a":1,"_meta":{"progressToken":5}}"#);
}

/// BT-8, R-032: `_meta` of this leg; R-089, R-090: answers and state where there are any, the state to the byte.
#[test]
fn params_for_a_modern_server_bt8_r032_r089() {
    let client = Implementation::new("bridge", "1");
    let token = RequestId::from("p");
    let mut meta = ModernMeta { client: &client, capabilities: "{}", log_level: None, progress_token: None };
    let of = |params: Option<&str>, meta: &ModernMeta<'_>, answers: Option<&[u8]>, state| {
        written(|out| params_to_modern(out, params.map(json), meta, answers, state))
    };
    let base = concat!(
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bridge","version":"1"},"#,
        r#""io.modelcontextprotocol/clientCapabilities":{}"#
    );
    assert_eq!(of(None, &meta, None, None), format!(r#"{{"_meta":{{{base}}}}}"#));
    let params = r#"{"name":"t","task":{"ttl":1},"arguments":{"a":1.0},"_meta":{"v":1,"progressToken":9}}"#;
    (meta.log_level, meta.progress_token) = (Some(LogLevel::Debug), Some(&token));
    assert_eq!(
        of(Some(params), &meta, Some(br#"{"k":{"action":"cancel"}}"#), Some(r#""\u0061""#)),
        format!(
            r#"{{"name":"t","arguments":{{"a":1.0}},"_meta":{{"v":1,{base},"io.modelcontextprotocol/logLevel":"debug","progressToken":"p"}},"inputResponses":{{"k":{{"action":"cancel"}}}},"requestState":"\u0061"}}"#
        )
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// B-68, W-03: whatever members a caller has beside those the bridge owns, they arrive in their order and spelling.
    #[test]
    fn unknown_members_pass_untouched_b68_w03(names in prop::collection::btree_set("[a-z]{1,6}\\PC{0,3}", 0..8), space in "[ \t\r\n]{0,3}") {
        let mut members = String::new();
        for (index, name) in names.iter().enumerate() {
            let name = serde_json::to_string(name).unwrap();
            members += &format!("{}{name}{space}:{space}{index}.{index}e+0{index}", if index == 0 { "" } else { "," });
        }
        let expected: String = format!("{{{members}}}").chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
        let text = format!("{{{members}}}");
        prop_assert_eq!(written(|out| params_to_legacy(out, json(&text), None)), expected);
    }
}
