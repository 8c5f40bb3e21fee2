//! The typed view of one field: what a widget needs to show it, and the rules its value has to satisfy.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use super::{Format, Number};

/// One field of a form: its name, what to show, and what it takes (R-115…R-122).
///
/// Fields are read from a [`Schema`](super::Schema) or made with [`Field::string`] and its siblings, which start a
/// [`FieldBuilder`](super::FieldBuilder). Titles, descriptions and options are the text of whoever made the form:
/// a terminal must not obey control characters in them, and nothing in them is a link to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) required: bool,
    pub(super) kind: FieldKind,
}

impl Field {
    /// The name of the member in the answer's content.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The title, if it has one.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// What to call the field in front of a person: the title, or else the name.
    #[must_use]
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// The longer explanation, if it has one.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Whether an accepted form must have it.
    #[must_use]
    pub const fn is_required(&self) -> bool {
        self.required
    }

    /// What it takes.
    #[must_use]
    pub const fn kind(&self) -> &FieldKind {
        &self.kind
    }

    /// The default as JSON text, to show it filled in already. It is a value the field takes.
    #[must_use]
    pub fn default(&self) -> Option<String> {
        self.kind.default_json()
    }
}

/// What a field takes. The language is closed, and so is this enum.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum FieldKind {
    /// Text.
    String(StringRules),
    /// A number, whole or not.
    Number(NumberRules),
    /// Yes or no.
    Boolean(BooleanRules),
    /// One of several options.
    Select(SelectRules),
    /// Any number of several options.
    MultiSelect(MultiSelectRules),
}

/// Rules of a text field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StringRules {
    /// Fewest Unicode code points (G-22).
    pub min_length: Option<u64>,
    /// Most Unicode code points (G-22).
    pub max_length: Option<u64>,
    /// The format; asserted (G-22).
    pub format: Option<Format>,
    /// The default.
    pub default: Option<String>,
}

/// Rules of a number field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NumberRules {
    /// Only whole numbers: `type` is `integer`. `3.0` and `1e2` are whole (G-22, B-32).
    pub whole: bool,
    /// The smallest value, itself allowed.
    pub minimum: Option<Number>,
    /// The largest value, itself allowed.
    pub maximum: Option<Number>,
    /// The default.
    pub default: Option<Number>,
}

/// Rules of a yes/no field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BooleanRules {
    /// The default.
    pub default: Option<bool>,
}

/// Rules of a choice of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SelectRules {
    /// What can be chosen; never empty in a form that was built or read.
    pub options: Options,
    /// Spell titles as the legacy `enumNames` instead of `oneOf`.
    pub legacy_names: bool,
    /// The default, one of the options.
    pub default: Option<String>,
}

/// Rules of a choice of several. The same option twice is counted twice (G-24).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MultiSelectRules {
    /// What can be chosen; never empty in a form that was built or read.
    pub options: Options,
    /// Fewest items.
    pub min_items: Option<u64>,
    /// Most items.
    pub max_items: Option<u64>,
    /// The default, all of it among the options.
    pub default: Option<Vec<String>>,
}

/// One option of a select: the value that travels and the title that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// What the answer carries (R-119: the `const`, never the title).
    pub value: String,
    /// What is shown, if that differs.
    pub title: Option<String>,
}

impl Choice {
    /// What to show: the title, or else the value.
    #[must_use]
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.value)
    }
}

/// The options of a select in the order of the form, each value once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    choices: Vec<Choice>,
    /// Positions in `choices`, sorted by value, so that a long list costs no more to search.
    sorted: Vec<usize>,
}

impl Options {
    /// The options in their order.
    #[must_use]
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.choices.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }

    /// Whether `value` is one of the values.
    #[must_use]
    pub fn contains(&self, value: &str) -> bool {
        self.place(value).is_ok()
    }

    /// Whether any option has a title of its own.
    #[must_use]
    pub fn are_titled(&self) -> bool {
        self.choices.iter().any(|choice| choice.title.is_some())
    }

    /// Adds an option at the end; `false`, and nothing added, if its value is there already.
    pub(super) fn push(&mut self, value: String, title: Option<String>) -> bool {
        let Err(place) = self.place(&value) else { return false };
        self.sorted.insert(place, self.choices.len());
        self.choices.push(Choice { value, title });
        true
    }

    /// Options all at once; of those with the same value, the first.
    pub(super) fn from_choices(mut choices: Vec<Choice>) -> Self {
        let mut sorted = sorted_by_value(&choices);
        let value = |at: &usize| choices.get(*at).map_or("", |choice| choice.value.as_str());
        let mut again: Vec<bool> = alloc::vec![false; choices.len()];
        for pair in sorted.windows(2) {
            if let [first, second] = pair
                && value(first) == value(second)
                && let Some(again) = again.get_mut(*second)
            {
                *again = true;
            }
        }
        if again.contains(&true) {
            let mut again = again.into_iter();
            choices.retain(|_| again.next() != Some(true));
            sorted = sorted_by_value(&choices);
        }
        Self { choices, sorted }
    }

    fn place(&self, value: &str) -> Result<usize, usize> {
        let at = |index: usize| self.choices.get(index).map_or("", |choice| choice.value.as_str());
        self.sorted.binary_search_by(|&index| at(index).cmp(value))
    }
}

impl FieldKind {
    /// The default as JSON text.
    pub(super) fn default_json(&self) -> Option<String> {
        match self {
            Self::String(rules) => rules.default.as_deref().map(json_string),
            Self::Number(rules) => rules.default.as_ref().map(Number::to_string),
            Self::Boolean(rules) => rules.default.map(|default| default.to_string()),
            Self::Select(rules) => rules.default.as_deref().map(json_string),
            Self::MultiSelect(rules) => rules.default.as_deref().map(|values| {
                let values: Vec<String> = values.iter().map(|value| json_string(value)).collect();
                alloc::format!("[{}]", values.join(","))
            }),
        }
    }
}

/// Positions in the order of the values; the sort is stable, so equal values keep theirs.
fn sorted_by_value(choices: &[Choice]) -> Vec<usize> {
    let value = |at: &usize| choices.get(*at).map_or("", |choice| choice.value.as_str());
    let mut sorted: Vec<usize> = (0..choices.len()).collect();
    sorted.sort_by(|a, b| value(a).cmp(value(b)));
    sorted
}

/// `text` as a JSON string.
pub(super) fn json_string(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    crate::jsonrpc::write::string(&mut out, text);
    into_text(out)
}

/// The text of bytes that this room wrote, all of them pieces of `str`.
pub(super) fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|_| unreachable!("only pieces of str are written"))
}
