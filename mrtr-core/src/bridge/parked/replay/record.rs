//! What a run that was left says in its state, for the next one.
//!
//! ```text
//! record    last key 4 ‖ number of questions 4 ‖ questions ‖ answers, up to the end
//! question  its key 4 ‖ what it is 33
//! answer    what it answers 33 ‖ length 4 ‖ the answer as the upstream reads it, JSON
//! what      kind 1 ‖ fingerprint 32
//! ```
//!
//! Numbers have the most significant byte first. The key n stands for `un`. The highest bit of a kind says that the url
//! came with `-32042`; its answer is empty, for only one that was accepted is kept.

use alloc::vec::Vec;

use crate::{
    digest::{DigestFault, Fingerprint},
    jsonrpc::Json,
    wire::AskKind,
};

/// The bit of a kind that says: asked by `-32042`.
const REQUIRED: u8 = 0x80;

/// What a question is: two that are equal here are one question, and an answer to one answers the other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) kind: AskKind,
    /// A url that the upstream wants opened before it takes the call.
    pub(super) required: bool,
    fingerprint: Fingerprint,
}

/// A question that was put to the host.
pub(super) struct Asked {
    pub(super) key: u32,
    pub(super) question: Question,
}

/// An answer that was given.
pub(super) struct Answered {
    pub(super) question: Question,
    /// As the upstream reads it.
    pub(super) value: Vec<u8>,
}

/// Everything.
#[derive(Default)]
pub(in crate::bridge) struct Record {
    /// The last key that was given out in this exchange.
    pub(super) keys: u32,
    /// What was asked in the round that the state ends.
    pub(super) asked: Vec<Asked>,
    /// The answers so far, in the order in which they were given.
    pub(super) answers: Vec<Answered>,
}

impl Question {
    /// Of an entry of `inputRequests`.
    pub(super) fn new(kind: AskKind, required: bool, entry: Json<'_>) -> Result<Self, DigestFault> {
        Ok(Self { kind, required, fingerprint: Fingerprint::new(kind, entry.get("params"))? })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.kind.code() | if self.required { REQUIRED } else { 0 });
        out.extend_from_slice(self.fingerprint.as_bytes());
    }

    fn read(rest: &mut &[u8]) -> Option<Self> {
        let (&[code], after) = rest.split_first_chunk()?;
        let (fingerprint, after) = after.split_first_chunk()?;
        *rest = after;
        Some(Self {
            kind: AskKind::from_code(code & !REQUIRED)?,
            required: code & REQUIRED != 0,
            fingerprint: Fingerprint::from_bytes(*fingerprint),
        })
    }
}

impl Record {
    pub(in crate::bridge) fn write(&self, out: &mut Vec<u8>) {
        // Bounded far below: by `Limits::asks_accepted` and `Limits::answer_bytes`.
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes();
        out.extend_from_slice(&self.keys.to_be_bytes());
        out.extend_from_slice(&number(self.asked.len()));
        for asked in &self.asked {
            out.extend_from_slice(&asked.key.to_be_bytes());
            asked.question.write(out);
        }
        for answered in &self.answers {
            answered.question.write(out);
            out.extend_from_slice(&number(answered.value.len()));
            out.extend_from_slice(&answered.value);
        }
    }

    pub(in crate::bridge) fn read(mut rest: &[u8]) -> Option<Self> {
        let mut record = Self { keys: number(&mut rest)?, ..Self::default() };
        for _ in 0..number(&mut rest)? {
            let key = number(&mut rest)?;
            record.asked.push(Asked { key, question: Question::read(&mut rest)? });
        }
        while !rest.is_empty() {
            let question = Question::read(&mut rest)?;
            let length = usize::try_from(number(&mut rest)?).ok()?;
            let (value, after) = rest.split_at_checked(length)?;
            rest = after;
            record.answers.push(Answered { question, value: value.into() });
        }
        Some(record)
    }
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    fn question(kind: AskKind, required: bool, message: &str) -> Question {
        let entry = alloc::format!("{{\"params\":{{\"message\":\"{message}\"}}}}");
        Question::new(kind, required, Json::parse(&entry, &Limits::default()).unwrap()).unwrap()
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_not_in_part() {
        let url = question(AskKind::Url, true, "u");
        let record = Record {
            keys: 7,
            asked: [(6, AskKind::Form, "a"), (7, AskKind::Roots, "b")]
                .map(|(key, kind, message)| Asked { key, question: question(kind, false, message) })
                .into(),
            answers: alloc::vec![
                Answered { question: url, value: Vec::new() },
                Answered { question: question(AskKind::Sampling, false, "c"), value: b"{}".into() },
            ],
        };
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        let read = Record::read(&bytes).unwrap();
        assert_eq!((read.keys, read.asked.len(), read.answers.len()), (7, 2, 2));
        assert!(
            read.asked.iter().zip(&record.asked).all(|(a, b)| a.key == b.key && a.question == b.question)
        );
        let same = |(a, b): (&Answered, &Answered)| a.question == b.question && a.value == b.value;
        assert!(read.answers.iter().zip(&record.answers).all(same));
        // Where it is cut, one part ends at most: never is a part of a part taken.
        let whole = [bytes.len() - 39, bytes.len() - 76];
        for end in 0..bytes.len() {
            assert_eq!(Record::read(&bytes[..end]).is_some(), whole.contains(&end), "{end}");
        }
        assert!(Record::read(&[&bytes[..], b"x"].concat()).is_none());
        // A question is another one if its kind, its text or who asks is.
        assert!(url != question(AskKind::Url, false, "u") && url != question(AskKind::Url, true, "v"));
        assert!(question(AskKind::Form, false, "u") != question(AskKind::Sampling, false, "u"));
    }
}
