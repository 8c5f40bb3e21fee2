//! Laws over random inputs.

use mrtr_core::client::{Channel, InputResponse};
use proptest::prelude::*;

use super::*;

/// One round of a server, and what people do in it.
#[derive(Clone, Debug)]
struct Round {
    /// Which asks, by number; none is a state-only round.
    asks: Vec<u8>,
    state: Option<String>,
    actions: Vec<u8>,
    /// Before which of the steps the exchange is saved and resumed.
    saves: u8,
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let round = (
        proptest::collection::vec(0..6u8, 0..4),
        proptest::option::of("[ -~é😀]{0,12}"),
        proptest::collection::vec(any::<u8>(), 4),
        any::<u8>(),
    )
        .prop_map(|(asks, state, actions, saves)| Round { asks, state, actions, saves });
    proptest::collection::vec(round, 1..6)
}

fn ask(number: u8) -> String {
    match number {
        0 => FORM.to_owned(),
        1 => NAME.to_owned(),
        2 => URL.to_owned(),
        3 => SAMPLING.to_owned(),
        4 => ROOTS.to_owned(),
        other => FORM.replace("ok?", &format!("number {other}")),
    }
}

fn answer(exchange: &mut Exchange<InputRequired>, key: &str, action: u8) {
    let sampled = r#"{"role":"user","content":[],"model":"m"}"#;
    let content = format!(r#"{{"a":{action}}}"#);
    let given = [
        if action.is_multiple_of(3) {
            InputResponse::accept(json(&content))
        } else {
            InputResponse::accepted_url()
        },
        if action.is_multiple_of(2) { InputResponse::decline() } else { InputResponse::cancel() },
        InputResponse::accept(json(&content)),
        InputResponse::sampling(json(sampled)),
        InputResponse::roots(json("[]")),
    ];
    assert!(given.into_iter().any(|response| exchange.answer(key, response).is_ok()));
}

/// Runs the script and gives all that went out and how it ended.
fn run(client: &Client, script: &[Round], save: bool) -> (Vec<String>, String) {
    let park = |exchange: Exchange<InputRequired>, now: bool| {
        if !(save && now) {
            return exchange;
        }
        let mut bytes = Vec::new();
        exchange.save("origin", &mut bytes);
        drop(exchange);
        client.resume(&bytes, "origin").unwrap()
    };
    let mut sent = Vec::new();
    let mut now = 0;
    let mut retrying = None;
    let mut pending = Some(start(client));
    for (at, round) in script.iter().enumerate() {
        let keys: Vec<_> = (0..round.asks.len()).map(|at| format!("k{at}")).collect();
        let texts: Vec<_> = round.asks.iter().map(|number| ask(*number)).collect();
        let mut members = Vec::new();
        if !keys.is_empty() {
            let entries: Vec<_> =
                keys.iter().zip(&texts).map(|(key, ask)| format!("{}:{ask}", text(key))).collect();
            members.push(format!(r#""inputRequests":{{{}}}"#, entries.join(",")));
        }
        members.extend(round.state.as_ref().map(|state| format!(r#""requestState":{}"#, text(state))));
        members.push(r#""x":1"#.to_owned());
        let result = interim(&members.join(","));
        now += 10;
        let received = match (pending.take(), retrying.take()) {
            (Some(exchange), _) => describe(receive(exchange, &result, now)),
            (None, Some(exchange)) => describe(receive(exchange, &result, now)),
            (None, None) => unreachable!(),
        };
        let mut exchange = match received {
            Ok(exchange) => exchange,
            Err(end) => return (sent, end),
        };
        exchange = park(exchange, round.saves & 1 != 0);
        for (at, (key, action)) in keys.iter().zip(&round.actions).enumerate() {
            answer(&mut exchange, key, *action);
            exchange = park(exchange, round.saves & (2 << at) != 0);
        }
        now += 1_000;
        let (next, message) = proceed(exchange, i64::try_from(at).unwrap() + 2, now);
        sent.push(message);
        retrying = Some(next);
    }
    let end = format!("{:?}", complete(retrying.unwrap(), DONE));
    (sent, end)
}

fn describe<S: Open>(received: Received<'static, S>) -> Result<Exchange<InputRequired>, String> {
    match received {
        Received::InputRequired(exchange) => Ok(exchange),
        other => Err(format!("{other:?}")),
    }
}

/// Pieces of which messages are made, so that random ones get far.
fn plausible() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just(",".to_owned()),
        Just(":".to_owned()),
        Just("null".to_owned()),
        Just("1".to_owned()),
        Just(r#""jsonrpc":"2.0""#.to_owned()),
        Just(r#""id":1"#.to_owned()),
        Just(r#""result""#.to_owned()),
        Just(r#""error""#.to_owned()),
        Just(r#""method""#.to_owned()),
        Just(r#""resultType":"input_required""#.to_owned()),
        Just(r#""inputRequests""#.to_owned()),
        Just(r#""requestState""#.to_owned()),
        Just(r#""\ud800""#.to_owned()),
        Just(FORM.to_owned()),
        Just(ROOTS.to_owned()),
        Just(r#""k""#.to_owned()),
        Just("\u{0}".to_owned()),
    ];
    let noise = proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat());
    let value = prop_oneof![
        Just("null".to_owned()),
        Just("{}".to_owned()),
        Just("[]".to_owned()),
        Just("7".to_owned()),
        Just(r#""s""#.to_owned()),
        Just(r#""input_required""#.to_owned()),
        Just(format!(r#"{{"k":{FORM}}}"#)),
        Just(format!(r#"{{"k":{URL},"l":{ROOTS}}}"#)),
        Just(r#"{"k":null}"#.to_owned()),
    ];
    let names = prop_oneof![
        Just("resultType"),
        Just("inputRequests"),
        Just("requestState"),
        Just("_meta"),
        Just("x")
    ];
    let shaped = proptest::collection::vec((names, value), 0..5).prop_map(|members| {
        let members: Vec<_> = members.iter().map(|(name, value)| format!("{}:{value}", text(name))).collect();
        reply("1", &format!("{{{}}}", members.join(",")))
    });
    prop_oneof![noise, shaped]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn saving_and_resuming_anywhere_changes_no_byte(script in rounds()) {
        let client = client();
        prop_assert_eq!(run(&client, &script, true), run(&client, &script, false));
    }

    #[test]
    fn every_retry_is_the_original_request_with_this_rounds_answers_and_state_r_089_r_090_r_093(script in rounds()) {
        let (sent, _) = run(&client(), &script, false);
        let original: serde_json::Value = serde_json::from_str(&request("1", "")).unwrap();
        for (round, message) in script.iter().zip(&sent) {
            let mut message: serde_json::Value = serde_json::from_str(message).unwrap();
            let params = message["params"].as_object_mut().unwrap();
            let state = params.remove("requestState");
            prop_assert_eq!(state.as_ref().map(|state| state.as_str().unwrap()), round.state.as_deref());
            let answers = params.remove("inputResponses");
            let keys: Vec<_> = (0..round.asks.len()).map(|at| format!("k{at}")).collect();
            let answered: Vec<_> =
                answers.iter().flat_map(|answers| answers.as_object().unwrap().keys().cloned()).collect();
            prop_assert_eq!(answered, keys);
            prop_assert_eq!(&message["params"], &original["params"]);
            prop_assert_ne!(&message["id"], &original["id"]);
        }
    }

    #[test]
    fn a_state_comes_back_byte_for_byte_r_089(state in any::<String>()) {
        let token = text(&state);
        let exchange = asked(start(&client()), &interim(&format!(r#""requestState":{token}"#)), 0);
        prop_assert_eq!(proceed(exchange, 2, 60).1, request("2", &format!(r#","requestState":{token}"#)));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = start(&client()).receive(&bytes, at(0));
        let _ = client().resume(&bytes, "");
        let _ = client().resume(&[b"mrtrc\x01", &*bytes].concat(), "");
    }

    #[test]
    fn plausible_bytes_end_in_a_state_that_keeps_the_rules(message in plausible(), own in any::<bool>()) {
        let channel = if own { Channel::Own } else { Channel::Shared };
        let client = Client::new(config().channel(channel));
        if let Received::InputRequired(exchange) = start(&client).receive(message.as_bytes(), at(0)) {
            prop_assert_eq!(exchange.asks().len() == 0, exchange.not_before().is_some());
            let mut saved = Vec::new();
            exchange.save("o", &mut saved);
            prop_assert!(client.resume(&saved, "o").is_ok());
        }
    }
}
