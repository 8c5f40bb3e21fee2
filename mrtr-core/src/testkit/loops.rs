//! Servers that never come to an end, and refusals that are no reason to begin again.

use alloc::format;

use super::{
    Case, Expected,
    case::Said,
    seen::{Fault, Seen},
    shapes::{form, form_of, interim_of},
};
use crate::wire::{Action, AskKind, Version};

/// A server that was followed so far was followed too far.
const MANY: u32 = 1_000;

pub(super) const CASES: &[Case] = &[
    Case::made(
        [
            "asks-for-ever",
            "Every retry leads to another question.",
            "Stops after a bounded number of retries, and asks nobody a question whose answer it will not send.",
        ],
        &["R-099", "G-07"],
        for_ever,
    )
    .ends(Expected::Stops),
    Case::made(
        [
            "state-only-for-ever",
            "Every retry leads to another state, and never to a question.",
            "Pauses before each retry, and stops after a bounded number.",
        ],
        &["R-099", "G-06", "G-07"],
        |seen| match seen.follow()?.round {
            MANY.. => Err("went along for a thousand rounds"),
            round => Ok(Said::Result(interim_of(&[], Some(&seen.trail(round + 1, '0'))))),
        },
    )
    .ends(Expected::Stops),
    Case::made(
        [
            "same-question-for-ever",
            "Every retry leads to the same question, each time under another key.",
            "Does not put it again to somebody who declined it: stops. Stops otherwise after a bounded number of retries.",
        ],
        &["R-099", "G-32"],
        same_question,
    )
    .ends(Expected::Stops),
    Case::made(
        [
            "state-refused",
            "The retry is refused with -32602, as if its state had expired.",
            "Tells the error, and does not begin again by itself: nobody is asked twice.",
        ],
        &["G-11"],
        |seen| match seen.follow()?.round {
            0 => Ok(Said::Result(interim_of(&[("k", form!())], Some(&seen.trail(1, '0'))))),
            _ => Ok(Said::Error {
                code: -32_602,
                message: "Invalid or expired requestState",
                data: None,
            }),
        },
    )
    .ends(Expected::PeerError),
    Case::made(
        [
            "version-refused-for-ever",
            "The version is refused with -32022 each time, and named as the one that is supported.",
            "Tries again once or twice under a new id, and then tells the error.",
        ],
        &["R-045"],
        |_| {
            let version = Version::LATEST.name();
            let data = format!(r#"{{"supported":["{version}"],"requested":"{version}"}}"#);
            Ok(Said::Error { code: -32_022, message: "Unsupported protocol version", data: Some(data) })
        },
    )
    .ends(Expected::PeerError),
];

fn for_ever(seen: &Seen<'_>) -> Result<Said, Fault> {
    let round = seen.follow()?.round;
    if round > 0 {
        seen.elicited(AskKind::Form, "k")?;
    }
    if round > MANY {
        return Err("went along for a thousand rounds");
    }
    let ask = form_of(&format!("Question {}?", round + 1), "");
    Ok(Said::Result(interim_of(&[("k", &ask)], Some(&seen.trail(round + 1, '0')))))
}

fn same_question(seen: &Seen<'_>) -> Result<Said, Fault> {
    let trail = seen.follow()?;
    let mut mark = '0';
    if trail.round > 0 {
        let (action, _) = seen.elicited(AskKind::Form, &format!("k{}", trail.round))?;
        if trail.mark == 'd' {
            return Err("answered a question that was declined before");
        }
        if action == Action::Decline {
            mark = 'd';
        }
    }
    if trail.round > MANY {
        return Err("went along for a thousand rounds");
    }
    let round = trail.round + 1;
    Ok(Said::Result(interim_of(&[(&format!("k{round}"), form!())], Some(&seen.trail(round, mark)))))
}
