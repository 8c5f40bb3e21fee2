//! The record in the store: read strictly, one encoding for each (B2…B6).

use mrtr_core::{
    Entropy,
    ledger::{Action, Claim, Entry, Policy},
};
use proptest::prelude::*;

use super::support::*;

/// The layout of version 1 is fixed: replicas of two releases share a store.
#[test]
fn version_1_is_frozen() {
    let mut bytes = vec![1, 1];
    bytes.extend([1; 32]);
    bytes.extend([9; 16]);
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 1]);
    bytes.extend([5; 8]);
    bytes.extend([0, 0, 0, 0, 0, 0, 0x56, 0x78]);
    let Ok(Entry::Held(held)) = Entry::decode(&bytes) else { panic!() };
    assert_eq!((held.digest, held.owner), (answers(1), [9; 16]));
    assert_eq!(held.lease_until.as_unix_millis(), 0x1234);
    assert_eq!((held.waiters[0].id, held.waiters[0].until.as_unix_millis()), ([5; 8], 0x5678));

    let head = |tag| [vec![1, tag], vec![1; 32], vec![9; 16]].concat();
    let done = [head(3), vec![1, 0, 0, 0, 2, 7, 8]].concat();
    assert!(matches!(Entry::decode(&done), Ok(Entry::Done(done)) if done.sealed.as_deref() == Some(&[7, 8])));
    assert!(matches!(Entry::decode(&head(4)), Ok(Entry::Lost(_))));
}

/// A reader of another version runs nothing and changes nothing.
#[test]
fn other_versions_are_left_alone() {
    let mut bench = Bench::new(Policy::default());
    let foreign = vec![2, 1, 2, 3];
    bench.put(0.0, key(), Some(foreign.clone()));
    assert_eq!(bench.refused(1.0, retry()), mrtr_core::ledger::Refusal::Unreadable);
    assert_eq!(bench.bytes(1.0), Some(foreign));
}

/// A claim is made of its entropy alone: same in, same out; another draw, another owner.
#[test]
fn owners_are_drawn() {
    let first = |seed| match Claim::new(retry(), &Policy::default(), Entropy::new([seed; 32])).poll(at(0.0)) {
        Action::Store(command) => command,
        other => panic!("{other:?}"),
    };
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever is read is written back as it was; the rest is refused, never a panic.
    #[test]
    fn decode_then_encode_is_the_identity(
        tag in 0u8..6,
        head in prop::collection::vec(any::<u8>(), 48),
        once in 0u8..3,
        lease in any::<u64>(),
        waiters in prop::collection::vec(any::<[u8; 16]>(), 0..18),
        cut in 0usize..8,
    ) {
        let mut bytes = vec![1, tag];
        bytes.extend(head);
        bytes.push(once);
        bytes.extend(lease.to_be_bytes());
        bytes.push(waiters.len() as u8);
        bytes.extend(waiters.concat());
        let end = bytes.len().saturating_sub(cut / 6);
        if let Ok(entry) = Entry::decode(&bytes[..end]) {
            prop_assert!(matches!(entry, Entry::Held(_)));
            prop_assert_eq!(entry.encode(), &bytes[..end]);
        }
    }

    /// No bytes at all make it panic.
    #[test]
    fn any_bytes_are_an_entry_or_malformed(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        if let Ok(entry) = Entry::decode(&bytes) {
            prop_assert_eq!(entry.encode(), bytes);
        }
    }
}
