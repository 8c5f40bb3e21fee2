//! What a handler's context does.

use super::{Call, error};
use crate::asks;
use crate::mail::{Committed, Event};
use crate::returning::Wish;
use crate::settings::{date, raw, time};
use mrtr_core::wire::LogLevel;
use std::sync::Arc;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
impl Call {
    /// Asks: a `f`orm (message, schema), a `c`onfirmation (message), a `u`rl (message, url), a `s`ampling (parameters)
    /// or the `r`oots. Gives the number to wait for.
    ///
    /// # Errors
    ///
    /// If the attempt is over, or it is not JSON.
    pub fn ask(
        &mut self,
        kind: char,
        key: &str,
        a: &str,
        b: &str,
        optional: bool,
        solicited: bool,
    ) -> Result<u32, JsError> {
        let ctx = self.ctx()?;
        let request = Self::request(kind, a, b)?;
        Ok(self.waits.ask(&ctx, key, request, optional, solicited || kind == 'c'))
    }

    /// Asks for a url whose errand is looked after (A10).
    ///
    /// # Errors
    ///
    /// If the attempt is over.
    pub fn ask_until(&mut self, key: &str, message: &str, url: &str, optional: bool) -> Result<u32, JsError> {
        let ctx = self.ctx()?;
        Ok(self.waits.until(&ctx, key, message, url, optional))
    }

    /// A round without a question (A10).
    ///
    /// # Errors
    ///
    /// If the attempt is over.
    pub fn checkpoint(&mut self) -> Result<u32, JsError> {
        let ctx = self.ctx()?;
        Ok(self.waits.checkpoint(&ctx))
    }

    /// A value that is made once (A11).
    ///
    /// # Errors
    ///
    /// If the attempt is over.
    pub fn once(&mut self, name: &str) -> Result<u32, JsError> {
        let ctx = self.ctx()?;
        Ok(self.waits.once(&ctx, name))
    }

    /// What a wait came to, if it is there; see `asks.rs`.
    pub fn wait(&mut self, number: u32) -> Option<String> {
        self.waits.poll(number)
    }

    /// Whether the errand of this url is to be looked at now.
    pub fn looks(&mut self, number: u32) -> bool {
        self.waits.looks(number)
    }

    /// What looking at it brought.
    pub fn looked(&mut self, number: u32, done: bool) {
        self.waits.looked(number, done);
    }

    /// JavaScript keeps something else than this answer (A11): it is to be [`made`](Self::made) of what
    /// [`wait`](Self::wait) gives, unless that was kept before.
    pub fn keeps(&mut self, number: u32) {
        self.waits.keeps(number);
    }

    /// The value that was made.
    ///
    /// # Errors
    ///
    /// If it is not JSON.
    pub fn made(&mut self, number: u32, value: String) -> Result<(), JsError> {
        raw(&value)?;
        self.waits.made(number, value);
        Ok(())
    }

    /// Nobody waits for it any more.
    pub fn withdraw(&mut self, number: u32) {
        self.waits.drop(number);
    }

    /// The handler gets no further by itself.
    pub fn rests(&self) {
        if let Ok(ctx) = self.ctx() {
            ctx.rests();
        }
    }

    /// It has gone on by itself, and waits for something now.
    pub fn runs(&self) {
        if let Ok(ctx) = self.ctx() {
            ctx.runs_elsewhere();
        }
    }

    /// Whether it counts as running, so that it has to be said when it rests.
    pub fn running(&self) -> bool {
        self.ctx().is_ok_and(|ctx| ctx.counts_as_running())
    }

    /// Whether what runs now has run before.
    pub fn replaying(&self) -> bool {
        self.ctx().is_ok_and(|ctx| ctx.is_replaying())
    }

    /// A named value (A11).
    ///
    /// # Errors
    ///
    /// If the attempt is over.
    pub fn get(&self, name: &str) -> Result<Option<String>, JsError> {
        Ok(self.ctx()?.get_json(name))
    }

    /// Sets a named value.
    ///
    /// # Errors
    ///
    /// If the attempt is over, or it is not JSON.
    pub fn set(&self, name: &str, value: &str) -> Result<(), JsError> {
        self.ctx()?.set_json(name, raw(value)?);
        Ok(())
    }

    /// Reports progress.
    ///
    /// # Errors
    ///
    /// If the attempt is over.
    pub fn progress(
        &self,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> Result<(), JsError> {
        self.ctx()?.progress(progress, total, message.as_deref());
        Ok(())
    }

    /// Logs to the client.
    ///
    /// # Errors
    ///
    /// If the attempt is over, there is no such level, or it is not JSON.
    pub fn log(&self, level: &str, data: &str) -> Result<(), JsError> {
        let level = LogLevel::from_name(level).ok_or_else(|| JsError::new("no such log level"))?;
        self.ctx()?.log_json(level, raw(data)?);
        Ok(())
    }

    /// A ticket for the page behind the url that is asked next under `key`.
    ///
    /// # Errors
    ///
    /// If the attempt is over, or the key is not fit.
    pub fn ticket(&self, key: &str, ttl_ms: f64) -> Result<String, JsError> {
        let ttl = core::time::Duration::from_millis(time(ttl_ms).as_unix_millis());
        self.ctx()?.ticket(key, ttl).map_err(|error| JsError::new(&error.message))
    }

    /// What is called: a tool's or prompt's name, a resource's uri.
    pub fn target(&mut self) -> String {
        match self.ctx() {
            Ok(ctx) => ctx.target().to_owned(),
            Err(_) => self.wish(Wish::Target).unwrap_or_default(),
        }
    }

    /// Its arguments, JSON text of an object.
    pub fn arguments(&mut self) -> String {
        match self.ctx() {
            Ok(ctx) => ctx.arguments().as_str().to_owned(),
            Err(_) => self.wish(Wish::Arguments).unwrap_or_default(),
        }
    }

    /// A part of a template's uri.
    pub fn part(&self, name: &str) -> Option<String> {
        self.ctx().ok()?.part(name).map(ToOwned::to_owned)
    }

    /// When the exchange began.
    pub fn started(&self) -> f64 {
        self.ctx().map_or(0.0, |ctx| date(ctx.started()))
    }

    /// The name of the exchange.
    pub fn exchange(&self) -> String {
        self.ctx().map(|ctx| ctx.exchange().to_string()).unwrap_or_default()
    }

    /// 32 bytes that are the same on every run of the exchange. Never for secrets.
    pub fn seed(&self) -> Vec<u8> {
        self.ctx().map(|ctx| ctx.seed().to_vec()).unwrap_or_default()
    }

    /// What the request in hand declared, JSON text of an object.
    pub fn capabilities(&self) -> String {
        self.ctx().map(|ctx| ctx.capabilities().to_json()).unwrap_or_default()
    }

    /// Leaves something to be done when the handler has succeeded (A12). Gives its number.
    ///
    /// # Errors
    ///
    /// If the attempt is over.
    pub fn on_commit(&self) -> Result<u32, JsError> {
        let ctx = self.ctx()?;
        let mut inner = self.mail.lock();
        let number = inner.commits;
        inner.commits += 1;
        drop(inner);
        let mail = Arc::clone(&self.mail);
        ctx.on_commit_async(move || {
            mail.event(Event::Commit(number));
            Committed(mail, number)
        });
        Ok(number)
    }

    /// A step of the commit is done.
    pub fn committed(&self, number: u32) {
        self.mail.lock().committed.push((number, Ok(())));
    }

    /// A step of the commit has failed.
    pub fn commit_failed(&self, number: u32, code: f64, message: String, data: Option<String>) {
        let error = error(code, message, data);
        self.mail.lock().committed.push((number, Err(error)));
    }

    /// A step of the commit has failed in a way that is nobody's business.
    pub fn commit_broke(&self, number: u32) {
        self.mail.lock().committed.push((number, Err(asks::uncaught("x", ""))));
    }
}
