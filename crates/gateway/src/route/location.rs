//! Redirect targets.

use super::template::{Part, Template, Values, Variable};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::str::FromStr;
use weir_http::Authority;
use weir_http1::RequestError;

/// The value of a `Location` field: a URI with a host, or a path on the same host. No request can turn a path into a
/// URI with another host, although browsers read the text after `//` or `/\` as a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    to: Template,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `https://host/path`
    Absolute,
    /// `/path`
    Path,
}

impl Location {
    /// Appends the location for a request. Errors: the request has no host, or its host would make the location's host
    /// invalid.
    pub(crate) fn write(&self, values: &Values<'_>, out: &mut Vec<u8>) -> Result<(), RequestError> {
        let target = self.target(values);
        let mut written = Vec::new();
        self.to.write(&Values { target: &target, ..*values }, &mut written);
        match self.form {
            Form::Absolute if authority(&written).is_none_or(|host| Authority::parse(host).is_none()) => {
                return Err(match values.host {
                    b"" => RequestError::MissingHost,
                    _ => RequestError::BadHost,
                });
            }
            Form::Absolute => encode(&written, out),
            Form::Path => {
                let start = written.iter().position(|byte| !is_slash(*byte)).unwrap_or(written.len());
                out.push(b'/');
                encode(&written[start..], out);
            }
        }
        Ok(())
    }

    /// The path and query of the request, with a leading slash so that they can follow a host. Empty only if the
    /// template ends with them and the request is `OPTIONS *`, or OPTIONS for a URI without a path: such a location has
    /// no path, which stands for `*` (RFC 9112 section 3.2.4).
    fn target<'a>(&self, values: &Values<'a>) -> Cow<'a, [u8]> {
        match values.target {
            b"*" | b"" if values.method == b"OPTIONS" && self.ends_with_target() => b"".into(),
            b"*" | b"" => b"/".into(),
            query @ [b'?', ..] => [b"/", query].concat().into(),
            target => target.into(),
        }
    }

    fn ends_with_target(&self) -> bool {
        matches!(self.to.parts().next_back(), Some(Part::Variable(Variable::Path | Variable::Target)))
    }
}

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected `https://` and a host, or a path that begins with one `/`, such as https://{host}{target}";
        let to: Template = text.parse()?;
        let form = form(&to).ok_or_else(|| format!("invalid value `{text}`: {EXPECTED}"))?;
        let location = Self { to, form };
        let usual = Values { scheme: "https", host: b"a.example", target: b"/", ..Values::none() };
        location.write(&usual, &mut Vec::new()).map_err(|_| {
            format!("invalid value `{text}`: invalid host: expected an ASCII name, with or without a port, such as xn--bcher-kva.example")
        })?;
        Ok(location)
    }
}

/// The form of a template's locations; `None` if the form would depend on the request.
fn form(to: &Template) -> Option<Form> {
    let mut parts = to.parts();
    let (mut text, mut scheme) = match parts.next()? {
        Part::Text(text) => (text, ""),
        Part::Variable(Variable::Path | Variable::Target) => return Some(Form::Path),
        Part::Variable(Variable::Scheme) => match parts.next()? {
            Part::Text(text) => (text, "https"),
            Part::Variable(_) => return None,
        },
        Part::Variable(_) => return None,
    };
    if scheme.is_empty() && text.starts_with('/') {
        return (!text[1..].starts_with(['/', '\\'])).then_some(Form::Path);
    }
    if scheme.is_empty() {
        (scheme, text) = text.split_at(text.find(':')?);
    }
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char));
    let mut host = text.strip_prefix("://").filter(|_| is_scheme)?;
    // Before the path, a template may contain only fixed text and the request's host: the client must control nothing
    // else there.
    while !host.contains(['/', '?', '#', '\\']) {
        match parts.next() {
            None | Some(Part::Variable(Variable::Path | Variable::Target)) => break,
            Some(Part::Variable(Variable::Host | Variable::Authority)) => {}
            Some(Part::Variable(_)) => return None,
            Some(Part::Text(text)) => host = text,
        }
    }
    Some(Form::Absolute)
}

/// The part of a URI between `://` and the path.
fn authority(uri: &[u8]) -> Option<&[u8]> {
    let start = memchr::memmem::find(uri, b"://")? + b"://".len();
    let end = uri[start..].iter().position(|byte| b"/?#".contains(byte)).unwrap_or(uri.len() - start);
    Some(&uri[start..start + end])
}

fn is_slash(byte: u8) -> bool {
    matches!(byte, b'/' | b'\\')
}

/// Appends `text`, percent-encoding every character that a URI cannot contain (RFC 3986 section 2).
fn encode(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => encode_byte(*byte, out),
            b'!'..=b'~' => out.push(*byte),
            _ => encode_byte(*byte, out),
        }
    }
}

fn encode_byte(byte: u8, out: &mut Vec<u8>) {
    let mut hex = String::new();
    let _ = write!(hex, "%{byte:02X}");
    out.extend_from_slice(hex.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn led(to: &str, host: &str, target: &str) -> Result<String, RequestError> {
        let method = if target == "*" { b"OPTIONS" } else { &b"GET"[..] };
        let values = Values {
            scheme: "https",
            host: host.as_bytes(),
            target: target.as_bytes(),
            method,
            ..Values::none()
        };
        let mut out = Vec::new();
        to.parse::<Location>().unwrap().write(&values, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    /// Regression test: `to = "{path}/"` redirected `GET //evil.example/..` to another host.
    #[test]
    fn a_path_stays_on_its_host() {
        for (to, target, expected) in [
            ("{path}/", "/a", "/a/"),
            ("{path}/", "//evil.example/../slash/x", "/evil.example/../slash/x/"),
            ("{path}/", "///evil.example", "/evil.example/"),
            ("{path}/", "/\\evil.example", "/evil.example/"),
            ("{path}/", "/\\/evil.example", "/evil.example/"),
            ("{path}/", "//", "/"),
            ("{target}", "//evil.example?x", "/evil.example?x"),
            ("{target}", "?x", "/?x"),
            ("{target}", "", "/"),
            ("{target}", "*", "/"),
            ("/{path}", "/evil.example", "/evil.example"),
            ("/{target}", "/\\evil.example", "/evil.example"),
            ("/{host}{path}", "//x", "/h//x"),
            // Browsers neither decode a path nor resolve its dots to find a host.
            ("{path}/", "/%5cevil.example", "/%5cevil.example/"),
            ("{path}/", "/%2fevil.example", "/%2fevil.example/"),
            ("{path}/", "/.//evil.example", "/.//evil.example/"),
            ("{path}/", "/a//b", "/a//b/"),
            ("/new", "//evil.example", "/new"),
            ("/login?next={target}", "//evil.example", "/login?next=//evil.example"),
        ] {
            assert_eq!(led(to, "h", target).unwrap(), expected, "{to} {target}");
        }
    }

    #[test]
    fn a_location_is_a_uri() {
        const USUAL: &str = "https://{host}{target}";
        for (to, host, target, expected) in [
            (USUAL, "h", "/x?y", Ok("https://h/x?y")),
            (USUAL, "h:81", "/", Ok("https://h/")),
            ("https://{authority}{target}", "h:81", "/", Ok("https://h:81/")),
            (USUAL, "[::1]:81", "/", Ok("https://[::1]/")),
            ("{scheme}://{host}:8443{target}", "[::1]:81", "/", Ok("https://[::1]:8443/")),
            (USUAL, "h", "*", Ok("https://h")),
            ("https://{host}{path}.html", "h", "*", Ok("https://h/.html")),
            ("https://{host}{path}.html", "h", "", Ok("https://h/.html")),
            (USUAL, "h", "", Ok("https://h/")),
            (USUAL, "h", "?x", Ok("https://h/?x")),
            (USUAL, "h", "//evil.example", Ok("https://h//evil.example")),
            (USUAL, "h", "/a|b\\c\"d", Ok("https://h/a%7Cb%5Cc%22d")),
            ("https://a.example/ü x", "h", "/", Ok("https://a.example/%C3%BC%20x")),
            ("https://www.{host}{target}", "a.example", "/", Ok("https://www.a.example/")),
            // Requests without a host, and with a host that is invalid in the template.
            (USUAL, "", "/x", Err(RequestError::MissingHost)),
            ("{scheme}://{authority}/", "", "/x", Err(RequestError::MissingHost)),
            ("https://{host}:8443{target}", "", "/x", Err(RequestError::MissingHost)),
            ("https://www.{host}{target}", "[::1]", "/", Err(RequestError::BadHost)),
            ("https://{authority}:8443{target}", "h:81", "/", Err(RequestError::BadHost)),
            ("https://a.example{target}", "", "/x", Ok("https://a.example/x")),
            ("/x", "", "/", Ok("/x")),
        ] {
            assert_eq!(led(to, host, target), expected.map(str::to_owned), "{to} {host} {target}");
        }
    }

    #[test]
    fn what_leads_anywhere_is_refused() {
        for to in [
            "",
            "//evil.example/",
            "/\\evil.example/",
            "\\\\evil.example/",
            "https:{target}",
            "{scheme}:{target}",
            "{scheme}{target}",
            "https:/{path}",
            "javascript:{target}",
            "{host}{target}",
            "login",
            "https://{target}",
            "https:///x",
            "https://a.example{method}/",
            "https://{client_ip}/",
            "https://{request_id}.example/",
            "https://user@a.example/",
            "https://bücher.example/",
            "https://a b/",
            "https://{host}\\{target}",
            "1https://a.example/",
        ] {
            let error = to.parse::<Location>().unwrap_err();
            assert!(error.contains("expected"), "{to}: {error}");
        }
    }
}
