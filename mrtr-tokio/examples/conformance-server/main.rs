//! The fixtures that the official conformance suite asks a server for, on the public API alone.
//!
//! `conformance-server --listen 127.0.0.1:0` prints the url of its endpoint and serves until it is stopped.

#![allow(clippy::std_instead_of_core)]

mod in_session;

use std::{net::SocketAddr, time::Duration};

use mrtr_core::{
    catalog::{
        CacheHints, Change, Content, Prompt, PromptResult, Resource, ResourceResult, ResourceTemplate, Tool,
    },
    form::{Field, Form},
    handler::{Ctx, RpcError, Service, ToolResult},
    server::{Config, Server},
    wire::{AskKind, Implementation, LogLevel, Requirement, Sampling},
};
use mrtr_tokio::{
    changes::Changes,
    keys::KeySource,
    server::{self, Anonymous, Endpoint, LegacyConfig},
};

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::DEBUG).init();
    let mut args = std::env::args().skip(1);
    let address = match (args.next().as_deref(), args.next()) {
        (Some("--listen"), Some(address)) => address.parse()?,
        (None, _) => SocketAddr::from(([127, 0, 0, 1], 0)),
        _ => return Err("usage: conformance-server [--listen ADDR]".into()),
    };
    let changes = Changes::new();
    let sealer = KeySource::Ephemeral.sealer("conformance")?;
    let config =
        Config::new(Implementation::new("mrtr-conformance-server", env!("CARGO_PKG_VERSION")), sealer);
    let service = Service::new(Server::new(config))
        .announce_changes()
        .hints(CacheHints::new(Duration::from_secs(60), true));
    let service = in_session::add(prompts(resources(asking_tools(plain_tools(service, &changes)?)?)?)?)?;

    let listener = tokio::net::TcpListener::bind(address).await?;
    announce(listener.local_addr()?);
    let endpoint =
        Endpoint::builder(service, Anonymous::new()).changes(changes).legacy(LegacyConfig::default()).build();
    server::serve(listener, endpoint, server::Options::default(), std::future::pending()).await?;
    Ok(())
}

#[allow(clippy::print_stdout)]
fn announce(address: SocketAddr) {
    println!("http://localhost:{}/mcp", address.port());
}

/// A red pixel.
const PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0,
    1, 8, 2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 12, b'I', b'D', b'A', b'T', 0x08, 0xd7, 0x63, 0xf8,
    0xcf, 0xc0, 0, 0, 3, 1, 1, 0, 0x18, 0xdd, 0x8d, 0xb0, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42,
    0x60, 0x82,
];

/// No sound, at 8 kHz.
const WAV: &[u8] =
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\0\0\0\0";

const DIALECT: &str = r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}"##;

fn plain_tools(service: Service, changes: &Changes) -> Result<Service, Failure> {
    let (tools, prompts) = (changes.clone(), changes.clone());
    let service = service
        .tool(Tool::new("test_simple_text", "Gives a text."), |_| async {
            done("This is a simple text response for testing.")
        })?
        .tool(Tool::new("test_image_content", "Gives an image."), |_| async {
            content([Content::image(PNG, "image/png")])
        })?
        .tool(Tool::new("test_audio_content", "Gives a sound."), |_| async {
            content([Content::audio(WAV, "audio/wav")])
        })?
        .tool(Tool::new("test_embedded_resource", "Gives a resource."), |_| async {
            let text = "This is an embedded resource content.";
            content([Content::resource_text("test://embedded-resource", "text/plain", text)])
        })?
        .tool(
            Tool::new("test_multiple_content_types", "Gives a text, an image and a resource."),
            |_| async {
                content([
                    Content::text("Multiple content types test:"),
                    Content::image(PNG, "image/png"),
                    Content::resource_text(
                        "test://mixed-content-resource",
                        "application/json",
                        r#"{"test":"data"}"#,
                    ),
                ])
            },
        )?
        .tool(Tool::new("test_error_handling", "Fails."), |_| async {
            Ok::<_, RpcError>(ToolResult::error("This tool intentionally returns an error for testing"))
        })?
        .tool(Tool::new("test_tool_with_progress", "Reports progress."), |ctx: Ctx| async move {
            for step in [0.0, 50.0, 100.0] {
                ctx.progress(step, Some(100.0), Some("working"));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            done("Progress was reported.")
        })?
        .tool(Tool::new("test_logging_tool", "Logs, if it was asked to."), |ctx: Ctx| async move {
            ctx.log(LogLevel::Info, "begun");
            ctx.log(LogLevel::Warning, "almost over");
            done("It was logged, if anybody wanted to know.")
        })?
        .tool(
            Tool::new("test_missing_capability", "Needs the client's model in any case.")
                .requires(Requirement::new(AskKind::Sampling)),
            |ctx: Ctx| async move {
                let sampled = ctx.sample("say", &Sampling::new(20).user("Say something.")).await?;
                done(sampled.text())
            },
        )?
        .tool(Tool::new("test_trigger_tool_change", "Announces a change of the tools."), move |_| {
            tools.notify(Change::Tools);
            async { done("The tools have changed.") }
        })?
        .tool(Tool::new("test_trigger_prompt_change", "Announces a change of the prompts."), move |_| {
            prompts.notify(Change::Prompts);
            async { done("The prompts have changed.") }
        })?
        .tool(
            Tool::new("json_schema_2020_12_tool", "Has a schema with many keywords.").input_schema(DIALECT),
            |ctx: Ctx| async move { done(ctx.arguments().as_str()) },
        )?
        .tool(
            Tool::new("test_header_parameter", "Wants its region in a header, too.").input_schema(
                r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#,
            ),
            |ctx: Ctx| async move { done(ctx.arguments().as_str()) },
        )?;
    Ok(service)
}

#[derive(serde::Deserialize)]
struct Named {
    name: String,
}

#[derive(serde::Deserialize)]
struct Confirmed {
    ok: bool,
}

#[derive(serde::Deserialize)]
struct Colored {
    color: String,
}

#[derive(serde::Deserialize)]
struct Context {
    context: String,
}

fn text_form(message: &str, field: &str) -> Result<Form, RpcError> {
    form(Form::builder(message).field(Field::string(field).required()))
}

fn form(builder: mrtr_core::form::FormBuilder) -> Result<Form, RpcError> {
    builder.build().map_err(|error| RpcError::internal(error.to_string()))
}

fn asking_tools(service: Service) -> Result<Service, Failure> {
    let service = service
        .tool(Tool::new("test_input_required_result_elicitation", "Asks for a name."), ask_name)?
        .tool(
            Tool::new("test_streaming_elicitation", "Reports progress, then asks for a name."),
            |ctx: Ctx| async move {
                ctx.progress(1.0, None, None);
                ask_name(ctx).await
            },
        )?
        .tool(Tool::new("test_input_required_result_sampling", "Asks the model."), |ctx: Ctx| async move {
            let request = Sampling::new(100).user("What is the capital of France?");
            done(ctx.sample("capital_question", &request).await?.text())
        })?
        .tool(
            Tool::new("test_input_required_result_list_roots", "Asks for the roots."),
            |ctx: Ctx| async move {
                let roots = ctx.roots("client_roots").await?;
                done(format!("{} roots", roots.len()))
            },
        )?
        .tool(Tool::new("test_input_required_result_request_state", "Asks, and keeps a state."), confirm)?
        .tool(
            Tool::new("test_input_required_result_tampered_state", "Asks, and refuses a changed state."),
            confirm,
        )?
        .tool(
            Tool::new("test_input_required_result_multiple_inputs", "Asks three things at once."),
            |ctx: Ctx| async move {
                let form = text_form("What is your name?", "name")?;
                let request = Sampling::new(50).user("Write a greeting.");
                let (name, greeting, roots) = tokio::join!(
                    ctx.elicit::<Named>("user_name", &form),
                    ctx.sample("greeting", &request),
                    ctx.roots("client_roots"),
                );
                let name = name?.accepted().map_or_else(|| String::from("nobody"), |named| named.name);
                done(format!("{} {name}, {} roots", greeting?.text(), roots?.len()))
            },
        )?
        .tool(
            Tool::new("test_input_required_result_multi_round", "Asks twice, one after the other."),
            |ctx: Ctx| async move {
                let name = ctx.elicit::<Named>("step1", &text_form("What is your name?", "name")?).await?;
                let color = ctx
                    .elicit::<Colored>("step2", &text_form("What is your favorite color?", "color")?)
                    .await?;
                match (name.accepted(), color.accepted()) {
                    (Some(name), Some(color)) => done(format!("{} likes {}.", name.name, color.color)),
                    _ => done("Not everything was answered."),
                }
            },
        )?
        .tool(
            Tool::new("test_input_required_result_capabilities", "Asks only what the client can answer."),
            |ctx: Ctx| async move {
                let form = text_form("What is your name?", "name")?;
                let request = Sampling::new(50).user("Write a greeting.");
                let (name, greeting) = tokio::join!(
                    ctx.elicit::<Named>("user_name", &form).optional(),
                    ctx.sample("greeting", &request).optional(),
                );
                done(format!("name: {}, greeting: {}", name.is_ok(), greeting.is_ok()))
            },
        )?;
    Ok(service)
}

async fn ask_name(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let answer = ctx.elicit::<Named>("user_name", &text_form("What is your name?", "name")?).await?;
    match answer.accepted() {
        Some(named) => done(format!("Hello, {}!", named.name)),
        None => done("Hello, whoever you are!"),
    }
}

async fn confirm(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let form = form(Form::builder("Please confirm").field(Field::boolean("ok").required()))?;
    let answer = ctx.elicit::<Confirmed>("confirm", &form).await?;
    let word = answer
        .accepted()
        .map_or("not answered", |confirmed| if confirmed.ok { "confirmed" } else { "refused" });
    done(format!("state-ok: {word}"))
}

fn resources(service: Service) -> Result<Service, Failure> {
    let service = service
        .resource(
            Resource::new("test://static-text", "static-text").description("A text.").mime_type("text/plain"),
            |ctx: Ctx| async move {
                let text = "This is the content of the static text resource.";
                Ok::<_, RpcError>(ResourceResult::text(ctx.target(), "text/plain", text))
            },
        )?
        .resource(
            Resource::new("test://static-binary", "static-binary")
                .description("An image.")
                .mime_type("image/png"),
            |ctx: Ctx| async move { Ok::<_, RpcError>(ResourceResult::blob(ctx.target(), "image/png", PNG)) },
        )?
        .template(
            ResourceTemplate::new("test://template/{id}/data", "template").mime_type("application/json"),
            |ctx: Ctx| async move {
                let id = serde_json::to_string(ctx.part("id").unwrap_or_default()).unwrap_or_default();
                let data =
                    serde_json::to_string(&format!("Data for ID: {}", ctx.part("id").unwrap_or_default()));
                let data = data.unwrap_or_default();
                let text = format!(r#"{{"id":{id},"templateTest":true,"data":{data}}}"#);
                Ok::<_, RpcError>(ResourceResult::text(ctx.target(), "application/json", &text))
            },
        )?;
    Ok(service)
}

fn prompts(service: Service) -> Result<Service, Failure> {
    let service = service
        .prompt(Prompt::new("test_simple_prompt", "A text."), |_| async {
            Ok::<_, RpcError>(PromptResult::new().user(Content::text("This is a simple prompt for testing.")))
        })?
        .prompt(
            Prompt::new("test_prompt_with_arguments", "A text with two arguments.")
                .required_argument("arg1", "The first.")
                .completions(["test", "testing"])
                .required_argument("arg2", "The second."),
            |ctx: Ctx| async move {
                let (one, two): (String, String) = (ctx.argument("arg1")?, ctx.argument("arg2")?);
                let text = format!("Prompt with arguments: arg1='{one}', arg2='{two}'");
                Ok::<_, RpcError>(PromptResult::new().user(Content::text(&text)))
            },
        )?
        .prompt(
            Prompt::new("test_prompt_with_embedded_resource", "A resource.")
                .required_argument("resourceUri", "Which one."),
            |ctx: Ctx| async move {
                let uri: String = ctx.argument("resourceUri")?;
                let block =
                    Content::resource_text(&uri, "text/plain", "Embedded resource content for testing.");
                let text = Content::text("Please process the embedded resource above.");
                Ok::<_, RpcError>(PromptResult::new().user(block).user(text))
            },
        )?
        .prompt(Prompt::new("test_prompt_with_image", "An image."), |_| async {
            let text = Content::text("Please analyze the image above.");
            Ok::<_, RpcError>(PromptResult::new().user(Content::image(PNG, "image/png")).user(text))
        })?
        .prompt(
            Prompt::new("test_input_required_result_prompt", "Asks for a context first."),
            |ctx: Ctx| async move {
                let form = text_form("What context should the prompt use?", "context")?;
                let answer = ctx.elicit::<Context>("user_context", &form).await?;
                let context = answer.accepted().map_or_else(|| String::from("none"), |given| given.context);
                Ok::<_, RpcError>(
                    PromptResult::new().user(Content::text(&format!("Use this context: {context}"))),
                )
            },
        )?;
    Ok(service)
}

fn done(text: impl AsRef<str>) -> Result<ToolResult, RpcError> {
    Ok(ToolResult::text(text))
}

fn content<const N: usize>(blocks: [Content; N]) -> Result<ToolResult, RpcError> {
    Ok(blocks.into_iter().fold(ToolResult::new(), ToolResult::content))
}
