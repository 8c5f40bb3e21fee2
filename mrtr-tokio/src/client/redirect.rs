//! Where a redirect leads, and whether it is followed.

use http::Uri;

/// What a `Location` means for a request to `from`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// Another path at the same origin.
    Within(Uri),
    /// Another origin; its name, for people.
    Elsewhere(String),
    /// Nothing that can be read.
    Unreadable,
}

pub(super) fn redirect(from: &Uri, location: Option<&[u8]>) -> Redirect {
    let Some(location) = location.and_then(|location| std::str::from_utf8(location).ok()) else {
        return Redirect::Unreadable;
    };
    let location = location.split('#').next().unwrap_or_default();
    let (Some(scheme), Some(authority)) = (from.scheme_str(), from.authority()) else {
        return Redirect::Unreadable;
    };
    let absolute = if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else if location.contains("://") {
        location.into()
    } else if location.is_empty() || location.contains(':') {
        return Redirect::Unreadable;
    } else {
        let folder = from.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{location}")
    };
    let Ok(to) = absolute.parse::<Uri>() else { return Redirect::Unreadable };
    if origin(&to) == origin(from) { Redirect::Within(to) } else { Redirect::Elsewhere(named(&to)) }
}

/// Scheme, host and port, in one spelling. A url with a user name in it has none.
fn origin(uri: &Uri) -> Option<(String, String, u16)> {
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    let port = uri.port_u16().or(match &*scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    })?;
    Some((scheme, authority.host().to_ascii_lowercase(), port))
}

fn named(uri: &Uri) -> String {
    let port = uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", uri.scheme_str().unwrap_or_default(), uri.host().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within_one_origin_and_nowhere_else() {
        let from = Uri::from_static("https://a.example/x/mcp?q=1");
        let to = |location: &str| redirect(&from, Some(location.as_bytes()));
        for (location, expected) in [
            ("/mcp/", "https://a.example/mcp/"),
            ("mcp/", "https://a.example/x/mcp/"),
            ("https://A.example:443/y#z", "https://A.example:443/y"),
            ("//a.example/y", "https://a.example/y"),
        ] {
            assert_eq!(to(location), Redirect::Within(expected.parse().unwrap()), "{location}");
        }
        for (location, expected) in [
            ("http://a.example/mcp/", "http://a.example"),
            ("https://a.example:8443/", "https://a.example:8443"),
            ("https://b.example/?token=1", "https://b.example"),
            ("//b.example", "https://b.example"),
            ("https://a.example@b.example/", "https://b.example"),
            ("https://me:word@a.example/", "https://a.example"),
        ] {
            assert_eq!(to(location), Redirect::Elsewhere(expected.into()), "{location}");
        }
        for location in ["", "javascript:alert(1)", "http:", "/a b", "#x"] {
            assert_eq!(to(location), Redirect::Unreadable, "{location}");
        }
        assert_eq!(redirect(&from, None), Redirect::Unreadable);
        assert_eq!(redirect(&from, Some(b"/\xff")), Redirect::Unreadable);
    }
}
