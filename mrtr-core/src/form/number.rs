//! Numbers as exact decimals (design §5: no float conversion on the path of an answer).
//!
//! A number is looked at as sign, significant digits and the place of its point; two of them are compared
//! digit by digit. Nothing is ever expanded, so `1e999999999` costs what its eleven characters cost.

use alloc::{
    boxed::Box,
    string::{String, ToString},
};
use core::{cmp::Ordering, fmt, str::FromStr};

/// Largest power of ten, up or down, that a number may be written with: 10^9.
///
/// A number beyond it is refused instead of being compared wrongly; zero may be written with any exponent.
pub const EXPONENT_MAX: i64 = 1_000_000_000;

/// Most bytes of the spelling of a [`Number`], the kind that stands in a schema as a bound or default: 400, enough
/// for every `f64` written out.
pub const NUMBER_BYTES_MAX: usize = 400;

/// Digits of the widest integer type, `u128`: whole numbers up to here are spelled as plain digits, which is
/// what integer types decode from.
const WHOLE_DIGITS: i64 = 39;

/// Whole numbers of up to this many digits are the same whether read as an integer or as an `f64`.
const F64_DIGITS: i64 = 15;

/// An exact decimal number: a bound or a default of a form.
///
/// Equality and order are those of the values, to the last digit: `1.0` equals `1`, and 2^53 + 1 differs from 2^53.
/// It is written as it was spelled, except that whole numbers lose a fraction of zeros and an exponent, since
/// some peers take whole numbers only in that spelling (R-116, R-131, B-31).
///
/// ```
/// use mrtr_core::form::Number;
///
/// let half: Number = "0.5".parse()?;
/// assert!(half < Number::from(1));
/// assert_eq!("1e2".parse::<Number>()?, Number::from(100));
/// assert!("9007199254740993".parse::<Number>()? > Number::from(9_007_199_254_740_992_i64));
/// # Ok::<(), mrtr_core::form::NotANumber>(())
/// ```
#[derive(Clone)]
pub struct Number(Box<str>);

/// Text that is no JSON number, or one that is out of bounds ([`EXPONENT_MAX`], [`NUMBER_BYTES_MAX`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON number of ordinary size")]
pub struct NotANumber;

impl Number {
    /// The spelling: a valid JSON number.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the value is whole: `3`, `3.0` and `3e2` are (G-22).
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.decimal().is_whole()
    }

    pub(super) fn decimal(&self) -> Decimal<'_> {
        Decimal::parse(&self.0).unwrap_or(Decimal::ZERO)
    }
}

impl FromStr for Number {
    type Err = NotANumber;

    fn from_str(text: &str) -> Result<Self, NotANumber> {
        if text.len() > NUMBER_BYTES_MAX {
            return Err(NotANumber);
        }
        let decimal = Decimal::parse(text).map_err(|_| NotANumber)?;
        Ok(Self(decimal.plain(true).unwrap_or_else(|| text.to_string()).into_boxed_str()))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.decimal().compare(&other.decimal())
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Rust numbers that can be a bound or a default of a field: all integers, `f32`, `f64` and [`Number`].
///
/// Sealed: it is here to be used, not implemented.
pub trait IntoNumber: sealed::Sealed {
    /// The exact decimal, or `None` for a float that is infinite or no number. A float stands for the shortest
    /// decimal that reads back as it: `0.1` is one tenth.
    fn into_number(self) -> Option<Number>;
}

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for Number {}

impl IntoNumber for Number {
    fn into_number(self) -> Option<Number> {
        Some(self)
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl From<$integer> for Number {
            fn from(value: $integer) -> Self {
                Self(value.to_string().into_boxed_str())
            }
        }

        impl sealed::Sealed for $integer {}

        impl IntoNumber for $integer {
            fn into_number(self) -> Option<Number> {
                Some(self.into())
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

macro_rules! floats {
    ($($float:ty)*) => {$(
        impl sealed::Sealed for $float {}

        impl IntoNumber for $float {
            fn into_number(self) -> Option<Number> {
                if !self.is_finite() {
                    return None;
                }
                // Written out where that is short, as JSON writers do.
                let written_out = self == 0.0 || (1e-6..1e21).contains(&self.abs());
                let text = if written_out { alloc::format!("{self}") } else { alloc::format!("{self:e}") };
                text.parse().ok()
            }
        }
    )*};
}

floats!(f32 f64);

/// A number taken apart, borrowing its digits: ±0.D × 10^`point`, where D is `whole` followed by `fraction`.
/// D neither begins nor ends with 0; it is empty for zero, which has no sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    point: i64,
}

/// Why text is no [`Decimal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecimalFault {
    /// Not a JSON number.
    Syntax,
    /// Its exponent is beyond [`EXPONENT_MAX`].
    Exponent,
}

impl<'a> Decimal<'a> {
    const ZERO: Self = Self { negative: false, whole: "", fraction: "", point: 0 };

    /// Takes the text of a JSON number apart.
    pub(super) fn parse(text: &'a str) -> Result<Self, DecimalFault> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (text.get(..at).unwrap_or(""), text.get(at + 1..)),
            None => (text, None),
        };
        let (negative, mantissa) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) if digits(fraction) => (whole, fraction),
            Some(_) => return Err(DecimalFault::Syntax),
            None => (mantissa, ""),
        };
        if !digits(whole) || (whole.len() > 1 && whole.starts_with('0')) {
            return Err(DecimalFault::Syntax);
        }
        let exponent = match exponent {
            None => Some(0),
            Some(exponent) => {
                let (down, magnitude) = match exponent.strip_prefix('-') {
                    Some(rest) => (true, rest),
                    None => (false, exponent.strip_prefix('+').unwrap_or(exponent)),
                };
                if !digits(magnitude) {
                    return Err(DecimalFault::Syntax);
                }
                let magnitude = magnitude.trim_start_matches('0');
                let magnitude = if magnitude.is_empty() { Ok(0) } else { magnitude.parse::<i64>() };
                magnitude
                    .ok()
                    .filter(|size| *size <= EXPONENT_MAX)
                    .map(|size| if down { -size } else { size })
            }
        };
        let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
        let mut whole = whole.trim_start_matches('0');
        let mut fraction = fraction.trim_end_matches('0');
        let mut point = length(whole);
        if whole.is_empty() {
            let significant = fraction.trim_start_matches('0');
            point = length(significant) - length(fraction);
            fraction = significant;
        }
        if fraction.is_empty() {
            whole = whole.trim_end_matches('0');
            if whole.is_empty() {
                return Ok(Self::ZERO);
            }
        }
        let exponent = exponent.ok_or(DecimalFault::Exponent)?;
        Ok(Self { negative, whole, fraction, point: point.saturating_add(exponent) })
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.bytes().chain(self.fraction.bytes())
    }

    fn digit_count(&self) -> i64 {
        i64::try_from(self.whole.len() + self.fraction.len()).unwrap_or(i64::MAX)
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    /// The order of the values.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.is_zero(), number.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let signs = sign(self).cmp(&sign(other));
        if signs.is_ne() {
            return signs;
        }
        // Without leading zeros the point decides first; without trailing ones the digits compare as text does.
        let magnitude = self.point.cmp(&other.point).then_with(|| self.digits().cmp(other.digits()));
        if self.negative { magnitude.reverse() } else { magnitude }
    }

    /// Whether no digit stands behind the point.
    pub(super) fn is_whole(&self) -> bool {
        self.is_zero() || self.point >= self.digit_count()
    }

    /// A count: `None` if negative or not whole; what exceeds 64 bits is `u64::MAX`, for no length reaches it.
    pub(super) fn to_count(self) -> Option<u64> {
        if self.negative || !self.is_whole() {
            return None;
        }
        let text = self.plain(true);
        Some(text.and_then(|text| text.parse().ok()).unwrap_or(u64::MAX))
    }

    /// The plain digits of a whole number, where that loses nothing: up to the widest integer type for a field
    /// of whole numbers, up to what is exact in an `f64` for others. No sign on zero, which integer types refuse.
    pub(super) fn plain(&self, integer: bool) -> Option<String> {
        let most = if integer { WHOLE_DIGITS } else { F64_DIGITS };
        if !self.is_whole() || self.point > most {
            return None;
        }
        if self.is_zero() {
            return Some("0".to_string());
        }
        let mut out = String::new();
        if self.negative {
            out.push('-');
        }
        out.push_str(self.whole);
        out.push_str(self.fraction);
        out.extend((self.digit_count()..self.point).map(|_| '0'));
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal<'_> {
        Decimal::parse(text).unwrap()
    }

    /// G-22 and design §5: values, not spellings, to the last digit.
    #[test]
    fn compares_values() {
        let ascending = [
            "-1e1000000000",
            "-9007199254740993",
            "-9007199254740992",
            "-2",
            "-1.5",
            "-1e-1000000000",
            "0",
            "1e-1000000000",
            "0.1",
            "0.10000000000000000000000000000000000000001",
            "0.2",
            "1",
            "1.5",
            "9",
            "10",
            "99.99",
            "1e2",
            "9007199254740992",
            "9007199254740993",
            "18446744073709551615",
            "18446744073709551616",
            "1e999999999",
            "1.000000000000000000001e999999999",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(decimal(a).compare(&decimal(b)), i.cmp(&j), "{a} {b}");
            }
        }
    }

    #[test]
    fn spellings_of_one_value_are_equal() {
        for group in [
            &["0", "-0", "0.0", "0e5", "0E-99999999999999999999999", "-0.000e+0"][..],
            &["100", "1e2", "1E+2", "100.0", "10.0e1", "1000e-1", "0.1e3", "1e0000000000000000000002"],
            &["-0.25", "-25e-2", "-0.025e1", "-0.2500"],
        ] {
            for a in group {
                for b in group {
                    assert_eq!(decimal(a).compare(&decimal(b)), Ordering::Equal, "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn only_json_numbers_are_numbers() {
        for text in [
            "", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "1e1.0", "NaN", "0x1", " 1", "1 ", "1e--1",
            "--1", "1..2",
        ] {
            assert_eq!(Decimal::parse(text), Err(DecimalFault::Syntax), "{text:?}");
        }
        for text in ["1e1000000001", "1e-1000000001", "1e9999999999999999999999"] {
            assert_eq!(Decimal::parse(text), Err(DecimalFault::Exponent), "{text:?}");
        }
    }

    #[test]
    fn whole_numbers() {
        for (text, plain) in [
            ("3.0", "3"),
            ("1e2", "100"),
            ("-0.0", "0"),
            ("12.50e1", "125"),
            ("18446744073709551616", "18446744073709551616"),
        ] {
            assert!(decimal(text).is_whole(), "{text}");
            assert_eq!(decimal(text).plain(true).as_deref(), Some(plain));
        }
        for text in ["1.5", "1e-1", "12.5e0", "-0.1", "1e-999999999"] {
            assert!(!decimal(text).is_whole(), "{text}");
            assert_eq!(decimal(text).plain(true), None);
        }
        // Whole, but too long to write out: stays as it is.
        assert_eq!(decimal("1e999999999").plain(true), None);
        assert_eq!(decimal("1e16").plain(false), None);
        assert_eq!(decimal("1e14").plain(false).as_deref(), Some("100000000000000"));
    }

    #[test]
    fn counts() {
        assert_eq!(decimal("12.0").to_count(), Some(12));
        assert_eq!(decimal("1e999").to_count(), Some(u64::MAX));
        assert_eq!(decimal("18446744073709551616").to_count(), Some(u64::MAX));
        assert_eq!(decimal("-1").to_count(), None);
        assert_eq!(decimal("1.5").to_count(), None);
    }

    #[test]
    fn floats_are_their_shortest_decimal() {
        assert_eq!(0.1_f64.into_number().unwrap().as_str(), "0.1");
        assert_eq!(0.1_f32.into_number().unwrap().as_str(), "0.1");
        assert_eq!(1.0_f64.into_number().unwrap().as_str(), "1");
        assert_eq!(1e300_f64.into_number().unwrap().as_str(), "1e300");
        assert_eq!((-0.0_f64).into_number().unwrap().as_str(), "0");
        assert_eq!(f64::MIN_POSITIVE.into_number().unwrap(), "2.2250738585072014e-308".parse().unwrap());
        assert!(f64::NAN.into_number().is_none() && f64::INFINITY.into_number().is_none());
    }
}
