//! Tools worth playing with, as `mrtr demo` and `mrtr serve` offer them.
//!
//! | tool | shows |
//! |---|---|
//! | `plan` | a second question whose wording depends on the first answer |
//! | `book_table` | several steps, choices that depend on answers, a question asked again in a loop, a confirmation |
//! | `greet_two` | two questions in one round |
//! | `delete_files` | a confirmation of a concrete action, whose subject may change while the person thinks |
//! | `summarize` | a question to the client's model |
//! | `list_project` | a question to the client itself |
//! | `connect_account` | a url to open, and rounds without a question until it is done |
//! | `plain` | no question at all |

mod inbox;
mod table;

use mrtr_core::{
    catalog::{CatalogError, Tool},
    form::{Elicited, Field, Form},
    handler::{Ctx, RpcError, Service, ToolResult},
    seal::Sealer,
    server::{Config, Server},
    wire::{Action, Implementation, Sampling},
};

pub use inbox::Inbox;

/// The name that the example server gives itself.
pub const NAME: &str = "mrtr-examples";

/// A service with all example tools.
///
/// # Errors
///
/// Never: the declarations are fixed, and a test builds them.
pub fn service(sealer: Sealer) -> Result<Service, CatalogError> {
    let mut info = Implementation::new(NAME, env!("CARGO_PKG_VERSION"));
    info.title = Some(String::from("mrtr's example tools"));
    add(Service::new(Server::new(Config::new(info, sealer))), &Inbox::new())
}

/// Adds the example tools to a service of your own.
///
/// # Errors
///
/// If the service has a tool of one of these names.
pub fn add(service: Service, inbox: &Inbox) -> Result<Service, CatalogError> {
    let (files, more) = (inbox.clone(), inbox.clone());
    service
        .tool(declared(PLAN), plan)?
        .tool(declared(BOOK_TABLE), table::book)?
        .tool(declared(GREET_TWO), greet_two)?
        .tool(declared(DELETE_FILES), move |ctx| inbox::delete(ctx, files.clone()))?
        .tool(declared(ADD_FILE), move |ctx| inbox::add(ctx, more.clone()))?
        .tool(declared(SUMMARIZE), summarize)?
        .tool(declared(LIST_PROJECT), list_project)?
        .tool(declared(CONNECT_ACCOUNT), connect_account)?
        .tool(declared(PLAIN), plain)
}

/// Name, description, input schema.
type Declaration = (&'static str, &'static str, &'static str);

fn declared((name, description, schema): Declaration) -> Tool {
    Tool::new(name, description).input_schema(schema)
}

const PLAN: Declaration = (
    "plan",
    "Plans a stay in a city. Asks how many days there are and then, once it knows, at what pace to spend them.",
    r#"{"type":"object","properties":{"city":{"type":"string","description":"Where to go"}},"required":["city"]}"#,
);

const BOOK_TABLE: Declaration = (
    "book_table",
    "Books a table in a small restaurant that is closed on Mondays. Asks for the date, offers the times that are \
     free on that date, and books only after a last yes that names everything.",
    r#"{"type":"object","properties":{"people":{"type":"integer","minimum":1,"maximum":8,"description":"How many come; 2 if left out"}}}"#,
);

const GREET_TWO: Declaration = (
    "greet_two",
    "Greets two people. Asks for both names at the same time, so that one round trip is enough.",
    r#"{"type":"object"}"#,
);

const DELETE_FILES: Declaration = (
    "delete_files",
    "Deletes every file of an inbox in memory, after a yes to exactly those files. New files keep arriving (one \
     every 30 seconds, or with add_file): a yes to three files is not a yes to four, and is asked for again.",
    r#"{"type":"object"}"#,
);

const ADD_FILE: Declaration = (
    "add_file",
    "Puts a file into the inbox that delete_files empties: call it while delete_files waits for an answer.",
    r#"{"type":"object","properties":{"name":{"type":"string","description":"The file's name"}},"required":["name"]}"#,
);

const SUMMARIZE: Declaration = (
    "summarize",
    "Has the client's own model sum up a text in one sentence. The server needs no model and no key for this.",
    r#"{"type":"object","properties":{"text":{"type":"string","description":"What to sum up"}},"required":["text"]}"#,
);

const LIST_PROJECT: Declaration = (
    "list_project",
    "Lists the folders that the client lets servers see. Asks the client, not the person.",
    r#"{"type":"object"}"#,
);

const CONNECT_ACCOUNT: Declaration = (
    "connect_account",
    "Connects an account of another service: asks for consent to open a page there, so that neither the client nor \
     the model sees what is typed into it, and then waits for the page to report back (simulated: it does so by \
     the second time it is asked).",
    r#"{"type":"object","properties":{"service":{"type":"string","pattern":"^[a-z0-9-]{1,32}$","description":"Which one: calendar, say"}},"required":["service"]}"#,
);

const PLAIN: Declaration = (
    "plain",
    "Gives a text back as it is. Asks nothing: the answer to the first request is the result.",
    r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#,
);

#[derive(serde::Deserialize)]
struct Days {
    days: u32,
}

#[derive(serde::Deserialize)]
struct Pace {
    pace: String,
}

async fn plan(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let city: String = ctx.argument("city")?;
    let form = Form::builder(format!("How many days will you spend in {city}?"))
        .field(Field::integer("days").title("Days").minimum(1).maximum(30).required())
        .build()?;
    let Elicited::Accept(Days { days }) = ctx.elicit("days", &form).await? else {
        return Ok(ToolResult::text("Nothing was planned."));
    };
    let days = if days == 1 { String::from("1 day") } else { format!("{days} days") };
    let form = Form::builder(format!("At what pace would you like to see {city} in {days}?"))
        .field(
            Field::select("pace")
                .title("Pace")
                .option("slow", "Slow: one thing a day")
                .option("normal", "Normal: mornings and afternoons")
                .option("fast", "Fast: everything")
                .default("normal")
                .required(),
        )
        .build()?;
    let Elicited::Accept(Pace { pace }) = ctx.elicit("pace", &form).await? else {
        return Ok(ToolResult::text("Nothing was planned."));
    };
    Ok(ToolResult::text(format!("{city}, {days}, {pace}")))
}

#[derive(serde::Deserialize)]
struct Named {
    name: String,
}

async fn greet_two(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let form = |which: &str| {
        Form::builder(format!("What is the name of the {which} guest?"))
            .field(Field::string("name").title("Name").min_length(1).max_length(60).required())
            .build()
    };
    // Both are asked when they are made, so both are in one round.
    let (first, second) = tokio::join!(
        ctx.elicit::<Named>("first", &form("first")?),
        ctx.elicit::<Named>("second", &form("second")?),
    );
    let name = |answer: Elicited<Named>| answer.accepted().map(|named| named.name);
    Ok(ToolResult::text(match (name(first?), name(second?)) {
        (Some(first), Some(second)) => format!("Hello, {first} and {second}!"),
        (Some(one), None) | (None, Some(one)) => format!("Hello, {one}, and hello to whoever keeps quiet!"),
        (None, None) => String::from("Hello, both of you!"),
    }))
}

async fn summarize(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let text: String = ctx.argument("text")?;
    let request =
        Sampling::new(200).system("Sum up what the user gives you in one plain sentence.").user(&text);
    let sampled = ctx.sample("summary", &request).await?;
    Ok(ToolResult::text(format!("{} says: {}", sampled.model(), sampled.text())))
}

async fn list_project(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let roots = ctx.roots("folders").await?;
    let line = |root: &mrtr_core::wire::Root| match &root.name {
        Some(name) => format!("{name}: {}", root.uri),
        None => root.uri.clone(),
    };
    let lines: Vec<String> = roots.iter().map(line).collect();
    Ok(ToolResult::text(if lines.is_empty() { String::from("No folders.") } else { lines.join("\n") }))
}

async fn connect_account(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let service: String = ctx.argument("service")?;
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !(1..=32).contains(&service.len()) || !service.bytes().all(fits) {
        return Err(RpcError::invalid_params(
            "Invalid params: arguments.service is not the name of a service",
        ));
    }
    // Names the exchange, which the page needs to report back, and nothing secret (R-140).
    let url = format!("https://accounts.example.com/connect/{service}?exchange={}", ctx.exchange());
    match ctx.elicit_url("consent", format!("Connect your {service} account?"), url).await? {
        Action::Accept => {}
        Action::Decline | Action::Cancel => return Ok(ToolResult::text("No account was connected.")),
    }
    // Consent to open the page is not completion (R-137). A real server looks here whether the page has reported
    // back; the client comes again until it has.
    for _ in 0..2 {
        ctx.checkpoint().await?;
    }
    Ok(ToolResult::text(format!("Your {service} account is connected.")))
}

async fn plain(ctx: Ctx) -> Result<ToolResult, RpcError> {
    Ok(ToolResult::text(ctx.argument::<String>("text")?))
}
