//! Which era an upstream is of: the core's connection of both eras finds out (R-049…R-051), with a connection of its
//! own that ends then.

use std::{pin::pin, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use http_body_util::BodyExt as _;
use mrtr_core::{
    Limits,
    client::{
        Call, Config,
        connection::{Connection, ConnectionConfig, HeaderRules, PostId, Transmit, Via},
    },
    framing::{EventStreamDecoder, LineDecoder, write_line},
    http::{BodyPlan, ParamHeaders, Sent, judge, name, request_headers},
    jsonrpc::{Message, admit},
    wire::{ClientCapabilities, Era, Implementation},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::{sleep, timeout},
};

use super::{Reach, Way, url};
use crate::{
    client::{Ended, Stderr, WireError, carry},
    clock::Clock,
};

/// How long finding out may take in all: a package runner may have to fetch the server first.
const PATIENCE: Duration = Duration::from_secs(120);

/// Why the era of an upstream is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EraUnknown {
    /// It cannot be reached, or its reply is none.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// It has ended.
    #[error(transparent)]
    Ended(Ended),
    /// It speaks neither, or not in time.
    #[error("it answers neither as a server of 2026-07-28 nor as one of the revisions before")]
    Neither,
}

impl Reach {
    /// Finds out which era the upstream is of, by a connection of its own that ends then.
    ///
    /// # Errors
    ///
    /// If it cannot be reached, or speaks no revision that is known.
    pub async fn era(&self, limits: &Limits) -> Result<Era, EraUnknown> {
        let asking = async {
            match &self.0 {
                Way::Process { command, stderr } => {
                    let first = process(command(), stderr, limits, None).await;
                    match first {
                        // One that dies of a request before `initialize` is of a legacy era, if it is anything.
                        Err(EraUnknown::Ended(_)) => {
                            process(command(), stderr, limits, Some(Era::Legacy)).await
                        }
                        first => first,
                    }
                }
                Way::Url(url) => behind_url(url, limits).await,
            }
        };
        timeout(PATIENCE, asking).await.unwrap_or(Err(EraUnknown::Neither))
    }
}

/// A connection with one call, which is begun to see how the server takes it.
fn begun(
    over_http: bool,
    era: Option<Era>,
    limits: &Limits,
    clock: &Clock,
) -> Result<Connection, EraUnknown> {
    let info = Implementation::new("mrtr-bridge", env!("CARGO_PKG_VERSION"));
    let config = Config::new(info, ClientCapabilities::default()).limits(limits.clone());
    let mut how = ConnectionConfig::default();
    how.era = era;
    let mut connection =
        if over_http { Connection::over_http(config, how) } else { Connection::on_pipe(config, how) };
    let call = Call::new("tools/list", "{}");
    connection.call(call, clock.now()).map_err(|_| EraUnknown::Neither)?;
    Ok(connection)
}

async fn process(
    mut command: tokio::process::Command,
    stderr: &Stderr,
    limits: &Limits,
    era: Option<Era>,
) -> Result<Era, EraUnknown> {
    let (child, output, input) = carry::Process::start(&mut command, stderr)?;
    let found = on_pipe(&child, output, input, limits, era).await;
    // Its input is closed by now.
    child.stop(GRACE).await;
    found
}

/// A process may take so long to end.
const GRACE: Duration = Duration::from_secs(3);

async fn on_pipe(
    child: &carry::Process,
    output: tokio::process::ChildStdout,
    mut input: tokio::process::ChildStdin,
    limits: &Limits,
    era: Option<Era>,
) -> Result<Era, EraUnknown> {
    let clock = Clock::system();
    let mut connection = begun(false, era, limits, &clock)?;
    let mut decoder = LineDecoder::new(limits.message_bytes);
    let mut buffer = vec![0; 16 << 10];
    let mut output = pin!(output);
    loop {
        // The call itself is not made: what it was for is known.
        if let Some(era) = connection.era() {
            return Ok(era);
        }
        while let Some(transmit) = connection.poll_transmit() {
            let (Transmit::Request { bytes, .. } | Transmit::Message { bytes, .. }) = transmit else {
                continue;
            };
            let mut line = Vec::new();
            write_line(&mut line, &bytes);
            if input.write_all(&line).await.is_err() {
                return Err(EraUnknown::Ended(child.ended().await));
            }
        }
        let _ = input.flush().await;
        while connection.poll_event().is_some() {}
        let due = connection.poll_timeout().map_or(PATIENCE, |at| clock.until(at));
        let read = tokio::select! {
            read = output.read(&mut buffer) => read,
            () = sleep(due.max(Duration::from_millis(1))) => {
                connection.handle_timeout(clock.now());
                continue;
            }
        };
        let Ok(read @ 1..) = read else { return Err(EraUnknown::Ended(child.ended().await)) };
        decoder.push(buffer.get(..read).unwrap_or_default());
        while let Some(line) = decoder.next() {
            if let Ok(line) = line {
                connection.handle_message(Via::Pipe, line, clock.now());
            }
        }
        if connection.era().is_none() && connection.calls().len() == 0 {
            return Err(EraUnknown::Neither);
        }
    }
}

async fn behind_url(to: &carry::Url, limits: &Limits) -> Result<Era, EraUnknown> {
    let clock = Clock::system();
    let mut connection = begun(true, None, limits, &clock)?;
    let mut session = None;
    let mut found = None;
    while found.is_none()
        && let Some(transmit) = connection.poll_transmit()
    {
        let Transmit::Request { post, bytes, headers, .. } = transmit else { continue };
        let given = headers_of(&bytes, headers, limits)?;
        let response = to.send(Method::POST, url::post_headers(&given), bytes.into()).await?;
        session = response.headers().get(name::SESSION_ID).cloned().or(session);
        if response.status().is_success() && url::plan(&response) == BodyPlan::Events {
            events(&mut connection, post, response.into_body(), limits, &clock).await?;
        } else {
            let (status, kind, bytes) = url::whole(response, limits).await?;
            let judgement = judge(Sent::Request, status, kind.as_deref(), &bytes, limits);
            if let mrtr_core::http::Judgement::Failed(fault) = &judgement {
                return Err(WireError::from(fault.clone()).into());
            }
            connection.handle_http(post, judgement, clock.now());
        }
        found = connection.era();
    }
    if let Some(id) = session {
        end(to, id).await;
    }
    found.ok_or(EraUnknown::Neither)
}

fn headers_of(bytes: &[u8], rules: HeaderRules, limits: &Limits) -> Result<url::Headers, EraUnknown> {
    match rules {
        HeaderRules::Legacy(version) => Ok(version
            .map(|version| (name::PROTOCOL_VERSION.into(), version.name().into()))
            .into_iter()
            .collect()),
        HeaderRules::Modern => {
            let message = admit(bytes, limits).map_err(|_| EraUnknown::Neither)?;
            let headers = request_headers(&message, ParamHeaders::NONE).map_err(WireError::from)?;
            Ok(headers.iter().map(|(name, value)| (name.into(), value.into())).collect())
        }
    }
}

/// Reads an event stream up to the reply.
async fn events(
    connection: &mut Connection,
    post: PostId,
    mut body: hyper::body::Incoming,
    limits: &Limits,
    clock: &Clock,
) -> Result<(), EraUnknown> {
    let mut decoder = EventStreamDecoder::new(limits.message_bytes);
    loop {
        while let Some(event) = decoder.next() {
            let limit = limits.message_bytes;
            let event = event.map_err(|_| WireError::TooLarge { limit })?;
            if event.is_message() && !event.data.is_empty() {
                let last = matches!(admit(event.data, limits), Ok(Message::Response(_)) | Err(_));
                connection.handle_message(Via::Post(post), event.data, clock.now());
                if last {
                    return Ok(());
                }
            }
        }
        let Some(frame) = body.frame().await else { return Err(EraUnknown::Neither) };
        let frame = frame.map_err(|error| WireError::Broken { cause: Some(error.into()) })?;
        if let Ok(data) = frame.into_data() {
            decoder.push(&data);
        }
    }
}

/// Ends the session that a legacy server has begun.
async fn end(to: &carry::Url, id: HeaderValue) {
    let mut headers = http::HeaderMap::new();
    if let Ok(name) = HeaderName::try_from(name::SESSION_ID) {
        headers.insert(name, id);
    }
    let _ = timeout(GRACE, to.send(Method::DELETE, headers, Bytes::new())).await;
}
