//! Our client against every case of `testkit`, over both carriers: it ends as the kit says a correct client does, with
//! the very error that is expected, having asked nobody in vain and given the kit nothing to complain of.

/// A test a case: how the call ends, how many questions were put to somebody, how many requests went out.
macro_rules! cases {
    ($($test:ident $name:literal: $asks:literal $requests:literal $end:pat,)*) => {
        pub(super) const TESTED: &[&str] = &[$($name),*];
        $(
            #[test]
            fn $test() {
                super::ends($name, ($asks, $requests), |ended| matches!(ended, $end));
            }
        )*
    };
}

mod carriers;
mod ids;
mod limits;
mod rounds;
mod shapes;

use std::collections::BTreeSet;

use mrtr_core::testkit::{self, Carrier, Case, Expected};
use mrtr_tests::hostile::{Caller, Ended, Played};

const CARRIERS: [Carrier; 2] = [Carrier::Http, Carrier::Stdio];

fn case(name: &str) -> &'static Case {
    testkit::case(name).unwrap_or_else(|| panic!("no case {name}"))
}

fn ends(name: &str, counts: (usize, usize), right: impl Fn(&Ended) -> bool) {
    let case = case(name);
    for carrier in CARRIERS {
        let Some(expected) = case.expected(carrier) else { continue };
        let played = Caller::new(carrier).play(case);
        check(&played, expected);
        assert!(right(&played.ended), "{name} over {carrier:?}: {played:?}");
        assert_eq!((played.prompts.len(), played.requests), counts, "{name} over {carrier:?}: {played:?}");
    }
}

fn check(played: &Played, expected: Expected) {
    assert_eq!(played.ended.kind(), Some(expected), "{played:?}");
    assert!(played.faults.is_empty(), "{played:?}");
    if expected == Expected::Refuses {
        assert!(played.prompts.is_empty() && played.requests == 1, "{played:?}");
    }
}

#[test]
fn every_case_has_its_test() {
    let also = [shapes::ALSO, ids::ALSO];
    let tested =
        [shapes::TESTED, &also, rounds::TESTED, limits::TESTED, ids::TESTED, carriers::TESTED].concat();
    let count = tested.len();
    let tested: BTreeSet<&str> = tested.into_iter().collect();
    assert_eq!(tested.len(), count, "one is tested twice");
    assert_eq!(tested, testkit::cases().map(Case::name).collect());
}

/// The three methods that may be answered with questions are told apart by nothing else.
#[test]
fn prompts_and_resources_are_no_different_r_056() {
    for (method, params) in
        [("prompts/get", r#"{"name":"hostile"}"#), ("resources/read", r#"{"uri":"test:hostile"}"#)]
    {
        for case in testkit::cases().filter(|case| case.name() != ids::ALSO) {
            for carrier in CARRIERS {
                // The largest are the same for all.
                let Some(expected) = case.expected(carrier).filter(|_| !case.rules().contains(&"G-07"))
                else {
                    continue;
                };
                // This client declares everything.
                let expected = if case.name() == shapes::ALSO { Expected::Completes } else { expected };
                check(&Caller::new(carrier).call(case, method, params), expected);
            }
        }
    }
}

/// The kit is a function: what it says depends on the request alone.
#[test]
fn the_same_request_gets_the_same_reply() {
    let request =
        br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"hostile","arguments":{}}}"#;
    for case in testkit::cases() {
        for carrier in CARRIERS {
            let reaction = case.receive(carrier, request);
            assert_eq!(reaction.reply, case.receive(carrier, request).reply, "{case:?}");
        }
    }
}
