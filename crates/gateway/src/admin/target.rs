//! The targets of requests about services.

/// The target of a request for `/services`, or below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    All,
    Service(String),
    /// The list of a service's servers.
    Servers(String),
    Server {
        service: String,
        server: String,
    },
}

impl Target {
    /// Parses a path; `None` if it is not about services.
    pub(super) fn of(path: &[u8]) -> Option<Self> {
        let below = path.strip_prefix(b"/services")?;
        if below.is_empty() {
            return Some(Self::All);
        }
        let below = std::str::from_utf8(below.strip_prefix(b"/")?).ok()?;
        let Some((service, below)) = below.split_once('/') else {
            return (!below.is_empty()).then(|| decoded(below).map(Self::Service))?;
        };
        let service = decoded(service)?;
        match below.strip_prefix("servers")? {
            "" => Some(Self::Servers(service)),
            // The slashes of a server's URL need no encoding.
            below => Some(Self::Server { service, server: decoded(below.strip_prefix('/')?)? }),
        }
    }
}

/// Decodes a percent-encoded part of a path; `None` if it is malformed, or not UTF-8.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut pieces = part.split('%');
    bytes.extend_from_slice(pieces.next()?.as_bytes());
    for piece in pieces {
        let (code, rest) = (piece.get(..2)?, piece.get(2..)?);
        let is_code = code.bytes().all(|byte| byte.is_ascii_hexdigit());
        bytes.push(is_code.then(|| u8::from_str_radix(code, 16).ok())??);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_may_be_percent_encoded() {
        let server = |service: &str, server: &str| {
            Some(Target::Server { service: service.to_owned(), server: server.to_owned() })
        };
        for (path, target) in [
            ("/services", Some(Target::All)),
            ("/services/app", Some(Target::Service("app".to_owned()))),
            ("/services/a%70p", Some(Target::Service("app".to_owned()))),
            ("/services/app/servers", Some(Target::Servers("app".to_owned()))),
            ("/services/app/servers/", server("app", "")),
            ("/services/app/servers/http://a:1", server("app", "http://a:1")),
            ("/services/app/servers/http%3A%2f%2Fa:1", server("app", "http://a:1")),
            ("/services/a%70p/servers/unix:/run/servers/a", server("app", "unix:/run/servers/a")),
            ("/services/", None),
            ("/services/app/", None),
            ("/services/app/server", None),
            ("/services/app/serversx", None),
            ("/servicesx", None),
            ("/services/app/servers/%4", None),
            ("/services/app/servers/%+1", None),
            ("/services/app/servers/%ff", None),
            ("/services/app/servers/%é", None),
        ] {
            assert_eq!(Target::of(path.as_bytes()), target, "{path}");
        }
    }
}
