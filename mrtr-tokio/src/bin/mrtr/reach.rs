//! How the server is reached: the options of `mrtr call` and `mrtr resume`.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use mrtr_core::{
    client::{Config, Policy},
    wire::{ClientCapabilities, Era, Implementation},
};
use mrtr_tokio::client::{Bearer, Client, Head, Options, Proxy, Roots, Stderr};

use crate::{
    Failure,
    args::{Answering, EraName, Reach},
    screen, show,
    trace::events,
};

/// What this client says of itself. It can show everything; what nobody answers in the end fails then, by name.
pub(crate) fn config() -> Config {
    let mut can = ClientCapabilities::default();
    (can.form, can.url, can.sampling, can.roots) = (true, true, true, true);
    Config::new(Implementation::new("mrtr", env!("CARGO_PKG_VERSION")), can)
}

/// With a trace, if that is wanted.
pub(crate) fn options(answering: &Answering) -> Options {
    let mut options = Options::default();
    options.progress = true;
    options.events = Some(events(answering));
    options
}

impl Reach {
    /// Whether requests carry something that is for one server alone.
    pub(crate) fn carries_credentials(&self) -> bool {
        !self.headers.is_empty() || self.bearer_env.is_some()
    }

    /// A client of the server at this url, or of the child that the options name.
    pub(crate) fn client(&self, url: Option<&str>, answering: &Answering) -> Result<Client, Failure> {
        let mut options = options(answering);
        let mut config = config();
        if let Some(seconds) = self.timeout {
            let mut policy = Policy::default();
            policy.request_timeout = Duration::from_secs(seconds);
            policy.request_longest = policy.request_longest.max(policy.request_timeout);
            config = config.policy(policy);
        }
        match self.era {
            None => {}
            // What is said so plainly is not doubted.
            Some(EraName::Modern) => options.connection.legacy.clear(),
            Some(EraName::Legacy) => options.connection.era = Some(Era::Legacy),
        }
        if self.stdio {
            let Some((program, args)) = self.server.split_first() else {
                return Err(Failure::usage("--stdio needs the server's command after `--`"));
            };
            let mut command = tokio::process::Command::new(program);
            command.args(args);
            // Ctrl-C is for this program, which cancels the call first and ends the server then.
            #[cfg(unix)]
            command.process_group(0);
            options.stderr = Stderr::Lines(Arc::new(screen::server_line));
            return Ok(Client::stdio(command, config, options));
        }
        let Some(url) = url else {
            return Err(Failure::usage(
                "where is the server? mrtr call URL NAME, or mrtr call --stdio NAME -- CMD…",
            ));
        };
        for header in &self.headers {
            options.headers.push(parse_header(header)?);
        }
        if let Some(name) = &self.bearer_env {
            let token = std::env::var(name).map_err(|_| Failure::unset("--bearer-env", name))?;
            let bearer = Bearer::new(&token).map_err(|error| Failure::new(format!("{name}: {error}")))?;
            options.authorize = Some(Arc::new(bearer));
        }
        options.proxy = match self.proxy.as_deref() {
            None => Proxy::Environment,
            Some("none") => Proxy::Direct,
            Some(url) => Proxy::Url(url.into()),
        };
        if let Some(path) = &self.ca_file {
            let pem = std::fs::read(path);
            let pem = pem.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
            options.roots = Roots::SystemAnd(pem);
        }
        if self.trace_headers {
            options.heads = Some(Arc::new(|head| head_of(&head)));
        }
        Client::http(url, config, options).map_err(Failure::usage)
    }
}

fn parse_header(header: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    let wrong =
        || Failure::usage(format!("--header {:?} is not of the form `Name: value`", show::line(header, 20)));
    let (name, value) = header.split_once(':').ok_or_else(wrong)?;
    let mut value = HeaderValue::try_from(value.trim()).map_err(|_| wrong())?;
    value.set_sensitive(true);
    Ok((HeaderName::try_from(name.trim()).map_err(|_| wrong())?, value))
}

/// `--trace-headers`.
fn head_of(head: &Head<'_>) {
    match head {
        Head::Request { method, uri, headers } => {
            let path = uri.path_and_query().map_or("/", |path| path.as_str());
            show::note(&format!("→ {method} {}", show::line(path, 400)));
            lines("→", headers);
        }
        Head::Response { status, headers } => {
            show::note(&format!("← {status}"));
            lines("←", headers);
        }
        _ => {}
    }
}

fn lines(mark: &str, headers: &HeaderMap) {
    for (name, value) in headers {
        show::note(&format!("{mark}   {name}: {}", shown(name, value)));
    }
}

/// The value, unless it is a credential: those that the user gave, and those that a session or a browser would hold.
fn shown(name: &HeaderName, value: &HeaderValue) -> String {
    let secret = ["authorization", "proxy-authorization", "cookie", "set-cookie", "mcp-session-id"];
    if value.is_sensitive() || secret.contains(&name.as_str()) {
        return format!("({} bytes, not shown)", value.len());
    }
    show::line(&String::from_utf8_lossy(value.as_bytes()), 400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_shown() {
        let (name, value) = parse_header("X-Api-Key: secret").unwrap();
        assert_eq!((shown(&name, &value).as_str(), name.as_str()), ("(6 bytes, not shown)", "x-api-key"));
        for name in ["authorization", "proxy-authorization", "cookie", "set-cookie", "mcp-session-id"] {
            let name = HeaderName::from_static(name);
            assert!(!shown(&name, &HeaderValue::from_static("secret")).contains("secret"), "{name}");
        }
        let name = HeaderName::from_static("mcp-name");
        assert_eq!(shown(&name, &HeaderValue::from_static("plan")), "plan");
        for wrong in ["", "name", ": value", "a b: c", "a: \u{7f}"] {
            assert!(parse_header(wrong).is_err(), "{wrong}");
        }
    }
}
