//! Values in headers.

use mrtr_core::http::{
    HeaderProblem, Headers, SentinelFault, check_version_present, decode_value, encode_value, fuzzing,
};
use proptest::prelude::*;

#[test]
fn only_what_needs_it_is_encoded_r167() {
    for plain in
        ["", "us-west1", "us west 1", "a=b?c", "=?base64?abc", "abc?=", "=?BASE64?YQ==?=", "~!\"#%&'"]
    {
        assert_eq!(encode_value(plain), plain);
    }
    for (text, encoded) in [
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        ("Zürich", "=?base64?WsO8cmljaA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        (" us-west1", "=?base64?IHVzLXdlc3Qx?="),
        ("us-west1 ", "=?base64?dXMtd2VzdDEg?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("line1\r\nline2", "=?base64?bGluZTENCmxpbmUy?="),
        ("\tindented", "=?base64?CWluZGVudGVk?="),
        ("in\tside", "=?base64?aW4Jc2lkZQ==?="),
        ("\u{7f}", "=?base64?fw==?="),
        ("\0", "=?base64?AA==?="),
        // What looks like an encoded value is encoded, also where its two marks overlap.
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64??=", "=?base64?PT9iYXNlNjQ/Pz0=?="),
        ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
    ] {
        assert_eq!(encode_value(text), encoded);
        assert_eq!(decode_value(encoded.as_bytes()).unwrap(), text);
    }
}

#[test]
fn decoding_is_strict_r168() {
    for (sent, text) in [
        ("=?base64?SGVsbG8=?=", "Hello"),
        ("  =?base64?SGVsbG8=?=\t", "Hello"),
        ("=?base64??=", ""),
        // One of the marks is missing, or is spelled differently: literal.
        ("SGVsbG8=", "SGVsbG8="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("SGVsbG8=?=", "SGVsbG8=?="),
        ("=?Base64?SGVsbG8=?=", "=?Base64?SGVsbG8=?="),
        ("=?utf-8?B?SGVsbG8=?=", "=?utf-8?B?SGVsbG8=?="),
        ("=?base64?=", "=?base64?="),
        ("x=?base64?SGVsbG8=?=", "x=?base64?SGVsbG8=?="),
        ("a\tb", "a\tb"),
    ] {
        assert_eq!(decode_value(sent.as_bytes()).as_deref(), Ok(text), "{sent}");
    }
    for (sent, fault) in [
        ("=?base64?SGVsbG8?=", SentinelFault::Base64),
        ("=?base64?SGVsbG8==?=", SentinelFault::Base64),
        ("=?base64?SGVs!!!bG8=?=", SentinelFault::Base64),
        ("=?base64?SGVs bG8=?=", SentinelFault::Base64),
        ("=?base64?_-8=?=", SentinelFault::Base64),
        // Stray bits in the last character: another spelling of the same text.
        ("=?base64?SGVsbG9=?=", SentinelFault::Base64),
        ("=?base64?//8=?=", SentinelFault::NotText),
        ("Zürich", SentinelFault::Characters),
        ("a\nb", SentinelFault::Characters),
        ("a\0b", SentinelFault::Characters),
        ("\u{7f}", SentinelFault::Characters),
    ] {
        assert_eq!(decode_value(sent.as_bytes()), Err(fault), "{sent}");
    }
    assert_eq!(decode_value(b"\xff"), Err(SentinelFault::Characters));
}

#[test]
fn names_in_any_case_values_as_they_are_r166() {
    let headers: &[(String, Vec<u8>)] = &[
        ("Mcp-Name".into(), b"  a ".to_vec()),
        ("MCP-NAME".into(), b"B".to_vec()),
        ("x".into(), vec![0xff]),
    ];
    let mut seen = Vec::new();
    headers.get_all("mcp-name", &mut |value| seen.push(value));
    assert_eq!(seen, [&b"  a "[..], b"B"]);
    let erased: &dyn Headers = &headers;
    erased.get_all("X", &mut |value| seen.push(value));
    assert_eq!(seen.last(), Some(&&[0xff][..]));
    assert_eq!(check_version_present(erased).unwrap_err().problem, HeaderProblem::Missing);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// every text comes back from its encoded form, which is a plain header value.
    #[test]
    fn every_text_comes_back(text in "\\PC{0,20}|[ \t=?base64A-Z\r\n]{0,24}|=\\?base64\\?.{0,12}\\?=") {
        let encoded = encode_value(&text);
        prop_assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~')));
        prop_assert_eq!(encoded.trim(), &*encoded);
        prop_assert_eq!(decode_value(encoded.as_bytes()).unwrap(), &*text);
    }

    /// bytes never decode to something that is not encoded back to the same text.
    #[test]
    fn no_bytes_break_decoding(mark in any::<bool>(), bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        fuzzing::sentinel(&bytes);
        if mark {
            fuzzing::sentinel(&[b"=?base64?", &bytes[..], b"?="].concat());
        }
    }
}
