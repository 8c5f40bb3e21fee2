//! The bridge's numbers as Prometheus reads them: no names of people, tools or servers in them.

use std::fmt::{Display, Write as _};

use mrtr_core::{bridge::Counts, seal::Verdict};

/// The text of `/metrics`.
pub(super) fn text(counts: &Counts, draining: bool) -> String {
    let mut text = Text(String::new());
    for (name, value, help) in gauges(counts, draining) {
        text.family(name, "gauge", help, [(None, value)]);
    }
    for (name, value, help) in counters(counts) {
        text.family(name, "counter", help, [(None, value)]);
    }
    let refused = Verdict::ALL.iter().map(|verdict| Some(verdict.name())).zip(counts.refused_by);
    text.family("states_refused_total", "counter", "States refused, by what was wrong with them.", refused);
    text.0
}

fn gauges(counts: &Counts, draining: bool) -> [(&'static str, usize, &'static str); 12] {
    let Counts {
        open,
        parked,
        running,
        dialogues,
        kept,
        sessions,
        waiting,
        inbox,
        cut_off,
        handed_open,
        remote_open,
        ..
    } = *counts;
    [
        ("requests_open", open, "Requests of hosts that wait for their response."),
        ("calls_running", running, "Calls of modern hosts that a legacy server works on."),
        ("calls_parked", parked, "Calls that wait for answers, their upstream requests in flight."),
        ("results_kept", kept, "Final results that are kept in case they were lost."),
        ("dialogues", dialogues, "Calls of legacy hosts at modern servers."),
        ("upstream_sessions", sessions, "Sessions with legacy upstreams."),
        ("requests_waiting", waiting, "Requests that wait for a session."),
        ("inbox_questions", inbox, "Questions that wait in the inbox."),
        ("handoffs_open", handed_open, "Retries that other processes work on."),
        ("handoffs_taken_open", remote_open, "Retries of other processes that run here."),
        ("peers_unreachable", usize::from(cut_off), "1 while other processes cannot be reached."),
        ("draining", usize::from(draining), "1 while no new calls are taken."),
    ]
}

fn counters(counts: &Counts) -> [(&'static str, u64, &'static str); 16] {
    let Counts {
        requests,
        rounds,
        asks,
        asked_again,
        replayed,
        rerun,
        abandoned,
        lost,
        over,
        handed,
        acknowledged,
        resent,
        handed_lost,
        unreachable,
        taken,
        peer_refused,
        ..
    } = *counts;
    [
        ("requests_total", requests, "Requests of hosts."),
        ("rounds_total", rounds, "Interim results to modern hosts."),
        ("asks_total", asks, "Questions put to hosts, those asked again included."),
        ("asked_again_total", asked_again, "Questions put again because their answers did not come."),
        ("retries_replayed_total", replayed, "Retries that came twice and got the same outcome."),
        ("calls_rerun_total", rerun, "Calls of replayed tools made again with the answers so far."),
        ("calls_abandoned_total", abandoned, "Parked calls that nobody came back for."),
        ("calls_lost_total", lost, "Calls whose upstream died."),
        ("requests_over_bound_total", over, "Requests refused because of a bound."),
        ("handoffs_sent_total", handed, "Retries handed to the process that holds their call."),
        ("handoffs_acknowledged_total", acknowledged, "Retries that it has acknowledged."),
        ("handoffs_resent_total", resent, "Hand-offs that were sent again."),
        ("handoffs_lost_total", handed_lost, "Retries of calls whose process is gone."),
        (
            "handoffs_unreachable_total",
            unreachable,
            "Retries that failed because no process could be reached.",
        ),
        ("handoffs_taken_total", taken, "Retries of other processes taken."),
        (
            "peer_messages_refused_total",
            peer_refused,
            "Messages of other processes that were forged, late or copies.",
        ),
    ]
}

struct Text(String);

impl Text {
    /// A number, or one for each verdict.
    fn family<V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        values: impl IntoIterator<Item = (Option<&'static str>, V)>,
    ) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP mrtr_bridge_{name} {help}\n# TYPE mrtr_bridge_{name} {kind}");
        for (verdict, value) in values {
            let _ = match verdict {
                None => writeln!(self.0, "mrtr_bridge_{name} {value}"),
                Some(verdict) => writeln!(self.0, "mrtr_bridge_{name}{{verdict=\"{verdict}\"}} {value}"),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_number_has_a_help_a_type_and_a_line() {
        let mut counts = Counts::default();
        (counts.parked, counts.rounds, counts.handed, counts.cut_off) = (3, 7, 5, true);
        counts.refused_by[5] = 2;
        let text = text(&counts, true);
        for line in [
            "mrtr_bridge_calls_parked 3",
            "mrtr_bridge_rounds_total 7",
            "mrtr_bridge_handoffs_sent_total 5",
            "mrtr_bridge_peers_unreachable 1",
            "mrtr_bridge_states_refused_total{verdict=\"expired\"} 2",
            "mrtr_bridge_states_refused_total{verdict=\"unauthentic\"} 0",
            "mrtr_bridge_draining 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}");
        }
        let mut known = BTreeSet::new();
        let mut lines = text.lines().peekable();
        while let Some(help) = lines.next() {
            let name = help.strip_prefix("# HELP ").unwrap().split(' ').next().unwrap();
            assert!(known.insert(name), "{name} is there twice");
            let kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {name} ")).unwrap();
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            let values = std::iter::from_fn(|| lines.next_if(|line| !line.starts_with('#')));
            let mut count = 0;
            for value in values {
                let (of, number) = value.rsplit_once(' ').unwrap();
                assert_eq!(of.split('{').next(), Some(name));
                number.parse::<u64>().unwrap();
                count += 1;
            }
            assert!(count > 0, "{name}");
        }
        assert_eq!(known.len(), 29);
    }
}
