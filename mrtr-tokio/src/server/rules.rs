//! Between hyper's types and the core's rules of HTTP: the one file that knows both.

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, request::Parts};
use mrtr_core::http::{Accepts, Gate, GateFault, Headers, ReplyHead, Verdict};

use super::body::ReplyBody;
use crate::room::Taken;

/// The headers of a request as the core sees them.
pub(crate) struct Head<'a>(pub(crate) &'a Parts);

impl Headers for Head<'_> {
    fn get_all<'h>(&'h self, name: &str, each: &mut dyn FnMut(&'h [u8])) {
        // HTTP/2 says in the request's target what HTTP/1.1 says in `Host`. Where both say it, the target counts (RFC 9112,
        // 3.2.2), and whoever looked at `Host` alone has let something else pass: so they are one value, or two.
        let authority = self.0.uri.authority().filter(|_| name.eq_ignore_ascii_case("host"));
        let authority = authority.map(|authority| authority.as_str().as_bytes());
        if let Some(authority) = authority {
            each(authority);
        }
        for value in self.0.headers.get_all(name) {
            let value = value.as_bytes();
            if authority.is_none_or(|authority| !authority.eq_ignore_ascii_case(value)) {
                each(value);
            }
        }
    }
}

/// What the gate says of a request.
pub(crate) enum Ruled {
    /// Go on.
    Read { accepts: Accepts, extra: Extra },
    /// Answer at once, without reading the body.
    Answer(Response<ReplyBody>),
}

/// Headers to be added to whatever is answered.
#[derive(Clone, Default)]
pub(crate) struct Extra(Vec<(HeaderName, HeaderValue)>);

impl Extra {
    pub(crate) fn put(&mut self, name: &str, value: &str) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            self.0.push((name, value));
        }
    }

    fn add_to(self, headers: &mut HeaderMap) {
        for (name, value) in self.0 {
            headers.append(name, value);
        }
    }
}

pub(crate) fn judge(gate: &Gate, parts: &Parts) -> Ruled {
    let head = Head(parts);
    let ruling = gate.check(parts.method.as_str(), &head);
    let mut extra = Extra::default();
    if let Some(cors) = &ruling.cors {
        cors.each_header(&mut |name, value| extra.put(name, value));
    }
    match ruling.verdict {
        Verdict::Read(accepts) => Ruled::Read { accepts, extra },
        Verdict::Preflight => Ruled::Answer(respond(StatusCode::NO_CONTENT, extra, ReplyBody::empty())),
        Verdict::Refuse(fault) => {
            tracing::debug!(fault = %fault, "a request was refused by its head");
            Ruled::Answer(refuse(fault, extra))
        }
    }
}

/// The response to a request that is refused by its head, or for the size of its body.
pub(crate) fn refuse(fault: GateFault, mut extra: Extra) -> Response<ReplyBody> {
    let mut body = Vec::new();
    fault.write(&mut body);
    if let Some(allow) = fault.allow() {
        extra.put("allow", allow);
    }
    extra.put("content-type", "application/json");
    respond(status(fault.class().status()), extra, ReplyBody::whole(body))
}

/// A response without a JSON-RPC message: something went wrong below the protocol.
pub(crate) fn bare(status: StatusCode, mut extra: Extra, text: &'static str) -> Response<ReplyBody> {
    extra.put("content-type", "text/plain; charset=utf-8");
    if status == StatusCode::SERVICE_UNAVAILABLE {
        extra.put("retry-after", "1");
    }
    if status == StatusCode::REQUEST_TIMEOUT {
        extra.put("connection", "close");
    }
    respond(status, extra, ReplyBody::whole(text.as_bytes().to_vec()))
}

/// A page of plain text.
#[cfg(feature = "bridge")]
pub(crate) fn text(status: StatusCode, text: String) -> Response<ReplyBody> {
    let mut extra = Extra::default();
    extra.put("content-type", "text/plain; version=0.0.4; charset=utf-8");
    extra.put("cache-control", "no-store");
    respond(status, extra, ReplyBody::whole(text.into_bytes()))
}

/// A JSON text that nobody is to keep.
#[cfg(all(unix, feature = "bridge"))]
pub(crate) fn json(status: StatusCode, mut extra: Extra, text: String) -> Response<ReplyBody> {
    extra.put("content-type", "application/json");
    extra.put("cache-control", "no-store");
    respond(status, extra, ReplyBody::whole(text.into_bytes()))
}

/// The response with the head that the core gives.
pub(crate) fn reply(head: ReplyHead, mut extra: Extra, body: ReplyBody) -> Response<ReplyBody> {
    for (name, value) in head.headers() {
        extra.put(name, value);
    }
    respond(status(head.status), extra, body)
}

/// The response to HEAD: it has the length of what it would bring, and brings nothing (RFC 9110, 9.3.2). A server of HTTP/2
/// may leave that to whoever answers.
pub(crate) fn without_body(mut response: Response<ReplyBody>) -> Response<ReplyBody> {
    if let Some(length) = http_body::Body::size_hint(response.body()).exact() {
        response.headers_mut().insert(http::header::CONTENT_LENGTH, length.into());
    }
    response.map(|_| ReplyBody::empty())
}

fn respond(status: StatusCode, extra: Extra, body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    extra.add_to(response.headers_mut());
    response
}

pub(crate) fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Why a body could not be read.
pub(crate) enum BodyFault {
    TooLarge,
    TooSlow,
    Broken,
    /// It would fit, but for all the others that are held.
    NoRoom,
}

/// What its sender is told.
pub(crate) fn unread(fault: BodyFault, limit: usize, extra: Extra) -> Response<ReplyBody> {
    let (status, text) = match fault {
        BodyFault::TooLarge => return refuse(GateFault::TooLarge { limit }, extra),
        BodyFault::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the body took too long\n"),
        BodyFault::Broken => (StatusCode::BAD_REQUEST, "the body broke off\n"),
        BodyFault::NoRoom => (StatusCode::SERVICE_UNAVAILABLE, "too many bytes at once\n"),
    };
    bare(status, extra, text)
}

/// Reads a body of at most `limit` bytes, whatever its length was said to be, and takes room for it as it comes.
pub(crate) async fn read<B>(
    body: B,
    limit: usize,
    within: std::time::Duration,
    room: &mut Taken,
) -> Result<Vec<u8>, BodyFault>
where
    B: http_body::Body,
    B::Data: bytes::Buf,
{
    let reading = async {
        let mut body = std::pin::pin!(body);
        let said = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(said.min(limit).min(READ_AHEAD));
        while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let Ok(frame) = frame else { return Err(BodyFault::Broken) };
            let Ok(mut data) = frame.into_data() else { continue };
            while bytes::Buf::has_remaining(&data) {
                let chunk = bytes::Buf::chunk(&data);
                if chunk.len() > limit - bytes.len() {
                    return Err(BodyFault::TooLarge);
                }
                room.grow(chunk.len()).map_err(|_| BodyFault::NoRoom)?;
                bytes.extend_from_slice(chunk);
                let taken = chunk.len();
                bytes::Buf::advance(&mut data, taken);
            }
        }
        Ok(bytes)
    };
    tokio::time::timeout(within, reading).await.unwrap_or(Err(BodyFault::TooSlow))
}

/// Room that a mere announcement of a large body gets.
const READ_AHEAD: usize = 64 << 10;
