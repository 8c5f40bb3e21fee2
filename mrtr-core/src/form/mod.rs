//! Forms: the closed subset of JSON Schema that an elicitation may use (R-113…R-133, G-16…G-24).
//!
//! | file | what |
//! |---|---|
//! | `build`, `draft` | [`Form`]: made by hand, field by field; checked once, written once |
//! | `derive` | [`Form::of`]: taken from a Rust type (feature `schemars`) |
//! | `field`, `schema` | [`Field`], [`Schema`]: the typed view, for widgets and for validation |
//! | `read`, `keyword` | [`Schema::read`]: a peer's `requestedSchema` |
//! | `validate`, `invalid` | [`Schema::validate`]: an answer's content against it, and what is wrong with it |
//! | `number`, `format` | exact decimals, the four formats |
//! | `write`, `downgrade` | a form as JSON, for this era and for 2025-06-18 (BT-5) |
//!
//! A server builds a [`Form`], asks with it, and gets an [`Elicited`] back; a client reads a [`Schema`], shows its
//! [fields](Schema::fields), checks each value at the prompt ([`Field::check`]) and sends what [`Schema::validate`]
//! leaves. Both use the same judgement. It is linear in the text that is judged, never recurses and never goes
//! through a float.
//!
//! ```
//! use mrtr_core::{Limits, form::{Elicited, Field, Form}, jsonrpc::Json, wire::Action};
//!
//! #[derive(serde::Deserialize)]
//! struct Table { name: String, people: u8 }
//!
//! let form = Form::builder("Book a table")
//!     .field(Field::string("name").min_length(1).required())
//!     .field(Field::integer("people").minimum(1).maximum(12).required())
//!     .build()?;
//!
//! let content = Json::parse(r#"{"people":4.0,"name":"Ada"}"#, &Limits::default())?;
//! match form.schema().judge(Action::Accept, content)?.decode::<Table>()? {
//!     Elicited::Accept(table) => assert_eq!((table.name.as_str(), table.people), ("Ada", 4)),
//!     Elicited::Decline | Elicited::Cancel => unreachable!(),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
#[cfg(feature = "schemars")]
mod derive;
mod downgrade;
mod draft;
mod field;
mod format;
mod invalid;
mod keyword;
mod number;
mod read;
mod schema;
mod stray;
mod validate;
mod write;

use alloc::string::String;

pub use build::{Form, FormBuilder, FormError};
pub use downgrade::{NotExpressible, downgrade};
pub use draft::{Draft, FieldBuilder, FieldProblem};
pub use field::{
    BooleanRules, Choice, Field, FieldKind, MultiSelectRules, NumberRules, Options, SelectRules, StringRules,
};
pub use format::Format;
pub use invalid::{Expected, FieldFault, Invalid, Problem};
pub use number::{EXPONENT_MAX, IntoNumber, NUMBER_BYTES_MAX, NotANumber, Number};
pub use read::{SchemaFault, SchemaProblem};
pub use schema::Schema;
pub(crate) use stray::stray;
pub use validate::Cleaned;

use crate::{jsonrpc::Json, wire::Action};

/// Most fields of a form, built or read: 100.
pub const FIELDS_MAX: usize = 100;

/// Most options of one select, built or read: 1,000.
pub const OPTIONS_MAX: usize = 1_000;

/// Most characters of the name of a field that is built: 128.
pub const NAME_CHARS_MAX: usize = 128;

/// What a person did with a form or a url, with the content of an accept (R-133).
///
/// The three are different facts: accept is an answer, decline an explicit no, cancel a dismissal after which one
/// may ask again later.
///
/// `Debug` says which of the three, never the content.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Elicited<T> {
    /// Filled in, or consented.
    Accept(T),
    /// Said no.
    Decline,
    /// Said nothing.
    Cancel,
}

impl<T> Elicited<T> {
    /// The content of an accept.
    #[must_use]
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accept(content) => Some(content),
            Self::Decline | Self::Cancel => None,
        }
    }

    /// Which of the three it is.
    #[must_use]
    pub const fn action(&self) -> Action {
        match self {
            Self::Accept(_) => Action::Accept,
            Self::Decline => Action::Decline,
            Self::Cancel => Action::Cancel,
        }
    }

    /// The same with the content of an accept replaced.
    #[must_use]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Elicited<U> {
        match self {
            Self::Accept(content) => Elicited::Accept(change(content)),
            Self::Decline => Elicited::Decline,
            Self::Cancel => Elicited::Cancel,
        }
    }

    /// The same with the content borrowed.
    #[must_use]
    pub const fn as_ref(&self) -> Elicited<&T> {
        match self {
            Self::Accept(content) => Elicited::Accept(content),
            Self::Decline => Elicited::Decline,
            Self::Cancel => Elicited::Cancel,
        }
    }
}

impl<T: serde::de::DeserializeOwned> Elicited<T> {
    /// Decodes an answer that was validated when it came, such as a recorded one.
    ///
    /// # Errors
    ///
    /// [`Problem::Unfit`] if the content of an accept is no `T`.
    pub fn from_parts(action: Action, content: Json<'_>) -> Result<Self, Invalid> {
        match action {
            Action::Accept => validate::decode(content).map(Self::Accept),
            Action::Decline => Ok(Self::Decline),
            Action::Cancel => Ok(Self::Cancel),
        }
    }
}

impl Elicited<Cleaned> {
    /// Decodes the content of an accept into a type of yours.
    ///
    /// # Errors
    ///
    /// As [`Cleaned::decode`].
    pub fn decode<T: serde::de::DeserializeOwned>(&self) -> Result<Elicited<T>, Invalid> {
        match self {
            Self::Accept(content) => content.decode().map(Elicited::Accept),
            Self::Decline => Ok(Elicited::Decline),
            Self::Cancel => Ok(Elicited::Cancel),
        }
    }

    /// The answer on the wire (R-128): content on accept only (R-129).
    ///
    /// ```
    /// # use mrtr_core::{form::{Field, Form}, jsonrpc::Json, wire::Action};
    /// # let form = Form::builder("Sure?").build()?;
    /// let answer = form.schema().judge(Action::Decline, Json::EMPTY_OBJECT)?;
    /// assert_eq!(answer.to_json(), r#"{"action":"decline"}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_json(&self) -> String {
        let action = self.action().name();
        match self {
            Self::Accept(content) => {
                alloc::format!(r#"{{"action":"{action}","content":{}}}"#, content.as_str())
            }
            Self::Decline | Self::Cancel => alloc::format!(r#"{{"action":"{action}"}}"#),
        }
    }
}

impl<T> core::fmt::Debug for Elicited<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Accept(_) => "Accept(..)",
            Self::Decline => "Decline",
            Self::Cancel => "Cancel",
        })
    }
}
