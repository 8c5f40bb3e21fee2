//! What went wrong, for whoever typed the command, and how the process ends then.

use mrtr_core::{
    client::{Reason, StartError, Stopped},
    http::{HttpError, HttpErrorKind},
    legacy::client::{Closed, Failure as Failed},
};
use mrtr_tokio::{
    client::{CallError, WireError},
    keys::KeyError,
};
use serde_json::{Value, json};

/// How the process ends. What each number means is written in [`EXITS`], for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Something on this side failed, or the tool says that it failed.
    Failed,
    /// What was typed makes no sense; clap's number.
    Usage,
    /// A question has no answer that fits.
    Unanswered,
    /// The server says no: an error, a state it does not take, credentials it does not take.
    Refused,
    /// A bound of this side was reached.
    Limit,
    /// The server breaks the protocol.
    Protocol,
    /// No message got through.
    Transport,
    /// Ctrl-C, or SIGTERM.
    Interrupted,
}

/// What stands below `mrtr call --help`.
pub(crate) const EXITS: &str = "Exit codes:
    0  the result is there
    1  the tool says that it failed, or something failed on this machine
    2  bad usage
    3  a question is not answered: its name is printed, and with --save the call can be resumed
    4  refused: the server answers with an error, or does not take the state or the credentials
    5  a bound was reached: rounds, time, size
    6  the server breaks the protocol
    7  no connection, or it broke
  130  given up with Ctrl-C, or ended by SIGTERM";

impl Exit {
    /// As scripts read it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Unanswered => "unanswered",
            Self::Refused => "refused",
            Self::Limit => "limit",
            Self::Protocol => "protocol",
            Self::Transport => "transport",
            Self::Interrupted => "interrupted",
        }
    }

    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unanswered => 3,
            Self::Refused => 4,
            Self::Limit => 5,
            Self::Protocol => 6,
            Self::Transport => 7,
            Self::Interrupted => 130,
        }
    }

    /// How a call ended that has no result.
    pub(crate) const fn of(error: &CallError) -> Self {
        match error {
            CallError::Peer(_) | CallError::StateRefused(_) => Self::Refused,
            CallError::Start(StartError::TooLarge { .. }) | CallError::Timeout => Self::Limit,
            CallError::Start(_) => Self::Usage,
            CallError::Wire(error) => Self::of_wire(error),
            CallError::Violation(_) | CallError::NoCommonVersion | CallError::OtherEra => Self::Protocol,
            CallError::TooMany { .. } | CallError::TooManyAsks { .. } => Self::Limit,
            CallError::Session(closed) => Self::of_session(closed),
            CallError::Stopped(Stopped::Lost) => Self::Transport,
            CallError::Stopped(_) => Self::Limit,
            CallError::NotSent(Reason::Missing { .. }) => Self::Unanswered,
            CallError::NotSent(_) => Self::Limit,
            CallError::Unanswered { .. } => Self::Unanswered,
            CallError::OtherServer | _ => Self::Failed,
        }
    }

    const fn of_session(closed: &Closed) -> Self {
        match closed {
            Closed::Refused(_) => Self::Refused,
            Closed::Failed(Failed::Timeout | Failed::Overlong { .. }) => Self::Limit,
            Closed::ByPeer | Closed::Failed(Failed::Lost | Failed::Closed) => Self::Transport,
            Closed::Failed(Failed::Peer(_)) => Self::Refused,
            Closed::Version(_) | Closed::Malformed(_) | Closed::Failed(_) | _ => Self::Protocol,
        }
    }

    const fn of_wire(error: &WireError) -> Self {
        match error {
            WireError::Http(HttpError { kind, .. }) => match kind {
                HttpErrorKind::Unauthorized | HttpErrorKind::Forbidden => Self::Refused,
                HttpErrorKind::NoMessage | HttpErrorKind::Unknown => Self::Protocol,
                HttpErrorKind::Redirect
                | HttpErrorKind::BadRequest
                | HttpErrorKind::NotFound
                | HttpErrorKind::MethodNotAllowed
                | HttpErrorKind::TooLarge
                | HttpErrorKind::TooManyRequests
                | HttpErrorKind::Client
                | HttpErrorKind::Server
                | _ => Self::Transport,
            },
            WireError::Header(_) => Self::Usage,
            WireError::TooLarge { .. } => Self::Limit,
            WireError::Credentials(_) => Self::Failed,
            WireError::Connect(_)
            | WireError::Broken { .. }
            | WireError::Ended(_)
            | WireError::Redirect { .. }
            | _ => Self::Transport,
        }
    }
}

/// Why the command did not do what it was asked to.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) text: String,
    pub(crate) exit: Exit,
}

impl Failure {
    pub(crate) fn new(text: impl std::fmt::Display) -> Self {
        Self::with(Exit::Failed, text)
    }

    pub(crate) fn usage(text: impl std::fmt::Display) -> Self {
        Self::with(Exit::Usage, text)
    }

    /// A variable of the environment is not set.
    pub(crate) fn unset(option: &str, name: &str) -> Self {
        match name {
            "" => Self::usage(format!("{option}: an environment variable has to be named")),
            name => Self::usage(format!("{option}: {}", KeyError::unset(name))),
        }
    }

    pub(crate) fn with(exit: Exit, text: impl std::fmt::Display) -> Self {
        Self { text: text.to_string(), exit }
    }

    pub(crate) fn interrupted() -> Self {
        Self::with(Exit::Interrupted, "given up")
    }

    /// What `--json` prints instead of a result, with these members as well.
    pub(crate) fn json(&self, more: Value) -> String {
        let mut error = json!({ "kind": self.exit.name(), "exit": self.exit.code(), "message": self.text });
        if let (Some(error), Value::Object(more)) = (error.as_object_mut(), more) {
            error.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
        }
        json!({ "error": error }).to_string()
    }
}

impl From<&CallError> for Failure {
    fn from(error: &CallError) -> Self {
        Self::with(Exit::of(error), error)
    }
}
