//! The version of HTTP and its options.

use super::{HttpVersions, Options, PerConnection};
use crate::usage::{Usage, size};

/// A version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: by ALPN over TLS, by prior knowledge in cleartext (RFC 9113, section 3).
    Http2,
}

/// The window of browsers' streams is larger, but this one keeps all streams of a connection within a core's cache.
pub(crate) const DEFAULT_STREAM_WINDOW: u32 = 64 * 1024;

const STREAMS: std::ops::RangeInclusive<u32> = 1..=10_000;
/// Requests in flight at once.
const MOST_USERS: u64 = 10_000_000;
/// RFC 9113, section 6.9.1.
const WINDOWS: std::ops::RangeInclusive<u32> = 1..=(1 << 31) - 1;

impl HttpVersion {
    /// All versions, in order.
    pub(crate) const ALL: [Self; 2] = [Self::Http1, Self::Http2];

    /// Its name in ALPN (RFC 7301 section 6).
    pub fn alpn(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
        }
    }

    /// As in `--http`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Http1 => "1.1",
            Self::Http2 => "2",
        }
    }

    /// The version of a word in `--http`.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        match word {
            "1.1" | "1" => Some(Self::Http1),
            "2" => Some(Self::Http2),
            _ => None,
        }
    }
}

/// Checks the versions against the other options.
pub(super) fn check(options: &Options) -> Result<(), Usage> {
    check_alpn(options)?;
    let wrong = |flag, value: &str, expected: &str| Err(Usage::new(flag, value, expected));
    let (streams, connections) = (options.streams, options.http.divide(options.connections));
    if let HttpVersions::Both(_) = options.http {
        if options.workers < options.http.count() {
            let expected = "at least 2 with both versions of HTTP: a worker speaks one of them";
            return wrong("-t", &options.workers.to_string(), expected);
        }
        if let Some((version, _)) = connections.into_pairs().into_iter().find(|(_, number)| *number == 0) {
            let (http, version) = (options.http, version.word());
            let expected = format!("more connections: with --http {http} none of them speaks HTTP/{version}");
            return wrong("-c", &options.connections.to_string(), &expected);
        }
    }
    if !options.http.speak(HttpVersion::Http2) {
        return match streams {
            1 => Ok(()),
            _ => wrong("--streams", &streams.to_string(), STREAMS_NEED_HTTP2),
        };
    }
    if !STREAMS.contains(&streams) {
        return wrong("--streams", &streams.to_string(), "1 to 10000");
    }
    if u64::from(streams) * u64::from(connections.http2) > MOST_USERS {
        let expected = "at most 10000000 requests at once (-c times -m)";
        return wrong("--streams", &streams.to_string(), expected);
    }
    if !WINDOWS.contains(&options.stream_window) {
        return wrong("--stream-window", &options.stream_window.to_string(), WINDOWS_EXPECTED);
    }
    let kept = "--http 1.1: connections with HTTP/2 are kept";
    match options.policy.per_connection {
        PerConnection::Unlimited => {}
        PerConnection::Handshake => return wrong("--handshake-only", &options.url(), kept),
        PerConnection::Requests { most: 1, .. } => return wrong("--new-connection", &options.url(), kept),
        PerConnection::Requests { most, .. } => {
            return wrong("--requests-per-connection", &most.to_string(), kept);
        }
    }
    match options.requests.iter().find_map(|request| request.chunk) {
        Some(chunk) => {
            let expected = "--http 1.1: HTTP/2 has no chunks, but DATA frames";
            wrong("--chunked", &chunk.to_string(), expected)
        }
        None => Ok(()),
    }
}

/// The protocols of `--alpn` against the version.
fn check_alpn(options: &Options) -> Result<(), Usage> {
    let wrong = |value: &str, expected: &str| Err(Usage::new("--alpn", value, expected));
    match (options.http, options.tls.alpn.as_slice()) {
        (HttpVersions::Both(_), [first, ..]) => {
            let expected = format!(
                "no --alpn with --http {}, whose connections offer the protocol of their version",
                options.http
            );
            wrong(first, &expected)
        }
        (HttpVersions::One(version), names) => match names.iter().find(|name| *name != version.alpn()) {
            Some(other) => {
                wrong(other, &format!("{}, the protocol of --http {}", version.alpn(), version.word()))
            }
            None => Ok(()),
        },
        (HttpVersions::Both(_), []) => Ok(()),
    }
}

/// The value of `--streams`.
///
/// # Errors
/// When it is given without HTTP/2.
pub(crate) fn streams(http: HttpVersions, given: Option<u32>) -> Result<u32, Usage> {
    match given {
        Some(streams) if !http.speak(HttpVersion::Http2) => {
            Err(Usage::new("--streams", &streams.to_string(), STREAMS_NEED_HTTP2))
        }
        given => Ok(given.unwrap_or(1)),
    }
}

/// The value of `--stream-window`.
///
/// # Errors
/// When it is no size, or is given without HTTP/2.
pub(crate) fn stream_window(http: HttpVersions, given: Option<&str>) -> Result<u32, Usage> {
    let Some(text) = given else { return Ok(DEFAULT_STREAM_WINDOW) };
    if !http.speak(HttpVersion::Http2) {
        return Err(Usage::new("--stream-window", text, "--http 2 as well: HTTP/1.1 has no windows"));
    }
    let window = size(text).and_then(|bytes| u32::try_from(bytes).ok());
    window.ok_or_else(|| Usage::new("--stream-window", text, WINDOWS_EXPECTED))
}

const STREAMS_NEED_HTTP2: &str = "--http 2 as well: a connection with HTTP/1.1 has one request at a time";

const WINDOWS_EXPECTED: &str = "a size such as 65535 or 1MiB, 1 to 2147483647";
