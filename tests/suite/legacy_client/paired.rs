//! Against our own server: every message of both crosses, none is lost or made up.

use mrtr_core::{
    Entropy,
    form::{Elicited, Field, Form},
    handler::{Ctx, RpcError, ToolResult},
    legacy::{Config, Handled, Session},
    seal::Principal,
    wire::{Action, AskKind},
};
use mrtr_tests::{legacy::drain, world};

use super::*;

async fn tool(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let form = Form::builder("How many?").field(Field::integer("n").required()).build().expect("valid");
    let n: Elicited<Value> = ctx.elicit("n", &form).await?;
    let Elicited::Accept(n) = n else { return Ok(ToolResult::text("no number")) };
    let opened = ctx.elicit_url("u", "Sign in", "https://id.example/1").await;
    let opened = opened.map_or_else(|error| format!("{error:?}"), |action| format!("{action:?}"));
    let sure = ctx.confirm("sure", "Sure?").await? == Action::Accept;
    Ok(ToolResult::text(format!("{} {opened} {sure}", n["n"])))
}

/// A client and a server on one pipe.
struct Pair {
    client: Script,
    server: Session,
}

impl Pair {
    fn new(version: &str) -> Self {
        let mut config = config();
        config.versions.retain(|one| one.name() <= version);
        let service = world::service(world::config(), tool);
        let mut pair = Self {
            client: Script { session: ClientSession::new(config), now: at(world::START) },
            server: Session::on_pipe(service, Config::default(), Principal::Anonymous, Entropy::new([1; 32])),
        };
        pair.client.session.open(pair.client.now);
        pair.carry();
        assert!(matches!(pair.client.only(), Event::Opened));
        assert_eq!(pair.client.session.version().expect("open").name(), version);
        pair
    }

    /// Carries messages until both rest.
    fn carry(&mut self) {
        let now = self.client.now;
        for _ in 0..100 {
            let mut quiet = true;
            while let Some(transmit) = self.client.session.poll_transmit() {
                quiet = false;
                match self.server.handle(&transmit.bytes, now) {
                    Handled::Reply { bytes, .. } => {
                        self.client.session.handle_message(Via::Pipe, &bytes, now)
                    }
                    Handled::Running(_) | Handled::Accepted => {}
                    other => panic!("{other:?}"),
                }
            }
            for transmit in drain(&mut self.server, now) {
                quiet = false;
                self.client.session.handle_message(Via::Pipe, &transmit.bytes, now);
            }
            if quiet {
                return;
            }
        }
        panic!("they never rest");
    }

    fn answer(&mut self, kind: AskKind, answer: &str) {
        let asked = self.client.asked();
        assert_eq!(asked.request.kind(), kind);
        self.client.session.answer(asked.id, object(answer), self.client.now).expect("it waits");
        self.carry();
    }

    fn text(&mut self) -> String {
        let (_, result) = result(self.client.only());
        let result: Value = serde_json::from_str(&result).expect("JSON");
        result["content"][0]["text"].as_str().expect("text").to_owned()
    }
}

/// R-228…R-231: three rounds of asks, to the result. R-246: in 2025-06-18 the server knows that it cannot ask for a
/// url, for the version says so.
#[test]
fn r_230_a_session_from_end_to_end() {
    for version in ["2025-11-25", "2025-06-18"] {
        let mut pair = Pair::new(version);
        let params = r#"{"name":"t","arguments":{}}"#;
        pair.client.session.request("tools/call", Some(object(params)), pair.client.now).expect("open");
        pair.carry();
        pair.answer(AskKind::Form, r#"{"action":"accept","content":{"n":4}}"#);
        if version == NEWEST {
            pair.answer(AskKind::Url, r#"{"action":"accept"}"#);
            pair.answer(AskKind::Form, r#"{"action":"accept","content":{}}"#);
            assert_eq!(pair.text(), "4 Accept true");
        } else {
            let Failure::Peer(error) = failed(pair.client.only()).1 else { panic!("no error") };
            assert_eq!(error.code.get(), -32603);
        }
    }
}

/// R-239: our cancellation ends the call at the server, and its ask is taken back here.
#[test]
fn r_239_a_cancelled_call_ends_on_both_sides() {
    let mut pair = Pair::new(NEWEST);
    let call = pair.client.session.request("tools/call", Some(object(r#"{"name":"t"}"#)), pair.client.now);
    pair.carry();
    pair.client.asked();
    pair.client.session.cancel(call.expect("open"), "enough", pair.client.now);
    pair.carry();
    assert!(matches!(pair.client.only(), Event::AskWithdrawn { .. }));
    assert!(!pair.server.is_busy());
}
