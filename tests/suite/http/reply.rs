//! Status, headers and body of a reply.

use mrtr_core::{
    Limits,
    framing::EventStreamDecoder,
    http::{Accepts, Content, ReplyBody, ReplyClass},
    jsonrpc::admit,
};

const NOTE: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
const RESULT: &[u8] = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

fn events(body: &[u8]) -> Vec<Vec<u8>> {
    let mut decoder = EventStreamDecoder::new(1 << 20);
    decoder.push(body);
    let mut events = Vec::new();
    while let Some(event) = decoder.next() {
        events.push(event.unwrap().data.to_vec());
    }
    events
}

#[test]
fn statuses_g01() {
    for (class, status) in [
        (ReplyClass::Result, 200),
        (ReplyClass::HandlerError, 200),
        (ReplyClass::Internal, 200),
        (ReplyClass::Accepted, 202),
        (ReplyClass::ParseError, 400),
        (ReplyClass::InvalidRequest, 400),
        (ReplyClass::MetaInvalid, 400),
        (ReplyClass::HeaderMismatch, 400),
        (ReplyClass::MissingCapability, 400),
        (ReplyClass::UnsupportedVersion, 400),
        (ReplyClass::Forbidden, 403),
        (ReplyClass::MethodNotFound, 404),
        (ReplyClass::UnknownSession, 404),
        (ReplyClass::MethodNotAllowed, 405),
        (ReplyClass::NotAcceptable, 406),
        (ReplyClass::TooLarge, 413),
        (ReplyClass::UnsupportedMediaType, 415),
    ] {
        assert_eq!(class.status(), status, "{class:?}");
    }
}

#[test]
fn statuses_of_messages_that_are_not_admitted_r019() {
    let mut limits = Limits::default();
    limits.message_bytes = 100;
    limits.depth = 3;
    let class = |body: &[u8]| ReplyClass::from(&admit(body, &limits).unwrap_err());
    assert_eq!(class(b"{"), ReplyClass::ParseError);
    assert_eq!(class(b"\"\xff\""), ReplyClass::ParseError);
    assert_eq!(class(b"[]"), ReplyClass::InvalidRequest);
    assert_eq!(class(b"{}"), ReplyClass::InvalidRequest);
    assert_eq!(class(br#"{"a":{"b":{"c":{}}}}"#), ReplyClass::InvalidRequest);
    assert_eq!(class(br#"{"jsonrpc":"2.0","method":"m","method":"m"}"#), ReplyClass::InvalidRequest);
    assert_eq!(class(&[b' '; 101]), ReplyClass::TooLarge);
}

#[test]
fn one_message_is_one_body_r177_r182() {
    for (class, message) in
        [(ReplyClass::Result, RESULT), (ReplyClass::MissingCapability, b"{\n}".as_slice())]
    {
        let mut body = ReplyBody::new(Accepts::BOTH);
        let mut out = Vec::new();
        let head = body.finish(class, message, &mut out).unwrap();
        assert_eq!((head.status, head.content), (class.status(), Content::Json));
        assert!(head.headers().contains(&("Content-Type", "application/json")));
        assert!(head.headers().contains(&("Cache-Control", "no-store")));
        assert_eq!(out, message.split(|byte| *byte == b'\n').collect::<Vec<_>>().concat());
        // The reply ends the stream (R-179).
        assert!(body.is_ended());
    }
}

#[test]
fn the_stream_opens_at_the_first_notification_r178_r179_r180() {
    let mut body = ReplyBody::new(Accepts::BOTH);
    let mut out = Vec::new();
    let head = body.notification(NOTE, &mut out).unwrap();
    assert_eq!((head.status, head.content), (200, Content::EventStream));
    assert!(head.headers().contains(&("Content-Type", "text/event-stream")));
    assert!(head.headers().contains(&("X-Accel-Buffering", "no")));
    assert!(body.notification(NOTE, &mut out).is_none());
    assert!(body.keep_alive(&mut out).is_none());
    assert!(!body.is_ended());
    // Too late for a status of its own: it is an event on a 200 (design decision 9).
    assert!(body.finish(ReplyClass::MissingCapability, RESULT, &mut out).is_none());
    assert!(body.is_ended());
    assert_eq!(events(&out), [NOTE, NOTE, RESULT]);
    assert_eq!(out.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b":")).count(), 1);
}

#[test]
fn after_the_response_nothing_is_sent_r179_r196() {
    for open in [false, true] {
        let mut body = ReplyBody::new(Accepts::BOTH);
        let mut out = Vec::new();
        if open {
            let _ = body.notification(NOTE, &mut out);
        }
        let _ = body.finish(ReplyClass::Result, RESULT, &mut out);
        let sent = out.len();
        assert!(body.notification(NOTE, &mut out).is_none());
        assert!(body.keep_alive(&mut out).is_none());
        assert!(body.finish(ReplyClass::Result, RESULT, &mut out).is_none());
        assert_eq!(out.len(), sent);
    }
}

#[test]
fn keep_alive_opens_a_stream_as_well_r180() {
    let mut body = ReplyBody::new(Accepts::BOTH);
    let mut out = Vec::new();
    assert_eq!(body.keep_alive(&mut out).unwrap().content, Content::EventStream);
    assert_eq!(out, b":\n\n");
    assert!(body.finish(ReplyClass::Result, RESULT, &mut out).is_none());
    assert_eq!(events(&out), [RESULT]);
}

#[test]
fn an_accepted_notification_has_no_body_r160() {
    let mut body = ReplyBody::new(Accepts::BOTH);
    let mut out = Vec::new();
    let head = body.finish(ReplyClass::Accepted, b"", &mut out).unwrap();
    assert_eq!((head.status, head.content), (202, Content::Empty));
    assert!(head.headers().iter().all(|(name, _)| *name != "Content-Type"));
    assert!(out.is_empty());
}

#[test]
fn clients_that_read_only_one_type_r177() {
    // No stream, so nothing to carry notifications.
    let mut body = ReplyBody::new(Accepts::JSON);
    let mut out = Vec::new();
    assert!(body.notification(NOTE, &mut out).is_none());
    assert!(body.keep_alive(&mut out).is_none());
    assert_eq!(body.finish(ReplyClass::Result, RESULT, &mut out).unwrap().content, Content::Json);
    assert_eq!(out, RESULT);
    // No JSON, so even a lone result is an event; an error with a status of its own is not.
    let mut body = ReplyBody::new(Accepts::EVENT_STREAM);
    out.clear();
    let head = body.finish(ReplyClass::Result, RESULT, &mut out).unwrap();
    assert_eq!((head.status, head.content), (200, Content::EventStream));
    assert_eq!(events(&out), [RESULT]);
    let mut body = ReplyBody::new(Accepts::EVENT_STREAM);
    let head = body.finish(ReplyClass::HeaderMismatch, RESULT, &mut Vec::new()).unwrap();
    assert_eq!((head.status, head.content), (400, Content::Json));
}
