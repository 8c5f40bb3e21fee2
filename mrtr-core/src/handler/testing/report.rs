//! What a script saw, and how it fails.

use alloc::{string::String, vec::Vec};
use core::fmt;

use crate::{error::RpcError, jsonrpc::Json, wire::AskKind};

/// One question, as the person sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// The key on the wire.
    pub key: String,
    /// The kind.
    pub kind: AskKind,
    /// The message of an elicitation; for others empty.
    pub message: String,
    /// Everything that is shown, JSON text.
    pub params: String,
}

/// One round.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Round {
    /// What was asked; nothing in a state-only round.
    pub asks: Vec<Asked>,
    /// Bytes of the state that went with it.
    pub state_bytes: usize,
}

/// A script that was played to its end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Played {
    /// What was asked, round by round.
    pub rounds: Vec<Round>,
    pub(super) outcome: Result<String, RpcError>,
}

impl Played {
    /// The keys asked, round by round.
    #[must_use]
    pub fn keys(&self) -> Vec<Vec<&str>> {
        self.rounds.iter().map(|round| round.asks.iter().map(|asked| asked.key.as_str()).collect()).collect()
    }

    /// The final result, a JSON object, or the error.
    ///
    /// # Errors
    ///
    /// The error that the call ended with.
    pub fn result(&self) -> Result<Json<'_>, &RpcError> {
        self.outcome.as_ref().map(|text| Json::trusted(text))
    }

    /// The error.
    ///
    /// # Panics
    ///
    /// If the call ended with a result.
    #[must_use]
    #[track_caller]
    pub fn error(&self) -> &RpcError {
        match &self.outcome {
            Err(error) => error,
            Ok(result) => panic!("the call ended with a result: {result}"),
        }
    }

    /// The first text of a tool's result.
    ///
    /// # Panics
    ///
    /// If the call ended with an error, or its result has no text.
    #[must_use]
    #[track_caller]
    pub fn text(&self) -> String {
        let result = match self.result() {
            Ok(result) => result,
            Err(error) => panic!("the call ended with an error: {error}"),
        };
        let mut blocks = result.get("content").and_then(Json::items).into_iter().flatten();
        match blocks.find_map(|block| block.get("text")?.as_string()) {
            Some(text) => text.into_owned(),
            None => panic!("the result has no text: {}", result.as_str()),
        }
    }

    /// Whether a tool's result says that it failed.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.result().is_ok_and(|result| result.get("isError").and_then(Json::as_bool) == Some(true))
    }
}

/// Why a script does not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScriptError {
    /// The handler asks something else when it runs again.
    OtherQuestions {
        /// In which round, from 1.
        round: usize,
        /// What it asked first.
        first: Vec<Asked>,
        /// What it asked then.
        then: Vec<Asked>,
    },
    /// The handler comes to another result when its last segment runs again.
    OtherResult {
        /// The first.
        first: String,
        /// The second.
        then: String,
    },
    /// A question without a scripted answer.
    Unanswered {
        /// In which round, from 1.
        round: usize,
        /// The question.
        asked: Asked,
    },
    /// Scripted answers that nobody asked for, by key.
    NeverAsked(Vec<String>),
    /// What is scripted makes no request, or never ends.
    Unplayable(String),
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherQuestions { round, first, then } => {
                writeln!(f, "round {round}: the handler does not ask the same when it runs again")?;
                for asked in first {
                    let sign = if then.contains(asked) { ' ' } else { '-' };
                    writeln!(f, "  {sign} {asked}")?;
                }
                for asked in then.iter().filter(|asked| !first.contains(asked)) {
                    writeln!(f, "  + {asked}")?;
                }
                if then.is_empty() {
                    writeln!(f, "  (it asks nothing then)")?;
                }
                f.write_str(
                    "put what it reads from outside into `once`, and asks that wait for the same thing into one round",
                )
            }
            Self::OtherResult { first, then } => write!(
                f,
                "the handler comes to another result when its last segment runs again\n  - {first}\n  + {then}\n\
                 put what it reads from outside into `once`"
            ),
            Self::Unanswered { round, asked } => {
                write!(f, "round {round}: the script has no answer to {asked}")
            }
            Self::NeverAsked(keys) => {
                write!(f, "the script answers what was never asked: {}", keys.join(", "))
            }
            Self::Unplayable(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for ScriptError {}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.key, self.kind)?;
        if self.message.is_empty() { Ok(()) } else { write!(f, " {:?}", self.message) }
    }
}
