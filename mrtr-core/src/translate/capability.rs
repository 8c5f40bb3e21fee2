//! Capabilities from one era to the other (R-246, BT-2…BT-5, BT-8, G-46).

use alloc::string::String;

use crate::wire::{ClientCapabilities, Version};

/// What of the declared capabilities means anything in a revision: whatever a client of 2025-06-18 says of
/// urls or of tools in sampling, it knows neither.
#[must_use]
pub fn understood(declared: ClientCapabilities, version: Version) -> ClientCapabilities {
    let mut effective = declared;
    match version {
        Version::V2026_07_28 | Version::V2025_11_25 => {}
        Version::V2025_06_18 => {
            effective.form = declared.elicitation;
            effective.url = false;
            effective.sampling_tools = false;
        }
        Version::V2025_03_26 => {
            effective = ClientCapabilities {
                elicitation: false,
                form: false,
                url: false,
                sampling_tools: false,
                ..declared
            };
        }
    }
    effective
}

/// What may be promised to a server of `version` on behalf of a host that can answer `host`, never more (G-46): to
/// 2025-06-18 forms and sampling without tools, to 2025-03-26 no elicitation. Roots come without `listChanged`,
/// because nobody will be told of changes (BT-4).
#[must_use]
pub fn promise(host: ClientCapabilities, version: Version) -> (ClientCapabilities, String) {
    let mut promised = host;
    promised.elicitation = host.form || host.url;
    match version {
        Version::V2026_07_28 | Version::V2025_11_25 => {}
        Version::V2025_06_18 | Version::V2025_03_26 => {
            promised.url = false;
            promised.sampling_tools = false;
            promised.form &= version == Version::V2025_06_18;
            // It reads `elicitation` as forms, whatever stands in it.
            promised.elicitation = promised.form;
        }
    }
    promised.sampling_context &= promised.sampling;
    let json = promised.to_json();
    (promised, json)
}
