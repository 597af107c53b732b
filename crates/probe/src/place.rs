//! Which server, as people write it.

use weir_transport::Endpoint;

/// Takes `HOST`, `HOST:PORT` and `https://HOST[:PORT]`, with an IPv6 address in brackets; the port is 443
/// unless given.
///
/// # Errors
/// With the value, what is wrong with it and what is allowed.
pub fn server(text: &str) -> Result<Endpoint, String> {
    let url = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let wrong =
        |why: &str| format!("{why}; allowed: HOST, HOST:PORT, https://HOST[:PORT], [IPv6 address]:PORT");
    let authority = url.split_once("://").map_or("", |(_, rest)| rest.trim_end_matches('/'));
    if authority.contains(['/', '?', '#']) {
        return Err(wrong(&format!("`{text}`: no request is sent, so there is no use for a path")));
    }
    let endpoint: Endpoint = url.parse().map_err(|error: String| wrong(&error))?;
    match endpoint {
        Endpoint { tls: false, .. } => Err(wrong(&format!("`{text}`: there is no TLS in http://"))),
        Endpoint { port: 0, .. } => Err(wrong(&format!("`{text}`: nobody answers on port 0"))),
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
            ("", "the host is missing"),
            ("http://a", "no TLS in http://"),
            ("ftp://a", "neither http nor https"),
            ("https://a/path", "no use for a path"),
            ("[::1]443", "no `:` after `]`"),
            ("a:0", "port 0"),
            ("a:65536", "no number from 0 to 65535"),
        ] {
            let error = server(text).unwrap_err();
            assert!(
                error.contains(why) && error.contains(text) && error.contains("allowed"),
                "{text}: {error}"
            );
        }
    }
}
