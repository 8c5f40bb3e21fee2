//! What a client declared it can answer, and what an ask needs (R-100…R-110, G-13, G-14).

use alloc::string::String;

use super::AskKind;
use crate::jsonrpc::Json;

/// The part of `clientCapabilities` that asks depend on. Unknown members are ignored.
///
/// `elicitation: {}` means forms only; `{"url":{}}` alone means urls only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// `elicitation` was declared at all.
    pub elicitation: bool,
    /// Forms can be shown.
    pub form: bool,
    /// Urls can be opened.
    pub url: bool,
    /// Sampling.
    pub sampling: bool,
    /// Sampling with tools.
    pub sampling_tools: bool,
    /// Sampling with `includeContext`.
    pub sampling_context: bool,
    /// Roots.
    pub roots: bool,
}

impl ClientCapabilities {
    /// Every capability there is.
    pub const ALL: Self = Self {
        elicitation: true,
        form: true,
        url: true,
        sampling: true,
        sampling_tools: true,
        sampling_context: true,
        roots: true,
    };

    /// Reads a capabilities object. A member that should be an object and is not is the fault named
    /// `None` for a value that is no object.
    #[must_use]
    pub fn from_json(value: Json<'_>) -> Option<Self> {
        let mut found = Self::default();
        for (name, member) in value.members()? {
            match &*name {
                "elicitation" => {
                    let [form, url] = member.pick(["form", "url"])?;
                    found.elicitation = true;
                    found.form = form.map_or(url.is_none(), Json::is_object);
                    found.url = url.is_some_and(Json::is_object);
                }
                "sampling" => {
                    let [tools, context] = member.pick(["tools", "context"])?;
                    found.sampling = true;
                    found.sampling_tools = tools.is_some_and(Json::is_object);
                    found.sampling_context = context.is_some_and(Json::is_object);
                }
                "roots" => {
                    if !member.is_object() {
                        return None;
                    }
                    found.roots = true;
                }
                _ => {}
            }
        }
        Some(found)
    }

    /// Writes the set as a capabilities object, normalised: `{}` for forms only would be legal, but the
    /// modes are named, which no peer can misread.
    #[must_use]
    pub fn to_json(self) -> String {
        let leaves = Missing {
            elicitation: false,
            form_named: self.form,
            url: self.url,
            sampling: self.sampling,
            sampling_tools: self.sampling_tools,
            sampling_context: self.sampling_context,
            roots: self.roots,
        };
        leaves.to_json()
    }

    /// What one of the two can answer.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self {
            elicitation: self.elicitation || other.elicitation,
            form: self.form || other.form,
            url: self.url || other.url,
            sampling: self.sampling || other.sampling,
            sampling_tools: self.sampling_tools || other.sampling_tools,
            sampling_context: self.sampling_context || other.sampling_context,
            roots: self.roots || other.roots,
        }
    }

    /// Whether an ask with this requirement may be sent to this client.
    #[must_use]
    pub const fn allow(self, need: Requirement) -> bool {
        match need.kind {
            AskKind::Form => self.form,
            AskKind::Url => self.url,
            AskKind::Sampling => self.sampling && (!need.tools || self.sampling_tools),
            AskKind::Roots => self.roots,
        }
    }

    /// The JSON text of `data` for `-32021`: exactly the missing leaves of `needs`, merged (R-021, G-13, G-14).
    #[must_use]
    pub fn missing(self, needs: impl IntoIterator<Item = Requirement>) -> String {
        let mut missing = Missing::default();
        for need in needs {
            if self.allow(need) {
                continue;
            }
            match need.kind {
                AskKind::Form if self.elicitation => missing.form_named = true,
                AskKind::Form => missing.elicitation = true,
                AskKind::Url => missing.url = true,
                AskKind::Sampling if need.tools => missing.sampling_tools = true,
                AskKind::Sampling => missing.sampling = true,
                AskKind::Roots => missing.roots = true,
            }
        }
        let mut data = String::from("{\"requiredCapabilities\":");
        data.push_str(&missing.to_json());
        data.push('}');
        data
    }
}

/// What an ask needs of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Requirement {
    /// Which kind of ask.
    pub kind: AskKind,
    /// Sampling only: the ask carries `tools` or `toolChoice`.
    pub tools: bool,
}

impl Requirement {
    /// What an ask of this kind needs, without sampling tools.
    #[must_use]
    pub const fn new(kind: AskKind) -> Self {
        Self { kind, tools: false }
    }

    /// Sampling with tools.
    #[must_use]
    pub const fn sampling_with_tools() -> Self {
        Self { kind: AskKind::Sampling, tools: true }
    }
}

/// Leaves of a capabilities object to write.
#[derive(Default)]
struct Missing {
    elicitation: bool,
    form_named: bool,
    url: bool,
    sampling: bool,
    sampling_tools: bool,
    sampling_context: bool,
    roots: bool,
}

impl Missing {
    fn to_json(&self) -> String {
        let mut out = String::from("{");
        let mut first = true;
        let mut group = |out: &mut String, name: &str, leaves: &[(bool, &str)]| {
            if !core::mem::take(&mut first) {
                out.push(',');
            }
            out.push('"');
            out.push_str(name);
            out.push_str("\":{");
            let mut inner = true;
            for (_, leaf) in leaves.iter().filter(|(wanted, _)| *wanted) {
                if !core::mem::take(&mut inner) {
                    out.push(',');
                }
                out.push('"');
                out.push_str(leaf);
                out.push_str("\":{}");
            }
            out.push('}');
        };
        if self.elicitation || self.form_named || self.url {
            // Nothing declared and a form needed is `{}`, the specification's own example (G-14).
            let form = self.form_named || (self.elicitation && self.url);
            group(&mut out, "elicitation", &[(form, "form"), (self.url, "url")]);
        }
        if self.sampling || self.sampling_tools || self.sampling_context {
            group(
                &mut out,
                "sampling",
                &[(self.sampling_tools, "tools"), (self.sampling_context, "context")],
            );
        }
        if self.roots {
            group(&mut out, "roots", &[]);
        }
        out.push('}');
        out
    }
}
