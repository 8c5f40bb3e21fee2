//! Saved exchanges: sealed ones, bounds, and that saving changes nothing.

use mrtr_core::{
    Entropy,
    client::{InputResponse, ResumeError},
    form::{Elicited, Field, Form},
    handler::{Ctx, RpcError, ToolResult},
    seal::{KeyRing, SealError, Sealer, Secret, Verdict},
    wire::Action,
};
use mrtr_tests::world::World;
use proptest::prelude::*;
use serde_json::Value;

use super::*;

const ORIGIN: &str = "https://a.example/mcp";

fn sealer(byte: u8) -> Sealer {
    Sealer::encrypted(&KeyRing::new(Secret::from_bytes(&[byte; 32]).unwrap()), "host")
}

fn waiting() -> Exchange<InputRequired> {
    let mut exchange = asked(start(&client()), &asks(&[("a", NAME), ("b", FORM)]), 0);
    exchange.answer("a", InputResponse::accept(json(r#"{"name":"hunter2"}"#))).unwrap();
    exchange
}

fn sealed(by: u8) -> Vec<u8> {
    let mut out = b"before".to_vec();
    waiting().save_sealed(ORIGIN, &sealer(by), &Entropy::new([1; 32]), &mut out).unwrap();
    out.split_off(6)
}

/// W-01: a sealed exchange goes on, its answers with it; nothing of it can be read, and every change is found.
#[test]
fn a_sealed_exchange_is_secret_and_whole() {
    let bytes = sealed(1);
    let resumed = client().resume_sealed(&bytes, ORIGIN, &sealer(1)).unwrap();
    assert_eq!(format!("{resumed:?}"), format!("{:?}", waiting()));
    for secret in ["hunter2", "Name?", "tools/call", ORIGIN] {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(client().resume_sealed(&changed, ORIGIN, &sealer(1)).is_err(), "{at}");
        assert!(client().resume_sealed(&bytes[..at], ORIGIN, &sealer(1)).is_err(), "{at}");
    }
    let longer = [&bytes[..], b"x"].concat();
    assert_eq!(
        client().resume_sealed(&longer, ORIGIN, &sealer(1)).unwrap_err(),
        ResumeError::Sealed(Verdict::Unauthentic)
    );
}

/// R-092: it opens for the server it was saved for, under the key it was sealed with, as what it is.
#[test]
fn a_sealed_exchange_opens_only_where_it_belongs() {
    let bytes = sealed(1);
    for origin in ["", "https://a.example/mcp/", "https://b.example/mcp"] {
        let refused = client().resume_sealed(&bytes, origin, &sealer(1)).unwrap_err();
        assert_eq!(refused, ResumeError::Sealed(Verdict::Unauthentic));
    }
    let refused = client().resume_sealed(&bytes, ORIGIN, &sealer(2)).unwrap_err();
    assert_eq!(refused, ResumeError::Sealed(Verdict::UnknownKey));
    let mut ring = KeyRing::new(Secret::from_bytes(&[2; 32]).unwrap());
    ring.accept(Secret::from_bytes(&[1; 32]).unwrap()).unwrap();
    assert!(client().resume_sealed(&bytes, ORIGIN, &Sealer::encrypted(&ring, "host")).is_ok());
    assert!(client().resume_sealed(&bytes, ORIGIN, &Sealer::encrypted(&ring, "other")).is_err());
    // Neither is taken for the other, and other formats are named.
    assert_eq!(client().resume(&bytes, ORIGIN).unwrap_err(), ResumeError::NotAnExchange);
    let mut plain = Vec::new();
    waiting().save(ORIGIN, &mut plain);
    assert_eq!(client().resume_sealed(&plain, ORIGIN, &sealer(1)).unwrap_err(), ResumeError::NotAnExchange);
    let mut newer = bytes;
    newer[5] = 2;
    assert_eq!(client().resume_sealed(&newer, ORIGIN, &sealer(1)).unwrap_err(), ResumeError::Format(2));
}

/// A sealer that only signs keeps nothing secret, so it is refused and nothing is written.
#[test]
fn a_readable_suite_is_refused() {
    let ring = KeyRing::new(Secret::from_bytes(&[1; 32]).unwrap());
    let mut out = Vec::new();
    let refused = waiting().save_sealed(
        ORIGIN,
        &Sealer::signed_readable(&ring, "host"),
        &Entropy::new([1; 32]),
        &mut out,
    );
    assert_eq!((refused, out.len()), (Err(SealError::Readable), 0));
}

/// G-07: what is over what a client can have saved is not even read: n is, n + 1 is not.
#[test]
fn g_07_saved_bytes_are_bounded() {
    let client = client_with(|limits, _| limits.message_bytes = 1_000);
    let limit = 4_000 + (64 << 10);
    let bytes = vec![0; limit + 1];
    assert_eq!(client.resume(&bytes[1..], ORIGIN).unwrap_err(), ResumeError::NotAnExchange);
    let too_large = ResumeError::TooLarge { bytes: limit + 1, limit };
    assert_eq!(client.resume(&bytes, ORIGIN).unwrap_err(), too_large);
    assert_eq!(client.resume_sealed(&bytes, ORIGIN, &sealer(1)).unwrap_err(), too_large);
}

/// What happens to an exchange that waits.
#[derive(Clone, Copy, Debug)]
enum Step {
    Save,
    Seal,
    /// Answers the n-th ask that has no answer.
    Answer(usize),
    Withdraw(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Save),
        Just(Step::Seal),
        (0..3_usize).prop_map(Step::Answer),
        (0..3_usize).prop_map(Step::Withdraw),
    ]
}

async fn tool(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let form =
        |key: &str| Form::builder(key).field(Field::integer("n").required()).build().expect("a valid form");
    let (first, second, url) = (
        ctx.elicit::<Value>("first", &form("first")),
        ctx.elicit::<Value>("second", &form("second")),
        ctx.elicit_url("url", "Sign in", "https://id.example/"),
    );
    let (first, second, url) = (first.await?, second.await?, url.await?);
    ctx.checkpoint().await?;
    let third: Elicited<Value> = ctx.elicit("third", &form("third")).await?;
    let shown = |elicited: Elicited<Value>| elicited.accepted().map(|content| content["n"].to_string());
    Ok(ToolResult::text(format!("{:?} {:?} {url:?} {:?}", shown(first), shown(second), shown(third))))
}

/// An answer that depends on the key alone.
fn answer(exchange: &mut Exchange<InputRequired>, key: &str) {
    let url = exchange.ask(key).is_some_and(|ask| ask.request().url().is_some());
    let content = format!(r#"{{"n":{}}}"#, key.len());
    let response = match key {
        _ if url => InputResponse::accepted_url(),
        "second" => InputResponse::decline(),
        _ => InputResponse::accept(json(&content)),
    };
    exchange.answer(key, response).unwrap();
}

fn resumed(exchange: &Exchange<InputRequired>, seal: bool) -> Exchange<InputRequired> {
    // Another process: another client of the same configuration.
    let (client, mut bytes) = (client(), Vec::new());
    if seal {
        exchange.save_sealed(ORIGIN, &sealer(1), &Entropy::new([9; 32]), &mut bytes).unwrap();
        client.resume_sealed(&bytes, ORIGIN, &sealer(1)).unwrap()
    } else {
        exchange.save(ORIGIN, &mut bytes);
        client.resume(&bytes, ORIGIN).unwrap()
    }
}

/// Plays the call against our server, with these steps before each retry; all requests, and the result.
fn play(rounds: &[Vec<Step>]) -> Vec<String> {
    let mut world = World::new(tool);
    let mut log = Vec::new();
    let mut request = Vec::new();
    let mut now = world.now;
    let call = Call::new("tools/call", r#"{"name":"t","arguments":{}}"#);
    let pending = client().start(1.into(), call, now, &mut request).unwrap();
    let reply = world.send_bytes(&request);
    let Received::InputRequired(mut exchange) = pending.receive(&reply, now) else { panic!() };
    for round in 0..10 {
        for step in rounds.get(round).into_iter().flatten() {
            let keys: Vec<String> = exchange.asks().map(|ask| ask.key().to_owned()).collect();
            match *step {
                Step::Save => exchange = resumed(&exchange, false),
                Step::Seal => exchange = resumed(&exchange, true),
                Step::Answer(n) => {
                    if let Some(key) = keys.get(n) {
                        answer(&mut exchange, key);
                    }
                }
                Step::Withdraw(n) => {
                    if let Some(key) = keys.get(n) {
                        exchange.withdraw(key);
                    }
                }
            }
        }
        let missing: Vec<String> = exchange.missing().map(String::from).collect();
        for key in missing {
            answer(&mut exchange, &key);
        }
        now = exchange.not_before().unwrap_or(now);
        world.now = now;
        request.clear();
        let id = i64::try_from(round).unwrap() + 2;
        let retrying = exchange.proceed(id.into(), now, &mut request).unwrap();
        log.push(String::from_utf8(request.clone()).unwrap());
        let reply = world.send_bytes(&request);
        exchange = match retrying.receive(&reply, now) {
            Received::InputRequired(next) => next,
            Received::Complete(done) => {
                log.push(done.result().unwrap().as_str().to_owned());
                assert!(done.carried_answers_or_state());
                return log;
            }
            other => panic!("{other:?}"),
        };
    }
    panic!("never complete");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// W-01: any sequence of saving, resuming and partial answers, at any point, plain or sealed, sends the same bytes
    /// and comes to the same outcome as none.
    #[test]
    fn w_01_saving_changes_nothing(rounds in prop::collection::vec(prop::collection::vec(step(), 0..8), 0..4)) {
        let undisturbed = play(&[]);
        prop_assert_eq!(undisturbed.len(), 4);
        prop_assert!(undisturbed[3].contains(Action::Accept.name()) || undisturbed[3].contains("Accept"));
        prop_assert_eq!(play(&rounds), undisturbed);
    }
}
