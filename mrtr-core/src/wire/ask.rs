//! What a server asks: one entry of `inputRequests` (R-060, R-112… ).

use alloc::{borrow::Cow, string::String};
use core::ops::Range;

use super::{ClientCapabilities, Requirement};
use crate::{
    digest::{DigestFault, Fingerprint},
    form::{Form, Schema},
    jsonrpc::Json,
};

/// The kinds of ask. An elicitation is two kinds, because its modes are declared, shown and answered
/// differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums)]
pub enum AskKind {
    /// `elicitation/create` with a form.
    Form,
    /// `elicitation/create` with a url.
    Url,
    /// `sampling/createMessage`.
    Sampling,
    /// `roots/list`.
    Roots,
}

impl AskKind {
    /// The method on the wire.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Self::Form | Self::Url => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// A stable word for logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Url => "url",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }

    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Form => 1,
            Self::Url => 2,
            Self::Sampling => 3,
            Self::Roots => 4,
        }
    }

    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Form),
            2 => Some(Self::Url),
            3 => Some(Self::Sampling),
            4 => Some(Self::Roots),
            _ => None,
        }
    }
}

impl core::fmt::Display for AskKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// One ask: its kind and its parameters as JSON text.
///
/// `Debug` shows the kind and the size.
#[derive(Clone)]
pub struct InputRequest<'a> {
    kind: AskKind,
    /// Absent only for roots.
    params: Option<Params<'a>>,
    /// Where the schema of a form stands in params that were read: whoever shows or checks it asks for it.
    schema: Option<Range<usize>>,
}

#[derive(Clone)]
enum Params<'a> {
    /// JSON text of an object.
    Text(Cow<'a, str>),
    /// A form that was built here: shared, and its schema and fingerprint need not be found again.
    Form(Form),
}

/// What is wrong with an entry of `inputRequests` (G-15).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskFault {
    /// The entry is no object.
    #[error("is not an object")]
    NotAnObject,
    /// `method` is missing or no string.
    #[error("has no string `method`")]
    NoMethod,
    /// A method that nobody may ask.
    #[error("asks for the unknown method {0:?}")]
    UnknownMethod(String),
    /// `params` is missing, or no object.
    #[error("has no `params` object")]
    NoParams,
    /// `mode` is neither `form` nor `url`.
    #[error("has an unknown `mode`")]
    UnknownMode,
    /// A member that the kind needs is missing or has another type.
    #[error("has no valid `{0}`")]
    Member(&'static str),
}

impl<'a> InputRequest<'a> {
    /// Reads an entry of `inputRequests`, or a legacy request's `method` and `params` put together.
    ///
    /// Required members are checked (`message`, `requestedSchema`, `url`, `messages`, `maxTokens`); the
    /// form's schema is only required to be an object, for what a form may contain is judged when it is
    /// shown (G-16).
    ///
    /// # Errors
    ///
    /// What is wrong, to be reported with the entry's key.
    pub fn from_json(value: Json<'a>) -> Result<Self, AskFault> {
        let [method, params] = value.pick(["method", "params"]).ok_or(AskFault::NotAnObject)?;
        let method = method.and_then(Json::as_string).ok_or(AskFault::NoMethod)?;
        Self::from_parts(&method, params)
    }

    /// Reads an ask from its method and parameters; see [`InputRequest::from_json`].
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn from_parts(method: &str, params: Option<Json<'a>>) -> Result<Self, AskFault> {
        let text = |value: Option<Json<'a>>, name: &'static str| {
            value.and_then(Json::as_string).map(|_| ()).ok_or(AskFault::Member(name))
        };
        let mut schema_of_form = None;
        let kind = match method {
            "elicitation/create" => {
                let [message, mode, schema, url] = params
                    .and_then(|params| params.pick(["message", "mode", "requestedSchema", "url"]))
                    .ok_or(AskFault::NoParams)?;
                text(message, "message")?;
                let mode = mode.map(|mode| mode.as_string().ok_or(AskFault::UnknownMode)).transpose()?;
                match mode.as_deref() {
                    None | Some("form") => {
                        let object = schema.filter(|schema| schema.is_object());
                        schema_of_form = Some(object.ok_or(AskFault::Member("requestedSchema"))?);
                        AskKind::Form
                    }
                    Some("url") => {
                        text(url, "url")?;
                        AskKind::Url
                    }
                    Some(_) => return Err(AskFault::UnknownMode),
                }
            }
            "sampling/createMessage" => {
                let [messages, most] = params
                    .and_then(|params| params.pick(["messages", "maxTokens"]))
                    .ok_or(AskFault::NoParams)?;
                if messages.and_then(Json::items).is_none() {
                    return Err(AskFault::Member("messages"));
                }
                if most.is_none_or(|value| value.kind() != crate::jsonrpc::JsonKind::Number) {
                    return Err(AskFault::Member("maxTokens"));
                }
                AskKind::Sampling
            }
            "roots/list" => {
                if params.is_some_and(|params| !params.is_object()) {
                    return Err(AskFault::NoParams);
                }
                AskKind::Roots
            }
            other => return Err(AskFault::UnknownMethod(other.chars().take(64).collect())),
        };
        let schema = params.zip(schema_of_form).map(|(params, schema)| schema.place_in(params.as_str()));
        let params = params.map(|params| Params::Text(Cow::Borrowed(params.as_str())));
        Ok(Self { kind, params, schema })
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> AskKind {
        self.kind
    }

    /// Its parameters, if it has any.
    #[must_use]
    pub fn params(&self) -> Option<Json<'_>> {
        self.params.as_ref().map(|params| {
            Json::trusted(match params {
                Params::Text(text) => text,
                Params::Form(form) => form.params(),
            })
        })
    }

    /// What it needs of the client (R-100…R-105).
    #[must_use]
    pub fn requirement(&self) -> Requirement {
        let tools = self.kind == AskKind::Sampling
            && self
                .params()
                .is_some_and(|params| params.get("tools").is_some() || params.get("toolChoice").is_some());
        if tools { Requirement::sampling_with_tools() } else { Requirement::new(self.kind) }
    }

    /// `message` of an elicitation.
    #[must_use]
    pub fn message(&self) -> Option<Cow<'_, str>> {
        self.params()?.get("message")?.as_string()
    }

    /// `requestedSchema` of a form.
    #[must_use]
    pub fn requested_schema(&self) -> Option<Json<'_>> {
        match &self.params {
            Some(Params::Form(form)) => Some(form.requested_schema()),
            Some(Params::Text(text)) if self.kind == AskKind::Form => match &self.schema {
                Some(place) => text.get(place.clone()).map(Json::trusted),
                None => self.params()?.get("requestedSchema"),
            },
            Some(Params::Text(_)) | None => None,
        }
    }

    /// The form, if it was built here.
    pub(crate) fn built(&self) -> Option<&Schema> {
        match &self.params {
            Some(Params::Form(form)) => Some(form.schema()),
            Some(Params::Text(_)) | None => None,
        }
    }

    /// What a person sees of it, as a digest.
    pub(crate) fn fingerprint(&self) -> Result<Fingerprint, DigestFault> {
        match &self.params {
            Some(Params::Form(form)) => form.fingerprint(),
            Some(Params::Text(_)) | None => Fingerprint::new(self.kind, self.params()),
        }
    }

    /// `url` of a url ask.
    #[must_use]
    pub fn url(&self) -> Option<Cow<'_, str>> {
        if self.kind == AskKind::Url { self.params()?.get("url")?.as_string() } else { None }
    }

    /// The same ask without ties to the message it came in.
    #[must_use]
    pub fn into_owned(self) -> InputRequest<'static> {
        let params = self.params.map(|params| match params {
            Params::Text(text) => Params::Text(Cow::Owned(text.into_owned())),
            Params::Form(form) => Params::Form(form),
        });
        InputRequest { kind: self.kind, params, schema: self.schema }
    }

    /// Appends the ask as an entry of `inputRequests`: `{"method":…,"params":…}`, without `jsonrpc` and `id`.
    pub fn write(&self, out: &mut alloc::vec::Vec<u8>) {
        out.extend_from_slice(b"{\"method\":\"");
        out.extend_from_slice(self.kind.method().as_bytes());
        out.push(b'"');
        if let Some(params) = self.params() {
            out.extend_from_slice(b",\"params\":");
            crate::jsonrpc::write::one_line(out, params.as_str());
        }
        out.push(b'}');
    }

    /// [`write`](Self::write) for a client with these capabilities: without `includeContext` unless
    /// `sampling.context` is declared. What is left out is a hint, and its default, `"none"`, is what the
    /// client would go by; so the ask is not held back, and its fingerprint stays that of what the author asked.
    pub(crate) fn write_for(&self, capabilities: ClientCapabilities, out: &mut alloc::vec::Vec<u8>) {
        let hint = |params: &Json<'_>| params.get("includeContext").is_some();
        let plain = self.kind != AskKind::Sampling || capabilities.sampling_context;
        let Some(params) = self.params().filter(|params| !plain && hint(params)) else {
            return self.write(out);
        };
        out.extend_from_slice(b"{\"method\":\"");
        out.extend_from_slice(self.kind.method().as_bytes());
        out.extend_from_slice(b"\",\"params\":{");
        let members = params.members().into_iter().flatten().filter(|(name, _)| name != "includeContext");
        for (index, (name, value)) in members.enumerate() {
            if index > 0 {
                out.push(b',');
            }
            crate::jsonrpc::write::string(out, &name);
            out.push(b':');
            crate::jsonrpc::write::one_line(out, value.as_str());
        }
        out.extend_from_slice(b"}}");
    }

    /// Whether what an author put into it may be sent: JSON members are JSON, a url is one, tool uses have their
    /// results. Parameters
    /// that were read are JSON, and so are those this crate wrote alone.
    pub(crate) fn is_well_formed(&self, limits: &crate::Limits) -> bool {
        match self.kind {
            AskKind::Form | AskKind::Roots => true,
            AskKind::Url => self.url().is_some_and(|url| crate::form::Format::Uri.matches(&url)),
            AskKind::Sampling => self.params().is_some_and(|params| {
                Json::parse(params.as_str(), limits).is_ok()
                    && params.get("messages").is_some_and(crate::catalog::is_balanced)
            }),
        }
    }

    /// Made from parts that this crate wrote itself.
    pub(crate) fn from_trusted(kind: AskKind, params: Option<String>) -> InputRequest<'static> {
        InputRequest { kind, params: params.map(|text| Params::Text(Cow::Owned(text))), schema: None }
    }

    pub(crate) fn from_form(form: Form) -> InputRequest<'static> {
        InputRequest { kind: AskKind::Form, params: Some(Params::Form(form)), schema: None }
    }
}

impl PartialEq for InputRequest<'_> {
    /// Equal if they ask the same in the same words.
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.params() == other.params()
    }
}

impl Eq for InputRequest<'_> {}

impl core::fmt::Debug for InputRequest<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "InputRequest({}, {} bytes)",
            self.kind,
            self.params().map_or(0, |params| params.as_str().len())
        )
    }
}
