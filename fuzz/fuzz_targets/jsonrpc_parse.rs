//! Admission on arbitrary bytes: no panic, serde_json agrees on what is JSON, ids survive a round trip, and
//! whatever was admitted can be read to the end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mrtr_core::{
    ErrorCode, Limits,
    jsonrpc::{Json, JsonKind, Message, Refusal, RequestId, admit},
};
use serde::de::IgnoredAny;

fuzz_target!(|bytes: &[u8]| {
    agrees_with_serde_json(bytes);
    for limits in [Limits::default(), mrtr_fuzz::wide(), mrtr_fuzz::tight()] {
        match admit(bytes, &limits) {
            Ok(Message::Request(request)) => {
                survives(&request.id);
                request.params.into_iter().for_each(read);
                assert_eq!(
                    request.param("_meta").is_some(),
                    request.params.is_some_and(|p| p.get("_meta").is_some())
                );
            }
            Ok(Message::Notification(notification)) => notification.params.into_iter().for_each(read),
            Ok(Message::Response(response)) => {
                response.id.iter().for_each(survives);
                match response.outcome {
                    Ok(result) => read(result),
                    Err(error) => {
                        if let Some(data) = error.data() {
                            read(Json::parse(data.as_str(), &limits).expect("the data of an error is JSON"));
                        }
                    }
                }
            }
            Err(refused) => {
                refused.id.iter().chain(&refused.response_to).for_each(survives);
                // Both are those of one message.
                assert!(
                    refused.id.is_none()
                        || refused.response_to.is_none()
                        || refused.id == refused.response_to
                );
                assert!(refused.response_to.is_none() || !refused.asks_or_tells());
                assert!(refused.id.is_none() || refused.wants_answer());
                let code = refused.error().code;
                assert!(code == ErrorCode::PARSE_ERROR || code == ErrorCode::INVALID_REQUEST);
            }
        }
    }
});

/// Whether it is JSON is no matter of opinion.
fn agrees_with_serde_json(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    let theirs = serde_json::from_str::<IgnoredAny>(text);
    match Json::parse(text, &mrtr_fuzz::wide()) {
        Ok(value) => {
            assert!(theirs.is_ok(), "{theirs:?}");
            assert_eq!(value.as_str(), text.trim_matches([' ', '\t', '\r', '\n']));
            let _ = mrtr_fuzz::canonical(value);
        }
        Err(Refusal::Syntax { at }) => assert!(theirs.is_err() && at <= text.len()),
        Err(Refusal::DuplicateName { at }) => assert_eq!(text.as_bytes()[at], b'"'),
        Err(Refusal::TooDeep { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

/// Written, sent and read again, an id is the same id.
fn survives(id: &RequestId) {
    let mut message = br#"{"jsonrpc":"2.0","method":"m","id":"#.to_vec();
    id.write(&mut message);
    message.push(b'}');
    let mut limits = Limits::default();
    limits.message_bytes = usize::MAX;
    match admit(&message, &limits) {
        Ok(Message::Request(request)) => assert_eq!(&request.id, id),
        other => panic!("{other:?}"),
    }
}

/// Reads a value to the end, without recursion.
fn read(value: Json<'_>) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value.kind() {
            JsonKind::Object => open.extend(value.members().expect("an object").map(|(_, member)| member)),
            JsonKind::Array => open.extend(value.items().expect("an array")),
            JsonKind::String => drop(value.as_string()),
            JsonKind::Bool => assert!(value.as_bool().is_some()),
            JsonKind::Null => assert_eq!(value, Json::NULL),
            JsonKind::Number => {
                assert!(value.as_str().bytes().all(|byte| b"+-.eE0123456789".contains(&byte)))
            }
        }
        assert!(serde_json::from_str::<IgnoredAny>(value.as_str()).is_ok());
    }
}
