//! A case, and what becomes of a message that is put to it.

use alloc::{string::String, vec::Vec};

use super::{
    Carrier, Reply, manners,
    seen::{Fault, Seen},
};
use crate::{
    Limits,
    jsonrpc::{Message, admit},
    wire::AskingMethod,
};

/// A way to misbehave.
#[derive(Clone, Copy)]
pub struct Case {
    name: &'static str,
    rules: &'static [&'static str],
    does: &'static str,
    right: &'static str,
    http: Option<Expected>,
    stdio: Option<Expected>,
    /// What is fine as well.
    or: Option<Expected>,
    scope: Scope,
    script: Script,
}

/// How a call of a correct client ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// With a result, after every question was answered.
    Completes,
    /// With the error that the server sent, told as the server's.
    PeerError,
    /// With an error of the client's own that says what is wrong with the reply, or which bound it breaks. Nobody
    /// is asked, and nothing is sent again.
    Refuses,
    /// With an error of the client's own that names the bound: the reply is legal, but the client goes no further.
    Stops,
    /// With word that the connection broke.
    Breaks,
    /// The client gives up after its own time, and cancels the request.
    TimesOut,
}

/// What becomes of a message of the client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reaction {
    /// What is sent. Over stdio some messages get nothing; over HTTP everything gets a response.
    pub reply: Option<Reply>,
    /// What the message shows the client to do wrong.
    pub fault: Option<&'static str>,
}

/// Which requests are answered badly.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Those that may be answered with questions.
    Asking,
    /// All but those.
    Others,
}

/// How they are answered.
#[derive(Clone, Copy)]
enum Script {
    /// Each time with this result.
    Result(&'static str),
    /// With what is made of the request.
    Made(fn(&Seen<'_>) -> Result<Said, Fault>),
    /// With bytes for this carrier.
    Carried(fn(&Seen<'_>, Carrier) -> Reply),
}

/// A reply before it is carried.
pub(super) enum Said {
    /// A result under the request's id: JSON text, or what was meant to be.
    Result(String),
    /// An error under the request's id.
    Error { code: i64, message: &'static str, data: Option<String> },
    /// These messages, the last of which ends the stream.
    Messages(Vec<Vec<u8>>),
}

impl Case {
    const fn new(
        [name, does, right]: [&'static str; 3],
        rules: &'static [&'static str],
        script: Script,
    ) -> Self {
        let refuses = Some(Expected::Refuses);
        Self {
            name,
            rules,
            does,
            right,
            http: refuses,
            stdio: refuses,
            or: None,
            scope: Scope::Asking,
            script,
        }
    }

    pub(super) const fn result(
        words: [&'static str; 3],
        rules: &'static [&'static str],
        result: &'static str,
    ) -> Self {
        Self::new(words, rules, Script::Result(result))
    }

    pub(super) const fn made(
        words: [&'static str; 3],
        rules: &'static [&'static str],
        make: fn(&Seen<'_>) -> Result<Said, Fault>,
    ) -> Self {
        Self::new(words, rules, Script::Made(make))
    }

    pub(super) const fn carried(
        words: [&'static str; 3],
        rules: &'static [&'static str],
        carry: fn(&Seen<'_>, Carrier) -> Reply,
    ) -> Self {
        Self::new(words, rules, Script::Carried(carry))
    }

    /// How it ends, if not in a refusal.
    pub(super) const fn ends(self, expected: Expected) -> Self {
        Self { http: Some(expected), stdio: Some(expected), ..self }
    }

    /// How it ends over each carrier, if it goes over it.
    pub(super) const fn ends_over(self, http: Option<Expected>, stdio: Option<Expected>) -> Self {
        Self { http, stdio, ..self }
    }

    /// What is fine as well, over either carrier.
    pub(super) const fn or(self, expected: Expected) -> Self {
        Self { or: Some(expected), ..self }
    }

    pub(super) const fn on_other_methods(self) -> Self {
        Self { scope: Scope::Others, ..self }
    }

    /// Its name, lower case with hyphens. Stable.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The rules that it is about (R-…, G-…).
    #[must_use]
    pub const fn rules(&self) -> &'static [&'static str] {
        self.rules
    }

    /// What the server does.
    #[must_use]
    pub const fn does(&self) -> &'static str {
        self.does
    }

    /// What a correct client does then.
    #[must_use]
    pub const fn right(&self) -> &'static str {
        self.right
    }

    /// How the call of a correct client ends over this carrier; `None` if the case does not go over it.
    #[must_use]
    pub const fn expected(&self, carrier: Carrier) -> Option<Expected> {
        match carrier {
            Carrier::Http => self.http,
            Carrier::Stdio => self.stdio,
        }
    }

    /// Whether a call over this carrier may end so: as [expected](Self::expected), or in another way that
    /// [`right`](Self::right) allows for.
    #[must_use]
    pub fn allows(&self, carrier: Carrier, ended: Expected) -> bool {
        self.expected(carrier).is_some_and(|expected| expected == ended || self.or == Some(ended))
    }

    /// What becomes of a message of the client: a body, or a line.
    #[must_use]
    pub fn receive(&self, carrier: Carrier, message: &[u8]) -> Reaction {
        let wrong = |fault| Reaction { reply: Reply::nothing(carrier, 400), fault: Some(fault) };
        let request = match admit(message, &Limits::default()) {
            Ok(Message::Request(request)) => request,
            Ok(Message::Notification(_)) => {
                return Reaction { reply: Reply::nothing(carrier, 202), fault: None };
            }
            Ok(Message::Response(_)) => return wrong("answered what was no request"),
            Err(_) => return wrong("sent what is no JSON-RPC message"),
        };
        let seen = Seen::new(request);
        let asking = AskingMethod::from_name(seen.method()).is_some();
        let aimed_at = asking == (self.scope == Scope::Asking);
        let said = if seen.is_retry() && !(aimed_at && asking) {
            Err("sent answers or a state with a request that nothing was asked for")
        } else if seen.is_retry() && self.expected(carrier) == Some(Expected::Refuses) {
            Err("went on with a call whose reply was to be refused")
        } else if aimed_at {
            match self.script {
                Script::Result(result) => Ok(Said::Result(result.into())),
                Script::Made(make) => make(&seen),
                Script::Carried(carry) => {
                    return Reaction { reply: Some(carry(&seen, carrier)), fault: None };
                }
            }
        } else {
            Ok(manners::reply(&seen))
        };
        let (said, fault) = match said {
            Ok(said) => (said, None),
            Err(fault) => (Said::Error { code: -32_603, message: fault, data: None }, Some(fault)),
        };
        Reaction { reply: Some(Reply::of(&seen, carrier, said)), fault }
    }
}

impl core::fmt::Debug for Case {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Case")
            .field("name", &self.name)
            .field("rules", &self.rules)
            .field("http", &self.http)
            .field("stdio", &self.stdio)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;
    use crate::testkit::{case, cases};

    #[test]
    fn every_case_has_a_name_of_its_own_and_says_what_it_is() {
        let names: BTreeSet<_> = cases().map(Case::name).collect();
        assert_eq!(names.len(), cases().count());
        for one in cases() {
            assert!(
                one.name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
                "{one:?}"
            );
            assert!(one.does.ends_with('.') && one.right.ends_with('.'), "{one:?}");
            assert!(!one.rules.is_empty() && (one.http.is_some() || one.stdio.is_some()), "{one:?}");
            assert_eq!(case(one.name).unwrap().does(), one.does);
        }
        assert!(case("nonesuch").is_none());
    }

    #[test]
    fn some_cases_allow_for_two_ends() {
        let large = case("ten-megabytes").unwrap();
        for (carrier, ended, allowed) in [
            (Carrier::Http, Expected::Refuses, true),
            (Carrier::Stdio, Expected::TimesOut, true),
            (Carrier::Stdio, Expected::Completes, false),
        ] {
            assert_eq!(large.allows(carrier, ended), allowed);
        }
        assert!(!case("half-line").unwrap().allows(Carrier::Http, Expected::Completes));
    }

    #[test]
    fn everything_but_the_case_is_as_it_should_be() {
        for one in cases().filter(|case| case.scope == Scope::Asking) {
            for method in ["server/discover", "tools/list", "completion/complete"] {
                let request =
                    alloc::format!(r#"{{"jsonrpc":"2.0","id":"a","method":"{method}","params":{{}}}}"#);
                let reply = one.receive(Carrier::Stdio, request.as_bytes()).reply.unwrap().whole();
                let Ok(Message::Response(response)) = admit(&reply, &Limits::default()) else { panic!() };
                let kind = response.outcome.unwrap().get("resultType").unwrap();
                assert_eq!(kind.as_str(), r#""complete""#);
            }
        }
    }

    #[test]
    fn a_client_that_answers_a_notification_or_a_refused_reply_is_told() {
        let one = case("requests-of-the-server").unwrap();
        let answer = br#"{"jsonrpc":"2.0","id":"server-1","result":{"action":"accept"}}"#;
        assert!(one.receive(Carrier::Stdio, answer).fault.is_some());
        assert!(one.receive(Carrier::Http, b"rubbish").fault.is_some());
        let cancelled = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        let reaction = one.receive(Carrier::Stdio, cancelled);
        assert!(reaction.fault.is_none() && reaction.reply.is_none());
        let retry =
            br#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","requestState":"s"}}"#;
        assert!(case("state-number").unwrap().receive(Carrier::Stdio, retry).fault.is_some());
        let list = br#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"requestState":"s"}}"#;
        assert!(case("empty-state").unwrap().receive(Carrier::Stdio, list).fault.is_some());
    }
}
