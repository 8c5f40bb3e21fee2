//! An address on this machine: requests as bodies of POSTs, for whoever has the token.
//!
//! Everybody on this machine can connect, and so can a page in a browser here. So nothing is done without the token; a
//! request that a page has sent, which browsers mark with `Origin`, is refused even with it, and so is one that came
//! under a foreign name (DNS rebinding).

use std::{
    future::pending,
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use mrtr_core::http::{Bind, Gate, GateFault};
use serde_json::json;
use tokio::net::TcpListener;

use super::{Bridge, InboxToken, ask};
use crate::{
    room::Room,
    server::{
        Options, ReplyBody,
        listen::{self, nothing_here},
        rules::{self, BodyFault, Extra, Ruled},
    },
};

/// The one path.
const PATH: &str = "/inbox";

/// Who answers, for the record.
const BY: &str = "the bearer of the token";

/// Connections at once: a person or two, their scripts, and whoever else on this machine connects and says nothing.
const CONNECTIONS: usize = 128;

/// How long one may say nothing, and how long the head of a request may take. Whoever has the token sends it at once;
/// whoever has none must not shut them out: with [`CONNECTIONS`] in this time somebody's turn comes soon.
const IDLE: Duration = Duration::from_secs(2);

/// How long one may take nothing of its reply.
const STALL: Duration = Duration::from_secs(5);

/// Bytes of a head: a token and a few short lines.
const HEAD_BYTES: usize = 8 << 10;

/// How long a body may take. Only one that came with the token is read.
const WITHIN: Duration = Duration::from_secs(10);

struct Door {
    bridge: Bridge,
    token: InboxToken,
    gate: Gate,
    room: Room,
    /// Requests without the token.
    refused: AtomicU64,
}

/// Serves whoever has the token, for as long as it is polled.
pub(in crate::bridge) async fn serve(
    bridge: &Bridge,
    listener: TcpListener,
    token: InboxToken,
) -> io::Result<()> {
    if !listener.local_addr()?.ip().is_loopback() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "an inbox listens on a loopback address only: whoever has its token may answer for everybody",
        ));
    }
    let limits = bridge.limits();
    let door = Door {
        gate: Gate::new(Bind::Loopback, &limits),
        room: Room::new(4 * limits.message_bytes),
        bridge: bridge.clone(),
        token,
        refused: AtomicU64::new(0),
    };
    let options = Options {
        path: PATH.into(),
        connections: CONNECTIONS,
        idle: IDLE,
        stall: STALL,
        head_bytes: HEAD_BYTES,
        ..Options::default()
    };
    listen::carry(listener, door, options, pending()).await
}

impl listen::Front for Door {
    /// Whoever is refused has to connect again, and so to wait behind others.
    async fn answer(&self, path: &str, request: Request<Incoming>) -> Response<ReplyBody> {
        let mut response = self.judge(path, request).await;
        if response.status() != StatusCode::OK {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn close(&self) {}

    async fn idle(&self) {}

    fn binding(&self) -> Bind {
        Bind::Loopback
    }
}

impl Door {
    async fn judge(&self, path: &str, request: Request<Incoming>) -> Response<ReplyBody> {
        if request.uri().path() != path {
            return nothing_here();
        }
        let (parts, body) = request.into_parts();
        let extra = match rules::judge(&self.gate, &parts) {
            Ruled::Read { extra, .. } => extra,
            Ruled::Answer(response) => return response,
        };
        if parts.headers.contains_key(header::ORIGIN) {
            return rules::refuse(GateFault::Origin, extra);
        }
        if parts.method != Method::POST {
            return rules::refuse(GateFault::Method { allow: "POST" }, extra);
        }
        let mut shown = parts.headers.get_all(header::AUTHORIZATION).iter();
        let admitted = matches!((shown.next(), shown.next()), (Some(one), None) if self.token.admits(one));
        if !admitted {
            let total = self.refused.fetch_add(1, Ordering::Relaxed).saturating_add(1);
            // Whoever has no token must not be able to fill the log.
            if total.is_power_of_two() {
                tracing::warn!(total, "a request to the inbox without its token was refused");
            }
            let mut extra = Extra::default();
            extra.put("www-authenticate", "Bearer");
            return error(StatusCode::UNAUTHORIZED, extra, "the inbox's token is missing or wrong");
        }
        let limit = self.bridge.limits().message_bytes;
        let mut room = self.room.take();
        let body = match rules::read(body, limit, WITHIN, &mut room).await {
            Ok(body) => body,
            Err(BodyFault::TooLarge) => return rules::refuse(GateFault::TooLarge { limit }, extra),
            Err(BodyFault::TooSlow) => {
                return error(StatusCode::REQUEST_TIMEOUT, extra, "the body took too long");
            }
            Err(BodyFault::Broken) => return error(StatusCode::BAD_REQUEST, extra, "the body broke off"),
            Err(BodyFault::NoRoom) => {
                return error(StatusCode::SERVICE_UNAVAILABLE, extra, "too many bytes at once");
            }
        };
        match ask(&self.bridge, body, BY).await {
            Some(reply) => rules::json(StatusCode::OK, extra, reply),
            None => error(StatusCode::SERVICE_UNAVAILABLE, extra, "the bridge has ended"),
        }
    }
}

fn error(status: StatusCode, extra: Extra, text: &str) -> Response<ReplyBody> {
    rules::json(status, extra, json!({"error": text}).to_string())
}
