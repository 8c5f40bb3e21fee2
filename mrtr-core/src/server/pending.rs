//! `Pending`: the first request of an exchange.

use super::{Exchange, Pending};
use crate::{jsonrpc::Json, tape::Answers};

impl Exchange<'_, Pending> {
    /// An answer that came with the first request, before anything was asked, as the client sent it.
    ///
    /// It lacks all protection: nobody knows which question it answers, when it was given, by whom. Take it
    /// only where a fabricated answer does no harm (G-08).
    #[must_use]
    pub fn raw_response(&self, key: &str) -> Option<Json<'_>> {
        match &self.inner.answers {
            Answers::Early(list) => {
                list.iter().find(|(found, _)| &**found == key).map(|(_, text)| Json::trusted(text))
            }
            Answers::None | Answers::LastRound(_) => None,
        }
    }
}
