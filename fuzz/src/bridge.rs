//! Drives a bridge with a script of lines: what hosts, upstreams and the clock do. Used by the fuzz target and, with
//! random scripts, by the tests.
//!
//! | line | what |
//! |---|---|
//! | `p…` | a modern POST of one of two principals with this body |
//! | `h…` | a message on the pipe of a host that may speak either era |
//! | `u…` | a message of the newest connection to an upstream |
//! | `t` | the next deadline passes |
//! | `c` | the newest POST closes |
//! | `k` | the newest connection is gone |
//!
//! In a message, `$S` is the newest state that a host was given and `$I` the newest id that an upstream was sent.

use std::collections::BTreeSet;

use mrtr_core::{
    Entropy, Timestamp,
    bridge::{Bridge, Config, HostId, HostKind, LinkId, Output, Transport, Upstream},
    seal::{KeyRing, Principal, Sealer, Secret},
    wire::{Era, Implementation},
};

/// Runs a script. Its first byte chooses the upstream.
///
/// # Panics
///
/// If the bridge breaks a promise: a message that is no line of JSON, a second last message for a POST, a count that
/// does not come back to nothing.
pub fn drive(script: &[u8]) {
    let Some((&first, script)) = script.split_first() else { return };
    let transport = if first & 1 == 0 { Transport::Pipe } else { Transport::Http };
    let era = if first & 2 == 0 { Era::Legacy } else { Era::Modern };
    let ring = KeyRing::new(Secret::from_bytes(&[7; 32]).expect("32 bytes"));
    let sealer = Sealer::signed_readable(&ring, "bridge");
    let mut upstreams = vec![Upstream::new("a", transport, era)];
    if first & 32 != 0 {
        upstreams[0].replay = vec!["t".into()];
    }
    if first & 4 != 0 {
        upstreams.push(Upstream::new("b", Transport::Pipe, Era::Legacy));
    }
    let mut config = Config::new(Implementation::new("bridge", "1"), sealer, upstreams);
    config.pool.processes = 2;
    if first & 8 != 0 {
        config.inbox.elicitation = true;
        config.inbox.form = true;
    }
    let mut bridge = Bridge::new(config, Entropy::new([9; 32])).expect("a good configuration");
    let mut now = Timestamp::from_unix_millis(1_800_000_000_000);
    let pipe = HostId(1);
    bridge.open_host(pipe, HostKind::Pipe, Principal::Authenticated(b"alice"));
    let (mut state, mut call, mut link, mut hosts) = (String::new(), 0, LinkId(0), 1);
    let mut done = BTreeSet::new();
    for line in script.split(|&byte| byte == b'\n').take(64) {
        let Some((&verb, message)) = line.split_first() else { continue };
        let message = String::from_utf8_lossy(message).replace("$S", &state).replace("$I", &call.to_string());
        match verb {
            b'p' => {
                hosts += 1;
                let name: &[u8] = if hosts % 3 == 0 { b"bob" } else { b"alice" };
                bridge.open_host(HostId(hosts), HostKind::Post, Principal::Authenticated(name));
                bridge.handle_host(HostId(hosts), message.as_bytes(), None, now);
            }
            b'h' => bridge.handle_host(pipe, message.as_bytes(), None, now),
            b'u' => bridge.handle_upstream(link, (first & 16 != 0).then_some(call), message.as_bytes(), now),
            b't' => {
                if let Some((at, _)) = bridge.poll_timeout() {
                    now = now.max(at);
                    bridge.handle_timeout(now);
                    assert!(bridge.poll_timeout().is_none_or(|(next, _)| next > now));
                }
            }
            b'c' if hosts > 1 => bridge.close_host(HostId(hosts), now),
            b'k' => bridge.close_upstream(link, now),
            _ => continue,
        }
        while let Some(output) = bridge.poll_output() {
            match output {
                Output::ToHost { host, bytes, last, .. } => {
                    let reply = json(&bytes);
                    if let Some(found) =
                        reply.as_ref().and_then(|reply| reply["result"]["requestState"].as_str())
                    {
                        found.clone_into(&mut state);
                    }
                    if last.is_some() && host != pipe {
                        assert!(done.insert(host), "a second response for a POST");
                    }
                }
                Output::ToUpstream { link: to, call: sent, bytes, .. } => {
                    // Relayed byte for byte, with lone surrogates and huge numbers.
                    assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok());
                    link = to;
                    call = sent.unwrap_or(call);
                }
                Output::OpenUpstream { link: opened, .. } => link = opened,
                _ => {}
            }
        }
    }
    bridge.close_host(pipe, now);
    for host in 2..=hosts {
        bridge.close_host(HostId(host), now);
    }
    for _ in 0..10_000 {
        let Some((at, _)) = bridge.poll_timeout() else { break };
        now = now.max(at);
        bridge.handle_timeout(now);
        while bridge.poll_output().is_some() {}
    }
    let counts = bridge.counts();
    assert_eq!((counts.open, counts.parked, counts.kept, counts.waiting, counts.inbox), (0, 0, 0, 0, 0));
    assert!(bridge.poll_timeout().is_none());
}

fn json(bytes: &[u8]) -> Option<serde_json::Value> {
    assert!(!bytes.contains(&b'\n'));
    // The end of a stream without a message.
    if bytes.is_empty() {
        return None;
    }
    // What is relayed is not refused for surrogates or numbers that this reader does not take.
    let relayed = serde_json::from_slice::<serde::de::IgnoredAny>(bytes);
    assert!(relayed.is_ok_and(|_| true) || bytes.starts_with(b"{"));
    serde_json::from_slice(bytes).ok()
}
