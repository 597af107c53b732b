//! The URL under load.

use std::fmt;
use std::str::FromStr;
use weir_transport::Endpoint;

/// Where requests go and what they ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Scheme, host and port.
    pub endpoint: Endpoint,
    /// Path and query; at least `/`.
    pub path: String,
}

/// What one request may weigh.
pub(crate) const WEIGHTS: std::ops::RangeInclusive<u32> = 1..=1_000_000;

/// The first character that cannot stand in a path with its query (RFC 9112 section 3.2.1).
pub(crate) fn misplaced(path: &str) -> Option<char> {
    path.chars().find(|c| !c.is_ascii_graphic() || *c == '#')
}

/// The length that the answer must have when the path is the test server's `/bytes/N`.
pub(crate) fn known_length(path: &str) -> Option<u64> {
    let path = path.split('?').next()?;
    path.strip_prefix("/bytes/")?.parse().ok()
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let authority = text.find("://").map_or(0, |at| at + 3);
        let end = text[authority..].find(['/', '?', '#']).map_or(text.len(), |at| authority + at);
        let endpoint: Endpoint = text[..end].parse().map_err(|error: String| format!("{error}[/PATH]"))?;
        if endpoint.port == 0 {
            return Err(format!("`{text}`: nobody answers on port 0; allowed: 1 to 65535"));
        }
        let path = match &text[end..] {
            "" => "/".to_string(),
            query if query.starts_with('?') => format!("/{query}"),
            path => path.to_string(),
        };
        match misplaced(&path) {
            Some(c) => Err(format!("`{text}`: {c:?} cannot stand in a path; write it in percent-encoding")),
            None => Ok(Self { endpoint, path }),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.endpoint, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for (text, shown, length) in [
            ("http://a:81", "http://a:81/", None),
            ("https://a/bytes/1000?chunked=1", "https://a/bytes/1000?chunked=1", Some(1000)),
            ("http://[::1]:8080/x", "http://[::1]:8080/x", None),
            ("http://a?q", "http://a/?q", None),
            ("http://a/bytes/x", "http://a/bytes/x", None),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!((target.to_string().as_str(), known_length(&target.path)), (shown, length));
        }
    }

    #[test]
    fn urls_that_cannot_be_asked_for_name_what_is_wrong() {
        for (text, why) in [
            ("ftp://a/", "neither http nor https"),
            ("a/b", "no scheme"),
            ("http://a:70000/", "0 to 65535"),
            ("http://a:0/", "port 0"),
            ("http://a/b c", "' '"),
            ("http://a/b#c", "'#'"),
            ("http:///b", "host"),
        ] {
            let error = text.parse::<Target>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
