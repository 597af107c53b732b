//! Parsing the server argument.

use weir_transport::Endpoint;

/// Parses `HOST`, `HOST:PORT` and `https://HOST[:PORT]`, with an IPv6 address in brackets; the port defaults
/// to 443.
///
/// # Errors
/// With the value, what is wrong with it and what was expected.
pub fn server(text: &str) -> Result<Endpoint, String> {
    let url = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let wrong =
        |why: &str| format!("{why}: expected HOST, HOST:PORT, https://HOST[:PORT] or [IPv6 address]:PORT");
    let authority = url.split_once("://").map_or("", |(_, rest)| rest.trim_end_matches('/'));
    if authority.contains(['/', '?', '#']) {
        return Err(wrong(&format!("`{text}` has a path, but no request is sent")));
    }
    let endpoint: Endpoint = url.parse().map_err(|error: String| wrong(&error))?;
    match endpoint {
        Endpoint { tls: false, .. } => Err(wrong(&format!("`{text}`: http:// has no TLS"))),
        Endpoint { port: 0, .. } => Err(wrong(&format!("`{text}`: invalid port 0"))),
        _ => Ok(endpoint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers() {
        for (text, host, port) in [
            ("example.org", "example.org", 443),
            ("example.org:8443", "example.org", 8443),
            ("https://example.org", "example.org", 443),
            ("https://example.org:8443/", "example.org", 8443),
            ("127.0.0.1:1", "127.0.0.1", 1),
            ("[::1]", "::1", 443),
            ("https://[::1]:65535", "::1", 65535),
        ] {
            let endpoint = server(text).unwrap();
            assert_eq!((endpoint.host.as_str(), endpoint.port), (host, port), "{text}");
        }
    }

    #[test]
    fn what_is_no_server_says_why() {
        for (text, why) in [
            ("", "missing host"),
            ("http://a", "http:// has no TLS"),
            ("ftp://a", "unknown scheme"),
            ("https://a/path", "has a path, but"),
            ("[::1]443", "no `:` after `]`"),
            ("a:0", "port 0"),
            ("a:65536", "invalid port `65536` (0 to 65535)"),
        ] {
            let error = server(text).unwrap_err();
            assert!(
                error.contains(why) && error.contains(text) && error.contains("expected HOST, HOST:PORT"),
                "{text}: {error}"
            );
        }
    }
}
