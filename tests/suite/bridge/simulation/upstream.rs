//! The upstreams of the simulation: what they ask, in which order, and how they end.

use std::collections::BTreeMap;

use mrtr_core::{bridge::LinkId, wire::Era};
use serde_json::{Value, json};

use super::{
    Event, Running, Simulation, message_of,
    plan::{Fault, answer, message, outcome, plan},
};

impl Simulation {
    pub(super) fn upstream(&mut self, link: LinkId, message: &Value) {
        if self.era == Era::Modern {
            return self.modern_upstream(link, message);
        }
        let reply = |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        match message["method"].as_str() {
            Some("initialize") => {
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}});
                self.soon(Event::Upstream { link, stream: None, message: reply(result) });
            }
            Some("tools/call") => {
                let (k, call) =
                    (message["params"]["arguments"]["n"].as_u64().unwrap(), message["id"].as_i64().unwrap());
                let process = self.processes.get_mut(&link).expect("a running process");
                process.calls.insert(call, Running { k, round: 0, open: BTreeMap::new() });
                if plan(k, self.seed).fault == Fault::Dies {
                    let millis = self.random.below(2_000);
                    self.at(millis, Event::Kill(link, k));
                }
                self.go_on(link, call);
            }
            Some("notifications/cancelled") => {
                let call = message["params"]["requestId"].as_i64().unwrap();
                let process = self.processes.get_mut(&link).expect("a running process");
                process.calls.remove(&call);
                // Some servers say so, some do not.
                if self.random.chance(50) {
                    let error = json!({"jsonrpc": "2.0", "id": call, "error": {"code": -32603, "message": "cancelled"}});
                    self.soon(Event::Upstream { link, stream: None, message: error });
                }
            }
            Some(_) => {}
            None => {
                let id = message["id"].as_i64().unwrap();
                let process = self.processes.get_mut(&link).expect("a running process");
                let found = process.calls.iter_mut().find(|(_, running)| running.open.contains_key(&id));
                // Of a call that was cancelled.
                let Some((&call, running)) = found else { return };
                let question = running.open.remove(&id).unwrap();
                let given = &message["result"];
                assert!(
                    *given == answer(&question) || *given == json!({"action": "cancel"}),
                    "{question}: {given}"
                );
                if running.open.is_empty() {
                    running.round += 1;
                    self.go_on(link, call);
                }
            }
        }
    }

    /// A legacy upstream asks the questions of its next round, or ends.
    fn go_on(&mut self, link: LinkId, call: i64) {
        let process = self.processes.get_mut(&link).expect("a running process");
        let running = process.calls.get_mut(&call).unwrap();
        let (k, round) = (running.k, running.round);
        let plan = plan(k, self.seed);
        let mut messages = Vec::new();
        match plan.rounds.get(round) {
            Some(&count) => {
                for question in 0..count {
                    process.asked += 1;
                    let text = message(k, round, question);
                    running.open.insert(process.asked, text.clone());
                    messages.push(mrtr_tests::bridge::form(json!(process.asked), &text));
                }
                if plan.fault == Fault::TakenBack {
                    for id in running.open.keys() {
                        messages.push(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
                    }
                    let content = outcome(k, &plan.rounds);
                    messages.push(json!({"jsonrpc": "2.0", "id": call, "result": {"content": content}}));
                    process.calls.remove(&call);
                }
            }
            None if plan.fault == Fault::Hangs => {}
            None => {
                process.calls.remove(&call);
                messages.push(
                    json!({"jsonrpc": "2.0", "id": call, "result": {"content": outcome(k, &plan.rounds)}}),
                );
            }
        }
        // In their order.
        let mut millis = self.random.below(300);
        for message in messages {
            self.at(millis, Event::Upstream { link, stream: Some(call), message });
            millis += self.random.below(30);
        }
    }

    /// A modern upstream: everything it knows of an exchange is in its state.
    fn modern_upstream(&mut self, link: LinkId, message: &Value) {
        let reply = |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        let params = &message["params"];
        if message["method"] == "server/discover" {
            let result = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"});
            return self.soon(Event::Upstream { link, stream: None, message: reply(result) });
        }
        if message["method"] != "tools/call" {
            return;
        }
        let k = params["arguments"]["n"].as_u64().unwrap();
        let plan = plan(k, self.seed);
        let mut round = 0;
        let mut missing = Vec::new();
        if let Some(state) = params.get("requestState") {
            let (whose, at) = state.as_str().unwrap().split_once('/').unwrap();
            assert_eq!(whose, k.to_string(), "a state of another call");
            round = at.parse().unwrap();
            for question in 0..plan.rounds.get(round).copied().unwrap_or(0) {
                let text = message_of(k, round, question);
                match params["inputResponses"].get(&text) {
                    Some(given) => assert_eq!(*given, answer(&text)),
                    None => missing.push(question),
                }
            }
            if missing.is_empty() {
                round += 1;
            }
        }
        if plan.fault == Fault::Partial && !missing.is_empty() {
            // All of them again, one by one is not this server's way: it takes what it gets as enough.
            round += 1;
        }
        let result = match plan.rounds.get(round) {
            Some(&count) => {
                let asks: serde_json::Map<_, _> = (0..count)
                    .map(|question| {
                        let text = message_of(k, round, question);
                        let ask = mrtr_tests::bridge::form(json!(0), &text);
                        (text, json!({"method": ask["method"], "params": ask["params"]}))
                    })
                    .collect();
                json!({"resultType": "input_required", "inputRequests": asks, "requestState": format!("{k}/{round}")})
            }
            None if plan.fault == Fault::Hangs => return,
            None => json!({"resultType": "complete", "content": outcome(k, &plan.rounds)}),
        };
        self.soon(Event::Upstream { link, stream: None, message: reply(result) });
    }
}
