//! An exchange between two rounds as bytes: kept on a disk for a day, resumed by another process.
//!
//! ```text
//! "mrtr" 'c' version 1 | SHA-256 of the origin 32 | method | params | options | versions and ids | counts
//! | times | past questions | state | meta | asks with their answers
//! ```
//!
//! Numbers are big-endian; everything of variable length is preceded by its length in 8 bytes, every optional
//! thing by 0 or 1. Each field is checked when it is read, as strictly as when it first came, and nothing may follow
//! the last one. The bytes are plain: they hold answers and a state, so whoever can read them can read those.

use alloc::{boxed::Box, collections::BTreeMap, sync::Arc, vec::Vec};
use core::time::Duration;

use sha2::{Digest as _, Sha256};

use super::{
    Client, Exchange, InputRequired, InputResponse, Stopped,
    call::{Method, Options, Params, Progress, Repeat},
    input_required::Asked,
    ongoing::{Counts, Ongoing, Tail},
    policy::Spent,
    question::Verdict,
    response,
};
use crate::{
    jsonrpc::{Json, JsonKind, RequestId},
    seal,
    time::Timestamp,
    wire::{Action, InputRequest, LogLevel, Version},
};

const MAGIC: &[u8; 5] = b"mrtrc";
const FORMAT: u8 = 1;

/// Why saved bytes were not resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// Not what [`Exchange::save`] writes.
    #[error("these bytes are no saved exchange")]
    NotAnExchange,
    /// Written in a format of another version of this crate.
    #[error("saved in format {0}, which this version does not read")]
    Format(u8),
    /// More bytes than this client can have saved.
    #[error(
        "saved exchange of {bytes} bytes is over the limit of {limit} (four times Limits::message_bytes, and 64 KiB)"
    )]
    TooLarge {
        /// Bytes of it.
        bytes: usize,
        /// The bound, in bytes.
        limit: usize,
    },
    /// It does not open under the sealer.
    #[error("the sealed exchange is refused: {0}")]
    Sealed(seal::Verdict),
    /// Saved for another server. Its state must go nowhere else (R-092).
    #[error("saved for another server")]
    OtherOrigin,
    /// A field that is not possible: the bytes were cut or changed, or are over this client's limits.
    #[error("saved exchange is broken: {0}")]
    Broken(&'static str),
    /// This client allows less than the one that saved it, so the answers would not be sent.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl Exchange<InputRequired> {
    /// Appends the exchange as bytes that [`Client::resume`] reads, the answers so far included. It stays usable.
    ///
    /// `origin` names the server (its URL, the command that runs it): the same bytes must be given to `resume`.
    ///
    /// The bytes are neither secret nor protected against change; [`save_sealed`](Exchange::save_sealed) makes such.
    pub fn save(&self, origin: &str, out: &mut Vec<u8>) {
        let call = &*self.call;
        out.extend_from_slice(MAGIC);
        out.push(FORMAT);
        out.extend_from_slice(&origin_digest(origin));
        put(out, call.method.name().as_bytes());
        put(out, call.params.put_together().as_bytes());
        put_option(out, call.options.log_level.map(LogLevel::name));
        match &call.options.progress {
            Progress::Unwanted => out.push(0),
            Progress::RequestId => out.push(1),
            Progress::Token(token) => {
                out.push(2);
                put_id(out, token);
            }
        }
        out.push(match call.options.repeat {
            Repeat::Never => 0,
            Repeat::Allowed => 1,
        });
        put_number(out, call.options.jitter);
        put(out, call.capabilities.to_json().as_bytes());
        put(out, call.version.name().as_bytes());
        put_id(out, &call.id);
        put_count(out, call.earlier.len());
        for id in &call.earlier {
            put_id(out, id);
        }
        for count in [
            call.counts.retries,
            call.counts.state_only,
            call.counts.in_a_row,
            call.counts.versions,
            call.counts.resends,
        ] {
            put_number(out, count.into());
        }
        let nanos = call.spent.so_far.subsec_nanos();
        put_number(out, call.spent.so_far.as_secs());
        put_number(out, nanos.into());
        put_number(out, call.spent.until.as_unix_millis());
        put_count(out, call.past.len());
        for (mark, verdict) in &call.past {
            out.extend_from_slice(mark);
            put(out, verdict.action.name().as_bytes());
            out.push(verdict.dismissed);
        }
        put_option(out, self.state.state.as_deref());
        put_option(out, self.state.meta.as_deref());
        match self.state.not_before {
            None => out.push(0),
            Some(not_before) => {
                out.push(1);
                put_number(out, not_before.as_unix_millis());
            }
        }
        put_count(out, self.state.asks.len());
        let mut entry = Vec::new();
        for ask in &self.state.asks {
            put(out, ask.key.as_bytes());
            entry.clear();
            ask.request.write(&mut entry);
            put(out, &entry);
            put_option(out, ask.before.map(Action::name));
            put_option(out, ask.answer.as_ref().map(|answer| &*answer.text));
        }
    }
}

impl Client {
    /// Takes up an exchange that [`Exchange::save`] wrote, in another process or on another day.
    ///
    /// `origin` has to be the one it was saved for. The call keeps the capabilities it declared; limits, policy and
    /// everything else are those of this client.
    ///
    /// # Errors
    ///
    /// If the bytes are not whole and unchanged in structure, were saved for another server, or are over what this
    /// client allows. Any bytes are safe to give.
    pub fn resume(&self, saved: &[u8], origin: &str) -> Result<Exchange<InputRequired>, ResumeError> {
        self.may_hold(saved)?;
        let rest = saved.strip_prefix(MAGIC).ok_or(ResumeError::NotAnExchange)?;
        let (format, rest) = rest.split_first().ok_or(ResumeError::NotAnExchange)?;
        if *format != FORMAT {
            return Err(ResumeError::Format(*format));
        }
        let mut reader = Reader { client: self, rest };
        if reader.digest()? != origin_digest(origin) {
            return Err(ResumeError::OtherOrigin);
        }
        let call = reader.call()?;
        let state = reader.state(&call)?;
        if !reader.rest.is_empty() {
            return Err(ResumeError::Broken("something follows its end"));
        }
        call.may_retry(&state.asks)?;
        Ok(Exchange { call: Box::new(call), state })
    }
}

impl Client {
    /// Checks the size of a saved exchange: its parameters, its asks, their answers and the state each come in one
    /// message.
    pub(super) fn may_hold(&self, saved: &[u8]) -> Result<(), ResumeError> {
        let limit = self.shared.config.limits.message_bytes.saturating_mul(4).saturating_add(64 << 10);
        if saved.len() > limit {
            return Err(ResumeError::TooLarge { bytes: saved.len(), limit });
        }
        Ok(())
    }
}

fn origin_digest(origin: &str) -> [u8; 32] {
    Sha256::new().chain_update(b"mrtr/v1/origin").chain_update(origin.as_bytes()).finalize().into()
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_be_bytes());
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    put_number(out, u64::try_from(count).unwrap_or(u64::MAX));
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_option(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        None => out.push(0),
        Some(text) => {
            out.push(1);
            put(out, text.as_bytes());
        }
    }
}

fn put_id(out: &mut Vec<u8>, id: &RequestId) {
    let mut text = Vec::new();
    id.write(&mut text);
    put(out, &text);
}

/// Reads what [`Exchange::save`] wrote, field by field.
struct Reader<'a, 'b> {
    client: &'a Client,
    rest: &'b [u8],
}

type Read<T> = Result<T, ResumeError>;

impl<'b> Reader<'_, 'b> {
    fn call(&mut self) -> Read<Ongoing> {
        let config = &self.client.shared.config;
        let method = Method::from_name(self.text("method")?);
        let params = Params::read(self.text("params")?, config).map_err(|_| broken("params"))?;
        let options = self.options()?;
        let declared = self.json("capabilities")?;
        let capabilities =
            crate::wire::ClientCapabilities::from_json(declared).ok_or(broken("capabilities"))?;
        let version = Version::from_name(self.text("version")?)
            .filter(|version| config.versions.contains(version))
            .ok_or(broken("version"))?;
        let id = self.id()?;
        let mut earlier = Vec::new();
        for _ in 0..self.number()? {
            earlier.push(self.id()?);
        }
        let counts = Counts {
            retries: self.small("retries")?,
            state_only: self.small("state-only retries")?,
            in_a_row: self.small("state-only retries in a row")?,
            versions: self.small("versions")?,
            resends: self.small("resends")?,
        };
        let seconds = self.number()?;
        let nanos: u32 = self.small("time")?;
        if nanos >= 1_000_000_000 {
            return Err(broken("time"));
        }
        let spent = Spent {
            so_far: Duration::new(seconds, nanos),
            until: Timestamp::from_unix_millis(self.number()?),
        };
        let mut past = BTreeMap::new();
        for _ in 0..self.number()? {
            let mark = self.digest()?;
            let action = Action::from_name(self.text("action")?).ok_or(broken("action"))?;
            if past.insert(mark, Verdict { action, dismissed: self.byte()? }).is_some() {
                return Err(broken("a question that stands twice"));
            }
        }
        Ok(Ongoing {
            shared: Arc::clone(&self.client.shared),
            method,
            params,
            options,
            capabilities,
            version,
            id,
            earlier,
            tail: Tail::default(),
            base: 0,
            counts,
            spent,
            last: Vec::new(),
            past,
        })
    }

    fn options(&mut self) -> Read<Options> {
        let log_level = match self.option("log level")? {
            None => None,
            Some(name) => Some(LogLevel::from_name(name).ok_or(broken("log level"))?),
        };
        let progress = match self.byte()? {
            0 => Progress::Unwanted,
            1 => Progress::RequestId,
            2 => Progress::Token(self.id()?),
            _ => return Err(broken("progress")),
        };
        let repeat = match self.byte()? {
            0 => Repeat::Never,
            1 => Repeat::Allowed,
            _ => return Err(broken("repeat")),
        };
        Ok(Options { log_level, progress, capabilities: None, repeat, jitter: self.number()? })
    }

    fn state(&mut self, call: &Ongoing) -> Read<InputRequired> {
        let limits = &self.client.shared.config.limits;
        let state = match self.option("state")? {
            None => None,
            Some(text) => Some(self.parse("state", text)?),
        };
        if state.is_some_and(|state| {
            state.kind() != JsonKind::String || state.as_str().len() - 2 > limits.state_accepted
        }) {
            return Err(broken("state"));
        }
        let meta = match self.option("meta")? {
            None => None,
            Some(text) => Some(self.parse("meta", text)?),
        };
        if meta.is_some_and(|meta| !meta.is_object()) {
            return Err(broken("meta"));
        }
        let not_before = match self.byte()? {
            0 => None,
            1 => Some(Timestamp::from_unix_millis(self.number()?)),
            _ => return Err(broken("pause")),
        };
        let count = self.number()?;
        if usize::try_from(count).map_or(true, |count| count > limits.asks_accepted) {
            return Err(broken("number of asks"));
        }
        let mut asks = Vec::new();
        for _ in 0..count {
            asks.push(self.ask(call, &asks)?);
        }
        if asks.is_empty() && state.is_none() || asks.is_empty() != not_before.is_some() {
            return Err(broken("neither asks nor a state, or a pause in the wrong place"));
        }
        let keep = |json: Json<'_>| Box::from(json.as_str());
        Ok(InputRequired { asks, state: state.map(keep), meta: meta.map(keep), not_before })
    }

    fn ask(&mut self, call: &Ongoing, others: &[Asked]) -> Read<Asked> {
        let key = self.text("key")?;
        if others.iter().any(|other| &*other.key == key) {
            return Err(broken("a key that stands twice"));
        }
        let request = InputRequest::from_json(self.json("ask")?).map_err(|_| broken("ask"))?;
        if !call.capabilities.allow(request.requirement()) {
            return Err(broken("an ask that was not declared"));
        }
        let before = match self.option("action")? {
            None => None,
            Some(name) => Some(Action::from_name(name).ok_or(broken("action"))?),
        };
        let answer = match self.option("answer")? {
            None => None,
            Some(text) => {
                let given = InputResponse::from_wire(self.parse("answer", text)?);
                let limits = &self.client.shared.config.limits;
                Some(response::check(&request, &given, limits).map_err(|_| broken("answer"))?)
            }
        };
        Ok(Asked { key: key.into(), request: request.into_owned(), before, answer })
    }

    fn take(&mut self, count: usize) -> Read<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(broken("it ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Read<u8> {
        self.take(1).map(|taken| taken.first().copied().unwrap_or(0))
    }

    fn number(&mut self) -> Read<u64> {
        let taken = self.take(8)?;
        Ok(taken.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }

    fn small<T: TryFrom<u64>>(&mut self, what: &'static str) -> Read<T> {
        T::try_from(self.number()?).map_err(|_| broken(what))
    }

    fn digest(&mut self) -> Read<[u8; 32]> {
        self.take(32)?.try_into().map_err(|_| broken("digest"))
    }

    fn text(&mut self, what: &'static str) -> Read<&'b str> {
        let count = self.small(what)?;
        core::str::from_utf8(self.take(count)?).map_err(|_| broken(what))
    }

    fn option(&mut self, what: &'static str) -> Read<Option<&'b str>> {
        match self.byte()? {
            0 => Ok(None),
            1 => self.text(what).map(Some),
            _ => Err(broken(what)),
        }
    }

    fn json(&mut self, what: &'static str) -> Read<Json<'b>> {
        let text = self.text(what)?;
        self.parse(what, text)
    }

    fn parse(&self, what: &'static str, text: &'b str) -> Read<Json<'b>> {
        Json::parse(text, &self.client.shared.config.limits).map_err(|_| broken(what))
    }

    fn id(&mut self) -> Read<RequestId> {
        RequestId::from_json(self.json("id")?).ok_or(broken("id"))
    }
}

const fn broken(what: &'static str) -> ResumeError {
    ResumeError::Broken(what)
}
