//! Form, else url, else refused: by the request in hand, and the same on every replay (G-13, B-50, R-108).

use mrtr_core::{
    form::{Elicited, Field, Form},
    handler::{AskError, Ctx, Reached, ToolResult},
};
use mrtr_tests::world::{World, accept};
use serde_json::{Value, json};

fn form() -> Form {
    Form::builder("Where to?").field(Field::string("street").required()).build().expect("a valid form")
}

fn world(optional: bool) -> World {
    World::new(move |ctx: Ctx| async move {
        let ask = ctx.elicit_or_url::<Value>("to", &form(), "https://shop.example/address");
        let ask = if optional { ask.optional() } else { ask };
        let reached = match ask.await {
            Ok(Reached::Form(Elicited::Accept(content))) => {
                content["street"].as_str().expect("a street").to_owned()
            }
            Ok(Reached::Form(answer)) => format!("form {:?}", answer.action()),
            Ok(Reached::Url(action)) => format!("url {action:?}"),
            Err(AskError::Unavailable) => "nobody".to_owned(),
            Err(error) => return Err(error.into()),
        };
        let sure = ctx.sample("check", &mrtr_core::wire::Sampling::new(9).user("ok?")).await?;
        Ok(ToolResult::text(format!("{reached} {}", sure.text())))
    })
}

fn declares(elicitation: Option<Value>) -> Value {
    let mut all = json!({"sampling": {}});
    if let Some(elicitation) = elicitation {
        all["elicitation"] = elicitation;
    }
    all
}

fn ok() -> Value {
    json!({"check": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "ok"}}})
}

#[test]
fn the_best_way_that_was_declared_is_taken() {
    let form_answer = accept(json!({"street": "Elm St"}));
    for (elicitation, key, answer, text) in [
        (json!({}), "to", form_answer.clone(), "Elm St ok"),
        (json!({"form": {}, "url": {}}), "to", form_answer, "Elm St ok"),
        (json!({"url": {}}), "to.url", json!({"action": "accept"}), "url Accept ok"),
    ] {
        let mut world = world(false);
        world.capabilities = declares(Some(elicitation));
        let first = world.call(json!({}));
        assert_eq!(first.keys(), [key]);
        assert_eq!(first.message(key), "Where to?");
        let second = world.retry(&first, json!({ key: answer }));
        assert_eq!(second.keys(), ["check"]);
        assert_eq!(world.retry(&second, ok()).text(), text);
    }
}

/// R-106, B-52: a client that can do neither is refused in the protocol's words, or gone on without.
#[test]
fn neither_is_refused_or_gone_on_without() {
    let mut required = world(false);
    required.capabilities = declares(None);
    let refused = required.call(json!({}));
    assert_eq!(refused.error().0, -32021);
    assert_eq!(refused.data(), &json!({"requiredCapabilities": {"elicitation": {}}}));
    let mut optional = world(true);
    optional.capabilities = declares(None);
    let first = optional.call(json!({}));
    assert_eq!(first.keys(), ["check"]);
    assert_eq!(optional.retry(&first, ok()).text(), "nobody ok");
}

/// the client declares something else in each round; the way that was taken stays.
#[test]
fn the_way_stays_when_declarations_change() {
    let mut world = world(false);
    world.capabilities = declares(Some(json!({"url": {}})));
    let first = world.call(json!({}));
    assert_eq!(first.keys(), ["to.url"]);
    world.capabilities = declares(Some(json!({"form": {}})));
    let second = world.retry(&first, json!({"to.url": {"action": "accept"}}));
    assert_eq!(second.keys(), ["check"]);
    world.capabilities = declares(Some(json!({"form": {}, "url": {}})));
    assert_eq!(world.retry(&second, ok()).text(), "url Accept ok");
}
