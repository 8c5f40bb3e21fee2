//! HTTPS, proxies, redirects and credentials, against servers on loopback.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::Engine as _;
use http::HeaderValue;
use mrtr_core::{Limits, client::NoAnswers, http::HttpErrorKind};
use mrtr_tokio::client::{
    Authorize, Bearer, CallError, Challenge, Client, Credentials, Options, Proxy, Roots, WireError,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use crate::support::{Running, client_config, service, text};
use mrtr_tokio::server::{Anonymous, Endpoint};

/// A certificate for this name, made now: the acceptor and the root to believe in.
fn certificate(name: &str) -> (TlsAcceptor, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed([String::from(name)]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(chain, key).unwrap();
    let text = base64::engine::general_purpose::STANDARD.encode(made.cert.der());
    let pem = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
    (TlsAcceptor::from(Arc::new(config)), pem.into_bytes())
}

/// TLS in front of a plain server.
async fn wrapped(acceptor: TlsAcceptor, to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut theirs) = acceptor.accept(stream).await else { return };
                let mut ours = TcpStream::connect(to).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut theirs, &mut ours).await;
            });
        }
    });
    address
}

/// A proxy that leads everywhere to one server, and what was asked of it.
async fn proxy(to: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    assert!(stream.read_line(&mut head).await.unwrap() > 0);
                }
                let tunnel = head.starts_with("CONNECT ");
                let welcome = head.contains("Basic YWRhOndvcmQ=");
                seen.lock().unwrap().push(head.clone());
                if tunnel && !welcome {
                    stream.write_all(b"HTTP/1.1 407 No\r\n\r\n").await.unwrap();
                    return;
                }
                let mut server = TcpStream::connect(to).await.unwrap();
                if tunnel {
                    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                } else {
                    // As a proxy does: the path alone.
                    let head = head.replacen("http://mcp.example/mcp", "/mcp", 1);
                    server.write_all(head.replace("mcp.example", "localhost").as_bytes()).await.unwrap();
                }
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
            });
        }
    });
    (address, asked)
}

async fn running() -> Running {
    let (service, _seen) = service(Limits::default());
    Running::start(Endpoint::new(service, Anonymous::new()), Default::default()).await
}

async fn echo(url: &str, options: Options) -> Result<String, CallError> {
    let client = Client::http(url, client_config(), options).unwrap();
    client.call_tool("echo", r#"{"text":"hi"}"#, &NoAnswers).await.map(|reply| text(&reply))
}

fn with(change: impl FnOnce(&mut Options)) -> Options {
    let mut options = Options::default();
    change(&mut options);
    options
}

#[tokio::test]
async fn a_certificate_is_believed_only_if_its_root_is() {
    let plain = running().await;
    let (acceptor, root) = certificate("localhost");
    let address = wrapped(acceptor, plain.address).await;
    let url = format!("https://localhost:{}/mcp", address.port());
    let trusting = || with(|options| options.roots = Roots::Only(root.clone()));
    assert_eq!(echo(&url, trusting()).await.unwrap(), "hi");
    assert_eq!(
        echo(&url, with(|options| options.roots = Roots::SystemAnd(root.clone()))).await.unwrap(),
        "hi"
    );

    // Nobody vouches for it.
    let (_, other) = certificate("localhost");
    let failed = echo(&url, with(|options| options.roots = Roots::Only(other))).await.unwrap_err();
    let CallError::Wire(WireError::Connect(_)) = &failed else { panic!("{failed}") };
    assert!(failed.to_string().contains("certificate"), "{failed}");
    // It is for another name.
    let failed = echo(&format!("https://{address}/mcp"), trusting()).await.unwrap_err();
    assert!(failed.to_string().contains("certificate"), "{failed}");
    // No TLS at all there.
    let failed =
        echo(&format!("https://localhost:{}/mcp", plain.address.port()), trusting()).await.unwrap_err();
    assert!(matches!(failed, CallError::Wire(WireError::Connect(_))), "{failed}");
}

#[tokio::test]
async fn https_goes_through_a_tunnel_of_the_proxy() {
    let (url, heads) = scripted(vec![done()]).await;
    let plain = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().parse().unwrap();
    let (acceptor, root) = certificate("mcp.example");
    let secure = wrapped(acceptor, plain).await;
    let (proxy, asked) = proxy(secure).await;
    let through = |proxy: String| {
        with(|options| {
            options.roots = Roots::Only(root.clone());
            options.proxy = Proxy::Url(proxy);
            options.authorize = Some(Arc::new(Bearer::new("secret").unwrap()));
        })
    };
    let answer = echo("https://mcp.example/mcp", through(format!("http://ada:word@{proxy}"))).await;
    assert_eq!(answer.unwrap(), "done");
    let head = heads.lock().unwrap().remove(0).to_ascii_lowercase();
    assert!(head.contains("authorization: bearer secret") && !head.contains("proxy-"), "{head}");
    let head = asked.lock().unwrap().remove(0);
    assert!(head.starts_with("CONNECT mcp.example:443 HTTP/1.1\r\n"), "{head}");
    // What is for the server is not for the proxy.
    assert!(!head.contains("secret"), "{head}");
    let failed = echo("https://mcp.example/mcp", through(format!("http://{proxy}"))).await.unwrap_err();
    assert!(failed.to_string().contains("proxy"), "{failed}");
}

#[tokio::test]
async fn plain_http_is_handed_to_the_proxy() {
    let plain = running().await;
    let (proxy, asked) = proxy(plain.address).await;
    let options = with(|options| options.proxy = Proxy::Url(format!("http://ada:word@{proxy}")));
    assert_eq!(echo("http://mcp.example/mcp", options).await.unwrap(), "hi");
    let head = asked.lock().unwrap().remove(0).to_ascii_lowercase();
    assert!(head.starts_with("post http://mcp.example/mcp http/1.1\r\n"), "{head}");
    assert!(head.contains("proxy-authorization: basic ywrhondvcmq="), "{head}");
}

/// A server that answers each connection with the next of these, and what it was sent.
async fn scripted(answers: Vec<String>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        for answer in answers {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                stream.read_line(&mut head).await.unwrap();
            }
            seen.lock().unwrap().push(head);
            stream.write_all(answer.as_bytes()).await.unwrap();
            let _ = stream.shutdown().await;
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    (url, heads)
}

const DONE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}}"#;

fn done() -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{DONE}",
        DONE.len()
    )
}

fn moved(to: &str) -> String {
    format!("HTTP/1.1 307 Moved\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
}

#[tokio::test]
async fn redirects_are_followed_within_the_origin_alone() {
    let token = || with(|options| options.authorize = Some(Arc::new(Bearer::new("secret").unwrap())));
    let (url, heads) = scripted(vec![moved("/mcp/"), done()]).await;
    assert_eq!(echo(&url, token()).await.unwrap(), "done");
    let heads = heads.lock().unwrap().clone();
    assert!(heads[0].starts_with("POST /mcp HTTP") && heads[1].starts_with("POST /mcp/ HTTP"));
    // The same request, its headers included.
    let rest = |head: &str| head.split_once("\r\n").unwrap().1.to_owned();
    assert_eq!(rest(&heads[0]), rest(&heads[1]));
    assert!(heads[0].to_ascii_lowercase().contains("mcp-name: echo"));

    let (elsewhere, stolen) = scripted(vec![done()]).await;
    let (url, _) = scripted(vec![moved(&elsewhere)]).await;
    let failed = echo(&url, token()).await.unwrap_err();
    let CallError::Wire(WireError::Redirect { to }) = &failed else { panic!("{failed}") };
    assert_eq!(*to, elsewhere.strip_suffix("/mcp").unwrap());
    assert!(stolen.lock().unwrap().is_empty());
    // Not for ever.
    let (url, heads) = scripted(vec![moved("/mcp"); 9]).await;
    let failed = echo(&url, token()).await.unwrap_err();
    let CallError::Wire(WireError::Http(error)) = &failed else { panic!("{failed}") };
    assert_eq!((error.kind, heads.lock().unwrap().len()), (HttpErrorKind::Redirect, 4));
}

/// Gives one token after the other.
#[derive(Default)]
struct Renewing(Mutex<Vec<Option<Challenge>>>);

impl Authorize for Renewing {
    fn credentials<'a>(&'a self, refused: Option<&'a Challenge>) -> Credentials<'a> {
        let mut asked = self.0.lock().unwrap();
        asked.push(refused.cloned());
        let value = format!("Bearer token-{}", asked.len());
        Box::pin(async move { Ok(Some(HeaderValue::try_from(value)?)) })
    }
}

#[tokio::test]
async fn refused_credentials_are_renewed_once() {
    let refused =
        "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer error=\"invalid_token\"\r\nContent-Length: 0\r\n\r\n";
    let (url, heads) = scripted(vec![refused.into(), done()]).await;
    let hook = Arc::new(Renewing::default());
    let options = with(|options| options.authorize = Some(hook.clone()));
    assert_eq!(echo(&url, options).await.unwrap(), "done");
    let heads: Vec<String> = heads.lock().unwrap().iter().map(|head| head.to_ascii_lowercase()).collect();
    assert!(heads[0].contains("authorization: bearer token-1\r\n"), "{heads:?}");
    assert!(heads[1].contains("authorization: bearer token-2\r\n"), "{heads:?}");
    let asked = hook.0.lock().unwrap().clone();
    let challenge = asked[1].clone().unwrap();
    assert!(asked[0].is_none() && challenge.status == 401);
    assert_eq!(challenge.www_authenticate.unwrap(), "Bearer error=\"invalid_token\"");

    // Refused again, or the same again: it is over.
    for (hook, sent) in [
        (Arc::new(Renewing::default()) as Arc<dyn Authorize>, 2),
        (Arc::new(Bearer::new("token").unwrap()), 1),
    ] {
        let (url, heads) = scripted(vec![refused.into(); 3]).await;
        let failed = echo(&url, with(|options| options.authorize = Some(hook))).await.unwrap_err();
        let CallError::Wire(WireError::Http(error)) = &failed else { panic!("{failed}") };
        assert_eq!((error.status, heads.lock().unwrap().len()), (401, sent));
    }
    for token in ["", "a b", "a\nb", "ü"] {
        assert!(Bearer::new(token).is_err(), "{token:?}");
    }
    assert!(!format!("{:?}", Bearer::new("secret").unwrap()).contains("secret"));
}

#[tokio::test]
async fn connecting_has_an_end() {
    // It accepts, and never says a word of TLS.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/mcp", listener.local_addr().unwrap().port());
    let (_, root) = certificate("localhost");
    let options = with(|options| {
        options.roots = Roots::Only(root);
        options.connect_timeout = Duration::from_millis(100);
    });
    let failed = echo(&url, options).await.unwrap_err();
    assert!(failed.to_string().contains("Options::connect_timeout"), "{failed}");
}
