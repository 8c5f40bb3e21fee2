//! The form that a server asks with: checked once, written once.

use alloc::{string::String, sync::Arc, vec::Vec};
use core::{fmt, ops::Range};

use super::{
    Draft, FIELDS_MAX, Field, FieldProblem, Schema,
    field::{into_text, json_string},
    invalid::Visible,
    write::{self, Dialect},
};
use crate::{
    digest::{DigestFault, Fingerprint, structural},
    jsonrpc::Json,
    wire::InputRequest,
};

/// A form: a message and the fields to fill in, checked once and written once. Cheap to clone.
///
/// Never ask for passwords, keys, tokens or payment data in a form: that is what a url ask is for (R-111). Links
/// do not belong in any of its texts (R-125).
///
/// ```
/// use mrtr_core::form::{Field, Form};
///
/// let form = Form::builder("Book a table")
///     .field(Field::string("name").title("Your name").min_length(1).max_length(80).required())
///     .field(Field::integer("people").minimum(1).maximum(12).default(2).required())
///     .field(Field::select("room").option("a", "Garden").option("b", "Hall"))
///     .build()?;
///
/// assert_eq!(
///     form.params(),
///     concat!(
///         r#"{"mode":"form","message":"Book a table","requestedSchema":{"type":"object","properties":{"#,
///         r#""name":{"type":"string","title":"Your name","minLength":1,"maxLength":80},"#,
///         r#""people":{"type":"integer","minimum":1,"maximum":12,"default":2},"#,
///         r#""room":{"type":"string","oneOf":[{"const":"a","title":"Garden"},{"const":"b","title":"Hall"}]}},"#,
///         r#""required":["name","people"]}}"#,
///     )
/// );
/// # Ok::<(), mrtr_core::form::FormError>(())
/// ```
#[derive(Clone)]
pub struct Form(Arc<Built>);

struct Built {
    params: String,
    /// Where the schema stands in `params`.
    requested: Range<usize>,
    fingerprint: Result<Fingerprint, DigestFault>,
    fields: Arc<Fields>,
}

/// What forms that differ in their message alone have in common.
struct Fields {
    schema: Schema,
    digest: Result<[u8; 32], DigestFault>,
}

/// Text before and after the message in the parameters.
const HEAD: &str = r#"{"mode":"form","message":"#;
const MIDDLE: &str = r#","requestedSchema":"#;

impl Form {
    /// Begins a form that shows `message` above its fields (R-112).
    pub fn builder(message: impl Into<String>) -> FormBuilder {
        FormBuilder { message: message.into(), drafts: Vec::new() }
    }

    /// The parameters of `elicitation/create` as JSON text. `mode` is named, which every revision that knows the
    /// member takes (R-113); 2025-06-18 does not know it, see [`downgrade`](super::downgrade()).
    #[must_use]
    pub fn params(&self) -> &str {
        &self.0.params
    }

    /// `requestedSchema` as JSON (R-114).
    #[must_use]
    pub fn requested_schema(&self) -> Json<'_> {
        Json::trusted(self.0.params.get(self.0.requested.clone()).unwrap_or("{}"))
    }

    /// The same schema with its types, which validates answers.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.0.fields.schema
    }

    /// The fields in their order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        self.schema().fields()
    }

    /// The ask that shows this form.
    #[must_use]
    pub fn to_request(&self) -> InputRequest<'static> {
        InputRequest::from_form(self.clone())
    }

    /// The fingerprint of the ask, taken when the form was built: a handler asks with it on every run.
    pub(crate) fn fingerprint(&self) -> Result<Fingerprint, DigestFault> {
        self.0.fingerprint
    }

    /// The same fields under another message: for a form that is built once and asked with words that depend on the call.
    ///
    /// ```
    /// # use mrtr_core::form::{Field, Form};
    /// let form = Form::builder("Sure?").field(Field::boolean("sure").required()).build()?;
    /// let form = form.with_message("Delete 3 files?");
    /// assert!(form.params().contains("Delete 3 files?"));
    /// # Ok::<(), mrtr_core::form::FormError>(())
    /// ```
    #[must_use]
    pub fn with_message(&self, message: &str) -> Self {
        Self::assemble(message, self.requested_schema().as_str(), Arc::clone(&self.0.fields))
    }

    fn assemble(message: &str, requested: &str, fields: Arc<Fields>) -> Self {
        let fingerprint = fields.digest.map(|digest| Fingerprint::of_form(message, &digest));
        let message = json_string(message);
        let mut params =
            String::with_capacity(HEAD.len() + message.len() + MIDDLE.len() + requested.len() + 1);
        params.push_str(HEAD);
        params.push_str(&message);
        params.push_str(MIDDLE);
        let start = params.len();
        params.push_str(requested);
        let requested = start..params.len();
        params.push('}');
        Self(Arc::new(Built { params, requested, fingerprint, fields }))
    }
}

impl From<FormError> for crate::RpcError {
    /// What a handler's `?` makes of a form that cannot be built: a fault of the handler, so the peer hears nothing
    /// of it.
    fn from(error: FormError) -> Self {
        crate::trace::warn!(error = %error, "a form cannot be built");
        Self::internal("Internal error")
    }
}

impl PartialEq for Form {
    /// Equal if they show the same, that is if their parameters are the same text.
    fn eq(&self, other: &Self) -> bool {
        self.params() == other.params()
    }
}

impl Eq for Form {}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Form({} fields, {} bytes)", self.fields().len(), self.params().len())
    }
}

/// Collects the fields of a [`Form`].
#[derive(Clone, Debug)]
#[must_use = "a form exists once it is built"]
pub struct FormBuilder {
    message: String,
    drafts: Vec<Draft>,
}

impl FormBuilder {
    /// Adds a field. Fields are shown, and stand on the wire, in the order they were added.
    pub fn field(mut self, field: impl Into<Draft>) -> Self {
        self.drafts.push(field.into());
        self
    }

    /// Checks everything and makes the form. A form without fields is one that can only be accepted or refused.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with the name of the field.
    pub fn build(self) -> Result<Form, FormError> {
        if self.drafts.len() > FIELDS_MAX {
            return Err(FormError::TooManyFields { limit: FIELDS_MAX });
        }
        let mut fields = Vec::with_capacity(self.drafts.len());
        for draft in self.drafts {
            fields.push(draft.check().map_err(|(field, problem)| FormError::Field { field, problem })?);
        }
        let schema = Schema::of_fields(fields)
            .map_err(|field| FormError::Field { field, problem: FieldProblem::DuplicateName })?;
        let mut requested = Vec::new();
        write::schema(&mut requested, schema.fields(), Dialect::Full);
        let requested = into_text(requested);
        let digest = structural(Json::trusted(&requested));
        Ok(Form::assemble(&self.message, &requested, Arc::new(Fields { schema, digest })))
    }
}

/// Why a form cannot be built. A mistake in the program, to be found at its start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// More fields than [`FIELDS_MAX`].
    #[error("the form has more than {limit} fields (FIELDS_MAX)")]
    TooManyFields {
        /// The bound, in fields.
        limit: usize,
    },
    /// A field is at fault.
    #[error("field {}: {problem}", Visible(.field))]
    Field {
        /// Its name.
        field: String,
        /// What is wrong with it.
        problem: FieldProblem,
    },
    /// The type that the form is to be taken from is no struct with named fields.
    #[error("the type is no struct with named fields, so it is no form")]
    NotAStruct,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::AskKind;

    /// What is taken piece by piece when a form is built is the fingerprint of its text.
    #[test]
    fn the_fingerprint_is_that_of_the_text() {
        let plain = Form::builder("Sure?").build().unwrap();
        let full = Form::builder("Wie heißt du? \"\\\n\u{1}😀")
            .field(Field::string("na\"me").title("Námé").max_length(9).default("\\").required())
            .field(Field::number("x").minimum("1.50e-7".parse::<super::super::Number>().unwrap()))
            .field(Field::select("s").option("a", "A").option("b", "B"))
            .build()
            .unwrap();
        let others = [plain.with_message(""), full.with_message("\u{7f} \t/")];
        for form in [&plain, &full].into_iter().chain(&others) {
            let expected = Fingerprint::new(AskKind::Form, Some(Json::trusted(form.params())));
            assert_eq!(form.fingerprint(), expected, "{}", form.params());
            assert_eq!(form.to_request().fingerprint(), expected);
            assert!(expected.is_ok());
        }
        let all = [&plain, &full, &others[0], &others[1]].map(|form| form.fingerprint().unwrap());
        assert_eq!(alloc::collections::BTreeSet::from(all).len(), 4);
    }
}
