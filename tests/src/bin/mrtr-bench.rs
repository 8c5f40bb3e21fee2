//! One exchange, bytes to bytes, server and client: call, interim result, answer, retry, result.
//!
//! `mrtr-bench time [SUITE]` prints CPU time and allocations; `mrtr-bench run SUITE COUNT` only runs COUNT exchanges, for a
//! tool that counts instructions from outside: the difference of two counts is the cost of the exchanges between
//! them.

use std::hint::black_box;

use mrtr_core::{
    Entropy, Limits, Timestamp,
    catalog::Tool,
    client::{Call, Client, Config as ClientConfig, InputResponse, Received},
    form::{Elicited, Field, Form},
    handler::{Ctx, Reception, RpcError, Service, ToolResult},
    jsonrpc::Json,
    seal::{KeyRing, Principal, Sealer, Secret},
    server::{Config, RoundEnv, Server},
    wire::{ClientCapabilities, Implementation},
};

const SUITES: [&str; 3] = ["hmac", "xchacha", "aes-gcm"];

/// Asks `answers` times, one question after another.
struct Bench {
    service: Service,
    client: Client,
    now: Timestamp,
    rounds: usize,
}

impl Bench {
    fn new(suite: &str, rounds: usize) -> Self {
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
                        let key = if round == 0 { "answer".into() } else { format!("answer{round}") };
                        let given: Elicited<std::collections::BTreeMap<String, String>> =
                            ctx.elicit(&key, &form).await?;
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
        let client = Client::new(ClientConfig::new(Implementation::new("bench-client", "1"), can));
        Self { service, client, now: Timestamp::from_unix_millis(1_800_000_000_000), rounds }
    }

    fn serve(&self, input: &[u8], entropy: u64, out: &mut Vec<u8>) {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&entropy.to_be_bytes());
        let env = RoundEnv::new(self.now, Entropy::new(seed), Principal::Authenticated(b"user:alice"));
        match self.service.receive(input, env) {
            Reception::Run(run) => {
                black_box(run.run(self.now, out));
            }
            other => panic!("{other:?}"),
        }
    }

    fn exchange(&self, number: u64) {
        let (mut request, mut reply) = (Vec::new(), Vec::new());
        let call = Call::new("tools/call", r#"{"name":"greet","arguments":{"greeting":"hello"}}"#);
        let pending = self.client.start(1.into(), call, self.now, &mut request).expect("a valid call");
        self.serve(&request, number * 2, &mut reply);
        let Received::InputRequired(mut asked) = pending.receive(&reply, self.now) else {
            panic!("not asked")
        };
        for round in 0..self.rounds {
            let content = Json::parse(r#"{"name":"Ferris"}"#, &Limits::default()).expect("valid JSON");
            let key = if round == 0 { "answer".into() } else { format!("answer{round}") };
            asked.answer(&key, InputResponse::accept(content)).expect("asked");
            let id = i64::try_from(round).expect("few") + 2;
            request.clear();
            let retrying = asked.proceed(id.into(), self.now, &mut request).expect("answered");
            reply.clear();
            self.serve(&request, number * 2 + 1, &mut reply);
            match retrying.receive(&reply, self.now) {
                Received::Complete(done) => {
                    black_box(done.result().is_ok());
                    return;
                }
                Received::InputRequired(next) => asked = next,
                other => panic!("{other:?}"),
            }
        }
        panic!("never complete");
    }
}

/// Nanoseconds that this process has spent on a processor.
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number")
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["time"] => SUITES.iter().for_each(|suite| time(suite)),
        ["time", suite] => time(suite),
        ["run", suite, count] => {
            let bench = Bench::new(suite, 1);
            (0..count.parse().expect("a count")).for_each(|number| bench.exchange(number));
        }
        // What the last request of an exchange with ten recorded asks costs, without the rest of the exchange.
        ["replay", count] => replay(count.parse().expect("a count")),
        _ => {
            eprintln!(
                "usage: mrtr-bench time [SUITE] | run SUITE COUNT | replay COUNT    (suites: {SUITES:?})"
            );
            std::process::exit(2);
        }
    }
}

fn time(suite: &str) {
    let bench = Bench::new(suite, 1);
    (0..2_000).for_each(|number| bench.exchange(number));
    let allocations = allocation_counter::measure(|| bench.exchange(7));
    let mut best = u64::MAX;
    for _ in 0..5 {
        let from = cpu();
        (0..10_000).for_each(|number| bench.exchange(number));
        best = best.min((cpu() - from) / 10_000);
    }
    println!(
        "exchange {suite:8} {:6.2} µs CPU  {:4} allocations  {:6} bytes allocated",
        best as f64 / 1_000.0,
        allocations.count_total,
        allocations.bytes_total
    );
}

/// Runs the final retry of an exchange with ten recorded asks.
fn replay(count: u64) {
    let bench = Bench::new("xchacha", 10);
    let (mut request, mut reply) = (Vec::new(), Vec::new());
    let call = Call::new("tools/call", r#"{"name":"greet","arguments":{"greeting":"hello"}}"#);
    let pending = bench.client.start(1.into(), call, bench.now, &mut request).expect("a valid call");
    bench.serve(&request, 0, &mut reply);
    let Received::InputRequired(mut asked) = pending.receive(&reply, bench.now) else { panic!("not asked") };
    for round in 0..10u64 {
        let key = if round == 0 { "answer".into() } else { format!("answer{round}") };
        let content = Json::parse(r#"{"name":"Ferris"}"#, &Limits::default()).expect("valid JSON");
        asked.answer(&key, InputResponse::accept(content)).expect("asked");
        request.clear();
        let id = i64::try_from(round).expect("few") + 2;
        let retrying = asked.proceed(id.into(), bench.now, &mut request).expect("answered");
        reply.clear();
        bench.serve(&request, round + 1, &mut reply);
        match retrying.receive(&reply, bench.now) {
            Received::InputRequired(next) => asked = next,
            Received::Complete(_) => break,
            other => panic!("{other:?}"),
        }
    }
    for number in 0..count {
        reply.clear();
        bench.serve(&request, 100 + number, &mut reply);
        black_box(&reply);
    }
}
