//! The three methods whose requests may be answered `input_required`.

use alloc::string::String;

use crate::jsonrpc::write;

/// A method that may ask (R-056): everything else is never answered with an interim result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums)]
pub enum AskingMethod {
    /// `tools/call`
    ToolsCall,
    /// `prompts/get`
    PromptsGet,
    /// `resources/read`
    ResourcesRead,
}

impl AskingMethod {
    /// The method of that name, if it is one of the three.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "tools/call" => Some(Self::ToolsCall),
            "prompts/get" => Some(Self::PromptsGet),
            "resources/read" => Some(Self::ResourcesRead),
            _ => None,
        }
    }

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ToolsCall => "tools/call",
            Self::PromptsGet => "prompts/get",
            Self::ResourcesRead => "resources/read",
        }
    }

    /// Parameters that name `target`, as JSON text; with `arguments`, JSON text of an object, where the method has
    /// any.
    ///
    /// ```
    /// # use mrtr_core::wire::AskingMethod;
    /// assert_eq!(AskingMethod::ToolsCall.params("t", Some("{}")), r#"{"name":"t","arguments":{}}"#);
    /// assert_eq!(AskingMethod::ResourcesRead.params("file:///a", None), r#"{"uri":"file:///a"}"#);
    /// ```
    #[must_use]
    pub fn params(self, target: &str, arguments: Option<&str>) -> String {
        let mut out = b"{".to_vec();
        write::string(&mut out, self.target_param());
        out.push(b':');
        write::string(&mut out, target);
        if let Some(arguments) = arguments {
            out.extend_from_slice(b",\"arguments\":");
            write::one_line(&mut out, arguments);
        }
        out.push(b'}');
        String::from_utf8(out).unwrap_or_default()
    }

    /// The parameter that names what is called: `name`, or `uri` for resources (R-164).
    #[must_use]
    pub const fn target_param(self) -> &'static str {
        match self {
            Self::ToolsCall | Self::PromptsGet => "name",
            Self::ResourcesRead => "uri",
        }
    }
}

impl core::fmt::Display for AskingMethod {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}
