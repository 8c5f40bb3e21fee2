//! What else in this crate reaches servers: urls and processes as clients reach them, without a client's protocol.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Response};
use hyper::body::Incoming;
use tokio::process::{ChildStdin, ChildStdout, Command};

use super::{
    Options, Stderr, UrlError, WireError,
    child::{self, Running},
    http::Http,
    wire::Ended,
};

/// A url: connections, TLS, proxy, credentials, redirects within its origin.
#[derive(Clone, Debug)]
pub(crate) struct Url(Arc<Http>);

impl Url {
    pub(crate) fn new(url: &str, options: &Options) -> Result<Self, UrlError> {
        Ok(Self(Arc::new(Http::new(url, options)?)))
    }

    /// Sends one request; gives the head of its response.
    pub(crate) async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, WireError> {
        self.0.send(method, headers, body).await
    }
}

/// A process that runs; killed when the last handle is dropped.
#[derive(Clone)]
pub(crate) struct Process(Running);

impl Process {
    /// Starts it.
    pub(crate) fn start(
        command: &mut Command,
        stderr: &Stderr,
    ) -> Result<(Self, ChildStdout, ChildStdin), WireError> {
        let (running, output, input) = child::spawn(command, stderr)?;
        Ok((Self(running), output, input))
    }

    /// How it ended, once its output is closed.
    pub(crate) async fn ended(&self) -> Ended {
        self.0.ended().await
    }

    /// Waits for it to end, with its input closed; told to end after `grace`, killed after as much again.
    pub(crate) async fn stop(&self, grace: Duration) {
        self.0.stop(grace).await;
    }
}
