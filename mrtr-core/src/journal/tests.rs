//! The format byte by byte, every cap at its edge, and what is told of journals without their content.

use alloc::{format, string::ToString as _, vec, vec::Vec};

use super::*;
use crate::limits::Limits;

/// What every journal here begins with: version, start, no divergence, no state.
const HEAD: [u8; 11] = [1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0];

fn asked(key: &str, verdict: Verdict) -> Asked {
    Asked { key: key.into(), kind: AskKind::Form, fingerprint: Fingerprint::from_bytes([9; 32]), verdict }
}

fn round(asks: Vec<Asked>) -> Round {
    Round { asks, ..Round::default() }
}

fn checkpoint() -> Round {
    Round { checkpoint: true, ..Round::default() }
}

fn journal(rounds: Vec<Round>) -> Journal {
    Journal { rounds, ..Journal::new(Timestamp::from_unix_millis(7)) }
}

fn bytes(journal: &Journal) -> Vec<u8> {
    let mut out = Vec::new();
    journal.encode(&mut out);
    assert_eq!(journal.encoded_len(), out.len());
    out
}

fn decode(bytes: &[u8]) -> Result<Journal, CodecFault> {
    Journal::decode(bytes, &Limits::default())
}

/// Decodes a journal of these rounds, in bytes.
fn rounds(entries: &[u8]) -> Result<Journal, CodecFault> {
    decode(&[&HEAD[..], entries, &[0, 0]].concat())
}

fn survives(journal: &Journal, limits: &Limits) {
    let bytes = bytes(journal);
    assert!(Journal::decode(&bytes, limits).as_ref() == Ok(journal), "{journal:?}");
    // Nothing shorter is one, and nothing longer.
    for cut in 0..bytes.len() {
        assert_eq!(Journal::decode(&bytes[..cut], limits), Err(CodecFault::Malformed), "{cut} of {bytes:?}");
    }
    assert_eq!(Journal::decode(&[&bytes[..], &[0]].concat(), limits), Err(CodecFault::Malformed));
}

/// What is sealed today must open for ever: the format is these bytes.
#[test]
fn a_journal_in_its_bytes() {
    let (long, empty) = ("x".repeat(300), journal(vec![]));
    let journal = Journal {
        state: Some("s".into()),
        divergences: 2,
        once: vec![Once { name: "o".into(), nth: 1, segment: 128, value: "1".into() }],
        values: vec![Named { name: "n".into(), value: long.as_str().into() }],
        ..journal(vec![
            round(vec![
                asked("a", Verdict::Open),
                asked("b", Verdict::Answer("d".into())),
                asked("c", Verdict::Invalid { count: 2, reason: "r".into() }),
                asked("d", Verdict::Unavailable),
                asked("e", Verdict::NotYet),
            ]),
            checkpoint(),
            checkpoint(),
            Round { silent: true, checkpoint: true, swallowed: true, ..Round::default() },
        ])
    };
    let mut expected = vec![1, 0, 0, 0, 0, 0, 0, 0, 7, 2, 1, 1, b's', 3, 0, 5];
    for (key, verdict) in
        [(b'a', &[0][..]), (b'b', &[1, 1, b'd']), (b'c', &[2, 2, 1, b'r']), (b'd', &[3]), (b'e', &[4])]
    {
        expected.extend([1, key, 1]);
        expected.extend([9; 32]);
        expected.extend(verdict);
    }
    expected.extend([8 | 2, 2, 7, 0]);
    expected.extend([1, 1, b'o', 1, 0x80, 1, 1, b'1']);
    expected.extend([1, 1, b'n', 0xac, 2]);
    expected.extend(long.bytes());
    assert_eq!(bytes(&journal), expected);
    survives(&journal, &Limits::default());
    survives(&empty, &Limits::default());
}

/// Each flag alone and with the others.
#[test]
fn every_flag_of_a_round_survives() {
    for flags in 0..8u8 {
        let flagged = Round {
            asks: vec![asked("a", Verdict::Open)],
            silent: flags & 1 != 0,
            checkpoint: flags & 2 != 0,
            swallowed: flags & 4 != 0,
        };
        let journal = journal(vec![flagged]);
        assert_eq!(bytes(&journal)[12], flags);
        survives(&journal, &Limits::default());
    }
    for flags in [8, 8 | 1, 8 | 2 | 1, 8 | 4 | 2, 16, 16 | 8 | 2, 0x82] {
        assert_eq!(rounds(&[1, flags, 2]), Err(CodecFault::Malformed), "{flags}");
    }
}

/// A10: checkpoints in a row are one entry, and have one spelling.
#[test]
fn checkpoints_in_a_row_are_a_run() {
    for times in [2, 3, 127, 128, 300] {
        let limits = Limits { state_only_rounds: times, ..Limits::default() };
        let run = journal(vec![checkpoint(); usize::try_from(times).unwrap()]);
        assert!(bytes(&run).len() < 20);
        survives(&run, &limits);
    }
    for (entries, what) in [
        (&[1, 10, 1][..], "a run of one"),
        (&[1, 10, 0], "a run of none"),
        (&[2, 2, 0, 2, 0], "two entries that are a run"),
        (&[2, 2, 0, 10, 2], "a run after one of its own"),
        (&[2, 10, 2, 2, 0], "one after its run"),
        (&[2, 10, 2, 10, 2], "two runs that are one"),
    ] {
        assert_eq!(rounds(entries), Err(CodecFault::Malformed), "{what}");
    }
    // What is silent, swallowed or asks is no checkpoint of this kind.
    let others = [
        Round { silent: true, ..checkpoint() },
        Round { swallowed: true, ..checkpoint() },
        Round { asks: vec![asked("a", Verdict::Open)], ..checkpoint() },
        Round::default(),
    ];
    for other in others {
        let journal = journal(vec![checkpoint(), other.clone(), other, checkpoint()]);
        survives(&journal, &Limits::default());
    }
}

/// Exactly a cap is fine, one more is not, whatever stands between.
#[test]
fn every_cap_at_its_edge() {
    let mut limits = Limits::default();
    (limits.rounds, limits.state_only_rounds, limits.asks_sent) = (3, 4, 2);
    let ask = || round(vec![asked("a", Verdict::Open)]);
    let silent = || Round { silent: true, ..Round::default() };
    let check = |cap, most: Vec<Round>, more: Round| {
        let mut one_more = most.clone();
        one_more.push(more);
        survives(&journal(most), &limits);
        assert_eq!(Journal::decode(&bytes(&journal(one_more)), &limits), Err(CodecFault::Cap(cap)));
    };
    check("rounds", vec![ask(), silent(), ask(), checkpoint(), ask()], ask());
    check("state-only rounds", vec![Round::default(); 4], Round::default());
    check("state-only rounds", vec![checkpoint(); 4], checkpoint());
    check(
        "state-only rounds",
        vec![checkpoint(), checkpoint(), ask(), checkpoint(), checkpoint()],
        checkpoint(),
    );
    check("silent rounds", vec![silent(); SILENT_ROUNDS], silent());
    // A run counts with what stands alone.
    let mut mixed = vec![Round::default(), checkpoint(), checkpoint(), checkpoint()];
    survives(&journal(mixed.clone()), &limits);
    mixed.insert(0, Round::default());
    assert_eq!(Journal::decode(&bytes(&journal(mixed)), &limits), Err(CodecFault::Cap("state-only rounds")));
    let three =
        || round(vec![asked("a", Verdict::Open), asked("b", Verdict::Open), asked("c", Verdict::Open)]);
    check(
        "asks in a round",
        vec![round(vec![asked("a", Verdict::Open), asked("b", Verdict::Open)])],
        three(),
    );
    // Silent rounds are never sent: no cap on asks is theirs.
    survives(&journal(vec![Round { silent: true, ..three() }]), &limits);
}

/// One spelling for each count, and none above 32 bits.
#[test]
fn counts_have_one_spelling() {
    // The use of a once-value is a count that may be as large as any.
    let once = |count: &[u8]| decode(&[&HEAD[..], &[0, 1, 0], count, &[0, 0], &[0]].concat());
    for (spelling, value) in [
        (&[0][..], 0),
        (&[1], 1),
        (&[0x7f], 127),
        (&[0x80, 1], 128),
        (&[0xff, 0x7f], 16_383),
        (&[0x80, 0x80, 1], 16_384),
        (&[0x80, 0x80, 0x80, 1], 1 << 21),
        (&[0x80, 0x80, 0x80, 0x80, 1], 1 << 28),
        (&[0xff, 0xff, 0xff, 0xff, 0x0f], u32::MAX),
    ] {
        let journal = once(spelling).unwrap();
        assert_eq!(journal.once[0].nth, value);
        survives(&journal, &Limits::default());
    }
    for spelling in [
        &[0x80, 0][..],
        &[0x81, 0],
        &[0x80, 0x80, 0x80, 0x80, 0],
        &[0xff, 0xff, 0xff, 0xff, 0x10],
        &[0xff, 0xff, 0xff, 0xff, 0x1f],
        &[0x80, 0x80, 0x80, 0x80, 0x80, 1],
        &[0xff, 0xff, 0xff, 0xff, 0x8f, 0],
    ] {
        assert_eq!(once(spelling), Err(CodecFault::Malformed), "{spelling:?}");
    }
}

#[test]
fn what_is_no_journal() {
    let good = bytes(&journal(vec![round(vec![asked("a", Verdict::NotYet)])]));
    let changed = |at: usize, byte: u8| {
        let mut changed = good.clone();
        changed[at] = byte;
        decode(&changed)
    };
    assert_eq!(changed(0, 2), Err(CodecFault::Version(2)));
    for (at, byte, what) in [
        (10, 2, "a state or none"),
        (15, 0xff, "text"),
        (16, 0, "a kind"),
        (16, 5, "a kind"),
        (49, 5, "a verdict"),
    ] {
        assert_eq!(changed(at, byte), Err(CodecFault::Malformed), "{what}");
    }
    assert_eq!(changed(49, 3).unwrap().rounds[0].asks[0].verdict.name(), "unavailable");
}

#[test]
fn the_same_question_has_the_same_key_kind_and_fingerprint() {
    let one = asked("a", Verdict::Open);
    assert!(one.same_question(&asked("a", Verdict::NotYet)));
    assert!(!one.same_question(&asked("b", Verdict::Open)));
    assert!(!one.same_question(&Asked { kind: AskKind::Url, ..one.clone() }));
    let fingerprint = Fingerprint::from_bytes([8; 32]);
    assert!(!one.same_question(&Asked { fingerprint, ..one.clone() }));
}

/// A4: an ask stays open until it has an answer, or as many that do not fit as are allowed.
#[test]
fn what_stays_open() {
    let invalid = |count| Verdict::Invalid { count, reason: "r".into() };
    let asks = [("a", invalid(1)), ("a", invalid(2)), ("b", invalid(3)), ("c", Verdict::Open)];
    let journal = journal(asks.map(|(key, verdict)| round(vec![asked(key, verdict)])).into());
    assert_eq!(["a", "b", "c"].map(|key| journal.invalid_count(key)), [2, 3, 0]);
    let open: Vec<_> = journal.rounds.iter().map(|round| round.asks[0].verdict.stays_open()).collect();
    assert_eq!(open, [true, true, false, true]);
    assert!(Verdict::NotYet.stays_open());
    assert!(!Verdict::Answer("d".into()).stays_open() && !Verdict::Unavailable.stays_open());
}

/// A5, A6: what was never sent is no round of the client's, and nobody answers it.
#[test]
fn only_what_was_sent_counts() {
    let ask = |key| round(vec![asked(key, Verdict::Open)]);
    let silent = |key| Round { silent: true, ..ask(key) };
    for (rounds, sent, last) in [
        (vec![], 0, None),
        (vec![silent("a")], 0, None),
        (vec![ask("a")], 1, Some("a")),
        (vec![ask("a"), silent("b")], 1, None),
        (vec![ask("a"), silent("b"), ask("c"), ask("d")], 3, Some("d")),
    ] {
        let journal = journal(rounds);
        let answerable = journal.last_sent().map(|round| &*round.asks[0].key);
        assert_eq!((journal.rounds_sent(), answerable), (sent, last), "{journal:?}");
    }
}

#[test]
fn every_ask_of_every_round_is_shown_and_the_answers_apart() {
    let url = Asked { kind: AskKind::Url, ..asked("b", Verdict::NotYet) };
    let journal = journal(vec![
        round(vec![asked("a", Verdict::Open), url]),
        checkpoint(),
        Round { silent: true, ..round(vec![asked("c", Verdict::Unavailable)]) },
        round(vec![
            asked("a", Verdict::Answer("d".into())),
            asked("d", Verdict::Answer("[]".into())),
            asked("e", Verdict::Answer(r#"k{"n":1}"#.into())),
        ]),
    ]);
    let asks: Vec<_> = journal.asks().map(|it| (it.round, it.key, it.kind, it.outcome, it.silent)).collect();
    let expected = [
        (0, "a", AskKind::Form, "open", false),
        (0, "b", AskKind::Url, "not yet", false),
        (2, "c", AskKind::Form, "unavailable", true),
        (3, "a", AskKind::Form, "answered", false),
        (3, "d", AskKind::Form, "answered", false),
        (3, "e", AskKind::Form, "answered", false),
    ];
    assert_eq!(asks, expected);
    let answers: Vec<_> = journal.answers().collect();
    assert_eq!(
        answers,
        [(3, "a", on_the_wire("d")), (3, "d", on_the_wire("[]")), (3, "e", r#"{"n":1}"#.into())]
    );
}

/// Keys, kinds and counts, never an answer or a value.
#[test]
fn what_is_shown_of_a_journal() {
    let mut shown = journal(vec![round(vec![asked("name", Verdict::Answer("a{\"n\":\"secret\"}".into()))])]);
    shown.values.push(Named { name: "v".into(), value: "\"secret\"".into() });
    shown.state = Some("secret".into());
    let text = format!("{shown:?}");
    assert!(text.contains("name form answered") && text.contains("swallowed: false"), "{text}");
    assert!(text.contains("values: 1") && !text.contains("secret"), "{text}");
    let divergence = |kind, values: &[&str]| {
        let values = values.iter().map(|name| name.to_string()).collect();
        let moved = Asked { kind: AskKind::Url, ..asked("c", Verdict::Open) };
        let recorded = [asked("a", Verdict::Open), asked("c", Verdict::Open), asked("d", Verdict::Open)];
        let replayed = [asked("b", Verdict::Open), moved, asked("d", Verdict::Open)];
        Divergence::new(kind, 4, &recorded, &replayed, values, 1).to_string()
    };
    assert_eq!(
        divergence(DivergenceKind::OtherQuestions, &[]),
        "round 4: the handler asks other questions than before -a +b ~c"
    );
    assert_eq!(
        divergence(DivergenceKind::FinishedEarly, &["x", "y"]),
        "round 4: the handler returned before its recorded rounds were over -a +b ~c; it had read the values x y"
    );
}

#[test]
fn recorded_answers_are_shown_as_they_came() {
    for (recorded, shown) in [
        ("a", r#"{"action":"accept"}"#),
        (r#"a{"n":1}"#, r#"{"action":"accept","content":{"n":1}}"#),
        ("d", r#"{"action":"decline"}"#),
        ("c", r#"{"action":"cancel"}"#),
        ("[]", r#"{"roots":[]}"#),
        (r#"{"role":"assistant"}"#, r#"{"role":"assistant"}"#),
    ] {
        assert_eq!(on_the_wire(recorded), shown);
    }
}
