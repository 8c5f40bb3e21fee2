//! Against our own servers, on one pipe that serves both eras or one of them: the same answerer gives the same outcome
//! (W-02).

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use mrtr_core::{
    Entropy,
    client::{Answerer, Answering, Asking, Elicit, ElicitUrl, ListRoots, Question, Sample, answer_one},
    form::{Elicited, Field, Form},
    handler::{Ctx, RpcError, ToolResult},
    legacy::{Config as Legacy, Handled, Pipe, Piped},
    seal::Principal,
    wire::{Action, Root, Sampling, Version},
};
use mrtr_tests::{
    legacy,
    world::{self, Delivered, World},
};

use super::*;

/// Answers everything, each kind in its way.
struct Everything;

impl Answerer for Everything {
    fn forms(&self) -> Option<&dyn Elicit> {
        Some(self)
    }

    fn urls(&self) -> Option<&dyn ElicitUrl> {
        Some(self)
    }

    fn sampling(&self) -> Option<&dyn Sample> {
        Some(self)
    }

    fn roots(&self) -> Option<&dyn ListRoots> {
        Some(self)
    }
}

impl Elicit for Everything {
    fn elicit<'a>(&'a self, question: Question<'a>) -> Answering<'a, Elicited<String>> {
        Box::pin(async move {
            Ok(match question.request().message().as_deref() {
                // The first answer does not fit; the second does.
                Some("How many?") if question.problem().is_none() => Elicited::Accept(r#"{"n":0}"#.into()),
                Some("How many?") => Elicited::Accept(r#"{"n":7}"#.into()),
                Some("Sure?") => Elicited::Decline,
                _ => Elicited::Cancel,
            })
        })
    }
}

impl ElicitUrl for Everything {
    fn elicit_url<'a>(&'a self, _: Question<'a>) -> Answering<'a, Action> {
        Box::pin(async { Ok(Action::Accept) })
    }
}

impl Sample for Everything {
    fn sample<'a>(&'a self, _: Question<'a>) -> Answering<'a, String> {
        Box::pin(async {
            Ok(r#"{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m"}"#.into())
        })
    }
}

impl ListRoots for Everything {
    fn list_roots<'a>(&'a self, _: Question<'a>) -> Answering<'a, Vec<Root>> {
        Box::pin(async { Ok(vec![Root::new("file:///srv")]) })
    }
}

async fn tool(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let form =
        Form::builder("How many?").field(Field::integer("n").minimum(1).required()).build().expect("valid");
    let n: Elicited<Value> = ctx.elicit("n", &form).await?;
    let n = n.accepted().map(|n| n["n"].to_string());
    let (url, said, roots) = (
        ctx.elicit_url("u", "Sign in", "https://id.example/1"),
        ctx.sample("s", &Sampling::new(5).user("Capital of France?")),
        ctx.roots("r"),
    );
    let (url, said, roots) = (url.await?, said.await?, roots.await?);
    let sure = ctx.confirm("sure", "Sure?").await?;
    Ok(ToolResult::text(format!("{n:?} {url:?} {} {} {sure:?}", said.text(), roots[0].uri)))
}

/// A server's side of a pipe.
struct Server {
    world: World,
    pipe: Pipe,
}

impl Server {
    fn new(versions: &[Version]) -> Self {
        let service = world::service(world::config(), tool);
        let mut config = Legacy::default();
        config.versions.retain(|version| versions.contains(version));
        let world = World::of(service.clone());
        Self {
            pipe: Pipe::new(service, config, Principal::Authenticated(b"alice"), Entropy::new([3; 32])),
            world,
        }
    }

    /// What it says to a message.
    fn handle(&mut self, message: &[u8], now: Timestamp) -> Vec<Vec<u8>> {
        let mut said = Vec::new();
        match self.pipe.handle(message, now) {
            Piped::Modern => match self.world.deliver(message, None) {
                Delivered::Reply(_, bytes) => said.push(bytes),
                Delivered::Listen(_) | Delivered::Cancelled(_) | Delivered::Accepted => {}
            },
            Piped::Legacy(Handled::Reply { bytes, .. }) => said.push(bytes),
            Piped::Legacy(_) => {}
            other => panic!("{other:?}"),
        }
        if let Some(session) = self.pipe.session_mut() {
            said.extend(legacy::drain(session, now).into_iter().map(|transmit| transmit.bytes));
        }
        said
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1_000 {
        if let Poll::Ready(done) = future.as_mut().poll(&mut cx) {
            return done;
        }
    }
    panic!("never done");
}

/// A legacy server that knows nothing of `server/discover` and of `_meta`.
fn only_legacy(message: &[u8]) -> Vec<u8> {
    let mut message: Value = serde_json::from_slice(message).expect("JSON");
    if message["method"] == "server/discover" {
        message["params"] = json!({});
    }
    message.to_string().into_bytes()
}

/// Drives a call to its outcome with the answerer of this module, whatever the era.
fn drive(connection: &mut Connection, server: &mut Server, modern: bool) -> (Outcome, Vec<Era>) {
    let (now, limits, asking) = (at(world::START), Limits::default(), Asking::default());
    let (mut eras, mut outcome) = (Vec::new(), None);
    connection.call(super::tool(), now).expect("a call");
    for _ in 0..200 {
        while let Some(transmit) = connection.poll_transmit() {
            let (Transmit::Request { bytes, .. } | Transmit::Message { bytes, .. }) = transmit else {
                panic!()
            };
            let bytes = if modern { bytes } else { only_legacy(&bytes) };
            for said in server.handle(&bytes, now) {
                connection.handle_message(Via::Pipe, &said, now);
            }
        }
        match connection.poll_event() {
            Some(Event::Era(era)) => eras.push(era),
            Some(Event::InputRequired { call, mut exchange }) => {
                assert_eq!(exchange.server_name().as_deref(), Some("srv"));
                run(exchange.ask_all(&Everything, &asking)).expect("answered");
                connection.proceed(call, exchange, now).expect("ready");
            }
            Some(Event::Ask { ask, request, .. }) => {
                let name = connection.server_name();
                let answer = run(answer_one(&Everything, &request, name.as_deref(), &limits, &asking));
                connection.answer(ask, object(&answer.expect("answered")), now).expect("it waits");
            }
            Some(Event::Done { outcome: of, .. }) => outcome = Some(of),
            Some(other) => panic!("{other:?}"),
            None => match outcome {
                Some(outcome) => return (outcome, eras),
                None => panic!("nothing goes on"),
            },
        }
    }
    panic!("never done");
}

/// W-02, R-087, R-230: the same answerer, the same handler, the same outcome, over three rounds of five questions.
#[test]
fn w_02_both_eras_come_to_the_same_outcome() {
    let can = ClientCapabilities::of(&Everything);
    let client = || Config::new(Implementation::new("host", "1"), can);
    let expected = r#"Some("7") Accept Paris file:///srv Decline"#;
    for (versions, modern, era) in [
        (&[Version::V2025_11_25][..], true, Era::Modern),
        (&[][..], true, Era::Modern),
        (&[Version::V2025_11_25][..], false, Era::Legacy),
    ] {
        let mut connection = Connection::on_pipe(client(), ConnectionConfig::default());
        let mut server = Server::new(versions);
        for round in 0..2 {
            let (outcome, eras) = drive(&mut connection, &mut server, modern);
            assert_eq!((outcome.era, eras.len()), (Some(era), usize::from(round == 0)), "{outcome:?}");
            let result: Value =
                serde_json::from_str(outcome.json().expect("a result").as_str()).expect("JSON");
            assert_eq!(result["content"][0]["text"], expected);
            assert!(!outcome.may_be_kept());
        }
    }
}
