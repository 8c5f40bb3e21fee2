//! A server of the eras with sessions that refuses the answer to its own question: the call ends, and nobody waits for its
//! timeout.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use mrtr_tokio::client::{CallError, Client, Options};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::support::{Table, client_config};

/// Asks on the stream of a call, and has this status for the answer. Its url, and the methods that it was told.
pub(crate) async fn server(status: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(reply(stream, status, Arc::clone(&tell)));
        }
    });
    (url, told)
}

async fn reply(stream: TcpStream, status: &str, told: Arc<Mutex<Vec<String>>>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = json["method"].as_str().unwrap_or(if body.is_empty() { "" } else { "answer" });
    told.lock().unwrap().push(method.to_owned());
    let whole = |status: &str, more: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\n{more}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let said = match method {
        _ if head.contains("mcp-method") => whole("400 Bad Request", "", "what is that"),
        "initialize" => {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"old","version":"1"}}}}}}"#,
                json["id"]
            );
            whole("200 OK", "Content-Type: application/json\r\nMcp-Session-Id: s1\r\n", &body)
        }
        "tools/call" => {
            let ask = r#"{"jsonrpc":"2.0","id":"ask","method":"elicitation/create","params":{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}"#;
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            stream.write_all(format!("{head}data: {ask}\n\n").as_bytes()).await.unwrap();
            // Open until the client closes it.
            let _ = stream.read_u8().await;
            return;
        }
        "answer" => whole(status, "", ""),
        "" => whole("405 Method Not Allowed", "", ""),
        _ => whole("202 Accepted", "", ""),
    };
    let _ = stream.write_all(said.as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[tokio::test]
async fn a_refused_answer_ends_its_call_at_once_r_239() {
    for status in ["400 Bad Request", "500 Internal Server Error"] {
        let (url, told) = server(status).await;
        let client = Client::http(&url, client_config(), Options::default()).unwrap();
        let table = Table::naming("Ada");
        let ended = timeout(Duration::from_secs(20), client.call_tool("greet", "{}", &table)).await;
        let error = ended.expect("it waits for nothing").unwrap_err();
        assert!(matches!(error, CallError::Wire(_)), "{error}");
        let said = error.to_string();
        assert!(said.contains("did not accept an answer") && said.contains(&status[..3]), "{said}");
        // The server, which still waits, is told; and the session goes on.
        client.close().await;
        let told = told.lock().unwrap().clone();
        assert_eq!(told.iter().filter(|method| *method == "notifications/cancelled").count(), 1, "{told:?}");
    }
}
