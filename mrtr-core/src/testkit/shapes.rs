//! Results that are none: each is refused, and nobody is asked.

use alloc::{format, string::String, vec::Vec};

use super::{
    Case, Expected,
    case::Said,
    seen::{Fault, Seen},
};
use crate::wire::ClientCapabilities;

/// A form as an ask.
macro_rules! form {
    () => {
        r#"{"method":"elicitation/create","params":{"mode":"form","message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}"#
    };
}
pub(super) use form;

/// An interim result with these members.
macro_rules! interim {
    ($($members:tt)*) => { concat!(r#"{"resultType":"input_required","#, $($members)*, "}") };
}

/// An interim result with this under the key `k`, and a state.
macro_rules! ask {
    ($($ask:tt)*) => { interim!(r#""inputRequests":{"k":"#, $($ask)*, r#"},"requestState":"s""#) };
}

/// A case with a result that is to be refused.
macro_rules! refused {
    ($name:literal, $does:literal, $rules:expr, $result:expr) => {
        Case::result(
            [$name, $does, "Refuses the reply and says what is wrong; asks nobody."],
            $rules,
            $result,
        )
    };
}

pub(super) const CASES: &[Case] = &[
    // What kind of result it is: `resultType` alone says so.
    refused!("result-list", "The result is a list.", &["R-015"], "[]"),
    refused!("result-null", "The result is null.", &["R-015"], "null"),
    refused!(
        "result-type-number",
        "`resultType` is a number.",
        &["R-015"],
        r#"{"resultType":1,"content":[]}"#
    ),
    refused!("result-type-null", "`resultType` is null.", &["R-015"], r#"{"resultType":null,"content":[]}"#),
    refused!(
        "result-type-upper-case",
        "`resultType` is `INPUT_REQUIRED`.",
        &["R-015"],
        concat!(
            r#"{"resultType":"INPUT_REQUIRED","inputRequests":{"k":"#,
            form!(),
            r#"},"requestState":"s"}"#
        )
    ),
    refused!(
        "result-type-unknown",
        "`resultType` is a word of no extension that the client declared.",
        &["R-015", "R-016", "G-33"],
        r#"{"resultType":"streaming","content":[]}"#
    ),
    Case::result(
        [
            "result-type-absent",
            "The final result has no `resultType`.",
            "Takes the result as complete, and sends nothing again.",
        ],
        &["R-014"],
        r#"{"content":[{"type":"text","text":"done"}],"messages":[],"contents":[]}"#,
    )
    .ends(Expected::Completes),
    Case::result(
        [
            "result-type-absent-with-asks",
            "Questions and a state are in a result without `resultType`.",
            "Takes the result as complete, whatever it looks like: asks nobody, and sends nothing again.",
        ],
        &["R-014"],
        concat!(r#"{"inputRequests":{"k":"#, form!(), r#"},"requestState":"s","content":[]}"#),
    )
    .ends(Expected::Completes),
    // Questions and state.
    refused!(
        "neither-asks-nor-state",
        "An interim result has neither questions nor a state.",
        &["G-03"],
        r#"{"resultType":"input_required"}"#
    ),
    refused!(
        "empty-asks-without-state",
        "An interim result has an empty map of questions, and no state.",
        &["G-02"],
        interim!(r#""inputRequests":{}"#)
    ),
    refused!(
        "null-asks-and-null-state",
        "Questions and state are both null, which is to be read as absent.",
        &["G-03", "G-05"],
        interim!(r#""inputRequests":null,"requestState":null"#)
    ),
    refused!(
        "asks-list",
        "`inputRequests` is a list.",
        &["G-15"],
        interim!(r#""inputRequests":[],"requestState":"s""#)
    ),
    refused!(
        "asks-string",
        "`inputRequests` is a string.",
        &["G-15"],
        interim!(r#""inputRequests":"k","requestState":"s""#)
    ),
    refused!("state-number", "`requestState` is a number.", &["G-05"], interim!(r#""requestState":42"#)),
    refused!("state-object", "`requestState` is an object.", &["G-05"], interim!(r#""requestState":{}"#)),
    refused!(
        "state-boolean",
        "`requestState` is `true`, beside a question.",
        &["G-05"],
        interim!(r#""inputRequests":{"k":"#, form!(), r#"},"requestState":true"#)
    ),
    // One question.
    refused!("ask-null", "A question is null.", &["G-15"], ask!("null")),
    refused!("ask-number", "A question is a number.", &["G-15"], ask!("5")),
    refused!("ask-list", "A question is a list.", &["G-15"], ask!("[]")),
    refused!(
        "ask-without-method",
        "A question has no `method`.",
        &["G-15", "R-060"],
        ask!(r#"{"params":{}}"#)
    ),
    refused!(
        "ask-method-null",
        "The `method` of a question is null.",
        &["G-15", "R-060"],
        ask!(r#"{"method":null,"params":{}}"#)
    ),
    refused!(
        "ask-method-unknown",
        "The `method` of a question is none that may be asked.",
        &["G-15", "R-060"],
        ask!(r#"{"method":"shell/exec","params":{"command":"id"}}"#)
    ),
    refused!(
        "ask-without-params",
        "An elicitation has no `params`.",
        &["G-15"],
        ask!(r#"{"method":"elicitation/create"}"#)
    ),
    refused!(
        "ask-params-list",
        "The `params` of an elicitation is a list.",
        &["G-15"],
        ask!(r#"{"method":"elicitation/create","params":[]}"#)
    ),
    refused!(
        "ask-without-message",
        "A form has no `message`.",
        &["G-15"],
        ask!(
            r#"{"method":"elicitation/create","params":{"requestedSchema":{"type":"object","properties":{}}}}"#
        )
    ),
    refused!(
        "ask-message-number",
        "The `message` of a form is a number.",
        &["G-15"],
        ask!(
            r#"{"method":"elicitation/create","params":{"message":1,"requestedSchema":{"type":"object","properties":{}}}}"#
        )
    ),
    refused!(
        "ask-without-schema",
        "A form has no `requestedSchema`.",
        &["G-15"],
        ask!(r#"{"method":"elicitation/create","params":{"message":"Your name?"}}"#)
    ),
    refused!(
        "ask-schema-boolean",
        "The `requestedSchema` of a form is `true`.",
        &["G-15"],
        ask!(r#"{"method":"elicitation/create","params":{"message":"Your name?","requestedSchema":true}}"#)
    ),
    refused!(
        "ask-mode-unknown",
        "The `mode` of an elicitation is neither `form` nor `url`.",
        &["G-15"],
        ask!(
            r#"{"method":"elicitation/create","params":{"mode":"voice","message":"Your name?","requestedSchema":{"type":"object","properties":{}}}}"#
        )
    ),
    refused!(
        "ask-without-url",
        "An elicitation of the mode `url` has none.",
        &["G-15", "R-134"],
        ask!(r#"{"method":"elicitation/create","params":{"mode":"url","message":"Sign in"}}"#)
    ),
    refused!(
        "ask-without-messages",
        "A sampling request has no `messages`.",
        &["G-15"],
        ask!(r#"{"method":"sampling/createMessage","params":{"maxTokens":1}}"#)
    ),
    refused!(
        "ask-without-max-tokens",
        "A sampling request has no `maxTokens`.",
        &["G-15"],
        ask!(r#"{"method":"sampling/createMessage","params":{"messages":[]}}"#)
    ),
    refused!(
        "ask-params-string",
        "The `params` of a question for roots is a string.",
        &["G-15"],
        ask!(r#"{"method":"roots/list","params":"none"}"#)
    ),
    Case::result(
        [
            "one-bad-ask",
            "Two questions are well formed, the third is not.",
            "Refuses the whole reply and names the third; nobody is asked the others.",
        ],
        &["G-15"],
        interim!(
            r#""inputRequests":{"a":"#,
            form!(),
            r#","b":"#,
            form!(),
            r#","c":{"method":"elicitation/create"}},"requestState":"s""#
        ),
    ),
    Case::made(
        [
            "undeclared-ask",
            "Asks for something that the request did not declare; if it declared everything, gives the result.",
            "Refuses the reply and names the question; asks nobody, and declines nothing in anybody's name.",
        ],
        &["R-103", "G-15"],
        undeclared,
    ),
    // JSON that readers disagree on.
    refused!(
        "two-result-types",
        "`resultType` stands twice, `complete` last.",
        &["G-38"],
        concat!(
            r#"{"resultType":"input_required","inputRequests":{"k":"#,
            form!(),
            r#"},"requestState":"s","content":[],"resultType":"complete"}"#
        )
    ),
    refused!(
        "two-keys-alike",
        "Two questions have one key, the second time written with an escape.",
        &["G-38"],
        interim!(r#""inputRequests":{"k":"#, form!(), r#","\u006b":"#, form!(), r#"},"requestState":"s""#)
    ),
    refused!(
        "two-states",
        "`requestState` stands twice.",
        &["G-38"],
        interim!(r#""requestState":"a","requestState":"b""#)
    ),
    refused!(
        "lone-surrogate-key",
        "The key of a question is half a surrogate pair: no text, and nothing that could be answered under.",
        &["R-087"],
        interim!(r#""inputRequests":{"\ud800":"#, form!(), r#"},"requestState":"s""#)
    ),
    refused!(
        "lone-surrogate-message",
        "The `message` of a form has half a surrogate pair in it, and so is no text that could be shown.",
        &["G-15"],
        ask!(
            r#"{"method":"elicitation/create","params":{"message":"\udfff?","requestedSchema":{"type":"object","properties":{}}}}"#
        )
    ),
];

/// A question of the first kind that is not declared.
fn undeclared(seen: &Seen<'_>) -> Result<Said, Fault> {
    let can = seen.capabilities();
    let ask = match can {
        ClientCapabilities { form: false, .. } => form!(),
        ClientCapabilities { url: false, .. } => {
            r#"{"method":"elicitation/create","params":{"mode":"url","message":"Sign in","url":"https://id.example/"}}"#
        }
        ClientCapabilities { roots: false, .. } => r#"{"method":"roots/list"}"#,
        ClientCapabilities { sampling: false, .. } => {
            r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#
        }
        ClientCapabilities { sampling_tools: false, .. } => {
            r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}"#
        }
        ClientCapabilities { .. } => return Ok(super::manners::reply(seen)),
    };
    Ok(Said::Result(interim_of(&[("k", ask)], Some("s"))))
}

/// An interim result with these questions and this state.
pub(super) fn interim_of(asks: &[(&str, &str)], state: Option<&str>) -> String {
    let mut out = b"{\"resultType\":\"input_required\"".to_vec();
    for (index, (key, ask)) in asks.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b",\"inputRequests\":{" } else { b"," });
        crate::jsonrpc::write::string(&mut out, key);
        out.push(b':');
        out.extend_from_slice(ask.as_bytes());
    }
    if !asks.is_empty() {
        out.push(b'}');
    }
    if let Some(state) = state {
        out.extend_from_slice(b",\"requestState\":");
        crate::jsonrpc::write::string(&mut out, state);
    }
    out.push(b'}');
    // Made of texts.
    String::from_utf8(out).unwrap_or_default()
}

/// A form with this message and this schema's properties.
pub(super) fn form_of(message: &str, properties: &str) -> String {
    let mut quoted = Vec::new();
    crate::jsonrpc::write::string(&mut quoted, message);
    let quoted = String::from_utf8(quoted).unwrap_or_default();
    format!(
        r#"{{"method":"elicitation/create","params":{{"mode":"form","message":{quoted},"requestedSchema":{{"type":"object","properties":{{{properties}}}}}}}}}"#
    )
}
