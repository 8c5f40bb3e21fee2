//! Streamable HTTP: one POST a message, answered with one JSON message or with a stream of events.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use mrtr_core::{
    Limits,
    framing::EventStreamDecoder,
    http::{BodyPlan, Judgement, ParamHeaders, Sent, judge, request_headers},
    jsonrpc::admit,
};

use super::{
    Options, WireError,
    authorize::{Authorize, Challenge},
    connect::Connector,
    redirect::{Redirect, redirect},
};

/// An address that no client can be made for, or not with these options.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// Not an address.
    #[error("{0:?} is not a url")]
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
    limits: Limits,
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
        let (limits, authorize) = (options.limits.clone(), options.authorize.clone());
        Ok(Self { uri, headers, authorize, heads: options.heads.clone(), limits, client })
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

    /// Sends a request and reads its reply up to the point where messages come.
    pub(super) async fn open(
        &self,
        message: Vec<u8>,
        annotations: &ParamHeaders,
    ) -> Result<Replies, WireError> {
        let mut headers = HeaderMap::new();
        // What the core has written, it can read.
        let admitted =
            admit(&message, &self.limits).map_err(|refused| WireError::Connect(refused.reason.into()))?;
        for (name, value) in request_headers(&admitted, annotations)?.iter() {
            let name = HeaderName::try_from(name).map_err(|error| WireError::Connect(error.into()))?;
            let value = HeaderValue::try_from(value).map_err(|error| WireError::Connect(error.into()))?;
            headers.insert(name, value);
        }
        let response = self.send(Method::POST, headers, message.into()).await?;
        let limit = self.limits.message_bytes;
        let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        match BodyPlan::from_content_type(kind) {
            BodyPlan::Events if response.status().is_success() => Ok(Replies::Events {
                body: response.into_body(),
                decoder: EventStreamDecoder::new(limit),
                limit,
            }),
            BodyPlan::Events | BodyPlan::Whole => self.whole(response).await,
        }
    }

    /// Sends something to the server's origin, and only there; redirects within it are followed, and credentials that
    /// were refused are asked for once more. Gives the head of the response.
    async fn send(
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

    async fn whole(&self, response: Response<Incoming>) -> Result<Replies, WireError> {
        let (head, mut body) = response.into_parts();
        let limit = self.limits.message_bytes;
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(WireError::broken)?.into_data() else { continue };
            if data.len() > limit - bytes.len() {
                return Err(WireError::TooLarge { limit });
            }
            bytes.extend_from_slice(&data);
        }
        let kind = head.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        match judge(Sent::Request, head.status.as_u16(), kind, &bytes, &self.limits) {
            Judgement::Message(_) => Ok(Replies::Whole(Some(bytes))),
            Judgement::Failed(error) | Judgement::MaybeLegacy(error) => Err(error.into()),
            Judgement::Accepted | _ => Err(WireError::ENDED),
        }
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

pub(super) enum Replies {
    Whole(Option<Vec<u8>>),
    Events { body: Incoming, decoder: EventStreamDecoder, limit: usize },
}

impl Replies {
    pub(super) async fn next(&mut self) -> Result<Vec<u8>, WireError> {
        match self {
            Self::Whole(message) => message.take().ok_or(WireError::ENDED),
            Self::Events { body, decoder, limit } => loop {
                while let Some(event) = decoder.next() {
                    match event {
                        Ok(event) if event.is_message() && !event.data.is_empty() => {
                            return Ok(event.data.to_vec());
                        }
                        Ok(_) => {}
                        Err(_) => return Err(WireError::TooLarge { limit: *limit }),
                    }
                }
                let frame = body.frame().await.ok_or(WireError::ENDED)?;
                if let Ok(data) = frame.map_err(WireError::broken)?.into_data() {
                    decoder.push(&data);
                }
            },
        }
    }
}
