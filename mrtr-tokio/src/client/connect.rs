//! How a connection is made: straight or through a proxy, in plain text or with TLS.

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::{
        legacy::connect::{Connected, Connection, HttpConnector, proxy::Tunnel},
        proxy::matcher::Matcher,
    },
    rt::TokioIo,
};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject as _};
use tokio::net::TcpStream;
use tower_service::Service;

use super::{Options, UrlError};

/// Through which proxy requests go. `Debug` shows no password.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Proxy {
    /// As the environment says when the client is made: `HTTPS_PROXY` or `HTTP_PROXY`, else `ALL_PROXY`, unless
    /// `NO_PROXY` names the host; each also in lower case. A server on this machine (`localhost`, a loopback address)
    /// is always called directly.
    #[default]
    Environment,
    /// Straight to the server, whatever the environment says.
    Direct,
    /// Through this one, `http://proxy.example:3128`, with `user:password@` before the host if it wants that.
    Url(String),
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str("Environment"),
            Self::Direct => f.write_str("Direct"),
            Self::Url(_) => f.write_str("Url(…)"),
        }
    }
}

/// Who is believed when a server's certificate is checked.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Roots {
    /// The system's roots. `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
    #[default]
    System,
    /// The system's, and these certificates (PEM).
    SystemAnd(Vec<u8>),
    /// These certificates (PEM), and nobody else.
    Only(Vec<u8>),
}

/// Makes connections to one origin.
#[derive(Clone)]
pub(super) struct Connector {
    inner: HttpsConnector<Dial>,
    within: Duration,
}

impl Connector {
    /// With what is to be sent to a proxy in each request, if there is something.
    pub(super) fn new(uri: &Uri, options: &Options) -> Result<(Self, Option<HeaderValue>), UrlError> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(options.connect_timeout));
        tcp.enforce_http(false);
        let encrypted = uri.scheme_str() == Some("https");
        let via = Via::find(uri, &options.proxy)?;
        let mut for_each = None;
        let route = match via {
            None => Route::Direct,
            Some(via) if encrypted => Route::Tunnel(via),
            Some(via) => {
                for_each.clone_from(&via.authorization);
                Route::Forward(via)
            }
        };
        let roots = if encrypted { roots(&options.roots)? } else { RootCertStore::empty() };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| UrlError::Roots(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let inner = HttpsConnector::from((Dial { tcp, route: Arc::new(route) }, tls));
        Ok((Self { inner, within: options.connect_timeout }, for_each))
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<Link>;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Failure>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (connecting, within) = (self.inner.call(to), self.within);
        Box::pin(async move {
            match tokio::time::timeout(within, connecting).await {
                Ok(connected) => connected,
                Err(_) => {
                    let text = format!("not connected within {within:?} (Options::connect_timeout)");
                    Err(io::Error::new(io::ErrorKind::TimedOut, text).into())
                }
            }
        })
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A proxy.
struct Via {
    uri: Uri,
    authorization: Option<HeaderValue>,
}

impl Via {
    fn find(uri: &Uri, proxy: &Proxy) -> Result<Option<Self>, UrlError> {
        let matcher = match proxy {
            Proxy::Direct => return Ok(None),
            Proxy::Environment if is_here(uri.host().unwrap_or_default()) => return Ok(None),
            Proxy::Environment => Matcher::from_env(),
            Proxy::Url(url) => Matcher::builder().all(url.as_str()).build(),
        };
        let Some(found) = matcher.intercept(uri) else {
            return match proxy {
                Proxy::Url(_) => Err(UrlError::Proxy("it is not a url")),
                Proxy::Environment | Proxy::Direct => Ok(None),
            };
        };
        if found.uri().scheme_str() != Some("http") {
            return Err(UrlError::Proxy("it is not an http proxy"));
        }
        Ok(Some(Self { uri: found.uri().clone(), authorization: found.basic_auth().cloned() }))
    }
}

/// Whether that is the machine this runs on.
pub(super) fn is_here(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let name = bare.strip_suffix('.').unwrap_or(bare);
    bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        || name.eq_ignore_ascii_case("localhost")
        || name.rsplit_once('.').is_some_and(|(_, last)| last.eq_ignore_ascii_case("localhost"))
}

fn roots(roots: &Roots) -> Result<RootCertStore, UrlError> {
    let mut store = RootCertStore::empty();
    if !matches!(roots, Roots::Only(_)) {
        let system = rustls_native_certs::load_native_certs();
        let found = system.certs.len();
        // Some system's store has one that no rule allows; the others are good.
        let (added, _) = store.add_parsable_certificates(system.certs);
        if added == 0 && matches!(roots, Roots::System) {
            let why = system.errors.first().map_or_else(|| format!("{found} found"), ToString::to_string);
            return Err(UrlError::Roots(why));
        }
    }
    if let Roots::SystemAnd(pem) | Roots::Only(pem) = roots {
        let mut count = 0;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| UrlError::Roots(error.to_string()))?;
            store.add(certificate).map_err(|error| UrlError::Roots(error.to_string()))?;
            count += 1;
        }
        if count == 0 {
            return Err(UrlError::Roots(String::from("there is no certificate in what was given")));
        }
    }
    Ok(store)
}

enum Route {
    Direct,
    /// The proxy passes bytes on.
    Tunnel(Via),
    /// The proxy reads requests and makes them itself.
    Forward(Via),
}

/// Opens the connection that bytes go over.
#[derive(Clone)]
struct Dial {
    tcp: HttpConnector,
    route: Arc<Route>,
}

impl Service<Uri> for Dial {
    type Response = Link;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Link, Failure>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let link = |stream, forwarded| Link { stream, forwarded };
        match &*self.route {
            Route::Direct => {
                let connecting = self.tcp.call(to);
                Box::pin(async move { Ok(link(connecting.await?, false)) })
            }
            Route::Forward(via) => {
                let connecting = self.tcp.call(via.uri.clone());
                Box::pin(async move { Ok(link(connecting.await.map_err(through_proxy)?, true)) })
            }
            Route::Tunnel(via) => {
                let mut tunnel = Tunnel::new(via.uri.clone(), self.tcp.clone());
                if let Some(authorization) = &via.authorization {
                    tunnel = tunnel.with_auth(authorization.clone());
                }
                let connecting = tunnel.call(to);
                Box::pin(async move { Ok(link(connecting.await.map_err(through_proxy)?, false)) })
            }
        }
    }
}

/// The cause, with a word on where it happened.
fn through_proxy(error: impl std::error::Error + 'static) -> io::Error {
    let cause = super::wire::root(&error);
    io::Error::other(format!("the proxy: {cause}"))
}

/// An open connection.
pub(super) struct Link {
    stream: TokioIo<TcpStream>,
    /// To a proxy that wants the whole url in each request.
    forwarded: bool,
}

impl Connection for Link {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.forwarded)
    }
}

impl Read for Link {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl Write for Link {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_for_others() {
        for host in ["localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "[::1]", "a.localhost"] {
            assert!(is_here(host), "{host}");
        }
        for host in ["localhost.example", "128.0.0.1", "[::2]", "notlocalhost", ""] {
            assert!(!is_here(host), "{host}");
        }
        let via =
            |uri: &'static str, proxy: &str| Via::find(&Uri::from_static(uri), &Proxy::Url(proxy.into()));
        let found = via("https://a.example/", "http://ada:word@p.example:3128").unwrap().unwrap();
        assert_eq!(found.uri, "http://p.example:3128");
        assert_eq!(found.authorization.unwrap(), "Basic YWRhOndvcmQ=");
        for wrong in ["socks5://p.example", "https://p.example", "", "a b"] {
            assert!(matches!(via("https://a.example/", wrong), Err(UrlError::Proxy(_))), "{wrong}");
        }
        assert!(!format!("{:?}", Proxy::Url("http://ada:word@p.example".into())).contains("word"));
    }

    #[test]
    fn roots_that_are_none_are_said_to_be_none() {
        for pem in ["", "text", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert!(matches!(roots(&Roots::Only(pem.into())), Err(UrlError::Roots(_))), "{pem}");
        }
    }
}
