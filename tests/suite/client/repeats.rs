//! The same question again.

use mrtr_core::{client::InputResponse, wire::Action};

use super::*;

/// Answers the only ask and gets the next result.
fn next(
    mut exchange: Exchange<InputRequired>,
    id: i64,
    response: InputResponse<'_>,
    result: &str,
) -> Received<'static, Retrying> {
    let key = exchange.asks().next().unwrap().key().to_owned();
    exchange.answer(&key, response).unwrap();
    receive(proceed(exchange, id, 0).0, result, 0)
}

fn again(received: Received<'static, Retrying>) -> Exchange<InputRequired> {
    match received {
        Received::InputRequired(exchange) => exchange,
        other => panic!("{other:?}"),
    }
}

fn first(ask: &str) -> Exchange<InputRequired> {
    asked(start(&client()), &asks(&[("a", ask)]), 0)
}

#[test]
fn after_a_decline_the_same_question_stops_the_loop_whatever_its_key_r_133() {
    let spellings = [
        FORM.to_owned(),
        r#"{"params":{"requestedSchema":{"properties":{"yes":{"type":"boolean"}},"type":"object"},"mode":"form","message":"\u006fk?","_meta":{"n":2}},"method":"elicitation/create"}"#.to_owned(),
    ];
    for spelling in &spellings {
        for key in ["a", "b"] {
            let result =
                next(first(FORM), 2, InputResponse::decline(), &asks(&[("other", NAME), (key, spelling)]));
            let Received::Stopped(reason) = result else { panic!("{result:?}") };
            assert_eq!(reason, Stopped::Declined { key: key.to_owned() });
        }
    }
    // Not only in the next round.
    let exchange = again(next(first(FORM), 2, InputResponse::decline(), &asks(&[("a", NAME)])));
    let result = next(exchange, 3, InputResponse::accept(json("{}")), &asks(&[("a", FORM)]));
    assert!(matches!(result, Received::Stopped(Stopped::Declined { .. })), "{result:?}");
}

#[test]
fn another_question_may_follow_a_decline() {
    for other in [
        NAME.to_owned(),
        URL.to_owned(),
        FORM.replace("ok?", "ok? It is free."),
        FORM.replace(r#""boolean""#, r#""string""#),
    ] {
        let exchange = again(next(first(FORM), 2, InputResponse::decline(), &asks(&[("a", &other)])));
        assert_eq!(exchange.ask("a").unwrap().before(), None);
    }
}

#[test]
fn after_a_cancel_it_may_be_asked_once_more_r_133() {
    let ask = asks(&[("a", FORM)]);
    let second = again(next(first(FORM), 2, InputResponse::cancel(), &ask));
    assert_eq!(second.ask("a").unwrap().before(), Some(Action::Cancel));
    let result = next(second, 3, InputResponse::cancel(), &ask);
    assert!(matches!(&result, Received::Stopped(Stopped::Dismissed { key }) if key == "a"), "{result:?}");
    // Declined the second time: as declined.
    let second = again(next(first(FORM), 2, InputResponse::cancel(), &ask));
    let result = next(second, 3, InputResponse::decline(), &ask);
    assert!(matches!(result, Received::Stopped(Stopped::Declined { .. })));
    // Accepted the second time: all is open again.
    let second = again(next(first(FORM), 2, InputResponse::cancel(), &ask));
    let third = again(next(second, 3, InputResponse::accept(json("{}")), &ask));
    let fourth = again(next(third, 4, InputResponse::cancel(), &ask));
    let result = next(fourth, 5, InputResponse::cancel(), &ask);
    assert!(matches!(result, Received::Stopped(Stopped::Dismissed { .. })));
}

#[test]
fn an_accepted_question_may_come_again_and_says_so_g_32() {
    let exchange = again(next(first(FORM), 2, InputResponse::accept(json("{}")), &asks(&[("b", FORM)])));
    assert_eq!(exchange.ask("b").unwrap().before(), Some(Action::Accept));
    // A url is the same whatever the words around it: it is not to be opened twice.
    let waiting = URL.replace("Sign in", "Still waiting");
    let exchange =
        again(next(first(URL), 2, InputResponse::accepted_url(), &asks(&[("b", &waiting), ("c", FORM)])));
    assert_eq!(exchange.ask("b").unwrap().before(), Some(Action::Accept));
    assert_eq!(exchange.ask("c").unwrap().before(), None);
    let result = next(first(URL), 2, InputResponse::decline(), &asks(&[("b", &waiting)]));
    assert!(matches!(result, Received::Stopped(Stopped::Declined { .. })));
    let other = URL.replace("/1", "/2");
    assert!(matches!(
        next(first(URL), 2, InputResponse::decline(), &asks(&[("b", &other)])),
        Received::InputRequired(_)
    ));
}

#[test]
fn what_cannot_be_refused_may_come_again() {
    let sampled = r#"{"role":"assistant","content":[],"model":"m"}"#;
    let exchange =
        again(next(first(SAMPLING), 2, InputResponse::sampling(json(sampled)), &asks(&[("b", SAMPLING)])));
    assert_eq!(exchange.ask("b").unwrap().before(), None);
    assert!(matches!(
        next(first(ROOTS), 2, InputResponse::roots(json("[]")), &asks(&[("b", ROOTS)])),
        Received::InputRequired(_)
    ));
}

#[test]
fn a_restart_forgets_no_refusal_and_no_retry() {
    let client = client_with(|_, policy| policy.retries = 2);
    let restart = |exchange: Exchange<InputRequired>, id: i64, response: InputResponse<'_>| {
        let mut exchange = exchange;
        exchange.answer("a", response).unwrap();
        let (exchange, _) = proceed(exchange, id, 0);
        let message = error(&id.to_string(), -32602, "1");
        let Received::StateRefused(refused) = exchange.receive(message.as_bytes(), at(0)) else { panic!() };
        refused.restart((id + 1).into(), at(0), &mut Vec::new()).unwrap()
    };
    let ask = asks(&[("a", FORM)]);
    let exchange = restart(asked(start(&client), &ask, 0), 2, InputResponse::decline());
    assert!(matches!(stopped(exchange, &ask, 0), Stopped::Declined { .. }));
    // A server that refuses every state keeps nobody busy for ever.
    let exchange = restart(asked(start(&client), &ask, 0), 2, InputResponse::accept(json("{}")));
    let exchange = restart(asked(exchange, &ask, 0), 4, InputResponse::accept(json("{}")));
    assert_eq!(stopped(exchange, &ask, 0), Stopped::Retries { limit: 2 });
}
