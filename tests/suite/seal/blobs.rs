//! Blobs: what the service stores or sends to itself (R-076, R-256, B3).

use mrtr_core::seal::{BlobKind, KeyRing, Verdict};

use super::{SUITES, entropy, sealers, secret};

#[test]
fn a_blob_opens_only_where_it_belongs() {
    for (_, make) in SUITES {
        let sealer = make(&KeyRing::new(secret(7)), "billing");
        let blob = sealer.seal_blob(BlobKind::Ledger, b"entry/1", b"reply", &entropy(1)).expect("sealed");
        let opened = sealer.open_blob(BlobKind::Ledger, b"entry/1", &blob).expect("in its place");
        assert_eq!(&*opened, b"reply");
        let elsewhere = [
            sealer.open_blob(BlobKind::Handle, b"entry/1", &blob),
            sealer.open_blob(BlobKind::Ledger, b"entry/2", &blob),
            sealer.open_blob(BlobKind::Ledger, b"", &blob),
            // The same bytes in a row, divided elsewhere.
            make(&KeyRing::new(secret(7)), "billinge").open_blob(BlobKind::Ledger, b"ntry/1", &blob),
            make(&KeyRing::new(secret(7)), "ledger").open_blob(BlobKind::Ledger, b"entry/1", &blob),
        ];
        for refused in elsewhere {
            assert_eq!(refused, Err(Verdict::Unauthentic));
        }
        let other = make(&KeyRing::new(secret(8)), "billing");
        assert_eq!(other.open_blob(BlobKind::Ledger, b"entry/1", &blob), Err(Verdict::UnknownKey));
    }
}

#[test]
fn every_change_of_a_byte_is_refused() {
    for sealer in sealers() {
        let blob = sealer.seal_blob(BlobKind::Handle, b"epoch", b"handle", &entropy(1)).expect("sealed");
        for at in 0..blob.len() {
            for flip in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
                let mut changed = blob.clone();
                changed[at] ^= flip;
                assert!(sealer.open_blob(BlobKind::Handle, b"epoch", &changed).is_err());
            }
            assert!(sealer.open_blob(BlobKind::Handle, b"epoch", &blob[..at]).is_err());
        }
        for byte in [0, 255] {
            let longer = [&blob[..], &[byte]].concat();
            assert!(sealer.open_blob(BlobKind::Handle, b"epoch", &longer).is_err());
        }
    }
}

// Encrypted where the suite encrypts.
#[test]
fn the_store_cannot_read_replies() {
    let reply = b"the answer is forty-two".repeat(4);
    let readable = sealers().map(|sealer| {
        let blob = sealer.seal_blob(BlobKind::Ledger, b"", &reply, &entropy(1)).expect("sealed");
        blob.windows(23).any(|window| window == b"the answer is forty-two")
    });
    assert_eq!(readable.collect::<Vec<_>>(), [true, false, false]);
}
