//! What the log says, and what it must not (G-11).

use std::time::Duration;

use mrtr_core::{
    form::{Field, Form},
    handler::{Ctx, Service, ToolResult},
    seal::{KeyRing, Sealer, Secret},
    server::Config,
    wire::Implementation,
};
use mrtr_tests::world::{Reply, World, accept, service};
use serde_json::{Value, json};

use crate::lines::Lines;

const ANSWER: &str = "the answer nobody else may read";
const PRINCIPAL: &str = "principal whose name is private";
const ARGUMENT: &str = "an argument of the call";

fn secret(byte: u8) -> Secret {
    Secret::from_bytes(&[byte; 32]).expect("32 bytes")
}

fn sealer(audience: &str) -> Sealer {
    Sealer::encrypted(&KeyRing::new(secret(1)), audience)
}

fn asking(sealer: Sealer) -> Service {
    let config = Config::new(Implementation::new("srv", "1"), sealer);
    service(config, |ctx: Ctx| async move {
        let form = Form::builder("Say it").field(Field::string("s").required()).build().expect("a form");
        let mut said = String::new();
        for key in ["a", "b"] {
            let given = ctx.elicit::<Value>(key, &form).await?.accepted();
            said.push_str(given.as_ref().and_then(|given| given["s"].as_str()).unwrap_or("no"));
        }
        Ok(ToolResult::text(said))
    })
}

fn world(sealer: Sealer) -> World {
    let mut world = World::of(asking(sealer));
    world.principal = Some(PRINCIPAL.into());
    world
}

fn params(state: Option<&str>, argument: &str) -> Value {
    let mut params = json!({"arguments": {"x": argument}});
    if let Some(state) = state {
        params["requestState"] = json!(state);
        params["inputResponses"] =
            json!({"a": accept(json!({"s": ANSWER})), "b": accept(json!({"s": ANSWER}))});
    }
    params
}

/// No line tells what was asked for, by whom, what was answered, or what a state is.
fn discreet(lines: &[String], states: &[&str]) {
    for line in lines {
        for private in [ANSWER, PRINCIPAL, ARGUMENT].iter().chain(states) {
            // Not a part of it either.
            let middle = private.get(8..32.min(private.len())).filter(|part| part.len() > 12);
            assert!(!line.contains(middle.unwrap_or(private)), "{line}");
        }
    }
}

/// G-11, R-070…R-074, B-17: each verdict is logged by its name, with all that an authentic state tells and no more.
#[test]
fn g_11_each_verdict_is_logged_with_what_may_be_known() {
    let log = Lines::default();
    tracing::subscriber::with_default(log.clone(), || {
        let mut world = world(sealer("srv"));
        let first = world.call(params(None, ARGUMENT));
        let second = world.call(params(Some(first.state()), ARGUMENT));
        assert_eq!(second.keys(), ["b"]);
        discreet(&log.take(), &[first.state(), second.state()]);
        let state = second.state().to_owned();
        let key = secret(1).key_id();
        let other_key = world_with(2).call(params(None, ARGUMENT)).state().to_owned();
        let other_audience = {
            let mut world = self::world(sealer("other"));
            world.call(params(None, ARGUMENT)).state().to_owned()
        };
        let forged = {
            let at = state.len() - 4;
            let other = if state.as_bytes()[at] == b'A' { 'B' } else { 'A' };
            format!("{}{other}{}", &state[..at], &state[at + 1..])
        };
        let huge = "A".repeat(70_000);
        let start = world.now;
        let known = |round: u32, age: u64| format!(" round={round} age_ms={age} ");
        let cases = [
            ("too_large", &*huge, 0, ARGUMENT, PRINCIPAL, None, String::new()),
            ("malformed", "not a state", 0, ARGUMENT, PRINCIPAL, None, String::new()),
            ("unknown_key", &other_key, 0, ARGUMENT, PRINCIPAL, Some(secret(2).key_id()), String::new()),
            ("unauthentic", &forged, 0, ARGUMENT, PRINCIPAL, Some(key), String::new()),
            ("not_yet_valid", &state, -61_000, ARGUMENT, PRINCIPAL, Some(key), known(2, 0)),
            ("expired", &state, 600_000, ARGUMENT, PRINCIPAL, Some(key), known(2, 600_000)),
            ("other_audience", &other_audience, 1_000, ARGUMENT, PRINCIPAL, Some(key), known(1, 1_000)),
            (
                "other_principal",
                &state,
                2_500,
                ARGUMENT,
                "somebody else entirely",
                Some(key),
                known(2, 2_500),
            ),
            ("other_request", &state, 3_000, "another argument", PRINCIPAL, Some(key), known(2, 3_000)),
        ];
        for (verdict, state, passed, argument, principal, key, rest) in cases {
            let millis = start.as_unix_millis().saturating_add_signed(passed);
            world.now = mrtr_core::Timestamp::from_unix_millis(millis);
            world.principal = Some(principal.into());
            let reply = world.call(params(Some(state), argument));
            assert_eq!(reply.error(), (-32602, "Invalid or expired requestState"), "{verdict}");
            let lines = log.take();
            let [line] = &lines[..] else { panic!("{verdict}: {lines:?}") };
            let line = format!("{line} ");
            assert!(line.starts_with("WARN ") && line.contains("message=a state was refused"), "{line}");
            assert!(line.contains(&format!(" verdict={verdict} ")), "{line}");
            match key {
                Some(key) => assert!(line.contains(&format!(" key={key} ")), "{line}"),
                None => assert!(!line.contains(" key="), "{line}"),
            }
            assert!(line.contains(&rest), "{line}");
            assert_eq!(line.contains(" exchange="), !rest.is_empty(), "{line}");
            discreet(&lines, &[state]);
            assert!(!line.contains("somebody else") && !line.contains("another argument"), "{line}");
        }
    });
}

fn world_with(byte: u8) -> World {
    world(Sealer::encrypted(&KeyRing::new(secret(byte)), "srv"))
}

/// B-17, G-53: a state under a key that no longer mints is counted and logged at debug, and nothing else is.
#[test]
fn b_17_states_by_a_retired_key_are_counted_and_logged() {
    let log = Lines::default();
    tracing::subscriber::with_default(log.clone(), || {
        let (old, new) = (secret(1).key_id(), secret(2).key_id());
        let sealer = sealer("srv");
        let mut world = world(sealer.clone());
        let first = world.call(params(None, ARGUMENT));
        let mut ring = KeyRing::new(secret(1));
        ring.accept(secret(2)).expect("another");
        ring.promote(new).expect("in the ring");
        sealer.set_ring(&ring);
        log.take();
        world.pass(Duration::from_secs(1));
        let second = world.call(params(Some(first.state()), ARGUMENT));
        let lines = log.take();
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert!(line.starts_with("DEBUG ") && line.contains(&format!(" key={old} ")), "{line}");
        assert!(line.contains(" exchange=") && line.contains(" round=1"), "{line}");
        discreet(&lines, &[first.state(), second.state()]);
        let done: Reply = world.call(params(Some(second.state()), ARGUMENT));
        assert_eq!(done.text(), format!("{ANSWER}{ANSWER}"));
        assert_eq!(log.take(), [""; 0]);
        let counts: Vec<_> = sealer
            .key_use()
            .iter()
            .map(|it| (it.key, it.mints, it.sealed, it.opened, it.opened_retired))
            .collect();
        assert_eq!(counts, [(new, true, 1, 1, 0), (old, false, 1, 1, 1)]);
    });
}
