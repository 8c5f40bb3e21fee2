//! A server whose tools ask, for the targets.

use std::collections::BTreeMap;

use mrtr_core::{
    Entropy, Limits, Timestamp,
    catalog::{Prompt, Resource, Tool},
    digest::RequestDigest,
    form::{Elicited, Field, Form},
    handler::{Content, Ctx, PromptResult, Reception, ResourceResult, RpcError, Service, ToolResult},
    jsonrpc::{Json, Message, admit},
    seal::{Binding, ExchangeId, KeyRing, NewClaims, Principal, Sealer, Secret},
    server::{Config, RoundEnv, Server as Core},
    wire::{Action, Implementation, Sampling},
};

/// When everything happens.
pub const NOW: Timestamp = Timestamp::from_unix_millis(1_800_000_000_000);

/// The tools.
pub const TOOLS: [&str; 4] = ["confirm", "form", "many", "loop"];

fn ring() -> KeyRing {
    KeyRing::new(Secret::from_bytes(b"a secret of 32 bytes for fuzzing").expect("32 bytes"))
}

/// One of each suite that protects.
#[must_use]
pub fn sealers() -> [Sealer; 3] {
    let ring = ring();
    [
        Sealer::signed_readable(&ring, "fuzz"),
        Sealer::encrypted(&ring, "fuzz"),
        Sealer::encrypted_aes_gcm(&ring, "fuzz"),
    ]
}

/// JSON text that is known to be good.
#[must_use]
pub fn json(text: &'static str) -> Json<'static> {
    Json::parse(text, &Limits::default()).expect("good JSON")
}

/// The server.
pub struct Server {
    service: Service,
    sealer: Sealer,
}

type Content1 = BTreeMap<String, i64>;

async fn form(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let form =
        Form::builder("A number").field(Field::integer("n").minimum(0).maximum(9).required()).build()?;
    Ok(match ctx.elicit::<Content1>("n", &form).await? {
        Elicited::Accept(content) => ToolResult::text(content["n"].to_string()),
        Elicited::Decline | Elicited::Cancel => ToolResult::text("no"),
    })
}

async fn confirm(ctx: Ctx) -> Result<ToolResult, RpcError> {
    Ok(match ctx.confirm("sure", "Sure?").await? {
        Action::Accept => ToolResult::text("confirmed"),
        Action::Decline | Action::Cancel => ToolResult::text("no"),
    })
}

async fn many(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let form = Form::builder("A number").field(Field::integer("n").required()).build()?;
    let a = ctx.elicit::<Content1>("a", &form);
    let b = ctx.sample("b", &Sampling::new(9).user("?")).optional();
    let c = ctx.roots("c").optional();
    let d = ctx.elicit_url("d", "Open", "https://example.com/");
    let once = ctx.once("once", || 1)?;
    let (a, b, c, d) = futures::join!(a, b, c, d);
    ctx.set("seen", &once)?;
    ctx.checkpoint().await?;
    Ok(ToolResult::text(format!("{} {} {} {}", a.is_ok(), b.is_ok(), c.is_ok(), d.is_ok())))
}

async fn turns(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let form = Form::builder("A number").field(Field::integer("n").required()).build()?;
    for turn in 0..5 {
        if let Elicited::Accept(content) = ctx.elicit::<Content1>("k", &form).await? {
            return Ok(ToolResult::text(format!("{turn} {}", content["n"])));
        }
    }
    Ok(ToolResult::text("never"))
}

/// Each answer has to repeat its question, whichever call and round it belongs to.
async fn words(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let call: i64 = ctx.argument("n")?;
    let form =
        |key: &str| Form::builder(format!("{call} {key}")).field(Field::string("word").required()).build();
    let said = |key: &str, answer: Elicited<BTreeMap<String, String>>| {
        let Elicited::Accept(content) = answer else { panic!("nobody declines") };
        assert_eq!(content["word"], format!("{call} {key}"), "an answer to another question");
        content["word"].clone()
    };
    let (a, b) = (form("a")?, form("b")?);
    let (a, b) = futures::join!(ctx.elicit("a", &a), ctx.elicit("b", &b));
    let (a, b) = (said("a", a?), said("b", b?));
    ctx.checkpoint().await?;
    let c = said("c", ctx.elicit("a", &form("c")?).await?);
    Ok(ToolResult::text(format!("{a}, {b}, {c}")))
}

impl Server {
    /// With a suite that protects.
    #[must_use]
    pub fn encrypted() -> Self {
        Self::with(Sealer::encrypted(&ring(), "fuzz"))
    }

    /// With the suite that seals nothing.
    #[must_use]
    pub fn transparent() -> Self {
        Self::with(Sealer::transparent(&ring(), "fuzz"))
    }

    fn with(sealer: Sealer) -> Self {
        let config = Config::new(Implementation::new("fuzz", "1"), sealer);
        let service = Service::new(Core::new(config));
        let sealer = service.server().config().sealer.clone();
        let service = service
            .tool(Tool::new("confirm", "Asks for a yes"), confirm)
            .and_then(|service| service.tool(Tool::new("form", "Asks for a number"), form))
            .and_then(|service| service.tool(Tool::new("many", "Asks all ways"), many))
            .and_then(|service| service.tool(Tool::new("loop", "Asks again"), turns))
            .and_then(|service| service.tool(Tool::new("words", "Asks for words"), words))
            .and_then(|service| {
                service.prompt(Prompt::new("p", "Asks").required_argument("a", "x"), |ctx: Ctx| async move {
                    ctx.confirm("sure", "Sure?").await?;
                    Ok::<_, RpcError>(PromptResult::new().user(Content::text("confirmed")))
                })
            })
            .and_then(|service| {
                service.resource(Resource::new("x://r", "r"), |ctx: Ctx| async move {
                    ctx.confirm("sure", "Sure?").await?;
                    Ok::<_, RpcError>(ResourceResult::text("x://r", "text/plain", "confirmed"))
                })
            })
            .expect("valid names")
            .announce_changes();
        Self { service, sealer }
    }

    /// What the server says to one message.
    #[must_use]
    pub fn receive(&self, message: &[u8], entropy: u64) -> Vec<u8> {
        let mut seed = [5; 32];
        seed[..8].copy_from_slice(&entropy.to_be_bytes());
        let env = RoundEnv::new(NOW, Entropy::new(seed), Principal::Authenticated(b"alice"));
        let mut out = Vec::new();
        match self.service.receive(message, env) {
            Reception::Run(run) => drop(run.run(NOW, &mut out)),
            Reception::Reply { bytes, .. } => out = bytes,
            Reception::Listen(listen) => listen.close(&mut out),
            _ => {}
        }
        out
    }

    /// A state of the transparent suite around these bytes, for a call of this tool without arguments.
    #[must_use]
    pub fn seal(&self, tool: &str, journal: &[u8]) -> String {
        let digest = RequestDigest::new("tools/call", tool, None).expect("no arguments");
        let claims = NewClaims {
            exchange: ExchangeId::from_bytes([3; 16]),
            round: 1,
            state_only: 0,
            deadline: Timestamp::from_unix_millis(NOW.as_unix_millis() + 3_600_000),
            ttl: None,
        };
        let binding = Binding { principal: Principal::Authenticated(b"alice"), request: digest.as_bytes() };
        self.sealer.seal(&claims, journal, &binding, NOW, &Entropy::new([9; 32])).unwrap_or_default()
    }
}

/// A retry of a tool.
#[must_use]
pub fn retry(tool: &str, state: &str, answers: &str) -> String {
    format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{}","requestState":"{}","inputResponses":{},"#,
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":"#,
            r#"{{"elicitation":{{"form":{{}},"url":{{}}}},"sampling":{{}},"roots":{{}}}}}}}}}}"#
        ),
        tool, state, answers
    )
}

/// Checks that a reply is one line, a response, and that a result says what it is and who made it.
///
/// # Panics
///
/// If not.
#[must_use]
pub fn check(reply: &[u8]) -> Option<serde_json::Value> {
    if reply.is_empty() {
        return None;
    }
    assert!(!reply.contains(&b'\n'));
    let Ok(Message::Response(response)) = admit(reply, &wide()) else { panic!("not a response") };
    if let Ok(result) = response.outcome {
        let kind = result.get("resultType").and_then(Json::as_string).expect("a resultType");
        assert!(kind == "complete" || kind == "input_required");
        let meta = result.get("_meta").expect("_meta");
        assert!(meta.get("io.modelcontextprotocol/serverInfo").is_some());
        if kind == "input_required" {
            assert!(result.get("requestState").is_some());
            assert!(result.get("ttlMs").is_none() && result.get("cacheScope").is_none());
            assert!(
                result
                    .get("inputRequests")
                    .is_none_or(|asks| asks.members().is_some_and(|mut asks| asks.next().is_some()))
            );
        }
    }
    serde_json::from_slice(reply).ok()
}

fn wide() -> Limits {
    let mut limits = Limits::default();
    limits.message_bytes = usize::MAX;
    limits
}

/// Whether a text stands anywhere in a result.
#[must_use]
pub fn says(reply: &serde_json::Value, text: &str) -> bool {
    reply["result"].to_string().contains(text)
}
