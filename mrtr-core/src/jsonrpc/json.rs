//! A slice of text that is known to be one JSON value, read lazily and without copies.

use alloc::borrow::Cow;
use core::ops::Range;

use super::{lex, text};
use crate::limits::Limits;

/// One valid JSON value inside a message, as the text the peer sent.
///
/// Reading it never fails for reasons of syntax: admission has checked that. It is read by tag, never
/// guessed from its shape (design rule; no `flatten`, `tag` or `untagged` anywhere in the wire types).
///
/// [`Debug`](core::fmt::Debug) shows the kind and the length, never the content.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

/// What a JSON value is, by its first character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number
    Number,
    /// A string
    String,
    /// An array
    Array,
    /// An object
    Object,
}

impl<'a> Json<'a> {
    /// `null`, for places where a value is needed and none was given.
    pub const NULL: Self = Self("null");

    /// The empty object.
    pub const EMPTY_OBJECT: Self = Self("{}");

    /// Takes text that admission has checked, without white space around it.
    pub(crate) const fn trusted(text: &'a str) -> Self {
        Self(text)
    }

    /// Checks that `text` is exactly one JSON value within the bounds (depth, nodes, no duplicate names).
    ///
    /// # Errors
    ///
    /// What is wrong, as for a whole message.
    pub fn parse(text: &'a str, limits: &Limits) -> Result<Self, super::Refusal> {
        super::check::check_value(text, limits)
    }

    /// The text.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// Where it stands in `text`, which it is a part of.
    pub(crate) fn place_in(self, text: &str) -> Range<usize> {
        let from = self.0.as_ptr().addr().saturating_sub(text.as_ptr().addr());
        from..from + self.0.len()
    }

    /// What kind of value this is.
    #[must_use]
    pub fn kind(self) -> JsonKind {
        match self.0.as_bytes().first() {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'"') => JsonKind::String,
            Some(b't' | b'f') => JsonKind::Bool,
            Some(b'n') => JsonKind::Null,
            _ => JsonKind::Number,
        }
    }

    /// Whether this is `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// Whether this is an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        self.kind() == JsonKind::Object
    }

    /// The string, or `None` if this is no string or names no text (a lone surrogate).
    #[must_use]
    pub fn as_string(self) -> Option<Cow<'a, str>> {
        if self.kind() == JsonKind::String { text::decode(self.0).ok() } else { None }
    }

    /// The boolean, or `None` if this is none.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The members of an object in their order, or `None` if this is no object. A member whose name is no
    /// text (a lone surrogate) is left out: no name that anyone can ask for is equal to it.
    ///
    /// Every step finds the end of the member's value, so going through an object reads all of it once: read
    /// several members in one loop rather than with several calls of [`Json::get`].
    #[must_use]
    pub fn members(self) -> Option<Members<'a>> {
        self.is_object().then_some(Members { text: self.0, at: 1, nameless: 0 })
    }

    /// The elements of an array in their order, or `None` if this is no array.
    #[must_use]
    pub fn items(self) -> Option<Items<'a>> {
        (self.kind() == JsonKind::Array).then_some(Items { text: self.0, at: 1 })
    }

    /// The member called `name` of an object. `null` is `Some`: absent and null are different facts.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Self> {
        let mut members = self.members()?;
        loop {
            let (at, plain, value) = members.step()?;
            if plain.map_or_else(|| text::is(self.0, at, name), |plain| plain == name) {
                return Some(value);
            }
        }
    }

    /// The first members of an object that have these names, found in one pass over it that ends with the last of
    /// them; `None` if this is no object.
    pub(crate) fn pick<const N: usize>(self, names: [&str; N]) -> Option<[Option<Self>; N]> {
        let mut found = [None; N];
        self.pick_into(&names, &mut found)?;
        Some(found)
    }

    fn pick_into(self, names: &[&str], found: &mut [Option<Self>]) -> Option<()> {
        let mut members = self.members()?;
        let mut left = names.len();
        while left > 0
            && let Some((at, plain, value)) = members.step()
        {
            let is = |name: &str| plain.map_or_else(|| text::is(self.0, at, name), |plain| plain == name);
            let place = names.iter().zip(&mut *found).find(|(name, _)| is(name)).map(|(_, place)| place);
            if let Some(place @ None) = place {
                *place = Some(value);
                left -= 1;
            }
        }
        Some(())
    }

    /// Decodes into a type of your own.
    ///
    /// # Errors
    ///
    /// If the value does not fit `T`.
    pub fn decode<T: serde::Deserialize<'a>>(self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0)
    }
}

impl core::fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Json({:?}, {} bytes)", self.kind(), self.0.len())
    }
}

/// The members of an object; see [`Json::members`].
#[derive(Clone, Debug)]
pub struct Members<'a> {
    text: &'a str,
    at: usize,
    nameless: usize,
}

impl Members<'_> {
    /// How many members were passed over so far because their names are no text. For readers who must not
    /// miss a member, whatever it is called.
    pub(crate) const fn nameless(&self) -> usize {
        self.nameless
    }
}

impl<'a> Members<'a> {
    /// The next member: where its name opens, the name if it stands for itself, and the value.
    fn step(&mut self) -> Option<(usize, Option<&'a str>, Json<'a>)> {
        let bytes = self.text.as_bytes();
        self.at = lex::skip_space(bytes, self.at);
        if bytes.get(self.at) == Some(&b',') {
            self.at = lex::skip_space(bytes, self.at + 1);
        }
        let name = self.at;
        if bytes.get(name) != Some(&b'"') {
            return None;
        }
        let (name_end, plain) = lex::skip_string_plain(bytes, name);
        let colon = lex::skip_space(bytes, name_end);
        let start = lex::skip_space(bytes, colon + 1);
        self.at = lex::skip_value(bytes, start);
        let own = if plain { self.text.get(name + 1..name_end.saturating_sub(1)) } else { None };
        Some((name, own, Json(self.text.get(start..self.at)?)))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (at, plain, value) = self.step()?;
            if let Some(name) = plain {
                return Some((Cow::Borrowed(name), value));
            }
            let name_end = lex::skip_string(self.text.as_bytes(), at);
            match text::decode(self.text.get(at..name_end)?) {
                Ok(name) => return Some((name, value)),
                Err(text::LoneSurrogate) => self.nameless += 1,
            }
        }
    }
}

/// The elements of an array; see [`Json::items`].
#[derive(Clone, Debug)]
pub struct Items<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        self.at = lex::skip_space(bytes, self.at);
        if bytes.get(self.at) == Some(&b',') {
            self.at = lex::skip_space(bytes, self.at + 1);
        }
        if matches!(bytes.get(self.at), None | Some(b']')) {
            return None;
        }
        let start = self.at;
        self.at = lex::skip_value(bytes, start);
        self.text.get(start..self.at).filter(|text| !text.is_empty()).map(Json)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// What `pick` finds is what `get` finds, wherever it stands and however the name is written.
    #[test]
    fn several_members_are_picked_at_once() {
        let json = Json::trusted(r#"{"\ud800":0,"b":{"a":1}, "\u0061" : [2] ,"b":3,"c":null,"d":5}"#);
        let names = ["a", "b", "c", "x", "d"];
        assert_eq!(json.pick(names), Some(names.map(|name| json.get(name))));
        assert_eq!(json.pick(["b"]), Some([Some(Json::trusted(r#"{"a":1}"#))]));
        assert_eq!(json.pick(["a", "d"]).unwrap().map(|found| found.unwrap().as_str()), ["[2]", "5"]);
        assert_eq!(Json::EMPTY_OBJECT.pick(["a"]), Some([None]));
        assert_eq!(Json::trusted("[]").pick(["a"]), None);
    }

    /// Members whose names are no text are passed over, and counted up to where one is.
    #[test]
    fn members_without_a_name_are_counted() {
        let json = Json::trusted(r#"{"a":1,"\ud800":2,"\udc00b":3,"\u0063":4,"\ud800\ud800":5}"#);
        let mut members = json.members().unwrap();
        let seen: Vec<_> = core::iter::from_fn(|| {
            let (name, _) = members.next()?;
            Some((name, members.nameless()))
        })
        .collect();
        assert_eq!(seen, [("a".into(), 0), ("c".into(), 2)]);
        assert_eq!(members.nameless(), 3);
    }
}
