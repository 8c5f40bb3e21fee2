//! `mrtr state inspect`: what a state says, and what it is not bound to.

use std::io::Read as _;

use mrtr_core::{
    Limits, Timestamp,
    digest::RequestDigest,
    journal::Journal,
    jsonrpc::Json,
    seal::{
        Claims, Expected, InspectError, Inspected, KeyRing, Principal, Verdict, Visible, inspect,
        inspect_with,
    },
};
use mrtr_tokio::{clock::Clock, keys::Keys};
use serde_json::{Value, json};

use crate::{Failure, args::Inspect, show, utc::utc};

/// The longest state that is read from standard input, in bytes; far more than any server accepts.
const MOST: u64 = 4 << 20;

/// By how much the clocks of a server's replicas may differ, if it does not say otherwise.
const SKEW: std::time::Duration = std::time::Duration::from_secs(60);

pub(crate) async fn run(args: &Inspect) -> Result<(), Failure> {
    let ring = Keys::read_all(&args.key_files).map_err(Failure::new)?;
    let digest = digest(args)?;
    let token = token(&args.token)?;
    let found = look(&token, ring.as_ref(), args, digest.as_ref())?;
    let now = Clock::system().now();
    if args.json {
        show::json(&serde_json::to_string_pretty(&found.json(now, args.show_answers)).map_err(Failure::new)?);
    } else {
        show::result(&found.text(now, args.show_answers));
    }
    match found.problem {
        None => Ok(()),
        Some(problem) => Err(Failure::new(problem)),
    }
}

fn token(given: &str) -> Result<String, Failure> {
    let text = if given == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().take(MOST + 1).read_to_end(&mut bytes).map_err(Failure::new)?;
        String::from_utf8(bytes).map_err(|_| Failure::new("standard input is not the text of a state"))?
    } else {
        given.to_owned()
    };
    match text.trim() {
        "" => Err(Failure::new("there is no state to look at")),
        text => Ok(text.to_owned()),
    }
}

fn digest(args: &Inspect) -> Result<Option<RequestDigest>, Failure> {
    let Some(target) = &args.target else { return Ok(None) };
    let limits = Limits::default();
    let arguments = args.args.as_deref().map(|text| {
        let parsed = Json::parse(text, &limits).ok().filter(|json| json.is_object());
        parsed.ok_or_else(|| Failure::usage("--args is not a JSON object"))
    });
    let digest = RequestDigest::new(&args.method, target, arguments.transpose()?);
    digest.map(Some).map_err(|fault| Failure::usage(format!("--args: {fault}")))
}

/// What there is to be shown.
struct Found {
    visible: Visible,
    /// With its key, or as the suite leaves it readable.
    said: Option<Said>,
    /// Why there is not more.
    problem: Option<InspectError>,
}

struct Said {
    claims: Claims,
    journal: Option<Journal>,
    /// Audience, principal, request; only of an authentic state.
    same: Option<[Option<bool>; 3]>,
}

const PARTS: [&str; 3] = ["audience", "principal", "request"];

fn look(
    token: &str,
    ring: Option<&KeyRing>,
    args: &Inspect,
    digest: Option<&RequestDigest>,
) -> Result<Found, Failure> {
    let visible = inspect(token).map_err(|error| Failure::new(format!("not a state: {error}")))?;
    let unverified = |visible: &Visible| {
        let (claims, payload) = visible.unverified.as_ref()?;
        Some(Said { claims: *claims, journal: journal(payload), same: None })
    };
    let Some(ring) = ring else {
        let said = unverified(&visible);
        return Ok(Found { visible, said, problem: None });
    };
    let expected = Expected {
        audience: args.audience.as_deref(),
        principal: match &args.principal {
            Some(name) => Some(Principal::Authenticated(name.as_bytes())),
            None => args.anonymous.then_some(Principal::Anonymous),
        },
        request: digest.map(RequestDigest::as_bytes),
    };
    Ok(match inspect_with(ring, token, &expected) {
        Ok(Inspected { visible, claims, payload, same_audience, same_principal, same_request, .. }) => {
            let same = Some([same_audience, same_principal, same_request]);
            Found { visible, said: Some(Said { claims, journal: journal(&payload), same }), problem: None }
        }
        Err(problem) => {
            let said = unverified(&visible);
            Found { visible, said, problem: Some(problem) }
        }
    })
}

/// With caps that no server goes beyond, for this one's are not known here.
fn journal(payload: &[u8]) -> Option<Journal> {
    let mut limits = Limits::default();
    limits.rounds = u16::MAX.into();
    limits.state_only_rounds = u16::MAX.into();
    limits.asks_sent = 4_096;
    Journal::decode(payload, &limits).ok()
}

impl Said {
    /// Why it would be refused now, as far as could be compared.
    fn verdict(&self, now: Timestamp) -> Option<Verdict> {
        let differs = |part: usize| self.same.is_some_and(|same| same.get(part) == Some(&Some(false)));
        if self.claims.issued > now.saturating_add(SKEW) {
            Some(Verdict::NotYetValid)
        } else if now >= self.claims.expires {
            Some(Verdict::Expired)
        } else if differs(0) {
            Some(Verdict::OtherAudience)
        } else if differs(1) {
            Some(Verdict::OtherPrincipal)
        } else if differs(2) {
            Some(Verdict::OtherRequest)
        } else {
            None
        }
    }

    fn answer(&self, round: usize, key: &str) -> Option<String> {
        let mut answers = self.journal.iter().flat_map(Journal::answers);
        answers.find(|(of, named, _)| *of == round && *named == key).map(|(_, _, text)| text)
    }
}

impl Found {
    fn text(&self, now: Timestamp, show_answers: bool) -> String {
        let Visible { version, suite, key, characters, payload_bytes, .. } = &self.visible;
        let mut lines = vec![
            format!("version    {version}"),
            format!("suite      {suite}"),
            format!("key        {key}"),
            format!("size       {characters} characters, with {payload_bytes} bytes of journal"),
        ];
        let Some(said) = &self.said else {
            lines.push("Without the key there is nothing more to see.".into());
            return lines.join("\n");
        };
        if said.same.is_none() {
            lines.push("What follows is readable without a key; without one it is NOT VERIFIED.".into());
        }
        let claims = &said.claims;
        let only = match claims.state_only {
            0 => String::new(),
            count => format!(", {count} of the rounds so far without a question"),
        };
        lines.push(format!("exchange   {}", claims.exchange));
        lines.push(format!("round      {}{only}", claims.round));
        for (name, time) in
            [("issued", claims.issued), ("expires", claims.expires), ("deadline", claims.deadline)]
        {
            lines.push(format!("{name:<10} {} ({})", utc(time), distance(time, now)));
        }
        for (part, same) in PARTS.iter().zip(said.same.into_iter().flatten()) {
            let word = match same {
                Some(true) => "the same",
                Some(false) => "DIFFERS",
                None => "not compared",
            };
            lines.push(format!("{part:<10} {word}"));
        }
        lines.push(match (said.verdict(now), said.same) {
            (Some(verdict), _) => format!("verdict    {verdict}: it would be refused"),
            (None, Some([Some(_), Some(_), Some(_)])) => "verdict    it would be accepted".into(),
            (None, Some(_)) => "verdict    nothing wrong with what was compared".into(),
            (None, None) => "verdict    none without a key".into(),
        });
        match &said.journal {
            None => lines.push("The payload is no journal that is known here.".into()),
            Some(journal) => {
                let asks: Vec<_> = journal.asks().collect();
                lines.push(
                    format!("asked      {}", if asks.is_empty() { "nothing yet" } else { "" })
                        .trim_end()
                        .into(),
                );
                for ask in &asks {
                    let silent = if ask.silent { ", never sent" } else { "" };
                    let mut line = format!(
                        "  round {} {:?}: {}, {}{silent}",
                        ask.round + 1,
                        ask.key,
                        ask.kind,
                        ask.outcome
                    );
                    if let Some(text) = said.answer(ask.round, ask.key).filter(|_| show_answers) {
                        line.push_str(&format!(": {text}"));
                    }
                    lines.push(line);
                }
            }
        }
        lines.join("\n")
    }

    fn json(&self, now: Timestamp, show_answers: bool) -> Value {
        let Visible { version, suite, key, characters, payload_bytes, .. } = &self.visible;
        let mut out = json!({
            "version": version, "suite": suite, "key": key.to_string(), "characters": characters,
            "payloadBytes": payload_bytes, "verified": false,
        });
        let mut set =
            |name: &str, value: Value| out.as_object_mut().map(|out| out.insert(name.into(), value));
        if let Some(problem) = &self.problem {
            set("problem", json!(problem.to_string()));
        }
        let Some(said) = &self.said else { return out };
        let claims = &said.claims;
        set("exchange", json!(claims.exchange.to_string()));
        set("round", json!(claims.round));
        set("stateOnlyRounds", json!(claims.state_only));
        set("issued", json!(utc(claims.issued)));
        set("expires", json!(utc(claims.expires)));
        set("deadline", json!(utc(claims.deadline)));
        if let Some(same) = said.same {
            set("verified", json!(true));
            set(
                "same",
                PARTS.iter().zip(same).map(|(part, same)| (String::from(*part), json!(same))).collect(),
            );
            set("verdict", json!(said.verdict(now).map(Verdict::name)));
        }
        let asks = said.journal.as_ref().map(|journal| {
            let ask = |ask: mrtr_core::journal::AskedBefore<'_>| {
                let mut entry = json!({
                    "round": ask.round + 1, "key": ask.key, "kind": ask.kind.name(), "outcome": ask.outcome,
                    "sent": !ask.silent,
                });
                let answer = said.answer(ask.round, ask.key).filter(|_| show_answers);
                if let (Some(entry), Some(text)) = (entry.as_object_mut(), answer) {
                    let answer = serde_json::from_str(&text).unwrap_or(Value::String(text));
                    entry.insert("answer".into(), answer);
                }
                entry
            };
            journal.asks().map(ask).collect::<Vec<_>>()
        });
        set("asked", json!(asks));
        out
    }
}

/// How far `time` is from `now`, in whole seconds.
fn distance(time: Timestamp, now: Timestamp) -> String {
    if time > now {
        format!("in {} s", time.saturating_since(now).as_secs())
    } else {
        format!("{} s ago", now.saturating_since(time).as_secs())
    }
}
