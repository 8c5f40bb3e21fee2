//! What a browser has to be told before it lets a page of another origin call and read.

use super::headers::{Headers, Single, name, plain, single};

/// A page's origin that was [allowed by name](super::Gate::allow_origin), and what its browser asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cors<'h> {
    origin: &'h str,
    preflight: bool,
    asked_headers: Option<&'h str>,
    methods: &'static str,
}

impl<'h> Cors<'h> {
    pub(super) fn new<H: Headers + ?Sized>(origin: &'h str, headers: &'h H, methods: &'static str) -> Self {
        let asked = |name| match single(headers, name) {
            Single::One(value) => plain(value),
            Single::Absent | Single::Conflicting => None,
        };
        let [method, names] = name::ASKED_BY_BROWSERS.map(asked);
        Self { origin, preflight: method.is_some(), asked_headers: names, methods }
    }

    /// The origin, as it was sent.
    #[must_use]
    pub const fn origin(&self) -> &'h str {
        self.origin
    }

    pub(super) fn is_preflight(&self) -> bool {
        self.preflight
    }

    /// Gives the headers to add to the reply, names and values. Which headers a page may send is not limited:
    /// `Mcp-Param-*` can be any, and the page's origin is trusted.
    pub fn each_header(&self, put: &mut dyn FnMut(&'static str, &str)) {
        put("Access-Control-Allow-Origin", self.origin);
        put("Vary", "Origin");
        if self.preflight {
            put("Access-Control-Allow-Methods", self.methods);
            if let Some(asked) = self.asked_headers {
                put("Access-Control-Allow-Headers", asked);
            }
            put("Access-Control-Max-Age", "600");
        } else {
            put("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate");
        }
    }
}
