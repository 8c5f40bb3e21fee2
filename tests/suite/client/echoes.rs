//! How an echo was broken, for those who watch both sides (W-11, R-089, R-090).

use mrtr_core::wire::{Change, Echo};

use super::*;

#[test]
fn w_11_each_way_to_break_an_echo_has_its_name() {
    let state = r#"{"a":1, "b":[2]}"#;
    let changed = Echo::Changed;
    for (returned, echo) in [
        (text(state), Echo::Whole),
        // Another spelling of the same string is the same string (R-089).
        (text(state).replace('a', "\\u0061"), Echo::Whole),
        (text(" {\"a\":1, \"b\":[2]}\n"), changed(Change::Trimmed)),
        (text(r#"{"b":[2],"a":1.0}"#), changed(Change::Rewritten)),
        (r#"{"a":1,"b":[2]}"#.to_owned(), changed(Change::Rewritten)),
        (text(r#"{"a":1"#), changed(Change::Cut { after: 6 })),
        (text(""), changed(Change::Cut { after: 0 })),
        (text(r#"{"a":2, "b":[2]}"#), changed(Change::At { same: 5 })),
        (text(r#"{"a":1, "b":[2]}x"#), changed(Change::At { same: 16 })),
        ("null".to_owned(), changed(Change::NotAString)),
        ("5".to_owned(), changed(Change::NotAString)),
        (r#""\ud800""#.to_owned(), changed(Change::NotAString)),
    ] {
        assert_eq!(Echo::of(&[Some(state)], Some(json(&returned))), echo, "{returned}");
    }
    assert_eq!(Echo::of(&[Some(state)], None), Echo::Missing);
    assert_eq!(Echo::of(&[None], Some(json(&text("x")))), Echo::Invented);
    assert_eq!(Echo::of(&[], Some(json(&text("x")))), Echo::Invented);
    assert_eq!((Echo::of(&[None], None), Echo::of(&[], None)), (Echo::None, Echo::None));
    // G-04: an empty state is one.
    assert_eq!(Echo::of(&[Some("")], None), Echo::Missing);
    assert_eq!(Echo::of(&[Some("")], Some(json(r#""""#))), Echo::Whole);
    assert_eq!(Echo::of(&[None], Some(json(r#""""#))), Echo::Invented);
}

/// B-22: what is brought back is often of another round.
#[test]
fn b_22_a_stale_state_is_named() {
    let issued = [Some("one"), None, Some("two"), Some("one"), Some("four")];
    let stale = |rounds: usize, state: &str| Echo::of(&issued[..rounds], Some(json(&text(state))));
    assert_eq!(stale(5, "one"), Echo::Stale { round: 3 });
    assert_eq!(stale(5, "two"), Echo::Stale { round: 2 });
    assert_eq!(stale(2, "one"), Echo::Stale { round: 0 });
    assert_eq!(stale(4, "one"), Echo::Whole);
}

/// R-089, R-090: our own client's echoes are whole, in every round.
#[test]
fn our_own_echoes_are_whole() {
    let states = [Some("a\"\u{e9}\u{1f600}"), None, Some(""), Some(" {\"x\":1} ")];
    let mut received = receive(start(&client()), &interim_with(states[0]), 0);
    for round in 0..states.len() {
        let Received::InputRequired(mut exchange) = received else { panic!() };
        exchange.answer("k", mrtr_core::client::InputResponse::accept(json("{}"))).unwrap();
        let mut out = Vec::new();
        let id = i64::try_from(round).unwrap() + 2;
        let exchange = exchange.proceed(id.into(), at(0), &mut out).unwrap();
        let sent = std::str::from_utf8(&out).unwrap();
        let returned = json(sent).get("params").and_then(|params| params.get("requestState"));
        let expected = if states[round].is_some() { Echo::Whole } else { Echo::None };
        assert_eq!(Echo::of(&states[..=round], returned), expected);
        let Some(next) = states.get(round + 1) else { return };
        let reply = reply(&id.to_string(), &interim_with(*next));
        received = match exchange.receive(reply.as_bytes(), at(0)) {
            Received::InputRequired(exchange) => Received::InputRequired(exchange),
            other => panic!("{other:?}"),
        };
    }
}

fn interim_with(state: Option<&str>) -> String {
    let state = state.map(|state| format!(r#","requestState":{}"#, text(state))).unwrap_or_default();
    interim(&format!(r#""inputRequests":{{"k":{FORM}}}{state}"#))
}
