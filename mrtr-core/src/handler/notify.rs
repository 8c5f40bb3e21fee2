//! Progress and log notifications of a request: only while it runs, only if it asked for them, never while
//! replaying.

use alloc::vec::Vec;

use super::Ctx;
use crate::{
    jsonrpc::{Json, write},
    wire::LogLevel,
};

impl Ctx {
    /// Reports progress, if the request carries a progress token. A value that does not rise is dropped, as
    /// are values that are no number.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = &self.shared.facts.progress_token else { return };
        self.shared.notify(|inner| {
            let rises = inner.progress.is_none_or(|last| progress > last);
            if !progress.is_finite() || !rises {
                return None;
            }
            inner.progress = Some(progress);
            let mut params = b"{\"progressToken\":".to_vec();
            token.write(&mut params);
            number(&mut params, "progress", progress);
            if let Some(total) = total.filter(|total| total.is_finite()) {
                number(&mut params, "total", total);
            }
            if let Some(message) = message {
                params.extend_from_slice(b",\"message\":");
                write::string(&mut params, message);
            }
            params.push(b'}');
            Some(notification("notifications/progress", &params))
        });
    }

    /// Sends a log message, if the request asked for this level. `data` is what serde writes; one that
    /// cannot be written is dropped.
    pub fn log<T: serde::Serialize + ?Sized>(&self, level: LogLevel, data: &T) {
        if self.wants_log(level)
            && let Ok(data) = serde_json::to_string(data)
        {
            self.log_text(level, &data);
        }
    }

    /// [`log`](Self::log) of what is JSON already.
    pub fn log_json(&self, level: LogLevel, data: Json<'_>) {
        if self.wants_log(level) {
            self.log_text(level, data.as_str());
        }
    }

    fn wants_log(&self, level: LogLevel) -> bool {
        self.shared.facts.log_level.is_some_and(|wanted| level >= wanted)
    }

    fn log_text(&self, level: LogLevel, data: &str) {
        self.shared.notify(|_| {
            let mut params = b"{\"level\":".to_vec();
            write::string(&mut params, level.name());
            params.extend_from_slice(b",\"data\":");
            write::one_line(&mut params, data);
            params.push(b'}');
            Some(notification("notifications/message", &params))
        });
    }

    /// Whether the request asked for progress.
    #[must_use]
    pub fn wants_progress(&self) -> bool {
        self.shared.facts.progress_token.is_some()
    }
}

fn number(out: &mut Vec<u8>, name: &str, value: f64) {
    out.push(b',');
    write::string(out, name);
    out.push(b':');
    // Whole numbers without a fraction: strict peers read only those.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only whole numbers that a float holds exactly come through"
    )]
    let whole = value as i64;
    #[expect(clippy::cast_precision_loss, reason = "compared with what it was")]
    if whole.unsigned_abs() < 1 << 53 && whole as f64 == value {
        write::integer(out, whole);
    } else if let Ok(text) = serde_json::to_string(&value) {
        // Shorter code than that of the standard library, where it is asked for nothing else.
        out.extend_from_slice(text.as_bytes());
    }
}

fn notification(method: &str, params: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write::notification(&mut out, method, core::str::from_utf8(params).unwrap_or("{}"));
    out
}
