//! Our client against the cases of `testkit`, carried by hand in virtual time.

use std::time::Duration;

use mrtr_core::{
    Limits, RpcError, Timestamp,
    client::{
        Ask, Call, Channel, Client, Config, Exchange, InputRequired, InputResponse, NotSent, Open, Policy,
        Reason, Received, Resend, Stopped, Violation,
    },
    framing::{EventStreamDecoder, LineDecoder},
    http::{BodyPlan, HttpErrorKind, Judgement, Sent, judge},
    jsonrpc::{Json, RequestId},
    testkit::{Carrier, Case, End, Expected, Reply, Step},
    wire::{AskKind, ClientCapabilities, Implementation},
};

/// How a call ended.
#[derive(Debug)]
pub enum Ended {
    /// With this result.
    Complete(String),
    /// With the server's error.
    Peer(RpcError),
    /// With the server's refusal of a state.
    StateRefused(RpcError),
    /// The reply breaks the protocol.
    Violation(Violation),
    /// The client goes no further.
    Stopped(Stopped),
    /// The HTTP response is no reply.
    Http(HttpErrorKind),
    /// The reply is over `Limits::message_bytes`, and was not read to its end.
    TooLarge,
    /// Nothing came in time.
    TimedOut,
    /// A retry could not be sent.
    NotSent(Reason),
}

impl Ended {
    /// The kind of ending, as the kit counts them.
    #[must_use]
    pub const fn kind(&self) -> Option<Expected> {
        Some(match self {
            Self::Complete(_) => Expected::Completes,
            Self::Peer(_) | Self::StateRefused(_) => Expected::PeerError,
            Self::Violation(_) | Self::Http(_) | Self::TooLarge => Expected::Refuses,
            Self::Stopped(Stopped::Lost) => Expected::Breaks,
            Self::Stopped(_) => Expected::Stops,
            Self::TimedOut => Expected::TimesOut,
            Self::NotSent(_) => return None,
        })
    }
}

/// What came of a call.
#[derive(Debug)]
pub struct Played {
    /// How it ended.
    pub ended: Ended,
    /// The keys of the questions that were put to somebody, in order.
    pub prompts: Vec<String>,
    /// How many requests went out.
    pub requests: usize,
    /// What the kit found wrong with the client.
    pub faults: Vec<&'static str>,
    /// How long it took.
    pub elapsed: Duration,
}

/// Calls a tool of the server that a case describes.
#[derive(Debug)]
pub struct Caller {
    /// The client.
    pub client: Client,
    /// What carries its messages.
    pub carrier: Carrier,
    /// How it answers.
    pub answer: fn(Ask<'_>) -> InputResponse<'static>,
    /// Whether its calls may run twice.
    pub twice: bool,
}

/// What was heard in reply to one request.
#[derive(Debug)]
pub enum Heard<S: Open> {
    /// Questions, or a pause.
    Asked(Exchange<InputRequired>),
    /// The request goes out again.
    Again(Resend<S>),
    /// The end.
    Ended(Ended),
}

impl Caller {
    /// One that can do everything and accepts everything.
    #[must_use]
    pub fn new(carrier: Carrier) -> Self {
        Self::with(carrier, Policy::default())
    }

    /// The same, with another policy.
    #[must_use]
    pub fn with(carrier: Carrier, policy: Policy) -> Self {
        Self::of(carrier, ClientCapabilities::ALL, policy)
    }

    /// The same, with these capabilities.
    #[must_use]
    pub fn of(carrier: Carrier, can: ClientCapabilities, policy: Policy) -> Self {
        let channel = match carrier {
            Carrier::Http => Channel::Own,
            Carrier::Stdio => Channel::Shared,
        };
        let config = Config::new(Implementation::new("t", "1"), can).channel(channel).policy(policy);
        Self { client: Client::new(config), carrier, answer: accept, twice: false }
    }

    /// Calls the tool to the end.
    #[must_use]
    pub fn play(&self, case: &Case) -> Played {
        self.call(case, "tools/call", r#"{"name":"hostile","arguments":{"a":1}}"#)
    }

    /// Calls a method to the end.
    ///
    /// # Panics
    ///
    /// If the call cannot be made.
    #[must_use]
    pub fn call(&self, case: &Case, method: &str, params: &str) -> Played {
        let mut course =
            Course { caller: self, case, now: Timestamp::from_unix_millis(0), seen: None, id: 1 };
        let mut played = Played {
            ended: Ended::TimedOut,
            prompts: Vec::new(),
            requests: 0,
            faults: Vec::new(),
            elapsed: Duration::ZERO,
        };
        let mut call = Call::new(method, params).progress(mrtr_core::client::Progress::RequestId);
        if self.twice {
            call = call.may_run_twice();
        }
        let mut out = Vec::new();
        let pending = self.client.start(1.into(), call, course.now, &mut out).expect("a proper call");
        let mut next = course.leg(pending, out, &mut played);
        played.ended = loop {
            let mut asked = match next {
                Ok(asked) => asked,
                Err(ended) => break ended,
            };
            let answers: Vec<_> =
                asked.asks().map(|ask| (ask.key().to_owned(), (self.answer)(ask))).collect();
            for (key, answer) in answers {
                asked.answer(&key, answer).expect("an answer that fits");
                played.prompts.push(key);
            }
            course.now = asked.not_before().unwrap_or(course.now);
            course.id += 1;
            let mut out = Vec::new();
            next = match asked.proceed(course.id.into(), course.now, &mut out) {
                Ok(retrying) => course.leg(retrying, out, &mut played),
                Err(NotSent { reason, .. }) => break Ended::NotSent(reason),
            };
        };
        played.elapsed = Duration::from_millis(course.now.as_unix_millis());
        played
    }

    /// Reads a reply to the request of this exchange, as it comes.
    #[must_use]
    pub fn hear<S: Open>(&self, exchange: Exchange<S>, reply: &Reply, now: &mut Timestamp) -> Heard<S> {
        let limits = Limits::default();
        let media = reply.headers.iter().find(|(name, _)| *name == "Content-Type");
        let media = media.map(|(_, value)| value.as_bytes());
        let reader = match self.carrier {
            Carrier::Stdio => Reader::Lines(LineDecoder::new(limits.message_bytes)),
            Carrier::Http
                if BodyPlan::from_content_type(media) == BodyPlan::Events && reply.status == 200 =>
            {
                Reader::Events(EventStreamDecoder::new(limits.message_bytes))
            }
            Carrier::Http => Reader::Body(Vec::new()),
        };
        let mut hearing = Hearing { reader, exchange: Some(exchange), limits };
        let endless: &[Step] = match &reply.end {
            End::Endless(steps) => steps,
            End::Whole | End::Cut | End::Silence => &[],
        };
        for step in reply.steps.iter().chain(endless.iter().cycle()) {
            match step {
                Step::Bytes(bytes) => {
                    if let Some(heard) = hearing.bytes(bytes, *now) {
                        return heard;
                    }
                }
                Step::Pause(pause) => *now = now.saturating_add(*pause),
            }
            let Some(until) = hearing.exchange.as_ref().map(Exchange::timeout) else { break };
            if *now >= until {
                return hearing.give_up(now);
            }
        }
        match (&reply.end, self.carrier) {
            (End::Whole, Carrier::Http) => hearing.whole(reply.status, media, *now),
            (End::Cut, _) => hearing.lost(),
            (End::Whole, Carrier::Stdio) | (End::Silence | End::Endless(_), _) => hearing.give_up(now),
        }
    }
}

/// A call under way.
struct Course<'a> {
    caller: &'a Caller,
    case: &'a Case,
    now: Timestamp,
    seen: Option<RequestId>,
    id: i64,
}

impl Course<'_> {
    fn leg<S: Open>(
        &mut self,
        mut exchange: Exchange<S>,
        mut message: Vec<u8>,
        played: &mut Played,
    ) -> Result<Exchange<InputRequired>, Ended> {
        loop {
            assert!(self.seen.as_ref() != Some(exchange.request_id()), "an id twice (R-091)");
            self.seen = Some(exchange.request_id().clone());
            let reaction = self.case.receive(self.caller.carrier, &message);
            played.requests += 1;
            played.faults.extend(reaction.fault);
            let reply = reaction.reply.expect("a request gets a reply");
            match self.caller.hear(exchange, &reply, &mut self.now) {
                Heard::Asked(asked) => return Ok(asked),
                Heard::Ended(ended) => return Err(ended),
                Heard::Again(resend) => {
                    self.id += 1;
                    message.clear();
                    exchange = resend.send(self.id.into(), self.now, &mut message).expect("a new id");
                }
            }
        }
    }
}

enum Reader {
    Lines(LineDecoder),
    Events(EventStreamDecoder),
    Body(Vec<u8>),
}

struct Hearing<S: Open> {
    reader: Reader,
    exchange: Option<Exchange<S>>,
    limits: Limits,
}

impl<S: Open> Hearing<S> {
    fn bytes(&mut self, bytes: &[u8], now: Timestamp) -> Option<Heard<S>> {
        let limit = self.limits.message_bytes;
        match &mut self.reader {
            Reader::Body(body) if bytes.len() > limit - body.len() => Some(Heard::Ended(Ended::TooLarge)),
            Reader::Body(body) => {
                body.extend_from_slice(bytes);
                None
            }
            Reader::Lines(decoder) => {
                decoder.push(bytes);
                while let Some(line) = decoder.next() {
                    // Whose it is cannot be read; one call is under way here.
                    let Ok(line) = line else { return Some(Heard::Ended(Ended::TooLarge)) };
                    let heard = message(&mut self.exchange, line, now);
                    if heard.is_some() {
                        return heard;
                    }
                }
                None
            }
            Reader::Events(decoder) => {
                decoder.push(bytes);
                while let Some(event) = decoder.next() {
                    let Ok(event) = event else { return Some(Heard::Ended(Ended::TooLarge)) };
                    if event.is_message() && !event.data.is_empty() {
                        let heard = message(&mut self.exchange, event.data, now);
                        if heard.is_some() {
                            return heard;
                        }
                    }
                }
                None
            }
        }
    }

    /// The body is at its end.
    fn whole(mut self, status: u16, media: Option<&[u8]>, now: Timestamp) -> Heard<S> {
        let Reader::Body(body) = &self.reader else { return self.lost() };
        match judge(Sent::Request, status, media, body, &self.limits) {
            Judgement::Message(text) => {
                message(&mut self.exchange, text, now).unwrap_or(Heard::Ended(Ended::Stopped(Stopped::Lost)))
            }
            Judgement::Failed(error) | Judgement::MaybeLegacy(error) => Heard::Ended(Ended::Http(error.kind)),
            other => panic!("{other:?}"),
        }
    }

    fn lost(self) -> Heard<S> {
        match self.exchange.expect("not ended").lost() {
            Ok(resend) => Heard::Again(resend),
            Err(stopped) => Heard::Ended(Ended::Stopped(stopped)),
        }
    }

    fn give_up(self, now: &mut Timestamp) -> Heard<S> {
        let exchange = self.exchange.expect("not ended");
        *now = exchange.timeout();
        exchange.cancel("", &mut Vec::new());
        Heard::Ended(Ended::TimedOut)
    }
}

fn message<S: Open>(exchange: &mut Option<Exchange<S>>, text: &[u8], now: Timestamp) -> Option<Heard<S>> {
    Some(match exchange.take()?.receive(text, now) {
        Received::Aside(back, _) => {
            *exchange = Some(back);
            return None;
        }
        Received::InputRequired(asked) => Heard::Asked(asked),
        Received::Complete(complete) => Heard::Ended(match complete.result() {
            Ok(result) => Ended::Complete(result.as_str().into()),
            Err(error) => Ended::Peer(error.clone()),
        }),
        Received::Resend(resend) => Heard::Again(resend),
        Received::StateRefused(refused) => match refused.into_outcome().result() {
            Ok(_) => panic!("a refusal without an error"),
            Err(error) => Heard::Ended(Ended::StateRefused(error.clone())),
        },
        Received::Invalid(violation) => Heard::Ended(Ended::Violation(violation)),
        Received::Stopped(stopped) => Heard::Ended(Ended::Stopped(stopped)),
    })
}

/// Accepts: gives each field its first choice, opens no scripts.
///
/// # Panics
///
/// If a text of its own is no JSON.
#[must_use]
pub fn accept(ask: Ask<'_>) -> InputResponse<'static> {
    let json = |text| Json::parse(text, &Limits::default()).expect("our own text");
    match ask.request().kind() {
        AskKind::Form => InputResponse::accept_value(&choices(ask)).expect("strings"),
        AskKind::Url if ask.request().url().is_some_and(|url| url.starts_with("javascript:")) => {
            InputResponse::cancel()
        }
        AskKind::Url => InputResponse::accepted_url(),
        AskKind::Sampling => InputResponse::sampling(json(
            r#"{"role":"assistant","model":"m","content":{"type":"text","text":"ok"}}"#,
        )),
        AskKind::Roots => InputResponse::roots(json("[]")),
    }
}

fn choices(ask: Ask<'_>) -> std::collections::BTreeMap<String, String> {
    let properties = ask.request().requested_schema().and_then(|schema| schema.get("properties")?.members());
    let choice = |field: Json<'_>| Some(field.get("enum")?.items()?.next()?.as_string()?.into_owned());
    let choices = properties.into_iter().flatten();
    choices.filter_map(|(name, field)| Some((name.into_owned(), choice(field)?))).collect()
}
