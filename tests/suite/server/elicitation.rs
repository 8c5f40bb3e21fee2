//! Forms and urls as they cross the server.

use mrtr_core::{
    form::{Field, Form},
    handler::{Ctx, ToolResult},
};
use mrtr_tests::world::{World, accept};
use serde_json::{Value, json};

use super::{ask, call, retry, world};

/// A world whose tool asks one form and gives back the accepted content as the handler saw it.
fn asking(form: Form) -> World {
    World::new(move |ctx: Ctx| {
        let request = form.to_request();
        async move {
            let answer = ctx.ask("k", request).await?;
            Ok(ToolResult::text(answer.accepted().unwrap_or_else(|| "refused".into())))
        }
    })
}

/// R-113 (no `mode` is a form), R-114, R-115, R-116, R-117, R-118…R-123, B-75, B-76: the nine shapes on the wire, in the author's order, with nothing that the language does not have.
#[test]
fn r_115_r_121_fields_on_the_wire() {
    let raw = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "z": {"type": "string", "title": "T", "description": "d", "minLength": 1, "maxLength": 9, "format": "email", "default": "a@b.cd"},
            "y": {"type": "number", "minimum": -1.5, "maximum": 2.5, "default": 0.5},
            "x": {"type": "integer", "minimum": 0},
            "w": {"type": "boolean", "default": true},
            "v": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "u": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
            "t": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 2},
            "s": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
            "r": {"type": "string", "enum": ["a"], "enumNames": ["A"]},
        },
        "required": ["z", "x"],
    });
    let schema = raw.to_string();
    let request =
        ask(&json!({"method": "elicitation/create", "params": {"message": "m", "requestedSchema": raw}}));
    let mut world = World::new(move |ctx: Ctx| {
        let request = request.clone();
        async move {
            let answer = ctx.ask("k", request).await?;
            Ok(ToolResult::text(answer.accepted().unwrap_or_default()))
        }
    });
    let first = world.call(json!({}));
    assert_eq!(
        first.result()["inputRequests"]["k"],
        json!({
        "method": "elicitation/create", "params": {"message": "m", "requestedSchema": raw}})
    );
    let request = world.request("tools/call", json!({"name": "t"})).to_string();
    assert!(String::from_utf8(world.send_bytes(request.as_bytes())).expect("UTF-8").contains(&schema));
    let content = json!({"z": "a@b.cd", "y": 1.5, "x": 3, "w": false, "v": "b", "u": "a", "t": ["b", "a"], "s": [], "r": "a"});
    let done = world.retry(&first, json!({"k": accept(content.clone())}));
    assert_eq!(serde_json::from_str::<Value>(done.text()).expect("JSON"), content);
}

/// R-123, G-16: a form outside the language could only be refused by the client: it is not sent.
#[test]
fn r_123_forms_outside_the_language_are_not_sent() {
    for property in [
        json!({"type": "object", "properties": {}}),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "array", "items": {"type": "object"}}),
        json!({"$ref": "https://example.com/schema.json"}),
        json!({"anyOf": [{"type": "string"}, {"type": "number"}]}),
        json!({"type": "null"}),
        json!(true),
        // Read from a peer these would be ignored; a handler must not say them (R-115).
        json!({"type": "string", "pattern": "^a"}),
        json!({"type": "string", "minimum": 1}),
        json!({"type": "integer", "multipleOf": 2}),
        json!({"type": "number", "exclusiveMinimum": 0}),
        json!({"type": "boolean", "const": true}),
        json!({"type": "string", "enum": ["a"], "maxLength": 1}),
        json!({"type": "string", "oneOf": [{"const": "a", "title": "A", "description": "d"}]}),
        json!({"type": "array", "items": {"enum": ["a"]}, "uniqueItems": true}),
        json!({"type": "array", "items": {"type": "string", "enum": ["a"], "minLength": 1}}),
    ] {
        let schema = json!({"type": "object", "properties": {"p": property}});
        let request = ask(
            &json!({"method": "elicitation/create", "params": {"message": "m", "requestedSchema": schema}}),
        );
        let mut world = World::new(move |ctx: Ctx| {
            let request = request.clone();
            async move {
                ctx.ask("k", request).await?;
                Ok(ToolResult::new())
            }
        });
        assert_eq!(world.call(json!({})).error(), (-32603, "Internal error"), "{property}");
    }
}

/// R-128…R-132, G-19…G-24, B-31, B-32, B-39, B-77, trap 32: what fits is what the handler gets, what does not is asked again.
#[test]
fn r_132_content_is_held_against_the_form() {
    let form = Form::builder("m")
        .field(Field::string("s").min_length(2).max_length(3))
        .field(Field::number("d").minimum(0).maximum(10))
        .field(Field::integer("i"))
        .field(Field::boolean("b"))
        .build()
        .expect("valid");
    let mut world = asking(form);
    let first = world.call(json!({}));
    for (content, seen) in [
        ("{}", "{}"),
        (r#"{"s":"ab"}"#, r#"{"s":"ab"}"#),
        (r#"{"s":"\ud83d\ude00\ud83d\ude00\ud83d\ude00"}"#, r#"{"s":"😀😀😀"}"#),
        (r#"{"d":1.5}"#, r#"{"d":1.5}"#),
        (r#"{"d":10.0}"#, r#"{"d":10.0}"#),
        (r#"{"i":3.0}"#, r#"{"i":3.0}"#),
        (r#"{"i":1e2}"#, r#"{"i":1e2}"#),
        (r#"{"i":9007199254740993}"#, r#"{"i":9007199254740993}"#),
        (r#"{"b":false,"unknown":{"deep":[1]},"x":null}"#, r#"{"b":false}"#),
    ] {
        let answers = format!(r#"{{"k":{{"action":"accept","content":{content}}}}}"#);
        let mut request =
            super::tool_call(&mut world, "t", json!({"requestState": first.state(), "inputResponses": {}}));
        request["params"]["arguments"] = json!({});
        let text = request.to_string().replacen(
            "\"inputResponses\":{}",
            &format!("\"inputResponses\":{answers}"),
            1,
        );
        let done = mrtr_tests::world::Reply(mrtr_tests::world::lawful(&world.send_bytes(text.as_bytes())));
        let got: Value = serde_json::from_str(done.text()).expect("JSON");
        let seen: Value = serde_json::from_str(seen).expect("JSON");
        for (name, value) in seen.as_object().expect("an object") {
            if value.is_number() {
                assert_eq!(got[name].as_f64(), value.as_f64(), "{content}")
            } else {
                assert_eq!(got[name], *value, "{content}")
            }
        }
        assert_eq!(
            got.as_object().expect("an object").len(),
            seen.as_object().expect("an object").len(),
            "{content}"
        );
    }
    for content in [
        json!({"s": "a"}),
        json!({"s": "abcd"}),
        json!({"s": 5}),
        json!({"s": null}),
        json!({"s": {"t": "ab"}}),
        json!({"s": ["ab"]}),
        json!({"d": -0.5}),
        json!({"d": 10.5}),
        json!({"d": "1"}),
        json!({"d": true}),
        json!({"i": 3.5}),
        json!({"i": "3"}),
        json!({"i": 0.5}),
        json!({"b": 1}),
        json!({"b": "true"}),
        json!({"b": null}),
    ] {
        let again = world.retry(&first, json!({"k": accept(content.clone())}));
        assert_eq!(again.keys(), ["k"], "{content}");
        assert!(again.result()["_meta"]["dev.mrtr/invalid"]["k"].is_string(), "{content}");
    }
}

/// R-132, G-18, B-39: the asks of a round are judged apart: the good answer stays, the bad one is asked again alone.
#[test]
fn b_39_a_bad_answer_does_not_lose_a_good_one() {
    let mut world = world();
    let first = call(&mut world, "both", json!({}));
    let second = retry(
        &mut world,
        "both",
        &first,
        json!({"a": accept(json!({"n": 10})), "b": accept(json!({"n": 2}))}),
    );
    assert_eq!(second.keys(), ["a"]);
    assert_eq!(retry(&mut world, "both", &second, json!({"a": accept(json!({"n": 1}))})).text(), "1 2");
}

/// R-132, G-18: a handler's `?` on an answer that never fits is the client's fault, and says no content.
#[test]
fn g_18_content_that_never_fits_is_the_clients_fault() {
    let mut world = world();
    let mut last = call(&mut world, "required", json!({}));
    for _ in 0..2 {
        last = retry(&mut world, "required", &last, json!({"n": accept(json!({"n": 777}))}));
        assert_eq!(last.keys(), ["n"]);
    }
    let reply = retry(&mut world, "required", &last, json!({"n": accept(json!({"n": 777}))}));
    assert_eq!(reply.error().0, -32602);
    assert!(!reply.error().1.contains("777"), "{reply:?}");
}

/// R-134, R-137: accept is consent; a url is never answered by content, and never unasked.
#[test]
fn r_137_urls() {
    let mut world = world();
    assert_eq!(
        call(&mut world, "url", json!({"inputResponses": {"in": {"action": "accept"}}})).keys(),
        ["in"]
    );
    let first = call(&mut world, "url", json!({}));
    for (action, said) in [("accept", "Accept"), ("decline", "Decline"), ("cancel", "Cancel")] {
        let reply = retry(
            &mut world,
            "url",
            &first,
            json!({"in": {"action": action, "content": {"token": "secret"}}}),
        );
        assert_eq!(reply.text(), said);
    }
}

/// R-112: messages in any script, with anything in them, come out as they went in.
#[test]
fn r_112_messages_come_out_as_they_went_in() {
    for message in
        ["", "Löschen?\n\"ja\"\\", "\u{0}\u{1f}\u{7f}\u{2028}", "😀".repeat(3_000).as_str(), "</script>"]
    {
        let shown = message.to_owned();
        let mut world = World::new(move |ctx: Ctx| {
            let shown = shown.clone();
            async move { Ok(ToolResult::text(format!("{:?}", ctx.confirm("k", shown).await?))) }
        });
        let first = world.call(json!({}));
        assert_eq!(first.message("k"), message);
        assert_eq!(world.retry(&first, json!({"k": {"action": "accept"}})).text(), "Accept");
    }
}

/// R-134: what is no url is not sent as one.
#[test]
fn r_134_what_is_no_url_is_not_sent() {
    for url in [
        "",
        "sign in here",
        "/relative",
        "example.com/in",
        "https://exa mple.com",
        "https://example.com/\u{e9}",
        "http://[::1",
    ] {
        let mut world = World::new(move |ctx: Ctx| async move {
            ctx.elicit_url("k", "m", url).await?;
            Ok(ToolResult::new())
        });
        assert_eq!(world.call(json!({})).error(), (-32603, "Internal error"), "{url:?}");
    }
    for url in [
        "https://example.com",
        "https://example.com:8443/in?a=b%20c#d",
        "http://127.0.0.1:3000/",
        "myapp://open/x",
    ] {
        let mut world = World::new(move |ctx: Ctx| async move {
            ctx.elicit_url("k", "m", url).await?;
            Ok(ToolResult::new())
        });
        assert_eq!(world.call(json!({})).keys(), ["k"], "{url:?}");
    }
}
