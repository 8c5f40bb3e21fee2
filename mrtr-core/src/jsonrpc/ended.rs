//! An object that the bounded pass has just gone over: its members, by what the pass remembers of it.

use alloc::borrow::Cow;

use super::{Json, lex, text};

/// An object that has ended. The places of its names are known, and each value stands between two of them: what is in
/// the values is not walked again.
pub(super) struct Ended<'p, 'a> {
    pub(super) text: &'a str,
    /// Where the name stands of the member that it is the value of; `None` for the object at the top.
    pub(super) name: Option<usize>,
    /// Where its names stand.
    pub(super) names: &'p [usize],
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
        let commas = self.names.iter().skip(1).map(|&next| lex::space_before(bytes, next).saturating_sub(1));
        let ends = commas.chain([self.end]).map(|end| lex::space_before(bytes, end));
        self.names.iter().zip(ends).filter_map(|(&name, end)| member(self.text, name, end))
    }
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

/// The member whose name stands at `at` and whose value ends at `end`.
fn member(text: &str, at: usize, end: usize) -> Option<(Cow<'_, str>, Json<'_>)> {
    let bytes = text.as_bytes();
    let (name_end, plain) = lex::skip_string_plain(bytes, at);
    let name = name(text.get(at + 1..name_end.saturating_sub(1))?, plain)?;
    let colon = lex::skip_space(bytes, name_end);
    Some((name, Json::trusted(text.get(lex::skip_space(bytes, colon + 1)..end)?)))
}
