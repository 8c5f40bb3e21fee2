//! One HTTP request, which JavaScript drives: it polls, does what it is told, hands in what came of it, and polls
//! again.

use std::{
    future::Future,
    pin::Pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use mrtr_core::{
    ErrorCode, RpcError,
    catalog::{Change, Content, Output, PromptResult, ResourceResult, ToolResult},
    handler::Ctx,
    http::{Accepts, Gate, GateFault, ReplyBody, ReplyClass, ReplyHead, Verdict},
    ledger::{Command, Operation, StoreEvent},
    server::InputRequests,
    wire::{AskKind, AskingMethod, InputRequest, LogLevel},
};
use serde_json::value::RawValue;
use wasm_bindgen::prelude::*;

use crate::{
    asks::{self, Waits},
    engine::Parts,
    mail::{Committed, Event, Mail},
    returning::Wish,
    serve::{self, Taken},
    settings::{date, parse, seed, time},
};

/// What [`Call::poll`] gives.
mod now {
    pub(super) const IDLE: u32 = 0;
    pub(super) const START: u32 = 1;
    pub(super) const START_RETURNING: u32 = 2;
    pub(super) const CHUNK: u32 = 3;
    pub(super) const LAST_CHUNK: u32 = 4;
    pub(super) const STORE: u32 = 5;
    pub(super) const COMMIT: u32 = 6;
    pub(super) const SUSPENDED: u32 = 7;
    pub(super) const OVER: u32 = 8;
}

/// One request.
#[wasm_bindgen]
pub struct Call {
    parts: Rc<Parts>,
    headers: Rc<Vec<(String, String)>>,
    accepts: Accepts,
    /// Headers to go with whatever is answered: lines of `name: value`.
    extra: String,
    future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    mail: Arc<Mail>,
    waits: Waits,
    wanted: InputRequests,
    woken: Arc<Woken>,
    /// What the last poll gave.
    head: Option<String>,
    bytes: Vec<u8>,
    number: u32,
    text: Option<String>,
    command: Option<Command>,
}

impl core::fmt::Debug for Call {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Call").field("over", &self.future.is_none()).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Call {
    pub(crate) fn open(parts: Rc<Parts>, gate: &Gate, method: &str, lines: &str) -> Self {
        let headers: Vec<(String, String)> = lines
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut call = Self::new(parts);
        let ruling = gate.check(method, headers.as_slice());
        if let Some(cors) = &ruling.cors {
            cors.each_header(&mut |name, value| call.put(name, value));
        }
        match ruling.verdict {
            Verdict::Read(accepts) => call.accepts = accepts,
            Verdict::Preflight => {
                call.head = Some(format!("204\n{}", call.extra));
            }
            Verdict::Refuse(fault) => call.refuse(fault),
        }
        call.headers = Rc::new(headers);
        call
    }

    /// A request that is answered with this message.
    pub(crate) fn answered(parts: Rc<Parts>, class: ReplyClass, message: &[u8]) -> Self {
        let mut call = Self::new(parts);
        let head = ReplyBody::new(Accepts::BOTH).finish(class, message, &mut call.bytes);
        call.head = head.map(|head| call.lines(head));
        call
    }

    fn new(parts: Rc<Parts>) -> Self {
        Self {
            parts,
            headers: Rc::default(),
            accepts: Accepts::BOTH,
            extra: String::new(),
            future: None,
            mail: Arc::default(),
            waits: Waits::default(),
            wanted: InputRequests::new(),
            woken: Arc::default(),
            head: None,
            bytes: Vec::new(),
            number: 0,
            text: None,
            command: None,
        }
    }

    fn put(&mut self, name: &str, value: &str) {
        self.extra.push_str(name);
        self.extra.push_str(": ");
        self.extra.push_str(value);
        self.extra.push('\n');
    }

    fn refuse(&mut self, fault: GateFault) {
        let mut message = Vec::new();
        fault.write(&mut message);
        if let Some(allow) = fault.allow() {
            self.put("Allow", allow);
        }
        self.bytes.clear();
        let head = ReplyBody::new(Accepts::BOTH).finish(fault.class(), &message, &mut self.bytes);
        self.head = head.map(|head| self.lines(head));
    }

    fn lines(&self, head: ReplyHead) -> String {
        let mut lines = head.status.to_string();
        lines.push('\n');
        for (name, value) in head.headers() {
            for part in [name, ": ", value, "\n"] {
                lines.push_str(part);
            }
        }
        lines.push_str(&self.extra);
        lines
    }

    fn ctx(&self) -> Result<Ctx, JsError> {
        self.mail.lock().ctx.clone().ok_or_else(|| JsError::new("the attempt is over"))
    }

    fn give(&mut self, event: Event) -> u32 {
        match event {
            Event::Start { handler, returning } => {
                self.number = handler;
                if returning { now::START_RETURNING } else { now::START }
            }
            Event::Chunk { head, bytes, last } => {
                self.head = head.map(|head| self.lines(head));
                self.bytes = bytes;
                if last {
                    self.end();
                    now::LAST_CHUNK
                } else {
                    now::CHUNK
                }
            }
            Event::Store(command) => {
                self.command = Some(command);
                now::STORE
            }
            Event::Commit(number) => {
                self.number = number;
                now::COMMIT
            }
            Event::Suspended(text) => {
                self.text = text;
                now::SUSPENDED
            }
        }
    }

    /// Lets go of everything that belongs to the attempt.
    fn end(&mut self) {
        let ctx = self.mail.lock().ctx.take();
        self.waits.clear();
        drop(ctx);
    }

    fn request<'a>(kind: char, a: &'a str, b: &'a str) -> Result<InputRequest<'a>, JsError> {
        Ok(match kind {
            'f' => InputRequest::form(a, parse(b)?),
            'c' => InputRequest::confirm(a),
            'u' => InputRequest::open_url(a, b),
            's' => InputRequest::from_parts(AskKind::Sampling.method(), Some(parse(a)?))
                .map_err(|fault| JsError::new(&fault.to_string()))?,
            _ => InputRequest::roots(),
        })
    }

    fn wish(&mut self, wish: Wish) -> Option<String> {
        self.mail.lock().wish = Some(wish);
        let mut cx = Context::from_waker(Waker::noop());
        if let Some(future) = &mut self.future
            && future.as_mut().poll(&mut cx).is_ready()
        {
            self.future = None;
        }
        self.mail.lock().granted.take()
    }
}

#[wasm_bindgen]
impl Call {
    /// Whether the head was reason enough to answer: [`head`](Self::head) and [`bytes`](Self::bytes) are there, and
    /// the body need not be read.
    pub fn is_answered(&self) -> bool {
        self.head.is_some()
    }

    /// Bytes that the body may have.
    pub fn limit(&self) -> usize {
        self.parts.server.config().limits.message_bytes
    }

    /// The body turned out to be larger: it is answered now.
    pub fn too_large(&mut self) {
        self.refuse(GateFault::TooLarge { limit: self.limit() });
    }

    /// The body is read, and it is known who sends it.
    ///
    /// # Errors
    ///
    /// If `entropy` is not 32 bytes.
    pub fn begin(
        &mut self,
        body: Vec<u8>,
        principal: Option<Vec<u8>>,
        entropy: &[u8],
        now: f64,
    ) -> Result<(), JsError> {
        let taken = Taken {
            headers: Rc::clone(&self.headers),
            accepts: self.accepts,
            body,
            principal,
            entropy: seed(entropy)?,
            now: time(now),
        };
        self.future = Some(Box::pin(serve::serve(Rc::clone(&self.parts), taken, Arc::clone(&self.mail))));
        Ok(())
    }

    /// Goes on as far as it gets, and says what is to be done (see the constants in the TypeScript).
    pub fn poll(&mut self, now: f64) -> u32 {
        self.mail.lock().now = Some(time(now));
        loop {
            let event = self.mail.lock().events.pop_front();
            if let Some(event) = event {
                return self.give(event);
            }
            let Some(future) = &mut self.future else { return now::OVER };
            self.mail.lock().wake_at = None;
            let waker = Waker::from(Arc::clone(&self.woken));
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(()) => self.future = None,
                Poll::Pending => {
                    let more = !self.mail.lock().events.is_empty();
                    if !more && !self.woken.0.swap(false, Ordering::Relaxed) {
                        return now::IDLE;
                    }
                }
            }
        }
    }

    /// When to poll again even if nothing happens; 0: never.
    pub fn wake_at(&self) -> f64 {
        self.mail.lock().wake_at.map_or(0.0, date)
    }

    /// Status and headers, if this chunk is the first: lines.
    pub fn head(&mut self) -> Option<String> {
        self.head.take()
    }

    /// The chunk's bytes.
    pub fn bytes(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.bytes)
    }

    /// Which handler is to be called, or which step of the commit is to be done.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What went wrong, for the log.
    pub fn text(&mut self) -> Option<String> {
        self.text.take()
    }

    /// Nobody reads the reply any more. Whether it is to be polled on all the same: its commit has begun, or
    /// it has a claim to give back (A12, B5, B6).
    pub fn leave(&self) -> bool {
        let mut inner = self.mail.lock();
        inner.left = true;
        inner.goes_on
    }

    /// The reply has been silent for a while.
    pub fn silent(&self) {
        self.mail.lock().silent = true;
    }

    /// For a subscription: `t`ools, `p`rompts, `r`esources, one reso`u`rce has changed; anything else closes it.
    pub fn change(&self, kind: char, uri: String) {
        let change = match kind {
            't' => Some(Change::Tools),
            'p' => Some(Change::Prompts),
            'r' => Some(Change::Resources),
            'u' => Some(Change::Resource(uri)),
            _ => None,
        };
        self.mail.lock().changes.push_back(change);
    }

    // What the ledger's store is asked.

    /// The key of the entry, as text.
    pub fn store_key(&self) -> String {
        self.command.as_ref().map(|command| command.key.to_string()).unwrap_or_default()
    }

    /// Whether it is a compare-and-set.
    pub fn store_sets(&self) -> bool {
        self.command
            .as_ref()
            .is_some_and(|command| matches!(command.operation, Operation::CompareAndSet { .. }))
    }

    /// Bytes that must be there.
    pub fn store_expected(&self) -> Option<Vec<u8>> {
        match &self.command.as_ref()?.operation {
            Operation::CompareAndSet { expected, .. } => expected.clone(),
            Operation::Get => None,
        }
    }

    /// Bytes to put there.
    pub fn store_new(&self) -> Option<Vec<u8>> {
        match &self.command.as_ref()?.operation {
            Operation::CompareAndSet { new, .. } => new.clone(),
            Operation::Get => None,
        }
    }

    /// When the store forgets them.
    pub fn store_expires(&self) -> f64 {
        match self.command.as_ref().map(|command| &command.operation) {
            Some(Operation::CompareAndSet { expires, .. }) => date(*expires),
            Some(Operation::Get) | None => 0.0,
        }
    }

    /// What the store said: `a`pplied, the `c`urrent bytes, `f`ull, or nothing.
    pub fn stored(&mut self, what: char, current: Option<Vec<u8>>) {
        self.command = None;
        self.mail.lock().stored = Some(match what {
            'a' => StoreEvent::Applied,
            'c' => StoreEvent::Current(current),
            'f' => StoreEvent::Full,
            _ => StoreEvent::Unavailable,
        });
    }

    // What a handler's context does.

    /// Asks: a `f`orm (message, schema), a `c`onfirmation (message), a `u`rl (message, url), a `s`ampling (parameters)
    /// or the `r`oots. Gives the number to wait for.
    ///
    /// # Errors
    ///
    /// If the attempt is over, or it is not JSON.
    pub fn ask(
        &mut self,
        kind: char,
        key: &str,
        a: &str,
        b: &str,
        optional: bool,
        solicited: bool,
    ) -> Result<u32, JsError> {
        let ctx = self.ctx()?;
        let request = Self::request(kind, a, b)?;
        Ok(self.waits.ask(&ctx, key, request, optional, solicited || kind == 'c'))
    }

    /// Asks for a url whose errand is looked after (A10).
    ///
    /// # Errors
    ///
    /// If the attempt is over.
    pub fn ask_until(&mut self, key: &str, message: &str, url: &str, optional: bool) -> Result<u32, JsError> {
        let ctx = self.ctx()?;
        Ok(self.waits.until(&ctx, key, message, url, optional))
    }

    /// A round without a question (A10).
    ///
    /// # Errors
    ///
    /// If the attempt is over.
    pub fn checkpoint(&mut self) -> Result<u32, JsError> {
        let ctx = self.ctx()?;
        Ok(self.waits.checkpoint(&ctx))
    }

    /// A value that is made once (A11).
    ///
    /// # Errors
    ///
    /// If the attempt is over.
    pub fn once(&mut self, name: &str) -> Result<u32, JsError> {
        let ctx = self.ctx()?;
        Ok(self.waits.once(&ctx, name))
    }

    /// What a wait came to, if it is there; see `asks.rs`.
    pub fn wait(&mut self, number: u32) -> Option<String> {
        self.waits.poll(number)
    }

    /// Whether the errand of this url is to be looked at now.
    pub fn looks(&mut self, number: u32) -> bool {
        self.waits.looks(number)
    }

    /// What looking at it brought.
    pub fn looked(&mut self, number: u32, done: bool) {
        self.waits.looked(number, done);
    }

    /// The value that was made.
    ///
    /// # Errors
    ///
    /// If it is not JSON.
    pub fn made(&mut self, number: u32, value: String) -> Result<(), JsError> {
        self.waits.made(number, raw(value)?);
        Ok(())
    }

    /// Nobody waits for it any more.
    pub fn withdraw(&mut self, number: u32) {
        self.waits.drop(number);
    }

    /// The handler gets no further by itself.
    pub fn rests(&self) {
        if let Ok(ctx) = self.ctx() {
            ctx.rests();
        }
    }

    /// Whether what runs now has run before.
    pub fn replaying(&self) -> bool {
        self.ctx().is_ok_and(|ctx| ctx.is_replaying())
    }

    /// A named value (A11).
    ///
    /// # Errors
    ///
    /// If the attempt is over.
    pub fn get(&self, name: &str) -> Result<Option<String>, JsError> {
        Ok(self.ctx()?.get::<Box<RawValue>>(name).map(|value| value.get().to_owned()))
    }

    /// Sets a named value.
    ///
    /// # Errors
    ///
    /// If the attempt is over, or it is not JSON.
    pub fn set(&self, name: &str, value: String) -> Result<(), JsError> {
        let ctx = self.ctx()?;
        ctx.set(name, &*raw(value)?).map_err(|error| JsError::new(&error.message))
    }

    /// Reports progress.
    ///
    /// # Errors
    ///
    /// If the attempt is over.
    pub fn progress(
        &self,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> Result<(), JsError> {
        self.ctx()?.progress(progress, total, message.as_deref());
        Ok(())
    }

    /// Logs to the client.
    ///
    /// # Errors
    ///
    /// If the attempt is over, there is no such level, or it is not JSON.
    pub fn log(&self, level: &str, data: String) -> Result<(), JsError> {
        let level = LogLevel::from_name(level).ok_or_else(|| JsError::new("no such log level"))?;
        self.ctx()?.log(level, &*raw(data)?);
        Ok(())
    }

    /// A ticket for the page behind the url that is asked next under `key`.
    ///
    /// # Errors
    ///
    /// If the attempt is over, or the key is not fit.
    pub fn ticket(&self, key: &str, ttl_ms: u32) -> Result<String, JsError> {
        let ttl = core::time::Duration::from_millis(ttl_ms.into());
        self.ctx()?.ticket(key, ttl).map_err(|error| JsError::new(&error.message))
    }

    /// What is called: a tool's or prompt's name, a resource's uri.
    pub fn target(&mut self) -> String {
        match self.ctx() {
            Ok(ctx) => ctx.target().to_owned(),
            Err(_) => self.wish(Wish::Target).unwrap_or_default(),
        }
    }

    /// Its arguments, JSON text of an object.
    pub fn arguments(&mut self) -> String {
        match self.ctx() {
            Ok(ctx) => ctx.arguments().as_str().to_owned(),
            Err(_) => self.wish(Wish::Arguments).unwrap_or_default(),
        }
    }

    /// A part of a template's uri.
    pub fn part(&self, name: &str) -> Option<String> {
        self.ctx().ok()?.part(name).map(ToOwned::to_owned)
    }

    /// When the exchange began.
    pub fn started(&self) -> f64 {
        self.ctx().map_or(0.0, |ctx| date(ctx.started()))
    }

    /// The name of the exchange.
    pub fn exchange(&self) -> String {
        self.ctx().map(|ctx| ctx.exchange().to_string()).unwrap_or_default()
    }

    /// 32 bytes that are the same on every run of the exchange. Never for secrets.
    pub fn seed(&self) -> Vec<u8> {
        self.ctx().map(|ctx| ctx.seed().to_vec()).unwrap_or_default()
    }

    /// What the request in hand declared, JSON text of an object.
    pub fn capabilities(&self) -> String {
        self.ctx().map(|ctx| ctx.capabilities().to_json()).unwrap_or_default()
    }

    /// Leaves something to be done when the handler has succeeded (A12). Gives its number.
    ///
    /// # Errors
    ///
    /// If the attempt is over.
    pub fn on_commit(&self) -> Result<u32, JsError> {
        let ctx = self.ctx()?;
        let mut inner = self.mail.lock();
        let number = inner.commits;
        inner.commits += 1;
        drop(inner);
        let mail = Arc::clone(&self.mail);
        ctx.on_commit_async(move || {
            mail.event(Event::Commit(number));
            Committed(mail, number)
        });
        Ok(number)
    }

    /// A step of the commit is done.
    pub fn committed(&self, number: u32) {
        self.mail.lock().committed.insert(number, Ok(()));
    }

    /// A step of the commit has failed.
    pub fn commit_failed(&self, number: u32, code: f64, message: String, data: Option<String>) {
        let error = error(code, message, data);
        self.mail.lock().committed.insert(number, Err(error));
    }

    /// A step of the commit has failed in a way that is nobody's business.
    pub fn commit_broke(&self, number: u32) {
        self.mail.lock().committed.insert(number, Err(asks::uncaught("x", "")));
    }

    // What a handler comes to.

    /// The arguments are not those of its schema; where and why.
    pub fn refused_arguments(&self, problem: &str) {
        let error = RpcError::invalid_params(format!("Invalid params: {problem}"));
        self.mail.lock().result = Some(Err(error));
    }

    /// A result, JSON text.
    pub fn returned(&self, json: &str) {
        let output = serde_json::from_str::<&RawValue>(json).and_then(Output::from_serialize);
        self.mail.lock().result = Some(output.map_err(|_| RpcError::internal("Internal error")));
    }

    /// A result that is a text, of what was called.
    pub fn returned_text(&mut self, text: &str) {
        let method = self.ctx().map_or(AskingMethod::ToolsCall, |ctx| ctx.method());
        let output = match method {
            AskingMethod::ToolsCall => ToolResult::text(text).into(),
            AskingMethod::PromptsGet => PromptResult::new().user(Content::text(text)).into(),
            AskingMethod::ResourcesRead => {
                let target = self.target();
                ResourceResult::text(&target, "text/plain", text).into()
            }
        };
        self.mail.lock().result = Some(Ok(output));
    }

    /// An error of its own.
    pub fn failed(&self, code: f64, message: String, data: Option<String>) {
        self.mail.lock().result = Some(Err(error(code, message, data)));
    }

    /// An error of an ask that it did not catch.
    pub fn failed_ask(&self, kind: &str, reason: &str) {
        self.mail.lock().result = Some(Err(asks::uncaught(kind, reason)));
    }

    // What a return-style handler's exchange does.

    /// The answer to a question as it would be asked now; see `returning.rs`.
    ///
    /// # Errors
    ///
    /// If it is not JSON.
    pub fn answer(&mut self, kind: char, key: &str, a: &str, b: &str) -> Result<String, JsError> {
        let request = Self::request(kind, a, b)?.into_owned();
        Ok(self.wish(Wish::Answer { key: key.to_owned(), request }).unwrap_or_default())
    }

    /// The state that the handler left in an earlier round: `a` and JSON text, or nothing.
    pub fn state(&mut self) -> String {
        self.wish(Wish::State).unwrap_or_default()
    }

    /// Adds a question to those of the next round.
    ///
    /// # Errors
    ///
    /// If it is not JSON.
    pub fn want(&mut self, kind: char, key: &str, a: &str, b: &str) -> Result<(), JsError> {
        let request = Self::request(kind, a, b)?;
        self.wanted = core::mem::take(&mut self.wanted).ask(key, request);
        Ok(())
    }

    /// Asks them, with a state of the handler's own.
    ///
    /// # Errors
    ///
    /// If it is not JSON.
    pub fn require(&mut self, state: String) -> Result<(), JsError> {
        let asks = core::mem::take(&mut self.wanted);
        self.mail.lock().wish = Some(Wish::Require { asks, state: raw(state)? });
        Ok(())
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.end();
        self.future = None;
    }
}

fn raw(text: String) -> Result<Box<RawValue>, JsError> {
    RawValue::from_string(text).map_err(|_| JsError::new("not JSON"))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a code that is no whole number of 64 bits is the nearest one"
)]
fn error(code: f64, message: String, data: Option<String>) -> RpcError {
    let error = RpcError::new(ErrorCode::new(code as i64), message);
    match data.and_then(|data| raw(data).ok()) {
        Some(data) => error.clone().with_data(&*data).unwrap_or(error),
        None => error,
    }
}
