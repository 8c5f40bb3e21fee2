//! A form for a peer of 2025-06-18, whose form language is smaller (BT-5, R-246).

use alloc::{string::String, vec::Vec};

use super::{
    FieldKind, Schema, SchemaFault,
    field::into_text,
    invalid::Visible,
    write::{self, Dialect},
};
use crate::jsonrpc::{Json, write as json};

/// Rewrites the parameters of a form elicitation for a peer of 2025-06-18.
///
/// | here | there |
/// |---|---|
/// | `mode`, `$schema` | dropped |
/// | titled select (`oneOf`) | `enum` with `enumNames` |
/// | `default` | kept on booleans, dropped elsewhere |
/// | keywords outside the form language (`pattern`, …) | dropped (R-247) |
/// | multi-select | not expressible |
///
/// Every other member of the parameters is copied as it is (`message`, `_meta`, unknown ones). What comes back answers
/// the original form: the values are the same.
///
/// ```
/// use mrtr_core::form::{Field, Form, downgrade};
///
/// let form = Form::builder("Book a table")
///     .field(Field::select("room").option("a", "Garden").default("a"))
///     .build()?;
/// let params = mrtr_core::jsonrpc::Json::parse(form.params(), &mrtr_core::Limits::default())?;
/// assert_eq!(
///     downgrade(params)?,
///     concat!(
///         r#"{"message":"Book a table","requestedSchema":{"type":"object","properties":{"#,
///         r#""room":{"type":"string","enum":["a"],"enumNames":["Garden"]}}}}"#,
///     )
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The form cannot be said in that language: the call ends as if the capability were missing.
pub fn downgrade(params: Json<'_>) -> Result<String, NotExpressible> {
    let schema = Schema::read(params.get("requestedSchema").unwrap_or(Json::NULL))?;
    let several = schema.fields().iter().find(|field| matches!(field.kind, FieldKind::MultiSelect(_)));
    if let Some(field) = several {
        return Err(NotExpressible::MultiSelect { field: field.name.clone() });
    }
    let mut out = Vec::from(b"{");
    for (name, value) in params.members().into_iter().flatten().filter(|(name, _)| name != "mode") {
        if out.len() > 1 {
            out.push(b',');
        }
        json::string(&mut out, &name);
        out.push(b':');
        if name == "requestedSchema" {
            write::schema(&mut out, schema.fields(), Dialect::Narrow);
        } else {
            json::one_line(&mut out, value.as_str());
        }
    }
    out.push(b'}');
    Ok(into_text(out))
}

/// Why a form cannot be shown to a peer of 2025-06-18.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotExpressible {
    /// A multi-select: it is not faked with strings (BT-5).
    #[error("field {}: the form language of 2025-06-18 has no multi-select", Visible(.field))]
    MultiSelect {
        /// The name of the field, as it came.
        field: String,
    },
    /// It is no form in any revision.
    #[error(transparent)]
    Schema(#[from] SchemaFault),
}
