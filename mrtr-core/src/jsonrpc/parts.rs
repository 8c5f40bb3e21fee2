//! What stands one level below the top of a message: the members of `params` and of `result` that are read of most
//! messages. Admission sees where they are when it goes over the text, so that nobody has to walk there again.

use super::Json;

/// The members of `params` or of `result` that are read of most messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub(crate) meta: Option<Json<'a>>,
    pub(crate) name: Option<Json<'a>>,
    pub(crate) uri: Option<Json<'a>>,
    pub(crate) arguments: Option<Json<'a>>,
    pub(crate) reference: Option<Json<'a>>,
    /// `inputResponses`
    pub(crate) responses: Option<Json<'a>>,
    /// `inputRequests`
    pub(crate) requests: Option<Json<'a>>,
    /// `requestState`
    pub(crate) state: Option<Json<'a>>,
    /// `resultType`
    pub(crate) kind: Option<Json<'a>>,
}

/// How many parts there are.
pub(super) const COUNT: usize = 9;

impl<'a> Parts<'a> {
    /// Walks to them; a value that is no object has none.
    pub(crate) fn of(object: Json<'a>) -> Self {
        let mut parts = Self::default();
        for (name, value) in object.members().into_iter().flatten() {
            parts.see(&name, value);
        }
        parts
    }

    /// All of them, in some order.
    pub(super) const fn all(self) -> [Option<Json<'a>>; COUNT] {
        let Self { meta, name, uri, arguments, reference, responses, requests, state, kind } = self;
        [meta, name, uri, arguments, reference, responses, requests, state, kind]
    }

    /// Those of which these are all, in the same order.
    pub(super) const fn from_all(all: [Option<Json<'a>>; COUNT]) -> Self {
        let [meta, name, uri, arguments, reference, responses, requests, state, kind] = all;
        Self { meta, name, uri, arguments, reference, responses, requests, state, kind }
    }

    /// Takes note of a member, if it is one of them.
    pub(super) fn see(&mut self, name: &str, value: Json<'a>) {
        let place = match name {
            "_meta" => &mut self.meta,
            "name" => &mut self.name,
            "uri" => &mut self.uri,
            "arguments" => &mut self.arguments,
            "ref" => &mut self.reference,
            "inputResponses" => &mut self.responses,
            "inputRequests" => &mut self.requests,
            "requestState" => &mut self.state,
            "resultType" => &mut self.kind,
            _ => return,
        };
        *place = Some(value);
    }
}

/// The parts that admission saw, and of which object: a message's fields are open, and another may have been put there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Admitted<'a> {
    pub(super) object: Option<Json<'a>>,
    pub(super) parts: Parts<'a>,
}

impl<'a> Admitted<'a> {
    /// The parts of `object`: as admission saw them, if it is the one, else by a walk.
    pub(crate) fn parts(&self, object: Json<'a>) -> Parts<'a> {
        match self.object {
            Some(seen) if core::ptr::eq(seen.as_str(), object.as_str()) => self.parts,
            Some(_) | None => Parts::of(object),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::String};

    use super::*;
    use crate::{
        Limits,
        jsonrpc::{Admission, Message, admit},
    };

    const MEMBERS: &str = concat!(
        r#"{"x":{"name":0,"uri":[{"uri":1}]}, "\u005fmeta" :{"name":{"name":2}},"name":"n","uri":[{"uri":3}],"#,
        r#""arguments":{"arguments":{}},"ref":null,"inputResponses":{},"inputRequests":4 ,"requestState":"s","#,
        r#""r\u0065sultType":"t","y":[],"\ud800":{"name":5}}"#
    );

    fn seen(admitted: &Admitted<'_>, object: Json<'_>) -> bool {
        admitted.object.is_some_and(|seen| core::ptr::eq(seen.as_str(), object.as_str()))
    }

    /// What admission saw is what a walk finds, wherever the object stands and however its name is written, and whoever has
    /// the text.
    #[test]
    fn what_was_seen_is_what_is_there() {
        let walked = Parts::of(Json::trusted(MEMBERS));
        let parts = [
            r#"{"name":{"name":2}}"#,
            r#""n""#,
            r#"[{"uri":3}]"#,
            r#"{"arguments":{}}"#,
            "null",
            "{}",
            "4",
            r#""s""#,
            r#""t""#,
        ];
        let [meta, name, uri, arguments, reference, responses, requests, state, kind] =
            parts.map(|part| Some(Json::trusted(part)));
        let expected = Parts { meta, name, uri, arguments, reference, responses, requests, state, kind };
        assert_eq!(walked, expected);
        for object in [MEMBERS, "{}", r#"{"z":{"name":1}}"#] {
            for request in [
                r#"{"jsonrpc":"2.0","id":1,"method":"m","params":@}"#,
                r#"{"jsonrpc":"2.0","par\u0061ms":@ ,"other":{"name":7,"uri":8},"id":1,"method":"m"}"#,
                r#"{"other":{"name":7,"uri":8},"params":@,"method":"m","jsonrpc":"2.0","id":1}"#,
            ] {
                let text = request.replace('@', object);
                let Ok(Message::Request(request)) = admit(text.as_bytes(), &Limits::default()) else {
                    panic!("{text}")
                };
                let params = request.params.unwrap();
                assert!(seen(&request.admitted, params), "{text}");
                assert_eq!(request.parts(), Parts::of(params), "{text}");

                let owned = Admission::of(text.clone().into_bytes(), &Limits::default());
                let Ok(Message::Request(owned)) = owned.message() else { panic!("{text}") };
                assert!(seen(&owned.admitted, owned.params.unwrap()), "{text}");
                assert_eq!(owned.parts(), request.parts(), "{text}");
            }
            for response in [
                r#"{"jsonrpc":"2.0","id":1,"result":@}"#,
                r#"{"jsonrpc":"2.0","id":1,"params":{"name":7},"result":@,"x":{"uri":8}}"#,
                r#"{"jsonrpc":"2.0","id":1,"r\u0065sult":@,"params":{"name":7}}"#,
            ] {
                let text = response.replace('@', object);
                let Ok(Message::Response(response)) = admit(text.as_bytes(), &Limits::default()) else {
                    panic!("{text}")
                };
                let result = response.outcome.unwrap();
                assert_eq!(response.admitted.parts(result), Parts::of(result), "{text}");

                let owned = Admission::of(text.clone().into_bytes(), &Limits::default());
                let Ok(Message::Response(owned)) = owned.message() else { panic!("{text}") };
                assert_eq!(owned.admitted.parts(owned.outcome.unwrap()), Parts::of(result), "{text}");
            }
        }
    }

    /// Also where every character of the longest is written as an escape.
    #[test]
    fn a_name_may_be_written_as_escapes() {
        let name: String = "inputResponses".chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"{name}":{{}}}}}}"#);
        let Ok(Message::Request(request)) = admit(text.as_bytes(), &Limits::default()) else {
            panic!("{text}")
        };
        assert_eq!(request.parts(), Parts { responses: Some(Json::EMPTY_OBJECT), ..Parts::default() });
    }

    /// Parameters that were put there later are looked at themselves.
    #[test]
    fn other_parameters_have_other_parts() {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"a","uri":"u"}}"#;
        let Ok(Message::Request(mut request)) = admit(text.as_bytes(), &Limits::default()) else { panic!() };
        assert_eq!(request.parts().name.map(Json::as_str), Some("\"a\""));
        request.params = Some(Json::trusted(r#"{"name":"b"}"#));
        assert_eq!(request.parts(), Parts { name: Some(Json::trusted("\"b\"")), ..Parts::default() });
        request.params = None;
        assert_eq!(request.parts(), Parts::default());
    }
}
