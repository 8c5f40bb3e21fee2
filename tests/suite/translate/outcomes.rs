//! Results and errors of the outer call: BT-6.

use mrtr_core::{
    ErrorCode, RpcError,
    translate::{NoUrls, error_to_legacy, error_to_modern, result_to_legacy, result_to_modern, url_required},
    wire::Version,
};

use super::{json, written};

const INFO: &str = r#"{"name":"up","version":"3"}"#;

fn modern(method: &str, result: &str) -> String {
    written(|out| result_to_modern(out, method, json(result), Some(json(INFO))))
}

fn legacy(method: &str, result: &str) -> String {
    written(|out| result_to_legacy(out, method, json(result), Version::V2025_11_25))
}

/// BT-6, R-012, R-036, R-260: stamped; G-34: whatever a legacy server says a result is.
#[test]
fn results_for_a_modern_host_bt6_g34_g40_r260() {
    assert_eq!(
        modern(
            "tools/call",
            r#"{"content":[{"type":"text","text":"a"}], "structuredContent":{"n":9007199254740993},"x":[1.0]}"#
        ),
        concat!(
            r#"{"content":[{"type":"text","text":"a"}], "structuredContent":{"n":9007199254740993},"x":[1.0],"resultType":"complete","#,
            r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up","version":"3"}}}"#
        )
    );
    assert_eq!(
        modern("tools/call", r#"{"resultType":"input_required","content":[],"_meta":{"v":1}}"#),
        r#"{"content":[],"_meta":{"v":1,"io.modelcontextprotocol/serverInfo":{"name":"up","version":"3"}},"resultType":"complete"}"#
    );
    // G-40, R-201: hints where the method has them, the most careful ones.
    let read = modern("resources/read", r#"{"ttlMs":60000,"contents":[]}"#);
    assert!(
        read.starts_with(r#"{"contents":[],"resultType":"complete","ttlMs":0,"cacheScope":"private","#),
        "{read}"
    );
    assert!(modern("prompts/list", "{}").contains("ttlMs"));
    assert!(!modern("completion/complete", "{}").contains("ttlMs"));
}

/// BT-6: tools without `execution`; R-174: without annotations that would make a modern client drop the tool.
#[test]
fn tools_for_a_modern_host_bt6_r174() {
    let tools = concat!(
        r#"{"tools":[{"name":"a","execution":{"taskSupport":"required"},"annotations":{"readOnlyHint":true},"#,
        r#""inputSchema":{"type":"object","properties":{"p":{"type":"string","x-mcp-header":"P"}}}},"#,
        r#"{"name":"b","inputSchema":{"type":"object","properties":{"p":{"x-mcp-header":"no good","type":"string"},"q":{"type":"object","x-mcp-header":"Q"}},"default":"x-mcp-header"}}]}"#
    );
    assert!(modern("tools/list", tools).starts_with(concat!(
        r#"{"tools":[{"name":"a","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"p":{"type":"string","x-mcp-header":"P"}}}},"#,
        r#"{"name":"b","inputSchema":{"type":"object","properties":{"p":{"type":"string"},"q":{"type":"object"}},"default":"x-mcp-header"}}],"resultType""#
    )));
}

/// BT-6, B-06, R-244: nothing of the modern era gets through.
#[test]
fn results_for_a_legacy_host_bt6_b06_r244() {
    assert_eq!(
        legacy(
            "tools/call",
            r#"{"resultType":"complete", "content":[],"structuredContent":[1],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"},"v":1}}"#
        ),
        r#"{"_meta":{"v":1},"content":[{"type":"text","text":"[1]"}]}"#
    );
    assert_eq!(
        legacy(
            "tools/call",
            r#"{"resultType":"complete","content":[{"type":"text","text":"t"}],"structuredContent":"s","_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#
        ),
        r#"{"content":[{"type":"text","text":"t"}]}"#
    );
    assert_eq!(
        legacy(
            "tools/list",
            r#"{"tools":[{"name":"a","outputSchema":{"type":"array"}},{"name":"b","outputSchema":{"type":"object"}}],"ttlMs":5,"cacheScope":"public","nextCursor":"c"}"#
        ),
        r#"{"tools":[{"name":"a"},{"name":"b","outputSchema":{"type":"object"}}],"nextCursor":"c"}"#
    );
    let old = written(|out| {
        result_to_legacy(
            out,
            "tools/call",
            json(r#"{"content":[],"structuredContent":{"a":1}}"#),
            Version::V2025_03_26,
        )
    });
    assert_eq!(old, r#"{"content":[{"type":"text","text":"{\"a\":1}"}]}"#);
    assert_eq!(
        legacy(
            "resources/read",
            r#"{"resultType":"complete","contents":[],"ttlMs":0,"cacheScope":"private"}"#
        ),
        r#"{"contents":[]}"#
    );
}

fn error(code: i64, data: Option<&str>) -> RpcError {
    let error = RpcError::new(ErrorCode::new(code), "said");
    match data {
        Some(data) => error.with_data(&serde_json::from_str::<serde_json::Value>(data).unwrap()).unwrap(),
        None => error,
    }
}

/// BT-6, R-024, R-261: codes by era.
#[test]
fn errors_by_era_bt6_r261_r260() {
    let shown = |error: RpcError| (error.code.get(), error.data().map(|data| data.as_str().to_owned()));
    let uri = Some("file:///a");
    assert_eq!(
        shown(error_to_modern(error(-32002, None), uri)),
        (-32602, Some(r#"{"uri":"file:///a"}"#.into()))
    );
    assert_eq!(
        shown(error_to_modern(error(-32002, Some(r#"{"uri":"file:///b"}"#)), uri)),
        (-32602, Some(r#"{"uri":"file:///b"}"#.into()))
    );
    for code in [-32020, -32021, -32022, -32042] {
        let translated = error_to_modern(error(code, Some(r#"{"requiredCapabilities":{}}"#)), uri);
        assert_eq!(
            shown(translated),
            (-32603, Some(format!(r#"{{"cause":{{"code":{code},"message":"said"}}}}"#)))
        );
    }
    for code in [-32601, -32602, -32603, -1, 7] {
        assert_eq!(error_to_modern(error(code, Some("{\"a\":1}")), uri), error(code, Some("{\"a\":1}")));
    }
    let named = error(-32602, Some(r#"{"uri":"file:///a"}"#));
    assert_eq!(error_to_legacy(named.clone(), uri).code.get(), -32002);
    assert_eq!(error_to_legacy(named.clone(), Some("file:///b")).code.get(), -32602);
    assert_eq!(error_to_legacy(named, None).code.get(), -32602);
    assert_eq!(
        shown(error_to_legacy(error(-32021, Some(r#"{"requiredCapabilities":{"roots":{}}}"#)), uri)),
        (-32603, Some(r#"{"requiredCapabilities":{"roots":{}}}"#.into()))
    );
    for code in [-32020, -32022] {
        assert_eq!(error_to_legacy(error(code, None), uri).code.get(), -32603);
    }
}

/// R-235, BT-6: the urls of `-32042`; empty or malformed data is no list.
#[test]
fn urls_that_are_required_r235_bt6() {
    let urls =
        r#"{"elicitations":[{"mode":"url","elicitationId":"e","message":"m","url":"https://x.example/"}]}"#;
    let found = url_required(&error(-32042, Some(urls))).unwrap().unwrap();
    assert_eq!(
        (&*found[0].elicitation_id, &*found[0].message, &*found[0].url),
        ("e", "m", "https://x.example/")
    );
    assert_eq!(url_required(&error(-32603, Some(urls))), Ok(None));
    for data in [
        None,
        Some("{}"),
        Some(r#"{"elicitations":[]}"#),
        Some(r#"{"elicitations":[{"url":"u","message":"m"}]}"#),
        Some("[1]"),
    ] {
        assert_eq!(url_required(&error(-32042, data)), Err(NoUrls));
    }
    let many = format!(
        r#"{{"elicitations":[{}]}}"#,
        vec![r#"{"elicitationId":"e","message":"m","url":"u"}"#; 65].join(",")
    );
    assert_eq!(url_required(&error(-32042, Some(&many))), Err(NoUrls));
}
