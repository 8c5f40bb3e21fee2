//! What an exchange keeps over all its rounds, and how a request is put together from it.

use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

use super::{
    Shared, Stopped,
    call::{IdFault, Method, Options, Params, Progress},
    input_required::Asked,
    policy::Spent,
    question::{Mark, Verdict},
};
use crate::{
    jsonrpc::{RequestId, write},
    time::Timestamp,
    wire::{ClientCapabilities, Version, key},
};

/// About what a request takes beside the texts in it: its buffer is made once.
const FRAME: usize = 256;

/// Bytes of JSON that an id may have.
const ID_BYTES: usize = 256;

/// What lasts from the first request to the outcome.
pub(super) struct Ongoing {
    pub(super) shared: Arc<Shared>,
    pub(super) method: Method,
    pub(super) params: Params,
    pub(super) options: Options,
    pub(super) capabilities: ClientCapabilities,
    pub(super) version: Version,
    /// The id of the newest request.
    pub(super) id: RequestId,
    /// The ids of those before.
    pub(super) earlier: Vec<RequestId>,
    /// What the newest request carried beside the original parameters.
    pub(super) tail: Tail,
    /// Bytes of the newest request without its tail.
    pub(super) base: usize,
    pub(super) counts: Counts,
    pub(super) spent: Spent,
    /// The asks that the newest request answered.
    pub(super) last: Vec<Asked>,
    /// What people did with the questions of the rounds before.
    pub(super) past: BTreeMap<Mark, Verdict>,
}

/// How often what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Retries with answers.
    pub(super) retries: u32,
    /// Retries with a state only.
    pub(super) state_only: u32,
    /// Those since the last round with questions.
    pub(super) in_a_row: u32,
    /// Requests sent again because the version was refused.
    pub(super) versions: u32,
    /// Requests sent again because the connection broke.
    pub(super) resends: u32,
}

/// `inputResponses` and `requestState` as they stand at the end of a retry's params; empty in a first request.
#[derive(Default)]
pub(super) struct Tail {
    pub(super) text: Vec<u8>,
    pub(super) state: CarriesState,
}

/// Whether a request carries a `requestState`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CarriesState {
    #[default]
    No,
    Yes,
}

/// Why a request was not written.
pub(super) enum Unsent {
    Id(IdFault),
    TooLarge { bytes: usize, limit: usize },
}

impl Ongoing {
    /// Request/result legs so far, the one under way included.
    pub(super) const fn rounds(&self) -> u32 {
        self.counts.retries.saturating_add(self.counts.state_only).saturating_add(1)
    }

    /// Whether a request of this exchange had the id.
    pub(super) fn had(&self, id: &RequestId) -> bool {
        *id == self.id || self.earlier.contains(id)
    }

    /// [`Ongoing::write`], for an id that no earlier request of the exchange had.
    pub(super) fn write_next(&self, id: &RequestId, tail: &Tail, out: &mut Vec<u8>) -> Result<usize, Unsent> {
        if self.had(id) {
            return Err(Unsent::Id(IdFault::Reused));
        }
        self.write(id, tail, out)
    }

    /// Appends a request with this id and tail, whole or not at all, and gives its length without the tail.
    pub(super) fn write(&self, id: &RequestId, tail: &Tail, out: &mut Vec<u8>) -> Result<usize, Unsent> {
        let from = out.len();
        let shared = &self.shared;
        let own = shared.info.len() + shared.declared.len();
        out.reserve(FRAME + self.params.members.len() + self.params.meta.len() + own + tail.text.len());
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        let id_from = out.len();
        id.write(out);
        let id_bytes = out.len() - id_from;
        if id_bytes > ID_BYTES {
            out.truncate(from);
            return Err(Unsent::Id(IdFault::TooLong(id_bytes)));
        }
        out.extend_from_slice(b",\"method\":");
        write::string(out, self.method.name());
        out.extend_from_slice(b",\"params\":{");
        out.extend_from_slice(self.params.members.as_bytes());
        out.extend_from_slice(b"\"_meta\":{");
        self.write_meta(id, out);
        out.push(b'}');
        out.extend_from_slice(&tail.text);
        out.extend_from_slice(b"}}");
        let (bytes, limit) = (out.len() - from, self.shared.config.limits.message_bytes);
        if bytes > limit {
            out.truncate(from);
            return Err(Unsent::TooLarge { bytes, limit });
        }
        Ok(bytes - tail.text.len())
    }

    /// Appends the members of `_meta`: the protocol's own, then the caller's.
    fn write_meta(&self, id: &RequestId, out: &mut Vec<u8>) {
        let named = |out: &mut Vec<u8>, name: &str| {
            write::word(out, name);
            out.push(b':');
        };
        named(out, key::PROTOCOL_VERSION);
        write::word(out, self.version.name());
        out.push(b',');
        out.extend_from_slice(self.shared.info.as_bytes());
        named(out, key::CLIENT_CAPABILITIES);
        if self.capabilities == self.shared.capabilities {
            out.extend_from_slice(self.shared.declared.as_bytes());
        } else {
            out.extend_from_slice(self.shared.config.declared(self.capabilities).as_bytes());
        }
        if let Some(level) = self.options.log_level {
            out.push(b',');
            named(out, key::LOG_LEVEL);
            write::word(out, level.name());
        }
        let token = match &self.options.progress {
            Progress::Unwanted => None,
            Progress::RequestId => Some(id),
            Progress::Token(token) => Some(token),
        };
        if let Some(token) = token {
            out.push(b',');
            named(out, key::PROGRESS_TOKEN);
            token.write(out);
        }
        out.extend_from_slice(self.params.meta.as_bytes());
    }

    /// Takes note of a further request that was written.
    pub(super) fn sent(&mut self, id: RequestId, tail: Tail, base: usize) {
        self.earlier.push(core::mem::replace(&mut self.id, id));
        self.tail = tail;
        self.base = base;
    }

    /// Whether a retry is left for a round with these asks. Called before anybody sees them.
    pub(super) fn may_retry(&self, asks: &[Asked]) -> Result<(), Stopped> {
        let (retries, state_only) =
            (self.shared.config.policy.retries, self.shared.config.limits.state_only_rounds);
        if asks.is_empty() {
            if self.counts.state_only >= state_only {
                return Err(Stopped::StateOnlyRounds { limit: state_only });
            }
        } else if self.counts.retries >= retries {
            return Err(Stopped::Retries { limit: retries });
        }
        Ok(())
    }

    /// When the exchange is over its time, if all time from now on counts.
    pub(super) fn deadline(&self) -> Timestamp {
        let left = self.shared.config.limits.exchange.saturating_sub(self.spent.so_far);
        self.spent.until.saturating_add(left)
    }

    /// For `Debug`: names and sizes only.
    pub(super) fn describe(&self, f: &mut core::fmt::DebugStruct<'_, '_>) {
        f.field("method", &self.method.name())
            .field("params_bytes", &self.params.members.len())
            .field("request_id", &self.id)
            .field("round", &self.rounds());
    }
}
