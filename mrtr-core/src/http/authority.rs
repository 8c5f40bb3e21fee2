//! The names in `Host` and `Origin`.

use alloc::string::String;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `host` or `host:port`, parsed. Hosts compare without regard to case and to a dot at the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Authority<'a> {
    host: &'a str,
    port: Option<u16>,
}

/// `scheme://host:port`, parsed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin<'a> {
    scheme: &'a str,
    authority: Authority<'a>,
}

/// An authority of a list of allowed ones. Without a port it allows every port.
#[derive(Clone, Debug)]
pub(super) struct AllowedHost {
    host: String,
    port: Option<u16>,
}

impl AllowedHost {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let Authority { host, port } = Authority::parse(text.as_bytes())?;
        Some(Self { host: host.to_ascii_lowercase(), port })
    }

    pub(super) fn allows(&self, authority: Authority<'_>) -> bool {
        same_host(&self.host, authority.host) && (self.port.is_none() || self.port == authority.port)
    }
}

impl<'a> Authority<'a> {
    pub(super) fn parse(value: &'a [u8]) -> Option<Self> {
        let text = core::str::from_utf8(value).ok()?;
        let (host, rest) = match text.strip_prefix('[') {
            Some(inner) => {
                let (inside, rest) = inner.split_once(']')?;
                inside.parse::<Ipv6Addr>().ok()?;
                (inside, rest)
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                let (host, rest) = text.split_at(end);
                let host = host.strip_suffix('.').unwrap_or(host);
                let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
                if host.is_empty() || !host.bytes().all(known) {
                    return None;
                }
                (host, rest)
            }
        };
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            None => return None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
            Some(_) => return None,
        };
        Some(Self { host, port })
    }

    /// An address instead of a name: nobody can point somebody else's name at it.
    pub(super) fn address(self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Whether it names this machine and nothing else: `localhost`, 127.0.0.0/8, `::1`.
    pub(super) fn is_loopback(self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
            || self.address().is_some_and(|address| match address {
                IpAddr::V4(address) => address.is_loopback(),
                IpAddr::V6(address) => {
                    address.is_loopback()
                        || address.to_ipv4_mapped().is_some_and(|a: Ipv4Addr| a.is_loopback())
                }
            })
    }
}

impl<'a> Origin<'a> {
    pub(super) fn parse(value: &'a [u8]) -> Option<Self> {
        let (scheme, rest) = core::str::from_utf8(value).ok()?.split_once(':')?;
        let authority = rest.strip_prefix("//")?;
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        if scheme.is_empty() || !scheme.bytes().all(letter) {
            return None;
        }
        Some(Self { scheme, authority: Authority::parse(authority.as_bytes())? })
    }

    pub(super) fn authority(self) -> Authority<'a> {
        self.authority
    }

    /// Whether it is a page's: one of the schemes whose names DNS resolves.
    pub(super) fn is_web(self) -> bool {
        self.default_port().is_some()
    }

    pub(super) fn is_same(self, other: Origin<'_>) -> bool {
        self.scheme.eq_ignore_ascii_case(other.scheme)
            && same_host(self.authority.host, other.authority.host)
            && self.port() == other.port()
    }

    /// Whether a request with this `Host` goes where this page came from. `Host` says no scheme: before a proxy
    /// that ends TLS it is the page's that counts.
    pub(super) fn is_from(self, host: Authority<'_>) -> bool {
        same_host(self.authority.host, host.host) && self.port() == host.port.or_else(|| self.default_port())
    }

    fn port(self) -> Option<u16> {
        self.authority.port.or_else(|| self.default_port())
    }

    fn default_port(self) -> Option<u16> {
        if self.scheme.eq_ignore_ascii_case("https") {
            Some(443)
        } else if self.scheme.eq_ignore_ascii_case("http") {
            Some(80)
        } else {
            None
        }
    }
}

/// Names are the same whatever their case, addresses whatever their spelling.
fn same_host(a: &str, b: &str) -> bool {
    let address = |host: &str| host.parse::<IpAddr>().ok();
    a.eq_ignore_ascii_case(b) || address(a).is_some_and(|a| address(b) == Some(a))
}
