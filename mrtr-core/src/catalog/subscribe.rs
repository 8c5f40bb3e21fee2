//! `subscriptions/listen`: a stream of changes.

use alloc::{string::String, vec::Vec};

use crate::{
    error::RpcError,
    jsonrpc::{Json, Request, RequestId, write},
    server::Server,
    wire::{Implementation, key},
};

/// Uris one stream may watch: more are refused, for each is held as long as the stream.
const URIS: usize = 1_000;

/// Something that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// What a resource holds.
    Resource(String),
}

/// What a stream wants to hear of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// The list of tools.
    pub tools: bool,
    /// The list of prompts.
    pub prompts: bool,
    /// The list of resources.
    pub resources: bool,
    /// Single resources.
    pub uris: Vec<String>,
}

impl Filter {
    pub(super) fn from_request(request: &Request<'_>) -> Result<Self, RpcError> {
        let invalid = |what| RpcError::invalid_params(alloc::format!("Invalid params: notifications{what}"));
        let wanted = request.param("notifications").filter(|value| value.is_object());
        let wanted = wanted.ok_or_else(|| invalid(" is not an object"))?;
        let flag = |name: &str| wanted.get(name).and_then(Json::as_bool).unwrap_or(false);
        let mut uris = Vec::new();
        if let Some(list) = wanted.get("resourceSubscriptions") {
            for uri in list.items().ok_or_else(|| invalid(".resourceSubscriptions is not an array"))? {
                if uris.len() == URIS {
                    return Err(invalid(".resourceSubscriptions has more than 1000 entries"));
                }
                let uri = uri
                    .as_string()
                    .ok_or_else(|| invalid(".resourceSubscriptions has an entry that is no string"))?;
                uris.push(uri.into_owned());
            }
        }
        Ok(Self {
            tools: flag("toolsListChanged"),
            prompts: flag("promptsListChanged"),
            resources: flag("resourcesListChanged"),
            uris,
        })
    }

    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Resource(uri) => self.uris.contains(uri),
        }
    }
}

/// An open `subscriptions/listen`: makes the messages of its stream.
#[derive(Clone, Debug)]
pub struct Listen {
    id: RequestId,
    filter: Filter,
    info: Implementation,
}

impl Listen {
    pub(super) fn new(server: &Server, id: RequestId, filter: Filter) -> Self {
        Self { id, filter, info: server.config().info.clone() }
    }

    /// The id of the request, which names the subscription.
    #[must_use]
    pub const fn id(&self) -> &RequestId {
        &self.id
    }

    /// Appends the stream's first message: the filter that is honoured.
    pub fn acknowledge(&self, out: &mut Vec<u8>) {
        let mut params = b"{\"notifications\":{".to_vec();
        let mut first = true;
        let mut put = |params: &mut Vec<u8>, wanted: bool, name: &str| {
            if wanted {
                if !core::mem::take(&mut first) {
                    params.push(b',');
                }
                write::string(params, name);
                params.extend_from_slice(b":true");
            }
        };
        put(&mut params, self.filter.tools, "toolsListChanged");
        put(&mut params, self.filter.prompts, "promptsListChanged");
        put(&mut params, self.filter.resources, "resourcesListChanged");
        if !self.filter.uris.is_empty() {
            if !first {
                params.push(b',');
            }
            params.extend_from_slice(b"\"resourceSubscriptions\":[");
            for (index, uri) in self.filter.uris.iter().enumerate() {
                if index > 0 {
                    params.push(b',');
                }
                write::string(&mut params, uri);
            }
            params.push(b']');
        }
        params.push(b'}');
        self.notify(out, "notifications/subscriptions/acknowledged", params);
    }

    /// Appends the notification of a change, if this stream wants it; whether it did.
    pub fn change(&self, change: &Change, out: &mut Vec<u8>) -> bool {
        if !self.filter.wants(change) {
            return false;
        }
        let (method, params) = match change {
            Change::Tools => ("notifications/tools/list_changed", b"{".to_vec()),
            Change::Prompts => ("notifications/prompts/list_changed", b"{".to_vec()),
            Change::Resources => ("notifications/resources/list_changed", b"{".to_vec()),
            Change::Resource(uri) => {
                let mut params = b"{\"uri\":".to_vec();
                write::string(&mut params, uri);
                ("notifications/resources/updated", params)
            }
        };
        self.notify(out, method, params);
        true
    }

    /// Appends the closing result.
    pub fn close(&self, out: &mut Vec<u8>) {
        write::result_head(out, &self.id);
        out.extend_from_slice(b"{\"resultType\":\"complete\",\"_meta\":{");
        write::string(out, key::SERVER_INFO);
        out.push(b':');
        self.info.write(out);
        out.push(b',');
        self.tag(out);
        out.extend_from_slice(b"}}}");
    }

    fn tag(&self, out: &mut Vec<u8>) {
        write::string(out, key::SUBSCRIPTION_ID);
        out.push(b':');
        self.id.write(out);
    }

    /// A notification with the subscription's id in `_meta`. `params` is an object that is still open.
    fn notify(&self, out: &mut Vec<u8>, method: &str, mut params: Vec<u8>) {
        if params.last() != Some(&b'{') {
            params.push(b',');
        }
        params.extend_from_slice(b"\"_meta\":{");
        self.tag(&mut params);
        params.extend_from_slice(b"}}");
        write::notification(out, method, core::str::from_utf8(&params).unwrap_or("{}"));
    }
}
