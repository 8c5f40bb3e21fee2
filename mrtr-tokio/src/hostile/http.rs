//! Over HTTP: each case at its own path.

use std::{
    future::Future,
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use mrtr_core::testkit::{self, Carrier, Case, End, Reply, Step};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
};

use super::Watch;

/// Bytes of a request that are taken: more than any client has a reason to send.
const REQUEST: usize = 16 << 20;

/// Serves every case at `/` and its name, until `shutdown` is ready; then connections are cut.
///
/// `watch` is told what the requests show the client to do wrong.
///
/// # Errors
///
/// If no further connection can be accepted.
pub async fn http(
    listener: TcpListener,
    watch: impl Watch,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let watch = Arc::new(watch);
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let stream = tokio::select! {
            () = &mut shutdown => return Ok(()),
            // Connections that have ended are let go.
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted?.0,
        };
        connections.spawn(connection(stream, Arc::clone(&watch)));
    }
}

async fn connection(stream: TcpStream, watch: Arc<impl Watch>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection without TCP_NODELAY");
    }
    let service = service_fn(|request| respond(request, Arc::clone(&watch)));
    if let Err(error) = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection ended early, as its case wants or because the client left");
    }
}

/// An error is no response at all: the connection is closed.
async fn respond(request: Request<Incoming>, watch: Arc<impl Watch>) -> io::Result<Response<Body>> {
    let name = request.uri().path().trim_start_matches('/');
    let Some(case) = testkit::case(name) else { return Ok(bare(StatusCode::NOT_FOUND)) };
    // Clients of older eras ask for a stream, and end their session.
    if request.method() != Method::POST {
        return Ok(bare(StatusCode::METHOD_NOT_ALLOWED));
    }
    let Some(message) = read(request.into_body()).await else {
        return Ok(bare(StatusCode::PAYLOAD_TOO_LARGE));
    };
    let reaction = case.receive(Carrier::Http, &message);
    if let Some(fault) = reaction.fault {
        watch.fault(case.name(), fault);
    }
    match reaction.reply {
        Some(reply) => carry(case, reply).await,
        None => Ok(bare(StatusCode::ACCEPTED)),
    }
}

async fn read(mut body: Incoming) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        if message.len() + data.len() > REQUEST {
            return None;
        }
        message.extend_from_slice(&data);
    }
    Some(message)
}

fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Whole(None));
    *response.status_mut() = status;
    response
}

async fn carry(case: &'static Case, mut reply: Reply) -> io::Result<Response<Body>> {
    tracing::debug!(case = case.name(), status = reply.status, steps = reply.steps.len(), "answers");
    if reply.steps.is_empty() {
        match reply.end {
            End::Silence => return std::future::pending().await,
            End::Cut => return Err(io::ErrorKind::ConnectionReset.into()),
            End::Whole | End::Endless(_) => {}
        }
    }
    let whole = match (reply.steps.as_mut_slice(), &reply.end) {
        ([], End::Whole) => Some(None),
        ([Step::Bytes(bytes)], End::Whole) => Some(Some(Bytes::from(std::mem::take(bytes)))),
        _ => None,
    };
    let (status, headers) = (reply.status, std::mem::take(&mut reply.headers));
    let body = whole
        .map_or_else(|| Body::Pieces(pieces(reply)), |whole| Body::Whole(whole.filter(|b| !b.is_empty())));
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).map_err(io::Error::other)?;
    for (name, value) in &headers {
        let value = HeaderValue::try_from(value.as_ref()).map_err(io::Error::other)?;
        response.headers_mut().insert(*name, value);
    }
    Ok(response)
}

/// The pieces in their time. Nobody produces what nobody reads.
fn pieces(reply: Reply) -> mpsc::Receiver<io::Result<Bytes>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let endless = match reply.end {
            End::Endless(steps) => steps,
            End::Whole => Vec::new(),
            End::Cut => {
                let all = play(&sender, reply.steps).await;
                if all {
                    let _ = sender.send(Err(io::ErrorKind::ConnectionReset.into())).await;
                }
                return;
            }
            End::Silence => {
                if play(&sender, reply.steps).await {
                    sender.closed().await;
                }
                return;
            }
        };
        if !play(&sender, reply.steps).await || endless.is_empty() {
            return;
        }
        while play(&sender, endless.clone()).await {}
    });
    receiver
}

/// Whether somebody is still there.
async fn play(sender: &mpsc::Sender<io::Result<Bytes>>, steps: Vec<Step>) -> bool {
    for step in steps {
        match step {
            Step::Bytes(bytes) => {
                if sender.send(Ok(bytes.into())).await.is_err() {
                    return false;
                }
            }
            Step::Pause(pause) => {
                tokio::select! {
                    () = sender.closed() => return false,
                    () = tokio::time::sleep(pause) => {}
                }
            }
        }
    }
    true
}

/// A body: known as a whole, with its length, or in pieces.
enum Body {
    Whole(Option<Bytes>),
    Pieces(mpsc::Receiver<io::Result<Bytes>>),
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(pieces) => pieces.poll_recv(cx).map(|piece| Some(piece?.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                let length = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Self::Pieces(_) => SizeHint::default(),
        }
    }
}
