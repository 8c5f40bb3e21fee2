//! JSON values with exact numbers, random ones, random spellings of them, and the spellings of well-known encoders.

mod encoder;

use std::{collections::BTreeMap, fmt::Write as _};

use proptest::prelude::*;

pub use encoder::Encoder;

/// A JSON value. Equal trees are equal values: members have no order and numbers one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    Null,
    Bool(bool),
    Number(Decimal),
    Text(String),
    Array(Vec<Tree>),
    Object(BTreeMap<String, Tree>),
}

/// `digits` times ten to `exponent`; zero has no digits and no sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal {
    pub negative: bool,
    /// Neither the first nor the last is 0.
    pub digits: String,
    pub exponent: i64,
}

impl Decimal {
    pub fn new(negative: bool, digits: &str, exponent: i64) -> Self {
        let kept = digits.trim_end_matches('0');
        let exponent = exponent + i64::try_from(digits.len() - kept.len()).unwrap();
        let digits = kept.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Self { negative: false, digits, exponent: 0 };
        }
        Self { negative, digits, exponent }
    }

    /// The shortest decimal that reads back as this double, which is what encoders write.
    pub fn shortest(double: f64) -> Self {
        let text = format!("{:e}", double.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap();
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent = exponent.parse::<i64>().unwrap() - i64::try_from(fraction.len()).unwrap();
        Self::new(double < 0.0, &format!("{whole}{fraction}"), exponent)
    }

    pub fn double(&self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{}e{}", if self.digits.is_empty() { "0" } else { &self.digits }, self.exponent)
            .parse()
            .unwrap()
    }
}

/// A source of choices: splitmix64.
#[derive(Clone, Debug)]
pub struct Choices(pub u64);

impl Choices {
    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(bound).unwrap()).unwrap()
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

pub fn choices() -> impl Strategy<Value = Choices> {
    any::<u64>().prop_map(Choices)
}

/// Any number, with many near each other and near what 64 bits and doubles can hold.
pub fn decimal() -> impl Strategy<Value = Decimal> {
    let edges = prop_oneof![
        Just(1_u128 << 53),
        Just(1_u128 << 63),
        Just(1_u128 << 64),
        Just(u128::MAX - 1),
        Just(1_000_u128)
    ];
    prop_oneof![
        (any::<bool>(), 0..20_u32).prop_map(|(sign, digits)| Decimal::new(sign, &digits.to_string(), 0)),
        (any::<bool>(), edges, 0..3_u128).prop_map(|(sign, edge, more)| Decimal::new(
            sign,
            &(edge - 1 + more).to_string(),
            0
        )),
        (any::<bool>(), "[0-9]{1,40}", -400..400_i64)
            .prop_map(|(sign, digits, exponent)| Decimal::new(sign, &digits, exponent)),
        (any::<bool>(), 1..100_u32, -999_999_000..999_999_000_i64)
            .prop_map(|(sign, digits, exponent)| Decimal::new(sign, &digits.to_string(), exponent)),
        double().prop_map(Decimal::shortest),
    ]
}

fn double() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO
}

/// Numbers that a double tells apart: integers up to 2^53, and decimals of at most 15 digits.
pub fn small_decimal() -> impl Strategy<Value = Decimal> {
    prop_oneof![
        (-(1_i64 << 53)..=1 << 53).prop_map(|n| Decimal::new(n < 0, &n.unsigned_abs().to_string(), 0)),
        (any::<bool>(), "[0-9]{1,15}", -290..290_i64).prop_map(|(s, digits, e)| Decimal::new(s, &digits, e)),
    ]
}

/// Numbers as an encoder of doubles writes them.
pub fn double_decimal() -> impl Strategy<Value = Decimal> {
    double().prop_map(Decimal::shortest)
}

pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab]{0,2}",
        "[\u{0}-\u{20}\"\\\\/<>&é\u{7f}\u{85}\u{2028}\u{d7ff}\u{e000}\u{ffff}😀]{0,4}",
        any::<String>()
    ]
}

pub fn tree<D: Strategy<Value = Decimal> + 'static>(number: D) -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::Bool),
        number.prop_map(Tree::Number),
        text().prop_map(Tree::Text),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Tree::Array),
            prop::collection::btree_map(text(), inner, 0..5).prop_map(Tree::Object),
        ]
    })
}

impl Tree {
    /// One of the many texts of this value.
    pub fn spell(&self, choices: &mut Choices) -> String {
        let mut out = String::new();
        self.spell_into(choices, &mut out);
        out
    }

    fn spell_into(&self, choices: &mut Choices, out: &mut String) {
        space(choices, out);
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => write!(out, "{value}").unwrap(),
            Self::Number(number) => spell_number(number, choices, out),
            Self::Text(text) => spell_text(text, choices, out),
            Self::Array(elements) => {
                out.push('[');
                for (n, element) in elements.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { "," });
                    element.spell_into(choices, out);
                }
                space(choices, out);
                out.push(']');
            }
            Self::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                for n in (1..members.len()).rev() {
                    members.swap(n, choices.below(n + 1));
                }
                out.push('{');
                for (n, (name, member)) in members.into_iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { "," });
                    space(choices, out);
                    spell_text(name, choices, out);
                    space(choices, out);
                    out.push(':');
                    member.spell_into(choices, out);
                }
                space(choices, out);
                out.push('}');
            }
        }
        space(choices, out);
    }

    /// The same tree with one small change somewhere. It may be the same value after all.
    pub fn mutate(&self, choices: &mut Choices) -> Self {
        let mut changed = self.clone();
        changed.change(choices);
        changed
    }

    fn change(&mut self, choices: &mut Choices) {
        if choices.below(12) == 0 {
            let other = choices.below(8);
            *self = match other {
                0 => Self::Null,
                1 => Self::Bool(false),
                2 => Self::Number(Decimal::new(false, "", 0)),
                3 => Self::Text(String::new()),
                4 => Self::Array(vec![]),
                5 => Self::Object(BTreeMap::new()),
                6 => Self::Array(vec![self.clone()]),
                _ => Self::Object([(String::new(), self.clone())].into()),
            };
            return;
        }
        match self {
            Self::Null => *self = Self::Bool(choices.below(2) == 0),
            Self::Bool(value) => *value = !*value,
            Self::Number(number) => change_number(number, choices),
            Self::Text(text) => change_text(text, choices),
            Self::Array(elements) => {
                let at = choices.below(elements.len() + 1);
                match choices.below(4) {
                    0 => elements.insert(at, Self::Null),
                    1 if at < elements.len() => drop(elements.remove(at)),
                    2 if at + 1 < elements.len() => elements.swap(at, at + 1),
                    _ if at < elements.len() => elements[at].change(choices),
                    _ => elements.push(Self::Array(vec![])),
                }
            }
            Self::Object(members) => {
                let name = members.keys().nth(choices.below(members.len() + 1)).cloned();
                match (choices.below(4), name) {
                    (0, _) | (_, None) => {
                        members.insert("n".into(), Self::Null);
                    }
                    (1, Some(name)) => drop(members.remove(&name)),
                    (2, Some(mut name)) => {
                        let member = members.remove(&name).unwrap();
                        change_text(&mut name, choices);
                        members.insert(name, member);
                    }
                    (_, Some(name)) => members.get_mut(&name).unwrap().change(choices),
                }
            }
        }
    }
}

fn change_number(number: &mut Decimal, choices: &mut Choices) {
    let Decimal { negative, digits, exponent } = number.clone();
    *number = match choices.below(4) {
        0 => Decimal::new(!negative, &digits, exponent),
        1 => Decimal::new(negative, &digits, exponent + 1),
        2 => Decimal::new(negative, &digits, exponent - 1),
        _ => {
            let last = if digits.ends_with('1') { "2" } else { "1" };
            Decimal::new(negative, &format!("{}{last}", &digits[..digits.len().saturating_sub(1)]), exponent)
        }
    };
}

fn change_text(text: &mut String, choices: &mut Choices) {
    let mut characters: Vec<char> = text.chars().collect();
    let at = choices.below(characters.len() + 1);
    match choices.below(3) {
        0 if at < characters.len() => drop(characters.remove(at)),
        1 if at < characters.len() => characters[at] = choices.pick(&['x', '\0', 'é', '\u{10ffff}']),
        _ => characters.insert(at, choices.pick(&['y', '\\', 'ê', '\u{e000}'])),
    }
    *text = characters.into_iter().collect();
}

fn space(choices: &mut Choices, out: &mut String) {
    while choices.below(6) == 0 {
        out.push(choices.pick(&[' ', '\n', '\r', '\t']));
    }
}

fn spell_text(text: &str, choices: &mut Choices, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        let short = "\"\\/\u{8}\u{c}\n\r\t".chars().zip("\"\\/bfnrt".chars()).find(|(c, _)| *c == character);
        match (short, choices.below(4)) {
            (Some((_, escape)), 0..=2) => out.extend(['\\', escape]),
            (None, 0..=2) if character >= ' ' => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let digits = format!("{unit:04x}");
                    let digits = if choices.below(2) == 0 { digits.to_uppercase() } else { digits };
                    write!(out, "\\u{digits}").unwrap();
                }
            }
        }
    }
    out.push('"');
}

fn spell_number(number: &Decimal, choices: &mut Choices, out: &mut String) {
    if number.digits.is_empty() {
        out.push_str(choices.pick(&["0", "-0", "0.0", "0e0", "-0.00E+17", "0e-5"]));
        return;
    }
    if number.negative {
        out.push('-');
    }
    if number.exponent.abs() <= 25 && choices.below(2) == 0 {
        let from = out.len();
        positional_number(&number.digits, number.exponent, out);
        let end =
            if out[from..].contains('.') { choices.pick(&["", "0"]) } else { choices.pick(&["", ".00"]) };
        out.push_str(end);
        return;
    }
    // The point goes anywhere in the digits, padded with zeros on both sides.
    let zeros = choices.below(3);
    let padded = "0".repeat(choices.below(3)) + &number.digits + &"0".repeat(zeros);
    let (whole, fraction) = padded.split_at(choices.below(padded.len() + 1));
    let whole = whole.trim_start_matches('0');
    let exponent = number.exponent + i64::try_from(fraction.len()).unwrap() - i64::try_from(zeros).unwrap();
    out.push_str(if whole.is_empty() { "0" } else { whole });
    if !fraction.is_empty() {
        write!(out, ".{fraction}").unwrap();
    }
    if exponent != 0 || choices.below(3) == 0 {
        let sign = if exponent < 0 { "-" } else { choices.pick(&["", "+"]) };
        let zeros = if exponent.abs() < 1_000_000 { choices.pick(&["", "", "00"]) } else { "" };
        write!(out, "{}{sign}{zeros}{}", choices.pick(&['e', 'E']), exponent.abs()).unwrap();
    }
}

/// Digits times ten to `exponent`, written without an exponent.
fn positional_number(digits: &str, exponent: i64, out: &mut String) {
    if exponent >= 0 {
        out.push_str(digits);
        out.push_str(&"0".repeat(usize::try_from(exponent).unwrap()));
        return;
    }
    let places = usize::try_from(-exponent).unwrap();
    let padded = "0".repeat((places + 1).saturating_sub(digits.len())) + digits;
    let (whole, fraction) = padded.split_at(padded.len() - places);
    write!(out, "{whole}.{fraction}").unwrap();
}
