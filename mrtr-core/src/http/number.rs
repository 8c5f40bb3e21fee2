//! Numbers compared by their exact decimal value. Nothing is converted to a float and no exponent is
//! expanded, so the cost is that of reading the digits.

/// Whether two JSON numbers are the same number: `42`, `42.0` and `4.2e1` are. `false` if either is no JSON
/// number or has an absurd exponent.
pub(super) fn same(a: &str, b: &str) -> bool {
    matches!((Decimal::parse(a), Decimal::parse(b)), (Some(a), Some(b)) if a == b)
}

/// The number as an integer, if it is one that every peer can hold: at most 2^53 − 1 in size.
pub(super) fn safe_integer(text: &str) -> Option<i64> {
    const MOST: i64 = (1 << 53) - 1;
    let number = Decimal::parse(text)?;
    let zeros = u32::try_from(number.exponent).ok().filter(|zeros| *zeros < 16)?;
    let mut value = 0i64;
    for digit in number.digits() {
        value = value.checked_mul(10)?.checked_add(i64::from(digit - b'0'))?;
    }
    let value = value.checked_mul(10i64.checked_pow(zeros)?)?;
    (value <= MOST).then_some(if number.negative { -value } else { value })
}

/// A number: its significant digits, as an integer, times ten to the exponent. Zero has no digits, no sign and
/// no exponent.
struct Decimal<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            None => (rest, 0),
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            None => (mantissa, ""),
            Some((_, "")) => return None,
            Some(parts) => parts,
        };
        if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
            return None;
        }
        if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(Self::normal(negative, whole.as_bytes(), fraction.as_bytes(), exponent))
    }

    /// Takes the zeros at both ends away.
    fn normal(negative: bool, whole: &'a [u8], fraction: &'a [u8], exponent: i64) -> Self {
        let kept = len(strip_end(fraction));
        let (mut whole, mut fraction) = (strip_start(whole), strip_end(fraction));
        let mut exponent = exponent.saturating_sub(kept);
        if fraction.is_empty() {
            let full = len(whole);
            whole = strip_end(whole);
            exponent = exponent.saturating_add(full - len(whole));
        }
        if whole.is_empty() {
            fraction = strip_start(fraction);
        }
        if whole.is_empty() && fraction.is_empty() {
            return Self { negative: false, whole, fraction, exponent: 0 };
        }
        Self { negative, whole, fraction, exponent }
    }

    fn digits(&self) -> impl Iterator<Item = u8> + '_ {
        self.whole.iter().chain(self.fraction).copied()
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.negative == other.negative && self.exponent == other.exponent && self.digits().eq(other.digits())
    }
}

/// At most ten digits: what is beyond is no number anybody computes with.
fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.len() > 10 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: i64 = digits.parse().ok()?;
    Some(if text.starts_with('-') { -value } else { value })
}

fn strip_start(mut digits: &[u8]) -> &[u8] {
    while let [b'0', rest @ ..] = digits {
        digits = rest;
    }
    digits
}

fn strip_end(mut digits: &[u8]) -> &[u8] {
    while let [rest @ .., b'0'] = digits {
        digits = rest;
    }
    digits
}

fn len(digits: &[u8]) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_many_spellings() {
        //
        for (a, b) in [
            ("42", "42.0"),
            ("42", "4.2e1"),
            ("42", "420E-1"),
            ("0", "-0"),
            ("0", "0.000e99"),
            ("0.5", "5e-1"),
            ("100", "1e2"),
            ("1000000", "1.0e+6"),
            ("-7", "-7.00"),
            ("10.10", "1.01e1"),
        ] {
            assert!(same(a, b), "{a} {b}");
            assert!(same(b, a), "{b} {a}");
        }
        for (a, b) in [
            ("42", "43"),
            ("42", "-42"),
            ("42", "4.2"),
            ("9007199254740993", "9007199254740992"),
            ("1", "1e1"),
            ("0.1", "0.01"),
            ("42", "042"),
            ("42", "+42"),
            ("42", "42."),
            ("42", ".42e2"),
            ("42", "42 "),
            ("42", "4 2"),
            ("42", ""),
            ("0", "-"),
            ("1e99999999999", "1e99999999999"),
        ] {
            assert!(!same(a, b), "{a} {b}");
        }
    }

    #[test]
    fn integers_every_peer_can_hold() {
        assert_eq!(safe_integer("42.0"), Some(42));
        assert_eq!(safe_integer("-1.5e1"), Some(-15));
        assert_eq!(safe_integer("-0"), Some(0));
        assert_eq!(safe_integer("1e15"), Some(1_000_000_000_000_000));
        assert_eq!(safe_integer("9007199254740991"), Some(9_007_199_254_740_991));
        assert_eq!(safe_integer("9007199254740992"), None);
        assert_eq!(safe_integer("-9007199254740992"), None);
        assert_eq!(safe_integer("1e300"), None);
        assert_eq!(safe_integer("0.5"), None);
        assert_eq!(safe_integer("123456789012345678901234567890"), None);
    }
}
