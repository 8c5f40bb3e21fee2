//! Known answers of an independent implementation, `vectors/tools/seal.py`, in both directions.

use std::time::Duration;

use mrtr_core::{
    Entropy, Timestamp,
    seal::{
        Binding, BlobKind, ExchangeId, KeyRing, NewClaims, Principal, Sealer, Secret, Ticket, Ttl, Verdict,
    },
};
use serde::{Deserialize, Serialize};

use super::{array, hex, make, unhex, verdict};

#[derive(Deserialize)]
struct Vectors {
    key_ids: Vec<KeyIdVector>,
    entropy: Vec<EntropyVector>,
    states: Vec<StateVector>,
    refusals: Vec<RefusalVector>,
    tickets: Vec<TicketVector>,
    blobs: Vec<BlobVector>,
}

#[derive(Deserialize)]
struct KeyIdVector {
    secret: String,
    key_id: String,
}

#[derive(Deserialize)]
struct EntropyVector {
    entropy: String,
    n: usize,
    nonce: String,
    exchange: String,
}

#[derive(Deserialize, Serialize)]
pub(super) struct StateVector {
    pub(super) name: String,
    pub(super) suite: String,
    pub(super) secret: String,
    pub(super) audience: String,
    pub(super) principal: Option<String>,
    pub(super) request: String,
    pub(super) entropy: String,
    pub(super) exchange: String,
    pub(super) round: u32,
    pub(super) state_only: u32,
    pub(super) issued: u64,
    pub(super) ttl: u64,
    pub(super) expires: u64,
    pub(super) deadline: u64,
    pub(super) payload: String,
    pub(super) token: String,
}

#[derive(Deserialize)]
struct RefusalVector {
    name: String,
    suite: String,
    verdict: Option<String>,
    ring: Vec<String>,
    audience: String,
    principal: Option<String>,
    request: String,
    now: u64,
    token: String,
}

#[derive(Deserialize, Serialize)]
pub(super) struct TicketVector {
    pub(super) name: String,
    pub(super) suite: String,
    pub(super) secret: String,
    pub(super) audience: String,
    pub(super) principal: Option<String>,
    pub(super) entropy: String,
    pub(super) exchange: String,
    pub(super) key: String,
    pub(super) expires: u64,
    pub(super) token: String,
}

#[derive(Deserialize, Serialize)]
pub(super) struct BlobVector {
    pub(super) name: String,
    pub(super) suite: String,
    pub(super) kind: String,
    pub(super) secret: String,
    pub(super) audience: String,
    pub(super) place: String,
    pub(super) entropy: String,
    pub(super) content: String,
    pub(super) blob: String,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../../vectors/seal.json")).expect("the generator's own JSON")
}

fn key(text: &str) -> Secret {
    Secret::from_bytes(&unhex(text)).expect("32 bytes or more")
}

fn principal(name: Option<&Vec<u8>>) -> Principal<'_> {
    name.map_or(Principal::Anonymous, |name| Principal::Authenticated(name))
}

fn time(millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(millis)
}

impl StateVector {
    fn sealer(&self) -> Sealer {
        make(&self.suite)(&KeyRing::new(key(&self.secret)), &self.audience)
    }

    /// The token that mrtr makes of the same inputs.
    pub(super) fn sealed(&self) -> String {
        let name = self.principal.as_deref().map(unhex);
        let binding = Binding { principal: principal(name.as_ref()), request: &array(&self.request) };
        let claims = NewClaims {
            exchange: ExchangeId::from_bytes(array(&self.exchange)),
            round: self.round,
            state_only: self.state_only,
            deadline: time(self.deadline),
            ttl: Some(Ttl::new(Duration::from_millis(self.ttl)).expect("a valid TTL")),
        };
        let entropy = Entropy::new(array(&self.entropy));
        self.sealer()
            .seal(&claims, &unhex(&self.payload), &binding, time(self.issued), &entropy)
            .expect("sealed")
    }

    /// Opens the recorded token and compares everything that comes out.
    pub(super) fn opens(&self) {
        let name = self.principal.as_deref().map(unhex);
        let binding = Binding { principal: principal(name.as_ref()), request: &array(&self.request) };
        let opened = self.sealer().open(&self.token, &binding, time(self.issued)).expect(&self.name);
        let claims = opened.claims;
        assert_eq!(hex(&opened.payload), self.payload, "{}", self.name);
        assert_eq!(claims.exchange.to_string(), self.exchange, "{}", self.name);
        assert_eq!((claims.round, claims.state_only), (self.round, self.state_only), "{}", self.name);
        assert_eq!(
            (claims.issued, claims.expires, claims.deadline),
            (time(self.issued), time(self.expires), time(self.deadline)),
            "{}",
            self.name
        );
        assert_eq!(opened.key, key(&self.secret).key_id());
        assert!(!opened.by_retired_key && !opened.expired);
    }
}

impl TicketVector {
    fn sealer(&self) -> Sealer {
        make(&self.suite)(&KeyRing::new(key(&self.secret)), &self.audience)
    }

    fn ticket(&self) -> Ticket {
        Ticket {
            exchange: ExchangeId::from_bytes(array(&self.exchange)),
            key: self.key.clone(),
            expires: time(self.expires),
        }
    }

    pub(super) fn sealed(&self) -> String {
        let name = self.principal.as_deref().map(unhex);
        let entropy = Entropy::new(array(&self.entropy));
        self.sealer().seal_ticket(&self.ticket(), principal(name.as_ref()), &entropy).expect("sealed")
    }

    pub(super) fn opens(&self) {
        let name = self.principal.as_deref().map(unhex);
        let opened = self.sealer().open_ticket(&self.token, principal(name.as_ref()), time(self.expires - 1));
        assert_eq!(opened, Ok(self.ticket()), "{}", self.name);
    }
}

impl BlobVector {
    fn sealer(&self) -> Sealer {
        make(&self.suite)(&KeyRing::new(key(&self.secret)), &self.audience)
    }

    fn kind(&self) -> BlobKind {
        match &*self.kind {
            "ledger" => BlobKind::Ledger,
            "handle" => BlobKind::Handle,
            other => panic!("no kind {other}"),
        }
    }

    pub(super) fn sealed(&self) -> String {
        let entropy = Entropy::new(array(&self.entropy));
        let (place, content) = (unhex(&self.place), unhex(&self.content));
        hex(&self.sealer().seal_blob(self.kind(), &place, &content, &entropy).expect("sealed"))
    }

    pub(super) fn opens(&self) {
        let opened = self.sealer().open_blob(self.kind(), &unhex(&self.place), &unhex(&self.blob));
        assert_eq!(opened.map(|content| hex(&content)), Ok(self.content.clone()), "{}", self.name);
    }
}

// G-50: the same bytes in give the same token as in Python, and each opens the other's.
#[test]
fn states() {
    let states = vectors().states;
    assert!(states.len() >= 51);
    for state in states {
        assert_eq!(state.sealed(), state.token, "{} ({})", state.name, state.suite);
        state.opens();
    }
}

//
#[test]
fn tickets() {
    let tickets = vectors().tickets;
    assert!(tickets.len() >= 12);
    for ticket in tickets {
        assert_eq!(ticket.sealed(), ticket.token, "{} ({})", ticket.name, ticket.suite);
        ticket.opens();
    }
}

//
#[test]
fn blobs() {
    let blobs = vectors().blobs;
    assert!(blobs.len() >= 18);
    for blob in blobs {
        assert_eq!(blob.sealed(), blob.blob, "{} ({})", blob.name, blob.suite);
        blob.opens();
    }
}

// R-071, G-11, G-52, traps 20, 23, 27: tokens of someone who has the keys and gets one thing wrong. Only they reach
// what lies behind the tag.
#[test]
fn refusals() {
    let refusals = vectors().refusals;
    for verdict in &Verdict::ALL[1..] {
        let reached = refusals.iter().any(|case| case.verdict.as_deref() == Some(verdict.name()));
        assert!(reached, "{verdict} has no case");
    }
    for case in refusals {
        let mut secrets = case.ring.iter().map(|text| key(text));
        let mut ring = KeyRing::new(secrets.next().expect("one or more"));
        for secret in secrets {
            ring.accept(secret).expect("another key");
        }
        let name = case.principal.as_deref().map(unhex);
        let binding = Binding { principal: principal(name.as_ref()), request: &array(&case.request) };
        let sealer = make(&case.suite)(&ring, &case.audience);
        let found = verdict(sealer.open(&case.token, &binding, time(case.now))).err().map(Verdict::name);
        assert_eq!(found, case.verdict.as_deref(), "{} ({})", case.name, case.suite);
    }
}

// G-53: the key id and all keys are derived, the same everywhere.
#[test]
fn key_ids() {
    for vector in vectors().key_ids {
        assert_eq!(key(&vector.secret).key_id().to_string(), vector.key_id);
    }
}

// every sealing has a nonce of its own, also with one entropy.
#[test]
fn entropy_gives_exchange_ids_and_nonces() {
    let sealer = Sealer::signed_readable(&KeyRing::new(super::secret(1)), "a");
    for vector in vectors().entropy {
        let entropy = Entropy::new(array(&vector.entropy));
        assert_eq!(ExchangeId::from_entropy(&entropy).to_string(), vector.exchange);
        let seal = || sealer.seal_blob(BlobKind::Ledger, b"", b"", &entropy).expect("sealed");
        for _ in 0..vector.n {
            seal();
        }
        let blob = seal();
        assert_eq!(hex(&blob[6..30]), vector.nonce, "n = {}", vector.n);
    }
}
