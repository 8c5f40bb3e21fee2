//! The four formats of a string field, as assertions (R-115, G-22). Hand-written, one pass each.

use core::net::Ipv6Addr;

/// A format that a string field may ask for (R-115).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums)]
pub enum Format {
    /// An e-mail address as people have them: ASCII `local@domain`. The local part is letters, digits and
    /// ``!#$%&'*+/=?^_`{|}~-``, in parts divided by single dots, at most 64 characters; the domain is a host name
    /// (labels of up to 63 letters, digits and inner hyphens, 253 in all; one label will do). Quoted local
    /// parts, comments and address literals are not taken.
    Email,
    /// An absolute URI of RFC 3986: a scheme, and every part by its grammar; a fragment is allowed.
    Uri,
    /// A full date of RFC 3339, `2026-07-28`, in the Gregorian calendar carried back to the year 0000.
    Date,
    /// A date and time of RFC 3339 with its offset, `2026-07-28T12:00:00.5+02:00`. `T` and `Z` may be small. The
    /// 60th second exists where UTC is at 23:59.
    DateTime,
}

impl Format {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Email, Self::Uri, Self::Date, Self::DateTime];

    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Uri => "uri",
            Self::Date => "date",
            Self::DateTime => "date-time",
        }
    }

    /// Reads the word on the wire; `None` for formats that forms do not have.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Whether `text` is written in this format.
    ///
    /// ```
    /// use mrtr_core::form::Format;
    ///
    /// assert!(Format::Date.matches("2024-02-29") && !Format::Date.matches("2023-02-29"));
    /// assert!(Format::Uri.matches("https://example.com/a?b#c") && !Format::Uri.matches("example.com"));
    /// ```
    #[must_use]
    pub fn matches(self, text: &str) -> bool {
        match self {
            Self::Email => is_email(text),
            Self::Uri => is_uri(text),
            Self::Date => date(text.as_bytes()).is_some_and(|rest| rest.is_empty()),
            Self::DateTime => date_time(text.as_bytes()).is_some(),
        }
    }
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let atom = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&byte))
    };
    local.len() <= 64 && local.split('.').all(atom) && is_host_name(domain)
}

fn is_host_name(name: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

/// `URI = scheme ":" hier-part [ "?" query ] [ "#" fragment ]`
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let mut letters = scheme.bytes();
    if !letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        || !letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    {
        return false;
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (hierarchy, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = match hierarchy.strip_prefix("//") {
        None => hierarchy,
        Some(after) => {
            let end = after.find('/').unwrap_or(after.len());
            if !is_authority(after.get(..end).unwrap_or("")) {
                return false;
            }
            after.get(end..).unwrap_or("")
        }
    };
    consists_of(path, b":@/") && consists_of(query, b":@/?") && consists_of(fragment, b":@/?")
}

fn is_authority(authority: &str) -> bool {
    let (user, host_port) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (host_fits, port) = match host_port.strip_prefix('[') {
        Some(literal) => match literal.split_once(']') {
            Some((address, after)) => (is_ip_literal(address), after),
            None => return false,
        },
        None => {
            let end = host_port.find(':').unwrap_or(host_port.len());
            (consists_of(host_port.get(..end).unwrap_or(""), b""), host_port.get(end..).unwrap_or(""))
        }
    };
    let port_fits = match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    };
    host_fits && port_fits && consists_of(user, b":")
}

/// What stands between the brackets of a host: an IPv6 address, or the syntax kept for later versions.
fn is_ip_literal(literal: &str) -> bool {
    if let Some(future) = literal.strip_prefix(['v', 'V']) {
        let Some((version, address)) = future.split_once('.') else { return false };
        return !version.is_empty()
            && version.bytes().all(|byte| byte.is_ascii_hexdigit())
            && !address.is_empty()
            && !address.contains('%')
            && consists_of(address, b":");
    }
    // No zone, and no leading zeros in a dotted quad at its end: the standard library reads exactly the grammar.
    literal.parse::<Ipv6Addr>().is_ok()
}

/// Whether `text` is unreserved characters, sub-delimiters, percent-encoded octets and `also`.
fn consists_of(text: &str, also: &[u8]) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let fits = match byte {
            b'%' => {
                [bytes.next(), bytes.next()].iter().all(|digit| digit.is_some_and(|d| d.is_ascii_hexdigit()))
            }
            b'-' | b'.' | b'_' | b'~' => true,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => true,
            other => other.is_ascii_alphanumeric() || also.contains(&other),
        };
        if !fits {
            return false;
        }
    }
    true
}

/// Reads `full-date` at the start; what follows it.
fn date(text: &[u8]) -> Option<&[u8]> {
    let (century, text) = two_digits(text)?;
    let (year, text) = two_digits(text)?;
    let (month, text) = two_digits(text.strip_prefix(b"-")?)?;
    let (day, text) = two_digits(text.strip_prefix(b"-")?)?;
    let leap = year % 4 == 0 && (year != 0 || century % 4 == 0);
    let last = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    (1..=last).contains(&day).then_some(text)
}

fn date_time(text: &[u8]) -> Option<()> {
    let text = date(text)?;
    let text = text.strip_prefix(b"T").or_else(|| text.strip_prefix(b"t"))?;
    let (hour, text) = two_digits(text)?;
    let (minute, text) = two_digits(text.strip_prefix(b":")?)?;
    let (second, mut text) = two_digits(text.strip_prefix(b":")?)?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    if let Some(fraction) = text.strip_prefix(b".") {
        let end = fraction.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(fraction.len());
        if end == 0 {
            return None;
        }
        text = fraction.get(end..)?;
    }
    // Minutes to add to local time for UTC.
    let offset = match text {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), offset @ ..] => {
            let (hours, text) = two_digits(offset)?;
            let (minutes, rest) = two_digits(text.strip_prefix(b":")?)?;
            if hours > 23 || minutes > 59 || !rest.is_empty() {
                return None;
            }
            let offset = hours * 60 + minutes;
            if *sign == b'+' { -offset } else { offset }
        }
        _ => return None,
    };
    let utc = (hour * 60 + minute + offset).rem_euclid(24 * 60);
    (second < 60 || utc == 23 * 60 + 59).then_some(())
}

fn two_digits(text: &[u8]) -> Option<(i32, &[u8])> {
    match text {
        [tens @ b'0'..=b'9', units @ b'0'..=b'9', rest @ ..] => {
            Some((i32::from(tens - b'0') * 10 + i32::from(units - b'0'), rest))
        }
        _ => None,
    }
}
