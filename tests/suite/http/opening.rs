//! Which era a message belongs to.

use mrtr_core::http::Opening;

use super::message;

#[test]
fn a_message_says_its_era_g44_r052() {
    let modern = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let strange = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{
        "io.modelcontextprotocol/protocolVersion":7}}}"#;
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":1}}}"#;
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let session = ("Mcp-Session-Id", "s");
    let new = ("MCP-Protocol-Version", "2026-07-28");
    let old = ("MCP-Protocol-Version", "2025-11-25");
    let older = ("mcp-protocol-version", " 2025-06-18 ");
    let unknown = ("MCP-Protocol-Version", "v999");
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], Opening);
    let cases: &[Case<'_>] = &[
        // What the body says counts most, also when the headers say something else: that is a mismatch.
        (modern, &[], Opening::Modern),
        (modern, &[new], Opening::Modern),
        (modern, &[old, session], Opening::Modern),
        (strange, &[session], Opening::Modern),
        (bare, &[new], Opening::Modern),
        (bare, &[unknown], Opening::Modern),
        (bare, &[old, new], Opening::Modern),
        (bare, &[old], Opening::Legacy),
        (bare, &[older], Opening::Legacy),
        (bare, &[session], Opening::Legacy),
        (bare, &[session, old], Opening::Legacy),
        (bare, &[], Opening::Unversioned),
        (initialize, &[], Opening::Legacy),
        (initialize, &[old], Opening::Legacy),
        (initialize, &[new], Opening::Modern),
        (initialized, &[session], Opening::Legacy),
        (initialized, &[], Opening::Unversioned),
        (response, &[session, old], Opening::Legacy),
        (response, &[], Opening::Unversioned),
    ];
    for (body, headers, opening) in cases {
        assert_eq!(Opening::judge(*headers, &message(body)), *opening, "{body} {headers:?}");
    }
}
