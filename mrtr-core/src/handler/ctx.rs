//! What a handler asks through.

use alloc::{borrow::ToOwned, string::String, sync::Arc, vec::Vec};
use core::future::Future;

use sha2::{Digest, Sha256};

use super::{Ask, AskError, RpcError, ask::unfit, shared::Shared};
use crate::{
    form::{Elicited, Form},
    jsonrpc::Json,
    limits::Limits,
    seal::ExchangeId,
    tape::never_early,
    time::Timestamp,
    wire::{Action, AskingMethod, ClientCapabilities, InputRequest, Root, Sampled, Sampling},
};

/// A handler's context: the request, the asks, and what stays the same from run to run.
///
/// Cheap to clone. Keys are `[A-Za-z0-9_.-]{1,64}`, chosen by the author: they are on the wire, and they
/// survive an ask that is put in above. Using a key again, in a loop say, asks anew under `key#1`, `key#2`, …
/// (A1).
#[derive(Clone)]
pub struct Ctx {
    pub(super) shared: Arc<Shared>,
}

impl Ctx {
    /// Asks for a form to be filled in.
    ///
    /// The answer's content is validated against the form before it gets here; one that does not fit is asked
    /// again up to three times (R-132, G-18). Answers that came without a state are taken (A7) unless
    /// [`solicited`](Ask::solicited).
    pub fn elicit<T: serde::de::DeserializeOwned>(&self, key: &str, form: &Form) -> Ask<Elicited<T>> {
        self.ask_as(key, form.to_request(), false, |text| match (text.strip_prefix('a'), text) {
            (Some(content), _) => {
                serde_json::from_str(content).map(Elicited::Accept).map_err(|error| unfit(&error))
            }
            (None, "d") => Ok(Elicited::Decline),
            (None, "c") => Ok(Elicited::Cancel),
            (None, _) => Err(kept()),
        })
    }

    /// Asks for a yes. Never taken from a request without a state: an answer counts only for the message that
    /// was shown (A7).
    pub fn confirm(&self, key: &str, message: impl AsRef<str>) -> Ask<Action> {
        self.ask_as(key, InputRequest::confirm(message.as_ref()), true, decode_action)
    }

    /// Asks that a url be opened. Accept is consent to open it, not completion (R-137).
    pub fn elicit_url(&self, key: &str, message: impl AsRef<str>, url: impl AsRef<str>) -> Ask<Action> {
        self.ask_as(key, InputRequest::open_url(message.as_ref(), url.as_ref()), true, decode_action)
    }

    /// Asks the client's model (R-145).
    pub fn sample(&self, key: &str, request: &Sampling) -> Ask<Sampled> {
        self.ask_as(key, request.request(), false, |text| {
            if text.starts_with('k') { Err(kept()) } else { Ok(Sampled::new(text.to_owned())) }
        })
    }

    /// Asks for the client's roots (R-154).
    pub fn roots(&self, key: &str) -> Ask<Vec<Root>> {
        self.ask_as(key, InputRequest::roots(), false, |text| {
            if text.starts_with('k') { Err(kept()) } else { Ok(Root::list(Json::trusted(text))) }
        })
    }

    /// Asks anything: the accepted content, result or roots as JSON text, or what the person did.
    pub fn ask(&self, key: &str, request: InputRequest<'_>) -> Ask<Elicited<String>> {
        self.ask_as(key, request.into_owned(), false, |text| match (text.strip_prefix('a'), text) {
            (Some(content), _) => Ok(Elicited::Accept(content.to_owned())),
            (None, "d") => Ok(Elicited::Decline),
            (None, "c") => Ok(Elicited::Cancel),
            (None, other) => Ok(Elicited::Accept(other.to_owned())),
        })
    }

    /// A round without a question: lets the client come again, so that work can move or rest (R-066, A10).
    /// With an ask open it rides in that ask's round.
    pub fn checkpoint(&self) -> Ask<()> {
        let ticket = self.shared.register("", None, true);
        Ask::new(self.shared.clone(), ticket, |_| Ok(())).passing(|| Some(()))
    }

    fn ask_as<T>(
        &self,
        key: &str,
        request: InputRequest<'static>,
        solicited: bool,
        decode: fn(&str) -> Result<T, String>,
    ) -> Ask<T> {
        let solicited = solicited || never_early(&request);
        let ticket = self.shared.register(key, Some(request), solicited);
        Ask::new(self.shared.clone(), ticket, decode)
    }

    /// A value that is made once in an exchange and found again on every later run (A11): an effect, a reading
    /// of the outside world. Recorded under the name and which use of it in the run this is.
    ///
    /// Without a ledger it is made once per accepted copy of a retry; before the first question, once per
    /// first request.
    ///
    /// # Errors
    ///
    /// If the value cannot be written as JSON and read back as `T`. The attempt then fails whatever the
    /// handler does with this error.
    pub fn once<T>(&self, name: &str, make: impl FnOnce() -> T) -> Result<T, RpcError>
    where
        T: serde::Serialize + serde::de::DeserializeOwned,
    {
        let looked_up = self.shared.lock().tape.once(name);
        match looked_up {
            Ok(text) => self.read_once(name, &text),
            Err(which) => {
                let text = self.write_once(name, &make())?;
                self.shared.lock().tape.record_once(which, text.clone());
                self.read_once(name, &text)
            }
        }
    }

    /// [`once`](Self::once) for a value that takes waiting for. Await it **before** you ask: I/O beside an ask
    /// makes the end of a round depend on timing.
    ///
    /// # Errors
    ///
    /// As for [`once`](Self::once).
    pub async fn once_async<T, F>(&self, name: &str, make: F) -> Result<T, RpcError>
    where
        T: serde::Serialize + serde::de::DeserializeOwned,
        F: Future<Output = T>,
    {
        let looked_up = self.shared.lock().tape.once(name);
        match looked_up {
            Ok(text) => self.read_once(name, &text),
            Err(which) => {
                let text = self.write_once(name, &make.await)?;
                self.shared.lock().tape.record_once(which, text.clone());
                self.read_once(name, &text)
            }
        }
    }

    /// [`once_async`](Self::once_async) for a value that is JSON text already, of a handler in another language say.
    ///
    /// # Errors
    ///
    /// If what was made is not one JSON value. The attempt then fails whatever the handler does with this error.
    pub async fn once_json(
        &self,
        name: &str,
        make: impl Future<Output = String>,
    ) -> Result<String, RpcError> {
        let looked_up = self.shared.lock().tape.once(name);
        match looked_up {
            Ok(text) => Ok(text),
            Err(which) => {
                let text = make.await;
                let unbounded = Limits { nodes: usize::MAX, ..Limits::default() };
                let value = Json::parse(&text, &unbounded).map_err(|_| self.spoil(name))?.as_str();
                self.shared.lock().tape.record_once(which, value.into());
                Ok(value.into())
            }
        }
    }

    /// The same of JSON text that needs no check.
    pub(super) fn once_text(&self, name: &str, make: impl FnOnce() -> String) -> String {
        let looked_up = self.shared.lock().tape.once(name);
        looked_up.unwrap_or_else(|which| {
            let text = make();
            self.shared.lock().tape.record_once(which, text.clone());
            text
        })
    }

    fn write_once<T: serde::Serialize>(&self, name: &str, value: &T) -> Result<String, RpcError> {
        serde_json::to_string(value).map_err(|_| self.spoil(name))
    }

    /// Also the first run reads back what was written, so that it sees what every later one will see.
    fn read_once<T: serde::de::DeserializeOwned>(&self, name: &str, text: &str) -> Result<T, RpcError> {
        serde_json::from_str(text).map_err(|_| self.spoil(name))
    }

    fn spoil(&self, name: &str) -> RpcError {
        self.shared.lock().tape.spoil_once(name);
        RpcError::internal("Internal error")
    }

    /// A named value set in this run or an earlier attempt; memory across rounds (A11).
    ///
    /// Do not decide by it whether to ask: the next run would find another value there and leave its path.
    #[must_use]
    pub fn get<T: serde::de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        let text = self.shared.lock().tape.value(name)?;
        serde_json::from_str(&text).ok()
    }

    /// Sets a named value, which travels in the sealed state.
    ///
    /// # Errors
    ///
    /// If the value cannot be written as JSON.
    pub fn set<T: serde::Serialize + ?Sized>(&self, name: &str, value: &T) -> Result<(), RpcError> {
        let text = serde_json::to_string(value).map_err(|_| RpcError::internal("Internal error"))?;
        self.shared.lock().tape.set_value(name, text);
        Ok(())
    }

    /// [`get`](Self::get) of a value as JSON text.
    #[must_use]
    pub fn get_json(&self, name: &str) -> Option<String> {
        self.shared.lock().tape.value(name)
    }

    /// [`set`](Self::set) of what is JSON already.
    pub fn set_json(&self, name: &str, value: Json<'_>) {
        self.shared.lock().tape.set_value(name, value.as_str().into());
    }

    /// When the exchange began: the same on every run.
    #[must_use]
    pub fn started(&self) -> Timestamp {
        self.shared.facts.started
    }

    /// 32 bytes for a deterministic random generator: the same on every run, others in another exchange.
    /// Never for secrets: whoever can read the state knows them.
    #[must_use]
    pub fn seed(&self) -> [u8; 32] {
        Sha256::new()
            .chain_update(b"mrtr/v1/seed")
            .chain_update(self.shared.facts.exchange.as_bytes())
            .finalize()
            .into()
    }

    /// Names the exchange, for logs.
    #[must_use]
    pub fn exchange(&self) -> ExchangeId {
        self.shared.facts.exchange
    }

    /// Whether what runs now has run before. Log only when `false`.
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        self.shared.lock().tape.is_replaying()
    }

    /// Which of the three methods.
    #[must_use]
    pub fn method(&self) -> AskingMethod {
        self.shared.facts.method
    }

    /// The tool's or prompt's name, or the resource's uri.
    #[must_use]
    pub fn target(&self) -> &str {
        self.shared.facts.texts.target()
    }

    /// The arguments, an object.
    #[must_use]
    pub fn arguments(&self) -> Json<'_> {
        self.shared.facts.texts.arguments()
    }

    /// The arguments as a type of your own.
    ///
    /// # Errors
    ///
    /// `-32602` that says what does not fit.
    pub fn args<T: serde::de::DeserializeOwned>(&self) -> Result<T, RpcError> {
        self.arguments()
            .decode()
            .map_err(|error| RpcError::invalid_params(alloc::format!("Invalid params: arguments: {error}")))
    }

    /// One argument.
    ///
    /// # Errors
    ///
    /// `-32602` that names it, if it is missing or does not fit.
    pub fn argument<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, RpcError> {
        let value = self.arguments().get(name);
        let missing =
            || RpcError::invalid_params(alloc::format!("Invalid params: arguments.{name} is missing"));
        let text = value.ok_or_else(missing)?.as_str();
        serde_json::from_str(text).map_err(|error| {
            RpcError::invalid_params(alloc::format!("Invalid params: arguments.{name}: {error}"))
        })
    }

    /// One argument that may be missing: what a caller may give up front, and is asked for otherwise.
    ///
    /// ```
    /// # use mrtr_core::{form::{Elicited, Form}, handler::{AskError, Ctx, RpcError, ToolResult}};
    /// # #[derive(serde::Deserialize)] struct Named { name: String }
    /// async fn greet(ctx: Ctx, form: Form) -> Result<ToolResult, RpcError> {
    ///     let name = match ctx.optional_argument("name")? {
    ///         Some(name) => name,
    ///         None => match ctx.elicit("name", &form).optional().await {
    ///             Ok(Elicited::Accept(Named { name })) => name,
    ///             // A client that cannot be asked learns what to give instead.
    ///             Err(AskError::Unavailable) => return Ok(ToolResult::error("Call again with `name`.")),
    ///             _ => return Ok(ToolResult::text("Hello, whoever you are.")),
    ///         },
    ///     };
    ///     Ok(ToolResult::text(format!("Hello, {name}.")))
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// `-32602` that names it, if it is there and does not fit. A null counts as missing.
    pub fn optional_argument<T: serde::de::DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Option<T>, RpcError> {
        match self.arguments().get(name) {
            Some(value) if !value.is_null() => self.argument(name).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    /// A part of the uri, if a resource template with that name in it matched.
    #[must_use]
    pub fn part(&self, name: &str) -> Option<&str> {
        self.shared.facts.parts.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// What the request in hand declared. It may differ from round to round (R-108); to go on without an ask
    /// that cannot be answered, make it [`optional`](Ask::optional) instead of looking here.
    #[must_use]
    pub fn capabilities(&self) -> ClientCapabilities {
        self.shared.facts.capabilities
    }

    /// Who sent the request, as the transport verified it; `None` for an anonymous one.
    #[must_use]
    pub fn principal(&self) -> Option<&[u8]> {
        self.shared.facts.principal.as_deref()
    }
}

impl core::fmt::Debug for Ctx {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ctx")
            .field("method", &self.shared.facts.method)
            .field("target", &self.target())
            .field("exchange", &self.shared.facts.exchange)
            .finish_non_exhaustive()
    }
}

fn decode_action(text: &str) -> Result<Action, String> {
    match text.as_bytes().first() {
        Some(b'a') => Ok(Action::Accept),
        Some(b'd') => Ok(Action::Decline),
        Some(b'c') => Ok(Action::Cancel),
        _ => Err(kept()),
    }
}

/// Of the answer only a projection was journalled (A11), by a run that asked with [`Ask::keep`]; nobody knows what it was.
fn kept() -> String {
    String::from("only what an earlier version kept of it is known")
}

const _: () = {
    const fn shared<T: Clone + Send + Sync>() {}
    shared::<Ctx>();
    const fn sent<T: Send>() {}
    sent::<Ask<AskError>>();
};
