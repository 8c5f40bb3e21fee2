//! Lines and event streams, cut anywhere.

use mrtr_core::framing::{EventStreamDecoder, LineDecoder, fuzzing, write_comment, write_event, write_line};
use proptest::prelude::*;

type Line = Result<Vec<u8>, usize>;
type Event = Result<(String, String, String), usize>;

/// The lines of a stream that comes in pieces of `size` bytes.
fn lines(limit: usize, stream: &[u8], size: usize) -> Vec<Line> {
    let mut decoder = LineDecoder::new(limit);
    let mut lines = Vec::new();
    for piece in stream.chunks(size) {
        decoder.push(piece);
        while let Some(line) = decoder.next() {
            lines.push(line.map(<[u8]>::to_vec).map_err(|error| error.limit));
        }
    }
    lines
}

/// The events of a stream that comes in pieces of `size` bytes: data, kind, id.
fn events(limit: usize, stream: &[u8], size: usize) -> Vec<Event> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut decoder = EventStreamDecoder::new(limit);
    let mut events = Vec::new();
    for piece in stream.chunks(size) {
        decoder.push(piece);
        while let Some(event) = decoder.next() {
            events.push(
                event
                    .map(|event| (text(event.data), text(event.kind), text(event.id)))
                    .map_err(|error| error.limit),
            );
        }
    }
    events
}

fn data(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| &*event.as_ref().unwrap().0).collect()
}

fn line(text: &str) -> Line {
    Ok(text.as_bytes().to_vec())
}

#[test]
fn one_message_a_line_r183() {
    let stream = "{\"a\":1}\n\n  \t\r\n{\"b\":\"é\"}\r\n\r\n{\"c\":3}\nrest";
    let expected = [line("{\"a\":1}"), line("{\"b\":\"é\"}"), line("{\"c\":3}")];
    for size in 1..=stream.len() {
        assert_eq!(lines(64, stream.as_bytes(), size), expected, "pieces of {size}");
    }
}

#[test]
fn bytes_that_are_no_message_are_still_a_line_b81() {
    // Whether to answer or to ignore them is not for the decoder to say.
    let expected = [line("INFO started"), Ok(vec![0xff, 0xfe]), line("{}")];
    assert_eq!(lines(64, b"INFO started\n\xff\xfe\n{}\n", 3), expected);
}

#[test]
fn a_line_that_is_too_long_costs_one_error_r183() {
    for size in 1..40 {
        assert_eq!(
            lines(4, b"1234\n12345\n1234\r\n12345\r\nab\n1234567890123456789012\n1234\n", size),
            [line("1234"), Err(4), line("1234"), Err(4), line("ab"), Err(4), line("1234")],
            "pieces of {size}"
        );
    }
}

/// R-003: how a line began that was skipped says what it replied to, however it came; never more than 1 KiB is kept.
#[test]
fn how_a_line_began_that_is_too_long_r183() {
    let beginning = r#"{"jsonrpc":"2.0","id":7,"result":"#;
    for length in [100, 1_024, 5_000] {
        let long = format!("{beginning}{}", "x".repeat(length));
        let stream = format!("{{}}\n{long}\n{{}}\n");
        for size in [1, 7, 64, 6_000] {
            let mut decoder = LineDecoder::new(64);
            assert!(decoder.overlong().is_empty());
            let mut errors = 0;
            for piece in stream.as_bytes().chunks(size) {
                decoder.push(piece);
                while let Some(line) = decoder.next() {
                    errors += usize::from(line.is_err());
                }
            }
            assert_eq!(errors, 1);
            let kept = decoder.overlong();
            assert!(
                kept.starts_with(beginning.as_bytes())
                    && kept.len() <= 1_024
                    && long.as_bytes().starts_with(kept)
            );
        }
    }
}

#[test]
fn an_endless_line_is_not_kept_r183() {
    let mut decoder = LineDecoder::new(1000);
    let mut errors = 0;
    for _ in 0..10_000 {
        decoder.push(&[b'x'; 100]);
        while let Some(line) = decoder.next() {
            assert!(line.is_err());
            errors += 1;
        }
        assert!(decoder.buffered() <= 1001);
    }
    decoder.push(b"\nnext\n");
    assert_eq!(decoder.next().unwrap().unwrap(), b"next");
    assert_eq!(errors, 1);
}

#[test]
fn taking_one_line_a_push_keeps_nothing_back_r183() {
    let mut decoder = LineDecoder::new(1000);
    for _ in 0..1000 {
        decoder.push(b"0123456789\n");
        assert_eq!(decoder.next().unwrap().unwrap(), b"0123456789");
    }
    assert!(decoder.buffered() <= 22);
}

#[test]
fn what_stands_before_the_end_of_input_counts_r183() {
    let finish = |stream: &[u8]| {
        let mut decoder = LineDecoder::new(4);
        decoder.push(stream);
        while decoder.next().is_some() {}
        let last = decoder.finish().map(|line| line.map(<[u8]>::to_vec).map_err(|error| error.limit));
        assert!(decoder.finish().is_none());
        last
    };
    assert_eq!(finish(b"a\n{}"), Some(line("{}")));
    assert_eq!(finish(b"a\n{}\r"), Some(line("{}")));
    assert_eq!(finish(b"a\n12345"), Some(Err(4)));
    // This one was reported by `next`.
    assert_eq!(finish(b"a\n1234567"), None);
    assert_eq!(finish(b"a\n"), None);
    assert_eq!(finish(b""), None);
}

/// R-183: of a peer that dies in the middle of a line, that line is lost; one that is only unusual is not.
#[test]
fn what_was_cut_off_by_the_end_of_input_does_not_count_r183() {
    let deep = "[".repeat(200) + &"]".repeat(200);
    for (last, kept) in [
        (r#"{"id":1,"result":{}}"#, true),
        ("[1]", true),
        (r#"{"a":1,"a":2}"#, true),
        (&deep, true),
        (r#"{"id":1,"result":{"#, false),
        (r#"{"id":1"#, false),
        ("xx", false),
        ("", false),
    ] {
        let mut decoder = LineDecoder::new(1_000);
        decoder.push(b"{}\n");
        decoder.push(last.as_bytes());
        assert_eq!(decoder.next(), Some(Ok(b"{}".as_slice())));
        assert_eq!(decoder.next(), None);
        assert_eq!(decoder.finish_whole(), kept.then_some(Ok(last.as_bytes())), "{last}");
    }
    let mut decoder = LineDecoder::new(4);
    decoder.push(b"a\n12345");
    assert_eq!(decoder.next(), Some(Ok(b"a".as_slice())));
    assert_eq!(decoder.next(), None);
    assert!(decoder.finish_whole().is_some_and(|line| line.is_err()), "what is too long is still told");
}

#[test]
fn writers_keep_a_message_on_one_line_r182_r183() {
    let pretty = b"{\r\n  \"a\": 1\n}";
    let mut out = Vec::new();
    write_line(&mut out, pretty);
    assert_eq!(out, b"{  \"a\": 1}\n");
    out.clear();
    write_event(&mut out, pretty);
    assert_eq!(out, b"event: message\ndata: {  \"a\": 1}\n\n");
    assert_eq!(data(&events(64, &out, 1)), ["{  \"a\": 1}"]);
    // No `id` and no `retry`: streams are not resumed (R-181).
    out.clear();
    write_comment(&mut out, "");
    write_comment(&mut out, "still\r\nhere");
    assert_eq!(out, b":\n\n: stillhere\n\n");
    assert_eq!(events(64, &out, 1), []);
}

#[test]
fn event_streams_as_the_standard_has_them_r177_r180() {
    let cases: &[(&str, &[&str])] = &[
        ("data: a\n\ndata: b\n\n", &["a", "b"]),
        // One space after the colon belongs to the syntax, further ones to the value.
        ("data:a\n\ndata:  b\n\n", &["a", " b"]),
        ("data: a\ndata: b\ndata:\ndata: c\n\n", &["a\nb\n\nc"]),
        ("data: a\r\rdata: b\r\n\r\ndata: c\n\r\n", &["a", "b", "c"]),
        ("data: a\rdata: b\ndata: c\r\n\r", &["a\nb\nc"]),
        // Comments, also as keep-alives between and within events.
        (":\n\n: keep-alive\ndata: a\n: data: no\ndata: b\n:\r\n\n", &["a\nb"]),
        // An event with an empty `data` line is one, an event without any is none.
        ("data\n\n", &[""]),
        ("data:\n\n", &[""]),
        ("event: message\n\nid: 3\n\n\n\n", &[]),
        // Unknown fields, names in other case, spaces before a name.
        ("note: x\nData: x\n data: x\ndata : x\ndata: a\n\n", &["a"]),
        ("\u{feff}data: a\n\n", &["a"]),
        ("\u{feff}\u{feff}data: x\n\ndata: a\n\n", &["a"]),
        ("data: \u{feff}é\n\n", &["\u{feff}é"]),
        // What the stream ends before is discarded.
        ("data: a\n\ndata: b\n", &["a"]),
        ("data: a\n\ndata: b", &["a"]),
    ];
    for (stream, expected) in cases {
        for size in 1..=stream.len() {
            assert_eq!(data(&events(64, stream.as_bytes(), size)), *expected, "{stream:?} in {size}");
        }
    }
}

#[test]
fn kind_and_id_of_events_r181() {
    let stream = "event: ping\ndata: a\n\ndata: b\nid: 1\n\nevent: message\ndata: c\n\nid\ndata: d\n\n\
                  id: x\u{0}y\ndata: e\n\nid: 2\n\ndata: f\n\n";
    let event = |data: &str, kind: &str, id: &str| Ok((data.to_owned(), kind.to_owned(), id.to_owned()));
    let expected = [
        event("a", "ping", ""),
        event("b", "", "1"),
        event("c", "message", "1"),
        event("d", "", ""),
        event("e", "", ""),
        event("f", "", "2"),
    ];
    for size in 1..=stream.len() {
        assert_eq!(events(64, stream.as_bytes(), size), expected, "pieces of {size}");
    }
    let mut decoder = EventStreamDecoder::new(64);
    decoder.push(stream.as_bytes());
    let messages = core::iter::from_fn(|| Some(decoder.next()?.unwrap().is_message())).collect::<Vec<_>>();
    assert_eq!(messages, [false, true, true, true, true, true]);
}

#[test]
fn retry_and_id_without_an_event_r181() {
    let mut decoder = EventStreamDecoder::new(64);
    decoder.push(b"retry: 1500\nretry: 1x\nretry:\nretry: 99999999999999999999999\nid: 7\n\n");
    assert!(decoder.next().is_none());
    assert_eq!(decoder.retry(), Some(core::time::Duration::from_millis(1500)));
    assert_eq!(decoder.last_event_id(), b"7");
}

#[test]
fn an_event_that_is_too_large_costs_one_error_r177() {
    let long = "x".repeat(200);
    let cases = [
        "data: 12345678\n\ndata: 123456789\ndata: y\n\ndata: z\n\n".to_owned(),
        // The LF that joins two lines counts.
        "data: 12345678\n\ndata: 1234\ndata: 5678\nid: 9\n\ndata: z\n\n".to_owned(),
        format!("data: 12345678\r\r\ndata: {long}\r\ndata: {long}\r\n\r\ndata: z\r\n\r\n"),
        // The id of an event that was dropped is dropped with it.
        "data: 12345678\n\nid: 9\ndata: 123456789\n\ndata: z\n\n".to_owned(),
        format!("data: 12345678\n\nunknown: {long}\ndata: a\n\ndata: z\n\n"),
    ];
    for stream in &cases {
        for size in 1..=stream.len() {
            let found = events(8, stream.as_bytes(), size);
            let [Ok(first), Err(8), Ok(last)] = &*found else { panic!("{stream:?} in {size}: {found:?}") };
            assert_eq!((&*first.0, &*last.0, &*last.2), ("12345678", "z", ""));
        }
    }
    // A comment may be of any length, and is passed over (R-180).
    for size in [1, 7, 500] {
        let stream = format!("data: a\n:{long}\ndata: b\n\n");
        assert_eq!(data(&events(8, stream.as_bytes(), size)), ["a\nb"]);
    }
    // Names are short.
    let stream = format!("event: {}\ndata: a\n\ndata: z\n\n", "x".repeat(1025));
    assert_eq!(events(1 << 20, stream.as_bytes(), 10).len(), 2);
    assert!(events(1 << 20, stream.as_bytes(), 10)[0].is_err());
}

#[test]
fn endless_streams_are_not_kept_r177() {
    for endless in
        ["data: xxxxxxxxxxxxxxxx", ":xxxxxxxxxxxx", "data: 1234\n", "id: 1\n", ":\n", "data: 12\n\n"]
    {
        let mut decoder = EventStreamDecoder::new(1000);
        for _ in 0..2_000 {
            decoder.push(endless.as_bytes());
            while decoder.next().is_some() {}
            assert!(decoder.buffered() < 2_100, "{endless}: {}", decoder.buffered());
        }
    }
}

#[test]
fn debug_output_hides_what_was_said() {
    let mut decoder = EventStreamDecoder::new(64);
    decoder.push(b"data: secret\n\ndata: secret");
    let shown = format!("{:?}", decoder.next().unwrap().unwrap());
    assert_eq!(shown, "Event(6 bytes)");
    assert!(!format!("{decoder:?}").contains("secret"));
    let mut decoder = LineDecoder::new(64);
    decoder.push(b"secret");
    assert!(!format!("{decoder:?}").contains("secret"));
}

/// The standard's algorithm over a whole stream, as plainly as it can be written: the data of the events.
fn reference(stream: &str) -> Vec<String> {
    let stream = stream.strip_prefix('\u{feff}').unwrap_or(stream);
    let stream = stream.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = stream.split('\n').collect();
    lines.pop();
    let (mut events, mut data) = (Vec::new(), String::new());
    for line in lines {
        if line.is_empty() {
            if let Some(whole) = data.strip_suffix('\n') {
                events.push(whole.to_owned());
            }
            data.clear();
        } else if let Some(value) = line.strip_prefix("data:") {
            data.push_str(value.strip_prefix(' ').unwrap_or(value));
            data.push('\n');
        } else if line == "data" {
            data.push('\n');
        }
    }
    events
}

/// Streams that look like streams: pieces of syntax in any order.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just("\n"), 2 => Just("\r"), 2 => Just("\r\n"), 3 => Just("data: "), 1 => Just("data"),
        1 => Just(":"), 1 => Just("event: "), 1 => Just("id: "), 1 => Just("retry: 5"), 2 => Just("{}"),
        1 => Just("\u{feff}"), 1 => Just("é"), 1 => Just(" "), 1 => Just("xxxxxxxxxxxxxxxxxxxx"),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// R-177: what is decoded is what the standard's algorithm gives.
    #[test]
    fn events_are_those_of_the_standard(stream in streams(), size in 1usize..20) {
        let text = core::str::from_utf8(&stream).unwrap();
        let found = events(10_000, &stream, size);
        prop_assert_eq!(data(&found), reference(text));
    }

    /// R-177: cut anywhere, with any limit, the events are the same, and memory is bounded.
    #[test]
    fn any_split_gives_the_same_events(
        limit in 0u8..40, sizes in prop::collection::vec(0u8..9, 0..6), stream in streams()
    ) {
        let count = u8::try_from(sizes.len()).unwrap();
        fuzzing::events_of_any_split(&[&[limit, count][..], &sizes, &stream].concat());
    }

    /// R-183: cut anywhere, with any limit, the lines are the same, and memory is bounded.
    #[test]
    fn any_split_gives_the_same_lines(
        limit in 0u8..40, sizes in prop::collection::vec(0u8..9, 0..6), stream in streams()
    ) {
        let count = u8::try_from(sizes.len()).unwrap();
        fuzzing::lines_of_any_split(&[&[limit, count][..], &sizes, &stream].concat());
    }

    /// R-182, R-183: what is written is read back, whatever the message.
    #[test]
    fn written_messages_are_read_back(messages in prop::collection::vec("[^\r\n]{1,40}", 0..8), size in 1usize..9) {
        let (mut as_lines, mut as_events) = (Vec::new(), Vec::new());
        for message in &messages {
            write_line(&mut as_lines, message.as_bytes());
            write_comment(&mut as_events, message);
            write_event(&mut as_events, message.as_bytes());
        }
        let said: Vec<Line> =
            messages.iter().filter(|text| !text.trim_matches([' ', '\t']).is_empty()).map(|text| line(text)).collect();
        prop_assert_eq!(lines(1000, &as_lines, size), said);
        let found = events(1000, &as_events, size);
        prop_assert_eq!(data(&found), messages);
    }
}
