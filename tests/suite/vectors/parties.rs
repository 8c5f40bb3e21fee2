//! The real parties: our server with the fixtures' tools, our client.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use mrtr_core::{
    Entropy, Limits, Timestamp,
    catalog::{Prompt, Resource, Tool},
    client::{
        Call, Client, Config as ClientConfig, Exchange, InputRequired, InputResponse, Open, Pending,
        Received, Retrying,
    },
    form::{Elicited, Field, Form},
    handler::{Content, Ctx, PromptResult, Reception, ResourceResult, RpcError, Service, ToolResult},
    http::{ParamHeaders, Sent, judge, request_headers},
    jsonrpc::{Json, admit},
    seal::{KeyRing, Principal, Sealer, Secret},
    server::{Config, RoundEnv, Server},
    wire::{ClientCapabilities, Implementation, Sampling},
};
use serde_json::{Value, json};

use super::{
    client::{Caller, Event, Outgoing},
    format::{Exchange as Vector, Role, load},
    server::Party,
};

type Answer = BTreeMap<String, Value>;

/// A form of one required field.
fn one(message: &str, field: &str, boolean: bool) -> Form {
    let form = Form::builder(message);
    let form = if boolean {
        form.field(Field::boolean(field).required())
    } else {
        form.field(Field::string(field).required())
    };
    form.build().expect("a valid form")
}

fn text(content: &Answer, name: &str) -> String {
    content[name].as_str().map_or_else(|| content[name].to_string(), String::from)
}

/// What was accepted; a refusal ends the call.
fn accepted(answer: Elicited<Answer>) -> Result<Answer, RpcError> {
    answer.accepted().ok_or_else(|| RpcError::internal("refused"))
}

fn desk(service: Service) -> Service {
    service
        .tool(Tool::new("greet", "Greets"), |ctx: Ctx| async move {
            let name = accepted(ctx.elicit("user_name", &one("What is your name?", "name", false)).await?)?;
            Ok::<_, RpcError>(ToolResult::text(format!("Hello, {}!", text(&name, "name"))))
        })
        .and_then(|service| {
            service.tool(Tool::new("connect", "Connects"), |ctx: Ctx| async move {
                ctx.elicit_url("link", "Connect your account", "https://accounts.example/connect").await?;
                Ok::<_, RpcError>(ToolResult::text("connected"))
            })
        })
        .and_then(|service| {
            service.tool(Tool::new("sealed", "Confirms"), |ctx: Ctx| async move {
                let ask = ctx.elicit::<Answer>("confirm", &one("Go ahead?", "ok", true)).solicited();
                accepted(ask.await?)?;
                Ok::<_, RpcError>(ToolResult::text("confirmed"))
            })
        })
        .and_then(|service| {
            service.tool(Tool::new("mix", "Asks three ways at once"), |ctx: Ctx| async move {
                let name = ctx.elicit::<Answer>("user_name", &one("What is your name?", "name", false));
                let capital = ctx.sample("greeting", &Sampling::new(100).user("Capital of France?"));
                let roots = ctx.roots("client_roots");
                let (name, capital, roots) = futures::future::try_join3(name, capital, roots).await?;
                let name = text(&accepted(name)?, "name");
                Ok::<_, RpcError>(ToolResult::text(format!("{name}, {}, {}", capital.text(), roots.len())))
            })
        })
        .and_then(|service| {
            service.prompt(Prompt::new("ctx", "Asks for a context"), |ctx: Ctx| async move {
                let context =
                    accepted(ctx.elicit("user_context", &one("Which context?", "context", false)).await?)?;
                Ok::<_, RpcError>(PromptResult::new().user(Content::text(&text(&context, "context"))))
            })
        })
        .and_then(|service| {
            service.resource(Resource::new("x://secret", "secret"), |ctx: Ctx| async move {
                let why = accepted(ctx.elicit("why", &one("For what reason?", "reason", false)).await?)?;
                let body = format!("secret for {}", text(&why, "reason"));
                Ok::<_, RpcError>(ResourceResult::text("x://secret", "text/plain", &body))
            })
        })
        .expect("valid names")
}

fn forms(service: Service) -> Service {
    service
        .tool(Tool::new("num", "Asks for numbers"), |ctx: Ctx| async move {
            let form = Form::builder("Two numbers, please")
                .field(Field::number("ratio").minimum(0).maximum(1).required())
                .field(Field::integer("n").required())
                .build()?;
            let numbers = accepted(ctx.elicit("q", &form).await?)?;
            Ok::<_, RpcError>(ToolResult::text(format!("{}/{}", numbers["ratio"], numbers["n"])))
        })
        .and_then(|service| {
            service.tool(Tool::new("pick", "Asks to pick"), |ctx: Ctx| async move {
                let form = Form::builder("Pick")
                    .field(Field::select("c").option("#F00", "Red").option("#0F0", "Green").required())
                    .field(
                        Field::multi_select("m")
                            .option("a", "A")
                            .option("b", "B")
                            .option("c", "C")
                            .min_items(1)
                            .max_items(2)
                            .required(),
                    )
                    .build()?;
                let picked = accepted(ctx.elicit("q", &form).await?)?;
                let many: Vec<&str> =
                    picked["m"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                Ok::<_, RpcError>(ToolResult::text(format!("{}: {}", text(&picked, "c"), many.join(", "))))
            })
        })
        .expect("valid names")
}

fn waiting(service: Service, connected: Arc<AtomicBool>) -> Service {
    service
        .tool(Tool::new("link", "Connects, and waits until it is done"), move |ctx: Ctx| {
            let connected = connected.clone();
            async move {
                ctx.elicit_url("link", "Connect your account", "https://accounts.example/connect")
                    .until(|| core::future::ready(connected.load(Ordering::Relaxed)))
                    .await?;
                Ok::<_, RpcError>(ToolResult::text("connected"))
            }
        })
        .and_then(|service| {
            service.tool(Tool::new("heavy", "Rests once"), |ctx: Ctx| async move {
                ctx.checkpoint().await?;
                Ok::<_, RpcError>(ToolResult::text("done"))
            })
        })
        .expect("valid names")
}

/// Our server.
struct Ours {
    service: Service,
    connected: Arc<AtomicBool>,
    entropy: u8,
}

impl Ours {
    fn new(fixture: &str) -> Self {
        let ring = KeyRing::new(Secret::from_bytes(b"the vectors' secret has 32 bytes").expect("32 bytes"));
        let config = Config::new(Implementation::new("vectors", "1"), Sealer::encrypted(&ring, "vectors"));
        let (service, connected) = (Service::new(Server::new(config)), Arc::new(AtomicBool::new(false)));
        let service = match fixture {
            "desk" => desk(service),
            "forms" => forms(service),
            "waiting" => waiting(service, connected.clone()),
            other => panic!("no fixture {other}"),
        };
        Self { service, connected, entropy: 0 }
    }
}

impl Party for Ours {
    fn send(
        &mut self,
        message: &Value,
        headers: &[(String, String)],
        principal: Option<&str>,
        now: Timestamp,
    ) -> (u16, Option<Value>) {
        self.entropy += 1;
        let bytes = message.to_string();
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        let headers = headers.as_slice();
        let principal =
            principal.map_or(Principal::Anonymous, |name| Principal::Authenticated(name.as_bytes()));
        let env = RoundEnv::new(now, Entropy::new([self.entropy; 32]), principal).with_headers(&headers);
        let (status, reply) = match self.service.receive(bytes.as_bytes(), env) {
            Reception::Run(run) => {
                let mut out = Vec::new();
                let class = run.run(now, &mut out).class();
                (class.status(), out)
            }
            Reception::Reply { bytes, class } => (class.status(), bytes),
            Reception::Accepted => (202, Vec::new()),
            other => panic!("{other:?}"),
        };
        let reply = (!reply.is_empty()).then(|| serde_json::from_slice(&reply).expect("a reply is JSON"));
        (status, reply)
    }

    fn happen(&mut self, event: &str) {
        assert_eq!(event, "connected");
        self.connected.store(true, Ordering::Relaxed);
    }
}

/// Our client, as an HTTP adapter uses it.
struct OurClient {
    client: Client,
    tools: BTreeMap<String, String>,
    calls: BTreeMap<String, State>,
    id: i64,
}

enum State {
    Pending(Exchange<Pending>),
    Retrying(Exchange<Retrying>),
    Asked(Exchange<InputRequired>),
}

impl OurClient {
    fn new(vector: &Vector) -> Self {
        let text = vector.capabilities.to_string();
        let declared = Json::parse(&text, &Limits::default()).expect("valid JSON");
        let capabilities = ClientCapabilities::from_json(declared).expect("capabilities");
        let config = ClientConfig::new(Implementation::new("vectors-client", "1"), capabilities);
        let tools = vector
            .known_tools
            .iter()
            .map(|tool| (tool["name"].as_str().expect("a name").to_owned(), tool["inputSchema"].to_string()));
        Self { client: Client::new(config), tools: tools.collect(), calls: BTreeMap::new(), id: 0 }
    }

    fn id(&mut self) -> mrtr_core::jsonrpc::RequestId {
        self.id += 1;
        self.id.into()
    }

    fn outgoing(&self, bytes: &[u8]) -> Outgoing {
        let limits = Limits::default();
        let message: Value = serde_json::from_slice(bytes).expect("a request is JSON");
        let schema = message["params"]["name"].as_str().and_then(|name| self.tools.get(name));
        let annotations = schema.map(|schema| {
            ParamHeaders::from_schema(Json::parse(schema, &limits).expect("valid JSON"))
                .expect("valid annotations")
        });
        let annotations = annotations.as_ref().unwrap_or(ParamHeaders::NONE);
        let admitted = admit(bytes, &limits).expect("our own request");
        let headers = request_headers(&admitted, annotations).expect("headers");
        let headers = headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Outgoing { message, headers }
    }

    fn received<S: Flying>(&mut self, call: &str, received: Received<'_, S>, now: Timestamp) -> Event {
        match received {
            Received::InputRequired(asked) => {
                let keys: Vec<String> = asked.asks().map(|ask| ask.key().to_owned()).collect();
                self.calls.insert(call.to_owned(), State::Asked(asked));
                if keys.is_empty() { Event::Pause } else { Event::Asks(keys) }
            }
            Received::Complete(done) => match done.result() {
                Ok(result) => Event::Complete(serde_json::from_str(result.as_str()).expect("valid JSON")),
                Err(error) => Event::Refused(error_value(error)),
            },
            Received::StateRefused(refused) => {
                let done = refused.into_outcome();
                Event::Refused(error_value(done.result().expect_err("the server's error")))
            }
            Received::Resend(resend) => {
                let (id, mut out) = (self.id(), Vec::new());
                let exchange = resend.send(id, now, &mut out).expect("sent again");
                self.calls.insert(call.to_owned(), S::state(exchange));
                Event::Request(self.outgoing(&out))
            }
            Received::Invalid(_) | Received::Stopped(_) => Event::Invalid,
            Received::Aside(_, aside) => panic!("nobody else speaks here: {aside:?}"),
        }
    }
}

/// Where an exchange goes that is still in flight.
trait Flying: Open {
    fn state(exchange: Exchange<Self>) -> State;
}

impl Flying for Pending {
    fn state(exchange: Exchange<Self>) -> State {
        State::Pending(exchange)
    }
}

impl Flying for Retrying {
    fn state(exchange: Exchange<Self>) -> State {
        State::Retrying(exchange)
    }
}

fn error_value(error: &RpcError) -> Value {
    let mut value = json!({"code": error.code.get(), "message": error.message});
    if let Some(data) = error.data() {
        value["data"] = data.decode().expect("valid JSON");
    }
    value
}

impl Caller for OurClient {
    fn start(&mut self, call: &str, method: &str, params: &Value, now: Timestamp) -> Outgoing {
        let (id, mut out, params) = (self.id(), Vec::new(), params.to_string());
        let pending = self.client.start(id, Call::new(method, &params), now, &mut out).expect("a valid call");
        self.calls.insert(call.to_owned(), State::Pending(pending));
        self.outgoing(&out)
    }

    fn receive(&mut self, call: &str, status: u16, message: &Value, now: Timestamp) -> Event {
        let bytes = message.to_string();
        let judged =
            judge(Sent::Request, status, Some(b"application/json"), bytes.as_bytes(), &Limits::default());
        let mrtr_core::http::Judgement::Message(message) = judged else { panic!("{judged:?}") };
        match self.calls.remove(call).expect("a call in flight") {
            State::Pending(exchange) => {
                let received = exchange.receive(message, now);
                self.received(call, received, now)
            }
            State::Retrying(exchange) => {
                let received = exchange.receive(message, now);
                self.received(call, received, now)
            }
            State::Asked(_) => panic!("nothing is in flight"),
        }
    }

    fn proceed(&mut self, call: &str, answers: &Value, now: Timestamp) -> Outgoing {
        let Some(State::Asked(mut asked)) = self.calls.remove(call) else { panic!("nobody was asked") };
        for (key, answer) in answers.as_object().into_iter().flatten() {
            let text = answer.to_string();
            let answer = Json::parse(&text, &Limits::default()).expect("valid JSON");
            asked.answer(key, InputResponse::from_wire(answer)).expect("asked");
        }
        let (id, mut out) = (self.id(), Vec::new());
        let now = asked.not_before().map_or(now, |not_before| now.max(not_before));
        let retrying = asked.proceed(id, now, &mut out).expect("answered");
        self.calls.insert(call.to_owned(), State::Retrying(retrying));
        self.outgoing(&out)
    }
}

/// Every exchange of `tests/vectors/exchanges`, with our server or our client as the party under test.
#[test]
fn our_server_and_our_client_do_as_the_vectors_say() {
    let mut failures = Vec::new();
    let vectors = load();
    assert!(vectors.len() >= 30, "{}", vectors.len());
    for (file, vector) in vectors {
        let outcome = match vector.role {
            Role::Server => super::server::run(&vector, &mut Ours::new(&vector.fixture)),
            Role::Client => super::client::run(&vector, &mut OurClient::new(&vector)),
        };
        if let Err(failure) = outcome {
            failures.push(format!("{file}: {failure}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
