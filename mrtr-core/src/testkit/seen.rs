//! A request as a case looks at it, and the memory of an exchange in the states that a case sends.

use alloc::{format, string::String, vec::Vec};

use crate::{
    digest::RequestDigest,
    jsonrpc::{Json, Request, RequestId, write},
    wire::{Action, Answer, AskKind, AskingMethod, ClientCapabilities, key, read_answer},
};

/// What a client does wrong.
pub(super) type Fault = &'static str;

/// A request.
pub(super) struct Seen<'a> {
    request: Request<'a>,
}

/// What a state of ours says.
pub(super) struct Trail {
    /// How many questions or pauses came before this request.
    pub(super) round: u32,
    /// What the case wrote down.
    pub(super) mark: char,
}

impl<'a> Seen<'a> {
    pub(super) const fn new(request: Request<'a>) -> Self {
        Self { request }
    }

    pub(super) fn method(&self) -> &str {
        &self.request.method
    }

    pub(super) const fn id(&self) -> &RequestId {
        &self.request.id
    }

    pub(super) fn param(&self, name: &str) -> Option<Json<'a>> {
        self.request.param(name)
    }

    /// A reply to it with this result, whatever that is.
    pub(super) fn reply(&self, result: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(result.len() + 64);
        write::result_head(&mut out, self.id());
        out.extend_from_slice(result.as_bytes());
        out.push(b'}');
        out
    }

    /// Whether it carries answers or a state.
    pub(super) fn is_retry(&self) -> bool {
        self.answers().is_some() || self.state().is_some()
    }

    pub(super) fn answers(&self) -> Option<Json<'a>> {
        self.param("inputResponses")
    }

    pub(super) fn state(&self) -> Option<Json<'a>> {
        self.param("requestState")
    }

    pub(super) fn capabilities(&self) -> ClientCapabilities {
        let declared = self.param("_meta").and_then(|meta| meta.get(key::CLIENT_CAPABILITIES));
        declared.and_then(ClientCapabilities::from_json).unwrap_or_default()
    }

    /// Fails if there are answers, though nothing was asked. An empty map is passed over.
    pub(super) fn no_answers(&self) -> Result<(), Fault> {
        match self.answers().and_then(Json::members).is_some_and(|mut members| members.next().is_some()) {
            true => Err("sent answers to a result that asked nothing"),
            false => Ok(()),
        }
    }

    pub(super) fn no_state(&self) -> Result<(), Fault> {
        if self.state().is_some() { Err("sent a state that the last result did not have") } else { Ok(()) }
    }

    /// The answer to the form or url with this key.
    pub(super) fn elicited(&self, kind: AskKind, key: &str) -> Result<(Action, Json<'a>), Fault> {
        let answer =
            self.answers().and_then(|answers| answers.get(key)).ok_or("did not answer a question")?;
        match read_answer(kind, answer) {
            Ok(Answer::Form { action, content }) => Ok((action, content)),
            Ok(Answer::Url(action)) => Ok((action, Json::EMPTY_OBJECT)),
            Ok(Answer::Sampling(_) | Answer::Roots(_)) | Err(_) => Err("sent an answer of the wrong shape"),
        }
    }

    /// The state that says so, for the next result.
    pub(super) fn trail(&self, round: u32, mark: char) -> String {
        let mut id = Vec::new();
        self.id().write(&mut id);
        format!("mrtr-{round}-{mark}-{}-{}", hex(&id), hex(&self.digest()))
    }

    /// What the state of this request says; a first request has none. Fails if the retry is no retry of the
    /// request that the state came in answer to.
    pub(super) fn follow(&self) -> Result<Trail, Fault> {
        let Some(state) = self.state() else {
            return if self.answers().is_some() {
                Err("sent answers without the state that came with the questions")
            } else {
                Ok(Trail { round: 0, mark: '0' })
            };
        };
        let state = state.as_string().ok_or("sent a state that is no text")?;
        let mut parts = state.split('-').skip(1);
        let (Some(round), Some(mark), Some(id), Some(digest)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err("sent another state than it was given");
        };
        let mut own = Vec::new();
        self.id().write(&mut own);
        if id == hex(&own) {
            return Err("sent a retry under the id of the request before");
        }
        if digest != hex(&self.digest()) {
            return Err(
                "sent a state with another request than the one it belongs to, or changed the request",
            );
        }
        let round = round.parse().map_err(|_| "sent another state than it was given")?;
        Ok(Trail { round, mark: mark.chars().next().unwrap_or('0') })
    }

    /// What makes it this request: method, target, arguments.
    fn digest(&self) -> [u8; 32] {
        let target =
            AskingMethod::from_name(self.method()).and_then(|method| self.param(method.target_param()));
        let target = target.map_or("", Json::as_str);
        // What cannot be digested counts as no arguments.
        let arguments = self.param("arguments");
        let digest = RequestDigest::new(self.method(), target, arguments)
            .or_else(|_| RequestDigest::new(self.method(), target, None));
        digest.map_or([0; 32], |digest| *digest.as_bytes())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
