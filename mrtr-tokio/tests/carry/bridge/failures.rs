//! Upstreams over HTTP that give no response: what their host hears, and what it never hears.

use super::*;

/// What no host may ever see: it stands in the body, in the url and in the token.
const SECRET: &str = "s3cr3t";

/// Says the same to every request, and closes.
async fn server(reply: String) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let reply = reply.clone();
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                while !bytes.ends_with(b"}") {
                    if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                let _ = stream.write_all(reply.as_bytes()).await;
            });
        }
    });
    address
}

fn whole(status: &str, more: &str, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{more}Connection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The error that a modern host gets, of an upstream of this era at this address.
async fn modern(address: std::net::SocketAddr, era: Era) -> Value {
    let mut options = client::Options::default();
    options.authorize = Some(Arc::new(Bearer::new(SECRET).unwrap()));
    let reach = Reach::url(&format!("http://{address}/mcp?key={SECRET}"), &options).unwrap();
    let fronted = front(bridge(reach, era), Anonymous::new()).await;
    let (status, mut reply) = fronted.modern("", &call(1, "t", "{}")).await;
    assert_eq!(status, 200, "{reply}");
    fronted.end().await;
    reply["error"].take()
}

/// R-019, R-257, BT-6: the host learns of what kind the failure is; never the upstream's body, its url or the token.
#[tokio::test]
async fn hosts_learn_why_and_no_secrets() {
    let page = format!("<html>{SECRET}</html>");
    let html = |status: &str, more: &str| whole(status, more, "text/html", &page);
    let error = format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32001,"message":"{SECRET}"}}}}"#);
    let events = |body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
        )
    };
    let cases = [
        (
            html("401 Unauthorized", &format!("WWW-Authenticate: Bearer realm=\"{SECRET}\"\r\n")),
            json!({"kind": "unauthorized", "status": 401}),
        ),
        (
            whole("401 Unauthorized", "", "application/json", &error),
            json!({"kind": "unauthorized", "status": 401}),
        ),
        (whole("403 Forbidden", "", "application/json", &error), json!({"kind": "forbidden", "status": 403})),
        (html("403 Forbidden", ""), json!({"kind": "forbidden", "status": 403})),
        (html("404 Not Found", ""), json!({"kind": "not_found", "status": 404})),
        (
            html("429 Too Many Requests", "Retry-After: 3\r\n"),
            json!({"kind": "too_many_requests", "status": 429, "retryAfterMs": 3000}),
        ),
        (
            html("429 Too Many Requests", "Retry-After: soon\r\n"),
            json!({"kind": "too_many_requests", "status": 429}),
        ),
        (html("503 Service Unavailable", ""), json!({"kind": "unavailable", "status": 503})),
        (html("502 Bad Gateway", ""), json!({"kind": "http_status", "status": 502})),
        (html("400 Bad Request", ""), json!({"kind": "http_status", "status": 400})),
        (html("200 OK", ""), json!({"kind": "no_message"})),
        (
            whole("302 Found", &format!("Location: https://{SECRET}.example/\r\n"), "text/html", ""),
            json!({"kind": "redirected"}),
        ),
        // Broken off: in the head, in a body whose length is known, in a stream; and one that just ends.
        ("HTTP/1.1 200 OK\r\nContent-".into(), json!({"kind": "broken"})),
        (
            whole("200 OK", "", "application/json", "{").replace("Length: 1", "Length: 9"),
            json!({"kind": "broken"}),
        ),
        // A page that broke off has still said its status.
        (
            html("503 Service Unavailable", "").replace("</html>", ""),
            json!({"kind": "unavailable", "status": 503}),
        ),
        (events("5\r\n: a\n\n\r\n"), json!({"kind": "broken"})),
        (events("5\r\n: a\n\n\r\n0\r\n\r\n"), json!({"kind": "broken"})),
        (events("not a chunk"), json!({"kind": "broken"})),
    ];
    for era in [Era::Modern, Era::Legacy] {
        for (reply, data) in &cases {
            let error = modern(server(reply.clone()).await, era).await;
            assert_eq!((&error["code"], &error["data"]), (&json!(-32603), data), "{era:?} {reply}: {error}");
            assert!(!error.to_string().contains(SECRET), "{error}");
        }
    }
    // Nobody listens there any more.
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = modern(gone, Era::Modern).await;
    assert_eq!(
        (&error["code"], &error["data"]),
        (&json!(-32603), &json!({"kind": "unreachable"})),
        "{error}"
    );
    // What the server says of the request by JSON-RPC is its response, whatever the status.
    let said =
        whole("503 Service Unavailable", "", "application/json", &error_of(-32050, "closed on Mondays"));
    assert_eq!(
        modern(server(said).await, Era::Modern).await,
        json!({"code": -32050, "message": "closed on Mondays"})
    );
}

fn error_of(code: i64, message: &str) -> String {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}}).to_string()
}

/// BT-6: a legacy host hears the same.
#[tokio::test]
async fn a_legacy_host_learns_it_too() {
    let page = whole("429 Too Many Requests", "Retry-After: 9\r\n", "text/plain", SECRET);
    let reach =
        Reach::url(&format!("http://{}/mcp", server(page).await), &client::Options::default()).unwrap();
    let fronted = front(bridge(reach, Era::Modern), Anonymous::new()).await;
    // Who the server is has to be asked before anything, and is not found out either.
    let (status, head, body) = fronted.ask("POST", "/mcp", LEGACY, &initialize()).await;
    assert!(!head.contains("mcp-session-id"), "{head}");
    let reply: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &reply["error"]["code"]), (200, &json!(-32603)), "{body}");
    assert_eq!(
        reply["error"]["data"],
        json!({"kind": "too_many_requests", "status": 429, "retryAfterMs": 9000})
    );
    assert!(!body.contains(SECRET));
    fronted.end().await;
}

/// Says a line of 5 MiB for what has `long` in it, with its id in front or nowhere, and answers the rest.
const LONG: &str = r#"while read -r line; do id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); case "$line" in
    *long*) printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[{"type":"text","text":"' "$id"
        head -c 5242880 /dev/zero | tr '\0' x; echo '"}]}}';;
    *hidden*) printf '{"result":{"content":[{"type":"text","text":"'; head -c 5242880 /dev/zero | tr '\0' x; echo '"}]}}';;
    *) echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","content":[{"type":"text","text":"'$$'"}]}}';; esac; done"#;

/// R-185: a process that says a line over the bound stays; the call that it answered fails, and says why.
#[tokio::test]
async fn a_line_over_the_bound_costs_one_call_and_no_process() {
    let (reach, _lines) = shell(LONG);
    let fronted = front(bridge(reach, Era::Modern), Anonymous::new()).await;
    let short = async |id: u32| {
        fronted.modern("", &call(id, "short", "{}")).await.1["result"]["content"][0]["text"].clone()
    };
    let process = short(1).await;
    for (id, tool) in [(2, "long"), (3, "hidden"), (4, "long")] {
        let (status, reply) = fronted.modern("", &call(id, tool, "{}")).await;
        assert_eq!(
            (status, &reply["id"], &reply["error"]["code"]),
            (200, &json!(id), &json!(-32603)),
            "{tool}"
        );
        assert_eq!(reply["error"]["data"], json!({"kind": "too_large"}), "{tool}");
    }
    assert!(process.is_string());
    assert_eq!(short(5).await, process, "the same process");
    fronted.end().await;
}

/// R-239, B-60: an upstream that does not accept the answer to its own question is not waited for: the host hears why, and
/// the call is cancelled there.
#[tokio::test]
async fn a_refused_answer_ends_its_call_at_once() {
    let (url, told) = crate::unaccepted::server("403 Forbidden").await;
    let reach = Reach::url(&url, &client::Options::default()).unwrap();
    let fronted = front(bridge(reach, Era::Legacy), Anonymous::new()).await;
    let client =
        Client::http(&format!("http://{}/mcp", fronted.address), client_config(), client::Options::default());
    let (client, table) = (client.unwrap(), Table::new([("u1", Answer::Accept(r#"{"name":"Ada"}"#.into()))]));
    let ended = tokio::time::timeout(Duration::from_secs(20), client.call_tool("greet", "{}", &table)).await;
    let Err(client::CallError::Peer(error)) = ended.expect("it waits for nothing") else { panic!() };
    let data: Value = serde_json::from_str(error.data().unwrap().as_str()).unwrap();
    assert_eq!(
        (error.code, data),
        (mrtr_core::ErrorCode::INTERNAL_ERROR, json!({"kind": "forbidden", "status": 403}))
    );
    fronted.end().await;
    let told = told.lock().unwrap().clone();
    assert_eq!(told.iter().filter(|method| *method == "notifications/cancelled").count(), 1, "{told:?}");
}
