//! What a server offers, as its author declares it: tools, prompts, resources and templates of them.

mod prompt;
mod resource;
mod tool;

use alloc::{string::String, vec::Vec};

pub use prompt::Prompt;
pub use resource::{Resource, ResourceTemplate};
pub use tool::Tool;

use crate::jsonrpc::write;

/// Why something cannot be offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// There is one of that name.
    #[error("{0:?} is declared twice")]
    Taken(String),
    /// The name is not fit to be sent: 1 to 64 of `A-Z a-z 0-9 _ . - /` for a tool, not empty for the rest.
    #[error("{0:?} is not a valid name")]
    Name(String),
    /// A schema is no JSON object.
    #[error("{name:?}: the {which} is not a JSON object")]
    Schema {
        /// Of what.
        name: String,
        /// Which schema.
        which: &'static str,
    },
    /// An `x-mcp-header` annotation no client may follow.
    #[error("{name:?}: {problem}")]
    Header {
        /// Of what.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// A template this catalog cannot match.
    #[error("{0:?} is not a template of text and {{name}} parts")]
    Template(String),
}

/// The parts of a builder that several kinds share.
macro_rules! shared {
    (title) => {
        /// The name shown to people.
        #[must_use]
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.title = Some(title.into());
            self
        }
    };
    (described) => {
        /// What it is.
        #[must_use]
        pub fn description(mut self, text: impl Into<String>) -> Self {
            self.description = Some(text.into());
            self
        }

        /// The media type.
        #[must_use]
        pub fn mime_type(mut self, text: impl Into<String>) -> Self {
            self.mime_type = Some(text.into());
            self
        }
    };
    (state_ttl of $what:literal) => {
        #[doc = concat!("How long a question of this ", $what, " may wait for its answer, instead of what the sealer")]
        /// says: longer where people must look something up, shorter where an answer soon means nothing. Never
        /// beyond the exchange's own deadline, [`Limits::exchange`](crate::Limits::exchange). A rotation of keys waits
        /// for the longest of all.
        #[must_use]
        pub fn state_ttl(mut self, ttl: Ttl) -> Self {
            self.state_ttl = Some(ttl);
            self
        }
    };
}
use shared;

/// Opens an object with the members that every entry has.
fn named(out: &mut Vec<u8>, name: &str, title: Option<&str>, description: Option<&str>) {
    out.extend_from_slice(b"{\"name\":");
    write::string(out, name);
    if let Some(title) = title {
        text_member(out, "title", title);
    }
    if let Some(description) = description {
        text_member(out, "description", description);
    }
}

fn member(out: &mut Vec<u8>, name: &str, json: &str) {
    out.push(b',');
    write::string(out, name);
    out.push(b':');
    write::one_line(out, json);
}

fn text_member(out: &mut Vec<u8>, name: &str, text: &str) {
    out.push(b',');
    write::string(out, name);
    out.push(b':');
    write::string(out, text);
}
