//! Results that are none.

use mrtr_core::{
    client::{Policy, Violation},
    jsonrpc::Refusal,
    testkit::Carrier,
    wire::{AskFault, AskKind, ClientCapabilities, ResultFault},
};
use mrtr_tests::hostile::{Caller, Ended};

use super::{CARRIERS, case};

use AskFault::{Member, NoMethod, NoParams, NotAnObject, UnknownMethod, UnknownMode};
use Ended::{Complete, Violation as Broken};
use ResultFault::{Ask, AskKey, InputRequests, NeitherField, State};
use Violation::{Message, Result};

cases! {
    // R-014, R-015, R-016, G-33: what is a result, `resultType` alone says.
    result_list "result-list": 0 1 Broken(Result(ResultFault::NotAnObject)),
    result_null "result-null": 0 1 Broken(Result(ResultFault::NotAnObject)),
    result_type_number "result-type-number": 0 1 Broken(Result(ResultFault::ResultType)),
    result_type_null "result-type-null": 0 1 Broken(Result(ResultFault::ResultType)),
    result_type_upper_case "result-type-upper-case": 0 1 Broken(Result(ResultFault::UnknownResultType(_))),
    result_type_unknown "result-type-unknown": 0 1 Broken(Result(ResultFault::UnknownResultType(_))),
    result_type_absent "result-type-absent": 0 1 Complete(_),
    result_type_absent_with_asks "result-type-absent-with-asks": 0 1 Complete(_),
    // G-02, G-03, G-05, G-15: questions and states.
    neither_asks_nor_state "neither-asks-nor-state": 0 1 Broken(Result(NeitherField)),
    empty_asks_without_state "empty-asks-without-state": 0 1 Broken(Result(NeitherField)),
    null_asks_and_null_state "null-asks-and-null-state": 0 1 Broken(Result(NeitherField)),
    asks_list "asks-list": 0 1 Broken(Result(InputRequests)),
    asks_string "asks-string": 0 1 Broken(Result(InputRequests)),
    state_number "state-number": 0 1 Broken(Result(State)),
    state_object "state-object": 0 1 Broken(Result(State)),
    state_boolean "state-boolean": 0 1 Broken(Result(State)),
    // G-15, R-060, R-134: one question.
    ask_null "ask-null": 0 1 Broken(Result(Ask { fault: NotAnObject, .. })),
    ask_number "ask-number": 0 1 Broken(Result(Ask { fault: NotAnObject, .. })),
    ask_list "ask-list": 0 1 Broken(Result(Ask { fault: NotAnObject, .. })),
    ask_without_method "ask-without-method": 0 1 Broken(Result(Ask { fault: NoMethod, .. })),
    ask_method_null "ask-method-null": 0 1 Broken(Result(Ask { fault: NoMethod, .. })),
    ask_method_unknown "ask-method-unknown": 0 1 Broken(Result(Ask { fault: UnknownMethod(_), .. })),
    ask_without_params "ask-without-params": 0 1 Broken(Result(Ask { fault: NoParams, .. })),
    ask_params_list "ask-params-list": 0 1 Broken(Result(Ask { fault: NoParams, .. })),
    ask_without_message "ask-without-message": 0 1 Broken(Result(Ask { fault: Member("message"), .. })),
    ask_message_number "ask-message-number": 0 1 Broken(Result(Ask { fault: Member("message"), .. })),
    ask_without_schema "ask-without-schema": 0 1 Broken(Result(Ask { fault: Member("requestedSchema"), .. })),
    ask_schema_boolean "ask-schema-boolean": 0 1 Broken(Result(Ask { fault: Member("requestedSchema"), .. })),
    ask_mode_unknown "ask-mode-unknown": 0 1 Broken(Result(Ask { fault: UnknownMode, .. })),
    ask_without_url "ask-without-url": 0 1 Broken(Result(Ask { fault: Member("url"), .. })),
    ask_without_messages "ask-without-messages": 0 1 Broken(Result(Ask { fault: Member("messages"), .. })),
    ask_without_max_tokens "ask-without-max-tokens": 0 1 Broken(Result(Ask { fault: Member("maxTokens"), .. })),
    ask_params_string "ask-params-string": 0 1 Broken(Result(Ask { fault: NoParams, .. })),
    one_bad_ask "one-bad-ask": 0 1 Broken(Result(Ask { fault: NoParams, .. })),
    // G-38: readers that take the first or the last would disagree.
    two_result_types "two-result-types": 0 1 Broken(Message(_)),
    two_keys_alike "two-keys-alike": 0 1 Broken(Message(_)),
    two_states "two-states": 0 1 Broken(Message(_)),
    // R-087, G-15: what is no text can be neither shown nor answered under.
    lone_surrogate_key "lone-surrogate-key": 0 1 Broken(Result(AskKey)),
    lone_surrogate_message "lone-surrogate-message": 0 1 Broken(Result(Ask { fault: Member("message"), .. })),
}

#[test]
fn faults_name_what_is_wrong() {
    let said = |name: &str| match Caller::new(Carrier::Http).play(case(name)).ended {
        Broken(violation) => violation.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(said("one-bad-ask"), r#"result.inputRequests["c"] has no `params` object"#);
    assert!(said("ask-method-unknown").contains("shell/exec"));
    assert!(said("result-type-unknown").contains("streaming"));
    assert!(said("two-states").contains("twice"));
    let Broken(Message(refused)) = Caller::new(Carrier::Http).play(case("two-keys-alike")).ended else {
        panic!()
    };
    assert!(matches!(refused.reason, Refusal::DuplicateName { .. }), "{refused:?}");
}

/// Tested here, and not by the table: what is undeclared depends on the client.
pub(super) const ALSO: &str = "undeclared-ask";

/// R-103, G-15: what was not declared is not asked, and not declined in anybody's name either.
#[test]
fn what_was_not_declared_is_not_asked() {
    let all = ClientCapabilities::ALL;
    let (mut no_form, mut no_url, mut no_roots, mut no_sampling, mut no_tools) = (all, all, all, all, all);
    no_form.form = false;
    no_url.url = false;
    no_roots.roots = false;
    (no_sampling.sampling, no_sampling.sampling_tools, no_sampling.sampling_context) = (false, false, false);
    no_tools.sampling_tools = false;
    let cases = [
        (ClientCapabilities::default(), AskKind::Form),
        (no_form, AskKind::Form),
        (no_url, AskKind::Url),
        (no_roots, AskKind::Roots),
        (no_sampling, AskKind::Sampling),
        (no_tools, AskKind::Sampling),
    ];
    for (can, expected) in cases {
        for carrier in CARRIERS {
            let played = Caller::of(carrier, can, Policy::default()).play(case(ALSO));
            let Broken(Violation::Undeclared { key, kind }) = &played.ended else { panic!("{played:?}") };
            assert_eq!((key.as_str(), *kind), ("k", expected));
            assert_eq!((played.prompts.len(), played.requests, played.faults.len()), (0, 1, 0));
        }
    }
}
