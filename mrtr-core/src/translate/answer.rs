//! Answers (BT-2…BT-4, R-129, R-017): nothing is invented, nothing passes that the other era does not know.

use alloc::vec::Vec;

use super::edit::{Edit, Keep, edit_object};
use crate::{
    jsonrpc::{Json, write},
    wire::{Action, Answer, AnswerFault, AskKind, read_answer},
};

/// Appends a value of `inputResponses` as the result of the legacy server's request.
///
/// An elicitation passes `action` and, of an accepted form, `content`; roots pass `roots`; a sampling result passes
/// whole, without `resultType`.
///
/// # Errors
///
/// The structure does not fit the kind that was asked. Nothing was appended.
pub fn answer_to_legacy(out: &mut Vec<u8>, kind: AskKind, value: Json<'_>) -> Result<(), AnswerFault> {
    write_answer(out, kind, value)
}

/// Appends a legacy host's result as a value of `inputResponses`; what passes is the same as in
/// [`answer_to_legacy`].
///
/// # Errors
///
/// The structure does not fit the kind that was asked. Nothing was appended.
pub fn answer_to_modern(out: &mut Vec<u8>, kind: AskKind, result: Json<'_>) -> Result<(), AnswerFault> {
    write_answer(out, kind, result)
}

fn write_answer(out: &mut Vec<u8>, kind: AskKind, value: Json<'_>) -> Result<(), AnswerFault> {
    match read_answer(kind, value)? {
        Answer::Form { action: Action::Accept, content } => {
            out.extend_from_slice(b"{\"action\":\"accept\",\"content\":");
            write::one_line(out, content.as_str());
            out.push(b'}');
        }
        Answer::Form { action, .. } | Answer::Url(action) => {
            out.extend_from_slice(b"{\"action\":\"");
            out.extend_from_slice(action.name().as_bytes());
            out.extend_from_slice(b"\"}");
        }
        Answer::Sampling(result) => {
            let edit = |name: &str, _: Json<'_>, _: &mut Vec<u8>| {
                if name == "resultType" { Edit::Drop } else { Edit::Keep }
            };
            edit_object(out, result, edit, Keep);
        }
        Answer::Roots(roots) => {
            out.extend_from_slice(b"{\"roots\":");
            write::one_line(out, roots.as_str());
            out.push(b'}');
        }
    }
    Ok(())
}
