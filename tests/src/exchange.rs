//! What is benchmarked: one exchange, bytes to bytes, server and client (call, interim result, answer, retry,
//! result), and the last request of a long one by itself.

use std::{borrow::Cow, collections::BTreeMap, hint::black_box};

use mrtr_core::{
    Entropy, Limits, Timestamp,
    catalog::Tool,
    client::{self, Call, Client, InputResponse, Received},
    form::{Elicited, Field, Form},
    handler::{Ctx, Reception, RpcError, Service, ToolResult},
    jsonrpc::Json,
    seal::{KeyRing, Principal, Sealer, Secret},
    server::{Config, RoundEnv, Server},
    wire::{ClientCapabilities, Implementation},
};

/// The suites that states are sealed under.
pub const SUITES: [&str; 3] = ["hmac", "xchacha", "aes-gcm"];

const CALL: &str = r#"{"name":"greet","arguments":{"greeting":"hello"}}"#;

/// A client, and a server whose tool asks a number of questions, one after another.
pub struct Bench {
    service: Service,
    client: Client,
    now: Timestamp,
    rounds: usize,
}

impl Bench {
    /// # Panics
    ///
    /// If there is no such suite.
    #[must_use]
    pub fn new(suite: &str, rounds: usize) -> Self {
        let ring = KeyRing::new(Secret::from_bytes(b"0123456789abcdef0123456789abcdef").expect("32 bytes"));
        let sealer = match suite {
            "hmac" => Sealer::signed_readable(&ring, "bench"),
            "xchacha" => Sealer::encrypted(&ring, "bench"),
            "aes-gcm" => Sealer::encrypted_aes_gcm(&ring, "bench"),
            other => panic!("no suite {other}: one of {SUITES:?}"),
        };
        let form = Form::builder("What is your name?")
            .field(Field::string("name").required())
            .build()
            .expect("a valid form");
        let service = Service::new(Server::new(Config::new(Implementation::new("bench", "1"), sealer)))
            .tool(Tool::new("greet", "Greets"), move |ctx: Ctx| {
                let form = form.clone();
                async move {
                    let mut name = String::new();
                    for round in 0..rounds {
                        let given: Elicited<BTreeMap<String, String>> =
                            ctx.elicit(&key(round), &form).await?;
                        name = given
                            .accepted()
                            .and_then(|mut content| content.remove("name"))
                            .unwrap_or_default();
                    }
                    Ok::<_, RpcError>(ToolResult::text(format!("hi {name}")))
                }
            })
            .expect("a valid tool");
        let mut can = ClientCapabilities::default();
        can.form = true;
        let client = Client::new(client::Config::new(Implementation::new("bench-client", "1"), can));
        Self { service, client, now: Timestamp::from_unix_millis(1_800_000_000_000), rounds }
    }

    /// Serves one request; each number gives other entropy.
    ///
    /// # Panics
    ///
    /// If no handler runs.
    pub fn serve(&self, request: &[u8], number: u64, reply: &mut Vec<u8>) {
        match self.reception(request, number) {
            Reception::Run(run) => {
                black_box(run.run(self.now, reply));
            }
            other => panic!("{other:?}"),
        }
    }

    fn reception<'a>(&self, request: &'a [u8], number: u64) -> Reception<'a> {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&number.to_be_bytes());
        let env = RoundEnv::new(self.now, Entropy::new(seed), Principal::Authenticated(b"user:alice"));
        self.service.receive(request, env)
    }

    /// Receives one request, and drops the run of its handler before it has begun.
    ///
    /// # Panics
    ///
    /// If no handler is to run.
    pub fn receive(&self, request: &[u8], number: u64) {
        match self.reception(request, number) {
            Reception::Run(run) => drop(black_box(run)),
            other => panic!("{other:?}"),
        }
    }

    /// The reply to a request that reaches no handler.
    ///
    /// # Panics
    ///
    /// If it reaches one.
    pub fn refuse(&self, request: &[u8], number: u64) -> Vec<u8> {
        match self.reception(request, number) {
            Reception::Reply { bytes, .. } => bytes,
            other => panic!("{other:?}"),
        }
    }

    /// What the handler does by itself between as many questions: makes the keys and decodes the answers.
    ///
    /// # Panics
    ///
    /// Never: the answers are JSON.
    #[must_use]
    pub fn alone(rounds: usize) -> String {
        let mut name = String::new();
        for round in 0..rounds {
            black_box(key(round));
            let content: BTreeMap<String, String> =
                serde_json::from_str(black_box(r#"{"name":"Ferris"}"#)).expect("JSON");
            name = Elicited::Accept(content)
                .accepted()
                .and_then(|mut content| content.remove("name"))
                .unwrap_or_default();
        }
        name
    }

    /// A whole exchange, with buffers of its own. Gives its last request.
    ///
    /// # Panics
    ///
    /// If it does not complete after as many questions as it should.
    pub fn exchange(&self, number: u64) -> Vec<u8> {
        let (mut request, mut reply) = (Vec::new(), Vec::new());
        let call = Call::new("tools/call", CALL);
        let pending = self.client.start(1.into(), call, self.now, &mut request).expect("a valid call");
        self.serve(&request, number << 8, &mut reply);
        let Received::InputRequired(mut asked) = pending.receive(&reply, self.now) else {
            panic!("not asked")
        };
        for round in 0..self.rounds {
            let content = Json::parse(r#"{"name":"Ferris"}"#, &Limits::default()).expect("valid JSON");
            asked.answer(&key(round), InputResponse::accept(content)).expect("asked");
            let round = i64::try_from(round).expect("few") + 1;
            request.clear();
            let retrying = asked.proceed((round + 1).into(), self.now, &mut request).expect("answered");
            reply.clear();
            self.serve(&request, number << 8 | round.cast_unsigned(), &mut reply);
            match retrying.receive(&reply, self.now) {
                Received::Complete(done) => {
                    assert!(done.result().is_ok());
                    return request;
                }
                Received::InputRequired(next) => asked = next,
                other => panic!("{other:?}"),
            }
        }
        panic!("never complete");
    }
}

/// An author's key is a literal, mostly, and then costs nothing.
fn key(round: usize) -> Cow<'static, str> {
    if round == 0 { "answer".into() } else { format!("answer{round}").into() }
}
