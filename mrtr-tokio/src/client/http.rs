//! Streamable HTTP: one POST a message, answered with one JSON message or with a stream of events.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use mrtr_core::{
    Limits,
    framing::EventStreamDecoder,
    http::{BodyPlan, Judgement, ParamHeaders, Sent, judge, request_headers},
    jsonrpc::admit,
};

use super::{Options, WireError};

/// An address that no client can be made for.
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
    #[error("the system's TLS roots cannot be used: {0}")]
    Roots(String),
}

pub(super) struct Http {
    uri: Uri,
    headers: HeaderMap,
    limits: Limits,
    client: Pool,
}

/// TLS takes the system's roots, which take time to read: only where they are needed.
enum Pool {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl Http {
    pub(super) fn new(url: &str, options: &Options) -> Result<Self, UrlError> {
        let uri: Uri = url.parse().map_err(|_| UrlError::Malformed(url.into()))?;
        let authority = uri.authority().filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or_else(|| UrlError::Scheme(url.into()))?;
        if authority.as_str().contains('@') {
            return Err(UrlError::Credentials);
        }
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(options.connect_timeout));
        connector.enforce_http(false);
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new());
        let client = match uri.scheme_str() {
            Some("http") => Pool::Plain(builder.build(connector)),
            Some("https") => {
                let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
                let config = rustls::ClientConfig::builder_with_provider(provider)
                    .with_safe_default_protocol_versions()
                    .map_err(|error| UrlError::Roots(error.to_string()))?
                    .with_native_roots()
                    .map_err(|error| UrlError::Roots(error.to_string()))?
                    .with_no_client_auth();
                let https = HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http1();
                Pool::Tls(builder.build(https.wrap_connector(connector)))
            }
            _ => return Err(UrlError::Scheme(url.into())),
        };
        let headers = options.headers.iter().cloned().collect();
        Ok(Self { uri, headers, limits: options.limits.clone(), client })
    }

    /// Sends a request and reads its reply up to the point where messages come.
    pub(super) async fn open(
        &self,
        message: Vec<u8>,
        annotations: &ParamHeaders,
    ) -> Result<Replies, WireError> {
        let request = self.request(message, annotations)?;
        let sent = match &self.client {
            Pool::Plain(client) => client.request(request).await,
            Pool::Tls(client) => client.request(request).await,
        };
        let response = sent.map_err(|error| {
            if error.is_connect() { WireError::Connect(error.into()) } else { WireError::Broken }
        })?;
        let limit = self.limits.message_bytes;
        let kind = response.headers().get(http::header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        match BodyPlan::from_content_type(kind) {
            BodyPlan::Events if response.status().is_success() => Ok(Replies::Events {
                body: response.into_body(),
                decoder: EventStreamDecoder::new(limit),
                limit,
            }),
            BodyPlan::Events | BodyPlan::Whole => self.whole(response).await,
        }
    }

    fn request(
        &self,
        message: Vec<u8>,
        annotations: &ParamHeaders,
    ) -> Result<Request<Full<Bytes>>, WireError> {
        let mut headers = self.headers.clone();
        // What the core has written, it can read.
        let admitted =
            admit(&message, &self.limits).map_err(|refused| WireError::Connect(refused.reason.into()))?;
        for (name, value) in request_headers(&admitted, annotations)?.iter() {
            let name = HeaderName::try_from(name).map_err(|error| WireError::Connect(error.into()))?;
            let value = HeaderValue::try_from(value).map_err(|error| WireError::Connect(error.into()))?;
            headers.insert(name, value);
        }
        let mut request = Request::new(Full::new(Bytes::from(message)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        Ok(request)
    }

    async fn whole(&self, response: Response<Incoming>) -> Result<Replies, WireError> {
        let (head, mut body) = response.into_parts();
        let limit = self.limits.message_bytes;
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| WireError::Broken)?.into_data() else { continue };
            if data.len() > limit - bytes.len() {
                return Err(WireError::TooLarge { limit });
            }
            bytes.extend_from_slice(&data);
        }
        let kind = head.headers.get(http::header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        match judge(Sent::Request, head.status.as_u16(), kind, &bytes, &self.limits) {
            Judgement::Message(_) => Ok(Replies::Whole(Some(bytes))),
            Judgement::Failed(error) | Judgement::MaybeLegacy(error) => Err(error.into()),
            Judgement::Accepted | _ => Err(WireError::Broken),
        }
    }
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
            Self::Whole(message) => message.take().ok_or(WireError::Broken),
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
                let frame = body.frame().await.ok_or(WireError::Broken)?;
                if let Ok(data) = frame.map_err(|_| WireError::Broken)?.into_data() {
                    decoder.push(&data);
                }
            },
        }
    }
}
