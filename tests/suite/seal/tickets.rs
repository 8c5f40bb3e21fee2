//! Tickets for the page behind a url ask.

use mrtr_core::seal::{KeyRing, Principal, SealError, Sealer, Ticket, Verdict};

use super::{ADA, NOW, SUITES, after, before, claims, entropy, sealers, secret, token, verdict};

fn ticket() -> Ticket {
    Ticket { exchange: claims(1).exchange, key: "pay#2".into(), expires: after(NOW, 600_000) }
}

#[test]
fn a_ticket_opens_for_its_visitor_until_it_expires() {
    for sealer in sealers() {
        let sealed = sealer.seal_ticket(&ticket(), ADA.principal, &entropy(1)).expect("sealed");
        assert!(sealed.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_'));
        let open = |principal, now| verdict(sealer.open_ticket(&sealed, principal, now));
        assert_eq!(open(ADA.principal, before(NOW, 1_000_000)), Ok(ticket()));
        assert_eq!(open(ADA.principal, after(NOW, 599_999)), Ok(ticket()));
        assert_eq!(open(ADA.principal, after(NOW, 600_000)), Err(Verdict::Expired));
        for other in [Principal::Anonymous, Principal::Authenticated(b""), Principal::Authenticated(b"eve")] {
            assert_eq!(open(other, NOW), Err(Verdict::OtherPrincipal));
            // The order of verdicts is that of states.
            assert_eq!(open(other, after(NOW, 600_000)), Err(Verdict::Expired));
        }
        let refused = sealer.open_ticket(&sealed, Principal::Anonymous, NOW).unwrap_err();
        assert_eq!(refused.exchange, Some(ticket().exchange));
    }
}

#[test]
fn a_ticket_is_of_one_server_and_one_ring() {
    for (_, make) in SUITES {
        let sealer = make(&KeyRing::new(secret(7)), "billing");
        let sealed = sealer.seal_ticket(&ticket(), ADA.principal, &entropy(1)).expect("sealed");
        let open = |other: &Sealer| verdict(other.open_ticket(&sealed, ADA.principal, NOW));
        assert_eq!(open(&make(&KeyRing::new(secret(7)), "ledger")), Err(Verdict::OtherAudience));
        assert_eq!(open(&make(&KeyRing::new(secret(8)), "billing")), Err(Verdict::UnknownKey));
        let mut rotated = KeyRing::new(secret(8));
        rotated.accept(secret(7)).expect("another");
        assert_eq!(open(&sealer.with_ring(&rotated)), Ok(ticket()));
    }
}

// What is shorter than the shortest ticket, one with a key of one byte, is not tried under a key.
#[test]
fn the_shortest_ticket() {
    for sealer in sealers() {
        let shortest = Ticket { key: "k".into(), ..ticket() };
        let sealed = sealer.seal_ticket(&shortest, ADA.principal, &entropy(1)).expect("sealed");
        assert_eq!(verdict(sealer.open_ticket(&sealed, ADA.principal, NOW)), Ok(shortest));
        use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).expect("canonical");
        let shorter = URL_SAFE_NO_PAD.encode(&bytes[..bytes.len() - 1]);
        assert_eq!(verdict(sealer.open_ticket(&shorter, ADA.principal, NOW)), Err(Verdict::Malformed));
    }
}

// A ticket is no state, a state is no ticket.
#[test]
fn tickets_and_states_do_not_stand_in_for_each_other() {
    for sealer in sealers() {
        // As long as a ticket may be, and as a state must be.
        let long = Ticket { key: "k".repeat(128), ..ticket() };
        let sealed = sealer.seal_ticket(&long, ADA.principal, &entropy(1)).expect("sealed");
        assert_eq!(verdict(sealer.open(&sealed, &ADA, NOW)).map(drop), Err(Verdict::Unauthentic));
        let state = token(&sealer, b"", 1);
        assert_eq!(verdict(sealer.open_ticket(&state, ADA.principal, NOW)), Err(Verdict::Unauthentic));
    }
}

#[test]
fn every_change_of_a_character_is_refused() {
    for sealer in sealers() {
        let sealed = sealer.seal_ticket(&ticket(), ADA.principal, &entropy(1)).expect("sealed");
        for at in 0..sealed.len() {
            for other in ['A', 'B', 'g', '9', '-', '_', '=', '+', ' '] {
                if sealed[at..].starts_with(other) {
                    continue;
                }
                let changed = format!("{}{other}{}", &sealed[..at], &sealed[at + 1..]);
                verdict(sealer.open_ticket(&changed, ADA.principal, NOW)).expect_err("changed");
            }
            verdict(sealer.open_ticket(&sealed[..at], ADA.principal, NOW)).expect_err("cut");
        }
    }
}

#[test]
fn keys_are_bounded() {
    for sealer in sealers() {
        for size in [0, 129, 10_000] {
            let wrong = Ticket { key: "k".repeat(size), ..ticket() };
            let error = sealer.seal_ticket(&wrong, ADA.principal, &entropy(1));
            assert_eq!(error, Err(SealError::TicketKey { size, limit: 128 }));
        }
        for size in [1, 128] {
            let right = Ticket { key: "k".repeat(size), ..ticket() };
            let sealed = sealer.seal_ticket(&right, ADA.principal, &entropy(1)).expect("sealed");
            assert_eq!(sealer.open_ticket(&sealed, ADA.principal, NOW), Ok(right));
        }
        // What the longest key takes under the suite with the longest tag, and no character more.
        for (characters, too_large) in [(326, false), (327, true), (3 << 20, true)] {
            let refused = verdict(sealer.open_ticket(&"A".repeat(characters), ADA.principal, NOW));
            assert_eq!(refused == Err(Verdict::TooLarge), too_large, "{characters}");
        }
    }
}

// two asks of one round have tickets of their own, also from one entropy.
#[test]
fn one_entropy_makes_many_tickets() {
    for sealer in sealers() {
        let entropy = entropy(1);
        let seal = |key: &str| {
            let ticket = Ticket { key: key.into(), ..ticket() };
            sealer.seal_ticket(&ticket, ADA.principal, &entropy).expect("sealed")
        };
        let (a, b, again) = (seal("a"), seal("b"), seal("a"));
        // Bytes 6 to 30 are the nonce, characters 8 to 40 say the same.
        assert_ne!(a[8..40], b[8..40]);
        assert_ne!(a[8..40], again[8..40]);
    }
}
