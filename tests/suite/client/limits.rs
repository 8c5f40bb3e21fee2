//! Every bound at 0, 1, n and n + 1. What is over it is named, and nobody is asked.

use std::time::Duration;

use mrtr_core::client::{AnswerError, Call, InputResponse, Reason, StartError, Thinking};

use super::*;

/// Goes through rounds with a question until it is over; gives how many questions were shown.
fn questions(client: &Client) -> (u32, Stopped) {
    let mut shown = 0;
    let mut result = receive(start(client), &asks(&[("k", &question(0))]), 0);
    loop {
        match result {
            Received::InputRequired(mut exchange) => {
                shown += 1;
                exchange.answer("k", InputResponse::accept(json("{}"))).unwrap();
                let (exchange, _) = proceed(exchange, i64::from(shown) + 1, 0);
                result = receive(exchange, &asks(&[("k", &question(shown))]), 0).map();
            }
            Received::Stopped(reason) => return (shown, reason),
            other => panic!("{other:?}"),
        }
    }
}

fn question(number: u32) -> String {
    FORM.replace("ok?", &number.to_string())
}

/// The outcomes that end here are the same in both open states.
trait Map {
    fn map(self) -> Received<'static, Pending>;
}

impl Map for Received<'static, Retrying> {
    fn map(self) -> Received<'static, Pending> {
        match self {
            Self::InputRequired(exchange) => Received::InputRequired(exchange),
            Self::Stopped(reason) => Received::Stopped(reason),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn b_58_trap_1_no_answer_is_collected_that_will_not_be_sent_g_07() {
    for retries in [0, 1, 3, 10] {
        let client = client_with(|_, policy| policy.retries = retries);
        assert_eq!(questions(&client), (retries, Stopped::Retries { limit: retries }));
    }
    assert_eq!(questions(&client()).0, 10);
    // One retry is enough for a flow of one question, and the last permitted reply counts.
    let client = client_with(|_, policy| policy.retries = 1);
    let mut exchange = asked(start(&client), &asks(&[("k", FORM)]), 0);
    exchange.answer("k", InputResponse::accept(json("{}"))).unwrap();
    assert!(complete(proceed(exchange, 2, 0).0, DONE).result().is_ok());
}

#[test]
fn b_57_state_only_rounds_have_a_cap_of_their_own_g_06() {
    for cap in [0, 1, 60] {
        let client = client_with(|limits, policy| {
            limits.state_only_rounds = cap;
            policy.retries = 0;
        });
        let defer = interim(r#""requestState":"s""#);
        let mut seen = 0;
        let mut now = 0;
        let mut result = receive(start(&client), &defer, now);
        let reason = loop {
            match result {
                Received::InputRequired(exchange) => {
                    seen += 1;
                    now += 1_000;
                    result = receive(proceed(exchange, i64::from(seen) + 1, now).0, &defer, now).map();
                }
                Received::Stopped(reason) => break reason,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!((seen, reason), (cap, Stopped::StateOnlyRounds { limit: cap }));
    }
    // It counts over the whole exchange, and questions between do not use it up.
    let client = client_with(|limits, _| limits.state_only_rounds = 1);
    let exchange = asked(start(&client), &interim(r#""requestState":"s""#), 0);
    let mut exchange = asked(proceed(exchange, 2, 60).0, &asks(&[("k", FORM)]), 60);
    exchange.answer("k", InputResponse::accept(json("{}"))).unwrap();
    let reason = stopped(proceed(exchange, 3, 60).0, &interim(r#""requestState":"s""#), 60);
    assert_eq!(reason, Stopped::StateOnlyRounds { limit: 1 });
}

#[test]
fn trap_13_state_only_rounds_are_paced_and_a_question_resets_the_pace_g_06() {
    let defer = interim(r#""requestState":"s""#);
    let pause = |exchange: &Exchange<InputRequired>, since: u64| {
        exchange.not_before().map_or(0, |until| until.as_unix_millis() - since)
    };
    let mut exchange = asked(start(&client()), &defer, 0);
    let (mut now, mut id) = (0, 1);
    for (low, high) in [(50, 60), (80, 120), (160, 240), (200, 250), (200, 250)] {
        let pause = pause(&exchange, now);
        assert!((low..=high).contains(&pause), "{pause}");
        // A millisecond too early is too early; to the millisecond is not.
        let mut out = Vec::new();
        assert!(!exchange.can_proceed(at(now + pause - 1)));
        let refused = exchange.proceed(99.into(), at(now + pause - 1), &mut out).unwrap_err();
        assert_eq!(refused.reason, Reason::TooEarly { not_before: at(now + pause) });
        assert!(out.is_empty());
        now += pause;
        id += 1;
        exchange = asked(proceed(refused.given_back, id, now).0, &defer, now);
    }
    let not_before = exchange.not_before().unwrap().as_unix_millis();
    let mut questioned = asked(proceed(exchange, 50, not_before).0, &asks(&[("k", FORM)]), 9_000);
    assert_eq!(questioned.not_before(), None);
    questioned.answer("k", InputResponse::accept(json("{}"))).unwrap();
    let exchange = asked(proceed(questioned, 51, 9_000).0, &defer, 9_000);
    assert!((50..=60).contains(&pause(&exchange, 9_000)));
    // To give up during a pause takes no time and sends nothing.
    exchange.abandon();
}

#[test]
fn g_06_calls_do_not_wait_in_step() {
    let pauses: std::collections::BTreeSet<_> = (0..40)
        .map(|seed| {
            let mut out = Vec::new();
            let call = Call::new("tools/call", "{}").jitter(seed);
            let exchange = client().start(1.into(), call, at(0), &mut out).unwrap();
            asked(exchange, &interim(r#""requestState":"s""#), 0).not_before().unwrap()
        })
        .collect();
    assert!(pauses.len() > 4, "{pauses:?}");
    let by_state: std::collections::BTreeSet<_> = (0..40)
        .map(|state| {
            asked(start(&client()), &interim(&format!(r#""requestState":"{state}""#)), 0)
                .not_before()
                .unwrap()
        })
        .collect();
    assert!(by_state.len() > 4, "{by_state:?}");
}

#[test]
fn asks_accepted() {
    for (limit, count, fine) in [(0, 1, false), (1, 1, true), (1, 2, false), (64, 64, true), (64, 65, false)]
    {
        let client = client_with(|limits, _| limits.asks_accepted = limit);
        let keys: Vec<_> = (0..count).map(|at| at.to_string()).collect();
        let result = asks(&keys.iter().map(|key| (&**key, ROOTS)).collect::<Vec<_>>());
        match receive(start(&client), &result, 0) {
            Received::InputRequired(exchange) => assert!(fine && exchange.asks().len() == count),
            Received::Invalid(violation) => {
                assert!(!fine && violation.to_string().contains("Limits::asks_accepted"), "{violation}");
            }
            other => panic!("{other:?}"),
        }
    }
    // None at all: a state-only round is still fine.
    let client = client_with(|limits, _| limits.asks_accepted = 0);
    assert_eq!(
        asked(start(&client), &interim(r#""inputRequests":{},"requestState":"s""#), 0).asks().len(),
        0
    );
}

#[test]
fn state_accepted() {
    for (limit, length, fine) in [(0, 0, true), (0, 1, false), (1, 1, true), (9, 9, true), (9, 10, false)] {
        let client = client_with(|limits, _| limits.state_accepted = limit);
        let result = interim(&format!(r#""requestState":"{}""#, "x".repeat(length)));
        match receive(start(&client), &result, 0) {
            Received::InputRequired(_) => assert!(fine),
            Received::Invalid(violation) => {
                assert!(!fine && violation.to_string().contains("Limits::state_accepted"), "{violation}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn answer_bytes() {
    // {"action":"accept","content":{}} has 32 bytes, {"action":"cancel"} 19.
    for (limit, fine) in [(0, false), (1, false), (31, false), (32, true), (33, true)] {
        let client = client_with(|limits, _| limits.answer_bytes = limit);
        let mut exchange = asked(start(&client), &asks(&[("k", FORM)]), 0);
        match exchange.answer("k", InputResponse::accept(json("{}"))) {
            Ok(()) => assert!(fine),
            Err(error) => {
                assert_eq!(error, AnswerError::TooLarge { bytes: 32, limit });
                assert!(!fine);
            }
        }
        assert_eq!(exchange.answer("k", InputResponse::cancel()).is_ok(), limit >= 19);
    }
}

#[test]
fn nodes_of_an_answer() {
    // {"action":"accept","content":{…}} has three values and the members.
    for (nodes, members, fine) in [(40, 37, true), (40, 38, false)] {
        let client = client_with(|limits, _| limits.nodes = nodes);
        let mut exchange = asked(start(&client), &asks(&[("k", FORM)]), 0);
        let content: Vec<_> = (0..members).map(|at| format!(r#""{at}":1"#)).collect();
        let content = format!("{{{}}}", content.join(","));
        match exchange.answer("k", InputResponse::accept(json(&content))) {
            Ok(()) => assert!(fine),
            Err(error) => assert!(!fine && error.to_string().contains("Limits::nodes"), "{error}"),
        }
    }
}

#[test]
fn message_bytes_of_what_is_received() {
    let result = r#"{"content":[]}"#;
    let length = reply("1", result).len();
    for (limit, fine) in [(length, true), (length + 1, true), (length - 1, false)] {
        let client = client_with(|limits, _| limits.message_bytes = limit.max(512));
        let padded = format!("{}{}", " ".repeat(limit.max(512) - limit), reply("1", result));
        match start(&client).receive(padded.as_bytes(), at(0)) {
            Received::Complete(_) => assert!(fine),
            // On a pipe it is not known whose reply it was.
            Received::Aside(_, mrtr_core::client::Aside::Unreadable(refused)) => {
                assert!(!fine && refused.reason.to_string().contains("Limits::message_bytes"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn message_bytes_of_what_is_sent() {
    let first = request("1", "").len();
    let begin = |limit: usize| {
        let client = client_with(|limits, _| limits.message_bytes = limit);
        let mut out = b"x".to_vec();
        let call = Call::new("tools/call", r#"{"name":"t","arguments":{}}"#);
        let result = client.start(1.into(), call, at(0), &mut out);
        assert_eq!(out.len() - 1, if result.is_ok() { first } else { 0 });
        result
    };
    for limit in [0, 1, first - 1] {
        assert_eq!(begin(limit).unwrap_err(), StartError::TooLarge { bytes: first, limit });
    }
    // A retry that cannot be sent whatever is answered is not asked for.
    let tail = r#","inputResponses":{},"requestState":"s""#.len();
    let ask = asks(&[("k", ROOTS)]);
    for limit in [first, first + tail - 1] {
        let reason = stopped(begin(limit).unwrap(), &ask, 0);
        assert_eq!(reason, Stopped::RetryTooLarge { bytes: first + tail, limit });
    }
    // One that is too large for its answers is given back.
    let answers = r#""k":{"roots":[]}"#.len();
    for limit in [first + tail, first + tail + answers - 1, first + tail + answers] {
        let mut exchange = asked(begin(limit).unwrap(), &ask, 0);
        exchange.answer("k", InputResponse::roots(json("[]"))).unwrap();
        let mut out = b"x".to_vec();
        match exchange.proceed(2.into(), at(0), &mut out) {
            Ok(_) => assert_eq!(limit, first + tail + answers),
            Err(refused) => {
                assert_eq!(refused.reason, Reason::TooLarge { bytes: first + tail + answers, limit });
                assert_eq!(out, b"x");
                assert_eq!(refused.given_back.missing().count(), 0);
            }
        }
    }
    let state = interim(&format!(r#""requestState":"{}""#, "s".repeat(100)));
    assert!(matches!(stopped(begin(first + 100).unwrap(), &state, 0), Stopped::RetryTooLarge { .. }));
}

#[test]
fn b_62_the_deadline_counts_no_thinking_time() {
    let client = client_with(|limits, _| limits.exchange = Duration::from_secs(10));
    let day = 86_400_000;
    // 4 s on the wire, a day of thinking, 6 s on the wire: exactly the limit.
    let mut exchange = asked(start(&client), &asks(&[("k", FORM)]), 4_000);
    assert_eq!(exchange.answer_by(), None);
    exchange.answer("k", InputResponse::accept(json("{}"))).unwrap();
    let (exchange, _) = proceed(exchange, 2, day);
    let mut exchange = asked(exchange, &asks(&[("k", NAME)]), day + 6_000);
    exchange.answer("k", InputResponse::accept(json("{}"))).unwrap();
    let (exchange, _) = proceed(exchange, 3, 2 * day);
    // A millisecond more, and nobody is asked.
    let reason = stopped(exchange, &asks(&[("k", FORM)]), 2 * day + 1);
    assert_eq!(reason, Stopped::Deadline { limit: Duration::from_secs(10) });
    // An outcome is an outcome, however late.
    let message = reply("1", DONE);
    assert!(matches!(start(&client).receive(message.as_bytes(), at(day)), Received::Complete(_)));
}

#[test]
fn thinking_about_a_restart_is_thinking_and_its_pauses_begin_anew() {
    let client = client_with(|limits, _| limits.exchange = Duration::from_secs(10));
    let defer = interim(r#""requestState":"s""#);
    let exchange = asked(start(&client), &defer, 0);
    let exchange = proceed(asked(proceed(exchange, 2, 100).0, &defer, 100), 3, 1_000).0;
    let Received::StateRefused(refused) = exchange.receive(error("3", -32602, "1").as_bytes(), at(1_000))
    else {
        panic!()
    };
    let exchange = refused.restart(4.into(), at(86_400_000), &mut Vec::new()).unwrap();
    let exchange = asked(exchange, &defer, 86_400_000);
    let pause = exchange.not_before().unwrap().as_unix_millis() - 86_400_000;
    assert!((50..=60).contains(&pause), "{pause}");
}

#[test]
fn thinking_time_counts_if_told_so() {
    let client = client_with(|limits, policy| {
        limits.exchange = Duration::from_secs(10);
        policy.thinking = Thinking::Counted;
    });
    for (now, fine) in [(4_000, true), (10_000, true), (10_001, false)] {
        let mut exchange = asked(start(&client), &asks(&[("k", FORM)]), 4_000);
        assert_eq!(exchange.answer_by(), Some(at(10_000)));
        exchange.answer("k", InputResponse::accept(json("{}"))).unwrap();
        assert_eq!(exchange.can_proceed(at(now)), fine);
        let result = exchange.proceed(2.into(), at(now), &mut Vec::new());
        match result {
            Ok(_) => assert!(fine),
            Err(refused) => {
                assert_eq!(refused.reason, Reason::Deadline { limit: Duration::from_secs(10) });
                assert!(!fine);
            }
        }
    }
}

#[test]
fn trap_13_a_pause_beyond_the_deadline_is_not_waited_for() {
    for (limit, fine) in [(0, false), (1, false), (1_049, false), (1_060, true)] {
        let client = client_with(|limits, _| limits.exchange = Duration::from_millis(limit));
        match receive(start(&client), &interim(r#""requestState":"s""#), 1_000) {
            Received::InputRequired(_) => assert!(fine),
            Received::Stopped(reason) => {
                assert_eq!(reason, Stopped::Deadline { limit: Duration::from_millis(limit) });
                assert!(!fine);
            }
            other => panic!("{other:?}"),
        }
    }
    // Pauses count, as long as they were meant to be; what lies behind them does not.
    let client = client_with(|limits, _| limits.exchange = Duration::from_millis(100));
    let exchange = asked(start(&client), &interim(r#""requestState":"s""#), 0);
    let exchange = proceed(exchange, 2, 1_000_000).0;
    assert!(matches!(
        stopped(exchange, &interim(r#""requestState":"s""#), 1_000_000),
        Stopped::Deadline { .. }
    ));
}

#[test]
fn r_192_a_request_has_a_time_of_its_own_that_progress_extends() {
    let client = client_with(|limits, policy| {
        policy.request_timeout = Duration::from_secs(10);
        policy.request_longest = Duration::from_secs(25);
        limits.exchange = Duration::from_secs(1_000);
    });
    let mut out = Vec::new();
    let call = Call::new("tools/call", "{}").progress(mrtr_core::client::Progress::Token("p".into()));
    let mut exchange = client.start(1.into(), call, at(0), &mut out).unwrap();
    assert_eq!(exchange.timeout(), at(10_000));
    for (token, now, timeout) in [
        (r#""p""#, 9_000, 19_000),
        (r#""q""#, 10_000, 19_000),
        ("1", 10_000, 19_000),
        (r#""p""#, 18_000, 25_000),
    ] {
        let message = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        );
        let Received::Aside(same, _) = exchange.receive(message.as_bytes(), at(now)) else { panic!() };
        assert_eq!(same.timeout(), at(timeout));
        exchange = same;
    }
    // Never beyond the exchange's own time.
    let client = client_with(|limits, _| limits.exchange = Duration::from_secs(7));
    assert_eq!(start(&client).timeout(), at(7_000));
}
