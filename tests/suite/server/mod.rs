//! The server through its public API: bytes in, bytes out, rule by rule.

mod catalog;
mod conversation;
mod elicitation;
mod envelope;
mod errors;
mod gating;
mod headers;
mod http;
mod interim;
mod laws;
mod limits;
mod logs;
mod meta;
mod notifications;
mod retries;
mod return_style;
mod runtime;
mod sampling;
mod state;
mod versions;

use mrtr_core::{
    catalog::{CacheHints, Prompt, Resource, ResourceTemplate, Tool},
    form::{Elicited, Field, Form},
    handler::{Ask, AskError, Content, Ctx, PromptResult, ResourceResult, RpcError, Service, ToolResult},
    http::ReplyClass,
    server::{Config, Server},
    wire::{Action, AskKind, InputRequest, Requirement, Sampling},
};
use mrtr_tests::world::{Delivered, Reply, World, config, lawful};
use serde_json::{Value, json};

/// A form of one integer `n` from 0 to 9.
fn form(message: &str) -> Form {
    Form::builder(message)
        .field(Field::integer("n").minimum(0).maximum(9).required())
        .build()
        .expect("a valid form")
}

fn number(ctx: &Ctx, key: &str) -> Ask<Elicited<Value>> {
    ctx.elicit(key, &form(key))
}

fn shown(answer: std::result::Result<Elicited<Value>, AskError>) -> String {
    match answer {
        Ok(Elicited::Accept(content)) => content["n"].to_string(),
        Ok(Elicited::Decline) => "declined".into(),
        Ok(Elicited::Cancel) => "cancelled".into(),
        Err(error) => format!("{error:?}"),
    }
}

fn sampling() -> Sampling {
    Sampling::new(9).user("hi")
}

/// Tools that ask in every way there is, named by what they do; a prompt and resources that do and do not.
fn kit(config: Config) -> Service {
    let tool = |name: &str| Tool::new(name, "A tool");
    let text = |text: String| Ok::<_, RpcError>(ToolResult::text(text));
    let tools = |service: Service| {
        service
            .tool(tool("plain"), move |_: Ctx| async move { text("plain".into()) })?
            .tool(tool("form"), move |ctx: Ctx| async move { text(shown(number(&ctx, "n").await)) })?
            .tool(tool("required"), move |ctx: Ctx| async move {
                text(
                    number(&ctx, "n")
                        .await?
                        .accepted()
                        .map_or("no".into(), |content| content["n"].to_string()),
                )
            })?
            .tool(tool("confirm"), move |ctx: Ctx| async move {
                text(match ctx.confirm("sure", "Delete it?").await? {
                    Action::Accept => "deleted".into(),
                    Action::Decline => "declined".into(),
                    Action::Cancel => "cancelled".into(),
                })
            })?
            .tool(tool("url"), move |ctx: Ctx| async move {
                text(format!("{:?}", ctx.elicit_url("in", "Sign in", "https://example.com/in").await?))
            })?
            .tool(tool("sample"), move |ctx: Ctx| async move {
                let sampled = ctx.sample("s", &sampling()).await?;
                text(format!("{} {} {:?}", sampled.text(), sampled.model(), sampled.stop_reason()))
            })?
            .tool(tool("sample_tools"), move |ctx: Ctx| async move {
                let ask = sampling().member("tools", r#"[{"name":"x","inputSchema":{"type":"object"}}]"#);
                text(ctx.sample("s", &ask).await?.text())
            })?
            .tool(tool("sample_choice"), move |ctx: Ctx| async move {
                text(ctx.sample("s", &sampling().member("toolChoice", r#"{"mode":"none"}"#)).await?.text())
            })?
            .tool(tool("roots"), move |ctx: Ctx| async move { text(format!("{:?}", ctx.roots("r").await?)) })?
            .tool(tool("everything"), move |ctx: Ctx| async move {
                let asks = futures::future::join4(
                    number(&ctx, "n"),
                    ctx.elicit_url("in", "Sign in", "https://example.com/in"),
                    ctx.sample("s", &sampling()),
                    ctx.roots("r"),
                );
                let (form, url, sampled, roots) = asks.await;
                text(format!("{} {:?} {} {}", shown(form), url?, sampled?.text(), roots?.len()))
            })?
            .tool(tool("optional"), move |ctx: Ctx| async move {
                let asks = futures::future::join4(
                    number(&ctx, "n").optional(),
                    ctx.elicit_url("in", "Sign in", "https://example.com/in").optional(),
                    ctx.sample("s", &sampling()).optional(),
                    ctx.roots("r").optional(),
                );
                let (form, url, sampled, roots) = asks.await;
                text(format!("{} {} {} {}", form.is_ok(), url.is_ok(), sampled.is_ok(), roots.is_ok()))
            })?
            .tool(tool("two"), move |ctx: Ctx| async move {
                let a = shown(number(&ctx, "a").await);
                let b = shown(number(&ctx, "b").await);
                text(format!("{a} {b}"))
            })?
            .tool(tool("both"), move |ctx: Ctx| async move {
                let (a, b) = futures::future::join(number(&ctx, "a"), number(&ctx, "b")).await;
                text(format!("{} {}", shown(a), shown(b)))
            })?
            .tool(tool("fails"), |_: Ctx| async move { Ok::<_, RpcError>(ToolResult::error("it broke")) })?
            .tool(
                tool("breaks"),
                |_: Ctx| async move { Err::<ToolResult, _>(RpcError::internal("it broke")) },
            )?
            .tool(tool("declared").requires(Requirement::new(AskKind::Form)), move |_: Ctx| async move {
                text("ran".into())
            })?
            .tool(
                tool("header").input_schema(
                    r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},
                    "size":{"type":"integer","x-mcp-header":"Size"}}}"#,
                ),
                move |_: Ctx| async move { text("header".into()) },
            )
    };
    let prompts = |service: Service| {
        service
            .prompt(
                Prompt::new("greet", "Greets")
                    .required_argument("who", "Whom")
                    .argument("how", "How")
                    .completions(["warmly", "coldly"]),
                |ctx: Ctx| async move {
                    let who: String = ctx.argument("who")?;
                    Ok::<_, RpcError>(PromptResult::new().user(Content::text(&format!("Greet {who}"))))
                },
            )?
            .prompt(Prompt::new("ask", "Asks"), |ctx: Ctx| async move {
                let n = shown(number(&ctx, "n").await);
                Ok::<_, RpcError>(PromptResult::new().user(Content::text(&n)))
            })
    };
    let hints = CacheHints::new(std::time::Duration::from_secs(9), true);
    let resources = |service: Service| {
        service
            .resource(Resource::new("r:plain", "plain"), |_: Ctx| async move {
                Ok::<_, RpcError>(ResourceResult::text("r:plain", "text/plain", "plain"))
            })?
            .resource(Resource::new("r:hints", "hints"), move |_: Ctx| async move {
                Ok::<_, RpcError>(ResourceResult::text("r:hints", "text/plain", "hints").hints(hints))
            })?
            .resource(Resource::new("r:asks", "asks"), move |ctx: Ctx| async move {
                let n = shown(number(&ctx, "n").await);
                Ok::<_, RpcError>(ResourceResult::text("r:asks", "text/plain", &n).hints(hints))
            })?
            .template(ResourceTemplate::new("t:{id}/data", "data"), |ctx: Ctx| async move {
                let id = ctx.part("id").unwrap_or("none").to_owned();
                Ok::<_, RpcError>(ResourceResult::text(ctx.target(), "text/plain", &id))
            })
    };
    tools(Service::new(Server::new(config))).and_then(prompts).and_then(resources).expect("names are valid")
}

/// A world around the [`kit`].
fn world() -> World {
    World::of(kit(config()))
}

/// A tool of the kit with further params.
fn call(world: &mut World, tool: &str, more: Value) -> Reply {
    let message = tool_call(world, tool, more);
    world.send(&message)
}

fn tool_call(world: &mut World, tool: &str, more: Value) -> Value {
    let mut params = json!({"name": tool});
    merge(&mut params, &more);
    world.request("tools/call", params)
}

fn merge(into: &mut Value, from: &Value) {
    for (name, value) in from.as_object().expect("an object") {
        into[name] = value.clone();
    }
}

fn retry(world: &mut World, tool: &str, last: &Reply, answers: Value) -> Reply {
    call(world, tool, json!({"requestState": last.state(), "inputResponses": answers}))
}

/// The reply to any text, checked, and what it is.
fn post(world: &mut World, text: &str) -> (ReplyClass, Value) {
    reply(world.deliver(text.as_bytes(), None))
}

fn reply(delivered: Delivered) -> (ReplyClass, Value) {
    match delivered {
        Delivered::Reply(class, bytes) => (class, lawful(&bytes)),
        other => panic!("no reply: {other:?}"),
    }
}

/// An ask from JSON.
fn ask(value: &Value) -> InputRequest<'static> {
    let text = value.to_string();
    let json = mrtr_core::jsonrpc::Json::parse(&text, &mrtr_core::Limits::default()).expect("JSON");
    InputRequest::from_json(json).expect("an ask").into_owned()
}
