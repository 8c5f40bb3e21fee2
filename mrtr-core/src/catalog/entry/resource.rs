//! Resources, single and by the family.

use alloc::{string::String, vec::Vec};

use super::{CatalogError, named, shared, text_member};
use crate::seal::Ttl;

/// A resource.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resource {
    /// Its uri, as requests name it.
    pub uri: String,
    /// Its name, for programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// How long a question of this resource may wait for its answer; `None`: as long as the sealer says.
    pub state_ttl: Option<Ttl>,
}

impl Resource {
    /// A resource.
    #[must_use]
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            state_ttl: None,
        }
    }

    shared!(title);

    shared!(described);

    shared!(state_ttl of "resource");

    pub(in crate::catalog) fn check(&self) -> Result<(), CatalogError> {
        if self.uri.is_empty() || self.name.is_empty() {
            Err(CatalogError::Name(self.uri.clone()))
        } else {
            Ok(())
        }
    }

    pub(in crate::catalog) fn write(&self, out: &mut Vec<u8>) {
        named(out, &self.name, self.title.as_deref(), self.description.as_deref());
        text_member(out, "uri", &self.uri);
        if let Some(mime_type) = &self.mime_type {
            text_member(out, "mimeType", mime_type);
        }
        out.push(b'}');
    }
}

/// A family of resources: text with `{name}` parts, each of which stands for one or more characters other
/// than `/`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The template.
    pub uri_template: String,
    /// Its name, for programs.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// The media type of all of them.
    pub mime_type: Option<String>,
    /// How long a question of this family may wait for its answer; `None`: as long as the sealer says.
    pub state_ttl: Option<Ttl>,
}

impl ResourceTemplate {
    /// A template.
    #[must_use]
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri_template: uri_template.into(),
            name: name.into(),
            description: None,
            mime_type: None,
            state_ttl: None,
        }
    }

    shared!(described);

    shared!(state_ttl of "family");

    pub(in crate::catalog) fn check(&self) -> Result<(), CatalogError> {
        let mut rest = self.uri_template.as_str();
        let mut parts = 0;
        while let Some((text, after)) = rest.split_once('{') {
            if text.contains('}') {
                break;
            }
            let name = after.split_once('}').filter(|(name, _)| {
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            });
            let Some((_, after)) = name else {
                return Err(CatalogError::Template(self.uri_template.clone()));
            };
            // Two parts side by side have no border between them.
            if after.starts_with('{') {
                return Err(CatalogError::Template(self.uri_template.clone()));
            }
            rest = after;
            parts += 1;
        }
        if parts == 0 || rest.contains('}') {
            Err(CatalogError::Template(self.uri_template.clone()))
        } else {
            Ok(())
        }
    }

    /// The parts of `uri` by their names, if it is one of the family.
    pub(crate) fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        let mut found = Vec::new();
        let (mut template, mut uri) = (self.uri_template.as_str(), uri);
        while let Some((text, after)) = template.split_once('{') {
            let (name, after) = after.split_once('}')?;
            uri = uri.strip_prefix(text)?;
            let border = after.split('{').next().unwrap_or("");
            // The last part reaches to the end; any other to the first border behind its first character.
            let end = if border.len() == after.len() {
                uri.strip_suffix(border)?.len()
            } else {
                let first = uri.chars().next()?.len_utf8();
                first + find(uri.get(first..)?, border)?
            };
            let value = uri.get(..end).filter(|value| !value.is_empty() && !value.contains('/'))?;
            found.push((name.into(), value.into()));
            uri = uri.get(end..)?;
            template = after;
        }
        (template == uri).then_some(found)
    }

    pub(in crate::catalog) fn write(&self, out: &mut Vec<u8>) {
        named(out, &self.name, None, self.description.as_deref());
        text_member(out, "uriTemplate", &self.uri_template);
        if let Some(mime_type) = &self.mime_type {
            text_member(out, "mimeType", mime_type);
        }
        out.push(b'}');
    }
}

/// Where `border` is first found. It is a few bytes that the author chose: the search of the standard library, which is
/// quick for any two texts, would be more code than all of this.
fn find(text: &str, border: &str) -> Option<usize> {
    let last = text.len().checked_sub(border.len())?;
    (0..=last).find(|&at| text.as_bytes().get(at..).is_some_and(|rest| rest.starts_with(border.as_bytes())))
}
