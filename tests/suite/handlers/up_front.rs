//! An answer that is given up front skips the round (W-23).

use mrtr_core::{
    form::{Elicited, Field, Form},
    handler::{AskError, Ctx, RpcError, ToolResult},
};
use mrtr_tests::{
    legacy::Client,
    world::{World, accept, config, service},
};
use serde_json::{Value, json};

async fn greet(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let form = Form::builder("Your name?").field(Field::string("name").required()).build()?;
    let name: String = match ctx.optional_argument("name")? {
        Some(name) => name,
        None => match ctx.elicit::<Value>("name", &form).optional().await {
            Ok(Elicited::Accept(content)) => content["name"].as_str().expect("text").to_owned(),
            Err(AskError::Unavailable) => return Ok(ToolResult::error("Call again with `name`.")),
            other => return Ok(ToolResult::text(format!("{other:?}"))),
        },
    };
    Ok(ToolResult::text(format!("Hello, {name}.")))
}

/// W-23, A7, R-083, G-13: as an argument, as an answer that comes with the call, or when it is asked for; and a client that
/// cannot be asked is told what to give.
#[test]
fn w_23_what_is_given_up_front_is_not_asked() {
    let mut world = World::new(greet);
    for arguments in [json!({}), json!({"name": null})] {
        let asked = world.call(json!({"arguments": arguments}));
        assert_eq!(asked.keys(), ["name"]);
        let answer = json!({"name": accept(json!({"name": "Ada"}))});
        let done = world
            .call(json!({"arguments": arguments, "requestState": asked.state(), "inputResponses": answer}));
        assert_eq!(done.text(), "Hello, Ada.");
        // Before it is asked for.
        assert_eq!(
            world.call(json!({"arguments": arguments, "inputResponses": answer})).text(),
            "Hello, Ada."
        );
    }
    assert_eq!(world.call(json!({"arguments": {"name": "Bob"}})).text(), "Hello, Bob.");
    assert_eq!(world.call(json!({"arguments": {"name": 5}})).error().0, -32602);
    world.capabilities = json!({});
    assert_eq!(world.call(json!({"arguments": {"name": "Bob"}})).text(), "Hello, Bob.");
    let hint = world.call(json!({}));
    assert_eq!((hint.text(), &hint.result()["isError"]), ("Call again with `name`.", &json!(true)));
}

/// W-02, W-23: the same handler and a client of an older revision.
#[test]
fn w_23_up_front_in_a_session() {
    for (capabilities, arguments, said) in [
        (json!({}), json!({}), "Call again with `name`."),
        (json!({}), json!({"name": "Bob"}), "Hello, Bob."),
        (json!({"elicitation": {}}), json!({"name": "Bob"}), "Hello, Bob."),
        (json!({"elicitation": {}}), json!({}), "Hello, Ada."),
    ] {
        for version in ["2025-11-25", "2025-06-18"] {
            let mut client = Client::new(service(config(), greet), version, capabilities.clone());
            client.start("tools/call", json!({"name": "t", "arguments": arguments}));
            let mut message = client.only();
            if said == "Hello, Ada." {
                client.answer(&message, accept(json!({"name": "Ada"})));
                message = client.only();
            }
            assert_eq!(message["result"]["content"][0]["text"], said);
        }
    }
}
