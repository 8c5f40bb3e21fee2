//! What is read of a request's headers, for adapters that hand over nothing else.

use std::sync::Mutex;

use mrtr_core::{
    Entropy, Limits, Timestamp,
    catalog::{Catalog, Tool},
    handler::Reception,
    http::{Bind, Gate, Headers, name},
    seal::Principal,
    server::RoundEnv,
};
use serde_json::json;

use super::{config, kit, world};

/// Headers that note what is looked for.
struct Noted<'h> {
    sent: &'h [(&'h str, &'h str)],
    read: Mutex<Vec<String>>,
}

impl<'h> Noted<'h> {
    fn new(sent: &'h [(&'h str, &'h str)]) -> Self {
        Self { sent, read: Mutex::default() }
    }

    /// Nothing was looked for but these.
    fn only(&self, names: &[&str]) {
        let read = self.read.lock().unwrap();
        assert!(!read.is_empty());
        for read in &*read {
            assert!(names.iter().any(|name| name.eq_ignore_ascii_case(read)), "{read} is not in the list");
        }
    }
}

impl Headers for Noted<'_> {
    fn get_all<'h>(&'h self, name: &str, each: &mut dyn FnMut(&'h [u8])) {
        self.read.lock().unwrap().push(name.into());
        self.sent.get_all(name, each);
    }
}

/// R-159, R-170: the steps before the body.
#[test]
fn the_gate_reads_what_is_listed() {
    let limits = Limits::default();
    let gates = [
        Gate::new(Bind::Loopback, &limits),
        Gate::new(Bind::Network, &limits).allow_origin("https://page.example").unwrap(),
        Gate::new(Bind::Network, &limits).allow_host("mcp.example").unwrap(),
    ];
    let json = ("content-type", "application/json");
    let page = ("origin", "https://page.example");
    let all = [name::READ.as_slice(), &name::ASKED_BY_BROWSERS].concat();
    for gate in &gates {
        for method in ["POST", "GET", "DELETE", "OPTIONS"] {
            for host in [("host", "localhost"), ("host", "mcp.example")] {
                for sent in [vec![host], vec![host, json], vec![host, json, ("content-length", "9")]] {
                    let noted = Noted::new(&sent);
                    let _ = gate.check(method, &noted);
                    noted.only(&name::READ);
                    let sent: Vec<_> = sent.into_iter().chain([page]).collect();
                    let noted = Noted::new(&sent);
                    let _ = gate.check(method, &noted);
                    noted.only(&all);
                }
            }
        }
    }
}

/// R-161 to R-164, R-170, R-173: the steps after it, of every kind of request.
#[test]
fn a_server_reads_what_is_listed() {
    let service = kit(config());
    let mut world = world();
    let all = [name::READ.as_slice(), &["Mcp-Param-Region", "Mcp-Param-Size"]].concat();
    for (method, params) in [
        ("tools/call", json!({"name": "form"})),
        ("tools/call", json!({"name": "header", "arguments": {"region": "eu", "size": 3}})),
        ("tools/call", json!({"name": "nothing"})),
        ("tools/list", json!({})),
        ("prompts/get", json!({"name": "greet", "arguments": {"who": "Ada"}})),
        ("resources/read", json!({"uri": "r:plain"})),
        ("server/discover", json!({})),
        ("tools/unknown", json!({})),
    ] {
        let message = world.request(method, params.clone()).to_string();
        let target = params.get("name").or(params.get("uri")).and_then(|name| name.as_str()).unwrap_or("");
        let sent = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
            ("mcp-name", target),
            ("mcp-param-region", "eu"),
            ("mcp-param-size", "3"),
        ];
        let noted = Noted::new(&sent);
        let env = RoundEnv::new(Timestamp::from_unix_millis(1), Entropy::new([1; 32]), Principal::Anonymous);
        let reception = service.receive(message.as_bytes(), env.with_headers(&noted));
        assert!(matches!(reception, Reception::Run(_) | Reception::Reply { .. }));
        drop(reception);
        noted.only(&all);
    }
}

/// R-173: which of the `Mcp-Param-*` a catalog reads.
#[test]
fn a_catalog_names_its_headers_r173() {
    let mut catalog = Catalog::new();
    for (tool, schema) in [
        ("a", r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#),
        ("b", r#"{"type":"object"}"#),
        ("c", r#"{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}"#),
        ("d", r#"{"type":"object","properties":{"zone":{"type":"string","x-mcp-header":"REGION"}}}"#),
    ] {
        catalog.add_tool(Tool::new(tool, "").input_schema(schema), ()).unwrap();
    }
    // Two tools with one header do not read it twice.
    assert_eq!(catalog.param_headers(), ["Mcp-Param-N", "Mcp-Param-Region"]);
}
