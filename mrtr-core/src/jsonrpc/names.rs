//! Sorting the names of an object by what they decode to, at a cost that no choice of names drives up.

use alloc::vec::Vec;

use super::text;

/// Up to here names are compared pair by pair.
const FEW: usize = 24;

/// Sorts what `name` finds the opening quotes of by code point, which for text is by UTF-8. If two names are
/// the same, returns where the second of such a pair stands.
///
/// Few names are compared as they stand and nothing is allocated. Comparing many would read long common
/// beginnings and escapes again and again; so they are sorted by their first three code points, those that
/// are equal so far by the next three, and so on: every name is decoded at most once.
pub(crate) fn sort<T: Copy>(text: &str, items: &mut [T], name: impl Fn(&T) -> usize) -> Option<usize> {
    if items.len() > FEW {
        return sort_many(text, items, name);
    }
    items.sort_unstable_by(|a, b| text::compare(text, name(a), name(b)).then(name(a).cmp(&name(b))));
    items.windows(2).find_map(|pair| match pair {
        [a, b] if text::compare(text, name(a), name(b)).is_eq() => Some(name(b)),
        _ => None,
    })
}

/// An item while it is sorted.
#[derive(Clone, Copy)]
struct Key<T> {
    /// Three code points, each plus one, the first in the highest bits; 0 after the end.
    word: u64,
    /// Where the next code point stands.
    at: usize,
    item: T,
}

impl<T> Key<T> {
    /// Takes the next three code points.
    fn advance(&mut self, text: &str) {
        self.word = 0;
        for _ in 0..3 {
            let (point, after) =
                text::point(text, self.at).map_or((0, self.at), |(point, after)| (point + 1, after));
            self.word = (self.word << 21) | u64::from(point);
            self.at = after;
        }
    }

    /// Whether the last code points taken include the end.
    const fn ended(&self) -> bool {
        self.word & 0x1f_ffff == 0
    }
}

fn sort_many<T: Copy>(text: &str, items: &mut [T], name: impl Fn(&T) -> usize) -> Option<usize> {
    let mut keys: Vec<_> =
        items.iter().map(|item| Key { word: 0, at: name(item) + 1, item: *item }).collect();
    let mut second = None;
    // Ranges of keys that are equal so far.
    let mut ties = Vec::from([(0, keys.len())]);
    while let Some((from, to)) = ties.pop() {
        let tied = keys.get_mut(from..to).unwrap_or_default();
        for key in &mut *tied {
            key.advance(text);
        }
        tied.sort_unstable_by_key(|key| (key.word, name(&key.item)));
        let mut start = from;
        for equal in tied.chunk_by(|a, b| a.word == b.word) {
            let end = start + equal.len();
            if let [_, other, ..] = equal {
                if other.ended() {
                    second = second.or(Some(name(&other.item)));
                } else {
                    ties.push((start, end));
                }
            }
            start = end;
        }
    }
    for (item, key) in items.iter_mut().zip(keys) {
        *item = key.item;
    }
    second
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::String};

    use super::*;

    /// Names that share beginnings and are spelled differently, few and many, against a plain sort.
    #[test]
    fn many_names_are_sorted_as_few_are() {
        let spell = |n: usize| match n % 6 {
            0 => format!("aaaa{}", n * 7919 % 1000),
            1 => format!("a\\u0061aa{}", n * 7919 % 1000),
            2 => format!("aaaa\\ud83d\\ude00{}\\\"", n % 13 * 1000 + n),
            3 => format!("aaaa😀{}\\ud800", n),
            4 => format!("b{}", "\\u0000".repeat(n / 6)),
            _ => "a".repeat(n),
        };
        for count in [0, 1, 2, FEW, FEW + 1, 200] {
            let mut text = String::new();
            let mut places: Vec<usize> = Vec::new();
            for n in 0..count {
                places.push(text.len());
                text += &format!("\"{}\"", spell(n));
            }
            let mut expected = places.clone();
            expected.sort_by(|&a, &b| text::compare(&text, a, b));
            assert_eq!(sort(&text, &mut places, |&at| at), None, "{count}");
            assert_eq!(places, expected, "{count}");
        }
    }

    /// G-38: the one name that stands twice is found, wherever it stands and however it is written.
    #[test]
    fn a_name_that_stands_twice_is_found() {
        for count in [2, FEW, FEW + 1, 100] {
            for twin in [0, count / 2, count - 1] {
                let mut text = String::new();
                let mut places: Vec<usize> = Vec::new();
                let mut add = |name: String| {
                    places.push(text.len());
                    text += &name;
                };
                (0..count).for_each(|n| add(format!("\"name{n}\"")));
                add(format!("\"na\\u006de{twin}\""));
                let last = *places.last().unwrap();
                assert_eq!(sort(&text, &mut places, |&at| at), Some(last), "{count} {twin}");
            }
        }
    }
}
