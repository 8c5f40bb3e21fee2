//! What a revision of the legacy eras has of the capabilities.

use crate::wire::{ClientCapabilities, Version};

/// What of the declared capabilities means anything in a revision: whatever a client of 2025-06-18 says of
/// urls or of tools in sampling, it knows neither.
pub(crate) fn effective(declared: ClientCapabilities, version: Version) -> ClientCapabilities {
    let mut effective = declared;
    match version {
        Version::V2026_07_28 | Version::V2025_11_25 => {}
        Version::V2025_06_18 => {
            // One that was made by hand may say the mode alone.
            effective.form = declared.elicitation || declared.form;
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
