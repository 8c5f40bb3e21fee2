//! `Retrying`: a request that brings answers.

use super::{Exchange, Retrying};
use crate::{jsonrpc::Json, tape::Answers};

impl Exchange<'_, Retrying> {
    /// Which round's answers it brings, from 1.
    #[must_use]
    pub const fn round(&self) -> u32 {
        self.state.round
    }

    /// The answer to an ask of the last round as the client sent it, its structure checked and no more:
    /// whether the question is still the same is not looked at. [`answer`](Self::answer) does that.
    #[must_use]
    pub fn raw_response(&self, key: &str) -> Option<Json<'_>> {
        match &self.inner.answers {
            Answers::LastRound(list) => {
                list.iter().find(|(found, _)| &**found == key).map(|(_, text)| Json::trusted(text))
            }
            Answers::None | Answers::Early(_) => None,
        }
    }
}
