//! Services with handlers that tests can see into, and a peer that speaks HTTP byte by byte.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use mrtr_core::{
    Limits,
    catalog::Tool,
    client::{Answerer, Answering, Config as ClientConfig, Elicit, ElicitUrl, NotAnswered, Question},
    form::{Elicited, Field, Form},
    handler::{Ctx, RpcError, Service, ToolResult},
    server::{Config, Server},
    wire::{Action, ClientCapabilities, Implementation},
};
use mrtr_tokio::{
    keys::KeySource,
    server::{self, Endpoint, Options},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Notify, mpsc, oneshot},
    task::JoinHandle,
};

/// What happens in handlers, as tests see it.
pub(crate) struct Seen {
    pub(crate) events: mpsc::UnboundedReceiver<&'static str>,
    /// Lets one handler or commit that waits go on.
    pub(crate) go: Arc<Notify>,
}

impl Seen {
    pub(crate) async fn next(&mut self) -> &'static str {
        self.events.recv().await.unwrap()
    }
}

/// Says when it is dropped.
struct Witness(mpsc::UnboundedSender<&'static str>, &'static str);

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

#[derive(serde::Deserialize)]
struct Named {
    name: String,
}

pub(crate) fn service(limits: Limits) -> (Service, Seen) {
    let (sender, events) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let sealer = KeySource::Bytes(&[7; 32]).sealer("tests").unwrap();
    let mut config = Config::new(Implementation::new("tests", "1"), sealer);
    config.limits = limits;
    let (waiting, waiting_go) = (sender.clone(), go.clone());
    let (committing, committing_go) = (sender.clone(), go.clone());
    let service = Service::new(Server::new(config))
        .announce_changes()
        .tool(Tool::new("echo", "Gives the text back."), |ctx: Ctx| async move {
            Ok::<_, RpcError>(ToolResult::text(ctx.argument::<String>("text")?))
        })
        .unwrap()
        .tool(Tool::new("wait", "Waits until it may go on."), move |ctx: Ctx| {
            let (events, go) = (waiting.clone(), waiting_go.clone());
            async move {
                let _witness = Witness(events.clone(), "dropped");
                ctx.progress(1.0, None, None);
                let _ = events.send("waiting");
                go.notified().await;
                Ok::<_, RpcError>(ToolResult::text("went on"))
            }
        })
        .unwrap()
        .tool(Tool::new("commit", "Has an effect that takes a while."), move |ctx: Ctx| {
            let (events, go) = (committing.clone(), committing_go.clone());
            async move {
                ctx.on_commit_async(move || async move {
                    let _ = events.send("committing");
                    go.notified().await;
                    let _ = events.send("committed");
                    Ok(())
                });
                Ok::<_, RpcError>(ToolResult::text("done"))
            }
        })
        .unwrap()
        .tool(Tool::new("name", "Asks for a name, then for a yes to it."), |ctx: Ctx| async move {
            let form =
                Form::builder("Your name?").field(Field::string("name").min_length(2).required()).build();
            let form = form.map_err(|error| RpcError::internal(error.to_string()))?;
            let Elicited::Accept(Named { name }) = ctx.elicit("name", &form).await? else {
                return Ok::<_, RpcError>(ToolResult::text("nobody"));
            };
            match ctx.confirm("sure", format!("Are you {name}?")).await? {
                Action::Accept => Ok(ToolResult::text(format!("Hello, {name}!"))),
                Action::Decline | Action::Cancel => Ok(ToolResult::text("nobody")),
            }
        })
        .unwrap()
        .tool(Tool::new("who", "Says who calls."), |ctx: Ctx| async move {
            let who = ctx.principal().map_or("nobody".into(), String::from_utf8_lossy).into_owned();
            Ok::<_, RpcError>(ToolResult::text(who))
        })
        .unwrap()
        .tool(
            Tool::new("mirrored", "Wants its region in a header.").input_schema(
                r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#,
            ),
            |ctx: Ctx| async move { Ok::<_, RpcError>(ToolResult::text(ctx.argument::<String>("region")?)) },
        )
        .unwrap();
    (service, Seen { events, go })
}

/// A server on a loopback socket.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stop: Option<oneshot::Sender<()>>,
    pub(crate) ended: JoinHandle<std::io::Result<()>>,
}

impl Running {
    pub(crate) async fn start(endpoint: Endpoint, options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async {
            let _ = stopped.await;
        };
        let ended = tokio::spawn(server::serve(listener, endpoint, options, shutdown));
        Self { address, stop: Some(stop), ended }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) async fn connect(&self) -> Raw {
        Raw { stream: TcpStream::connect(self.address).await.unwrap(), held: Vec::new() }
    }
}

/// `tools/call`, whole.
pub(crate) fn call(id: u32, tool: &str, arguments: &str) -> String {
    request(id, "tools/call", &format!("\"name\":\"{tool}\",\"arguments\":{arguments},"), "")
}

/// A request with a progress token, whose handler therefore may open the stream.
pub(crate) fn call_with_progress(id: u32, tool: &str) -> String {
    request(id, "tools/call", &format!("\"name\":\"{tool}\",\"arguments\":{{}},"), ",\"progressToken\":1")
}

pub(crate) fn request(id: u32, method: &str, params: &str, meta: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{{params}\"_meta\":{{\
         \"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
         \"io.modelcontextprotocol/clientCapabilities\":{{\"elicitation\":{{}}}}{meta}}}}}}}"
    )
}

/// The headers that the core wants to see for this body.
pub(crate) fn headers(body: &str) -> Vec<(String, String)> {
    let message = mrtr_core::jsonrpc::admit(body.as_bytes(), &Limits::default()).unwrap();
    let headers = mrtr_core::http::request_headers(&message, mrtr_core::http::ParamHeaders::NONE).unwrap();
    headers.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// A peer that speaks HTTP byte by byte.
pub(crate) struct Raw {
    stream: TcpStream,
    held: Vec<u8>,
}

pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Raw {
    /// Posts a message to `/mcp`, with further header lines.
    pub(crate) async fn post(&mut self, body: &str, more: &str) {
        let mut head = String::from("POST /mcp HTTP/1.1\r\n");
        if !more.starts_with("Host:") {
            head.push_str("Host: localhost\r\n");
        }
        for (name, value) in headers(body) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.write(&format!("{head}{more}Content-Length: {}\r\n\r\n{body}", body.len())).await;
    }

    pub(crate) async fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads until `found` has been seen; gives everything before it, and it.
    pub(crate) async fn until(&mut self, found: &str) -> String {
        loop {
            if let Some(at) = self.held.windows(found.len()).position(|window| window == found.as_bytes()) {
                let rest = self.held.split_off(at + found.len());
                return String::from_utf8(std::mem::replace(&mut self.held, rest)).unwrap();
            }
            let read = self.stream.read_buf(&mut self.held).await.unwrap();
            assert!(read > 0, "closed before {found:?}: {}", String::from_utf8_lossy(&self.held));
        }
    }

    /// Reads a response whose length is known.
    pub(crate) async fn response(&mut self) -> Response {
        let head = self.until("\r\n\r\n").await.to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head
            .split("content-length: ")
            .nth(1)
            .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse().unwrap());
        while self.held.len() < length {
            assert!(self.stream.read_buf(&mut self.held).await.unwrap() > 0);
        }
        let rest = self.held.split_off(length);
        let body = String::from_utf8(std::mem::replace(&mut self.held, rest)).unwrap();
        Response { status, head, body }
    }

    /// Reads to the end of a chunked response.
    pub(crate) async fn rest_of_chunks(&mut self) -> String {
        self.until("\r\n0\r\n\r\n").await
    }

    /// Reads to the end of the connection.
    pub(crate) async fn rest(&mut self) -> String {
        // A reset is an end, too.
        while self.stream.read_buf(&mut self.held).await.is_ok_and(|read| read > 0) {}
        String::from_utf8(std::mem::take(&mut self.held)).unwrap()
    }
}

#[derive(Clone)]
pub(crate) enum Answer {
    Accept(String),
    Decline,
    Unavailable(String),
}

/// Answers from a list; keys that are not there cannot be answered.
pub(crate) struct Table(Mutex<State>);

struct State {
    answers: Vec<(&'static str, Answer)>,
    asked: Vec<String>,
    problems: usize,
}

impl Table {
    pub(crate) fn new(answers: impl IntoIterator<Item = (&'static str, Answer)>) -> Self {
        let answers = answers.into_iter().collect();
        Self(Mutex::new(State { answers, asked: Vec::new(), problems: 0 }))
    }

    pub(crate) fn naming(name: &str) -> Self {
        let content = format!("{{\"name\":\"{name}\"}}");
        Self::new([("name", Answer::Accept(content)), ("sure", Answer::Accept("{}".into()))])
    }

    /// The keys of what was asked, in order. Questions without one count by a word of their message.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.0.lock().unwrap().asked.clone()
    }

    pub(crate) fn problems(&self) -> usize {
        self.0.lock().unwrap().problems
    }

    fn answer(&self, question: &Question<'_>) -> Result<Answer, NotAnswered> {
        let mut state = self.0.lock().unwrap();
        let key = key(question);
        state.asked.push(key.clone());
        state.problems += usize::from(question.problem().is_some());
        let none = || NotAnswered::Unavailable(String::from("not in the table"));
        let at = state.answers.iter().position(|(known, _)| *known == key).ok_or_else(none)?;
        // The last answer to a key stays.
        let more = state.answers.iter().filter(|(known, _)| *known == key).count() > 1;
        let answer = if more { state.answers.remove(at).1 } else { state.answers[at].1.clone() };
        match answer {
            Answer::Unavailable(reason) => Err(NotAnswered::Unavailable(reason)),
            Answer::Accept(_) | Answer::Decline => Ok(answer),
        }
    }
}

/// Its key; of a question that has none, what it asks for in the example tools.
fn key(question: &Question<'_>) -> String {
    match question.key() {
        Some(key) => key.into(),
        None if question.request().message().is_some_and(|message| message.contains("Are you")) => {
            "sure".into()
        }
        None => "name".into(),
    }
}

impl Answerer for Table {
    fn forms(&self) -> Option<&dyn Elicit> {
        Some(self)
    }

    fn urls(&self) -> Option<&dyn ElicitUrl> {
        Some(self)
    }

    fn could_answer(&self, question: Question<'_>) -> Result<(), NotAnswered> {
        let key = key(&question);
        let known = self.0.lock().unwrap().answers.iter().any(|(known, _)| *known == key);
        if known { Ok(()) } else { Err(NotAnswered::Unavailable(String::from("not in the table"))) }
    }
}

impl Elicit for Table {
    fn elicit<'a>(&'a self, question: Question<'a>) -> Answering<'a, Elicited<String>> {
        Box::pin(async move {
            Ok(match self.answer(&question)? {
                Answer::Accept(content) => Elicited::Accept(content),
                Answer::Decline | Answer::Unavailable(_) => Elicited::Decline,
            })
        })
    }
}

impl ElicitUrl for Table {
    fn elicit_url<'a>(&'a self, question: Question<'a>) -> Answering<'a, Action> {
        Box::pin(async move {
            Ok(match self.answer(&question)? {
                Answer::Accept(_) => Action::Accept,
                Answer::Decline | Answer::Unavailable(_) => Action::Decline,
            })
        })
    }
}

pub(crate) fn client_config() -> ClientConfig {
    let mut can = ClientCapabilities::default();
    (can.form, can.url, can.sampling, can.roots) = (true, true, true, true);
    ClientConfig::new(Implementation::new("test-client", "1"), can)
}

/// The first text of a tool's result.
pub(crate) fn text(reply: &mrtr_tokio::client::Reply) -> String {
    let content = reply.result().get("content").unwrap();
    content.items().unwrap().next().unwrap().get("text").unwrap().as_string().unwrap().into_owned()
}
