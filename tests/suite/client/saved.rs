//! Saving an exchange between rounds and taking it up elsewhere.

use mrtr_core::client::{Call, InputResponse, Progress, Reason, ResumeError};
use mrtr_core::wire::LogLevel;

use super::*;

const ORIGIN: &str = "https://a.example/mcp";

fn save(exchange: &Exchange<InputRequired>) -> Vec<u8> {
    let mut out = Vec::new();
    exchange.save(ORIGIN, &mut out);
    out
}

/// An exchange with something in every field.
fn rich(client: &Client) -> Exchange<InputRequired> {
    let call = Call::new("tools/call", r#"{"name":"t","x":{"y":[1.0]},"_meta":{"trace/p":"q"}}"#)
        .log_level(LogLevel::Info)
        .progress(Progress::Token("p".into()))
        .may_run_twice()
        .jitter(7);
    let exchange = client.start("first".into(), call, at(5), &mut Vec::new()).unwrap();
    let mut exchange = asked(exchange, &asks(&[("no", FORM), ("url", URL)]), 10);
    exchange.answer("no", InputResponse::decline()).unwrap();
    exchange.answer("url", InputResponse::accepted_url()).unwrap();
    let (exchange, _) = proceed(exchange, 2, 20);
    let entries = [("n\u{e9}", NAME), ("url", URL), ("s", SAMPLING), ("r", ROOTS)];
    let result =
        asks(&entries).replace(r#""requestState":"s""#, r#""requestState":"\u0073é","_meta":{"m":1}"#);
    let mut exchange = asked(exchange, &result, 30);
    exchange.answer("n\u{e9}", InputResponse::accept(json(r#"{"name":"A"}"#))).unwrap();
    exchange.answer("r", InputResponse::roots(json(r#"[{"uri":"file:///x"}]"#))).unwrap();
    exchange
}

fn finish(mut exchange: Exchange<InputRequired>) -> String {
    exchange.answer("url", InputResponse::accepted_url()).unwrap();
    exchange
        .answer("s", InputResponse::sampling(json(r#"{"role":"user","content":[],"model":"m"}"#)))
        .unwrap();
    proceed(exchange, 3, 1_000).1
}

#[test]
fn w_01_everything_is_kept_partial_answers_too() {
    let client = client();
    let exchange = rich(&client);
    let saved = save(&exchange);
    let resumed = client.resume(&saved, ORIGIN).unwrap();
    assert_eq!(format!("{resumed:?}"), format!("{exchange:?}"));
    assert_eq!(resumed.meta().map(Json::as_str), Some(r#"{"m":1}"#));
    assert_eq!(resumed.ask("url").unwrap().before(), exchange.ask("url").unwrap().before());
    assert!(resumed.ask("url").unwrap().before().is_some());
    assert_eq!(save(&resumed), saved);
    assert_eq!(finish(resumed), finish(exchange));

    // Refusals, ids and counters, too.
    let resumed = client.resume(&saved, ORIGIN).unwrap();
    let refused = {
        let mut exchange = resumed;
        exchange.answer("url", InputResponse::cancel()).unwrap();
        exchange
            .answer("s", InputResponse::sampling(json(r#"{"role":"user","content":[],"model":"m"}"#)))
            .unwrap();
        let refused = exchange.proceed("first".into(), at(40), &mut Vec::new()).unwrap_err();
        assert!(matches!(refused.reason, Reason::Id(_)));
        refused.given_back
    };
    let (exchange, _) = proceed(refused, 9, 40);
    assert_eq!(
        stopped(exchange, &asks(&[("again", FORM)]), 50),
        Stopped::Declined { key: "again".to_owned() }
    );
}

#[test]
fn r_092_it_goes_to_no_other_server() {
    let saved = save(&rich(&client()));
    for origin in ["", "https://a.example/mcp/", "https://b.example/mcp", "HTTPS://a.example/mcp"] {
        assert_eq!(client().resume(&saved, origin).unwrap_err(), ResumeError::OtherOrigin);
    }
}

#[test]
fn pauses_survive_and_count() {
    let client = client();
    let exchange = asked(start(&client), &interim(r#""requestState":"s""#), 100);
    let resumed = client.resume(&save(&exchange), ORIGIN).unwrap();
    assert_eq!(resumed.not_before(), exchange.not_before());
    assert!(!resumed.can_proceed(at(100)));
    assert_eq!(proceed(resumed, 2, 1_000).1, proceed(exchange, 2, 1_000).1);
}

#[test]
fn g_07_a_client_that_allows_less_says_so() {
    let saved = save(&rich(&client()));
    let strict = client_with(|_, policy| policy.retries = 1);
    assert_eq!(
        strict.resume(&saved, ORIGIN).unwrap_err(),
        ResumeError::Stopped(Stopped::Retries { limit: 1 })
    );
    let just = client_with(|limits, policy| {
        policy.retries = 2;
        limits.asks_accepted = 4;
        // `\u0073é`, in bytes.
        limits.state_accepted = 8;
    });
    assert!(just.resume(&saved, ORIGIN).is_ok());
    for change in [
        (|limits: &mut Limits| limits.asks_accepted = 3) as fn(&mut Limits),
        |limits| limits.state_accepted = 7,
        |limits| limits.answer_bytes = 10,
        |limits| limits.depth = 1,
    ] {
        let strict = client_with(|limits, _| change(limits));
        assert!(matches!(strict.resume(&saved, ORIGIN).unwrap_err(), ResumeError::Broken(_)));
    }
    let deferred = asked(start(&client()), &interim(r#""requestState":"s""#), 0);
    let strict = client_with(|limits, _| limits.state_only_rounds = 0);
    assert_eq!(
        strict.resume(&save(&deferred), ORIGIN).unwrap_err(),
        ResumeError::Stopped(Stopped::StateOnlyRounds { limit: 0 })
    );
}

#[test]
fn cut_or_lengthened_bytes_are_refused_wherever_it_is() {
    let client = client();
    let saved = save(&rich(&client));
    for end in 0..saved.len() {
        assert!(client.resume(&saved[..end], ORIGIN).is_err(), "{end}");
    }
    let mut longer = saved.clone();
    longer.push(0);
    assert_eq!(client.resume(&longer, ORIGIN).unwrap_err(), ResumeError::Broken("something follows its end"));
    assert_eq!(client.resume(b"", ORIGIN).unwrap_err(), ResumeError::NotAnExchange);
    assert_eq!(client.resume(b"{}", ORIGIN).unwrap_err(), ResumeError::NotAnExchange);
    let mut other = saved;
    other[5] = 2;
    assert_eq!(client.resume(&other, ORIGIN).unwrap_err(), ResumeError::Format(2));
}

#[test]
fn fields_that_do_not_fit_each_other_are_refused() {
    let client = client();
    let replaced = |saved: &[u8], old: &[u8], new: &[u8]| {
        let position = saved.windows(old.len()).position(|window| window == old).unwrap();
        [&saved[..position], new, &saved[position + old.len()..]].concat()
    };
    let broken = |saved: &[u8], what: &str| match client.resume(saved, ORIGIN).unwrap_err() {
        ResumeError::Broken(found) => assert!(found.contains(what), "{found}"),
        other => panic!("{other:?}"),
    };
    let saved = save(&rich(&client));
    broken(&replaced(&saved, br#""roots":{}"#, br#""rootz":{}"#), "not declared");
    broken(&replaced(&saved, br#""file:///x""#, br#""http:///x""#), "answer");
    broken(
        &replaced(
            &saved,
            br#""2026-07-28""#.strip_prefix(b"\"").unwrap().strip_suffix(b"\"").unwrap(),
            b"2025-11-25",
        ),
        "version",
    );
    let twice = save(&asked(start(&client), &asks(&[("one", FORM), ("two", FORM)]), 0));
    broken(&replaced(&twice, b"two", b"one"), "twice");
    // A state-only round without its pause: the last fields are a flag, the pause, and the number of asks.
    let deferred = save(&asked(start(&client), &interim(r#""requestState":"s""#), 0));
    let cut = [&deferred[..deferred.len() - 17], &[0; 9]].concat();
    broken(&cut, "pause in the wrong place");
}

#[test]
fn every_changed_byte_is_refused_or_leaves_a_sound_exchange() {
    let client = client();
    let saved = save(&rich(&client));
    for position in 0..saved.len() {
        for bit in [0x01, 0x20, 0x80] {
            let mut changed = saved.clone();
            changed[position] ^= bit;
            let Ok(exchange) = client.resume(&changed, ORIGIN) else { continue };
            // What is taken can be saved, and taken again to the same effect.
            let again = save(&exchange);
            assert_eq!(save(&client.resume(&again, ORIGIN).unwrap()), again, "{position}");
            let keys: Vec<_> = exchange.missing().map(str::to_owned).collect();
            let mut exchange = exchange;
            for key in keys {
                let given = [
                    InputResponse::decline(),
                    InputResponse::roots(json("[]")),
                    InputResponse::sampling(json(r#"{"role":"user","content":[],"model":"m"}"#)),
                ];
                assert!(given.into_iter().any(|response| exchange.answer(&key, response).is_ok()));
            }
            let mut out = Vec::new();
            if exchange.proceed("unused".into(), at(u64::MAX), &mut out).is_ok() {
                assert!(mrtr_core::jsonrpc::admit(&out, &Limits::default()).is_ok(), "{position}");
                assert!(!out.contains(&b'\n'));
            }
        }
    }
}
