//! A JSON number by its exact decimal value: what it takes to hash it, found without building it.

use super::DigestFault;

/// The largest exponent that is read, written as it stands in the text, either sign.
const EXPONENT_LIMIT: i64 = 1_000_000_000;

/// A number other than zero: sign, significant digits, power of ten. The value is the digits read as an
/// integer, times ten to the power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal<'a> {
    pub(super) negative: bool,
    /// The digits, from the first that is not zero to the last that is not zero, in two parts (before and
    /// after a decimal point that stands between them).
    pub(super) digits: [&'a [u8]; 2],
    pub(super) exponent: i64,
}

impl<'a> Decimal<'a> {
    /// Reads a number token; `None` is zero, of either sign. `at` is where the token stands.
    ///
    /// # Errors
    ///
    /// If the exponent has more than ten digits as written or is beyond ±10^9.
    pub(super) fn read(token: &'a str, at: usize) -> Result<Option<Self>, DigestFault> {
        let (negative, token) = token.strip_prefix('-').map_or((false, token), |rest| (true, rest));
        let (mantissa, exponent) = match token.split_once(['e', 'E']) {
            None => (token, 0),
            Some((mantissa, exponent)) => {
                (mantissa, read_exponent(exponent).ok_or(DigestFault::Number { at })?)
            }
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        // The point is moved behind the last digit of what is left of the fraction.
        let exponent = exponent.saturating_sub(length(fraction));
        let [whole, fraction, zeros] = match (whole, fraction) {
            ("", "") => return Ok(None),
            ("", fraction) => ["", fraction.trim_start_matches('0'), ""],
            (whole, "") => {
                let digits = whole.trim_end_matches('0');
                [digits, "", whole.get(digits.len()..).unwrap_or("")]
            }
            (whole, fraction) => [whole, fraction, ""],
        };
        let digits = [whole.as_bytes(), fraction.as_bytes()];
        Ok(Some(Self { negative, digits, exponent: exponent.saturating_add(length(zeros)) }))
    }

    /// Number of significant digits.
    pub(super) const fn len(&self) -> usize {
        let [whole, fraction] = self.digits;
        whole.len() + fraction.len()
    }
}

fn read_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.len() > 10 {
        return None;
    }
    text.parse().ok().filter(|exponent| (-EXPONENT_LIMIT..=EXPONENT_LIMIT).contains(exponent))
}

/// A string's length; it is at most `isize::MAX`.
fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::String};

    use super::*;

    fn read(token: &str) -> Result<String, DigestFault> {
        Ok(Decimal::read(token, 7)?.map_or_else(
            || "0".into(),
            |number| {
                let [a, b] = number.digits.map(|digits| core::str::from_utf8(digits).unwrap());
                assert_eq!(number.len(), a.len() + b.len());
                format!("{}{a}{b}e{}", if number.negative { "-" } else { "" }, number.exponent)
            },
        ))
    }

    #[test]
    fn one_value_has_one_reading() {
        for (token, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("-0.000", "0"),
            ("0e5", "0"),
            ("0.0E-7", "0"),
            ("1", "1e0"),
            ("-1", "-1e0"),
            ("1.0", "1e0"),
            ("10e-1", "1e0"),
            ("0.1e1", "1e0"),
            ("0.001e+3", "1e0"),
            ("1E0", "1e0"),
            ("100", "1e2"),
            ("1.00e2", "1e2"),
            ("1e2", "1e2"),
            ("1e02", "1e2"),
            ("120.050", "12005e-2"),
            ("12.005e1", "12005e-2"),
            ("0.00012", "12e-5"),
            ("1020", "102e1"),
            ("1.5e-7", "15e-8"),
            ("9007199254740993", "9007199254740993e0"),
            ("18446744073709551616", "18446744073709551616e0"),
            ("1e1000000000", "1e1000000000"),
            ("1e-1000000000", "1e-1000000000"),
            ("1.5e-1000000000", "15e-1000000001"),
            ("1e0000000001", "1e1"),
        ] {
            assert_eq!(read(token).as_deref(), Ok(expected), "{token}");
        }
    }

    #[test]
    fn exponents_beyond_the_bound_are_refused() {
        for token in [
            "1e1000000001",
            "1e-1000000001",
            "1E+1000000001",
            "0e1000000001",
            "1e10000000000",
            "1e00000000001",
            "1e99999999999999999999",
            "-1.5e-99999999999999999999",
        ] {
            assert_eq!(read(token), Err(DigestFault::Number { at: 7 }), "{token}");
        }
    }
}
