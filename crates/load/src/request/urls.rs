//! Requests that are given as URLs.

use crate::options::RequestOptions;
use crate::target::{Target, WEIGHTS};
use crate::usage::Usage;
use weir_transport::Endpoint;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
