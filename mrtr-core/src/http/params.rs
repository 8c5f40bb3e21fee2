//! `x-mcp-header`: arguments that a tool wants mirrored into headers (R-173…R-176).
//!
//! One reading of the annotations serves both sides: a server [checks](super::check_params) a call against
//! its own tool's, a client [mirrors](super::request_headers) the arguments, and leaves out of its list every
//! tool for which [`ParamHeaders::from_schema`] fails.

use alloc::{
    borrow::Cow,
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::headers::name::PARAM_PREFIX;
use crate::jsonrpc::{Json, JsonKind};

/// The annotation's name in a schema.
const ANNOTATION: &str = "x-mcp-header";

/// The type of an annotated argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum ParamType {
    /// `string`
    String,
    /// `integer`
    Integer,
    /// `boolean`
    Boolean,
}

/// One annotated argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamHeader {
    header: String,
    path: Vec<String>,
    kind: ParamType,
}

/// The annotated arguments of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParamHeaders(Vec<ParamHeader>);

/// Why a tool's annotations are invalid: a client must not offer the tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamFault {
    /// Not on a property, or on one below something else than `properties`.
    #[error("x-mcp-header at {at} is not on a property that a chain of `properties` leads to")]
    Unreachable {
        /// Path in the schema.
        at: String,
    },
    /// The value is no string, empty, or no RFC 9110 token.
    #[error("x-mcp-header at {at} is not a header name (RFC 9110 token)")]
    Name {
        /// Path in the schema.
        at: String,
    },
    /// The annotated property is no string, integer or boolean.
    #[error("x-mcp-header at {at} is on something else than a string, an integer or a boolean")]
    Type {
        /// Path in the schema.
        at: String,
    },
    /// Another property has the same name, upper and lower case being the same.
    #[error("x-mcp-header at {at} repeats a name")]
    Repeated {
        /// Path in the schema.
        at: String,
    },
    /// More annotations than [`ParamHeaders::MAX`].
    #[error("more than {limit} x-mcp-header annotations (ParamHeaders::MAX)")]
    TooMany {
        /// The bound, in annotations.
        limit: usize,
    },
}

impl ParamHeader {
    /// The header, with its prefix: `Mcp-Param-Region`.
    #[must_use]
    pub fn header(&self) -> &str {
        &self.header
    }

    /// The annotation: `Region`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.header.strip_prefix(PARAM_PREFIX).unwrap_or_default()
    }

    /// The names that lead from `arguments` to the value.
    pub fn path(&self) -> impl ExactSizeIterator<Item = &str> {
        self.path.iter().map(String::as_str)
    }

    /// The declared type.
    #[must_use]
    pub const fn kind(&self) -> ParamType {
        self.kind
    }

    /// The value in `arguments`; `None` if it is absent or null, for then there is no header.
    #[must_use]
    pub fn value<'a>(&self, arguments: Json<'a>) -> Option<Json<'a>> {
        self.path.iter().try_fold(arguments, |value, name| value.get(name)).filter(|value| !value.is_null())
    }
}

impl ParamHeaders {
    /// Annotations that a tool may have. HTTP libraries stop at about a hundred headers a request.
    pub const MAX: usize = 64;

    /// No annotations.
    pub const NONE: &'static Self = &Self(Vec::new());

    /// Reads the annotations of a tool's `inputSchema`.
    ///
    /// A type may be given alone or together with `null` (`["string", "null"]`), since null is a value that
    /// such an argument may have.
    ///
    /// # Errors
    ///
    /// The first fault.
    pub fn from_schema(schema: Json<'_>) -> Result<Self, ParamFault> {
        let mut walk = Walk { steps: Vec::new(), open: Vec::new() };
        let mut found = Vec::<ParamHeader>::new();
        let mut next = Some(Place { schema, step: None, reachable: true });
        // No recursion: the depth of a schema costs no stack.
        while let Some(place) = next {
            let first_child = walk.open.len();
            for (keyword, value) in place.schema.members().into_iter().flatten() {
                if keyword != ANNOTATION {
                    walk.children(&place, &keyword, value);
                    continue;
                }
                let param = walk.annotated(&place, value)?;
                // At most `MAX` of them.
                if found.iter().any(|other| other.header.eq_ignore_ascii_case(&param.header)) {
                    return Err(ParamFault::Repeated { at: walk.describe(&place) });
                }
                if found.len() == Self::MAX {
                    return Err(ParamFault::TooMany { limit: Self::MAX });
                }
                found.push(param);
            }
            // In the order of the schema.
            walk.open.get_mut(first_child..).unwrap_or_default().reverse();
            next = walk.open.pop();
        }
        Ok(Self(found))
    }

    /// The annotations in the order of the schema.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ParamHeader> {
        self.0.iter()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A schema within the schema.
struct Place<'a> {
    schema: Json<'a>,
    /// The last step that led here; none at the root.
    step: Option<usize>,
    /// Whether all steps are `properties`.
    reachable: bool,
}

/// One step down. Steps share their beginnings: a wide and deep schema costs no more than its size.
struct Step<'a> {
    from: Option<usize>,
    keyword: &'static str,
    /// The property's name, if the keyword is `properties`.
    property: Option<Cow<'a, str>>,
}

struct Walk<'a> {
    steps: Vec<Step<'a>>,
    open: Vec<Place<'a>>,
}

/// Keywords with a schema for each name.
const BY_NAME: [&str; 5] = ["patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords with a schema or an array of schemas.
const DIRECT: [&str; 16] = [
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "contentSchema",
    "oneOf",
    "anyOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
];

impl<'a> Walk<'a> {
    /// Opens the schemas right below a place, by the keywords of JSON Schema (2020-12 and its predecessors).
    /// Data, such as that of `default` or `enum`, and unknown keywords hold none.
    fn children(&mut self, place: &Place<'a>, keyword: &str, value: Json<'a>) {
        let known = |list: &[&'static str]| list.iter().copied().find(|known| *known == keyword);
        if keyword == "properties" {
            for (name, schema) in value.members().into_iter().flatten() {
                self.put(place, schema, "properties", Some(name));
            }
        } else if let Some(keyword) = known(&BY_NAME) {
            for (_, schema) in value.members().into_iter().flatten() {
                self.put(place, schema, keyword, None);
            }
        } else if let Some(keyword) = known(&DIRECT) {
            self.put(place, value, keyword, None);
            for schema in value.items().into_iter().flatten() {
                self.put(place, schema, keyword, None);
            }
        }
    }

    fn put(
        &mut self,
        place: &Place<'a>,
        schema: Json<'a>,
        keyword: &'static str,
        property: Option<Cow<'a, str>>,
    ) {
        if schema.is_object() {
            let reachable = place.reachable && property.is_some();
            self.steps.push(Step { from: place.step, keyword, property });
            self.open.push(Place { schema, step: Some(self.steps.len() - 1), reachable });
        }
    }

    fn annotated(&self, place: &Place<'a>, value: Json<'a>) -> Result<ParamHeader, ParamFault> {
        let at = || self.describe(place);
        if !place.reachable || place.step.is_none() {
            return Err(ParamFault::Unreachable { at: at() });
        }
        let name =
            value.as_string().filter(|name| is_token(name)).ok_or_else(|| ParamFault::Name { at: at() })?;
        let kind =
            place.schema.get("type").and_then(primitive).ok_or_else(|| ParamFault::Type { at: at() })?;
        let mut path: Vec<String> =
            self.back(place).filter_map(|step| step.property.as_deref().map(String::from)).collect();
        path.reverse();
        Ok(ParamHeader { header: format!("{PARAM_PREFIX}{name}"), path, kind })
    }

    /// The steps from a place back to the root.
    fn back(&self, place: &Place<'a>) -> impl Iterator<Item = &Step<'a>> {
        let step = |index: Option<usize>| index.and_then(|index| self.steps.get(index));
        core::iter::successors(step(place.step), move |last| step(last.from))
    }

    /// The path for a message, with long names cut.
    fn describe(&self, place: &Place<'a>) -> String {
        let mut parts: Vec<String> = self
            .back(place)
            .map(|step| match &step.property {
                Some(name) => format!("/properties/{}", name.chars().take(64).collect::<String>()),
                None => format!("/{}", step.keyword),
            })
            .collect();
        parts.reverse();
        if parts.is_empty() { "the root".to_string() } else { parts.concat() }
    }
}

fn primitive(kind: Json<'_>) -> Option<ParamType> {
    let one = |kind: Json<'_>| match kind.as_string().as_deref() {
        Some("string") => Some(ParamType::String),
        Some("integer") => Some(ParamType::Integer),
        Some("boolean") => Some(ParamType::Boolean),
        _ => None,
    };
    if kind.kind() != JsonKind::Array {
        return one(kind);
    }
    let mut found = None;
    for item in kind.items()? {
        if item.as_string().as_deref() == Some("null") {
            continue;
        }
        if found.is_some() {
            return None;
        }
        found = Some(one(item)?);
    }
    found
}

/// A token as RFC 9110, 5.6.2 defines it.
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
