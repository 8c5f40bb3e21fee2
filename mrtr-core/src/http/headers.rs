//! A view of the headers of a request or response that an adapter offers without copying them.

/// Names of the headers that this module reads and writes, in the spelling of the specification.
pub mod name {
    /// `Accept`
    pub const ACCEPT: &str = "Accept";
    /// `Allow`
    pub const ALLOW: &str = "Allow";
    /// `Content-Encoding`
    pub const CONTENT_ENCODING: &str = "Content-Encoding";
    /// `Content-Length`
    pub const CONTENT_LENGTH: &str = "Content-Length";
    /// `Content-Type`
    pub const CONTENT_TYPE: &str = "Content-Type";
    /// `Host`
    pub const HOST: &str = "Host";
    /// `Origin`
    pub const ORIGIN: &str = "Origin";
    /// The version of the request, the same as in `_meta` (R-161).
    pub const PROTOCOL_VERSION: &str = "MCP-Protocol-Version";
    /// The method of the request (R-163).
    pub const METHOD: &str = "Mcp-Method";
    /// What the request names: a tool, a prompt, a resource, a task (R-164).
    pub const NAME: &str = "Mcp-Name";
    /// What stands before the name of an annotated argument (R-173).
    pub const PARAM_PREFIX: &str = "Mcp-Param-";
    /// Sessions of 2025-11-25; a modern request ignores it (R-171).
    pub const SESSION_ID: &str = "Mcp-Session-Id";

    /// All that a server without sessions reads of a request, for an adapter that pays for each header it looks at. Beside
    /// them, of a request that carries [`ORIGIN`], [`ASKED_BY_BROWSERS`], and the `Mcp-Param-*` of the tools that are
    /// offered ([`Catalog::param_headers`](crate::catalog::Catalog::param_headers)).
    pub const READ: [&str; 9] = [
        HOST,
        ORIGIN,
        CONTENT_TYPE,
        CONTENT_ENCODING,
        CONTENT_LENGTH,
        ACCEPT,
        PROTOCOL_VERSION,
        METHOD,
        NAME,
    ];
    /// What a browser asks before it sends a page's request to another origin.
    pub const ASKED_BY_BROWSERS: [&str; 2] =
        ["Access-Control-Request-Method", "Access-Control-Request-Headers"];
}

/// Headers as they came.
///
/// Implemented for slices of (name, value) pairs. An adapter implements it for its HTTP library's own map.
/// With HTTP/2 and 3 it must answer `Host` with the `:authority` of the request.
///
/// ```
/// use mrtr_core::http::Headers;
///
/// let headers: &[(&str, &str)] = &[("Accept", "application/json"), ("accept", "text/event-stream")];
/// let mut seen = Vec::new();
/// headers.get_all("ACCEPT", &mut |value| seen.push(value));
/// assert_eq!(seen, [&b"application/json"[..], b"text/event-stream"]);
/// ```
pub trait Headers {
    /// Calls `each` with every value that was sent under `name`, in order, one call for each header line.
    /// Names are compared without regard to case (R-166). Values may keep their white space.
    fn get_all<'h>(&'h self, name: &str, each: &mut dyn FnMut(&'h [u8]));
}

impl<N: AsRef<str>, V: AsRef<[u8]>> Headers for [(N, V)] {
    fn get_all<'h>(&'h self, name: &str, each: &mut dyn FnMut(&'h [u8])) {
        for (found, value) in self {
            if found.as_ref().eq_ignore_ascii_case(name) {
                each(value.as_ref());
            }
        }
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>, const COUNT: usize> Headers for [(N, V); COUNT] {
    fn get_all<'h>(&'h self, name: &str, each: &mut dyn FnMut(&'h [u8])) {
        self.as_slice().get_all(name, each);
    }
}

impl<H: Headers + ?Sized> Headers for &H {
    fn get_all<'h>(&'h self, name: &str, each: &mut dyn FnMut(&'h [u8])) {
        (**self).get_all(name, each);
    }
}

/// A header that may be sent once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Single<'h> {
    Absent,
    /// Sent once, or several times with one value; white space around it removed.
    One(&'h [u8]),
    /// Sent with different values: whoever reads only one of them may read another one than we do.
    Conflicting,
}

/// Looks up a header that may be sent once.
pub(crate) fn single<'h, H: Headers + ?Sized>(headers: &'h H, name: &str) -> Single<'h> {
    let mut found = Single::Absent;
    headers.get_all(name, &mut |value| {
        let value = trim(value);
        found = match found {
            Single::Absent => Single::One(value),
            Single::One(first) if first == value => found,
            Single::One(_) | Single::Conflicting => Single::Conflicting,
        };
    });
    found
}

/// Whether a header was sent at all.
pub(super) fn is_present<H: Headers + ?Sized>(headers: &H, name: &str) -> bool {
    !matches!(single(headers, name), Single::Absent)
}

/// Removes the white space that HTTP allows around a value: spaces and tabs (R-166).
pub(super) fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// The value as text, if it is of the characters that R-166 allows: visible ASCII, space, tab.
pub(super) fn plain(value: &[u8]) -> Option<&str> {
    let allowed = value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    if allowed { core::str::from_utf8(value).ok() } else { None }
}
