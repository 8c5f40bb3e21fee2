//! Return-style servers in typed words: one line to ask, one line to read the answer.

use alloc::{string::String, vec::Vec};

use super::{Exchange, Given, InputRequests, Open};
use crate::{
    form::Form,
    jsonrpc::Json,
    wire::{InputRequest, Root, Sampled, Sampling},
};

impl InputRequests {
    /// Asks for a form to be filled in; read it with [`Exchange::answer_form`].
    #[must_use]
    pub fn form(self, key: impl Into<String>, form: &Form) -> Self {
        self.ask(key, form.to_request())
    }

    /// Asks for a yes; read it with [`Exchange::answer_confirm`].
    #[must_use]
    pub fn confirm(self, key: impl Into<String>, message: &str) -> Self {
        self.ask(key, InputRequest::confirm(message))
    }

    /// Asks that a url be opened; read it with [`Exchange::answer_url`].
    #[must_use]
    pub fn url(self, key: impl Into<String>, message: &str, url: &str) -> Self {
        self.ask(key, InputRequest::open_url(message, url))
    }

    /// Asks the client's model; read it with [`Exchange::answer_sample`].
    #[must_use]
    pub fn sample(self, key: impl Into<String>, request: &Sampling) -> Self {
        self.ask(key, request.request())
    }

    /// Asks for the client's roots; read them with [`Exchange::answer_roots`].
    #[must_use]
    pub fn roots(self, key: impl Into<String>) -> Self {
        self.ask(key, InputRequest::roots())
    }
}

/// Answers in typed words. Each takes the question **as it would be asked now** and gives an answer only if it was
/// this question that was asked (G-26).
///
/// ```
/// # use mrtr_core::{Entropy, Timestamp};
/// # use mrtr_core::seal::{KeyRing, Principal, Sealer, Secret};
/// # use mrtr_core::wire::Implementation;
/// use mrtr_core::form::{Field, Form};
/// use mrtr_core::server::{Config, Exchange, Given, InputRequests, Open, Received, RoundEnv, Server};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Draft { tries: u32 }
///
/// #[derive(serde::Deserialize)]
/// struct Party { people: u8 }
///
/// fn book<S: Open>(exchange: Exchange<'_, S>, draft: Draft, now: Timestamp, out: &mut Vec<u8>) {
///     let form = Form::builder("For how many?")
///         .field(Field::integer("people").minimum(1).maximum(12).required())
///         .build()
///         .expect("a valid form");
///     match exchange.answer_form::<Party>("party", &form) {
///         Given::Given(Party { people }) => {
///             let text = format!("Booked for {people} after {} tries.", draft.tries);
///             let result = serde_json::json!({"content": [{"type": "text", "text": text}]});
///             let _ = exchange.complete(&result, out);
///         }
///         Given::Declined | Given::Cancelled => {
///             let _ = exchange.complete(&serde_json::json!({"content": [], "isError": true}), out);
///         }
///         // Not answered, answered with something else, or another question was answered: ask.
///         Given::Missing | Given::Invalid(_) | Given::Changed | _ => {
///             let state = Draft { tries: draft.tries + 1 };
///             // An `Err` has written its reply too.
///             let _ = exchange.require(InputRequests::new().form("party", &form), &state, now, out);
///         }
///     }
/// }
///
/// fn serve(server: &Server, request: &str, now: Timestamp, entropy: [u8; 32]) -> String {
///     let env = RoundEnv::new(now, Entropy::new(entropy), Principal::Authenticated(b"ada"));
///     let mut out = Vec::new();
///     match server.receive(request.as_bytes(), env) {
///         Received::Pending(exchange) => book(exchange, Draft { tries: 0 }, now, &mut out),
///         Received::Retrying(exchange) => {
///             let draft = exchange.state().ok().flatten().unwrap_or(Draft { tries: 0 });
///             book(exchange, draft, now, &mut out);
///         }
///         Received::Rejected(rejected) => rejected.write(&mut out),
///         _ => {}
///     }
///     String::from_utf8(out).expect("JSON")
/// }
///
/// let ring = KeyRing::new(Secret::from_bytes(&[7; 32])?);
/// let server = Server::new(Config::new(Implementation::new("inn", "1"), Sealer::encrypted(&ring, "inn")));
/// let now = Timestamp::from_unix_millis(1_800_000_000_000);
/// let request = |further: &str| format!(
///     r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"book",{further}
///     "_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
///     "io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{}}}}}}}}}}"#);
///
/// let asked: serde_json::Value = serde_json::from_str(&serve(&server, &request(""), now, [1; 32]))?;
/// let state = asked["result"]["requestState"].to_string();
/// let answer = format!(r#""requestState":{state},"inputResponses":{{"party":{{"action":"accept","content":{{"people":4}}}}}},"#);
/// let done = serve(&server, &request(&answer), now, [2; 32]);
/// assert!(done.contains("Booked for 4 after 1 tries."), "{done}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<S: Open> Exchange<'_, S> {
    /// The accepted content of a form. One that came without a state is taken (A7), unless the server demands
    /// states.
    #[must_use]
    pub fn answer_form<T: serde::de::DeserializeOwned>(&self, key: &str, form: &Form) -> Given<T> {
        match self.answer(key, &form.to_request()) {
            Given::Given(content) => match serde_json::from_str(&content) {
                Ok(content) => Given::Given(content),
                // serde's own text quotes the value, and no answer is ever in an error.
                Err(error) => Given::Invalid(alloc::format!(
                    "not of the type that the server reads (at byte {})",
                    error.column()
                )),
            },
            wanting @ (Given::Declined
            | Given::Cancelled
            | Given::Missing
            | Given::Invalid(_)
            | Given::Changed) => wanting.retype(),
        }
    }

    /// A yes to this very message; never one that came without a state (A7).
    #[must_use]
    pub fn answer_confirm(&self, key: &str, message: &str) -> Given<()> {
        self.answer_to(key, &InputRequest::confirm(message), true).map(|_| ())
    }

    /// Consent to open this very url, which is not completion (R-137); never one that came without a state.
    #[must_use]
    pub fn answer_url(&self, key: &str, message: &str, url: &str) -> Given<()> {
        self.answer_to(key, &InputRequest::open_url(message, url), true).map(|_| ())
    }

    /// What the model said.
    #[must_use]
    pub fn answer_sample(&self, key: &str, request: &Sampling) -> Given<Sampled> {
        self.answer(key, &request.request()).map(Sampled::new)
    }

    /// The roots.
    #[must_use]
    pub fn answer_roots(&self, key: &str) -> Given<Vec<Root>> {
        self.answer(key, &InputRequest::roots()).map(|text| Root::list(Json::trusted(&text)))
    }
}

impl<T> Given<T> {
    /// The same with what was given replaced.
    #[must_use]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Given<U> {
        match self {
            Self::Given(given) => Given::Given(change(given)),
            wanting @ (Self::Declined
            | Self::Cancelled
            | Self::Missing
            | Self::Invalid(_)
            | Self::Changed) => wanting.retype(),
        }
    }

    /// The answer, if there is a good one.
    #[must_use]
    pub fn given(self) -> Option<T> {
        match self {
            Self::Given(given) => Some(given),
            Self::Declined | Self::Cancelled | Self::Missing | Self::Invalid(_) | Self::Changed => None,
        }
    }

    /// Whether to ask (again): there is no answer, or none that can be used.
    #[must_use]
    pub const fn is_wanting(&self) -> bool {
        match self {
            Self::Missing | Self::Invalid(_) | Self::Changed => true,
            Self::Given(_) | Self::Declined | Self::Cancelled => false,
        }
    }

    /// The same as another type, for all but a given one.
    fn retype<U>(self) -> Given<U> {
        match self {
            Self::Given(_) | Self::Missing => Given::Missing,
            Self::Declined => Given::Declined,
            Self::Cancelled => Given::Cancelled,
            Self::Invalid(reason) => Given::Invalid(reason),
            Self::Changed => Given::Changed,
        }
    }
}
