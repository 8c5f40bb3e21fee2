//! Which answers a retry brings (B2).

use mrtr_core::{
    ErrorCode, Limits,
    jsonrpc::Json,
    ledger::{AnswersDigest, Undigestible, effective_digest},
};

/// The digest of the answers in `responses` to `outstanding`.
fn digest(outstanding: &[&str], responses: &str) -> Result<AnswersDigest, Undigestible> {
    let mut limits = Limits::default();
    limits.depth = 500;
    let responses = Json::parse(responses, &limits).unwrap();
    effective_digest(outstanding.iter().copied(), |key| responses.get(key))
}

/// B2: only outstanding keys count; the order of keys and members, white space and escapes do not.
#[test]
fn b2_only_effective_answers_count() {
    let one = digest(&["a", "b"], r#"{"a":{"action":"accept","content":{"n":1,"s":"x"}},"b":{"roots":[]}}"#);
    for same in [
        r#"{"b":{"roots":[]},"a":{"content":{"s":"x","n":1},"action":"accept"}}"#,
        r#"{ "a" : {"action" : "\u0061ccept", "content":{"n": 1,"s":"\u0078"}}, "b": {"roots" :[ ] } }"#,
        r#"{"a":{"action":"accept","content":{"n":1,"s":"x"}},"b":{"roots":[]},"zzz":{"action":"decline"}}"#,
    ] {
        assert_eq!(digest(&["b", "a", "a"], same), one, "{same}");
    }
    for other in [
        r#"{"a":{"action":"accept","content":{"n":1,"s":"x"}}}"#,
        r#"{"a":{"action":"accept","content":{"n":1,"s":"x"}},"b":null}"#,
        r#"{"a":{"action":"accept","content":{"n":2,"s":"x"}},"b":{"roots":[]}}"#,
        r#"{"a":{"action":"accept","content":{"n":"1","s":"x"}},"b":{"roots":[]}}"#,
        r#"{"a":{"action":"accept","content":{"n":1,"s":"x","t":null}},"b":{"roots":[]}}"#,
        r#"{"a":{"action":"accept","content":{"n":1,"s":"x"}},"b":{"roots":[[]]}}"#,
        r#"{"b":{"action":"accept","content":{"n":1,"s":"x"}},"a":{"roots":[]}}"#,
        r#"{}"#,
    ] {
        assert_ne!(digest(&["a", "b"], other), one, "{other}");
    }
}

/// B2: a missing answer is told from every other, and one outstanding key from another.
#[test]
fn b2_missing_is_missing() {
    let all = [
        digest(&[], "{}"),
        digest(&["a"], "{}"),
        digest(&["b"], "{}"),
        digest(&["a", "b"], "{}"),
        digest(&["ab"], "{}"),
        digest(&["a\0b"], "{}"),
        digest(&["a"], r#"{"a":null}"#),
        digest(&["a"], r#"{"a":{}}"#),
        digest(&["a"], r#"{"a":[]}"#),
        digest(&["a"], r#"{"a":""}"#),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(one.is_ok() && !all[..at].contains(one), "{at}");
    }
}

/// B2, A5: an answer without a digest is refused before the claim, by its key.
#[test]
fn b2_an_answer_without_a_digest_is_refused() {
    for responses in [r#"{"k":{"content":{"s":"\ud800"}}}"#, r#"{"k":{"content":{"n":1e99999999999}}}"#] {
        let fault = digest(&["a", "k"], responses).unwrap_err();
        assert_eq!(fault.key, "k");
        let error = fault.to_error();
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
        assert!(error.message.contains("\"k\""));
    }
}
