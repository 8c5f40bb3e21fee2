//! What the bridge benchmarks measure: one modern message relayed each way, and calls that are parked.

use mrtr_core::{
    Entropy, Timestamp,
    bridge::{Bridge, HostId, HostKind, LinkId, Output, Transport},
    seal::Principal,
    wire::Era,
};

use crate::{bridge::config, world::START};

/// A bridge from modern pipes to a modern pipe.
pub struct Relay {
    bridge: Bridge,
    number: i64,
}

const HOST: HostId = HostId(1);

impl Relay {
    #[must_use]
    pub fn new() -> Self {
        let config = config(&[("up", Transport::Pipe, Era::Modern)]);
        let mut bridge = Bridge::new(config, Entropy::new([3; 32])).expect("a good configuration");
        bridge.open_host(HOST, HostKind::Pipe, Principal::Authenticated(b"issuer|ada"));
        Self { bridge, number: 0 }
    }

    /// A call and its result, relayed: two messages.
    ///
    /// # Panics
    ///
    /// If the bridge does not relay them.
    pub fn exchange(&mut self, interim: bool) -> (Vec<u8>, Vec<u8>) {
        let now = Timestamp::from_unix_millis(START);
        self.number += 1;
        let request = format!(
            concat!(
                r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"book","arguments":{{"city":"Lisbon","#,
                r#""nights":3,"budget":450.5}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                r#""io.modelcontextprotocol/clientInfo":{{"name":"host","version":"1"}},"progressToken":"p","#,
                r#""io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{"form":{{}}}}}}}}}}}}"#
            ),
            self.number
        );
        self.bridge.handle_host(HOST, request.as_bytes(), None, now);
        let mut sent = self.bridge.poll_output();
        if matches!(sent, Some(Output::OpenUpstream { .. })) {
            sent = self.bridge.poll_output();
        }
        let Some(Output::ToUpstream { bytes: relayed, call: Some(call), link, .. }) = sent else { panic!() };
        let result = if interim {
            concat!(
                r#""resultType":"input_required","inputRequests":{"sure":{"method":"elicitation/create","params":{"message":"Sure?","#,
                r#""requestedSchema":{"type":"object","properties":{}}}}},"requestState":"0123456789abcdef0123456789abcdef""#
            )
        } else {
            r#""resultType":"complete","content":[{"type":"text","text":"Booked three nights in Lisbon, breakfast included."}]"#
        };
        let reply = format!(r#"{{"jsonrpc":"2.0","id":{call},"result":{{{result}}}}}"#);
        self.bridge.handle_upstream(link, None, reply.as_bytes(), now);
        let Some(Output::ToHost { bytes, .. }) = self.bridge.poll_output() else { panic!() };
        (relayed, bytes)
    }
}

impl Default for Relay {
    fn default() -> Self {
        Self::new()
    }
}

/// Parks `count` calls, each on an HTTP session of its own; the bridge that holds them.
///
/// # Panics
///
/// If it does not.
#[must_use]
pub fn parked(count: u64) -> Bridge {
    let mut config = config(&[("up", Transport::Http, Era::Legacy)]);
    config.pool.http_sessions = usize::MAX / 4;
    config.quota.parked = usize::MAX;
    config.quota.calls = usize::MAX;
    let mut bridge = Bridge::new(config, Entropy::new([4; 32])).expect("a good configuration");
    let now = Timestamp::from_unix_millis(START);
    let request = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"book","arguments":{"city":"Lisbon"},"_meta":{"#,
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}"#
    );
    for number in 0..count {
        let host = HostId(number + 1);
        bridge.open_host(
            host,
            HostKind::Post,
            Principal::Authenticated(format!("ada{}", number % 100).as_bytes()),
        );
        bridge.handle_host(host, request.as_bytes(), None, now);
        let mut session = (LinkId(0), 0);
        while let Some(output) = bridge.poll_output() {
            if let Output::ToUpstream { link, call: Some(call), .. } = output {
                session = (link, call);
            }
        }
        let begun = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#,
            session.1
        );
        bridge.handle_upstream(session.0, Some(session.1), begun.as_bytes(), now);
        while bridge.poll_output().is_some() {}
        let ask = concat!(
            r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"Sure?","#,
            r#""requestedSchema":{"type":"object","properties":{}}}}"#
        );
        bridge.handle_upstream(session.0, None, ask.as_bytes(), now);
    }
    let later = now.saturating_add(core::time::Duration::from_millis(10));
    bridge.handle_timeout(later);
    while bridge.poll_output().is_some() {}
    assert_eq!(u64::try_from(bridge.counts().parked), Ok(count));
    bridge
}
