//! An object that the bounded pass has just gone over: its members, by what the pass remembers of it.

use alloc::borrow::Cow;

use super::{Json, lex, text};

/// Where a name stands.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    /// Where it opens.
    pub(super) at: usize,
    /// Behind its closing quote; where it opens, if it has escapes and has to be read again.
    pub(super) end: usize,
}

/// An object that has ended. The places of its names are known, and each value stands between two of them: what is in
/// the values is not walked again.
pub(super) struct Ended<'p, 'a> {
    pub(super) text: &'a str,
    /// The name of the member that it is the value of; `None` for the object at the top.
    pub(super) name: Option<Place>,
    /// Its names.
    pub(super) names: &'p [Place],
    /// Where its bracket closes.
    pub(super) end: usize,
}

impl<'a> Ended<'_, 'a> {
    /// Whether it is the object at the top.
    pub(super) const fn is_top(&self) -> bool {
        self.name.is_none()
    }

    /// The member that it is the value of.
    pub(super) fn member(&self) -> Option<(Cow<'a, str>, Json<'a>)> {
        member(self.text, self.name?, self.end + 1)
    }

    /// Its members, but for those that nobody looks for.
    pub(super) fn members(&self) -> impl Iterator<Item = (Cow<'a, str>, Json<'a>)> {
        let bytes = self.text.as_bytes();
        // Before a name are a comma and the value before it.
        let commas =
            self.names.iter().skip(1).map(|next| lex::space_before(bytes, next.at).saturating_sub(1));
        let ends = commas.chain([self.end]).map(|end| lex::space_before(bytes, end));
        self.names.iter().zip(ends).filter_map(|(&name, end)| member(self.text, name, end))
    }
}

/// The member with this name whose value ends at `end`.
fn member(text: &str, name: Place, end: usize) -> Option<(Cow<'_, str>, Json<'_>)> {
    let bytes = text.as_bytes();
    let plain = name.end > name.at;
    let name_end = if plain { name.end } else { lex::skip_string(bytes, name.at) };
    let name = self::name(text.get(name.at + 1..name_end - 1)?, plain)?;
    let colon = lex::skip_space(bytes, name_end);
    Some((name, Json::trusted(text.get(lex::skip_space(bytes, colon + 1)..end)?)))
}

/// The name of a member, given what stands between its quotes and whether that has no escapes; `None` if it is no text,
/// or written longer than any that is looked for: nothing longer is decoded.
pub(super) fn name(inside: &str, plain: bool) -> Option<Cow<'_, str>> {
    const LONGEST: usize = 6 * "inputResponses".len();
    match plain {
        true => Some(Cow::Borrowed(inside)),
        false if inside.len() <= LONGEST => text::decode_inside(inside).ok(),
        false => None,
    }
}
