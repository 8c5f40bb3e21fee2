//! Plays a script: request, second run, answers, next request.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    string::{String, ToString},
    vec::Vec,
};

use core::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
    time::Duration,
};

use super::{
    Reply, Script,
    report::{Asked, Played, Round, ScriptError},
};
use crate::{
    Entropy, Limits, RpcError, Timestamp,
    handler::{Outcome, Run, RunEvent},
    journal::Divergence,
    jsonrpc::{Message, admit, write},
    seal::{KeyRing, Principal, Sealer, Secret},
    server::{Config, Received, RoundEnv, Server},
    tape::{OnDivergence, OnceValues},
    wire::{Implementation, InputRequest, ResultKind, read_result},
};

/// When every script begins: 2027-01-15, 08:00 UTC.
const START: Timestamp = Timestamp::from_unix_millis(1_800_000_000_000);

/// More requests than any exchange may have.
const REQUESTS: usize = 10_000;

/// Drives one attempt to its end.
pub(super) trait Driver {
    async fn drive<'a>(&self, run: Run<'a>, out: &mut Vec<u8>) -> Outcome<'a>;
}

/// Without a runtime.
pub(super) struct Alone;

impl Driver for Alone {
    async fn drive<'a>(&self, run: Run<'a>, out: &mut Vec<u8>) -> Outcome<'a> {
        run.run(START, out)
    }
}

/// Under a runtime whose timers this makes.
pub(super) struct Under<S>(pub(super) S);

impl<S: Fn(Duration) -> F, F: Future<Output = ()>> Driver for Under<S> {
    async fn drive<'a>(&self, mut run: Run<'a>, out: &mut Vec<u8>) -> Outcome<'a> {
        // Time moves when a timer has run out, and not otherwise: there is no clock here.
        let mut now = START;
        let mut timer: Option<(Timestamp, Pin<Box<F>>)> = None;
        poll_fn(|cx| {
            loop {
                out.clear();
                match run.poll_run(cx, now, out) {
                    Poll::Ready(RunEvent::Finished(outcome)) => return Poll::Ready(outcome),
                    Poll::Ready(RunEvent::Notification) => continue,
                    // A script's server has no ledger; if it had, there would be no store.
                    Poll::Ready(RunEvent::Store(_)) => {
                        run.handle_store(now, crate::ledger::StoreEvent::Unavailable);
                        continue;
                    }
                    Poll::Pending => {}
                }
                let Some(at) = run.wake_at() else {
                    timer = None;
                    return Poll::Pending;
                };
                if timer.as_ref().is_none_or(|(set, _)| *set != at) {
                    timer = Some((at, Box::pin((self.0)(at.saturating_since(now)))));
                }
                if timer.as_mut().is_some_and(|(_, timer)| timer.as_mut().poll(cx).is_pending()) {
                    return Poll::Pending;
                }
                now = at;
                timer = None;
            }
        })
        .await
    }
}

/// What one attempt came to.
enum Attempt {
    Asked { asks: Vec<Asked>, state: String },
    Ended(Result<String, RpcError>),
}

/// The attempt with what the replay said of it.
struct Seen {
    attempt: Attempt,
    diverged: Option<(Divergence, Vec<Asked>)>,
    once: OnceValues,
    committed: bool,
}

/// Plays a script with `driver`.
pub(super) async fn play<D: Driver>(mut script: Script, driver: D) -> Result<Played, ScriptError> {
    let server = server(&script)?;
    let mut rounds: Vec<Round> = Vec::new();
    let mut members = answers_member(&script.early);
    for request in 1..=REQUESTS {
        let message = message(&script, &members);
        let first = run(&server, &script, &message, request, None, &driver).await?;
        if let Some((divergence, asks)) = first.diverged {
            return Err(diverged(&rounds, &divergence, asks));
        }
        let then = run(&server, &script, &message, request, Some(first.once), &driver).await?;
        if let Some((divergence, asks)) = then.diverged {
            return Err(diverged(&rounds, &divergence, asks));
        }
        let round = rounds.len() + 1;
        match (first.attempt, then.attempt) {
            (Attempt::Asked { asks, state }, Attempt::Asked { asks: again, .. }) => {
                if asks != again {
                    return Err(ScriptError::OtherQuestions { round, first: asks, then: again });
                }
                members = answer(&mut script, round, &asks, &state)?;
                rounds.push(Round { asks, state_bytes: state.len() });
            }
            (Attempt::Asked { asks, .. }, Attempt::Ended(_)) => {
                return Err(ScriptError::OtherQuestions { round, first: asks, then: Vec::new() });
            }
            (Attempt::Ended(_), Attempt::Asked { asks, .. }) => {
                return Err(ScriptError::OtherQuestions { round, first: Vec::new(), then: asks });
            }
            (Attempt::Ended(outcome), Attempt::Ended(again)) => {
                // The second run commits nothing, so a commit's own error is not to be compared.
                let compared = !(first.committed && outcome.is_err());
                let show = |outcome: &Result<String, RpcError>| match outcome {
                    Ok(text) => text.clone(),
                    Err(error) => error.to_string(),
                };
                if compared && outcome != again {
                    return Err(ScriptError::OtherResult { first: show(&outcome), then: show(&again) });
                }
                let left = script.answers.iter().filter(|(_, replies)| !replies.is_empty());
                let left: Vec<String> = left.map(|(key, _)| key.clone()).collect();
                return if left.is_empty() {
                    Ok(Played { rounds, outcome })
                } else {
                    Err(ScriptError::NeverAsked(left))
                };
            }
        }
    }
    Err(ScriptError::Unplayable("the handler asks for ever".to_string()))
}

/// A server as strict as can be.
fn server(script: &Script) -> Result<Server, ScriptError> {
    let secret = Secret::from_bytes(b"for tests of handlers, no secret").map_err(unplayable)?;
    let sealer = Sealer::signed_readable(&KeyRing::new(secret), "script");
    let mut config = Config::new(Implementation::new("script", "1"), sealer);
    config.limits = script.limits.clone();
    config.tape = script.policy.clone();
    config.tape.divergence = OnDivergence::Fail;
    Ok(Server::new(config))
}

fn unplayable(error: impl core::fmt::Display) -> ScriptError {
    ScriptError::Unplayable(error.to_string())
}

fn message(script: &Script, members: &str) -> Vec<u8> {
    let mut out = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":".to_vec();
    write::string(&mut out, script.method.name());
    out.extend_from_slice(b",\"params\":{");
    write::string(&mut out, script.method.target_param());
    out.push(b':');
    write::string(&mut out, &script.target);
    for part in [
        ",\"arguments\":",
        &script.arguments,
        members,
        ",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",",
        "\"io.modelcontextprotocol/clientCapabilities\":",
        &script.capabilities.to_json(),
        "}}}",
    ] {
        out.extend_from_slice(part.as_bytes());
    }
    out
}

/// One attempt, from its bytes. `once`: what the first run of the same bytes made, so that only what is no
/// once-value can differ.
async fn run<D: Driver>(
    server: &Server,
    script: &Script,
    message: &[u8],
    request: usize,
    once: Option<OnceValues>,
    driver: &D,
) -> Result<Seen, ScriptError> {
    let mut entropy = [0x5e; 32];
    for (place, byte) in entropy.iter_mut().zip(request.to_be_bytes()) {
        *place = byte;
    }
    let env = RoundEnv::new(START, Entropy::new(entropy), Principal::Authenticated(b"script"));
    let handler = &script.handler;
    let run = match server.receive(message, env) {
        Received::Pending(exchange) => Run::new(exchange, |ctx| handler(ctx)),
        Received::Retrying(exchange) => Run::new(exchange, |ctx| handler(ctx)),
        Received::Rejected(rejected) => {
            let attempt = Attempt::Ended(Err(rejected.error().clone()));
            return Ok(Seen { attempt, diverged: None, once: OnceValues::default(), committed: false });
        }
        Received::Other(_) | Received::Notification(_) => {
            return Err(ScriptError::Unplayable("what is scripted makes no request".to_string()));
        }
    };
    let rehearsal = once.is_some();
    let run = run.rehearse(once);
    let shared = run.shared().clone();
    let mut reply = Vec::new();
    let outcome = driver.drive(run, &mut reply).await;
    let attempt = attempt(&reply, &script.limits)?;
    let inner = shared.lock();
    let asked = |(key, request): (&str, &InputRequest<'static>)| asked(key, request);
    let diverged = inner.tape.divergences().first().cloned();
    let diverged = diverged.map(|divergence| (divergence, inner.tape.left_with().map(asked).collect()));
    let once = match &outcome {
        Outcome::InputRequired(exchange) => exchange.journal().once_values(),
        Outcome::Complete(exchange) | Outcome::Replayed(exchange) => exchange.journal().once_values(),
    };
    let committed = !rehearsal && inner.committed;
    drop(inner);
    Ok(Seen { attempt, diverged, once, committed })
}

fn asked(key: &str, request: &InputRequest<'_>) -> Asked {
    Asked {
        key: key.to_string(),
        kind: request.kind(),
        message: request.message().unwrap_or_default().into_owned(),
        params: request.params().map_or("", |params| params.as_str()).to_string(),
    }
}

fn attempt(reply: &[u8], limits: &Limits) -> Result<Attempt, ScriptError> {
    let mut limits = limits.clone();
    limits.message_bytes = usize::MAX;
    limits.nodes = usize::MAX;
    limits.state_accepted = usize::MAX;
    limits.asks_accepted = usize::MAX;
    let Ok(Message::Response(response)) = admit(reply, &limits) else {
        return Err(ScriptError::Unplayable("the reply is no response".to_string()));
    };
    let result = match response.outcome {
        Ok(result) => result,
        Err(error) => return Ok(Attempt::Ended(Err(error))),
    };
    match read_result(result, &limits).map_err(unplayable)? {
        ResultKind::Complete(result) => Ok(Attempt::Ended(Ok(result.as_str().to_string()))),
        ResultKind::InputRequired(interim) => Ok(Attempt::Asked {
            asks: interim.asks.iter().map(|(key, request)| asked(key, request)).collect(),
            state: interim.state.map_or("\"\"", |state| state.as_str()).to_string(),
        }),
    }
}

/// The script's replies to a round, and the state, as members of the next request.
fn answer(script: &mut Script, round: usize, asks: &[Asked], state: &str) -> Result<String, ScriptError> {
    let mut given = BTreeMap::new();
    for asked in asks {
        let reply = script.answers.get_mut(&asked.key).and_then(VecDeque::pop_front);
        let Some(reply) = reply else {
            return Err(ScriptError::Unanswered { round, asked: asked.clone() });
        };
        given.insert(asked.key.clone(), reply);
    }
    Ok(alloc::format!("{},\"requestState\":{state}", answers_member(&given)))
}

fn answers_member(replies: &BTreeMap<String, Reply>) -> String {
    let mut out = Vec::new();
    for (key, reply) in replies {
        let Reply(Some(json)) = reply else { continue };
        out.push(if out.is_empty() { b'{' } else { b',' });
        write::string(&mut out, key);
        out.push(b':');
        out.extend_from_slice(json.as_bytes());
    }
    match String::from_utf8(out) {
        Ok(members) if !members.is_empty() => alloc::format!(",\"inputResponses\":{members}}}"),
        _ => String::new(),
    }
}

/// A handler that left its path on replay: what it asked then against what it asks now.
fn diverged(rounds: &[Round], divergence: &Divergence, asks: Vec<Asked>) -> ScriptError {
    let keys: Vec<&String> =
        divergence.missing.iter().chain(&divergence.changed).chain(&divergence.added).collect();
    let mut earlier = rounds.iter().enumerate().rev();
    let found = earlier.find(|(_, round)| round.asks.iter().any(|asked| keys.contains(&&asked.key)));
    let (index, first) =
        found.map_or((divergence.round, Vec::new()), |(index, round)| (index, round.asks.clone()));
    let then = if divergence.added.is_empty() && divergence.changed.is_empty() {
        first.iter().filter(|asked| !divergence.missing.contains(&asked.key)).cloned().collect()
    } else {
        asks
    };
    ScriptError::OtherQuestions { round: index + 1, first, then }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_request() {
        let script = Script::new(|_| async { Ok::<_, RpcError>(crate::handler::ToolResult::new()) });
        let bytes = message(&script, "");
        assert!(matches!(admit(&bytes, &Limits::default()), Ok(Message::Request(_))));
        let json =
            crate::jsonrpc::Json::parse(core::str::from_utf8(&bytes).unwrap(), &Limits::default()).unwrap();
        assert!(json.is_object());
    }
}
