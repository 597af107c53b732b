//! The URL under load.

use crate::options::RequestOptions;
use crate::usage::Usage;
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

/// One request for each URL, with a weight for each or, if there are none, with equal ones.
///
/// # Errors
/// When the URLs do not have one scheme, host and port, or the weights are not as many as the URLs, or not in
/// 1 to 1000000.
pub fn requests_of(urls: &[Target], weights: &[u32]) -> Result<(Endpoint, Vec<RequestOptions>), Usage> {
    let Some(first) = urls.first() else {
        return Err(Usage::new("URL", "", "at least one"));
    };
    let same = |url: &&Target| {
        let (one, other) = (&url.endpoint, &first.endpoint);
        (one.tls, one.port) == (other.tls, other.port) && one.host.eq_ignore_ascii_case(&other.host)
    };
    if let Some(other) = urls.iter().find(|url| !same(url)) {
        let allowed = format!("URLs with the scheme, host and port of the first, {first}");
        return Err(Usage::new("URL", &other.to_string(), &allowed));
    }
    if !weights.is_empty() && weights.len() != urls.len() {
        let shown: Vec<String> = weights.iter().map(u32::to_string).collect();
        let allowed = format!("one weight for each URL, {} in all", urls.len());
        return Err(Usage::new("--weights", &shown.join(","), &allowed));
    }
    if let Some(weight) = weights.iter().find(|weight| !WEIGHTS.contains(*weight)) {
        return Err(Usage::new("--weights", &weight.to_string(), "1 to 1000000"));
    }
    let weights = weights.iter().copied().chain(std::iter::repeat(1));
    let request = |(url, weight): (&Target, u32)| {
        let path = url.path.clone();
        RequestOptions { weight, ..RequestOptions::new(path) }
    };
    Ok((first.endpoint.clone(), urls.iter().zip(weights).map(request).collect()))
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

    fn targets(urls: &[&str]) -> Vec<Target> {
        urls.iter().map(|url| url.parse().unwrap()).collect()
    }

    #[test]
    fn several_urls_have_their_weights() {
        let urls = targets(&["http://a:81/x", "http://A:81/y?z"]);
        for (weights, expected) in [(&[][..], [1, 1]), (&[3, 1_000_000], [3, 1_000_000])] {
            let (endpoint, requests) = requests_of(&urls, weights).unwrap();
            assert_eq!(endpoint.to_string(), "http://a:81");
            let found: Vec<_> = requests.iter().map(|one| (one.path.as_str(), one.weight)).collect();
            assert_eq!(found, [("/x", expected[0]), ("/y?z", expected[1])]);
        }
    }

    #[test]
    fn several_urls_that_cannot_be_one_run_name_what_is_wrong() {
        let table: [(&[&str], &[u32], &str); 8] = [
            (&[], &[], "URL: `` cannot be used; allowed: at least one"),
            (
                &["http://a/x", "http://a/y", "http://b/z"],
                &[],
                "URL: `http://b/z` cannot be used; \
                 allowed: URLs with the scheme, host and port of the first, http://a/x",
            ),
            (&["http://a", "https://a"], &[], "`https://a/`"),
            (&["http://a", "http://a:81"], &[], "`http://a:81/`"),
            (
                &["http://a"],
                &[1, 2],
                "--weights: `1,2` cannot be used; allowed: one weight for each URL, 1 in all",
            ),
            (&["http://a", "http://a"], &[1], "2 in all"),
            (&["http://a"], &[0], "--weights: `0` cannot be used; allowed: 1 to 1000000"),
            (&["http://a"], &[1_000_001], "--weights: `1000001` cannot be used; allowed: 1 to 1000000"),
        ];
        for (urls, weights, message) in table {
            let error = requests_of(&targets(urls), weights).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
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
