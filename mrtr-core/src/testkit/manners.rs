//! What the server says where the case has nothing to say.

use alloc::{format, string::String};

use super::{case::Said, seen::Seen};
use crate::{
    jsonrpc::Json,
    wire::{AskingMethod, Version},
};

/// A proper answer to any request.
pub(super) fn reply(seen: &Seen<'_>) -> Said {
    if let Some(result) = complete(seen) {
        return Said::Result(result);
    }
    let result = match seen.method() {
        "server/discover" => format!(
            concat!(
                r#"{{"resultType":"complete","supportedVersions":["{}"],"capabilities":{{"tools":{{}},"prompts":{{}},"#,
                r#""resources":{{}},"completions":{{}}}},"ttlMs":0,"cacheScope":"private","#,
                r#""_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"hostile","version":"1"}}}}}}"#
            ),
            Version::LATEST.name()
        ),
        "tools/list" => {
            list("tools", r#"{"name":"hostile","description":"Misbehaves.","inputSchema":{"type":"object"}}"#)
        }
        "prompts/list" => list("prompts", r#"{"name":"hostile","description":"Misbehaves."}"#),
        "resources/list" => list("resources", r#"{"uri":"test:hostile","name":"hostile"}"#),
        "resources/templates/list" => list("resourceTemplates", ""),
        "completion/complete" => {
            String::from(r#"{"resultType":"complete","completion":{"values":[],"hasMore":false}}"#)
        }
        // A server of one era says so (R-053).
        "initialize" => {
            let asked = seen.param("protocolVersion").filter(|version| version.as_string().is_some());
            let data = format!(
                r#"{{"supported":["{}"],"requested":{}}}"#,
                Version::LATEST.name(),
                asked.map_or(r#""""#, Json::as_str)
            );
            return Said::Error { code: -32_022, message: "Unsupported protocol version", data: Some(data) };
        }
        _ => return Said::Error { code: -32_601, message: "Method not found", data: None },
    };
    Said::Result(result)
}

/// The final result of a method that may be answered with questions.
pub(super) fn complete(seen: &Seen<'_>) -> Option<String> {
    Some(match AskingMethod::from_name(seen.method())? {
        AskingMethod::ToolsCall => {
            r#"{"resultType":"complete","content":[{"type":"text","text":"done"}],"isError":false}"#.into()
        }
        AskingMethod::PromptsGet => {
            r#"{"resultType":"complete","messages":[{"role":"user","content":{"type":"text","text":"done"}}]}"#
                .into()
        }
        AskingMethod::ResourcesRead => {
            let uri = seen.param("uri").filter(|uri| uri.as_string().is_some());
            format!(
                r#"{{"resultType":"complete","contents":[{{"uri":{},"text":"done"}}],"ttlMs":0,"cacheScope":"private"}}"#,
                uri.map_or(r#""test:hostile""#, Json::as_str)
            )
        }
    })
}

fn list(member: &str, entry: &str) -> String {
    format!(r#"{{"resultType":"complete","{member}":[{entry}],"ttlMs":0,"cacheScope":"private"}}"#)
}
