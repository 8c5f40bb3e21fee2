//! Who sends a request: what the transport has verified, never what the message says (G-10).

use std::{
    fmt,
    marker::PhantomData,
    sync::atomic::{AtomicBool, Ordering},
};

use http::request::Parts;

/// Who sends a request.
///
/// `Debug` does not show who.
#[derive(Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)]
pub enum Identity {
    /// Nobody in particular: a state that is sealed for nobody can be used by anybody.
    Anonymous,
    /// The bytes name one principal and no other, for ever: issuer and subject of a token, say.
    Authenticated(Box<[u8]>),
}

impl Identity {
    /// The principal with this name.
    #[must_use]
    pub fn authenticated(name: impl Into<Vec<u8>>) -> Self {
        Self::Authenticated(name.into().into_boxed_slice())
    }

    pub(crate) fn principal(&self) -> mrtr_core::seal::Principal<'_> {
        match self {
            Self::Anonymous => mrtr_core::seal::Principal::Anonymous,
            Self::Authenticated(name) => mrtr_core::seal::Principal::Authenticated(name),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "Anonymous",
            Self::Authenticated(_) => "Authenticated(..)",
        })
    }
}

/// Why nobody can be named: the server is not set up as it should be. The caller gets a 500 that says nothing
/// more, the log gets this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Misconfigured(pub String);

/// Tells who sends a request. A required argument of every endpoint, so that nobody serves the anonymous by
/// oversight.
///
/// Verifying credentials, and refusing those that are wrong with 401 and `WWW-Authenticate`, is the work of a
/// layer before the endpoint. This only finds what the layer has left.
pub trait Principals: Send + Sync + 'static {
    /// Who sends this request.
    ///
    /// # Errors
    ///
    /// If the request cannot be trusted to be anybody's, which is the server's fault.
    fn identify(&self, head: &Parts) -> Result<Identity, Misconfigured>;
}

impl<F> Principals for F
where
    F: Fn(&Parts) -> Result<Identity, Misconfigured> + Send + Sync + 'static,
{
    fn identify(&self, head: &Parts) -> Result<Identity, Misconfigured> {
        self(head)
    }
}

/// Everybody is nobody in particular.
///
/// A request that carries `Authorization` is refused all the same: its sender thinks that it is somebody, and
/// states that were sealed for nobody would then be open to everybody. Either an auth layer is missing, or the
/// header is meant for something before the server: then allow it by
/// [name](Self::with_authorization_ignored).
#[derive(Clone, Copy, Debug, Default)]
pub struct Anonymous {
    authorization_ignored: bool,
}

impl Anonymous {
    /// Nobody, and no credentials.
    #[must_use]
    pub const fn new() -> Self {
        Self { authorization_ignored: false }
    }

    /// Also takes requests with credentials, and does not look at them.
    #[must_use]
    pub const fn with_authorization_ignored() -> Self {
        Self { authorization_ignored: true }
    }
}

impl Principals for Anonymous {
    fn identify(&self, head: &Parts) -> Result<Identity, Misconfigured> {
        if !self.authorization_ignored && head.headers.contains_key(http::header::AUTHORIZATION) {
            return Err(Misconfigured(String::from(
                "a request carries `Authorization`, but this server takes everybody for anonymous: put an auth \
                 layer before it and name the principal, or allow it with Anonymous::with_authorization_ignored",
            )));
        }
        Ok(Identity::Anonymous)
    }
}

/// The principal is an extension of the request, where an auth layer has put it.
///
/// ```
/// # #[cfg(feature = "server")] {
/// use mrtr_tokio::server::FromExtension;
///
/// #[derive(Clone)]
/// struct User { issuer: String, subject: String }
///
/// let principals = FromExtension::new(|user: &User| format!("{}|{}", user.issuer, user.subject));
/// # }
/// ```
pub struct FromExtension<T, F> {
    name: F,
    extension: PhantomData<fn() -> T>,
}

impl<T, F, N> FromExtension<T, F>
where
    T: Send + Sync + 'static,
    F: Fn(&T) -> N + Send + Sync + 'static,
    N: Into<Vec<u8>>,
{
    /// `name` gives bytes that name one principal and no other, for ever.
    pub const fn new(name: F) -> Self {
        Self { name, extension: PhantomData }
    }
}

impl<T, F, N> Principals for FromExtension<T, F>
where
    T: Send + Sync + 'static,
    F: Fn(&T) -> N + Send + Sync + 'static,
    N: Into<Vec<u8>>,
{
    fn identify(&self, head: &Parts) -> Result<Identity, Misconfigured> {
        match head.extensions.get::<T>() {
            Some(extension) => Ok(Identity::authenticated((self.name)(extension))),
            None => Err(Misconfigured(format!(
                "a request without the extension {}: the auth layer is missing, or lets requests pass without it",
                std::any::type_name::<T>()
            ))),
        }
    }
}

impl<T, F> fmt::Debug for FromExtension<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FromExtension<{}>", std::any::type_name::<T>())
    }
}

/// Says once what is wrong with the set-up, at the level of errors; after that only to those who look for it.
#[derive(Debug, Default)]
pub(crate) struct Complaint(AtomicBool);

impl Complaint {
    pub(crate) fn log(&self, fault: &Misconfigured) {
        if self.0.swap(true, Ordering::Relaxed) {
            tracing::debug!(fault = %fault, "a request was refused for the server's configuration");
        } else {
            tracing::error!(fault = %fault, "a request was refused for the server's configuration");
        }
    }
}
