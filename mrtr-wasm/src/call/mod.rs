//! One HTTP request, which JavaScript drives: it polls, does what it is told, hands in what came of it, and polls
//! again.

mod context;
mod ends;
mod store;

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
    catalog::Change,
    handler::Ctx,
    http::{Accepts, Gate, GateFault, ReplyBody, ReplyClass, ReplyHead, Verdict},
    ledger::Command,
    server::InputRequests,
    wire::{AskKind, InputRequest},
};
use wasm_bindgen::prelude::*;

use crate::{
    asks::Waits,
    engine::Parts,
    mail::{Event, Mail},
    returning::Wish,
    serve::{self, Taken},
    settings::{date, parse, raw, seed, time},
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
            .filter_map(|line| {
                // Not the colon that HTTP/2 begins some names with.
                let colon = 1 + line.bytes().skip(1).position(|byte| byte == b':')?;
                let (name, value) = (line.get(..colon)?, line.get(colon + 1..)?);
                Some((name.to_owned(), value.strip_prefix(' ').unwrap_or(value).to_owned()))
            })
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
}

impl Drop for Call {
    fn drop(&mut self) {
        self.end();
        self.future = None;
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a code that is no whole number of 64 bits is the nearest one"
)]
fn error(code: f64, message: String, data: Option<String>) -> RpcError {
    let error = RpcError::new(ErrorCode::new(code as i64), message);
    match data.as_deref().map(raw) {
        Some(Ok(data)) => error.with_json_data(data),
        Some(Err(_)) | None => error,
    }
}
