//! A form taken from a Rust type, by way of the schema that `schemars` makes of it.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

use super::{Field, FieldProblem, Form, FormError, SchemaProblem, keyword::Keywords, read};
use crate::jsonrpc::Json;

/// Keywords that say something about a value which no form can say. Dropping one would ask for less than the type's
/// author wrote, so it is an error instead.
const NOT_EXPRESSIBLE: [&str; 13] = [
    "pattern",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "contains",
    "prefixItems",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "unevaluatedProperties",
];

impl Form {
    /// The form that asks for a `T`: a struct with named fields, in their order.
    ///
    /// | in Rust | in the form |
    /// |---|---|
    /// | `String`, `char` | text; `#[schemars(length(..))]`, `#[schemars(email)]`, `#[schemars(url)]` |
    /// | integers | whole numbers; `#[schemars(range(..))]`; types of up to 32 bits bring their bounds |
    /// | `f32`, `f64` | numbers; `#[schemars(range(..))]` |
    /// | `bool` | yes or no |
    /// | an enum of unit variants | select; a variant's `#[schemars(title = "..")]` or else the first line of its doc comment is its title |
    /// | `Vec`, set or array of such an enum | multi-select; `#[schemars(length(..))]` |
    /// | `Option<_>`, `#[serde(default)]` | not required; a default that can be serialized is the default |
    /// | doc comment, `#[schemars(title = "..")]` | description, title |
    ///
    /// 64-bit and wider integers bring no bounds, since many peers cannot write those exactly; a value beyond is
    /// found when it is decoded ([`Cleaned::decode`](super::Cleaned::decode)), and so is text in a format that
    /// forms do not have. `schemars` lists variants without doc comments before those with one.
    ///
    /// Call it once, at the start, and keep the form ([`Form::with_message`] changes the words): deriving a schema
    /// is not free, and a type that is no form should be found before the first call.
    ///
    /// ```
    /// use mrtr_core::form::Form;
    ///
    /// #[derive(schemars::JsonSchema, serde::Deserialize)]
    /// struct Booking {
    ///     /// Under which name?
    ///     #[schemars(length(min = 1, max = 80))]
    ///     name: String,
    ///     #[schemars(range(min = 1, max = 12))]
    ///     people: u8,
    ///     room: Option<Room>,
    /// }
    ///
    /// #[derive(schemars::JsonSchema, serde::Deserialize)]
    /// #[serde(rename_all = "lowercase")]
    /// enum Room { Garden, Hall }
    ///
    /// let form = Form::of::<Booking>("Book a table")?;
    /// assert_eq!(
    ///     form.requested_schema().as_str(),
    ///     concat!(
    ///         r#"{"type":"object","properties":{"#,
    ///         r#""name":{"type":"string","description":"Under which name?","minLength":1,"maxLength":80},"#,
    ///         r#""people":{"type":"integer","minimum":1,"maximum":12},"#,
    ///         r#""room":{"type":"string","enum":["garden","hall"]}},"#,
    ///         r#""required":["name","people"]}"#,
    ///     )
    /// );
    /// # Ok::<(), mrtr_core::form::FormError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The type, or the named field of it, is not expressible as a form.
    pub fn of<T: JsonSchema>(message: impl Into<String>) -> Result<Self, FormError> {
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
        let Value::Object(mut schema) = schema else { return Err(FormError::NotAStruct) };
        if schema.get("type").and_then(Value::as_str) != Some("object")
            || ["oneOf", "anyOf", "allOf", "$ref"].iter().any(|keyword| schema.contains_key(*keyword))
            || !matches!(schema.get("additionalProperties"), None | Some(Value::Bool(false)))
        {
            return Err(FormError::NotAStruct);
        }
        let required = schema.remove("required").unwrap_or_default();
        let required: Vec<&str> =
            required.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut builder = Self::builder(message);
        if let Some(Value::Object(properties)) = schema.remove("properties") {
            for (name, property) in properties {
                let required = required.contains(&name.as_str());
                match field_of(name.clone(), property) {
                    Ok(field) => builder = builder.field(Field { required, ..field }),
                    Err(problem) => return Err(FormError::Field { field: name, problem }),
                }
            }
        }
        builder.build()
    }
}

fn field_of(name: String, property: Value) -> Result<Field, FieldProblem> {
    let Value::Object(mut property) = property else { return Err(refusal(SchemaProblem::NoType)) };
    without_null(&mut property);
    expressible(&property)?;
    if property.get("type").and_then(Value::as_str) == Some("integer") {
        add_width(&mut property);
    }
    if let Some(Value::Object(items)) = property.get_mut("items") {
        expressible(items)?;
        title_variants(items, "anyOf");
    }
    title_variants(&mut property, "oneOf");
    let default = property.remove("default").filter(|default| !default.is_null());

    let text = Value::Object(property).to_string();
    let keywords = Keywords::of(Json::trusted(&text)).ok_or_else(|| refusal(SchemaProblem::NotAnObject))?;
    let kind = read::kind(&keywords).map_err(|fault| refusal(fault.problem))?;
    let mut field = read::field(name, &keywords, kind);
    if let Some(default) = default {
        let default = default.to_string();
        field.check(Json::trusted(&default)).map_err(FieldProblem::Default)?;
        read::set_default(&mut field, Json::trusted(&default));
    }
    Ok(field)
}

/// Takes the null out of an `Option`'s schema, which is `{"type":[T,"null"]}` or `{"anyOf":[{T},{"type":"null"}]}`:
/// in a form, none is an absent member (R-130).
fn without_null(schema: &mut Map<String, Value>) {
    let is_null = |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("null");
    if let Some(Value::Array(arms)) = schema.get("anyOf")
        && let [Value::Object(arm), null] | [null, Value::Object(arm)] = arms.as_slice()
        && is_null(null)
    {
        let arm = arm.clone();
        schema.remove("anyOf");
        // What stands at the field is said about the field, not about its type.
        for (keyword, value) in arm {
            schema.entry(keyword).or_insert(value);
        }
    }
    if let Some(Value::Array(types)) = schema.get("type")
        && let [kind, null] = types.as_slice()
        && null.as_str() == Some("null")
    {
        let kind = kind.clone();
        schema.insert("type".to_string(), kind);
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

fn expressible(schema: &Map<String, Value>) -> Result<(), FieldProblem> {
    match NOT_EXPRESSIBLE.into_iter().find(|keyword| schema.contains_key(*keyword)) {
        Some(keyword) if schema.get("type").and_then(Value::as_str) != Some("object") => {
            Err(FieldProblem::NotExpressible(keyword))
        }
        _ => Ok(()),
    }
}

/// The bounds of integer types of up to 32 bits, where `schemars` leaves them to `format`.
fn add_width(schema: &mut Map<String, Value>) {
    let (low, high) = match schema.get("format").and_then(Value::as_str) {
        Some("int8") => (i64::from(i8::MIN), i64::from(i8::MAX)),
        Some("int16") => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Some("uint8") => (0, i64::from(u8::MAX)),
        Some("uint16") => (0, i64::from(u16::MAX)),
        Some("uint32") => (0, i64::from(u32::MAX)),
        _ => return,
    };
    schema.entry("minimum").or_insert_with(|| low.into());
    schema.entry("maximum").or_insert_with(|| high.into());
}

/// Rewrites an enum whose variants have texts of their own, which `schemars` makes a `oneOf` of
/// `{"const":..,"title":..,"description":..}` and, for the others together, `{"enum":[..]}`, as options with titles.
/// Anything else stays as it is and is judged later.
fn title_variants(schema: &mut Map<String, Value>, keyword: &str) {
    let Some(Value::Array(arms)) = schema.get("oneOf") else { return };
    let mut options = Vec::new();
    for arm in arms {
        let texts = ["title", "description"].map(|text| arm.get(text).and_then(Value::as_str));
        let [title, description] = texts;
        let title = title.or_else(|| description.and_then(|text| text.lines().next()));
        let values = match (arm.get("const"), arm.get("enum")) {
            (Some(value), None) => core::slice::from_ref(value),
            (None, Some(Value::Array(values))) => values.as_slice(),
            _ => return,
        };
        for value in values {
            let mut option = Map::new();
            option.insert("const".to_string(), value.clone());
            if let Some(title) = title {
                option.insert("title".to_string(), title.into());
            }
            options.push(Value::Object(option));
        }
    }
    schema.remove("oneOf");
    schema.remove("type");
    schema.insert(keyword.to_string(), Value::Array(options));
}

/// What the form language lacks, in the words of somebody who wrote a Rust type.
fn refusal(problem: SchemaProblem) -> FieldProblem {
    FieldProblem::NotExpressible(match problem {
        SchemaProblem::Nested => "a nested struct or map",
        SchemaProblem::FreeArray => "a list of anything but an enum of unit variants",
        SchemaProblem::Composition => "a union, a variant with data, or a type within itself",
        SchemaProblem::ManyTypes | SchemaProblem::NoType => "a value of several types",
        SchemaProblem::UnknownType => "the unit type",
        SchemaProblem::NotTextOptions => "an enum whose variants are not all text",
        SchemaProblem::NoOptions => "an enum without variants",
        SchemaProblem::TooManyOptions { .. } => "an enum with so many variants (OPTIONS_MAX)",
        SchemaProblem::NotAnObject
        | SchemaProblem::NotAForm
        | SchemaProblem::Malformed
        | SchemaProblem::TooManyFields { .. }
        | SchemaProblem::NoSuchField
        | SchemaProblem::Twice
        | SchemaProblem::Stray => "this schema",
    })
}
