//! Streamable HTTP: one POST a message, answered with one JSON message or with a stream of events; and, for servers of
//! the legacy eras, their sessions.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use mrtr_core::{
    client::connection::{CallId, Connection, HeaderRules, PostId, Via},
    framing::EventStreamDecoder,
    http::{BodyPlan, ParamHeaders, Sent, judge, request_headers},
    jsonrpc::{Json, Message, RequestId, admit},
    wire::Version,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
    time::timeout,
};

use super::{
    WireError,
    http::Http,
    machine::{Machine, Out},
};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How long a notification or an answer may take to be accepted, and a session to be ended.
const ACCEPTED: Duration = Duration::from_secs(10);

/// How long requests wait for the stream that belongs to no call to be open.
const LISTENING: Duration = Duration::from_secs(1);

/// How often a stream is taken up again that brings nothing.
const RESUMES: u32 = 5;

/// How long to wait before that, unless the server says.
const RETRY: Duration = Duration::from_secs(1);

/// However long the server says.
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// Carries messages to one url.
pub(super) struct Posts {
    http: Http,
    /// Whether the stream is opened on which legacy servers say what belongs to no call.
    listens: bool,
    session: Mutex<Session>,
    tasks: Mutex<Tasks>,
}

/// What belongs to the session of a legacy era.
#[derive(Default)]
struct Session {
    id: Option<HeaderValue>,
    version: Option<Version>,
}

#[derive(Default)]
struct Tasks {
    posts: BTreeMap<PostId, AbortHandle>,
    listening: Option<AbortHandle>,
}

/// Ends what is under way when nothing carries messages any more.
struct Carrying(Arc<Posts>);

impl Drop for Carrying {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Posts {
    pub(super) fn new(http: Http, listens: bool) -> Self {
        Self { http, listens, session: Mutex::default(), tasks: Mutex::default() }
    }

    pub(super) fn server(&self) -> String {
        self.http.server()
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        // Nothing panics while it is held.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends everything that is under way, which closes its streams: these requests.
    fn stop(&self) -> Vec<PostId> {
        let mut tasks = self.tasks();
        if let Some(task) = tasks.listening.take() {
            task.abort();
        }
        let posts = std::mem::take(&mut tasks.posts);
        drop(tasks);
        let stop = |(post, task): (PostId, AbortHandle)| {
            task.abort();
            post
        };
        posts.into_iter().map(stop).collect()
    }

    /// Carries messages, for as long as it is polled. Notifications and answers are accepted before what was said after
    /// them goes out.
    pub(super) async fn carry(
        self: Arc<Self>,
        machine: Arc<Machine>,
        mut queue: mpsc::UnboundedReceiver<Out>,
    ) {
        let _carrying = Carrying(Arc::clone(&self));
        while let Some(out) = queue.recv().await {
            match out {
                Out::Request { post, call, bytes, headers } => {
                    let request =
                        Request { posts: Arc::clone(&self), machine: Arc::clone(&machine), post, call };
                    // Held until it is in the books, so that the task cannot take itself out before.
                    let mut tasks = self.tasks();
                    let task = tokio::spawn(async move {
                        request.run(bytes, headers).await;
                        request.posts.tasks().posts.remove(&request.post);
                    });
                    tasks.posts.insert(post, task.abort_handle());
                }
                Out::Message { call, bytes, headers } => {
                    if let Err(problem) = self.message(&machine, bytes, headers).await {
                        tracing::warn!(%problem, "the server was not told something");
                        if let Some(call) = call {
                            let fault = format!("the server did not accept an answer: {problem}");
                            machine.unaccepted(call, WireError::broken(fault));
                        }
                    }
                }
                Out::Close { post } => {
                    let task = self.tasks().posts.remove(&post);
                    if let Some(task) = task {
                        task.abort();
                    }
                }
                Out::Opened => {
                    // Servers lose what they say on a stream that is not open yet, questions too.
                    if let Some(head) = self.listen(&machine) {
                        let _ = timeout(LISTENING, head).await;
                    }
                }
                Out::End(done) => {
                    // Whoever still waits need not wait any longer.
                    for post in self.stop() {
                        machine.lost(post, None, WireError::ENDED);
                    }
                    self.end_session().await;
                    machine.act(Connection::handle_session_gone);
                    let _ = done.send(());
                }
                // Of a pipe.
                Out::Died { .. } => {}
            }
        }
    }

    /// The headers of a POST with this body.
    fn headers(&self, machine: &Machine, bytes: &[u8], rules: HeaderRules) -> Result<HeaderMap, WireError> {
        let mut headers = HeaderMap::new();
        match rules {
            HeaderRules::Modern => {
                // What the core has written, it can read.
                let message = admit(bytes, &machine.limits)
                    .map_err(|refused| WireError::broken(refused.reason.to_string()))?;
                // The annotations of the tool, if it was listed: the same for every retry.
                let name = match &message {
                    Message::Request(request) => request.param("name").and_then(Json::as_string),
                    Message::Notification(_) | Message::Response(_) => None,
                };
                let known = name.and_then(|name| machine.annotations().get(&*name).cloned());
                let annotations = known.as_deref().unwrap_or(ParamHeaders::NONE);
                for (name, value) in request_headers(&message, annotations)?.iter() {
                    let name = HeaderName::try_from(name).map_err(WireError::broken)?;
                    headers.insert(name, HeaderValue::try_from(value).map_err(WireError::broken)?);
                }
            }
            HeaderRules::Legacy(version) => {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                let both = HeaderValue::from_static("application/json, text/event-stream");
                headers.insert(header::ACCEPT, both);
                let mut session = self.session();
                match version {
                    // `initialize`: whatever session there was is over.
                    None => *session = Session::default(),
                    Some(version) => session.version = Some(version),
                }
                session.write(&mut headers);
            }
        }
        Ok(headers)
    }

    /// Sends what wants no reply.
    async fn message(&self, machine: &Machine, bytes: Vec<u8>, rules: HeaderRules) -> Result<(), WireError> {
        let headers = self.headers(machine, &bytes, rules)?;
        let sent = self.http.send(Method::POST, headers, bytes.into());
        match timeout(ACCEPTED, sent).await {
            Ok(Ok(response)) if response.status().is_success() => Ok(()),
            Ok(Ok(response)) => {
                let gone = response.status() == StatusCode::NOT_FOUND;
                if gone && matches!(rules, HeaderRules::Legacy(Some(_))) {
                    machine.act(Connection::handle_session_gone);
                }
                Err(WireError::broken(format!("HTTP status {}", response.status())))
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(WireError::broken("it was not accepted in time")),
        }
    }

    /// The headers of a GET or DELETE.
    fn of_session(&self) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        let session = self.session();
        session.id.is_some().then(|| session.write(&mut headers))?;
        drop(session);
        Some(headers)
    }

    /// Tells the server that it may forget the session. Those that mind say 405.
    async fn end_session(&self) {
        let Some(headers) = self.of_session() else { return };
        *self.session() = Session::default();
        match timeout(ACCEPTED, self.http.send(Method::DELETE, headers, Bytes::new())).await {
            Ok(Ok(response)) => tracing::debug!(status = %response.status(), "the session was ended"),
            Ok(Err(_)) | Err(_) => tracing::debug!("the session was not ended"),
        }
    }

    /// Opens the stream that belongs to no call, if the server has one. What is given is ready when the server has said
    /// whether it has.
    fn listen(self: &Arc<Self>, machine: &Arc<Machine>) -> Option<oneshot::Receiver<()>> {
        if !self.listens || self.session().id.is_none() {
            return None;
        }
        let (posts, machine) = (Arc::clone(self), Arc::clone(machine));
        let (said, head) = oneshot::channel();
        let mut tasks = self.tasks();
        let task = tokio::spawn(async move {
            let mut stream = Stream::new(Via::Standalone, false, machine.limits.message_bytes);
            posts.take_up(&mut stream, &machine, None, Some(said)).await;
        });
        if let Some(before) = tasks.listening.replace(task.abort_handle()) {
            before.abort();
        }
        Some(head)
    }

    /// Reads a stream by GET, and again whenever it has ended, until it brings the reply, or nothing any more. `said` is
    /// dropped when the head of the first response is there, or none comes.
    async fn take_up(
        &self,
        stream: &mut Stream,
        machine: &Machine,
        reply: Option<&RequestId>,
        mut said: Option<oneshot::Sender<()>>,
    ) -> End {
        let mut empty = 0;
        while empty < RESUMES {
            let Some(mut headers) = self.of_session() else { break };
            headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
            if let Ok(last) = HeaderValue::from_bytes(&stream.last_event)
                && !last.is_empty()
            {
                headers.insert(LAST_EVENT, last);
            }
            let Ok(response) = self.http.send(Method::GET, headers, Bytes::new()).await else { break };
            drop(said.take());
            if response.status() != StatusCode::OK || plan(&response) != BodyPlan::Events {
                break;
            }
            let before = stream.events;
            if let End::Replied = stream.read(response.into_body(), machine, reply).await {
                return End::Replied;
            }
            empty = if stream.events > before { 0 } else { empty + 1 };
            tokio::time::sleep(stream.retry).await;
        }
        End::Over
    }
}

impl Session {
    fn write(&self, headers: &mut HeaderMap) {
        if let Some(id) = &self.id {
            headers.insert(SESSION, id.clone());
        }
        if let Some(version) = self.version {
            headers.insert(VERSION, HeaderValue::from_static(version.name()));
        }
    }
}

/// A request on its way.
struct Request {
    posts: Arc<Posts>,
    machine: Arc<Machine>,
    post: PostId,
    call: Option<CallId>,
}

impl Request {
    async fn run(&self, bytes: Vec<u8>, rules: HeaderRules) {
        if let Err(fault) = self.try_run(bytes, rules).await {
            self.machine.lost(self.post, self.call, fault);
        }
    }

    /// An error is told the connection; everything else it was told here.
    async fn try_run(&self, bytes: Vec<u8>, rules: HeaderRules) -> Result<(), WireError> {
        let (posts, machine) = (&*self.posts, &*self.machine);
        let headers = posts.headers(machine, &bytes, rules)?;
        let response = posts.http.send(Method::POST, headers, bytes.into()).await?;
        if rules == HeaderRules::Legacy(None) && response.status().is_success() {
            let id = response.headers().get(SESSION).cloned();
            posts.session().id = id.map(|mut id| {
                id.set_sensitive(true);
                id
            });
        }
        if plan(&response) == BodyPlan::Whole || !response.status().is_success() {
            return self.whole(response).await;
        }
        let modern = rules == HeaderRules::Modern;
        let mut stream = Stream::new(Via::Post(self.post), modern, machine.limits.message_bytes);
        let reply = self.post.request_id();
        let mut end = stream.read(response.into_body(), machine, Some(&reply)).await;
        // A server of a legacy era may close its stream and go on in another one.
        let resumable = !modern && !stream.last_event.is_empty();
        if let (End::Over, true) = (&end, resumable) {
            tokio::time::sleep(stream.retry).await;
            end = posts.take_up(&mut stream, machine, Some(&reply), None).await;
        }
        match end {
            End::Replied => Ok(()),
            End::Over => Err(WireError::ENDED),
            End::Broken(fault) => Err(fault),
        }
    }

    async fn whole(&self, response: Response<Incoming>) -> Result<(), WireError> {
        let (head, mut body) = response.into_parts();
        let limits = &self.machine.limits;
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(WireError::broken)?.into_data() else { continue };
            if data.len() > limits.message_bytes - bytes.len() {
                self.machine.overlong(Via::Post(self.post), &[]);
                return Ok(());
            }
            bytes.extend_from_slice(&data);
        }
        let kind = head.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        let judgement = judge(Sent::Request, head.status.as_u16(), kind, &bytes, limits);
        self.machine.response(self.post, judgement, bytes.len());
        Ok(())
    }
}

fn plan(response: &Response<Incoming>) -> BodyPlan {
    BodyPlan::from_content_type(response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes))
}

/// An event stream, over all connections that it is read from.
struct Stream {
    via: Via,
    /// Whatever reply comes on it, none comes after it.
    modern: bool,
    limit: usize,
    last_event: Vec<u8>,
    retry: Duration,
    events: u64,
}

/// How a stream came to its end.
enum End {
    /// The reply has come.
    Replied,
    /// The server has closed it.
    Over,
    Broken(WireError),
}

impl Stream {
    const fn new(via: Via, modern: bool, limit: usize) -> Self {
        Self { via, modern, limit, last_event: Vec::new(), retry: RETRY, events: 0 }
    }

    async fn read(&mut self, mut body: Incoming, machine: &Machine, reply: Option<&RequestId>) -> End {
        let mut decoder = EventStreamDecoder::new(self.limit);
        loop {
            while let Some(event) = decoder.next() {
                self.events += 1;
                match event {
                    Ok(event) if event.is_message() && !event.data.is_empty() => {
                        // The connection would ignore what comes after it.
                        let last = self.is_last(event.data, reply, machine);
                        machine.message(self.via, event.data);
                        if last {
                            return End::Replied;
                        }
                    }
                    Ok(_) => {}
                    Err(_) => {
                        machine.overlong(self.via, &[]);
                        if reply.is_some() {
                            return End::Replied;
                        }
                    }
                }
            }
            if !decoder.last_event_id().is_empty() {
                self.last_event = decoder.last_event_id().into();
            }
            self.retry = decoder.retry().unwrap_or(self.retry).min(LONGEST_RETRY);
            match body.frame().await {
                None => return End::Over,
                Some(Err(error)) => return End::Broken(WireError::broken(error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        decoder.push(&data);
                    }
                }
            }
        }
    }

    /// Whether nothing comes after this message: it is the response, or what should have been it.
    fn is_last(&self, data: &[u8], reply: Option<&RequestId>, machine: &Machine) -> bool {
        let Some(reply) = reply else { return false };
        match admit(data, &machine.limits) {
            Ok(Message::Response(response)) => self.modern || response.id.is_none_or(|id| id == *reply),
            Ok(Message::Request(_) | Message::Notification(_)) => false,
            // What asks or tells fails nothing but itself.
            Err(refused) if refused.asks_or_tells() => false,
            Err(refused) => self.modern || refused.response_to.as_ref() == Some(reply),
        }
    }
}

impl fmt::Debug for Posts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.http.fmt(f)
    }
}
