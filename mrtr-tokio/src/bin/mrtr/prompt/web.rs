//! Web addresses of a server's: where one leads, how it is shown, how it is opened.

use std::{
    io::IsTerminal as _,
    process::{Command, Stdio},
    time::Duration,
};

use crate::show;

/// An address that a browser can open, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Web<'a> {
    before: &'a str,
    pub(super) host: &'a str,
    after: &'a str,
    encrypted: bool,
}

impl<'a> Web<'a> {
    /// Where a browser would go: what stands between the slashes, after any user name and before any port.
    pub(super) fn read(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let encrypted = match () {
            () if scheme.eq_ignore_ascii_case("https") => true,
            () if scheme.eq_ignore_ascii_case("http") => false,
            () => return None,
        };
        let authority = rest.split(['/', '?', '#', '\\']).next()?;
        let named = authority.rsplit('@').next()?;
        let host = if named.starts_with('[') {
            named.split_inclusive(']').next()?
        } else {
            named.split(':').next()?
        };
        let at = scheme.len() + "://".len() + authority.len() - named.len();
        let (before, rest) = url.split_at_checked(at)?;
        let (host, after) = rest.split_at_checked(host.len())?;
        (!host.is_empty()).then_some(Self { before, host, after, encrypted })
    }

    /// The whole of it, the host standing out where that can be seen.
    pub(super) fn shown(&self) -> String {
        let Self { before, host, after, .. } = self;
        if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
            return format!("{before}\x1b[1;7m{host}\x1b[0m{after}");
        }
        format!("{before}{host}{after}")
    }

    /// What to look at twice before it is opened.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        if !self.host.is_ascii() {
            all.push(format!("{} has letters that may look like others.", self.host));
        }
        let mut foreign = false;
        let labels = self.host.split('.').map(|label| match label.get(..4) {
            Some(mark) if mark.eq_ignore_ascii_case("xn--") => {
                foreign = true;
                // A longer one is no name of a host, and would take long.
                let coded = label.get(4..).filter(|coded| coded.len() < 60);
                coded.and_then(punycode).unwrap_or_else(|| label.into())
            }
            Some(_) | None => label.into(),
        });
        let read: Vec<String> = labels.collect();
        if foreign {
            let read = show::line(&read.join("."), 253);
            all.push(format!(
                "{} is shown by a browser as {read}: its letters may look like others.",
                self.host
            ));
        }
        if self.before.contains('@') {
            all.push(format!("What stands before the @ is no address: it leads to {}.", self.host));
        }
        if !self.encrypted && !matches!(self.host, "localhost" | "127.0.0.1" | "[::1]") {
            all.push(String::from("It is not encrypted: others on the way can read and change the page."));
        }
        all
    }
}

/// A label's letters (RFC 3492), without its `xn--`.
fn punycode(label: &str) -> Option<String> {
    let (basic, coded) = label.rsplit_once('-').unwrap_or(("", label));
    let mut letters: Vec<char> = basic.chars().collect();
    let (mut code, mut at, mut bias) = (128_u32, 0_u32, 72_u32);
    let mut digits = coded.bytes();
    let mut first = true;
    while digits.len() > 0 {
        let (before, mut weight, mut base) = (at, 1_u32, 36_u32);
        loop {
            let digit = match digits.next()? {
                byte @ b'a'..=b'z' => u32::from(byte - b'a'),
                byte @ b'A'..=b'Z' => u32::from(byte - b'A'),
                byte @ b'0'..=b'9' => u32::from(byte - b'0') + 26,
                _ => return None,
            };
            at = at.checked_add(digit.checked_mul(weight)?)?;
            let threshold = base.saturating_sub(bias).clamp(1, 26);
            if digit < threshold {
                break;
            }
            weight = weight.checked_mul(36 - threshold)?;
            base += 36;
        }
        let count = u32::try_from(letters.len()).ok()? + 1;
        let mut delta = (at - before) / if first { 700 } else { 2 };
        first = false;
        delta += delta / count;
        bias = 0;
        while delta > 455 {
            delta /= 35;
            bias += 36;
        }
        bias += 36 * delta / (delta + 38);
        code = code.checked_add(at / count)?;
        at %= count;
        letters.insert(usize::try_from(at).ok()?, char::from_u32(code)?);
        at += 1;
    }
    Some(letters.into_iter().collect())
}

/// Whether there is something here that opens pages for a person.
pub(super) fn can_open() -> bool {
    // Without a display the opener would start a browser in this terminal, in the middle of the prompts.
    let display = || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    cfg!(any(windows, target_os = "macos")) || display()
}

/// Gives the address to the system's browser, which neither this program nor a model can look into.
pub(super) fn open(url: &str) -> Result<(), String> {
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        let mut command = Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else {
        Command::new("xdg-open")
    };
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut opener = command.spawn().map_err(|error| error.to_string())?;
    // It may stay as long as the browser does. If it fails, it fails soon.
    for _ in 0..20 {
        match opener.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(status.to_string()),
            Ok(None) => std::thread::sleep(Duration::from_millis(50)),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(url: &str) -> Option<&str> {
        let web = Web::read(url)?;
        assert_eq!(format!("{}{}{}", web.before, web.host, web.after), url);
        Some(web.host)
    }

    #[test]
    fn the_host_is_where_a_browser_would_go_r_141() {
        assert_eq!(host("https://bank.example@evil.example/login"), Some("evil.example"));
        assert_eq!(host("https://a.example:8443?x=https://b.example"), Some("a.example"));
        assert_eq!(host("https://evil.example\\@bank.example"), Some("evil.example"));
        assert_eq!(host("HTTPS://A.example#@b.example"), Some("A.example"));
        assert_eq!(host("http://me:word@[::1]:3000/"), Some("[::1]"));
        for none in
            ["javascript:alert(1)", "https:///x", "https://", "file:///etc/passwd", "x", "https:/a.example"]
        {
            assert_eq!(host(none), None, "{none}");
        }
    }

    #[test]
    fn letters_that_look_like_others_are_named_r_141() {
        let warnings = |url| Web::read(url).unwrap().warnings();
        assert_eq!(warnings("https://a.example/"), Vec::<String>::new());
        assert_eq!(warnings("http://localhost:3000/"), Vec::<String>::new());
        let found = warnings("https://www.xn--80ak6aa92e.com/");
        assert!(found[0].contains("www.аррӏе.com"), "{found:?}");
        assert!(warnings("https://аpple.com/")[0].contains("look like"));
        assert!(warnings("https://xn--!!!.example/").len() == 1);
        assert!(warnings("https://bank.example@evil.example/")[0].contains("leads to evil.example"));
        assert!(warnings("http://a.example/")[0].contains("not encrypted"));
    }

    #[test]
    fn punycode_as_the_rfc_has_it() {
        for (coded, expected) in [
            ("bcher-kva", "bücher"),
            ("egbpdaj6bu4bxfgehfvwxn", "ليهمابتكلموشعربي؟"),
            ("ihqwcrb4cv8a8dqg056pqjye", "他们为什么不说中文"),
            ("3B-ww4c5e180e575a65lsy2b", "3年B組金八先生"),
            ("80ak6aa92e", "аррӏе"),
        ] {
            assert_eq!(punycode(coded).as_deref(), Some(expected), "{coded}");
        }
        for wrong in ["a-99999999999999", "ä", "a-!"] {
            assert_eq!(punycode(wrong), None, "{wrong}");
        }
    }
}
