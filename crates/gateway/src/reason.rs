//! Reasons why exchanges and connections end early: one enum for the log, the counters and the response.

mod hint;

use crate::config::document::Failure;
use std::time::Duration;
use weir_http1::{BodyError, RequestError, ResponseError, Rule};
use weir_http2::{ConnectionError, ErrorCode, StreamError};
use weir_preface::hello::HelloError;
use weir_preface::proxy::ProxyError;
use weir_transport::Fault;

/// The reason for an early end. The names show which side caused the end.
#[derive(Debug)]
pub enum Reason {
    /// The client's request is invalid. The rule, if any, is the one that a listener could relax to accept the request.
    BadRequest(RequestError, Option<Rule>),
    /// The client's request body is invalid.
    BadRequestBody(BodyError),
    /// The request body is larger than its route allows (`max_body`). `worker/requests.rs` checks a declared length,
    /// `worker/buffering.rs` a buffered body, `proxy/client_request.rs` a forwarded one.
    BodyTooLarge,
    /// No route matches the request.
    NoRoute,
    /// Servers may read the request's path as that of another route.
    AmbiguousPath,
    /// The host of the request belongs to another certificate, or to a service that gets its connections undecrypted.
    Misdirected,
    /// A reload has removed or changed the listener of the connection, and removed the service of the request's route.
    ListenerGone,
    /// The request is a `CONNECT`, or asks for a WebSocket tunnel that its route or its server does not open.
    ConnectMethod,
    /// The request is a `TRACE`, which its route does not allow.
    TraceMethod,
    /// `Max-Forwards` is not a number, or occurs twice.
    BadMaxForwards,
    /// A field name contains an underscore, and the listener rejects such fields.
    UnderscoreInName,
    /// The client did not complete a request head in time.
    HeadTimeout,
    /// The client stopped sending a request body.
    BodyTimeout,
    /// The client sent a request body too slowly.
    BodyTooSlow,
    /// The request body exceeded its total time.
    BodyOverdue,
    /// The client did not complete its PROXY header, ClientHello or TLS handshake in time.
    HandshakeTimeout,
    /// A connection on a listener with PROXY protocol did not begin with a valid header.
    BadProxyHeader(ProxyError),
    /// A connection on a listener with PROXY protocol came from an address outside the proxies' networks.
    UntrustedProxy,
    /// The listener does not admit clients from this network.
    ClientDenied,
    /// The client has reached its maximum number of connections.
    TooManyConnections,
    /// The gateway dropped this handshake: too many were unfinished, or more arrived than the cores could complete.
    TooManyHandshakes,
    /// The client has exceeded its request rate, and may send its next request after this time.
    RateLimited(Duration),
    /// The client sent this server name, which no passthrough service accepts.
    UnknownName(String),
    /// The client did not begin with a ClientHello on a listener with passthrough.
    BadHello(HelloError),
    /// The client spoke cleartext HTTP, or another protocol, on a TLS port.
    NotTls,
    /// The client's TLS handshake failed, or a later TLS record was invalid.
    ClientTls(Fault),
    /// The client disconnected during an exchange, a tunnel or the bytes before HTTP.
    ClientClosed,
    /// The client reset the stream of its request.
    ClientReset,
    /// The client violated HTTP/2, or exceeded a limit against abuse, so the gateway closed its connection.
    BadHttp2(ConnectionError),
    /// The client violated HTTP/2 on one stream.
    BadStream(StreamError),
    /// The client stopped reading its response.
    ClientStalled,
    /// The client read its response too slowly.
    ClientTooSlow,
    /// The response exceeded its total time.
    ResponseOverdue,
    /// No server of the service takes requests: all are down, drained, or have a weight of 0.
    NoServer,
    /// All servers are at their maximum number of connections, and no further request can wait: the queue is full, or
    /// the listener with `tcp` has none.
    QueueFull,
    /// The request waited too long for a connection, or for the SETTINGS of an HTTP/2 server.
    QueueTimeout,
    /// The process has no descriptor for a connection to a server.
    NoDescriptors,
    /// Connections have reached their memory limit, and this request needs buffering.
    NoMemory,
    /// The upstream could not be reached.
    UpstreamConnect(Fault),
    /// The upstream's TLS failed: an untrusted certificate, no TLS, or an alert.
    UpstreamTls(Fault),
    /// The upstream did not accept the connection in time.
    UpstreamConnectTimeout,
    /// The upstream did not complete its TLS handshake in time.
    UpstreamHandshakeTimeout,
    /// The upstream closed or reset the connection before its response.
    UpstreamClosed,
    /// The upstream closed or reset the connection during its response or a tunnel.
    UpstreamTruncated,
    /// The upstream reset the request's stream.
    UpstreamReset(ErrorCode),
    /// The upstream began to close the connection without having processed the request.
    UpstreamGoAway,
    /// The upstream violated HTTP/2, so the gateway closed its connection.
    BadUpstreamHttp2(ConnectionError),
    /// The upstream violated HTTP/2 in its response.
    BadUpstreamStream(StreamError),
    /// The upstream did not agree to speak HTTP/2.
    NotHttp2,
    /// The upstream's response is invalid. The rule, if any, is the one that a service could relax to accept the
    /// response.
    BadResponse(ResponseError, Option<Rule>),
    /// The upstream's response body is invalid.
    BadResponseBody(BodyError),
    /// The upstream sent this many bytes beyond its response, or without a request.
    UpstreamStray(usize),
    /// The upstream sent too many interim responses, or too many bytes of them.
    TooManyInterims,
    /// The upstream switched protocols although the request did not ask for it.
    UpstreamSwitched,
    /// The upstream responded to a WebSocket request with success, but did not switch protocols.
    NotSwitched,
    /// The whole exchange took too long.
    ExchangeTimeout,
    /// The upstream did not respond in time, or did not read the request.
    UpstreamTimeout,
    /// The upstream stalled during its response.
    UpstreamStalled,
    /// The upstream sent bytes before the first byte of the request.
    UpstreamUnsolicited,
    /// A tunnel had no traffic for too long.
    TunnelIdle,
    /// The connection was still in use at the drain's deadline.
    DrainTimeout,
    /// A fault of the gateway itself: a state that should be impossible.
    Internal(&'static str),
}

impl Reason {
    /// The status for the client, if no response has started. `None` if the client cannot get one: before HTTP, after a
    /// disconnect or a violation of HTTP/2, or once a response or a tunnel has started.
    pub fn status(&self) -> Option<u16> {
        Some(match self {
            Self::NotTls | Self::BadMaxForwards | Self::AmbiguousPath | Self::UnderscoreInName => 400,
            Self::BadRequest(error, _) => error.status(),
            Self::BadRequestBody(error) => error.status(),
            Self::BodyTooLarge => 413,
            Self::NoRoute => 404,
            Self::Misdirected | Self::ListenerGone => 421,
            Self::ConnectMethod => 501,
            Self::RateLimited(_) => 429,
            Self::TraceMethod => 405,
            Self::HeadTimeout | Self::BodyTimeout | Self::BodyTooSlow | Self::BodyOverdue => 408,
            Self::HandshakeTimeout
            | Self::BadProxyHeader(_)
            | Self::UntrustedProxy
            | Self::ClientDenied
            | Self::TooManyConnections
            | Self::TooManyHandshakes
            | Self::UnknownName(_)
            | Self::BadHello(_)
            | Self::ClientTls(_)
            | Self::ClientClosed
            | Self::ClientReset
            | Self::BadHttp2(_)
            | Self::BadStream(_)
            | Self::ClientStalled
            | Self::ClientTooSlow
            | Self::ResponseOverdue
            | Self::TunnelIdle
            | Self::UpstreamStray(_) => return None,
            Self::UpstreamConnectTimeout
            | Self::UpstreamHandshakeTimeout
            | Self::UpstreamTimeout
            | Self::ExchangeTimeout => 504,
            Self::UpstreamConnect(_)
            | Self::UpstreamTls(_)
            | Self::UpstreamClosed
            | Self::UpstreamTruncated
            | Self::UpstreamReset(_)
            | Self::UpstreamGoAway
            | Self::BadUpstreamHttp2(_)
            | Self::BadUpstreamStream(_)
            | Self::NotHttp2
            | Self::BadResponse(..)
            | Self::BadResponseBody(_)
            | Self::TooManyInterims
            | Self::UpstreamSwitched
            | Self::NotSwitched
            | Self::UpstreamUnsolicited
            | Self::UpstreamStalled => 502,
            Self::NoServer
            | Self::NoDescriptors
            | Self::NoMemory
            | Self::QueueFull
            | Self::QueueTimeout
            | Self::DrainTimeout => 503,
            Self::Internal(_) => 500,
        })
    }

    /// A stable word for the log, the counters and the response.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::BadRequest(error, _) => error.reason(),
            Self::BadRequestBody(error) => error.reason(),
            Self::BodyTooLarge => "body_too_large",
            Self::NoRoute => "no_route",
            Self::Misdirected => "misdirected_request",
            Self::ListenerGone => "listener_gone",
            Self::AmbiguousPath => "ambiguous_path",
            Self::ConnectMethod => "connect_not_supported",
            Self::TraceMethod => "trace_not_allowed",
            Self::BadMaxForwards => "bad_max_forwards",
            Self::UnderscoreInName => "underscore_in_field_name",
            Self::HeadTimeout => "head_timeout",
            Self::BodyTimeout => "body_timeout",
            Self::BodyTooSlow => "body_too_slow",
            Self::BodyOverdue => "body_overdue",
            Self::HandshakeTimeout => "handshake_timeout",
            Self::BadProxyHeader(_) => "bad_proxy_header",
            Self::UntrustedProxy => "untrusted_proxy",
            Self::ClientDenied => "client_denied",
            Self::TooManyConnections => "too_many_connections",
            Self::TooManyHandshakes => "too_many_handshakes",
            Self::RateLimited(_) => "rate_limited",
            Self::UnknownName(_) => "unknown_name",
            Self::BadHello(_) => "bad_client_hello",
            Self::NotTls => "not_tls",
            Self::ClientTls(_) => "client_tls",
            Self::ClientClosed => "client_closed",
            Self::ClientReset => "client_reset",
            Self::BadHttp2(ConnectionError::Abuse(_)) => "http2_abuse",
            Self::BadHttp2(_) => "bad_http2",
            Self::BadStream(_) => "bad_http2_stream",
            Self::ClientStalled => "client_stalled",
            Self::ClientTooSlow => "client_too_slow",
            Self::ResponseOverdue => "response_overdue",
            Self::NoServer => "no_server",
            Self::QueueFull => "queue_full",
            Self::QueueTimeout => "queue_timeout",
            Self::NoDescriptors => "no_descriptors",
            Self::NoMemory => "no_memory",
            Self::UpstreamConnect(_) => "upstream_connect",
            Self::UpstreamTls(_) => "upstream_tls",
            Self::UpstreamConnectTimeout => "upstream_connect_timeout",
            Self::UpstreamHandshakeTimeout => "upstream_handshake_timeout",
            Self::ExchangeTimeout => "exchange_timeout",
            Self::UpstreamClosed => "upstream_closed",
            Self::UpstreamTruncated => "upstream_truncated",
            Self::UpstreamReset(_) => "upstream_reset",
            Self::UpstreamGoAway => "upstream_go_away",
            Self::BadUpstreamHttp2(_) | Self::BadUpstreamStream(_) => "bad_upstream_http2",
            Self::NotHttp2 => "upstream_not_http2",
            Self::BadResponse(..) => "bad_response",
            Self::BadResponseBody(_) => "bad_response_body",
            Self::UpstreamStray(_) => "upstream_stray_bytes",
            Self::TooManyInterims => "upstream_interim_responses",
            Self::UpstreamSwitched => "upstream_switched_protocols",
            Self::NotSwitched => "upstream_not_switched",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamStalled => "upstream_stalled",
            Self::UpstreamUnsolicited => "upstream_unsolicited",
            Self::TunnelIdle => "tunnel_idle",
            Self::DrainTimeout => "drain_timeout",
            Self::Internal(_) => "internal_error",
        }
    }

    /// The failure of the server, if it caused the end. Repeated failures may eject the server for a while.
    pub(crate) fn failure(&self) -> Option<Failure> {
        match self {
            Self::UpstreamConnect(_)
            | Self::UpstreamTls(_)
            | Self::UpstreamConnectTimeout
            | Self::UpstreamHandshakeTimeout
            | Self::NotHttp2 => Some(Failure::Connect),
            Self::UpstreamTimeout | Self::UpstreamStalled => Some(Failure::Timeout),
            Self::UpstreamClosed
            | Self::UpstreamTruncated
            | Self::UpstreamReset(_)
            | Self::BadUpstreamHttp2(_)
            | Self::BadUpstreamStream(_)
            | Self::BadResponse(..)
            | Self::BadResponseBody(_)
            | Self::TooManyInterims
            | Self::UpstreamSwitched
            | Self::NotSwitched
            | Self::UpstreamUnsolicited => Some(Failure::Invalid),
            _ => None,
        }
    }

    /// Details for the log, with the setting that would have prevented the early end.
    pub fn detail(&self) -> Option<String> {
        match (self.cause(), self.hint()) {
            (Some(cause), Some(hint)) => Some(format!("{cause}; {hint}")),
            (cause, hint) => cause.or(hint),
        }
    }

    fn cause(&self) -> Option<String> {
        match self {
            Self::ClientTls(fault) | Self::UpstreamConnect(fault) | Self::UpstreamTls(fault) => {
                Some(fault.to_string())
            }
            Self::BadProxyHeader(error) => Some(error.to_string()),
            Self::UnknownName(name) if name.is_empty() => Some("the client sent no server name".to_owned()),
            Self::UnknownName(name) => Some(name.clone()),
            Self::BadHello(error) => Some(error.to_string()),
            Self::BadHttp2(error) | Self::BadUpstreamHttp2(error) => Some(error.to_string()),
            Self::BadStream(error) | Self::BadUpstreamStream(error) => Some(error.to_string()),
            Self::UpstreamReset(code) => Some(code.name().to_owned()),
            Self::BadRequest(error, _) => Some(error.to_string()),
            Self::BadResponse(error, _) => Some(error.to_string()),
            Self::BadRequestBody(error) | Self::BadResponseBody(error) => Some(error.to_string()),
            Self::UpstreamStray(bytes) => Some(format!("{bytes} bytes belong to no request; closed")),
            Self::Internal(what) => Some((*what).to_owned()),
            _ => None,
        }
    }

    /// The index of [`Reason::as_str`] in [`CODES`].
    pub(crate) fn code(&self) -> usize {
        let name = self.as_str();
        let code = CODES.iter().position(|known| *known == name);
        debug_assert!(code.is_some(), "{name} has no code");
        code.unwrap_or(CODES.len() - 1)
    }
}

/// All codes; the workers count reasons by the index of the code. `internal_error` is the last code.
pub(crate) const CODES: [&str; 99] = [
    "body_too_large",
    "no_server",
    "queue_full",
    "queue_timeout",
    "no_descriptors",
    "no_memory",
    "no_route",
    "misdirected_request",
    "listener_gone",
    "ambiguous_path",
    "connect_not_supported",
    "trace_not_allowed",
    "bad_max_forwards",
    "underscore_in_field_name",
    "head_timeout",
    "body_timeout",
    "body_too_slow",
    "body_overdue",
    "handshake_timeout",
    "bad_proxy_header",
    "untrusted_proxy",
    "client_denied",
    "too_many_connections",
    "too_many_handshakes",
    "rate_limited",
    "unknown_name",
    "bad_client_hello",
    "not_tls",
    "client_tls",
    "client_closed",
    "client_reset",
    "http2_abuse",
    "bad_http2",
    "bad_http2_stream",
    "client_stalled",
    "client_too_slow",
    "response_overdue",
    "upstream_connect",
    "upstream_tls",
    "upstream_connect_timeout",
    "upstream_handshake_timeout",
    "exchange_timeout",
    "upstream_closed",
    "upstream_truncated",
    "upstream_reset",
    "upstream_go_away",
    "bad_upstream_http2",
    "upstream_not_http2",
    "bad_response",
    "bad_response_body",
    "upstream_stray_bytes",
    "upstream_interim_responses",
    "upstream_switched_protocols",
    "upstream_not_switched",
    "upstream_timeout",
    "upstream_stalled",
    "upstream_unsolicited",
    "tunnel_idle",
    "drain_timeout",
    "head_too_long",
    "too_many_fields",
    "field_line_too_long",
    "bad_version",
    "unsupported_version",
    "bare_lf",
    "bare_cr",
    "control_character",
    "obs_fold",
    "bad_field_name",
    "whitespace_before_colon",
    "missing_colon",
    "bad_content_length",
    "differing_content_length",
    "content_length_and_transfer_encoding",
    "transfer_encoding_in_http10",
    "bad_transfer_encoding",
    "unknown_transfer_coding",
    "repeated_chunked",
    "chunked_not_final",
    "bad_connection_option",
    "connection_names_relied_on_field",
    "too_many_connection_options",
    "tls_on_cleartext",
    "request_line_too_long",
    "bad_method",
    "bad_request_line",
    "bad_target_character",
    "bad_target_form",
    "missing_host",
    "duplicate_host",
    "bad_host",
    "truncated_body",
    "bad_chunk_size",
    "bad_chunk_extension",
    "chunk_extension_too_long",
    "bad_chunk_end",
    "bad_trailer",
    "trailer_too_large",
    "internal_error",
];

#[cfg(test)]
mod tests {
    use super::CODES;
    use std::collections::BTreeSet;

    /// docs/gateway/reasons.md must define each reason, and docs/OPERATING.md must explain the response to it.
    #[test]
    fn every_reason_is_documented() {
        let meanings = include_str!("../../../docs/gateway/reasons.md");
        let (_, remedies) =
            include_str!("../../../docs/OPERATING.md").split_once("## Response to each reason").unwrap();
        let (own, _) = include_str!("reason.rs").split_once("mod tests").unwrap();
        let rules = include_str!("../../http1/src/error.rs");
        // The detail of a log line explains invalid responses, so the documents need not list them.
        let (requests, rest) = rules.split_once("impl ResponseError").unwrap();
        let (_, bodies) = rest.split_once("impl BodyError").unwrap();
        let mut seen = BTreeSet::new();
        for line in [own, requests, bodies].into_iter().flat_map(str::lines) {
            let Some(reason) = line.split_once(" => \"").and_then(|(_, rest)| rest.strip_suffix("\","))
            else {
                continue;
            };
            for documented in [meanings, remedies] {
                assert!(documented.contains(&format!("`{reason}`")), "{reason}");
            }
            assert!(CODES.contains(&reason), "{reason} has no code");
            seen.insert(reason);
        }
        assert_eq!(seen, BTreeSet::from(CODES));
    }
}
