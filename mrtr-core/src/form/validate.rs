//! An answer's content against the form that was shown (R-130, R-132, G-18…G-24, B-32, B-38, B-39).

use alloc::{borrow::Cow, string::String, vec::Vec};
use core::fmt;

use super::{
    Elicited, Expected, Field, FieldFault, FieldKind, Invalid, NumberRules, Problem, Schema,
    field::into_text, number::Decimal,
};
use crate::{
    jsonrpc::{Json, JsonKind, stack::Stack, write},
    wire::Action,
};

impl Schema {
    /// Judges an answer: validates the content of an accept, looks at nothing in a refusal (B-38).
    ///
    /// # Errors
    ///
    /// As [`Schema::validate`].
    pub fn judge(&self, action: Action, content: Json<'_>) -> Result<Elicited<Cleaned>, Invalid> {
        match action {
            Action::Accept => self.validate(content).map(Elicited::Accept),
            Action::Decline => Ok(Elicited::Decline),
            Action::Cancel => Ok(Elicited::Cancel),
        }
    }

    /// Validates the content of an accepted form (R-132).
    ///
    /// Asserted are required members, JSON types (R-130: no null, nothing nested), lengths in Unicode code points
    /// of the decoded text, formats, bounds by exact decimal value, membership of options and item counts (G-22).
    /// Members that the form does not have are dropped (G-20), absent ones stay absent (G-21), duplicates in a
    /// multi-select count as given (G-24).
    ///
    /// ```
    /// use mrtr_core::{Limits, form::Schema, jsonrpc::Json};
    ///
    /// let schema = r#"{"type":"object","properties":{"people":{"type":"integer","maximum":12}},"required":["people"]}"#;
    /// let schema = Schema::read(Json::parse(schema, &Limits::default())?)?;
    ///
    /// let content = Json::parse(r#"{"extra":1,"people":3.0}"#, &Limits::default())?;
    /// assert_eq!(schema.validate(content)?.as_str(), r#"{"people":3}"#);
    ///
    /// let content = Json::parse(r#"{"people":13}"#, &Limits::default())?;
    /// assert_eq!(schema.validate(content).unwrap_err().to_string(), "people: must be at most 12");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Every field at fault, in the order of the form.
    pub fn validate(&self, content: Json<'_>) -> Result<Cleaned, Invalid> {
        self.clean(content, String::with_capacity(content.as_str().len())).map(|text| Cleaned { text })
    }

    /// [`validate`](Self::validate) with what is left appended to `text`.
    pub(crate) fn clean(&self, content: Json<'_>, text: String) -> Result<String, Invalid> {
        let mut cleaned = text.into_bytes();
        cleaned.push(b'{');
        let empty = cleaned.len();
        self.hold_against(content, |field, value| {
            if cleaned.len() > empty {
                cleaned.push(b',');
            }
            write::string(&mut cleaned, field.name());
            cleaned.push(b':');
            write_clean(&mut cleaned, field.kind(), value);
        })?;
        cleaned.push(b'}');
        Ok(into_text(cleaned))
    }

    /// Validates, and gives each field that has a valid value with it.
    pub(crate) fn hold_against(
        &self,
        content: Json<'_>,
        mut each: impl FnMut(&Field, Json<'_>),
    ) -> Result<(), Invalid> {
        let Some(members) = content.members() else { return Err(Invalid::of_answer(Problem::NotAnObject)) };
        let mut given = Stack::<Option<Json<'_>>, 16>::new();
        self.fields().iter().for_each(|_| given.push(None));
        for (name, value) in members {
            if let Some(slot) = self.position(&name).and_then(|at| given.as_mut_slice().get_mut(at)) {
                slot.get_or_insert(value);
            }
        }
        let mut faults = Vec::new();
        for (field, value) in self.fields().iter().zip(given.as_slice().iter().copied()) {
            let outcome = match value {
                Some(value) => field.check(value).map(|()| Some(value)),
                None if field.is_required() => Err(Problem::Missing),
                None => Ok(None),
            };
            match outcome {
                Ok(Some(value)) => each(field, value),
                Ok(None) => {}
                Err(problem) => faults.push(FieldFault { field: field.name().into(), problem }),
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(Invalid::of_fields(faults)) }
    }
}

impl Field {
    /// Checks one value, as a prompt does before it goes on to the next field.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn check(&self, value: Json<'_>) -> Result<(), Problem> {
        match &self.kind {
            FieldKind::String(rules) => {
                let text = text_of(value, Expected::Text)?;
                let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
                match (rules.min_length, rules.max_length) {
                    (Some(min), _) if length < min => return Err(Problem::TooShort { min }),
                    (_, Some(max)) if length > max => return Err(Problem::TooLong { max }),
                    _ => {}
                }
                match rules.format {
                    Some(format) if !format.matches(&text) => Err(Problem::Format(format)),
                    _ => Ok(()),
                }
            }
            FieldKind::Number(rules) => check_number(rules, value),
            FieldKind::Boolean(_) => value.as_bool().map(|_| ()).ok_or(Problem::Type(Expected::Boolean)),
            FieldKind::Select(rules) => {
                let text = text_of(value, Expected::Text)?;
                if rules.options.contains(&text) { Ok(()) } else { Err(Problem::NotAnOption) }
            }
            FieldKind::MultiSelect(rules) => {
                let items = value.items().ok_or(Problem::Type(Expected::List))?;
                let mut count = 0u64;
                let mut stray = false;
                for item in items {
                    count += 1;
                    stray |= !rules.options.contains(&text_of(item, Expected::List)?);
                }
                match (rules.min_items, rules.max_items) {
                    (Some(min), _) if count < min => Err(Problem::TooFew { min }),
                    (_, Some(max)) if count > max => Err(Problem::TooMany { max }),
                    _ if stray => Err(Problem::NotAnOption),
                    _ => Ok(()),
                }
            }
        }
    }
}

fn text_of(value: Json<'_>, expected: Expected) -> Result<Cow<'_, str>, Problem> {
    if value.kind() == JsonKind::String {
        value.as_string().ok_or(Problem::NotText)
    } else {
        Err(Problem::Type(expected))
    }
}

fn check_number(rules: &NumberRules, value: Json<'_>) -> Result<(), Problem> {
    let expected = if rules.whole { Expected::Whole } else { Expected::Number };
    if value.kind() != JsonKind::Number {
        return Err(Problem::Type(expected));
    }
    let number = Decimal::parse(value.as_str()).map_err(|_| Problem::OutOfRange)?;
    if rules.whole && !number.is_whole() {
        return Err(Problem::Type(expected));
    }
    match (&rules.minimum, &rules.maximum) {
        (Some(minimum), _) if number.compare(&minimum.decimal()).is_lt() => {
            Err(Problem::TooSmall { minimum: minimum.clone() })
        }
        (_, Some(maximum)) if number.compare(&maximum.decimal()).is_gt() => {
            Err(Problem::TooLarge { maximum: maximum.clone() })
        }
        _ => Ok(()),
    }
}

/// Appends a value that passed the check.
fn write_clean(out: &mut Vec<u8>, kind: &FieldKind, value: Json<'_>) {
    match kind {
        FieldKind::Number(rules) => {
            let plain = Decimal::parse(value.as_str()).ok().and_then(|number| number.plain(rules.whole));
            out.extend_from_slice(plain.as_deref().unwrap_or(value.as_str()).as_bytes());
        }
        FieldKind::MultiSelect(_) => {
            // Item by item: the text between them may hold line breaks.
            out.push(b'[');
            for (at, item) in value.items().into_iter().flatten().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(item.as_str().as_bytes());
            }
            out.push(b']');
        }
        FieldKind::String(_) | FieldKind::Boolean(_) | FieldKind::Select(_) => {
            out.extend_from_slice(value.as_str().as_bytes());
        }
    }
}

/// The content of an accepted form after validation: known members only, in the order of the form, on one line.
///
/// Every value is the one that came. Whole numbers are spelled as plain digits where that loses nothing (`3.0` is `3`,
/// `1e2` is `100`), so that integer types decode from them and strict peers take them (B-31, B-32).
///
/// `Debug` shows the size, never the content.
#[derive(Clone, PartialEq, Eq)]
pub struct Cleaned {
    text: String,
}

impl Cleaned {
    /// The JSON text of an object.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The object.
    #[must_use]
    pub fn as_json(&self) -> Json<'_> {
        Json::trusted(&self.text)
    }

    /// The JSON text of an object.
    #[must_use]
    pub fn into_string(self) -> String {
        self.text
    }

    /// Decodes into a type of yours.
    ///
    /// # Errors
    ///
    /// [`Problem::Unfit`] if the content satisfies the form and yet is no `T` (an integer field without bounds
    /// takes 2^64, an `i64` does not). It can be asked again like any other fault.
    pub fn decode<T: serde::de::DeserializeOwned>(&self) -> Result<T, Invalid> {
        decode(self.as_json())
    }
}

impl fmt::Debug for Cleaned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cleaned({} bytes)", self.text.len())
    }
}

/// Decodes content; the decoder's own message may quote a value, so it stops here.
pub(super) fn decode<T: serde::de::DeserializeOwned>(content: Json<'_>) -> Result<T, Invalid> {
    content.decode().map_err(|_| Invalid::of_answer(Problem::Unfit))
}
