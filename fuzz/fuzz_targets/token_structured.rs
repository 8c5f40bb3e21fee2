//! A good state with something done to it: it opens exactly if nothing was changed.
#![no_main]

use libfuzzer_sys::{arbitrary, fuzz_target};
use mrtr_core::{
    Entropy, Timestamp,
    seal::{Binding, ExchangeId, NewClaims, Principal},
};

#[derive(arbitrary::Arbitrary, Debug)]
struct Case {
    suite: u8,
    payload: Vec<u8>,
    /// Characters put in place of others.
    changes: Vec<(u16, u8)>,
    cut: Option<u16>,
    append: String,
    principal: Option<u8>,
    request: Option<u8>,
    later: u32,
}

fuzz_target!(|case: Case| {
    let sealers = mrtr_fuzz::server::sealers();
    let sealer = &sealers[usize::from(case.suite) % sealers.len()];
    let now = mrtr_fuzz::server::NOW;
    let claims = NewClaims {
        exchange: ExchangeId::from_bytes([3; 16]),
        round: 1,
        state_only: 0,
        deadline: Timestamp::from_unix_millis(now.as_unix_millis() + 3_600_000),
        ttl: None,
    };
    let payload = &case.payload[..case.payload.len().min(4_096)];
    let binding = Binding { principal: Principal::Authenticated(b"a"), request: &[0; 32] };
    let good = sealer.seal(&claims, payload, &binding, now, &Entropy::new([9; 32])).expect("within bounds");
    let mut token: Vec<char> = good.chars().collect();
    for (at, to) in &case.changes {
        let at = usize::from(*at) % token.len();
        token[at] = char::from(*to);
    }
    if let Some(cut) = case.cut {
        token.truncate(usize::from(cut));
    }
    token.extend(case.append.chars());
    let token: String = token.into_iter().collect();
    let principal = [case.principal.unwrap_or(b'a')];
    let request = [case.request.unwrap_or(0); 32];
    let binding = Binding { principal: Principal::Authenticated(&principal), request: &request };
    let later = Timestamp::from_unix_millis(now.as_unix_millis() + u64::from(case.later));
    let same = token == good && principal == *b"a" && request == [0; 32] && case.later < 600_000;
    match sealer.open(&token, &binding, later) {
        Ok(opened) => assert!(same && opened.payload.as_slice() == payload),
        Err(_) => assert!(!same),
    }
});
