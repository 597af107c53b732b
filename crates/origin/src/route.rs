//! Parsing request targets.

use std::time::Duration;
use weir_http::Method;

/// A parsed request target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) resource: Resource,
    /// The delay before the response.
    pub(crate) delay: Duration,
    /// Whether to send the response without its length: chunked in HTTP/1.1.
    pub(crate) chunked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// `/`
    Hello,
    /// `/bytes/N`
    Bytes(u64),
    /// `/echo`
    Echo,
    /// `/weir.Echo/METHOD`, `/grpc.echo..`
    Grpc(GrpcMethod),
    /// `/stats`
    Stats,
    /// Unknown path.
    Unknown,
    /// CONNECT, which has no path.
    Tunnel,
    /// An invalid path or query: what was expected.
    Invalid(&'static str),
}

/// A method of the service `weir.Echo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrpcMethod {
    /// One message, which returns.
    Unary,
    /// One message, which returns this many times.
    Server(u32),
    /// Any number of messages; their number and size return.
    Client,
    /// Any number of messages, each of which returns as it arrives.
    Bidi,
    Unknown,
}

/// The largest number of messages in a response.
const MAX_MESSAGES: u64 = 1_000_000;

/// The largest body, 1 TiB: more than any test streams, and far from where lengths overflow.
const MAX_BYTES: u64 = 1 << 40;

/// The longest delay: a minute exceeds every usual timeout.
const MAX_DELAY_MS: u64 = 60_000;

impl Route {
    /// Parses path and query.
    pub(crate) fn of(method: Method, target: &[u8]) -> Self {
        if method == Method::Connect {
            return Self { resource: Resource::Tunnel, delay: Duration::ZERO, chunked: false };
        }
        let mut parts = target.splitn(2, |byte| *byte == b'?');
        let path = parts.next().unwrap_or_default();
        let mut route = Self { resource: resource(path), delay: Duration::ZERO, chunked: false };
        for pair in parts.next().unwrap_or_default().split(|byte| *byte == b'&') {
            if let Some(value) = pair.strip_prefix(b"delay_ms=") {
                match number(value) {
                    Some(ms) if ms <= MAX_DELAY_MS => route.delay = Duration::from_millis(ms),
                    _ => route.resource = Resource::Invalid("delay_ms: expected 0 to 60000"),
                }
            } else if let Resource::Grpc(GrpcMethod::Server(_)) = route.resource
                && let Some(value) = pair.strip_prefix(b"messages=")
            {
                let messages = number(value).filter(|messages| *messages <= MAX_MESSAGES);
                route.resource = messages
                    .map_or(Resource::Invalid("messages: expected 0 to 1000000"), |messages| {
                        Resource::Grpc(GrpcMethod::Server(messages as u32))
                    });
            } else if let Some(value) = pair.strip_prefix(b"chunked=") {
                match value {
                    b"0" => {}
                    b"1" => route.chunked = true,
                    _ => route.resource = Resource::Invalid("chunked: expected 0 or 1"),
                }
            } else if !pair.is_empty() {
                route.resource = Resource::Invalid(UNKNOWN_PARAMETER);
            }
        }
        route
    }
}

const UNKNOWN_PARAMETER: &str =
    "unknown query parameter: expected delay_ms, chunked, or in /weir.Echo/Server messages";

fn resource(path: &[u8]) -> Resource {
    match path {
        b"/" | b"" => Resource::Hello,
        b"/echo" => Resource::Echo,
        b"/stats" => Resource::Stats,
        b"/weir.Echo/Unary" => Resource::Grpc(GrpcMethod::Unary),
        b"/weir.Echo/Server" => Resource::Grpc(GrpcMethod::Server(1)),
        b"/weir.Echo/Client" => Resource::Grpc(GrpcMethod::Client),
        b"/weir.Echo/Bidi" => Resource::Grpc(GrpcMethod::Bidi),
        _ if path.starts_with(b"/grpc.echo") => Resource::Grpc(GrpcMethod::Bidi),
        _ if path.starts_with(b"/weir.Echo/") => Resource::Grpc(GrpcMethod::Unknown),
        _ => match path.strip_prefix(b"/bytes/") {
            None => Resource::Unknown,
            Some(digits) => match number(digits) {
                Some(bytes) if bytes <= MAX_BYTES => Resource::Bytes(bytes),
                _ => Resource::Invalid("/bytes/N gives N bytes, 0 to 1099511627776"),
            },
        },
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes() {
        let plain = |resource| Route { resource, delay: Duration::ZERO, chunked: false };
        for (target, expected) in [
            ("/", plain(Resource::Hello)),
            ("/echo", plain(Resource::Echo)),
            ("/stats", plain(Resource::Stats)),
            ("/grpc.echo.Echo/Call", plain(Resource::Grpc(GrpcMethod::Bidi))),
            ("/weir.Echo/Unary", plain(Resource::Grpc(GrpcMethod::Unary))),
            ("/weir.Echo/Unary2", plain(Resource::Grpc(GrpcMethod::Unknown))),
            ("/weir.Echo/Server", plain(Resource::Grpc(GrpcMethod::Server(1)))),
            (
                "/weir.Echo/Server?messages=1000000&delay_ms=5",
                Route {
                    delay: Duration::from_millis(5),
                    ..plain(Resource::Grpc(GrpcMethod::Server(1_000_000)))
                },
            ),
            ("/bytes/0", plain(Resource::Bytes(0))),
            ("/bytes/1099511627776?", plain(Resource::Bytes(1 << 40))),
            ("/bytes", plain(Resource::Unknown)),
            ("/bytes/7?chunked=1", Route { chunked: true, ..plain(Resource::Bytes(7)) }),
            (
                "/echo?delay_ms=20&chunked=0",
                Route { delay: Duration::from_millis(20), ..plain(Resource::Echo) },
            ),
        ] {
            assert_eq!(Route::of(Method::Get, target.as_bytes()), expected, "{target}");
        }
    }

    #[test]
    fn connect_is_no_request_for_a_path() {
        for target in ["", "a:1", "/bytes/1"] {
            assert_eq!(Route::of(Method::Connect, target.as_bytes()).resource, Resource::Tunnel, "{target}");
        }
    }

    #[test]
    fn invalid_targets_never_match_a_resource() {
        for target in [
            "/bytes/",
            "/bytes/x",
            "/bytes/-1",
            "/bytes/1099511627777",
            "/bytes/99999999999999999999",
            "/?delay_ms=",
            "/?delay_ms=60001",
            "/?chunked=yes",
            "/?delay=1",
            "/weir.Echo/Server?messages=1000001",
            "/weir.Echo/Server?messages=",
            "/weir.Echo/Unary?messages=1",
        ] {
            assert!(
                matches!(Route::of(Method::Get, target.as_bytes()).resource, Resource::Invalid(_)),
                "{target}"
            );
        }
    }
}
