//! A server that misbehaves, for testing clients: named cases, as data and pure functions.
//!
//! Each [`Case`] says what the server does, which rule that is about, and what a correct client makes of it. Give
//! it the bytes of a request and it gives the bytes of the reply, how they are cut and what pauses lie between
//! them; a transport only has to carry them. The command `mrtr hostile` does so over HTTP and stdio, for clients
//! in any language.
//!
//! ```
//! use mrtr_core::testkit::{self, Carrier, Expected};
//!
//! let case = testkit::case("state-number").unwrap();
//! assert_eq!(case.expected(Carrier::Stdio), Some(Expected::Refuses));
//! let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"any"}}"#;
//! let reply = case.receive(Carrier::Stdio, call).reply.unwrap();
//! assert!(reply.whole().starts_with(br#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required""#));
//! ```
//!
//! # What the server is
//!
//! One of 2026-07-28 that offers a tool, a prompt and a resource, all named `hostile`; it takes any other name as
//! well, with any arguments. Everything but what the case is about is as it should be, so a client may discover and list
//! before it calls. It does not speak the eras with sessions.
//!
//! A case keeps nothing between requests: what it has to remember is in the `requestState` that it sends. So one
//! server serves many clients, and a reply depends on the request alone.
//!
//! # What a client is told
//!
//! Where a request itself shows that the client is wrong (a state from an earlier round, a retry of what was to be
//! refused, an answer to a question of the server that has no right to ask), [`Reaction::fault`] names it, and the
//! reply is an error with the same words. What cannot be seen from outside, such as a person being asked for
//! nothing, is said by [`Case::right`], for whoever writes the client's own test.
//!
//! # A test of a client
//!
//! Run every [case](cases) that goes [over](Case::expected) the transport, answer whatever is asked (accept; give
//! a form's field its only choice, and `javascript:` urls a cancel), and compare how the call ends with what the case
//! [allows](Case::allows). Bound its memory, too: the cases of `limits` make replies of ten megabytes and of no end.
//!
//! | file | cases about |
//! |---|---|
//! | `shapes` | results that are none |
//! | `rounds` | what goes back in a retry |
//! | `loops` | when to stop |
//! | `limits` | too much of everything |
//! | `ids` | replies to nobody, and messages that are no replies |
//! | `carriers` | lines, event streams, statuses, connections that break |

mod carriers;
mod case;
mod ids;
mod limits;
mod loops;
mod manners;
mod reply;
mod rounds;
mod seen;
mod shapes;

pub use case::{Case, Expected, Reaction};
pub use reply::{Carrier, End, Reply, Step};

/// All cases, in the order in which the files name them.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    [shapes::CASES, rounds::CASES, loops::CASES, limits::CASES, ids::CASES, carriers::CASES]
        .into_iter()
        .flatten()
}

/// The case with this name.
#[must_use]
pub fn case(name: &str) -> Option<&'static Case> {
    cases().find(|case| case.name() == name)
}
