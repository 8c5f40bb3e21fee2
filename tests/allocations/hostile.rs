//! What the client may cost in memory, whatever the server sends (G-07): the cases of the test kit, in pieces as a
//! transport has them.

use mrtr_core::{
    Timestamp,
    client::{Call, Exchange, Pending},
    testkit::{self, Carrier, Case, End, Reply, Step},
};
use mrtr_tests::hostile::{Caller, Heard};

/// Bytes of one read.
const PIECE: usize = 16 << 10;

/// Thrice the limit for a message: a buffer that doubles is there twice while it moves. And a little for the rest.
const MOST: u64 = 3 * (4 << 20) + (64 << 10);

fn pieces(reply: &mut Reply) {
    let cut = |steps: &mut Vec<Step>| {
        *steps = steps
            .drain(..)
            .flat_map(|step| match step {
                Step::Bytes(bytes) => {
                    bytes.chunks(PIECE).map(|piece| Step::Bytes(piece.to_vec())).collect::<Vec<_>>()
                }
                pause @ Step::Pause(_) => vec![pause],
            })
            .collect();
    };
    cut(&mut reply.steps);
    if let End::Endless(steps) = &mut reply.end {
        cut(steps);
    }
}

/// The most that was held while the reply to a call was read.
fn held(case: &Case, carrier: Carrier) -> u64 {
    let caller = Caller::new(carrier);
    let mut now = Timestamp::from_unix_millis(0);
    let mut request = Vec::new();
    let params = r#"{"name":"hostile","arguments":{}}"#;
    let pending: Exchange<Pending> =
        caller.client.start(1.into(), Call::new("tools/call", params), now, &mut request).unwrap();
    let mut reply = case.receive(carrier, &request).reply.unwrap();
    pieces(&mut reply);
    allocation_counter::measure(|| match caller.hear(pending, &reply, &mut now) {
        Heard::Asked(_) | Heard::Again(_) | Heard::Ended(_) => {}
    })
    .bytes_max
}

/// What is small costs little: nothing is set aside for what a server might send.
#[test]
fn a_small_reply_costs_little() {
    for name in
        ["state-number", "interim-with-extras", "rubbish-lines", "split-stream", "endless-notifications"]
    {
        let case = testkit::case(name).unwrap();
        let carrier = if case.expected(Carrier::Http).is_some() { Carrier::Http } else { Carrier::Stdio };
        let held = held(case, carrier);
        assert!(held <= 16 << 10, "{name}: {held} bytes");
    }
}

#[test]
fn no_reply_makes_the_client_hold_more_than_its_limits() {
    for case in testkit::cases() {
        for carrier in [Carrier::Http, Carrier::Stdio] {
            if case.expected(carrier).is_some() {
                let held = held(case, carrier);
                assert!(held <= MOST, "{} over {carrier:?}: {held} bytes", case.name());
            }
        }
    }
}
