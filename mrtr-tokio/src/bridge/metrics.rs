//! The bridge's numbers as Prometheus reads them: no names of people, tools or servers in them.

use std::fmt::Write as _;

use mrtr_core::bridge::Counts;

/// The text of `/metrics`.
pub(super) fn text(counts: &Counts, draining: bool) -> String {
    let Counts {
        open,
        parked,
        kept,
        sessions,
        waiting,
        inbox,
        requests,
        rounds,
        asks,
        asked_again,
        refused,
        replayed,
        abandoned,
        lost,
        over,
        ..
    } = *counts;
    let gauges = [
        ("requests_open", open, "Requests of hosts that wait for their response."),
        ("calls_parked", parked, "Calls that wait for answers, their upstream requests in flight."),
        ("results_kept", kept, "Final results that are kept in case they were lost."),
        ("upstream_sessions", sessions, "Sessions with legacy upstreams."),
        ("requests_waiting", waiting, "Requests that wait for a session."),
        ("inbox_questions", inbox, "Questions that wait in the inbox."),
        ("draining", usize::from(draining), "1 while no new calls are taken."),
    ];
    let counters = [
        ("requests_total", requests, "Requests of hosts."),
        ("rounds_total", rounds, "Interim results to modern hosts."),
        ("asks_total", asks, "Questions put to hosts, those asked again included."),
        ("asked_again_total", asked_again, "Questions put again because their answers did not come."),
        ("states_refused_total", refused, "States refused, whatever the reason."),
        ("retries_replayed_total", replayed, "Retries that came twice and got the same outcome."),
        ("calls_abandoned_total", abandoned, "Parked calls that nobody came back for."),
        ("calls_lost_total", lost, "Calls whose upstream died."),
        ("requests_over_bound_total", over, "Requests refused because of a bound."),
    ];
    let mut text = String::new();
    let mut say = |name: &str, kind: &str, value: &dyn std::fmt::Display, help: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "# HELP mrtr_bridge_{name} {help}\n# TYPE mrtr_bridge_{name} {kind}\nmrtr_bridge_{name} {value}"
        );
    };
    for (name, value, help) in gauges {
        say(name, "gauge", &value, help);
    }
    for (name, value, help) in counters {
        say(name, "counter", &value, help);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_help_a_type_and_a_line() {
        let mut counts = Counts::default();
        (counts.parked, counts.rounds) = (3, 7);
        let text = text(&counts, true);
        for line in ["mrtr_bridge_calls_parked 3", "mrtr_bridge_rounds_total 7", "mrtr_bridge_draining 1"] {
            assert!(text.lines().any(|found| found == line), "{line}");
        }
        assert_eq!(text.lines().count(), 3 * 16);
        for (line, mark) in text.lines().zip(["# HELP ", "# TYPE ", "mrtr_bridge_"].into_iter().cycle()) {
            assert!(line.starts_with(mark), "{line}");
        }
    }
}
