//! Who says what stands in `Authorization`.

use std::{fmt, future::Future, pin::Pin};

use http::HeaderValue;

/// What [`Authorize`] gives: a header value, or nothing.
pub type Credentials<'a> = Pin<
    Box<
        dyn Future<Output = Result<Option<HeaderValue>, Box<dyn std::error::Error + Send + Sync>>>
            + Send
            + 'a,
    >,
>;

/// Gives the credentials of each HTTP request: the hook for whoever gets and renews tokens.
///
/// What it gives goes to the origin of the client's url and nowhere else: redirects to other origins are not
/// followed, and proxies do not see it when the server is called over TLS. It is never logged.
pub trait Authorize: Send + Sync {
    /// The value of `Authorization` for the next request. `refused` is there if the server has just refused one: then
    /// what is given is tried once more, unless it is the same again.
    fn credentials<'a>(&'a self, refused: Option<&'a Challenge>) -> Credentials<'a>;
}

/// How a server refused a request for its credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// 401, or 403 with a challenge.
    pub status: u16,
    /// `WWW-Authenticate`, as far as it is text.
    pub www_authenticate: Option<String>,
}

/// The same token every time. `Debug` does not show it.
#[derive(Clone)]
pub struct Bearer(HeaderValue);

impl Bearer {
    /// For a token.
    ///
    /// # Errors
    ///
    /// If it cannot stand in a header.
    pub fn new(token: &str) -> Result<Self, NotAToken> {
        let fits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let value = fits.then(|| HeaderValue::try_from(format!("Bearer {token}")).ok()).flatten();
        let mut value = value.ok_or(NotAToken)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

/// A text that cannot be a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token is empty, or has characters in it that no header can carry")]
#[non_exhaustive]
pub struct NotAToken;

impl Authorize for Bearer {
    fn credentials<'a>(&'a self, _: Option<&'a Challenge>) -> Credentials<'a> {
        Box::pin(std::future::ready(Ok(Some(self.0.clone()))))
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(…)")
    }
}
