//! What the official conformance suite asks of a client, on the public API alone.
//!
//! `conformance-client URL`, with the scenario's name in `MCP_CONFORMANCE_SCENARIO` and, for some, data in
//! `MCP_CONFORMANCE_CONTEXT`. The era of the server is found out where it shows.

#![allow(clippy::std_instead_of_core)]

use mrtr_core::{
    Limits,
    client::{Answerer, Answering, Config, Elicit, NoAnswers, NotAnswered, Question},
    form::{Elicited, Schema},
    jsonrpc::{Json, JsonKind},
    wire::{ClientCapabilities, Era, Implementation},
};
use mrtr_tokio::client::{Client, Options};

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::DEBUG).init();
    let url = std::env::args().nth(1).ok_or("usage: conformance-client URL")?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| String::from("{}"));
    let mut can = ClientCapabilities::default();
    can.form = true;
    let config = Config::new(Implementation::new("mrtr-conformance-client", env!("CARGO_PKG_VERSION")), can);
    let mut options = Options::default();
    if matches!(scenario.as_str(), "initialize" | "sse-retry") {
        // These servers answer requests of any era as if they knew it, so that nothing shows which is theirs. A host that
        // has met them before knows.
        options.connection.era = Some(Era::Legacy);
    }
    let client = Client::http(&url, config, options)?;
    match scenario.as_str() {
        "tools_call" => {
            client.list_tools().await?;
            client.call_tool("add_numbers", r#"{"a":5,"b":3}"#, &NoAnswers).await?;
        }
        "elicitation-sep1034-client-defaults" => {
            client.list_tools().await?;
            client.call_tool("test_client_elicitation_defaults", "{}", &AsItIs).await?;
        }
        "sse-retry" => {
            client.list_tools().await?;
            client.call_tool("test_reconnection", "{}", &NoAnswers).await?;
        }
        "initialize" => drop(client.list_tools().await?),
        "sep-2322-client-request-state" => {
            client.list_tools().await?;
            let accept = Accept { client: client.clone() };
            client.call_tool("test_mrtr_echo_state", "{}", &accept).await?;
            client.call_tool("test_mrtr_no_state", "{}", &accept).await?;
            client.call_tool("test_mrtr_no_result_type", "{}", &accept).await?;
        }
        "http-standard-headers" => everything(&client).await?,
        "http-custom-headers" => {
            client.list_tools().await?;
            let context = Json::parse(&context, &Limits::default()).map_err(|error| error.to_string())?;
            for call in context.get("toolCalls").and_then(Json::items).into_iter().flatten() {
                let name = call.get("name").and_then(Json::as_string).ok_or("a call without a name")?;
                let arguments = call.get("arguments").map_or("{}", Json::as_str);
                client.call_tool(&name, arguments, &NoAnswers).await?;
            }
        }
        "http-invalid-tool-headers" => {
            for tool in client.list_tools().await? {
                client.call_tool(&tool.name, &sample(&tool.json), &NoAnswers).await?;
            }
        }
        "json-schema-2020-12-preservation" => {
            let tools = client.list_tools().await?;
            let tool =
                tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool").ok_or("no such tool")?;
            let json = Json::parse(&tool.json, &Limits::default()).map_err(|error| error.to_string())?;
            let schema = json.get("inputSchema").map_or("{}", Json::as_str);
            client.call_tool("json_schema_echo", &format!("{{\"schema\":{schema}}}"), &NoAnswers).await?;
        }
        _ => {
            client.discover().await?;
            client.list_tools().await?;
        }
    }
    Ok(())
}

/// Lists everything there is, and uses it.
async fn everything(client: &Client) -> Result<(), Failure> {
    let limits = Limits::default();
    let member = |json: &str, name: &str| {
        let json = Json::parse(json, &limits).ok()?;
        Some(json.get(name)?.as_string()?.into_owned())
    };
    for tool in client.list_tools().await? {
        client.call_tool(&tool.name, &sample(&tool.json), &NoAnswers).await?;
    }
    for resource in client.list_resources().await? {
        let uri = member(&resource, "uri").ok_or("a resource without a uri")?;
        client.read_resource(&uri, &NoAnswers).await?;
    }
    for prompt in client.list_prompts().await? {
        let name = member(&prompt, "name").ok_or("a prompt without a name")?;
        client.get_prompt(&name, "{}", &NoAnswers).await?;
    }
    Ok(())
}

/// Arguments with something for every required property.
fn sample(tool: &str) -> String {
    let limits = Limits::default();
    let Ok(tool) = Json::parse(tool, &limits) else { return String::from("{}") };
    let schema = tool.get("inputSchema").unwrap_or(Json::EMPTY_OBJECT);
    let required = schema.get("required").and_then(Json::items).into_iter().flatten();
    let members: Vec<String> = required
        .filter(|name| name.kind() == JsonKind::String)
        .map(|name| {
            let property = name.as_string().and_then(|name| schema.get("properties")?.get(&name));
            let kind = property.and_then(|property| property.get("type")?.as_string());
            let value = match kind.as_deref() {
                Some("integer" | "number") => "1",
                Some("boolean") => "true",
                Some("array") => "[]",
                Some("object") => "{}",
                _ => "\"x\"",
            };
            format!("{}:{value}", name.as_str())
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Accepts every form, and calls another tool in between.
struct Accept {
    client: Client,
}

impl Answerer for Accept {
    fn forms(&self) -> Option<&dyn Elicit> {
        Some(self)
    }
}

impl Elicit for Accept {
    fn elicit<'a>(&'a self, _: Question<'a>) -> Answering<'a, Elicited<String>> {
        Box::pin(async {
            // A call between the rounds carries nothing of this one.
            let unrelated = self.client.call_tool("test_mrtr_unrelated", "{}", &NoAnswers).await;
            unrelated.map_err(|error| NotAnswered::Unavailable(error.to_string()))?;
            Ok(Elicited::Accept(String::from(r#"{"confirmed":true}"#)))
        })
    }
}

/// Accepts every form as it is filled in at first.
struct AsItIs;

impl Answerer for AsItIs {
    fn forms(&self) -> Option<&dyn Elicit> {
        Some(self)
    }
}

impl Elicit for AsItIs {
    fn elicit<'a>(&'a self, question: Question<'a>) -> Answering<'a, Elicited<String>> {
        Box::pin(async move {
            let schema = question.request().requested_schema().and_then(|schema| Schema::read(schema).ok());
            // What cannot be shown is dismissed (G-16).
            Ok(schema.map_or(Elicited::Cancel, |schema| Elicited::Accept(schema.prefill(Json::EMPTY_OBJECT))))
        })
    }
}
