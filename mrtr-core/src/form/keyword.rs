//! The keywords of one schema object.

use crate::jsonrpc::Json;

/// The keywords that mean something in a form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Type,
    Title,
    Description,
    Default,
    MinLength,
    MaxLength,
    Format,
    Minimum,
    Maximum,
    Enum,
    EnumNames,
    OneOf,
    AnyOf,
    Items,
    MinItems,
    MaxItems,
    Properties,
    Required,
}

impl Key {
    const ALL: [(&'static str, Self); 18] = [
        ("type", Self::Type),
        ("title", Self::Title),
        ("description", Self::Description),
        ("default", Self::Default),
        ("minLength", Self::MinLength),
        ("maxLength", Self::MaxLength),
        ("format", Self::Format),
        ("minimum", Self::Minimum),
        ("maximum", Self::Maximum),
        ("enum", Self::Enum),
        ("enumNames", Self::EnumNames),
        ("oneOf", Self::OneOf),
        ("anyOf", Self::AnyOf),
        ("items", Self::Items),
        ("minItems", Self::MinItems),
        ("maxItems", Self::MaxItems),
        ("properties", Self::Properties),
        ("required", Self::Required),
    ];

    pub(super) fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, key)| *key == self).map_or("", |(word, _)| word)
    }
}

/// Keywords that change what is valid in ways that a form cannot show.
const COMPOSITION: [&str; 6] = ["$ref", "$dynamicRef", "$recursiveRef", "allOf", "not", "if"];

/// The members of one schema object, found in one pass. Null is absent.
pub(super) struct Keywords<'a> {
    found: [Option<Json<'a>>; Key::ALL.len()],
    /// The first keyword of [`COMPOSITION`].
    pub(super) composition: Option<&'static str>,
}

impl<'a> Keywords<'a> {
    /// `None` if `value` is no object.
    pub(super) fn of(value: Json<'a>) -> Option<Self> {
        let mut keywords = Self { found: [None; Key::ALL.len()], composition: None };
        for (name, member) in value.members()?.filter(|(_, member)| !member.is_null()) {
            if let Some(at) = Key::ALL.iter().position(|(word, _)| *word == name) {
                if let Some(slot) = keywords.found.get_mut(at) {
                    slot.get_or_insert(member);
                }
            } else if let Some(word) = COMPOSITION.into_iter().find(|word| *word == name) {
                keywords.composition.get_or_insert(word);
            }
        }
        Some(keywords)
    }

    pub(super) fn get(&self, key: Key) -> Option<Json<'a>> {
        let at = Key::ALL.iter().position(|(_, known)| *known == key)?;
        self.found.get(at).copied().flatten()
    }
}
