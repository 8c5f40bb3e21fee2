//! What the suite asks a server of 2025-11-25 for. The same handlers serve both eras.

use std::time::Duration;

use mrtr_core::{
    catalog::{Resource, ResourceResult, Tool},
    form::{Elicited, Field, Form},
    handler::{Ctx, RpcError, Service, ToolResult},
    wire::{LogLevel, Sampling},
};

use crate::{Failure, done, form};

pub(crate) fn add(service: Service) -> Result<Service, Failure> {
    let service = service
        .tool(Tool::new("test_tool_with_logging", "Logs three times."), |ctx: Ctx| async move {
            for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                ctx.log(LogLevel::Info, text);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            done("It was logged.")
        })?
        .tool(Tool::new("test_sampling", "Asks the model what it is told to."), |ctx: Ctx| async move {
            let prompt: String = ctx.argument("prompt")?;
            let sampled = ctx.sample("prompt", &Sampling::new(100).user(&prompt)).await?;
            done(format!("LLM response: {}", sampled.text()))
        })?
        .tool(Tool::new("test_elicitation", "Asks for a name and an address."), |ctx: Ctx| async move {
            let builder = Form::builder(ctx.argument::<String>("message")?)
                .field(Field::string("username").description("User's response").required())
                .field(Field::string("email").description("User's email address").required());
            ask(&ctx, "User response:", &form(builder)?).await
        })?
        .tool(Tool::new("test_elicitation_sep1034_defaults", "Asks with defaults."), |ctx: Ctx| async move {
            let status = Field::select("status").choice("active").choice("inactive").choice("pending");
            let builder = Form::builder("Please review these values")
                .field(Field::string("name").default("John Doe"))
                .field(Field::integer("age").default(30))
                .field(Field::number("score").default(95.5))
                .field(status.default("active"))
                .field(Field::boolean("verified").default(true));
            ask(&ctx, "Elicitation completed:", &form(builder)?).await
        })?
        .tool(Tool::new("test_elicitation_sep1330_enums", "Asks with selects."), |ctx: Ctx| async move {
            let plain = ["option1", "option2", "option3"];
            let titled = [("value1", "First"), ("value2", "Second"), ("value3", "Third")];
            let builder = Form::builder("Please choose")
                .field(
                    plain
                        .into_iter()
                        .fold(Field::select("untitledSingle"), |field, value| field.choice(value)),
                )
                .field(
                    titled.into_iter().fold(Field::select("titledSingle"), |field, (value, title)| {
                        field.option(value, title)
                    }),
                )
                .field(
                    [("opt1", "Option One"), ("opt2", "Option Two"), ("opt3", "Option Three")]
                        .into_iter()
                        .fold(Field::select("legacyEnum"), |field, (value, title)| field.option(value, title))
                        .legacy_names(),
                )
                .field(
                    plain
                        .into_iter()
                        .fold(Field::multi_select("untitledMulti"), |field, value| field.choice(value)),
                )
                .field(
                    titled.into_iter().fold(Field::multi_select("titledMulti"), |field, (value, title)| {
                        field.option(value, title)
                    }),
                );
            ask(&ctx, "Elicitation completed:", &form(builder)?).await
        })?
        .resource(
            Resource::new("test://watched-resource", "watched").mime_type("text/plain"),
            |ctx: Ctx| async move {
                Ok::<_, RpcError>(ResourceResult::text(ctx.target(), "text/plain", "Watch me."))
            },
        )?;
    Ok(service)
}

async fn ask(ctx: &Ctx, before: &str, form: &Form) -> Result<ToolResult, RpcError> {
    match ctx.elicit::<serde_json::Value>("form", form).await? {
        Elicited::Accept(content) => done(format!("{before} action=accept, content={content}")),
        Elicited::Decline => done(format!("{before} action=decline")),
        Elicited::Cancel => done(format!("{before} action=cancel")),
    }
}
