//! Reading a `requestedSchema` that a peer sent: the nine shapes of a field, with tolerance for everything that
//! does not change what an answer may be (R-114…R-123, R-247, B-75, B-76).
//!
//! | found | done |
//! |---|---|
//! | a keyword that is not part of the form language (`pattern`, `multipleOf`, vendor members, …) | ignored (R-247) |
//! | an unknown `format` | ignored |
//! | a member that is null | as if absent |
//! | a title, description, `enumNames` of another type, a default that breaks its own field's rules | ignored |
//! | a select without `type`; `anyOf` for `oneOf` and the reverse; an option without title; an option twice | read |
//! | `required` absent (R-114); a name in it twice | read |
//! | a nested object, an array of anything but options, a reference, composition, a list of types | refused, with the path (R-123) |
//! | a bound of another type, a `required` name without its field | refused, with the path |
//!
//! What is ignored may make the peer refuse an answer that is valid here. It will ask again; that is its part. A handler
//! of ours must not ask so: `stray` finds what a form that it wrote by hand says beyond the form language.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use super::{
    BooleanRules, Choice, FIELDS_MAX, Field, FieldKind, Format, MultiSelectRules, Number, NumberRules,
    OPTIONS_MAX, Options, Schema, SelectRules, StringRules,
    invalid::Visible,
    keyword::{Key, Keywords},
    number::Decimal,
};
use crate::jsonrpc::{Json, JsonKind};

impl Schema {
    /// Reads a `requestedSchema`. The order of its fields is kept.
    ///
    /// ```
    /// use mrtr_core::{Limits, form::{FieldKind, Schema}, jsonrpc::Json};
    ///
    /// let text = r##"{"type":"object","properties":{
    ///     "color":{"type":"string","oneOf":[{"const":"#f00","title":"Red"}]},
    ///     "age":{"type":"integer","pattern":"ignored"}
    /// }}"##;
    /// let schema = Schema::read(Json::parse(text, &Limits::default())?)?;
    /// let names: Vec<&str> = schema.fields().iter().map(|field| field.name()).collect();
    /// assert_eq!(names, ["color", "age"]);
    ///
    /// let text = r#"{"type":"object","properties":{"home":{"type":"object","properties":{}}}}"#;
    /// let fault = Schema::read(Json::parse(text, &Limits::default())?).unwrap_err();
    /// assert_eq!(fault.to_string(), "requestedSchema.properties.home: a form has no nested objects");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What a form may not contain, and where. Such a form is handed to the application or answered with
    /// cancel (G-16).
    pub fn read(value: Json<'_>) -> Result<Self, SchemaFault> {
        let root = Keywords::of(value).ok_or_else(|| SchemaFault::new(SchemaProblem::NotAnObject))?;
        if let Some(keyword) = root.composition {
            return Err(SchemaFault::new(SchemaProblem::Composition).below(keyword));
        }
        if root.get(Key::OneOf).is_some() || root.get(Key::AnyOf).is_some() {
            return Err(SchemaFault::new(SchemaProblem::Composition));
        }
        if root.get(Key::Type).is_some_and(|kind| kind.as_string().as_deref() != Some("object")) {
            return Err(SchemaFault::new(SchemaProblem::NotAForm).below("type"));
        }
        let mut fields = Vec::new();
        if let Some(properties) = root.get(Key::Properties) {
            let members = properties
                .members()
                .ok_or_else(|| SchemaFault::new(SchemaProblem::NotAnObject).below("properties"))?;
            for (name, property) in members {
                if fields.len() == FIELDS_MAX {
                    return Err(SchemaFault::new(SchemaProblem::TooManyFields { limit: FIELDS_MAX }));
                }
                let kind = Keywords::of(property)
                    .ok_or_else(|| SchemaFault::new(SchemaProblem::NotAnObject))
                    .and_then(|keywords| Ok(field(name.to_string(), &keywords, kind(&keywords)?)))
                    .map_err(|fault| fault.below_name(&name).below("properties"))?;
                fields.push(kind);
            }
        }
        // Two members of one name do not pass admission; should they come some other way, nothing is shown.
        let mut schema = Self::of_fields(fields)
            .map_err(|name| SchemaFault::new(SchemaProblem::Twice).below_name(&name))?;
        if let Some(required) = root.get(Key::Required) {
            let malformed = || SchemaFault::new(SchemaProblem::Malformed).below("required");
            for name in required.items().ok_or_else(malformed)? {
                let name = name.as_string().ok_or_else(malformed)?;
                if !schema.require(&name) {
                    return Err(SchemaFault::new(SchemaProblem::NoSuchField)
                        .below_name(&name)
                        .below("required"));
                }
            }
        }
        Ok(schema)
    }
}

/// A field of this kind with the property's own words. Not required yet.
pub(super) fn field(name: String, keywords: &Keywords<'_>, kind: FieldKind) -> Field {
    let text = |key| keywords.get(key).and_then(Json::as_string).map(|text| text.into_owned());
    let mut field =
        Field { name, title: text(Key::Title), description: text(Key::Description), required: false, kind };
    if let Some(default) = keywords.get(Key::Default) {
        set_default(&mut field, default);
    }
    field
}

/// Takes a default over, unless it breaks the field's own rules: nothing is filled in that could not be sent.
pub(super) fn set_default(field: &mut Field, default: Json<'_>) -> bool {
    if field.check(default).is_err() {
        return false;
    }
    let text = |value: Json<'_>| value.as_string().map(|text| text.into_owned());
    match &mut field.kind {
        FieldKind::String(rules) => rules.default = text(default),
        FieldKind::Number(rules) => rules.default = default.as_str().parse().ok(),
        FieldKind::Boolean(rules) => rules.default = default.as_bool(),
        FieldKind::Select(rules) => rules.default = text(default),
        FieldKind::MultiSelect(rules) => {
            rules.default = default.items().map(|items| items.filter_map(text).collect())
        }
    }
    true
}

/// The kind of a property, without its default.
pub(super) fn kind(keywords: &Keywords<'_>) -> Result<FieldKind, SchemaFault> {
    if let Some(keyword) = keywords.composition {
        return Err(SchemaFault::new(SchemaProblem::Composition).below(keyword));
    }
    let has_options = [Key::Enum, Key::OneOf, Key::AnyOf].into_iter().any(|key| keywords.get(key).is_some());
    let word = match keywords.get(Key::Type) {
        None if has_options => "string".into(),
        None => return Err(SchemaFault::new(SchemaProblem::NoType)),
        Some(kind) if kind.kind() == JsonKind::Array => {
            return Err(SchemaFault::new(SchemaProblem::ManyTypes).below("type"));
        }
        Some(kind) => {
            kind.as_string().ok_or_else(|| SchemaFault::new(SchemaProblem::Malformed).below("type"))?
        }
    };
    match &*word {
        "string" if has_options => {
            let (options, legacy_names) = options(keywords)?;
            Ok(FieldKind::Select(SelectRules { options, legacy_names, default: None }))
        }
        "array" => {
            let items = keywords
                .get(Key::Items)
                .and_then(Keywords::of)
                .ok_or_else(|| SchemaFault::new(SchemaProblem::FreeArray))?;
            let read = match items.get(Key::Type) {
                Some(kind) if kind.as_string().as_deref() != Some("string") => {
                    Err(SchemaFault::new(SchemaProblem::FreeArray))
                }
                _ => options(&items),
            };
            let (options, _) = read.map_err(|fault| fault.below("items"))?;
            Ok(FieldKind::MultiSelect(MultiSelectRules {
                options,
                min_items: count(keywords, Key::MinItems)?,
                max_items: count(keywords, Key::MaxItems)?,
                default: None,
            }))
        }
        "object" => Err(SchemaFault::new(SchemaProblem::Nested)),
        "string" => Ok(FieldKind::String(StringRules {
            min_length: count(keywords, Key::MinLength)?,
            max_length: count(keywords, Key::MaxLength)?,
            format: keywords
                .get(Key::Format)
                .and_then(Json::as_string)
                .and_then(|name| Format::from_name(&name)),
            default: None,
        })),
        "integer" | "number" | "boolean" if has_options => {
            Err(SchemaFault::new(SchemaProblem::NotTextOptions))
        }
        whole @ ("integer" | "number") => Ok(FieldKind::Number(NumberRules {
            whole: whole == "integer",
            minimum: number(keywords, Key::Minimum)?,
            maximum: number(keywords, Key::Maximum)?,
            default: None,
        })),
        "boolean" => Ok(FieldKind::Boolean(BooleanRules::default())),
        _ => Err(SchemaFault::new(SchemaProblem::UnknownType).below("type")),
    }
}

/// The options of a select or of the items of a multi-select, and whether titles came as `enumNames`.
fn options(keywords: &Keywords<'_>) -> Result<(Options, bool), SchemaFault> {
    if let Some(keyword) = keywords.composition {
        return Err(SchemaFault::new(SchemaProblem::Composition).below(keyword));
    }
    let (values, one_of, any_of) =
        (keywords.get(Key::Enum), keywords.get(Key::OneOf), keywords.get(Key::AnyOf));
    let (key, list) = match (values, one_of, any_of) {
        (Some(list), None, None) => (Key::Enum, list),
        (None, Some(list), None) => (Key::OneOf, list),
        (None, None, Some(list)) => (Key::AnyOf, list),
        (None, None, None) => return Err(SchemaFault::new(SchemaProblem::FreeArray)),
        _ => return Err(SchemaFault::new(SchemaProblem::Composition)),
    };
    let fault = |problem| SchemaFault::new(problem).below(key.word());
    let mut names = keywords.get(Key::EnumNames).filter(|_| key == Key::Enum).and_then(Json::items);
    let legacy_names = names.is_some();
    let mut choices = Vec::new();
    for (at, entry) in list.items().ok_or_else(|| fault(SchemaProblem::Malformed))?.enumerate() {
        if choices.len() == OPTIONS_MAX {
            return Err(fault(SchemaProblem::TooManyOptions { limit: OPTIONS_MAX }));
        }
        let entry_fault = || SchemaFault::new(SchemaProblem::NotTextOptions).at(at).below(key.word());
        let (value, title) = if key == Key::Enum {
            (Some(entry), names.as_mut().and_then(Iterator::next))
        } else {
            (entry.get("const"), entry.get("title"))
        };
        let value = value.and_then(Json::as_string).ok_or_else(entry_fault)?.into_owned();
        let title = title.and_then(Json::as_string).map(|title| title.into_owned());
        choices.push(Choice { value, title });
    }
    if choices.is_empty() {
        return Err(fault(SchemaProblem::NoOptions));
    }
    Ok((Options::from_choices(choices), legacy_names))
}

fn count(keywords: &Keywords<'_>, key: Key) -> Result<Option<u64>, SchemaFault> {
    let read = |value: Json<'_>| Decimal::parse(value.as_str()).ok().and_then(Decimal::to_count);
    bound(keywords, key, read)
}

fn number(keywords: &Keywords<'_>, key: Key) -> Result<Option<Number>, SchemaFault> {
    bound(keywords, key, |value| value.as_str().parse().ok())
}

fn bound<T>(
    keywords: &Keywords<'_>,
    key: Key,
    read: impl FnOnce(Json<'_>) -> Option<T>,
) -> Result<Option<T>, SchemaFault> {
    let Some(value) = keywords.get(key) else { return Ok(None) };
    let number = Some(value).filter(|value| value.kind() == JsonKind::Number).and_then(read);
    number.map(Some).ok_or_else(|| SchemaFault::new(SchemaProblem::Malformed).below(key.word()))
}

/// Why a `requestedSchema` is no form that can be shown, and where (G-16).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaFault {
    /// Where, from the schema on: `.properties.home.type`; empty for the schema itself. Names are cut to 64 characters
    /// and have no control characters.
    pub path: String,
    /// What is wrong there.
    pub problem: SchemaProblem,
}

impl core::error::Error for SchemaFault {}

impl fmt::Display for SchemaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "requestedSchema{}: {}", self.path, self.problem)
    }
}

impl SchemaFault {
    pub(super) const fn new(problem: SchemaProblem) -> Self {
        Self { path: String::new(), problem }
    }

    pub(super) fn below(mut self, keyword: &str) -> Self {
        self.path = format!(".{keyword}{}", self.path);
        self
    }

    pub(super) fn below_name(self, name: &str) -> Self {
        self.below(&Visible(name).to_string())
    }

    pub(super) fn at(mut self, index: usize) -> Self {
        self.path = format!("[{index}]{}", self.path);
        self
    }
}

/// What is wrong in a `requestedSchema`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaProblem {
    /// No object where one belongs.
    #[error("is not an object")]
    NotAnObject,
    /// The schema is of another type than `object`.
    #[error("a form describes an object")]
    NotAForm,
    /// A keyword's value is of another type than the keyword takes.
    #[error("has a value that this keyword does not take")]
    Malformed,
    /// A field of type `object`.
    #[error("a form has no nested objects")]
    Nested,
    /// An array whose items are not a list of options.
    #[error("a form has no arrays but of options")]
    FreeArray,
    /// A reference or composition.
    #[error("a form has no references and no composition")]
    Composition,
    /// A list of types.
    #[error("a field has one type")]
    ManyTypes,
    /// A type that no field has.
    #[error("no field has this type")]
    UnknownType,
    /// A field without `type` that is no select.
    #[error("has no type")]
    NoType,
    /// Options that are no strings.
    #[error("options are strings")]
    NotTextOptions,
    /// A select without options.
    #[error("has no options")]
    NoOptions,
    /// More fields than [`FIELDS_MAX`].
    #[error("has more than {limit} fields (FIELDS_MAX)")]
    TooManyFields {
        /// The bound, in fields.
        limit: usize,
    },
    /// More options than [`OPTIONS_MAX`].
    #[error("has more than {limit} options (OPTIONS_MAX)")]
    TooManyOptions {
        /// The bound, in options.
        limit: usize,
    },
    /// `required` names a field that the form does not have.
    #[error("is required and has no field")]
    NoSuchField,
    /// A field stands there twice.
    #[error("stands there twice")]
    Twice,
    /// A keyword that this kind of field does not have; only in a form that a handler of ours asks with (R-115, R-123).
    #[error("is no keyword of such a field")]
    Stray,
}
