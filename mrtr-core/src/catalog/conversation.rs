//! What is said to a client's model besides texts: blocks of content, and a conversation in which it uses tools
//! (R-147…R-153).

use alloc::{borrow::Cow, string::String, vec::Vec};

use super::{Content, Output, ToolResult};
use crate::{
    jsonrpc::{Json, write},
    wire::{Sampled, Sampling},
};

/// One use of a tool that a model wants, out of what it [said](Sampled::tool_uses).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolUse<'a> {
    /// What its result must be given under.
    pub id: Cow<'a, str>,
    /// The tool.
    pub name: Cow<'a, str>,
    /// Its arguments, an object.
    pub input: Json<'a>,
}

impl Sampled {
    /// The tools that the model wants used before it goes on: then `stopReason` is `toolUse` (R-151).
    #[must_use]
    pub fn tool_uses(&self) -> Vec<ToolUse<'_>> {
        let Some(content) = self.json().get("content") else { return Vec::new() };
        blocks(content).filter_map(tool_use).collect()
    }
}

impl Sampling {
    /// Adds a message of the user's of these blocks: text, image, audio (R-147).
    #[must_use]
    pub fn user_content(self, blocks: impl IntoIterator<Item = Content>) -> Self {
        self.message("user", array(blocks.into_iter().map(Content::into_json)))
    }

    /// Adds a message of the assistant's of these blocks.
    #[must_use]
    pub fn assistant_content(self, blocks: impl IntoIterator<Item = Content>) -> Self {
        self.message("assistant", array(blocks.into_iter().map(Content::into_json)))
    }

    /// Continues a conversation in which the model wanted tools: what it said, as it came with all metadata (R-152),
    /// and after it the results of its tool uses, by their ids. The model is asked with the whole conversation each
    /// time, for clients are not to keep it (R-151).
    ///
    /// Every use needs its result, and nothing else may have one (R-148): otherwise the ask is invalid, which its first
    /// use reports.
    ///
    /// ```
    /// # use mrtr_core::handler::{Ctx, RpcError, ToolResult};
    /// # use mrtr_core::wire::Sampling;
    /// async fn ask(ctx: Ctx) -> Result<ToolResult, RpcError> {
    ///     let mut talk = Sampling::new(500)
    ///         .user("What is 17 times 23?")
    ///         .member("tools", r#"[{"name":"multiply","inputSchema":{"type":"object"}}]"#);
    ///     loop {
    ///         let said = ctx.sample("talk", &talk).await?;
    ///         let uses = said.tool_uses();
    ///         if uses.is_empty() {
    ///             return Ok(ToolResult::text(said.text()));
    ///         }
    ///         let results = uses.iter().map(|wanted| (wanted.id.to_string(), ToolResult::text("391")));
    ///         talk = talk.tool_results(&said, results);
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn tool_results(
        self,
        said: &Sampled,
        results: impl IntoIterator<Item = (String, ToolResult)>,
    ) -> Self {
        let content = said.json().get("content").map_or("[]", Json::as_str);
        let results = results.into_iter().map(|(id, result)| tool_result(&id, result));
        self.message("assistant", content.into()).message("user", array(results))
    }
}

/// Whether tool uses and results stand as they must (R-148): a message of the user's with a result has results alone,
/// and an assistant's message with tool uses is followed by one with exactly theirs.
pub(crate) fn is_balanced(messages: Json<'_>) -> bool {
    let mut wanted: Vec<Cow<'_, str>> = Vec::new();
    for message in messages.items().into_iter().flatten() {
        let content = message.get("content").unwrap_or(Json::NULL);
        let role = message.get("role").and_then(Json::as_string);
        let results = blocks(content).filter(|block| is(*block, "tool_result"));
        let mut given: Vec<Cow<'_, str>> = results
            .map(|block| block.get("toolUseId").and_then(Json::as_string).unwrap_or_default())
            .collect();
        let alone = given.len() == blocks(content).count();
        if !given.is_empty() && (role.as_deref() != Some("user") || !alone) {
            return false;
        }
        given.sort_unstable();
        if given != wanted {
            return false;
        }
        wanted = blocks(content)
            .filter(|block| is(*block, "tool_use"))
            .filter_map(tool_use)
            .map(|it| it.id)
            .collect();
        wanted.sort_unstable();
        if wanted.windows(2).any(|pair| pair.first() == pair.last())
            || !wanted.is_empty() && role.as_deref() != Some("assistant")
        {
            return false;
        }
    }
    wanted.is_empty()
}

/// The blocks of a content, which may be a single one.
fn blocks(content: Json<'_>) -> impl Iterator<Item = Json<'_>> {
    let single = if content.is_object() { Some(content) } else { None };
    single.into_iter().chain(content.items().into_iter().flatten())
}

fn is(block: Json<'_>, kind: &str) -> bool {
    block.get("type").and_then(Json::as_string).as_deref() == Some(kind)
}

fn tool_use(block: Json<'_>) -> Option<ToolUse<'_>> {
    let text = |name| block.get(name).and_then(Json::as_string);
    if !is(block, "tool_use") {
        return None;
    }
    let input = block.get("input").filter(|input| input.is_object()).unwrap_or(Json::EMPTY_OBJECT);
    Some(ToolUse { id: text("id")?, name: text("name")?, input })
}

/// A result as a block: what the tool gave back, and whose it is. Structured content may be any JSON (R-153).
fn tool_result(id: &str, result: ToolResult) -> String {
    let mut out = b"{\"type\":\"tool_result\",\"toolUseId\":".to_vec();
    write::string(&mut out, id);
    let members = Output::from(result).json;
    // An object with at least one member.
    out.push(b',');
    out.extend_from_slice(members.strip_prefix('{').unwrap_or("}").as_bytes());
    super::results::text_of(out)
}

fn array(items: impl Iterator<Item = String>) -> String {
    let mut out = String::from("[");
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&item);
    }
    out.push(']');
    out
}
