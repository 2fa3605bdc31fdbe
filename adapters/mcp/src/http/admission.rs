//! `Host` and `Origin`: where a request believes to be going, and whose page made it. Each is checked by itself (invariant T1).

use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, StatusCode, Uri};

/// The names under which the server answers. With another name in `Host`, somebody's page had a name of its own lead here.
#[derive(Clone, Debug)]
pub struct Hosts(Vec<Name>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Name {
    host: String,
    port: Option<u16>,
}

/// The origins whose pages may send requests. Programs send none, and need not be named.
#[derive(Clone, Debug, Default)]
pub struct Origins(Vec<String>);

/// A name that no host, or no origin, can have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` can't be used: {1}")]
pub struct UnusableName(String, &'static str);

impl Hosts {
    /// The names of this machine for itself: `localhost`, `127.0.0.1` and `[::1]`, with any port.
    #[must_use]
    pub fn loopback() -> Self {
        let name = |host: &str| Name { host: host.to_owned(), port: None };
        Self(["localhost", "127.0.0.1", "::1"].map(name).into())
    }

    /// The same, and `name`: a host, or a host and a port. Without a port, any port fits.
    ///
    /// # Errors
    /// It is no host.
    pub fn with(mut self, name: &str) -> Result<Self, UnusableName> {
        self.0.push(parse(name).ok_or_else(|| UnusableName(name.to_owned(), "it is no host and no `host:port`"))?);
        Ok(self)
    }

    fn allow(&self, sent: &Name) -> bool {
        self.0.iter().any(|name| name.host == sent.host && name.port.is_none_or(|port| sent.port == Some(port)))
    }
}

fn parse(text: &str) -> Option<Name> {
    let authority: Authority = text.parse().ok()?;
    // What stands behind the host is a port or nothing: no user before it, no port that is none.
    let rest = text.strip_prefix(authority.host())?;
    if authority.port_u16().is_none() && !rest.is_empty() {
        return None;
    }
    let host =
        authority.host().trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase();
    let host = host.parse::<IpAddr>().map_or(host, |address| address.to_string());
    if host.is_empty() {
        return None;
    }
    Some(Name { host, port: authority.port_u16() })
}

impl Origins {
    /// The same, and `origin`: a scheme, a host, and a port where it is not the scheme's own, as browsers send it.
    ///
    /// # Errors
    /// No browser sends that.
    pub fn with(mut self, origin: &str) -> Result<Self, UnusableName> {
        let unusable = |why| UnusableName(origin.to_owned(), why);
        let uri: Uri = origin.parse().map_err(|_| unusable("it is no origin"))?;
        let (Some("http" | "https"), Some(_)) = (uri.scheme_str(), uri.authority()) else {
            return Err(unusable("an origin is http or https, `://`, and a host"));
        };
        if origin.ends_with('/') || uri.path() != "/" || uri.query().is_some() {
            return Err(unusable("an origin ends with its host or port"));
        }
        self.0.push(origin.to_ascii_lowercase());
        Ok(self)
    }
}

/// Why a request goes no further.
pub(super) type Refusal = (StatusCode, &'static str);

/// Checks where a request believes to be going.
pub(super) fn check_host(hosts: &Hosts, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
    let bad = (StatusCode::BAD_REQUEST, "exactly one Host header is needed");
    let mut sent = headers.get_all(HOST).iter();
    let (Some(host), None) = (sent.next(), sent.next()) else { return Err(bad) };
    let host = host.to_str().ok().and_then(parse).ok_or(bad)?;
    // A request that names its target whole may not name two.
    let target = uri.authority().is_none_or(|authority| parse(authority.as_str()).as_ref() == Some(&host));
    if !target || !hosts.allow(&host) {
        return Err((StatusCode::FORBIDDEN, "this server has another name; add it to `hosts` if it is its own"));
    }
    Ok(())
}

/// Checks whose page made a request. A page of this very server is no foreign one: its origin is the `Host`, which was checked before
/// by itself.
pub(super) fn check_origin(origins: &Origins, headers: &HeaderMap) -> Result<(), Refusal> {
    let mut sent = headers.get_all(ORIGIN).iter();
    let (Some(origin), rest) = (sent.next(), sent.next()) else { return Ok(()) };
    let own = headers.get(HOST).and_then(|host| host.to_str().ok()).map(|host| format!("http://{host}"));
    let mut known = origins.0.iter().chain(&own);
    let allowed =
        rest.is_none() && origin.to_str().is_ok_and(|origin| known.any(|known| origin.eq_ignore_ascii_case(known)));
    if allowed { Ok(()) } else { Err((StatusCode::FORBIDDEN, "pages of this origin may not send requests")) }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn host(hosts: &Hosts, sent: &[&str], uri: &str) -> u16 {
        let mut headers = HeaderMap::new();
        for value in sent {
            headers.append(HOST, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        check_host(hosts, &headers, &uri.parse().unwrap()).map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn t1_only_our_own_names_are_answered_to() {
        let hosts = Hosts::loopback().with("gate.example:8443").unwrap();
        for ours in
            ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]", "[0:0::1]:80", "localhost.", "gate.example:8443"]
        {
            assert_eq!(host(&hosts, &[ours], "/mcp"), 200, "{ours}");
        }
        for foreign in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "gate.example",
            "gate.example:1",
            "127.0.0.2",
        ] {
            assert_eq!(host(&hosts, &[foreign], "/mcp"), 403, "{foreign}");
        }
        for bad in ["", "a b", "localhost:x", "localhost@evil", "http://localhost", "\u{fc}"] {
            assert_eq!(host(&hosts, &[bad], "/mcp"), 400, "{bad}");
        }
        assert_eq!(host(&hosts, &[], "/mcp"), 400);
        assert_eq!(host(&hosts, &["localhost", "localhost"], "/mcp"), 400);
        assert_eq!(host(&hosts, &["localhost"], "http://localhost/mcp"), 200);
        assert_eq!(host(&hosts, &["localhost"], "http://evil.example/mcp"), 403);
    }

    #[test]
    fn t1_a_page_needs_to_be_named_whatever_the_host() {
        let check = |origins: &Origins, sent: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in sent {
                headers.append(ORIGIN, value.parse().unwrap());
            }
            check_origin(origins, &headers).is_ok()
        };
        let none = Origins::default();
        let mut own = HeaderMap::new();
        own.insert(HOST, HeaderValue::from_static("localhost:8642"));
        for (origin, allowed) in
            [("http://localhost:8642", true), ("http://localhost", false), ("https://localhost:8642", false)]
        {
            own.insert(ORIGIN, HeaderValue::from_static(origin));
            assert_eq!(check_origin(&none, &own).is_ok(), allowed, "{origin}");
        }
        assert!(check(&none, &[]));
        assert!(!check(&none, &["http://localhost"]) && !check(&none, &["null"]) && !check(&none, &[""]));
        let some = Origins::default().with("https://app.example").unwrap();
        assert!(check(&some, &["https://app.example"]));
        for foreign in [
            "http://app.example",
            "https://app.example:444",
            "https://app.example.evil",
            "null",
            "https://app.example/",
        ] {
            assert!(!check(&some, &[foreign]), "{foreign}");
        }
        assert!(!check(&some, &["https://app.example", "https://evil.example"]));
        for unusable in ["app.example", "*", "null", "https://app.example/", "https://app.example/x", "ftp://x"] {
            assert!(Origins::default().with(unusable).is_err(), "{unusable}");
        }
    }
}
