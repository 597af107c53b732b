//! Endpoints to listen on or connect to: `http://host:port` or `https://host:port`.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// A scheme, a host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether the scheme is `https` or `tls`.
    pub tls: bool,
    /// A name, an IPv4 address, or an IPv6 address without its brackets.
    pub host: String,
    /// The port. In an HTTP URL, the default is 80 or 443.
    pub port: u16,
}

impl Endpoint {
    /// The first address of the host from the system's resolver. Errors: the host cannot be resolved.
    pub fn resolve(&self) -> io::Result<SocketAddr> {
        Ok(self.addresses()?[0])
    }

    /// All addresses of the host from the system's resolver, at least one. Errors: the host cannot be resolved.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        let unknown = |why: String| io::Error::other(format!("cannot resolve `{}`: {why}", self.host));
        let addresses =
            (self.host.as_str(), self.port).to_socket_addrs().map_err(|e| unknown(e.to_string()))?;
        let addresses: Vec<_> = addresses.collect();
        if addresses.is_empty() { Err(unknown("it has no address".into())) } else { Ok(addresses) }
    }

    /// Whether the host is an IP address rather than a name.
    pub fn is_address(&self) -> bool {
        self.host.parse::<IpAddr>().is_ok()
    }

    fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// Host and port as in a `Host` field, without a default port.
    pub fn authority(&self) -> String {
        if self.port == default_port(self.tls) { self.bracketed_host() } else { self.host_and_port() }
    }

    /// Host and port; an IPv6 address in brackets.
    pub(crate) fn host_and_port(&self) -> String {
        format!("{}:{}", self.bracketed_host(), self.port)
    }

    fn bracketed_host(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }

    /// Parses `HOST:PORT`. Errors: the reason why the text has another form.
    pub(crate) fn with_port(text: &str, tls: bool) -> Result<Self, String> {
        let (host, port) = host_and_port(text)?;
        let host = ascii_host(host)?.into_owned();
        let port = port.ok_or_else(|| "missing port".to_owned())?;
        Ok(Self { tls, host, port })
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}`: {why}: expected http://HOST:PORT or https://HOST:PORT");
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(match host_and_port(text) {
                Ok((_, Some(_))) => {
                    format!("`{text}`: missing scheme: expected http://{text} or https://{text}")
                }
                _ => wrong("missing scheme"),
            });
        };
        let tls = match scheme {
            _ if scheme.eq_ignore_ascii_case("http") => false,
            _ if scheme.eq_ignore_ascii_case("https") => true,
            _ => return Err(wrong(&format!("unknown scheme `{scheme}`"))),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (host, port) = host_and_port(authority).map_err(|why| wrong(&why))?;
        let host = ascii_host(host).map_err(|why| wrong(&why))?;
        let endpoint = Self { tls, host: host.into_owned(), port: port.unwrap_or(default_port(tls)) };
        match path {
            "" | "/" => Ok(endpoint),
            _ => Err(format!(
                "`{text}`: a path is not supported, requests keep their own: expected {}://{authority}",
                endpoint.scheme()
            )),
        }
    }
}

/// A host in its ASCII form, for DNS, TLS and HTTP: `xn--bcher-kva.example` for `bücher.example` (UTS 46). Errors: the
/// host has no ASCII form.
pub fn ascii_host(host: &str) -> Result<Cow<'_, str>, String> {
    if host.is_ascii() {
        return Ok(host.into());
    }
    let host_in_ascii = idna::domain_to_ascii_cow(host.as_bytes(), idna::AsciiDenyList::URL);
    host_in_ascii
        .map_err(|_| format!("invalid host `{host}`: it has no form in ASCII, such as xn--bcher-kva.example"))
}

/// Splits `HOST`, `HOST:PORT`, `[IPv6]` and `[IPv6]:PORT`.
fn host_and_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':').ok_or("no `:` after `]`")?)),
        None if authority.parse::<Ipv6Addr>().is_ok() => {
            return Err(format!("an IPv6 address needs brackets, [{authority}]"));
        }
        None => match authority.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.contains('@') {
        return Err("a user name is not supported".to_owned());
    }
    if host.is_empty() {
        return Err("missing host".to_owned());
    }
    let is_ipv6 = authority.starts_with('[');
    let allowed = |c: char| !c.is_whitespace() && !c.is_control() && !['[', ']', '/'].contains(&c);
    if !host.chars().all(|c| allowed(c) && (is_ipv6 || c != ':')) {
        return Err(format!("invalid host `{host}`"));
    }
    let number = |port: &str| {
        let digits = port.bytes().all(|byte| byte.is_ascii_digit()).then_some(port);
        let number = digits.and_then(|digits| digits.parse().ok());
        number.ok_or_else(|| match port {
            "" => "missing port after `:`".to_owned(),
            _ => format!("invalid port `{port}` (0 to 65535)"),
        })
    };
    Ok((host, port.map(number).transpose()?))
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.authority())
    }
}

const fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        let ok = |text: &str, tls, host: &str, port| {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint, Endpoint { tls, host: host.into(), port }, "{text}");
        };
        ok("http://127.0.0.1:8080", false, "127.0.0.1", 8080);
        ok("https://example.com", true, "example.com", 443);
        ok("https://example.com/", true, "example.com", 443);
        ok("http://[::1]:81", false, "::1", 81);
        ok("http://[::1]", false, "::1", 80);
        ok("HTTPS://a:8443", true, "a", 8443);
        // Regression test: the client sent this name as UTF-8, in `Host` and in SNI.
        ok("http://bücher.localhost/", false, "xn--bcher-kva.localhost", 80);
        ok("https://BÜCHER.example:81", true, "xn--bcher-kva.example", 81);
        ok("https://例え.テスト", true, "xn--r8jz45g.xn--zckzah", 443);
        ok("https://bücher。example", true, "xn--bcher-kva.example", 443);
        ok("http://straße.example", false, "xn--strae-oqa.example", 80);
    }

    #[test]
    fn invalid_endpoints_name_the_expected_form() {
        for (text, why) in [
            ("", "missing scheme: expected http://HOST:PORT or https://HOST:PORT"),
            ("nowhere", "missing scheme: expected http://HOST:PORT or https://HOST:PORT"),
            ("127.0.0.1:80", "missing scheme: expected http://127.0.0.1:80 or https://127.0.0.1:80"),
            ("[::1]:80", "missing scheme: expected http://[::1]:80 or https://[::1]:80"),
            ("ftp://a", "unknown scheme `ftp`: expected http://HOST:PORT"),
            ("http://", "missing host: expected http://HOST:PORT"),
            ("http://:80", "missing host: expected http://HOST:PORT"),
            ("http://a b", "invalid host `a b`: expected http://HOST:PORT"),
            ("http://a:b:80", "invalid host `a:b`: expected http://HOST:PORT"),
            ("http://a\u{202e}b", "invalid host `a\u{202e}b`: it has no form in ASCII"),
            ("http://ü\u{ff0f}b", "invalid host `ü\u{ff0f}b`: it has no form in ASCII"),
            ("http://\u{301}a", "invalid host `\u{301}a`: it has no form in ASCII"),
            ("http://user:word@a:80", "a user name is not supported: expected http://HOST:PORT"),
            ("http://a:b", "invalid port `b` (0 to 65535): expected http://HOST:PORT"),
            ("http://a:", "missing port after `:`: expected http://HOST:PORT"),
            ("http://a:+80", "invalid port `+80` (0 to 65535): expected http://HOST:PORT"),
            ("http://a:70000", "invalid port `70000` (0 to 65535): expected http://HOST:PORT"),
            ("http://::1", "an IPv6 address needs brackets, [::1]: expected http://HOST:PORT"),
            ("http://[::1]80", "no `:` after `]`: expected http://HOST:PORT"),
            ("http://a:81/b", "a path is not supported, requests keep their own: expected http://a:81"),
            ("https://a:443/b?c", "a path is not supported, requests keep their own: expected https://a:443"),
            (
                "http://[::1]:81?b",
                "a path is not supported, requests keep their own: expected http://[::1]:81",
            ),
        ] {
            let error = text.parse::<Endpoint>().unwrap_err();
            assert!(error.starts_with(&format!("`{text}`: {why}")), "{error}");
        }
    }

    #[test]
    fn authority_leaves_the_schemes_own_port_out() {
        for (text, authority) in [
            ("http://a:80", "a"),
            ("https://a:80", "a:80"),
            ("http://[::1]:8080", "[::1]:8080"),
            ("https://a", "a"),
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().authority(), authority);
        }
    }

    #[test]
    fn a_name_that_does_not_exist_is_reported() {
        let endpoint: Endpoint = "http://no-such-host.invalid:1".parse().unwrap();
        assert!(endpoint.resolve().unwrap_err().to_string().contains("no-such-host.invalid"));
    }
}
