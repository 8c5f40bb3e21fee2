//! The fields of a form together.

use alloc::{string::String, vec::Vec};

use super::{Field, field::into_text};
use crate::jsonrpc::{Json, write};

/// The fields of a form with their rules, in the order of the wire (B-75).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    fields: Vec<Field>,
    /// Positions in `fields`, sorted by name. Empty for [few](FEW): most forms have one or two.
    by_name: Vec<usize>,
}

/// So many fields are looked through one by one.
const FEW: usize = 8;

impl Schema {
    /// The fields in their order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field called `name`.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.position(name).and_then(|at| self.fields.get(at))
    }

    /// The content with the defaults of those fields that it lacks (R-124, B-77): for a client, to show a form filled
    /// in (`content` empty) or to complete an accept before it is validated. Never for a refusal, and never on a server
    /// (G-21). A value that is there stays, whatever it is.
    ///
    /// ```
    /// use mrtr_core::{form::{Field, Form}, jsonrpc::Json};
    ///
    /// let form = Form::builder("How many?").field(Field::integer("people").default(2)).build()?;
    /// assert_eq!(form.schema().prefill(Json::EMPTY_OBJECT), r#"{"people":2}"#);
    /// # Ok::<(), mrtr_core::form::FormError>(())
    /// ```
    #[must_use]
    pub fn prefill(&self, content: Json<'_>) -> String {
        let mut out = Vec::from(b"{");
        let mut member = |name: &str, value: &str| {
            if out.len() > 1 {
                out.push(b',');
            }
            write::string(&mut out, name);
            out.push(b':');
            write::one_line(&mut out, value);
        };
        let mut given = alloc::vec![false; self.fields.len()];
        for (name, value) in content.members().into_iter().flatten() {
            member(&name, value.as_str());
            if let Some(given) = self.position(&name).and_then(|at| given.get_mut(at)) {
                *given = true;
            }
        }
        for (field, given) in self.fields.iter().zip(given) {
            if let Some(default) = field.default().filter(|_| !given) {
                member(field.name(), &default);
            }
        }
        out.push(b'}');
        into_text(out)
    }

    /// `Err` names a field that stands there twice.
    pub(super) fn of_fields(fields: Vec<Field>) -> Result<Self, String> {
        if fields.len() <= FEW {
            let mut rest = fields.as_slice();
            while let [field, after @ ..] = rest {
                if after.iter().any(|other| other.name() == field.name()) {
                    return Err(field.name().into());
                }
                rest = after;
            }
            return Ok(Self { fields, by_name: Vec::new() });
        }
        let mut by_name: Vec<usize> = (0..fields.len()).collect();
        let name = |&at: &usize| fields.get(at).map_or("", Field::name);
        by_name.sort_by(|a, b| name(a).cmp(name(b)));
        let twice = by_name.windows(2).find_map(|pair| match pair {
            [a, b] if name(a) == name(b) => Some(name(a).into()),
            _ => None,
        });
        match twice {
            Some(name) => Err(name),
            None => Ok(Self { fields, by_name }),
        }
    }

    pub(super) fn position(&self, name: &str) -> Option<usize> {
        if self.fields.len() <= FEW {
            return self.fields.iter().position(|field| field.name() == name);
        }
        let at = |index: usize| self.fields.get(index).map_or("", Field::name);
        let place = self.by_name.binary_search_by(|&index| at(index).cmp(name)).ok()?;
        self.by_name.get(place).copied()
    }

    /// Marks a field as required; `false` if there is none of that name.
    pub(super) fn require(&mut self, name: &str) -> bool {
        let field = self.position(name).and_then(|at| self.fields.get_mut(at));
        field.map(|field| field.required = true).is_some()
    }
}
