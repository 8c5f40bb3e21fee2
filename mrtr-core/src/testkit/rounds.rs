//! What goes back in a retry. The client's own retries show what it does wrong.

use alloc::{format, string::String, vec::Vec};

use super::{
    Case, Expected,
    case::Said,
    manners,
    seen::{Fault, Seen},
    shapes::{form, form_of, interim_of},
};
use crate::{
    jsonrpc::Json,
    wire::{Action, AskKind},
};

/// Keys that trip up those who take them for something else than strings.
const ODD_KEYS: [&str; 8] =
    ["", "undefined", "__proto__", "constructor", "a b", "0", "k\u{0}", "Schlüssel \u{1f511}"];

/// What a state may consist of: JSON, escapes, blanks at the ends, characters of two code units.
const ODD_STATE: &str = " {\"a\": 1.0}\t\\u0041 \u{0}\u{7f}\u{e9}e\u{301}\u{1f511}==\n";

pub(super) const CASES: &[Case] = &[
    Case::made(
        [
            "interim-with-extras",
            "An interim result also has `_meta`, `content`, `isError`, caching hints and members nobody knows.",
            "Answers the question and sends the retry; keeps nothing in a cache.",
        ],
        &["R-013", "R-202"],
        |seen| one_question(seen, extras),
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "state-only",
            "An interim result has a state and no question.",
            "Sends the call again with the state, without answers, after a short pause.",
        ],
        &["R-066", "R-088", "G-06"],
        |seen| deferred(seen, ""),
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "empty-asks",
            "An interim result has a state and an empty map of questions.",
            "Takes it for one with a state alone.",
        ],
        &["G-02"],
        |seen| deferred(seen, r#","inputRequests":{}"#),
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "null-asks",
            "An interim result has a state, and null where the questions would be.",
            "Takes it for one with a state alone.",
        ],
        &["G-05"],
        |seen| deferred(seen, r#","inputRequests":null"#),
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "odd-keys",
            "The keys of the questions are empty, `undefined`, `__proto__`, and other strings of that kind.",
            "Answers each question under its own key, to the letter.",
        ],
        &["R-087", "G-37"],
        odd_keys,
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "empty-state",
            "The state is the empty string.",
            "Sends the empty string back: it is there, so it is a state.",
        ],
        &["R-089", "G-04"],
        |seen| letter(seen, r#""""#),
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "odd-state",
            "The state looks like JSON, begins and ends with blanks, and has escapes and a zero in it.",
            "Sends it back to the letter: reads nothing out of it, trims nothing.",
        ],
        &["R-089"],
        odd_state,
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "lone-surrogate-state",
            "The state has half a surrogate pair in it.",
            "Sends it back as it came, or refuses the reply; never another state.",
        ],
        &["R-089"],
        |seen| letter(seen, r#""a\ud800b""#),
    )
    .ends(Expected::Completes)
    .or(Expected::Refuses),
    Case::made(
        [
            "no-state",
            "An interim result has a question and no state.",
            "Sends the answer without a state: invents none.",
        ],
        &["R-090"],
        no_state,
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "stale-state",
            "The first interim result has a state, the second has none.",
            "Sends the second retry without a state.",
        ],
        &["R-090", "R-093"],
        stale_state,
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "stale-answers",
            "The first interim result has a question, the second a state alone.",
            "Sends the second retry without answers.",
        ],
        &["R-092", "R-093"],
        stale_answers,
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "key-used-again",
            "Another question comes under the key of the first.",
            "Has it answered anew: the first answer is not sent for it.",
        ],
        &["R-087", "R-092"],
        key_used_again,
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "roots-without-params",
            "A question for roots has no `params`; if roots are not declared, the result is given.",
            "Answers it.",
        ],
        &["R-060", "R-105"],
        roots,
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "url-script",
            "Asks to open a `javascript:` url; if urls are not declared, the result is given.",
            "Opens it never, and does not say it was accepted: cancels.",
        ],
        &["R-134", "R-137"],
        |seen| url(seen, "javascript:alert(1)"),
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "url-lookalike",
            "Asks to open a url whose host is written in letters that look like others; if urls are not declared, the \
             result is given.",
            "Shows the whole url, with its host in Punycode, and opens it only after a yes.",
        ],
        &["R-134", "R-137"],
        |seen| url(seen, "https://xn--pypal-4ve.example/login"),
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "url-user-info",
            "Asks to open a url that begins with a trusted name, as the user's; if urls are not declared, the result is \
             given.",
            "Shows the whole url and which part of it is the host, and opens it only after a yes.",
        ],
        &["R-134", "R-137"],
        |seen| url(seen, "https://accounts.example@evil.example/login"),
    )
    .ends(Expected::Completes),
    Case::made(
        [
            "cached-question",
            "The result after a question comes with hints that it may be cached for a minute.",
            "Does not cache it: the same call again leads to the same question again.",
        ],
        &["R-202"],
        cached,
    )
    .ends(Expected::Completes),
];

fn complete(seen: &Seen<'_>) -> Result<Said, Fault> {
    Ok(manners::reply(seen))
}

/// A question, and then the result.
fn one_question(seen: &Seen<'_>, ask: fn(&str) -> String) -> Result<Said, Fault> {
    if seen.follow()?.round == 0 {
        return Ok(Said::Result(ask(&seen.trail(1, '0'))));
    }
    seen.elicited(AskKind::Form, "k")?;
    complete(seen)
}

fn extras(state: &str) -> String {
    let form = form!();
    format!(
        r#"{{"_meta":{{"vendor":{{}}}},"content":[{{"type":"text","text":"nothing yet"}}],"isError":false,"ttlMs":60000,"cacheScope":"public","x":[1,{{}}],"inputRequests":{{"k":{form}}},"requestState":"{state}","resultType":"input_required"}}"#
    )
}

/// A state with something beside it that means nothing, and then the result.
fn deferred(seen: &Seen<'_>, beside: &str) -> Result<Said, Fault> {
    if seen.follow()?.round == 0 {
        let state = seen.trail(1, '0');
        return Ok(Said::Result(format!(
            r#"{{"resultType":"input_required","requestState":"{state}"{beside}}}"#
        )));
    }
    seen.no_answers()?;
    complete(seen)
}

fn odd_keys(seen: &Seen<'_>) -> Result<Said, Fault> {
    if seen.follow()?.round == 0 {
        let asks: Vec<_> = ODD_KEYS.iter().map(|key| (*key, form_of(key, ""))).collect();
        let asks: Vec<_> = asks.iter().map(|(key, ask)| (*key, ask.as_str())).collect();
        return Ok(Said::Result(interim_of(&asks, Some(&seen.trail(1, '0')))));
    }
    for key in ODD_KEYS {
        seen.elicited(AskKind::Form, key)?;
    }
    complete(seen)
}

/// A question beside this state, which is the JSON text of a string.
fn letter(seen: &Seen<'_>, state: &str) -> Result<Said, Fault> {
    match seen.state() {
        None if seen.answers().is_some() => {
            Err("sent an answer without the state that came with the question")
        }
        None => Ok(Said::Result(format!(
            r#"{{"resultType":"input_required","inputRequests":{{"k":{}}},"requestState":{state}}}"#,
            form!()
        ))),
        Some(back) if !back.as_str().eq_ignore_ascii_case(state) => {
            Err("sent another state than it was given")
        }
        Some(_) => {
            seen.elicited(AskKind::Form, "k")?;
            complete(seen)
        }
    }
}

fn odd_state(seen: &Seen<'_>) -> Result<Said, Fault> {
    match seen.state().map(Json::as_string) {
        None => Ok(Said::Result(interim_of(&[("k", form!())], Some(ODD_STATE)))),
        Some(Some(back)) if back == ODD_STATE => {
            seen.elicited(AskKind::Form, "k")?;
            complete(seen)
        }
        Some(_) => Err("sent another state than it was given"),
    }
}

fn no_state(seen: &Seen<'_>) -> Result<Said, Fault> {
    seen.no_state()?;
    if seen.answers().is_none() {
        return Ok(Said::Result(interim_of(&[("k", form!())], None)));
    }
    seen.elicited(AskKind::Form, "k")?;
    complete(seen)
}

fn stale_state(seen: &Seen<'_>) -> Result<Said, Fault> {
    let second = seen.answers().is_some_and(|answers| answers.get("second").is_some());
    if second {
        seen.no_state()?;
        seen.elicited(AskKind::Form, "second")?;
        return complete(seen);
    }
    if seen.follow()?.round == 0 {
        return Ok(Said::Result(interim_of(&[("first", form!())], Some(&seen.trail(1, '0')))));
    }
    seen.elicited(AskKind::Form, "first")?;
    Ok(Said::Result(interim_of(&[("second", &form_of("And your town?", ""))], None)))
}

fn stale_answers(seen: &Seen<'_>) -> Result<Said, Fault> {
    let trail = seen.follow()?;
    match trail.round {
        0 => Ok(Said::Result(interim_of(&[("k", form!())], Some(&seen.trail(1, '0'))))),
        1 => {
            seen.elicited(AskKind::Form, "k")?;
            Ok(Said::Result(interim_of(&[], Some(&seen.trail(2, '0')))))
        }
        _ => {
            seen.no_answers()?;
            complete(seen)
        }
    }
}

fn key_used_again(seen: &Seen<'_>) -> Result<Said, Fault> {
    let trail = seen.follow()?;
    let choice = |word: &str| {
        form_of(&format!("Choose {word}."), &format!(r#""word":{{"type":"string","enum":["{word}"]}}"#))
    };
    if trail.round > 0 {
        let (action, content) = seen.elicited(AskKind::Form, "k")?;
        let word = content.get("word").and_then(Json::as_string);
        let expected = if trail.round == 1 { "one" } else { "two" };
        if action == Action::Accept && word.is_some_and(|word| word != expected) {
            return Err("sent the answer to another question");
        }
    }
    match trail.round {
        0 => Ok(Said::Result(interim_of(&[("k", &choice("one"))], Some(&seen.trail(1, '0'))))),
        1 => Ok(Said::Result(interim_of(&[("k", &choice("two"))], Some(&seen.trail(2, '0'))))),
        _ => complete(seen),
    }
}

fn roots(seen: &Seen<'_>) -> Result<Said, Fault> {
    if seen.follow()?.round == 0 && seen.capabilities().roots {
        return Ok(Said::Result(interim_of(
            &[("k", r#"{"method":"roots/list"}"#)],
            Some(&seen.trail(1, '0')),
        )));
    }
    if let Some(answer) = seen.answers().map(|answers| answers.get("k").unwrap_or(Json::NULL)) {
        crate::wire::read_answer(AskKind::Roots, answer).map_err(|_| "sent an answer of the wrong shape")?;
    }
    complete(seen)
}

fn url(seen: &Seen<'_>, url: &str) -> Result<Said, Fault> {
    if seen.follow()?.round == 0 && seen.capabilities().url {
        let ask = format!(
            r#"{{"method":"elicitation/create","params":{{"mode":"url","message":"Please sign in.","url":"{url}"}}}}"#
        );
        return Ok(Said::Result(interim_of(&[("k", &ask)], Some(&seen.trail(1, '0')))));
    }
    if seen.is_retry() {
        let (action, _) = seen.elicited(AskKind::Url, "k")?;
        if action == Action::Accept && url.starts_with("javascript:") {
            return Err("said that a script was opened as a url");
        }
    }
    complete(seen)
}

fn cached(seen: &Seen<'_>) -> Result<Said, Fault> {
    if seen.follow()?.round == 0 {
        return Ok(Said::Result(interim_of(&[("k", form!())], Some(&seen.trail(1, '0')))));
    }
    seen.elicited(AskKind::Form, "k")?;
    let complete = manners::complete(seen).unwrap_or_default();
    let head = r#"{"resultType":"complete","#;
    let rest = complete.strip_prefix(head).unwrap_or_default();
    let rest = rest.replace(r#","ttlMs":0,"cacheScope":"private""#, "");
    Ok(Said::Result(format!(r#"{head}"ttlMs":60000,"cacheScope":"public",{rest}"#)))
}
