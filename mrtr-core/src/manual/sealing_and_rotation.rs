//! Sealing and rotation: what a state is protected by, what it is bound to, and how its key is replaced while
//! states are out.
//!
//! # The secret
//!
//! One secret of 32 bytes or more, the same on every replica: a retry may reach any of them. Every key (for states,
//! for what they are bound to, for tickets) is derived from it under its own label. A secret that each process
//! makes up for itself works only as long as there is one process and it lives.
//!
//! ```
//! use mrtr_core::seal::{KeyRing, Sealer, Secret};
//!
//! assert!(Secret::from_bytes(b"hunter2").is_err());
//! let secret = Secret::from_bytes(b"32 bytes from a secret store ...")?;
//! // Nothing of it is ever printed.
//! assert!(!format!("{secret:?}").contains("store"));
//! let sealer = Sealer::signed_readable(&KeyRing::new(secret), "billing");
//! # let _ = sealer;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `signed_readable` is what it says: nobody can change such a state, the client can read it. Answers are in it.
//! [`Sealer::encrypted`](crate::seal::Sealer::encrypted) (feature `encrypted`, on by default) is what servers should
//! use.
//!
//! # What a state is bound to
//!
//! To the audience (a name that all replicas share), to the principal whom the transport verified, and to the
//! request: its method, the name or uri, the arguments. A state that was minted for one of each opens for no other,
//! and the peer is told the same sentence whatever is wrong.
//!
//! ```
//! # use core::time::Duration;
//! # use mrtr_core::{Entropy, RpcError, Timestamp};
//! use mrtr_core::digest::RequestDigest;
//! use mrtr_core::seal::{Binding, ExchangeId, KeyRing, NewClaims, Principal, Sealer, Secret, Verdict};
//!
//! # let now = Timestamp::from_unix_millis(1_800_000_000_000);
//! # let entropy = Entropy::new([9; 32]);
//! # let deadline = now.saturating_add(Duration::from_secs(3_600));
//! # let claims = NewClaims { exchange: ExchangeId::from_entropy(&entropy), round: 1, state_only: 0, deadline, ttl: None };
//! let ring = KeyRing::new(Secret::from_bytes(&[7; 32])?);
//! let sealer = Sealer::signed_readable(&ring, "billing");
//! let delete = RequestDigest::new("tools/call", "delete", None)?;
//! let ada = Binding { principal: Principal::Authenticated(b"ada"), request: delete.as_bytes() };
//! let token = sealer.seal(&claims, b"journal", &ada, now, &entropy)?;
//! assert!(sealer.open(&token, &ada, now).is_ok());
//!
//! let refused = |sealer: &Sealer, binding: &Binding<'_>| sealer.open(&token, binding, now).unwrap_err();
//! let eve = Binding { principal: Principal::Authenticated(b"eve"), ..ada };
//! assert_eq!(refused(&sealer, &eve).verdict, Verdict::OtherPrincipal);
//! let read = RequestDigest::new("tools/call", "read", None)?;
//! let other = Binding { request: read.as_bytes(), ..ada };
//! assert_eq!(refused(&sealer, &other).verdict, Verdict::OtherRequest);
//! let ledger = Sealer::signed_readable(&ring, "ledger");
//! assert_eq!(refused(&ledger, &ada).verdict, Verdict::OtherAudience);
//!
//! // The log may tell them apart, the peer may not.
//! for error in [refused(&sealer, &eve), refused(&sealer, &other), refused(&ledger, &ada)] {
//!     assert_eq!(RpcError::from(error).message, "Invalid or expired requestState");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Not bound: the server's version, host, port or process (a deploy in mid-exchange is fine), and the client's
//! declared capabilities, which may change from request to request.
//!
//! # How long
//!
//! A state is good for its TTL (10 minutes unless told otherwise), but never past the deadline of its exchange (an
//! hour from its first request). Expiry has no tolerance. Soft expiry, if a sealer allows it, concerns states whose
//! *only* fault is their age: the answers that came with one are not taken, and the questions are asked again.
//!
//! # Rotation
//!
//! A state outlives a deploy, so keys are replaced in three steps, each done on every replica before the next
//! begins. No state younger than its TTL is refused on the way:
//!
//! ```
//! # use core::time::Duration;
//! # use mrtr_core::{Entropy, Timestamp};
//! # use mrtr_core::seal::{Binding, ExchangeId, KeyRing, NewClaims, Principal, Sealer, Secret, Verdict};
//! # let now = Timestamp::from_unix_millis(1_800_000_000_000);
//! # let deadline = now.saturating_add(Duration::from_secs(3_600));
//! # let ada = Binding { principal: Principal::Authenticated(b"ada"), request: &[3; 32] };
//! # let seal = |sealer: &Sealer, byte: u8| {
//! #     let entropy = Entropy::new([byte; 32]);
//! #     let exchange = ExchangeId::from_entropy(&entropy);
//! #     let claims = NewClaims { exchange, round: 1, state_only: 0, deadline, ttl: None };
//! #     sealer.seal(&claims, b"journal", &ada, now, &entropy).unwrap()
//! # };
//! # let opens = |sealer: &Sealer, token: &str| sealer.open(token, &ada, now).is_ok();
//! let (old, new) = (Secret::from_bytes(&[1; 32])?, Secret::from_bytes(&[2; 32])?);
//! let (old_id, new_id) = (old.key_id(), new.key_id());
//! let mut ring = KeyRing::new(old);
//! let before = Sealer::signed_readable(&ring, "billing");
//!
//! // 1. Everyone opens what NEW seals; OLD still mints. A replica that has not heard of it mints with OLD too.
//! ring.accept(new)?;
//! let accepting = before.with_ring(&ring);
//! assert!(opens(&before, &seal(&accepting, 1)));
//!
//! // 2. NEW mints. A replica that is still at step 1 opens that, and everyone opens what OLD sealed.
//! ring.promote(new_id)?;
//! let minting = before.with_ring(&ring);
//! assert!(opens(&accepting, &seal(&minting, 2)));
//! let opened = minting.open(&seal(&accepting, 3), &ada, now)?;
//! assert!(opened.by_retired_key);
//!
//! // 3. When the longest TTL has passed and nothing is opened by the retired key any more, it goes.
//! ring.retire(old_id)?;
//! let after = before.with_ring(&ring);
//! assert!(opens(&after, &seal(&minting, 4)));
//! assert_eq!(after.open(&seal(&before, 5), &ada, now).unwrap_err().verdict, Verdict::UnknownKey);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! After a leak there is no gentle way: begin with a ring of the new secret alone. Every exchange that is under way
//! is refused, and its client begins again.
//!
//! # What it costs on x86-64
//!
//! With XChaCha20-Poly1305 an exchange takes about a sixth less CPU time if the program is built with
//! `RUSTFLAGS='--cfg poly1305_backend="soft"'`, as mrtr's own programs are. The `poly1305` crate uses AVX2 where it finds
//! it at run time, but unless the compiler may use it everywhere, each instruction of it is a call: for messages of the
//! size of a state the portable code is faster. Where no older processors must be served,
//! `RUSTFLAGS="-C target-cpu=x86-64-v3"` gains as much. Neither can be chosen by a library. The other suites do not gain.
