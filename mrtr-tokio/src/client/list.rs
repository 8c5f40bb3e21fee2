//! Lists of what a server offers.

use std::{borrow::Cow, sync::Arc};

use mrtr_core::{
    client::{Call, NoAnswers},
    http::ParamHeaders,
    jsonrpc::Json,
};

use super::{CallError, Client, call::quoted};

/// Entries that are read of one list. A server that offers more is cut off.
const ENTRIES: usize = 10_000;

/// Pages that are read of one list.
const PAGES: usize = 1_000;

/// A tool, as the server declares it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What it does, as the server says.
    pub description: Option<String>,
    /// JSON text of its whole declaration, the schemas untouched.
    pub json: String,
}

impl Client {
    /// The tools of the server. Those whose header annotations are invalid are left out, for they must not be
    /// called over HTTP; the others are remembered, so that calls carry their headers.
    ///
    /// # Errors
    ///
    /// If the server gives no list.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, CallError> {
        let mut tools = Vec::new();
        for json in self.list("tools/list", "tools").await? {
            let Ok(declared) = Json::parse(&json, &self.inner.machine.limits) else { continue };
            let text = |name: &str| declared.get(name).and_then(Json::as_string).map(Cow::into_owned);
            let Some(name) = text("name") else { continue };
            let schema = declared.get("inputSchema").unwrap_or(Json::EMPTY_OBJECT);
            match ParamHeaders::from_schema(schema) {
                Ok(annotations) => {
                    self.inner.machine.annotations().insert(name.clone(), Arc::new(annotations));
                }
                Err(fault) => {
                    tracing::warn!(tool = %name, %fault, "a tool is left out: its header annotations are invalid");
                    continue;
                }
            }
            let (title, description) = (text("title"), text("description"));
            tools.push(Tool { name, title, description, json });
        }
        Ok(tools)
    }

    /// The prompts of the server, each as the JSON text of its declaration.
    ///
    /// # Errors
    ///
    /// If the server gives no list.
    pub async fn list_prompts(&self) -> Result<Vec<String>, CallError> {
        self.list("prompts/list", "prompts").await
    }

    /// The resources of the server, each as the JSON text of its declaration.
    ///
    /// # Errors
    ///
    /// If the server gives no list.
    pub async fn list_resources(&self) -> Result<Vec<String>, CallError> {
        self.list("resources/list", "resources").await
    }

    /// What the server says of itself: JSON text of its `server/discover` result.
    ///
    /// # Errors
    ///
    /// If it says nothing.
    pub async fn discover(&self) -> Result<String, CallError> {
        let reply = self.call(Call::new("server/discover", "{}"), &NoAnswers).await?;
        Ok(reply.result().as_str().into())
    }

    /// Reads a list page by page.
    async fn list(&self, method: &str, member: &str) -> Result<Vec<String>, CallError> {
        let mut entries = Vec::new();
        let mut params = String::from("{}");
        for _ in 0..PAGES {
            let reply = self.call(Call::new(method, &params), &NoAnswers).await?;
            let listed = reply.result().get(member).and_then(Json::items).into_iter().flatten();
            entries.extend(listed.take(ENTRIES - entries.len()).map(|entry| String::from(entry.as_str())));
            match reply.result().get("nextCursor").and_then(Json::as_string) {
                Some(cursor) if entries.len() < ENTRIES => {
                    params = format!("{{\"cursor\":{}}}", quoted(&cursor))
                }
                _ => return Ok(entries),
            }
        }
        Ok(entries)
    }
}
