//! Discovery and lists.

use alloc::vec::Vec;

use super::{CacheHints, Catalog};
use crate::jsonrpc::write;

pub(super) fn write_hints(out: &mut Vec<u8>, hints: CacheHints) {
    out.extend_from_slice(b",\"ttlMs\":");
    write::integer(out, i64::try_from(hints.ttl.as_millis()).unwrap_or(i64::MAX));
    out.extend_from_slice(if hints.public {
        b",\"cacheScope\":\"public\""
    } else {
        b",\"cacheScope\":\"private\""
    });
}

impl<H> Catalog<H> {
    /// The result of `server/discover`. `versions` is JSON text of an array.
    pub(super) fn discover(&self, versions: &str) -> Vec<u8> {
        let mut out = b"{\"supportedVersions\":".to_vec();
        out.extend_from_slice(versions.as_bytes());
        out.extend_from_slice(b",\"capabilities\":");
        self.write_capabilities(&mut out);
        if let Some(instructions) = &self.instructions {
            out.extend_from_slice(b",\"instructions\":");
            write::string(&mut out, instructions);
        }
        write_hints(&mut out, self.hints);
        out.push(b'}');
        out
    }

    /// What the server announces follows from what is declared.
    pub(crate) fn write_capabilities(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        let mut first = true;
        let mut put = |out: &mut Vec<u8>, text: &[u8]| {
            if !core::mem::take(&mut first) {
                out.push(b',');
            }
            out.extend_from_slice(text);
        };
        let changed = |with: &'static [u8], without: &'static [u8]| if self.changes { with } else { without };
        if !self.tools.is_empty() {
            put(out, changed(b"\"tools\":{\"listChanged\":true}", b"\"tools\":{}"));
        }
        if !self.prompts.is_empty() {
            put(out, changed(b"\"prompts\":{\"listChanged\":true}", b"\"prompts\":{}"));
        }
        if self.has_resources() {
            put(
                out,
                changed(b"\"resources\":{\"listChanged\":true,\"subscribe\":true}", b"\"resources\":{}"),
            );
        }
        if self.logging {
            put(out, b"\"logging\":{}");
        }
        if self.has_completions() {
            put(out, b"\"completions\":{}");
        }
        out.push(b'}');
    }

    pub(super) fn has_resources(&self) -> bool {
        !self.resources.is_empty() || !self.templates.is_empty()
    }

    pub(super) fn has_completions(&self) -> bool {
        self.prompts
            .iter()
            .any(|(prompt, _)| prompt.arguments.iter().any(|argument| !argument.completions.is_empty()))
    }

    pub(super) fn list_tools(&self) -> Vec<u8> {
        self.list("tools", self.tools.iter(), |offered, out| offered.tool.write(out))
    }

    pub(super) fn list_prompts(&self) -> Vec<u8> {
        self.list("prompts", self.prompts.iter(), |(prompt, _), out| prompt.write(out))
    }

    pub(super) fn list_resources(&self) -> Vec<u8> {
        self.list("resources", self.resources.iter(), |(resource, _), out| resource.write(out))
    }

    pub(super) fn list_templates(&self) -> Vec<u8> {
        self.list("resourceTemplates", self.templates.iter(), |(template, _), out| template.write(out))
    }

    fn list<T>(
        &self,
        member: &str,
        entries: impl Iterator<Item = T>,
        write: impl Fn(T, &mut Vec<u8>),
    ) -> Vec<u8> {
        let mut out = b"{".to_vec();
        write::string(&mut out, member);
        out.extend_from_slice(b":[");
        for (index, entry) in entries.enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write(entry, &mut out);
        }
        out.push(b']');
        write_hints(&mut out, self.hints);
        out.push(b'}');
        out
    }
}
