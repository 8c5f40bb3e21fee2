//! Steps 1 and 2: before the body is read.

use mrtr_core::{
    Limits,
    http::{Accepts, Bind, Gate, GateFault, Ruling, Verdict},
};

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn loopback() -> Gate {
    Gate::new(Bind::Loopback, &Limits::default())
}

fn network() -> Gate {
    Gate::new(Bind::Network, &Limits::default())
}

fn post<'h>(gate: &Gate, headers: &'h [(&'h str, &'h str)]) -> Result<Accepts, GateFault> {
    outcome(gate.check("POST", headers))
}

fn outcome(ruling: Ruling<'_>) -> Result<Accepts, GateFault> {
    match ruling.verdict {
        Verdict::Read(accepts) => Ok(accepts),
        Verdict::Refuse(fault) => Err(fault),
        Verdict::Preflight => panic!("a preflight"),
    }
}

fn by_host(gate: &Gate, host: &str) -> Result<Accepts, GateFault> {
    post(gate, &[("Host", host), JSON])
}

fn by_origin(gate: &Gate, host: &str, origin: &str) -> Result<Accepts, GateFault> {
    post(gate, &[("Host", host), ("Origin", origin), JSON])
}

#[test]
fn a_local_server_is_called_by_its_own_names_only_r159() {
    let gate = loopback();
    for host in [
        "localhost",
        "localhost:3000",
        "LocalHost:1",
        "localhost.",
        "127.0.0.1",
        "127.0.0.1:8080",
        "127.8.9.10",
        "[::1]",
        "[::1]:3000",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]:80",
        "  localhost:3000\t",
    ] {
        assert_eq!(by_host(&gate, host), Ok(Accepts::BOTH), "{host}");
    }
    for host in [
        "evil.example.com",
        "evil.example.com:3000",
        "localhost.evil.example.com",
        "127.0.0.1.evil.example.com",
        "evil.localhost",
        "10.0.0.1",
        "0.0.0.0:3000",
        "[::2]",
        "[::1",
        "::1",
        "localhost:",
        "localhost:x",
        "localhost:99999",
        "localhost:80:80",
        "user@localhost",
        "localhost/path",
        "localhost, evil.example.com",
        "",
    ] {
        // `localhost:` is a host with an empty port by RFC 3986; browsers never send it.
        assert_eq!(by_host(&gate, host), Err(GateFault::Host), "{host}");
    }
    assert_eq!(post(&gate, &[JSON]), Err(GateFault::Host));
    assert_eq!(post(&gate, &[("Host", "localhost"), ("host", "evil.example"), JSON]), Err(GateFault::Host));
    assert!(post(&gate, &[("Host", "localhost"), ("host", "localhost"), JSON]).is_ok());
    assert_eq!(GateFault::Host.class().status(), 403);
}

#[test]
fn a_local_server_takes_local_pages_only_r159() {
    let gate = loopback();
    for origin in ["http://localhost:6274", "https://127.0.0.1", "http://[::1]:80", "HTTP://LOCALHOST"] {
        assert!(by_origin(&gate, "localhost:3000", origin).is_ok(), "{origin}");
    }
    for origin in [
        "http://evil.example.com",
        "https://localhost.evil.example.com",
        "null",
        "",
        "localhost",
        "http://",
        "http://localhost/path",
        "file://localhost",
        "vscode-webview://localhost",
        "http://localhost http://evil.example.com",
    ] {
        assert_eq!(by_origin(&gate, "localhost:3000", origin), Err(GateFault::Origin), "{origin}");
    }
    let twice =
        [("Host", "localhost"), ("Origin", "http://localhost"), ("Origin", "http://evil.example"), JSON];
    assert_eq!(post(&gate, &twice), Err(GateFault::Origin));
    assert_eq!(GateFault::Origin.class().status(), 403);
}

#[test]
fn names_are_allowed_one_by_one_r159() {
    let gate = loopback().allow_host("mcp.example.com").unwrap().allow_host("[2001:db8::1]:8443").unwrap();
    for host in ["mcp.example.com", "MCP.example.com:1", "[2001:db8:0:0::1]:8443", "localhost"] {
        assert!(by_host(&gate, host).is_ok(), "{host}");
    }
    for host in ["example.com", "a.mcp.example.com", "[2001:db8::1]", "[2001:db8::1]:8444"] {
        assert_eq!(by_host(&gate, host), Err(GateFault::Host), "{host}");
    }
    // A page of a host that was allowed may call it; a page of this machine may call a local server.
    assert!(by_origin(&gate, "mcp.example.com", "https://mcp.example.com").is_ok());
    assert!(by_origin(&gate, "mcp.example.com", "https://mcp.example.com:443").is_ok());
    assert!(by_origin(&gate, "mcp.example.com:8443", "https://mcp.example.com:8443").is_ok());
    assert!(by_origin(&gate, "mcp.example.com", "http://localhost:5173").is_ok());
    for (host, origin) in [
        ("mcp.example.com:8443", "https://mcp.example.com"),
        ("mcp.example.com", "https://mcp.example.com:8443"),
        ("mcp.example.com", "https://example.com"),
        ("localhost", "https://mcp.example.com"),
    ] {
        assert_eq!(by_origin(&gate, host, origin), Err(GateFault::Origin), "{host} {origin}");
    }
    for wrong in ["", "a b", "http://mcp.example.com", "mcp.example.com:port", "[mcp]"] {
        assert!(loopback().allow_host(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_server_on_a_network_is_safe_from_rebinding_r159() {
    // Without a list any host is fine, for there is no telling which names a proxy serves ...
    for host in ["mcp.example.com", "anything:80", "10.1.2.3:8080", "localhost"] {
        assert!(by_host(&network(), host).is_ok(), "{host}");
    }
    assert!(post(&network(), &[JSON]).is_ok());
    // ... but then a page is not believed that it comes from here, for its name may be pointed here. One that
    // was loaded from an address was.
    assert_eq!(by_origin(&network(), "evil.example", "http://evil.example"), Err(GateFault::Origin));
    assert!(by_origin(&network(), "10.1.2.3:8080", "http://10.1.2.3:8080").is_ok());
    assert_eq!(by_origin(&network(), "10.1.2.3:8080", "http://10.1.2.3"), Err(GateFault::Origin));
    assert_eq!(by_origin(&network(), "10.1.2.3", "http://localhost"), Err(GateFault::Origin));
    // With a list only what is on it.
    let listed = network().allow_host("mcp.example.com").unwrap();
    assert!(by_origin(&listed, "mcp.example.com", "https://mcp.example.com").is_ok());
    for host in ["evil.example", "10.1.2.3", "localhost"] {
        assert_eq!(by_host(&listed, host), Err(GateFault::Host), "{host}");
    }
    assert_eq!(post(&listed, &[JSON]), Err(GateFault::Host));
}

#[test]
fn pages_of_allowed_origins_are_told_so_r159() {
    let gate = loopback()
        .allow_origin("https://app.example.com")
        .and_then(|gate| gate.allow_origin("vscode-webview://abc"))
        .and_then(|gate| gate.allow_origin("null"))
        .unwrap();
    for origin in ["https://app.example.com", "https://APP.example.com:443", "vscode-webview://abc", "null"] {
        let headers = [("Host", "localhost"), ("Origin", origin), JSON];
        let ruling = gate.check("POST", &headers);
        let mut told = Vec::new();
        ruling.cors.unwrap().each_header(&mut |name, value| told.push(format!("{name}: {value}")));
        assert!(told.contains(&format!("Access-Control-Allow-Origin: {origin}")), "{told:?}");
        assert!(told.contains(&"Vary: Origin".to_owned()));
        assert!(outcome(ruling).is_ok());
    }
    for origin in ["http://app.example.com", "https://app.example.com:444", "https://example.com", "Null"] {
        assert_eq!(by_origin(&gate, "localhost", origin), Err(GateFault::Origin), "{origin}");
    }
    // The host still has to be right.
    assert_eq!(by_origin(&gate, "evil.example", "https://app.example.com"), Err(GateFault::Host));
    // A local page may call, and is not told that it may read: nobody allowed it by name.
    let local = [("Host", "localhost"), ("Origin", "http://localhost:1"), JSON];
    assert!(gate.check("POST", &local).cors.is_none());
    // The page may also read why it was refused.
    let refused = [("Host", "localhost"), ("Origin", "null"), ("Content-Type", "text/plain")];
    let ruling = gate.check("POST", &refused);
    assert!(ruling.cors.is_some());
    assert_eq!(outcome(ruling), Err(GateFault::MediaType));
    for wrong in ["", "app.example.com", "https://", "https://app.example.com/", "*"] {
        assert!(loopback().allow_origin(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn browsers_ask_before_a_page_calls_r159() {
    let gate = loopback().allow_origin("https://app.example.com").unwrap();
    let ask = |origin: &'static str| {
        [
            ("Host", "localhost"),
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
            ("Access-Control-Request-Headers", "content-type,mcp-method,mcp-param-region"),
        ]
    };
    let allowed = ask("https://app.example.com");
    let ruling = gate.check("OPTIONS", &allowed);
    assert_eq!(ruling.verdict, Verdict::Preflight);
    let mut told = Vec::new();
    ruling.cors.unwrap().each_header(&mut |name, value| told.push(format!("{name}: {value}")));
    assert!(told.contains(&"Access-Control-Allow-Methods: POST".to_owned()));
    assert!(
        told.contains(&"Access-Control-Allow-Headers: content-type,mcp-method,mcp-param-region".to_owned())
    );
    assert_eq!(outcome(gate.check("OPTIONS", &ask("https://evil.example"))), Err(GateFault::Origin));
    // Not a question, so a method like any other that is not served.
    let fault = outcome(gate.check("OPTIONS", &ask("http://localhost:5173"))).unwrap_err();
    assert_eq!(fault.class().status(), 405);
    assert_eq!(outcome(gate.check("OPTIONS", &allowed[..2])), Err(GateFault::Method { allow: "POST" }));
}

#[test]
fn only_post_is_served_r171() {
    let headers = [("Host", "localhost"), JSON, ("Mcp-Session-Id", "s"), ("Last-Event-ID", "7")];
    assert!(outcome(loopback().check("POST", &headers)).is_ok());
    for method in ["GET", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH", "post", ""] {
        let fault = outcome(loopback().check(method, &headers)).unwrap_err();
        // No sessions, so neither GET nor DELETE.
        assert_eq!(fault.class().status(), 405, "{method}");
        assert_eq!(fault.allow(), Some("POST"));
    }
    // The host comes first.
    assert_eq!(outcome(loopback().check("GET", &[("Host", "evil.example")])), Err(GateFault::Host));
}

#[test]
fn sessions_of_old_use_get_and_delete_r171() {
    let gate = loopback().serve_sessions();
    let bare = [("Host", "localhost")];
    let stream = [("Host", "localhost"), ("Accept", "text/event-stream")];
    let no_stream = [("Host", "localhost"), ("Accept", "application/json")];
    assert!(outcome(gate.check("DELETE", &bare)).is_ok());
    assert!(outcome(gate.check("GET", &stream)).is_ok());
    assert_eq!(outcome(gate.check("GET", &no_stream)), Err(GateFault::NotAcceptable));
    let fault = outcome(gate.check("PUT", &bare)).unwrap_err();
    assert_eq!(fault.allow(), Some("GET, POST, DELETE"));
}

#[test]
fn the_body_is_said_to_be_json_r158() {
    for content_type in [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=\"UTF-8\"",
        "application/json ; boundary=x",
    ] {
        assert!(
            post(&loopback(), &[("Host", "localhost"), ("Content-Type", content_type)]).is_ok(),
            "{content_type}"
        );
    }
    for content_type in [
        "text/plain",
        "application/jsonp",
        "application/json-rpc",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin1",
        "text/plain; application/json",
        "",
    ] {
        let refused = post(&loopback(), &[("Host", "localhost"), ("Content-Type", content_type)]);
        assert_eq!(refused, Err(GateFault::MediaType), "{content_type}");
    }
    assert_eq!(post(&loopback(), &[("Host", "localhost")]), Err(GateFault::MediaType));
    let twice = [("Host", "localhost"), JSON, ("Content-Type", "text/plain")];
    assert_eq!(post(&loopback(), &twice), Err(GateFault::MediaType));
    let zipped = [("Host", "localhost"), JSON, ("Content-Encoding", "gzip")];
    assert_eq!(post(&loopback(), &zipped), Err(GateFault::MediaType));
    assert!(post(&loopback(), &[("Host", "localhost"), JSON, ("Content-Encoding", "identity")]).is_ok());
    assert_eq!(GateFault::MediaType.class().status(), 415);
}

#[test]
fn the_client_reads_one_of_two_types_r177() {
    let accepts = |values: &[&'static str]| {
        let mut headers = vec![("Host", "localhost"), JSON];
        headers.extend(values.iter().map(|value| ("Accept", *value)));
        outcome(loopback().check("POST", headers.as_slice()))
    };
    assert_eq!(accepts(&[]), Ok(Accepts::BOTH));
    assert_eq!(accepts(&[""]), Ok(Accepts::BOTH));
    for both in [
        "application/json, text/event-stream",
        "text/event-stream,application/json",
        "*/*",
        "application/*, text/*;q=0.1",
        "text/html, */*;q=0.001",
        "APPLICATION/JSON;q=1, Text/Event-Stream; q=0.5",
    ] {
        assert_eq!(accepts(&[both]), Ok(Accepts::BOTH), "{both}");
    }
    assert_eq!(accepts(&["application/json", "text/event-stream"]), Ok(Accepts::BOTH));
    for only in ["application/json", "application/*", "application/json, text/event-stream;q=0"] {
        assert_eq!(accepts(&[only]), Ok(Accepts::JSON), "{only}");
    }
    for only in
        ["text/event-stream", "text/*, text/html", "*/*, application/json;q=0.000", "application/*;q=0, */*"]
    {
        assert_eq!(accepts(&[only]), Ok(Accepts::EVENT_STREAM), "{only}");
    }
    for neither in ["text/html", "image/*", "*/*;q=0", "application/json;q=0, text/event-stream;q=0.0"] {
        assert_eq!(accepts(&[neither]), Err(GateFault::NotAcceptable), "{neither}");
    }
    assert_eq!(GateFault::NotAcceptable.class().status(), 406);
}

#[test]
fn the_body_is_said_to_be_within_the_limit() {
    // Design decision 13: limits before buffering.
    let mut limits = Limits::default();
    limits.message_bytes = 1000;
    let gate = Gate::new(Bind::Loopback, &limits);
    let length = |value: &str| post(&gate, &[("Host", "localhost"), JSON, ("Content-Length", value)]);
    assert!(length("0").is_ok());
    assert!(length("1000").is_ok());
    assert_eq!(length("1001"), Err(GateFault::TooLarge { limit: 1000 }));
    assert_eq!(length("99999999999999999999999999"), Err(GateFault::TooLarge { limit: 1000 }));
    for wrong in ["", "-1", "+1", "0x10", "1, 1", "1e3"] {
        assert_eq!(length(wrong), Err(GateFault::Length), "{wrong}");
    }
    assert_eq!(GateFault::TooLarge { limit: 1000 }.class().status(), 413);
    assert_eq!(GateFault::Length.class().status(), 400);
}

#[test]
fn a_refusal_is_an_error_without_an_id_r159_r003() {
    for fault in [
        GateFault::Host,
        GateFault::Origin,
        GateFault::Method { allow: "POST" },
        GateFault::MediaType,
        GateFault::NotAcceptable,
        GateFault::TooLarge { limit: 1 },
        GateFault::Length,
    ] {
        let mut body = Vec::new();
        fault.write(&mut body);
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["error"]["code"], -32600);
        assert!(body["error"]["message"].as_str().unwrap().contains(&fault.to_string()));
        assert!(body.get("id").is_none());
        assert_eq!(fault.allow().is_some(), fault.class().status() == 405);
    }
}
