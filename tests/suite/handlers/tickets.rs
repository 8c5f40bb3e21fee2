//! Tickets for the page behind a url.

use std::time::Duration;

use mrtr_core::{
    handler::{Ctx, ToolResult},
    seal::{Principal, Verdict},
    wire::Action,
};
use mrtr_tests::world::{World, accept};
use serde_json::{Value, json};

fn world() -> World {
    World::new(|ctx: Ctx| async move {
        let spare = ctx.ticket("other", Duration::from_secs(60))?;
        loop {
            let ticket = ctx.ticket("pay", Duration::from_secs(900))?;
            assert_ne!(spare, ticket);
            let url = format!("https://pay.example/?t={ticket}");
            if ctx.elicit_url("pay", "Pay", url).await? == Action::Accept {
                break;
            }
        }
        let exchange = ctx.exchange().to_string();
        ctx.confirm("sure", "Sure?").await?;
        Ok(ToolResult::text(exchange))
    })
}

fn ticket(reply: &mrtr_tests::world::Reply, key: &str) -> String {
    let url = reply.result()["inputRequests"][key]["params"]["url"].as_str().expect("a url");
    url.split_once("?t=").expect("a ticket").1.to_owned()
}

/// The url is the same on every run, so its answer counts; the ticket names the ask as it is on the wire.
#[test]
fn a_ticket_is_the_same_on_every_run_and_names_its_ask() {
    let mut world = world();
    let alice = Principal::Authenticated(b"alice");
    let first = world.call(json!({}));
    let ticket_1 = ticket(&first, "pay");
    // Asked again without an answer: still the same url.
    let same = world.retry(&first, json!({}));
    assert_eq!(ticket(&same, "pay"), ticket_1);
    let second = world.retry(&same, json!({"pay": {"action": "decline"}}));
    let ticket_2 = ticket(&second, "pay#1");
    assert_ne!(ticket_1, ticket_2);
    let third = world.retry(&second, json!({"pay#1": {"action": "accept"}}));
    let done = world.retry(&third, json!({"sure": accept(json!({}))}));

    let now = world.now;
    let open = |token: &str| world.service.open_ticket(token, alice, now).expect("a good ticket");
    assert_eq!(open(&ticket_1).key, "pay");
    assert_eq!(open(&ticket_2).key, "pay#1");
    assert_eq!(open(&ticket_1).exchange.to_string(), done.text());
    assert_eq!(open(&ticket_1).expires, now.saturating_add(Duration::from_secs(900)));
    let refused = |principal, now| world.service.open_ticket(&ticket_1, principal, now).unwrap_err().verdict;
    assert_eq!(refused(Principal::Authenticated(b"eve"), now), Verdict::OtherPrincipal);
    assert_eq!(refused(alice, now.saturating_add(Duration::from_secs(900))), Verdict::Expired);
}

/// Every ticket of a round has a nonce of its own, and so has the state (characters 8 to 40 of each).
#[test]
fn no_nonce_is_used_twice() {
    let mut world = World::new(|ctx: Ctx| async move {
        let tickets = ["a", "b", "c"].map(|key| ctx.ticket(key, Duration::from_secs(60)).expect("a ticket"));
        ctx.confirm("k", tickets.join(" ")).await?;
        Ok(ToolResult::new())
    });
    let reply = world.call(json!({}));
    let mut nonces: Vec<&str> = reply.message("k").split(' ').collect();
    nonces.push(reply.state());
    let mut nonces: Vec<&str> = nonces.into_iter().map(|token| &token[8..40]).collect();
    nonces.sort_unstable();
    nonces.dedup();
    assert_eq!(nonces.len(), 4);
}

/// A8: tickets are no effects: a path that made one can be left.
#[test]
fn a_ticket_behind_a_divergence_does_not_end_the_exchange() {
    let version = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let deploy = version.clone();
    let mut world = World::new(move |ctx: Ctx| {
        let version = version.load(std::sync::atomic::Ordering::Relaxed);
        async move {
            let _: Action = ctx.confirm("a", format!("version {version}")).await?;
            let ticket = ctx.ticket("pay", Duration::from_secs(60))?;
            ctx.elicit_url("pay", "Pay", format!("https://pay.example/?t={ticket}")).await?;
            Ok(ToolResult::text("paid"))
        }
    });
    let yes = || accept(json!({}));
    let first = world.call(json!({}));
    let second = world.retry(&first, json!({"a": yes()}));
    deploy.store(1, std::sync::atomic::Ordering::Relaxed);
    let third = world.retry(&second, json!({"pay": {"action": "accept"}}));
    assert_eq!(third.keys(), ["a"]);
    let fourth = world.retry(&third, json!({"a": yes()}));
    assert_eq!(fourth.keys(), ["pay"]);
    let _: &Value = fourth.result();
    assert_eq!(world.retry(&fourth, json!({"pay": {"action": "accept"}})).text(), "paid");
}
