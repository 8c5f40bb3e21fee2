//! Streamable HTTP: one POST a message, answered with one JSON message or with a stream of events.

use std::{fmt, sync::Arc};

use super::{
    Options, WireError,
    authorize::{Authorize, Challenge},
    connect::Connector,
    redirect::{Redirect, redirect},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};

/// An address that no client can be made for, or not with these options.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// Not an address.
    #[error("{0:?} is not a url, as http://127.0.0.1:3000/mcp is")]
    Malformed(String),
    /// Not `http` or `https`, or without a host.
    #[error("{0:?} is not an http or https url with a host")]
    Scheme(String),
    /// Names and passwords do not belong into an address: they end up in logs. Use a header.
    #[error("the url has a user name in it: send credentials as a header")]
    Credentials,
    /// No roots to check the server's certificate with.
    #[error("the TLS roots cannot be used: {0}")]
    Roots(String),
    /// The proxy cannot be used.
    #[error("the proxy cannot be used: {0}")]
    Proxy(&'static str),
}

/// The head of an HTTP message, as [`Options::heads`] hears it. Values that are credentials are marked as
/// [sensitive](HeaderValue::is_sensitive).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Head<'a> {
    /// A request goes out, with `Host` and `Content-Length` added to this.
    Request {
        /// Its method.
        method: &'a Method,
        /// Where it goes.
        uri: &'a Uri,
        /// Its headers.
        headers: &'a HeaderMap,
    },
    /// A response begins.
    Response {
        /// Its status.
        status: StatusCode,
        /// Its headers.
        headers: &'a HeaderMap,
    },
}

/// Hears [`Head`]s. It must not block for long.
pub type OnHead = Arc<dyn Fn(Head<'_>) + Send + Sync>;

/// Redirects that are followed for one request, each within the server's origin.
const REDIRECTS: usize = 3;

pub(super) struct Http {
    uri: Uri,
    headers: HeaderMap,
    authorize: Option<Arc<dyn Authorize>>,
    heads: Option<OnHead>,
    client: Client<Connector, Full<Bytes>>,
}

impl Http {
    pub(super) fn new(url: &str, options: &Options) -> Result<Self, UrlError> {
        let uri: Uri = url.parse().map_err(|_| UrlError::Malformed(url.into()))?;
        let authority = uri.authority().filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or_else(|| UrlError::Scheme(url.into()))?;
        if authority.as_str().contains('@') {
            return Err(UrlError::Credentials);
        }
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(UrlError::Scheme(url.into()));
        }
        let (connector, for_the_proxy) = Connector::new(&uri, options)?;
        let mut headers: HeaderMap = options.headers.iter().cloned().collect();
        if let Some(mut value) = for_the_proxy {
            value.set_sensitive(true);
            headers.insert(header::PROXY_AUTHORIZATION, value);
        }
        let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        let (authorize, heads) = (options.authorize.clone(), options.heads.clone());
        Ok(Self { uri, headers, authorize, heads, client })
    }

    /// The address in one spelling: what saved calls are tied to.
    pub(super) fn server(&self) -> String {
        let uri = &self.uri;
        let (scheme, host) = (uri.scheme_str().unwrap_or_default(), uri.host().unwrap_or_default());
        let default = if scheme == "https" { 443 } else { 80 };
        let port = uri.port_u16().filter(|port| *port != default);
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        format!("{scheme}://{}{port}{path}", host.to_ascii_lowercase())
    }

    /// Sends something to the server's origin, and only there; redirects within it are followed, and credentials that
    /// were refused are asked for once more. Gives the head of the response.
    pub(super) async fn send(
        &self,
        method: Method,
        with: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, WireError> {
        let mut headers = self.headers.clone();
        headers.extend(with);
        let mut authorization = self.credentials(None).await?;
        let (mut uri, mut redirects, mut again) = (self.uri.clone(), 0, true);
        loop {
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = headers.clone();
            if let Some(value) = &authorization {
                request.headers_mut().insert(header::AUTHORIZATION, value.clone());
            }
            if let Some(heads) = &self.heads {
                heads(Head::Request { method: &method, uri: &uri, headers: request.headers() });
            }
            let response = self.client.request(request).await.map_err(|error| {
                if error.is_connect() { WireError::Connect(error.into()) } else { WireError::broken(error) }
            })?;
            let status = response.status();
            if let Some(heads) = &self.heads {
                heads(Head::Response { status, headers: response.headers() });
            }
            if matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
                let location = response.headers().get(header::LOCATION).map(HeaderValue::as_bytes);
                match redirect(&uri, location) {
                    Redirect::Within(to) if redirects < REDIRECTS => {
                        redirects += 1;
                        uri = to;
                        continue;
                    }
                    Redirect::Elsewhere(to) => return Err(WireError::Redirect { to }),
                    Redirect::Within(_) | Redirect::Unreadable => return Ok(response),
                }
            }
            if std::mem::take(&mut again)
                && let Some(challenge) = challenge(&response)
            {
                let other = self.credentials(Some(&challenge)).await?;
                if other.is_some() && other != authorization {
                    authorization = other;
                    continue;
                }
            }
            return Ok(response);
        }
    }

    async fn credentials(&self, refused: Option<&Challenge>) -> Result<Option<HeaderValue>, WireError> {
        let Some(hook) = &self.authorize else { return Ok(None) };
        let mut value = hook.credentials(refused).await.map_err(WireError::Credentials)?;
        if let Some(value) = &mut value {
            value.set_sensitive(true);
        }
        Ok(value)
    }
}

/// What a response says that wants other credentials.
fn challenge<T>(response: &Response<T>) -> Option<Challenge> {
    let asked = response.headers().get(header::WWW_AUTHENTICATE);
    let www_authenticate = asked.and_then(|value| value.to_str().ok()).map(String::from);
    let status = response.status();
    let wanted = status == StatusCode::UNAUTHORIZED || (status == StatusCode::FORBIDDEN && asked.is_some());
    wanted.then(|| Challenge { status: status.as_u16(), www_authenticate })
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("uri", &self.uri).finish_non_exhaustive()
    }
}
