//! What is wrong with an answer's content, in words for the person who gave it.

use alloc::{string::String, vec::Vec};
use core::fmt::{self, Write as _};

use super::{Format, Number};

/// Faults that the sentence of an [`Invalid`] spells out; further ones are counted.
const FAULTS_SHOWN: usize = 8;

/// Why an answer's content is not what the form asks for: every field at fault.
///
/// `Display` is a sentence for the person who filled in the form; it may travel back to them. It says what is expected
/// and never repeats what was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    faults: Vec<FieldFault>,
}

/// One field at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldFault {
    /// The name of the field; empty if the content as a whole is at fault.
    pub field: String,
    /// What is wrong.
    pub problem: Problem,
}

impl Invalid {
    /// The fields at fault, in the order of the form; never empty.
    #[must_use]
    pub fn faults(&self) -> &[FieldFault] {
        &self.faults
    }

    pub(super) const fn of_fields(faults: Vec<FieldFault>) -> Self {
        Self { faults }
    }

    pub(super) fn of_answer(problem: Problem) -> Self {
        Self { faults: alloc::vec![FieldFault { field: String::new(), problem }] }
    }
}

impl core::error::Error for Invalid {}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.faults.iter().take(FAULTS_SHOWN).enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{fault}")?;
        }
        match self.faults.len().saturating_sub(FAULTS_SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", Visible(&self.field))?;
        }
        write!(f, "{}", self.problem)
    }
}

/// A name that a peer may have chosen, for an error message: no control characters, which a terminal would obey, and
/// no more than the first 64 characters.
pub(super) struct Visible<'a>(pub(super) &'a str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let visible = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
        self.0.chars().take(64).try_for_each(|letter| f.write_char(visible(letter)))
    }
}

/// What is wrong with a value. `Display` completes a sentence that begins with the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The field is required and absent.
    #[error("is required")]
    Missing,
    /// Another JSON type; null is always one.
    #[error("must be {0}")]
    Type(Expected),
    /// A string with half of a surrogate pair, which names no text.
    #[error("must be text: it has half of a character in it")]
    NotText,
    /// Fewer code points than `minLength`.
    #[error("must have at least {}", count(*min, "character"))]
    TooShort {
        /// The bound, in code points.
        min: u64,
    },
    /// More code points than `maxLength`.
    #[error("must have at most {}", count(*max, "character"))]
    TooLong {
        /// The bound, in code points.
        max: u64,
    },
    /// Not written in the format.
    #[error("must be {}", example(*.0))]
    Format(Format),
    /// Below `minimum`.
    #[error("must be at least {minimum}")]
    TooSmall {
        /// The bound.
        minimum: Number,
    },
    /// Above `maximum`.
    #[error("must be at most {maximum}")]
    TooLarge {
        /// The bound.
        maximum: Number,
    },
    /// A number with an exponent beyond [`EXPONENT_MAX`](super::EXPONENT_MAX).
    #[error("must be a number of ordinary size")]
    OutOfRange,
    /// Not among the options; titles are not values.
    #[error("must be chosen from the options")]
    NotAnOption,
    /// Fewer items than `minItems`.
    #[error("must have at least {}", count(*min, "item"))]
    TooFew {
        /// The bound, in items.
        min: u64,
    },
    /// More items than `maxItems`.
    #[error("must have at most {}", count(*max, "item"))]
    TooMany {
        /// The bound, in items.
        max: u64,
    },
    /// The content as a whole is no object.
    #[error("the answer must be an object")]
    NotAnObject,
    /// The content satisfies the form, but not the type that the server decodes it into.
    #[error("the answer has a value that cannot be used here")]
    Unfit,
}

/// What type of value a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Expected {
    /// A string.
    Text,
    /// A number.
    Number,
    /// A number without a fraction.
    Whole,
    /// `true` or `false`.
    Boolean,
    /// An array of strings.
    List,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Number => "a number",
            Self::Whole => "a whole number",
            Self::Boolean => "yes or no (true or false)",
            Self::List => "a list of options",
        })
    }
}

fn count(bound: u64, thing: &str) -> String {
    alloc::format!("{bound} {thing}{}", if bound == 1 { "" } else { "s" })
}

fn example(format: Format) -> &'static str {
    match format {
        Format::Email => "an e-mail address such as name@example.com",
        Format::Uri => "a full address (URI) such as https://example.com/",
        Format::Date => "a date such as 2026-07-28",
        Format::DateTime => "a date and time with offset such as 2026-07-28T12:00:00Z",
    }
}
