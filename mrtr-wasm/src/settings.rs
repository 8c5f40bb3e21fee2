//! Reads what JavaScript hands over as JSON. The TypeScript beside it has checked types already, so that what is of
//! another type here counts as absent.

use core::time::Duration;

use mrtr_core::{Limits, Timestamp, jsonrpc::Json, wire::Implementation};
use wasm_bindgen::JsError;

/// JSON text of `JSON.stringify`.
pub(crate) fn parse(text: &str) -> Result<Json<'_>, JsError> {
    Json::parse(text, &Limits::default()).map_err(|refusal| JsError::new(&refusal.to_string()))
}

/// JSON text of `JSON.stringify`, of any size: what a handler keeps or returns is bounded where it is sent.
pub(crate) fn raw(text: &str) -> Result<Json<'_>, JsError> {
    let mut limits = Limits::default();
    (limits.depth, limits.nodes) = (128, usize::MAX);
    Json::parse(text, &limits).map_err(|_| JsError::new("not JSON"))
}

pub(crate) fn text(of: Json<'_>, name: &str) -> Option<String> {
    of.get(name).and_then(Json::as_string).map(|text| text.into_owned())
}

pub(crate) fn flag(of: Json<'_>, name: &str) -> Option<bool> {
    of.get(name).and_then(Json::as_bool)
}

pub(crate) fn number<T: core::str::FromStr>(of: Json<'_>, name: &str) -> Option<T> {
    of.get(name).and_then(|value| value.as_str().parse().ok())
}

/// Whole milliseconds.
pub(crate) fn millis(of: Json<'_>, name: &str) -> Option<Duration> {
    number(of, name).map(Duration::from_millis)
}

pub(crate) fn texts(of: Json<'_>, name: &str) -> Vec<String> {
    let items = of.get(name).and_then(Json::items).into_iter().flatten();
    items.filter_map(|item| item.as_string().map(|text| text.into_owned())).collect()
}

/// `name`, `version` and `title`.
pub(crate) fn implementation(of: Json<'_>) -> Implementation {
    let mut info =
        Implementation::new(text(of, "name").unwrap_or_default(), text(of, "version").unwrap_or_default());
    info.title = text(of, "title");
    info
}

pub(crate) fn limits(of: Json<'_>) -> Limits {
    let mut limits = Limits::default();
    let Some(of) = of.get("limits") else { return limits };
    let set = |name, field: &mut usize| *field = number(of, name).unwrap_or(*field);
    set("messageBytes", &mut limits.message_bytes);
    set("depth", &mut limits.depth);
    set("nodes", &mut limits.nodes);
    set("asksSent", &mut limits.asks_sent);
    set("asksAccepted", &mut limits.asks_accepted);
    set("answerBytes", &mut limits.answer_bytes);
    set("stateMinted", &mut limits.state_minted);
    set("stateAccepted", &mut limits.state_accepted);
    limits.rounds = number(of, "rounds").unwrap_or(limits.rounds);
    limits.state_only_rounds = number(of, "stateOnlyRounds").unwrap_or(limits.state_only_rounds);
    limits.exchange = millis(of, "exchangeMs").unwrap_or(limits.exchange);
    limits
}

/// `Date.now()`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub(crate) fn time(now: f64) -> Timestamp {
    Timestamp::from_unix_millis(now as u64)
}

#[expect(clippy::cast_precision_loss, reason = "exact for 285,000 years")]
pub(crate) fn date(time: Timestamp) -> f64 {
    time.as_unix_millis() as f64
}

/// 32 bytes of `crypto.getRandomValues`.
pub(crate) fn seed(bytes: &[u8]) -> Result<[u8; 32], JsError> {
    bytes.try_into().map_err(|_| JsError::new("entropy is 32 bytes"))
}
