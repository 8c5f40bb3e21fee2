//! A message that owns its bytes and was admitted once, however many look at it.

use alloc::{string::String, vec::Vec};
use core::ops::Range;

use super::{
    Json, Message, Refused,
    admit::{self, Outline},
    parts::{self, Admitted as Seen, Parts},
};
use crate::limits::Limits;

/// What admission made of one message, together with the message: for an adapter that has to look at a message
/// before it knows who takes it, and keeps it meanwhile. [`admit`](super::admit()) does the same for bytes that are
/// borrowed.
///
/// ```
/// use mrtr_core::{Limits, jsonrpc::{Admission, Message}};
///
/// let bytes = br#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#.to_vec();
/// let admission = Admission::of(bytes, &Limits::default());
/// assert!(matches!(admission.message(), Ok(Message::Request(request)) if request.method == "tools/list"));
/// ```
///
/// [`Debug`](core::fmt::Debug) shows the length, never the content.
#[derive(Clone)]
pub struct Admission(Result<Admitted, Refused>);

#[derive(Clone)]
struct Admitted {
    text: String,
    value: Range<usize>,
    /// Version, id, method, params, result, error.
    members: [Option<Range<usize>>; 6],
    /// The object that was looked into, the params or the result, and its parts.
    object: Option<Range<usize>>,
    parts: [Option<Range<usize>>; parts::COUNT],
}

impl Admission {
    /// Admits one message. The bytes of one that is refused are dropped.
    #[must_use]
    pub fn of(input: Vec<u8>, limits: &Limits) -> Self {
        Self(Admitted::of(input, limits))
    }

    /// The message, or why it is none. This costs no second look at what is in it.
    ///
    /// # Errors
    ///
    /// As for [`admit`](super::admit()).
    pub fn message(&self) -> Result<Message<'_>, Refused> {
        self.0.as_ref().map_err(Clone::clone)?.message()
    }
}

impl Admitted {
    fn of(input: Vec<u8>, limits: &Limits) -> Result<Self, Refused> {
        admit::check_size(&input, limits)?;
        let text = String::from_utf8(input).map_err(|error| admit::not_utf8(error.as_bytes()))?;
        let (value, members, object, parts) = admit::outlined(&text, limits, |value, outline| {
            admit::sort(value, outline)?;
            let &Outline { version, id, method, params, result, error, admitted, .. } = outline;
            let place = |part: Json<'_>| part.place_in(&text);
            let members = [version, id, method, params, result, error].map(|member| member.map(place));
            let parts = admitted.parts.all().map(|part| part.map(place));
            Ok((place(value), members, admitted.object.map(place), parts))
        })?;
        Ok(Self { text, value, members, object, parts })
    }

    fn message(&self) -> Result<Message<'_>, Refused> {
        // Places of whole values in a text that has not changed since.
        let at = |place: &Range<usize>| Json::trusted(self.text.get(place.clone()).unwrap_or(""));
        let [version, id, method, params, result, error] =
            self.members.each_ref().map(|member| member.as_ref().map(at));
        let parts = Parts::from_all(self.parts.each_ref().map(|part| part.as_ref().map(at)));
        let admitted = Seen { object: self.object.as_ref().map(at), parts };
        let outline = Outline { version, id, method, params, result, error, admitted, two_ids: false };
        admit::sort(at(&self.value), &outline)
    }
}

impl core::fmt::Debug for Admission {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match &self.0 {
            Ok(admitted) => write!(f, "Admission({} bytes)", admitted.text.len()),
            Err(refused) => write!(f, "Admission({})", refused.reason),
        }
    }
}
