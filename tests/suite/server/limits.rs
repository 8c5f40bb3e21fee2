//! Bounds, at their edges and by their names.

use mrtr_core::{
    Limits,
    form::{Field, Form},
    handler::{Ctx, ToolResult},
    http::ReplyClass,
    tape::TapePolicy,
};
use mrtr_tests::world::{Reply, World, accept};
use serde_json::{Value, json};

use super::{post, shown, world};

/// Limits of a message: bytes, depth, nodes; each inclusive, each named, with the id where it could be read.
#[test]
fn limits_of_a_message() {
    let mut limits = Limits::default();
    limits.depth = 10;
    limits.nodes = 100;
    limits.message_bytes = 2_000;
    let mut world =
        World::with(limits, TapePolicy::default(), |_: Ctx| async move { Ok(ToolResult::text("ran")) });
    let mut send = |arguments: &str, pad: usize| {
        let request = world.request("tools/call", json!({"name": "t", "arguments": {}})).to_string();
        let text = request.replacen("\"arguments\":{}", &format!("\"arguments\":{{\"a\":{arguments}}}"), 1);
        let text = format!("{text}{}", " ".repeat(pad.saturating_sub(text.len())));
        let (class, reply) = post(&mut world, &text);
        (class, Reply(reply))
    };
    // The arguments' value is nested three deep in the message.
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(send(&nested(7), 0).1.text(), "ran");
    let (class, over) = send(&nested(8), 0);
    assert_eq!((class, over.error().0), (ReplyClass::InvalidRequest, -32600));
    assert!(over.error().1.contains("Limits::depth") && over.0["id"].is_number(), "{over:?}");
    assert_eq!(send(&nested(900), 0).1.error().0, -32600);
    let (class, over) = send(&format!("[{}1]", "1,".repeat(120)), 0);
    assert_eq!((class, over.error().0), (ReplyClass::InvalidRequest, -32600));
    assert!(over.error().1.contains("Limits::nodes") && over.0["id"].is_number(), "{over:?}");
    assert_eq!(send("1", 2_000).1.text(), "ran");
    let (class, over) = send("1", 2_001);
    assert_eq!((class.status(), over.error().0, over.0.get("id")), (413, -32600, None));
    assert!(over.error().1.contains("Limits::message_bytes") && over.error().1.contains("2001"), "{over:?}");
}

/// B-82: what is nested without end is refused by depth, wherever it is, and takes no stack.
#[test]
fn b_82_endless_nesting() {
    let mut world = world();
    let deep = "[".repeat(100_000);
    let first = super::call(&mut world, "form", json!({}));
    for text in [
        deep.clone(),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{deep}"),
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"form\",\"requestState\":{:?},\"inputResponses\":{{\"n\":{deep}",
            first.state()
        ),
        "{\"a\":".repeat(100_000),
    ] {
        let (_, reply) = post(&mut world, &text);
        assert!(matches!(reply["error"]["code"].as_i64(), Some(-32600 | -32700)), "{reply}");
    }
}

/// A form of one text.
fn text_form() -> Form {
    Form::builder("Paste it").field(Field::string("s").required()).build().expect("valid")
}

fn pasting(limits: Limits, rounds: usize) -> World {
    World::with(limits, TapePolicy::default(), move |ctx: Ctx| async move {
        let mut bytes = 0;
        for round in 0..rounds {
            let answer = ctx.elicit::<Value>(&format!("k{round}"), &text_form()).await?;
            bytes += answer.accepted().map_or(0, |content| content["s"].as_str().map_or(0, str::len));
        }
        Ok(ToolResult::text(bytes.to_string()))
    })
}

/// Limits::answer_bytes, R-081: inclusive, named, with and without a state, and nothing is consumed; what stands under a
/// key that nobody asked is ignored whatever its size, as long as a state tells what was asked.
#[test]
fn limits_of_an_answer() {
    let mut limits = Limits::default();
    limits.answer_bytes = 1_000;
    let mut world = pasting(limits, 1);
    let first = world.call(json!({}));
    let answer = |bytes: usize| {
        let empty = accept(json!({"s": ""})).to_string().len();
        accept(json!({"s": "x".repeat(bytes - empty)}))
    };
    assert!(world.retry(&first, json!({"k0": answer(1_000)})).text().parse::<usize>().is_ok());
    for params in [json!({"requestState": first.state()}), json!({})] {
        let mut params = params;
        params["inputResponses"] = json!({"k0": answer(1_001)});
        let (code, message) = {
            let reply = world.call(params);
            (reply.error().0, reply.error().1.to_owned())
        };
        assert_eq!(code, -32602);
        assert!(
            message.contains("inputResponses[\"k0\"]")
                && message.contains("Limits::answer_bytes")
                && message.contains("1000"),
            "{message}"
        );
    }
    assert!(world.retry(&first, json!({"k0": answer(1_000)})).text().parse::<usize>().is_ok());
    let unasked = json!({"k0": answer(1_000), "k1": answer(1_001), "x": answer(5_000)});
    assert!(world.retry(&first, unasked).text().parse::<usize>().is_ok());
    // Without a state it might be what will be asked.
    assert_eq!(world.call(json!({"inputResponses": {"x": answer(1_001)}})).error().0, -32602);
    // A state that is refused is refused as such.
    let reply = world.call(json!({"requestState": "AQ", "inputResponses": {"k0": answer(1_001)}}));
    assert_eq!(reply.error(), (-32602, "Invalid or expired requestState"));
}

/// Trap 36, B-27: twenty rounds of answers of 2 KB fit the default; of 8 KB they end when a state cannot be minted, with an
/// error that names the bound and the size, before a question goes out whose answer could not be used.
#[test]
fn trap_36_states_grow_up_to_their_bound() {
    let mut limits = Limits::default();
    limits.rounds = 20;
    for (kilobytes, fits) in [(2, true), (8, false)] {
        let mut world = pasting(limits.clone(), 20);
        let mut last = world.call(json!({}));
        let mut sent = 0;
        while last.0["result"]["resultType"] == "input_required" {
            assert!(last.state().len() <= limits.state_minted);
            last = world
                .retry(&last, json!({format!("k{sent}"): accept(json!({"s": "x".repeat(kilobytes << 10)}))}));
            sent += 1;
        }
        if fits {
            assert_eq!((sent, last.text()), (20, (20 * 2_048).to_string().as_str()));
        } else {
            // Six answers of 8 KB are 48 KB, which base64 makes 64: the sixth state is the first that does not fit.
            assert_eq!(sent, 6);
            let (code, message) = last.error();
            assert_eq!(code, -32603);
            let size: usize = message.split_whitespace().find_map(|word| word.parse().ok()).expect("a size");
            assert!(size > limits.state_minted, "{message}");
            assert!(message.contains("65536") && message.contains("state_minted"), "{message}");
        }
    }
}

/// B-27: a state far over the bound is refused by its length; answers that were not asked make no state larger.
#[test]
fn b_27_what_was_not_asked_is_not_carried() {
    let mut world = pasting(Limits::default(), 2);
    let reply = world.call(json!({"requestState": "A".repeat(1 << 20), "inputResponses": {}}));
    assert_eq!(reply.error(), (-32602, "Invalid or expired requestState"));
    let mut answers: serde_json::Map<String, Value> =
        (0..60).map(|n| (format!("extra{n}"), accept(json!({"s": "x".repeat(60_000)})))).collect();
    answers.insert("k0".into(), accept(json!({"s": "y"})));
    let first = world.call(json!({}));
    for reply in [world.call(json!({"inputResponses": answers})), world.retry(&first, Value::Object(answers))]
    {
        assert_eq!(reply.keys(), ["k1"]);
        assert!(reply.state().len() < 1_000, "{}", reply.state().len());
    }
}

/// Limits::asks_accepted: further answers are looked at only if they answer an outstanding ask.
#[test]
fn limits_of_answers() {
    let mut limits = Limits::default();
    limits.asks_accepted = 3;
    let mut world = pasting(limits, 1);
    let first = world.call(json!({}));
    let mut answers: serde_json::Map<String, Value> = (0..100).map(|n| (format!("a{n}"), json!(5))).collect();
    answers.insert("k0".into(), accept(json!({"s": "y"})));
    assert_eq!(world.retry(&first, Value::Object(answers.clone())).text(), "1");
    // Without a state nothing is outstanding: the first three are what is looked at.
    assert_eq!(world.call(json!({"inputResponses": answers})).keys(), ["k0"]);
}

/// Design §4: no question goes out after the end of the exchange.
#[test]
fn limits_of_time() {
    let mut limits = Limits::default();
    limits.exchange = std::time::Duration::ZERO;
    let mut world = pasting(limits, 1);
    let reply = world.call(json!({}));
    assert_eq!(
        reply.error(),
        (-32603, "Internal error: the exchange is past its deadline (Limits::exchange)")
    );
}

/// A6: a question that diverges into more asks than a round may have is not recorded: its answer could not be used.
#[test]
fn a6_a_divergence_keeps_to_the_bounds() {
    let wide = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(2));
    let width = wide.clone();
    let mut limits = Limits::default();
    limits.asks_sent = 3;
    let mut world = World::with(limits, TapePolicy::default(), move |ctx: Ctx| {
        let width = width.load(std::sync::atomic::Ordering::Relaxed);
        async move {
            let asks: Vec<_> = (0..width).map(|n| super::number(&ctx, &format!("k{n}"))).collect();
            let said: Vec<String> = futures::future::join_all(asks).await.into_iter().map(shown).collect();
            Ok(ToolResult::text(said.join(" ")))
        }
    });
    let first = world.call(json!({}));
    wide.store(5, std::sync::atomic::Ordering::Relaxed);
    // Two of the five are answered, three are left: each round by itself keeps to the bound.
    let answers = json!({"k0": accept(json!({"n": 0})), "k1": accept(json!({"n": 1}))});
    let second = world.retry(&first, answers);
    if second.0.get("error").is_some() {
        assert!(second.error().1.contains("Limits::asks_sent"), "{second:?}");
        return;
    }
    let rest =
        json!({"k2": accept(json!({"n": 2})), "k3": accept(json!({"n": 3})), "k4": accept(json!({"n": 4}))});
    assert_eq!(world.retry(&second, rest).text(), "0 1 2 3 4");
}
