//! The store in memory: linear, bounded, never forgetful before time (B7; guarantee: no unbounded memory).

use std::collections::BTreeMap;

use mrtr_core::{
    Timestamp,
    ledger::{Command, Key, Memory, MemoryLimits, Operation, StoreEvent},
};
use proptest::prelude::*;

use super::support::*;

#[derive(Clone, Debug)]
struct Op {
    after: u64,
    key: u8,
    /// `None`: a get. Otherwise which value to expect (0: what is there) and what to put there.
    swap: Option<(u8, Option<u16>)>,
    lives: u64,
}

fn op() -> impl Strategy<Value = Op> {
    let length = prop_oneof![Just(60u16), Just(320), 321..700u16];
    let swap = prop::option::weighted(0.9, (0u8..5, prop::option::weighted(0.8, length)));
    (0u64..40, 0u8..12, swap, 1u64..400).prop_map(|(after, key, swap, lives)| Op { after, key, swap, lives })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Against a plain map without bounds: what was taken is there until it expires, byte for byte; what was not
    /// taken was refused for a bound that it would have broken; the bounds always hold.
    #[test]
    fn it_is_a_bounded_map(ops in prop::collection::vec(op(), 1..120)) {
        let mut limits = MemoryLimits::default();
        (limits.entries, limits.reply_bytes) = (6, 1_500);
        let mut store = Memory::new(limits);
        let mut model: BTreeMap<Key, (Vec<u8>, Timestamp)> = BTreeMap::new();
        let mut millis = 0;
        for (number, op) in ops.into_iter().enumerate() {
            millis += op.after;
            let now = Timestamp::from_unix_millis(millis);
            model.retain(|_, (_, expires)| *expires > now);
            let key = Key::new("m", [op.key; 16], 0);
            let current = model.get(&key).map(|(bytes, _)| bytes.clone());
            let Some((expect, length)) = op.swap else {
                let event = store.apply(now, &Command::new(key, Operation::Get));
                prop_assert_eq!(event, StoreEvent::Current(current));
                continue;
            };
            let expected = if expect == 0 { None } else { current.clone() };
            let new = length.map(|length| vec![number as u8; usize::from(length)]);
            let expires = Timestamp::from_unix_millis(millis + op.lives);
            let operation =
                Operation::CompareAndSet { expected: expected.clone(), new: new.clone(), expires };
            let event = store.apply(now, &Command::new(key, operation));
            if expected != current {
                prop_assert_eq!(event, StoreEvent::Current(current));
                continue;
            }
            let mut next = model.clone();
            match new {
                Some(new) => next.insert(key, (new, expires)),
                None => next.remove(&key),
            };
            let replies = |model: &BTreeMap<Key, (Vec<u8>, Timestamp)>| {
                model.values().map(|(bytes, _)| bytes.len()).filter(|length| *length > 320).sum::<usize>()
            };
            let fits = next.len() <= 6 && replies(&next) <= 1_500;
            prop_assert_eq!(event, if fits { StoreEvent::Applied } else { StoreEvent::Full });
            if fits {
                model = next;
            }
            prop_assert_eq!((store.len(), store.reply_bytes()), (model.len(), replies(&model)));
            prop_assert!(store.len() <= 6 && store.reply_bytes() <= 1_500);
            prop_assert_eq!(store.next_expiry(), model.values().map(|(_, expires)| *expires).min());
        }
        store.expire(Timestamp::from_unix_millis(u64::MAX));
        prop_assert!(store.is_empty() && store.reply_bytes() == 0);
    }
}

/// A clock that goes back brings nothing back and breaks nothing.
#[test]
fn a_clock_that_goes_back_does_no_harm() {
    let mut bench = Bench::new(Default::default());
    let run = bench.run(500.0);
    assert!(bench.entry(100.0).is_some());
    bench.finish(100.0, run, COMPLETE);
    assert_eq!(bench.replayed(90.0, retry()).member(), RESULT);
}

/// Both bounds are inclusive; entries that hold no reply count as entries only.
#[test]
fn the_bounds_are_inclusive() {
    let mut limits = MemoryLimits::default();
    (limits.entries, limits.reply_bytes) = (3, 1_000);
    let mut store = Memory::new(limits);
    let mut put = |which: u8, length: usize| {
        let operation =
            Operation::CompareAndSet { expected: None, new: Some(vec![0; length]), expires: at(1.0) };
        store.apply(at(0.0), &Command::new(Key::new("m", [which; 16], 0), operation))
    };
    assert_eq!(put(1, 320), StoreEvent::Applied);
    assert_eq!(put(2, 1_001), StoreEvent::Full);
    assert_eq!(put(2, 1_000), StoreEvent::Applied);
    assert_eq!(put(3, 321), StoreEvent::Full);
    assert_eq!(put(3, 320), StoreEvent::Applied);
    assert_eq!(put(4, 1), StoreEvent::Full);
}
