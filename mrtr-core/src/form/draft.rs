//! Fields built by hand. What the form language cannot say cannot be written: every kind of field has a builder of its
//! own with that kind's rules only.

use alloc::string::String;

use super::{
    BooleanRules, Field, FieldKind, Format, IntoNumber, MultiSelectRules, NAME_CHARS_MAX, NumberRules,
    OPTIONS_MAX, Options, Problem, SelectRules, StringRules,
};
use crate::jsonrpc::Json;

/// A field on its way into a form, not yet checked. Made from every [`FieldBuilder`], so that a form may be put
/// together in a loop.
#[derive(Clone, Debug)]
pub struct Draft {
    field: Field,
    fault: Option<FieldProblem>,
}

/// Builds one field; made by [`Field::string`], [`Field::number`], [`Field::integer`], [`Field::boolean`],
/// [`Field::select`] and [`Field::multi_select`].
#[derive(Clone, Debug)]
#[must_use = "add it to a form"]
pub struct FieldBuilder<Rules> {
    name: String,
    title: Option<String>,
    description: Option<String>,
    required: bool,
    rules: Rules,
    fault: Option<FieldProblem>,
}

impl Field {
    /// A line of text.
    pub fn string(name: impl Into<String>) -> FieldBuilder<StringRules> {
        FieldBuilder::new(name, StringRules::default())
    }

    /// A number, fractions allowed.
    pub fn number(name: impl Into<String>) -> FieldBuilder<NumberRules> {
        FieldBuilder::new(name, NumberRules::default())
    }

    /// A whole number.
    pub fn integer(name: impl Into<String>) -> FieldBuilder<NumberRules> {
        FieldBuilder::new(name, NumberRules { whole: true, ..NumberRules::default() })
    }

    /// Yes or no.
    pub fn boolean(name: impl Into<String>) -> FieldBuilder<BooleanRules> {
        FieldBuilder::new(name, BooleanRules::default())
    }

    /// One of several options.
    pub fn select(name: impl Into<String>) -> FieldBuilder<SelectRules> {
        FieldBuilder::new(name, SelectRules::default())
    }

    /// Any number of several options.
    pub fn multi_select(name: impl Into<String>) -> FieldBuilder<MultiSelectRules> {
        FieldBuilder::new(name, MultiSelectRules::default())
    }
}

impl<Rules> FieldBuilder<Rules> {
    fn new(name: impl Into<String>, rules: Rules) -> Self {
        Self { name: name.into(), title: None, description: None, required: false, rules, fault: None }
    }

    /// What the person sees instead of the name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// A longer explanation.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// An accepted form must have it. Fields are optional otherwise.
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    fn remember(&mut self, fault: FieldProblem) {
        self.fault.get_or_insert(fault);
    }

    fn draft(self, kind: impl FnOnce(Rules) -> FieldKind) -> Draft {
        Draft {
            field: Field {
                name: self.name,
                title: self.title,
                description: self.description,
                required: self.required,
                kind: kind(self.rules),
            },
            fault: self.fault,
        }
    }
}

impl FieldBuilder<StringRules> {
    /// Fewest characters (Unicode code points). A required field may still be empty: ask for 1 here if it must not.
    pub const fn min_length(mut self, characters: u64) -> Self {
        self.rules.min_length = Some(characters);
        self
    }

    /// Most characters (Unicode code points).
    pub const fn max_length(mut self, characters: u64) -> Self {
        self.rules.max_length = Some(characters);
        self
    }

    /// The format that the text must be written in.
    pub const fn format(mut self, format: Format) -> Self {
        self.rules.format = Some(format);
        self
    }

    /// What the field is filled in with at first. The server never fills it in itself (G-21).
    pub fn default(mut self, text: impl Into<String>) -> Self {
        self.rules.default = Some(text.into());
        self
    }
}

impl FieldBuilder<NumberRules> {
    /// The smallest value, itself allowed.
    pub fn minimum(mut self, bound: impl IntoNumber) -> Self {
        match bound.into_number() {
            Some(bound) => self.rules.minimum = Some(bound),
            None => self.remember(FieldProblem::NotFinite),
        }
        self
    }

    /// The largest value, itself allowed.
    pub fn maximum(mut self, bound: impl IntoNumber) -> Self {
        match bound.into_number() {
            Some(bound) => self.rules.maximum = Some(bound),
            None => self.remember(FieldProblem::NotFinite),
        }
        self
    }

    /// What the field is filled in with at first. The server never fills it in itself (G-21).
    pub fn default(mut self, value: impl IntoNumber) -> Self {
        match value.into_number() {
            Some(value) => self.rules.default = Some(value),
            None => self.remember(FieldProblem::NotFinite),
        }
        self
    }
}

impl FieldBuilder<BooleanRules> {
    /// What the field is set to at first. The server never fills it in itself (G-21).
    pub const fn default(mut self, value: bool) -> Self {
        self.rules.default = Some(value);
        self
    }
}

impl FieldBuilder<SelectRules> {
    /// An option with a title. One of these is enough to make the select a titled one (`oneOf`, R-119).
    pub fn option(self, value: impl Into<String>, title: impl Into<String>) -> Self {
        self.add(value.into(), Some(title.into()))
    }

    /// An option that is shown as its value (`enum`, R-118).
    pub fn choice(self, value: impl Into<String>) -> Self {
        self.add(value.into(), None)
    }

    /// Spells titles as `enumNames`, for peers older than titled selects; to be removed from the protocol.
    pub const fn legacy_names(mut self) -> Self {
        self.rules.legacy_names = true;
        self
    }

    /// The option that is chosen at first. The server never fills it in itself (G-21).
    pub fn default(mut self, value: impl Into<String>) -> Self {
        self.rules.default = Some(value.into());
        self
    }

    fn add(mut self, value: String, title: Option<String>) -> Self {
        if !self.rules.options.push(value, title) {
            self.remember(FieldProblem::DuplicateOption);
        }
        self
    }
}

impl FieldBuilder<MultiSelectRules> {
    /// An option with a title. One of these is enough to make the select a titled one (`anyOf`, R-121).
    pub fn option(self, value: impl Into<String>, title: impl Into<String>) -> Self {
        self.add(value.into(), Some(title.into()))
    }

    /// An option that is shown as its value (`enum`, R-120).
    pub fn choice(self, value: impl Into<String>) -> Self {
        self.add(value.into(), None)
    }

    /// Fewest options to choose.
    pub const fn min_items(mut self, items: u64) -> Self {
        self.rules.min_items = Some(items);
        self
    }

    /// Most options to choose.
    pub const fn max_items(mut self, items: u64) -> Self {
        self.rules.max_items = Some(items);
        self
    }

    /// The options that are chosen at first. The server never fills them in itself (G-21).
    pub fn default<T: Into<String>>(mut self, values: impl IntoIterator<Item = T>) -> Self {
        self.rules.default = Some(values.into_iter().map(Into::into).collect());
        self
    }

    fn add(mut self, value: String, title: Option<String>) -> Self {
        if !self.rules.options.push(value, title) {
            self.remember(FieldProblem::DuplicateOption);
        }
        self
    }
}

macro_rules! drafts {
    ($($rules:ty => $kind:path;)*) => {$(
        impl From<FieldBuilder<$rules>> for Draft {
            fn from(builder: FieldBuilder<$rules>) -> Self {
                builder.draft($kind)
            }
        }
    )*};
}

drafts! {
    StringRules => FieldKind::String;
    NumberRules => FieldKind::Number;
    BooleanRules => FieldKind::Boolean;
    SelectRules => FieldKind::Select;
    MultiSelectRules => FieldKind::MultiSelect;
}

impl Draft {
    /// The field, or its name and what is wrong with it.
    pub(super) fn check(self) -> Result<Field, (String, FieldProblem)> {
        match self.fault.or_else(|| fault_of(&self.field)) {
            Some(problem) => Err((self.field.name, problem)),
            None => Ok(self.field),
        }
    }
}

impl From<Field> for Draft {
    fn from(field: Field) -> Self {
        Self { field, fault: None }
    }
}

/// What is wrong with a field that somebody wants to ask.
fn fault_of(field: &Field) -> Option<FieldProblem> {
    let length = field.name.chars().take(NAME_CHARS_MAX + 1).count();
    // An object literal with `__proto__` in it loses the member in JavaScript (trap 30).
    if length == 0
        || length > NAME_CHARS_MAX
        || field.name == "__proto__"
        || field.name.chars().any(char::is_control)
    {
        return Some(FieldProblem::BadName);
    }
    let options = match &field.kind {
        FieldKind::Select(rules) => Some(&rules.options),
        FieldKind::MultiSelect(rules) => Some(&rules.options),
        FieldKind::String(_) | FieldKind::Number(_) | FieldKind::Boolean(_) => None,
    };
    match options.map(Options::len) {
        Some(0) => return Some(FieldProblem::NoOptions),
        Some(many) if many > OPTIONS_MAX => return Some(FieldProblem::TooManyOptions { limit: OPTIONS_MAX }),
        _ => {}
    }
    let above = |low: Option<u64>, high: Option<u64>| low.zip(high).is_some_and(|(low, high)| low > high);
    let crossed = match &field.kind {
        FieldKind::String(rules) => above(rules.min_length, rules.max_length),
        FieldKind::Number(rules) => {
            rules.minimum.as_ref().zip(rules.maximum.as_ref()).is_some_and(|(low, high)| low > high)
        }
        FieldKind::MultiSelect(rules) => {
            let all = u64::try_from(rules.options.len()).ok();
            above(rules.min_items, rules.max_items) || above(rules.min_items, all)
        }
        FieldKind::Boolean(_) | FieldKind::Select(_) => false,
    };
    if crossed {
        return Some(FieldProblem::CrossedBounds);
    }
    let default = field.default()?;
    field.check(Json::trusted(&default)).err().map(FieldProblem::Default)
}

/// What is wrong with a field of a form that is being built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldProblem {
    /// Empty, longer than [`NAME_CHARS_MAX`], with control characters, or `__proto__`, which peers lose.
    #[error("the name is empty, too long, has control characters or is reserved")]
    BadName,
    /// Another field has the same name.
    #[error("another field has the same name")]
    DuplicateName,
    /// A select without options.
    #[error("a select needs at least one option")]
    NoOptions,
    /// The same option twice.
    #[error("an option stands there twice")]
    DuplicateOption,
    /// More options than [`OPTIONS_MAX`].
    #[error("there are more than {limit} options (OPTIONS_MAX)")]
    TooManyOptions {
        /// The bound, in options.
        limit: usize,
    },
    /// The lower bound is above the upper one, or above the number of options.
    #[error("no value satisfies both bounds")]
    CrossedBounds,
    /// A bound or default is infinite, or no number.
    #[error("a bound or default is not a finite number")]
    NotFinite,
    /// The default does not satisfy the field's own rules.
    #[error("the default {0}")]
    Default(Problem),
    /// The type of the field says something that a form cannot.
    #[error("a form cannot express {0}")]
    NotExpressible(&'static str),
}
