//! A server: what it is made of, what it offers, who may call it, and its keys.

use std::{
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
};

use mrtr_core::{
    audit::{Event, Observer},
    catalog::{CacheHints, Catalog, CatalogError, Prompt, Resource, ResourceTemplate, Tool},
    http::{Bind, Gate, NotAName, ReplyClass, name},
    jsonrpc::{self, Json},
    ledger,
    seal::{KeyRing, Principal, Sealer, Secret, Ttl},
    server::{Config, Server},
    tape::{AfterEffects, OnDivergence, TapePolicy},
    wire::{AskKind, Requirement},
};
use wasm_bindgen::prelude::*;

use crate::{
    call::Call,
    settings::{self, flag, millis, number, parse, text, texts},
};

/// A handler on the JavaScript side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) index: u32,
    /// It wants an exchange instead of a context.
    pub(crate) returning: bool,
}

/// What every call shares.
pub(crate) struct Parts {
    pub(crate) server: Server,
    pub(crate) catalog: Catalog<Entry>,
}

/// A server with what it offers.
#[wasm_bindgen]
pub struct Engine {
    parts: Rc<Parts>,
    gate: Gate,
    sealer: Sealer,
    audit: Option<Arc<Audit>>,
    settings: String,
    /// What was offered, in the order of the handlers' numbers.
    offers: Vec<(char, String)>,
}

impl core::fmt::Debug for Engine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Engine").field("server", &self.parts.server).finish_non_exhaustive()
    }
}

#[wasm_bindgen]
impl Engine {
    /// A server. `settings` is JSON; `keys` are secrets, each behind its length in one byte, the minting one first.
    ///
    /// # Errors
    ///
    /// What is wrong with one of them.
    #[wasm_bindgen(constructor)]
    pub fn new(settings: &str, keys: &[u8]) -> Result<Self, JsError> {
        let of = parse(settings)?;
        let info = settings::implementation(of);
        let ring = ring(keys)?;
        let audience = text(of, "audience").unwrap_or_else(|| info.name.clone());
        let mut sealer = match text(of, "seal").as_deref() {
            Some("signed-readable") => Sealer::signed_readable(&ring, &audience),
            _ => Sealer::encrypted(&ring, &audience),
        };
        if let Some(ttl) = ttl(of)? {
            sealer = sealer.ttl(ttl);
        }
        if let Some(skew) = millis(of, "skewMs") {
            sealer = sealer.skew(skew);
        }
        if flag(of, "softExpiry") == Some(true) {
            sealer = sealer.soft_expiry();
        }
        let mut config = Config::new(info, sealer.clone());
        config.limits = settings::limits(of);
        config.tape = tape(of);
        config.require_state = flag(of, "requireState").unwrap_or(false);
        config.ledger = of.get("ledger").map(ledger);
        let audit = (flag(of, "observed") == Some(true)).then(Arc::<Audit>::default);
        config.observer = audit.clone().map(|audit| audit as Arc<dyn Observer>);
        let gate = gate(of, &config)?;
        let parts = Rc::new(Parts { server: Server::new(config), catalog: catalog(of) });
        Ok(Self { parts, gate, sealer, audit, settings: settings.to_owned(), offers: Vec::new() })
    }

    /// Replaces the keys, also for requests that are under way (R-077).
    ///
    /// # Errors
    ///
    /// What is wrong with them; the old ones stay.
    pub fn set_keys(&self, keys: &[u8]) -> Result<(), JsError> {
        self.sealer.set_ring(&ring(keys)?);
        Ok(())
    }

    /// Offers something: `t`ool, `p`rompt, `r`esource or resource templa`T`e. Gives its handler's number.
    ///
    /// # Errors
    ///
    /// If it cannot be offered.
    pub fn offer(&mut self, kind: char, declared: &str) -> Result<u32, JsError> {
        let index = u32::try_from(self.offers.len()).unwrap_or(u32::MAX);
        if let Some(parts) = Rc::get_mut(&mut self.parts) {
            offer(&mut parts.catalog, kind, declared, index)?;
        } else {
            // A request that is under way keeps the catalog that it came to. The next one is made anew: a catalog that
            // can be copied would be more code.
            let mut catalog = catalog(parse(&self.settings)?);
            let all = self.offers.iter().map(|(kind, declared)| (*kind, declared.as_str()));
            for (index, (kind, declared)) in (0..).zip(all.chain([(kind, declared)])) {
                offer(&mut catalog, kind, declared, index)?;
            }
            self.parts = Rc::new(Parts { server: self.parts.server.clone(), catalog });
        }
        self.offers.push((kind, declared.to_owned()));
        Ok(index)
    }

    /// The names of the headers that [`open`](Self::open) reads, a line each: always, then, behind an empty line, those of
    /// a request with an `Origin`. Another offer may add some.
    pub fn headers(&self) -> String {
        let mut names = name::READ.join("\n");
        for name in self.parts.catalog.param_headers() {
            names.push('\n');
            names.push_str(name);
        }
        names.push_str("\n\n");
        names + &name::ASKED_BY_BROWSERS.join("\n")
    }

    /// A request, of which only the head is known. Headers are lines of `name: value`.
    pub fn open(&self, method: &str, headers: &str) -> Call {
        Call::open(Rc::clone(&self.parts), &self.gate, method, headers)
    }

    /// What happened since the last time, a line each (no content).
    pub fn audited(&self) -> Option<String> {
        self.audit.as_ref().and_then(|audit| audit.take())
    }

    /// Opens a ticket that came with a request for the page behind a url: JSON with `exchange`, `key` and `expires`,
    /// or nothing if it is not good for this principal now (R-142).
    pub fn open_ticket(&self, token: &str, principal: Option<Vec<u8>>, now: f64) -> Option<String> {
        let principal = principal.as_deref().map_or(Principal::Anonymous, Principal::Authenticated);
        let ticket = self.sealer.open_ticket(token, principal, settings::time(now)).ok()?;
        let expires = ticket.expires.as_unix_millis();
        let key = serde_json::to_string(&ticket.key).ok()?;
        Some(format!(r#"{{"exchange":"{}","key":{key},"expires":{expires}}}"#, ticket.exchange))
    }

    /// The reply to a request whose handler was lost with its instance (a trap): it is answered already.
    pub fn lost(&self, body: &[u8]) -> Call {
        let mut out = Vec::new();
        let id = match jsonrpc::admit(body, &self.parts.server.config().limits) {
            Ok(jsonrpc::Message::Request(request)) => Some(request.id),
            _ => None,
        };
        jsonrpc::write_error(&mut out, id.as_ref(), &mrtr_core::RpcError::internal("Internal error"));
        Call::answered(Rc::clone(&self.parts), ReplyClass::Internal, &out)
    }
}

/// Keeps what is told until JavaScript fetches it.
#[derive(Default)]
struct Audit(Mutex<String>);

// Not derived: the formatting of a lock with its content is code that nobody would ever run.
impl core::fmt::Debug for Audit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Audit")
    }
}

impl Audit {
    fn take(&self) -> Option<String> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!lines.is_empty()).then(|| core::mem::take(&mut *lines))
    }
}

impl Observer for Audit {
    fn observe(&self, event: &Event<'_>) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_str(&event.to_string());
        lines.push('\n');
    }
}

/// A catalog without offers.
fn catalog(of: Json<'_>) -> Catalog<Entry> {
    let mut catalog = Catalog::new();
    if let Some(instructions) = text(of, "instructions") {
        catalog.set_instructions(instructions);
    }
    if let Some(hints) = of.get("cache") {
        let default = CacheHints::default();
        let ttl = millis(hints, "ttlMs").unwrap_or(default.ttl);
        catalog.set_hints(CacheHints::new(ttl, flag(hints, "public").unwrap_or(default.public)));
    }
    catalog.set_changes(flag(of, "changes").unwrap_or(false));
    catalog
}

fn offer(catalog: &mut Catalog<Entry>, kind: char, declared: &str, index: u32) -> Result<(), JsError> {
    let of = parse(declared)?;
    let entry = Entry { index, returning: flag(of, "returning").unwrap_or(false) };
    let offered = match kind {
        't' => catalog.add_tool(tool(of)?, entry),
        'p' => catalog.add_prompt(prompt(of)?, entry),
        'r' => catalog.add_resource(resource(of)?, entry),
        _ => catalog.add_template(template(of)?, entry),
    };
    offered.map_err(|error: CatalogError| JsError::new(&error.to_string()))
}

fn fault(error: impl core::fmt::Display) -> JsError {
    JsError::new(&error.to_string())
}

fn ring(mut keys: &[u8]) -> Result<KeyRing, JsError> {
    let mut ring: Option<KeyRing> = None;
    while let Some((&length, rest)) = keys.split_first() {
        let Some((secret, rest)) = rest.split_at_checked(usize::from(length)) else { break };
        let secret = Secret::from_bytes(secret).map_err(fault)?;
        keys = rest;
        match &mut ring {
            None => ring = Some(KeyRing::new(secret)),
            Some(ring) => ring.accept(secret).map_err(fault)?,
        }
    }
    ring.ok_or_else(|| JsError::new("a server needs a key"))
}

fn ttl(of: Json<'_>) -> Result<Option<Ttl>, JsError> {
    millis(of, "stateTtlMs").map(|ttl| Ttl::new(ttl).map_err(fault)).transpose()
}

fn tape(of: Json<'_>) -> TapePolicy {
    let mut tape = TapePolicy::default();
    let Some(of) = of.get("replay") else { return tape };
    if text(of, "divergence").as_deref() == Some("fail") {
        tape.divergence = OnDivergence::Fail;
    }
    match text(of, "afterEffects").as_deref() {
        Some("keep") => tape.after_effects = AfterEffects::Keep,
        Some("drop") => tape.after_effects = AfterEffects::Drop,
        _ => {}
    }
    tape.replay_patience = millis(of, "patienceMs").unwrap_or(tape.replay_patience);
    tape.hold_urls = millis(of, "holdUrlsMs").unwrap_or(tape.hold_urls);
    tape.look_interval = millis(of, "lookMs").unwrap_or(tape.look_interval);
    tape.hold_checkpoints = millis(of, "holdCheckpointsMs").unwrap_or(tape.hold_checkpoints);
    tape
}

fn ledger(of: Json<'_>) -> ledger::Policy {
    let mut policy = ledger::Policy::default();
    if text(of, "once").as_deref() == Some("at-most-once") {
        policy.once = ledger::Once::AtMostOnce;
    }
    if text(of, "whenDown").as_deref() == Some("open") {
        policy.when_down = ledger::WhenDown::FailOpen;
    }
    policy.lease = millis(of, "leaseMs").unwrap_or(policy.lease);
    policy.wait = millis(of, "waitMs").unwrap_or(policy.wait);
    policy.waiters = number(of, "waiters").unwrap_or(policy.waiters);
    policy.reply_bytes = number(of, "replyBytes").unwrap_or(policy.reply_bytes);
    policy.skew = millis(of, "skewMs").unwrap_or(policy.skew);
    policy.retention = millis(of, "retentionMs").unwrap_or(policy.retention);
    policy
}

fn gate(of: Json<'_>, config: &Config) -> Result<Gate, JsError> {
    let bind = if flag(of, "loopback") == Some(true) { Bind::Loopback } else { Bind::Network };
    let mut gate = Gate::new(bind, &config.limits);
    for host in texts(of, "hosts") {
        gate = gate.allow_host(&host).map_err(|error: NotAName| fault(error))?;
    }
    for origin in texts(of, "origins") {
        gate = gate.allow_origin(&origin).map_err(fault)?;
    }
    Ok(gate)
}

fn tool(of: Json<'_>) -> Result<Tool, JsError> {
    let mut tool =
        Tool::new(text(of, "name").unwrap_or_default(), text(of, "description").unwrap_or_default());
    let json = |name| of.get(name).map(|value: Json<'_>| value.as_str().to_owned());
    tool.title = text(of, "title");
    tool.input_schema = json("inputSchema").unwrap_or(tool.input_schema);
    tool.output_schema = json("outputSchema");
    tool.annotations = json("annotations");
    tool.state_ttl = ttl(of)?;
    for need in texts(of, "requires") {
        tool.requires.push(match &*need {
            "form" => Requirement::new(AskKind::Form),
            "url" => Requirement::new(AskKind::Url),
            "sampling" => Requirement::new(AskKind::Sampling),
            "sampling.tools" => Requirement::sampling_with_tools(),
            "roots" => Requirement::new(AskKind::Roots),
            _ => return Err(JsError::new("requires: form, url, sampling, sampling.tools or roots")),
        });
    }
    Ok(tool)
}

fn prompt(of: Json<'_>) -> Result<Prompt, JsError> {
    let mut prompt =
        Prompt::new(text(of, "name").unwrap_or_default(), text(of, "description").unwrap_or_default());
    prompt.title = text(of, "title");
    prompt.state_ttl = ttl(of)?;
    for argument in of.get("arguments").and_then(Json::items).into_iter().flatten() {
        let (name, description) =
            (text(argument, "name").unwrap_or_default(), text(argument, "description").unwrap_or_default());
        prompt = if flag(argument, "required") == Some(true) {
            prompt.required_argument(name, description)
        } else {
            prompt.argument(name, description)
        };
        prompt = prompt.completions(texts(argument, "completions"));
    }
    Ok(prompt)
}

fn resource(of: Json<'_>) -> Result<Resource, JsError> {
    let mut resource =
        Resource::new(text(of, "uri").unwrap_or_default(), text(of, "name").unwrap_or_default());
    resource.title = text(of, "title");
    resource.description = text(of, "description");
    resource.mime_type = text(of, "mimeType");
    resource.state_ttl = ttl(of)?;
    Ok(resource)
}

fn template(of: Json<'_>) -> Result<ResourceTemplate, JsError> {
    let uri = text(of, "uriTemplate").unwrap_or_default();
    let mut template = ResourceTemplate::new(uri, text(of, "name").unwrap_or_default());
    template.description = text(of, "description");
    template.mime_type = text(of, "mimeType");
    template.state_ttl = ttl(of)?;
    Ok(template)
}
