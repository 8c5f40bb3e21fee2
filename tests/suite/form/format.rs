//! The four formats as assertions: R-115, G-22.

use mrtr_core::form::Format;

use super::{judge, one};

fn table(format: Format, good: &[&str], bad: &[&str]) {
    for text in good {
        assert!(format.matches(text), "{} {text:?}", format.name());
    }
    for text in bad {
        assert!(!format.matches(text), "{} {text:?}", format.name());
    }
}

#[test]
fn dates() {
    table(
        Format::Date,
        &["2026-07-28", "2024-02-29", "2000-02-29", "0000-02-29", "9999-12-31", "2026-01-31", "2026-04-30"],
        &[
            "",
            "2023-02-29",
            "1900-02-29",
            "2100-02-29",
            "0100-02-29",
            "2024-02-30",
            "2026-00-01",
            "2026-13-01",
            "2026-01-00",
            "2026-01-32",
            "2026-04-31",
            "2026-06-31",
            "2026-09-31",
            "2026-11-31",
            "2026-7-28",
            "26-07-28",
            "02026-07-28",
            "2026-07-28 ",
            " 2026-07-28",
            "2026/07/28",
            "20260728",
            "2026-07-28T00:00:00Z",
            "2026-07-2",
            "-026-07-28",
            "２026-07-28",
            "2026-07-2\u{660}",
        ],
    );
}

#[test]
fn dates_with_times() {
    table(
        Format::DateTime,
        &[
            "2026-07-28T12:00:00Z",
            "2026-07-28t12:00:00z",
            "2026-07-28T00:00:00+00:00",
            "2026-07-28T23:59:59.9-23:59",
            "2026-07-28T12:00:00.123456789012345678901234567890Z",
            "2026-07-28T12:00:00-00:00",
            // 23:59:60 in UTC, wherever the clock hangs.
            "2016-12-31T23:59:60Z",
            "1990-12-31T15:59:60-08:00",
            "2017-01-01T00:29:60+00:30",
            "1998-12-31T15:59:60.123-08:00",
        ],
        &[
            "",
            "2026-07-28",
            "2026-07-28T12:00:00",
            "2026-07-28 12:00:00Z",
            "2026-07-28T24:00:00Z",
            "2026-07-28T12:60:00Z",
            "2026-07-28T12:00:61Z",
            "2026-07-28T12:00:60Z",
            "2016-12-31T22:59:60Z",
            "2016-12-31T23:58:60Z",
            "1990-12-31T15:59:60+08:00",
            "2026-07-28T12:00Z",
            "2026-07-28T12:00:00.Z",
            "2026-07-28T12:00:00,5Z",
            "2026-07-28T12:00:00+2:00",
            "2026-07-28T12:00:00+0200",
            "2026-07-28T12:00:00+24:00",
            "2026-07-28T12:00:00+02:60",
            "2026-07-28T12:00:00+02:000",
            "2026-07-28T12:00:00ZZ",
            "2023-02-29T12:00:00Z",
            "2026-07-28T1:00:00Z",
            "2026-07-28T12:00:00\u{2212}02:00",
            "2026-07-28T12:00:00.\u{661}Z",
        ],
    );
}

#[test]
fn uris_are_absolute() {
    table(
        Format::Uri,
        &[
            "https://example.com",
            "https://example.com/",
            "HTTP://EXAMPLE.COM:443/a/b;c=d?e=f&g#h/i?j",
            "mailto:ada@example.com",
            "urn:isbn:0451450523",
            "file:///etc/hosts",
            "a:",
            "a+b-c.d:e",
            "tel:+1-816-555-1212",
            "ldap://[2001:db8::7]/c=GB?one",
            "http://[::]",
            "http://[::1]:8080/",
            "http://[::ffff:192.0.2.128]/",
            "http://[v1.fe:ed]/",
            "http://u:p@h:/",
            "http://h:",
            "http:///path",
            "http://%41/%41?%41#%41",
            "a:/b//c",
            "a:b:c@d",
            "news:comp.infosystems.www.servers.unix",
            "http://192.168.0.999/",
        ],
        &[
            "",
            ":",
            "a",
            "/a/b",
            "//example.com/",
            "?q",
            "#f",
            "example.com/a",
            "1a:b",
            "-a:b",
            "a_b:c",
            "a b:c",
            "http://a b/",
            "http://a/ b",
            "http://a/\u{e9}",
            "http://\u{e9}/",
            "http://a/%",
            "http://a/%4",
            "http://a/%4g",
            "http://a:b/",
            "http://a:8a/",
            "http://[::1",
            "http://::1]/",
            "http://[]/",
            "http://[1::2::3]/",
            "http://[12345::]/",
            "http://[::1]a/",
            "http://[::ffff:192.0.2.256]/",
            "http://[::ffff:192.0.02.1]/",
            "http://[v.a]/",
            "http://[v1.]/",
            "http://[v1.%41]/",
            "http://[::1%eth0]/",
            "http://[fe80::1%25en0]/",
            "http://u@v@h/",
            "a:b#c#d",
            "http://a/<b>",
            "http://a/\"",
            "http://a/{b}",
            "http://a\\b",
            "http://a/|",
            "http://a/^",
            "http://a/`",
            "http://a/\n",
            "http://a/[b]",
            "a:b\u{7f}",
            "{a}:b",
        ],
    );
}

#[test]
fn emails() {
    let local = "a".repeat(64);
    let label = "a".repeat(63);
    // 253 characters in four labels.
    let name = format!("{label}.{label}.{label}.{}", "a".repeat(61));
    table(
        Format::Email,
        &[
            "ada@example.com",
            "a@b",
            "a.b.c+d_e@x-y.example",
            "!#$%&'*+/=?^_`{|}~-@x.y",
            "1@1",
            "A@B.CO",
            "a@xn--bcher-kva.example",
            &format!("{local}@x.y"),
            &format!("a@{label}.y"),
            &format!("a@{name}"),
        ],
        &[
            "",
            "@",
            "a",
            "a@",
            "@b",
            "a@b@c",
            "a b@c",
            "a@b c",
            ".a@b",
            "a.@b",
            "a..b@c",
            "a@.b",
            "a@b.",
            "a@b..c",
            "a@-b",
            "a@b-",
            "a@b_c",
            "a@b,c",
            "\"a b\"@c",
            "a@[127.0.0.1]",
            "Ada <a@b>",
            "a@b\n",
            "a@b ",
            "\u{e9}@b",
            "a@\u{e9}",
            "mailto:a@b",
            "a(c)@b",
            "a,b@c",
            &format!("{local}a@x.y"),
            &format!("a@{label}a.y"),
            &format!("a@{name}a"),
        ],
    );
}

#[test]
fn a_field_asserts_its_format_and_ignores_unknown_ones_b76() {
    let schema = one(r#"{"type":"string","format":"date"}"#);
    assert!(judge(&schema, r#""2026-07-28""#).is_ok());
    assert_eq!(judge(&schema, r#""28.7.2026""#).unwrap_err(), "must be a date such as 2026-07-28");
    assert!(judge(&one(r#"{"type":"string","format":"uuid"}"#), r#""anything""#).is_ok());
    assert!(judge(&one(r#"{"type":"integer","format":"int32"}"#), "99999999999").is_ok());
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()), Some(format));
    }
}

/// Nothing here backtracks: a megabyte of the worst of each kind is read once.
#[test]
fn long_texts_cost_their_length() {
    let long = "a.".repeat(500_000);
    for text in [
        format!("{long}@{long}"),
        format!("a://{long}%"),
        format!("2026-07-28T00:00:00.{}", "0".repeat(1_000_000)),
    ] {
        for format in Format::ALL {
            assert!(!format.matches(&text));
        }
    }
    // Its name has more than 253 characters, but it is a URI.
    assert!(Format::Uri.matches(&format!("a:{long}@{long}")));
}
