//! Why an exchange or a connection ended early: one enum for the log, the counters and the answer.

use crate::config::document::Failure;
use std::time::Duration;
use weir_http1::{BodyError, RequestError, ResponseError, Rule};
use weir_preface::hello::HelloError;
use weir_preface::proxy::ProxyError;
use weir_transport::Fault;

/// Why something ended early. The names say whose fault it was.
#[derive(Debug)]
pub enum Reason {
    /// The client's request is invalid; the rule without which it would pass, if a listener can let that pass.
    BadRequest(RequestError, Option<Rule>),
    /// The client's request body is invalid.
    BadRequestBody(BodyError),
    /// The request body is larger than the gateway's limit.
    BodyTooLarge,
    /// No route is for this request.
    NoRoute,
    /// Servers may read its path as that of another route.
    AmbiguousPath,
    /// `CONNECT`: this gateway opens no tunnels.
    ConnectMethod,
    /// `TRACE`, on a route that does not let it through.
    TraceMethod,
    /// `Max-Forwards` is not a number.
    BadMaxForwards,
    /// A field's name has an underscore, on a listener that refuses those.
    UnderscoreInName,
    /// The client did not complete a request head in time.
    HeadTimeout,
    /// The client stopped sending a request body.
    BodyTimeout,
    /// The client sent a request body too slowly.
    BodyTooSlow,
    /// A request body took too long in all.
    BodyOverdue,
    /// The client did not complete the TLS handshake in time.
    HandshakeTimeout,
    /// A connection that a proxy in front should have announced did not begin with a PROXY protocol header.
    BadProxyHeader(ProxyError),
    /// A connection from an address that is none of the proxies' in front.
    UntrustedProxy,
    /// A client from a network that is not let in.
    ClientDenied,
    /// The client has as many connections as it may have.
    TooManyConnections,
    /// More handshakes are unfinished than may be, or more have come than can be done, and this one had to go.
    TooManyHandshakes,
    /// The client has made as many requests as it may make; the time until the next one may come.
    RateLimited(Duration),
    /// The client asked for this name, for which nothing is here.
    UnknownName(String),
    /// The client did not begin with a ClientHello where connections are passed on by that.
    BadHello(HelloError),
    /// The client spoke cleartext HTTP, or another protocol, on a TLS port.
    NotTls,
    /// The client's TLS failed.
    ClientTls(Fault),
    /// The client went away in the middle of an exchange.
    ClientClosed,
    /// The client stopped reading its response.
    ClientStalled,
    /// The client read its response too slowly.
    ClientTooSlow,
    /// A response took too long in all.
    AnswerOverdue,
    /// All servers of the service are down or drained.
    NoServer,
    /// Each server has as many connections in use as it may have, and too many requests wait already.
    QueueFull,
    /// Each server had as many connections in use as it may have, for too long.
    QueueTimeout,
    /// The process has no descriptor for a connection to a server.
    NoDescriptors,
    /// Connections have as much memory as they may have, and the request would have to be held.
    NoMemory,
    /// The upstream could not be reached.
    UpstreamConnect(Fault),
    /// The upstream's TLS failed: not trusted, not TLS, or an alert.
    UpstreamTls(Fault),
    /// The upstream did not accept the connection in time.
    UpstreamConnectTimeout,
    /// The upstream did not complete its TLS handshake in time.
    UpstreamHandshakeTimeout,
    /// The upstream closed or reset the connection before its response.
    UpstreamClosed,
    /// The upstream closed or reset the connection during its response.
    UpstreamTruncated,
    /// The upstream's response is invalid; the rule without which it would pass, if a service can let that pass.
    BadResponse(ResponseError, Option<Rule>),
    /// The upstream's response body is invalid.
    BadResponseBody(BodyError),
    /// The upstream sent this many bytes beyond its response, or without a request.
    UpstreamStray(usize),
    /// The upstream sent more interim answers, or longer ones, than it may.
    TooManyInterims,
    /// The upstream switched protocols without being asked.
    UpstreamSwitched,
    /// The whole exchange took too long.
    ExchangeTimeout,
    /// The upstream did not respond in time, or did not read the request.
    UpstreamTimeout,
    /// The upstream stalled during its response.
    UpstreamStalled,
    /// The upstream answered before it was asked.
    UpstreamUnasked,
    /// Nothing passed through a tunnel for too long.
    TunnelIdle,
    /// The drain timed out.
    DrainTimeout,
    /// A fault of the gateway itself: what cannot happen has happened.
    Internal(&'static str),
}

impl Reason {
    /// The status for the client, if no response has started. `None`: the client is gone,
    /// or could not read it.
    pub fn status(&self) -> Option<u16> {
        Some(match self {
            Self::NotTls | Self::BadMaxForwards | Self::AmbiguousPath | Self::UnderscoreInName => 400,
            Self::BadRequest(error, _) => error.status(),
            Self::BadRequestBody(error) => error.status(),
            Self::BodyTooLarge => 413,
            Self::NoRoute => 404,
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
            | Self::ClientStalled
            | Self::ClientTooSlow
            | Self::AnswerOverdue
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
            | Self::BadResponse(..)
            | Self::BadResponseBody(_)
            | Self::TooManyInterims
            | Self::UpstreamSwitched
            | Self::UpstreamUnasked
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
            Self::ClientStalled => "client_stalled",
            Self::ClientTooSlow => "client_too_slow",
            Self::AnswerOverdue => "answer_overdue",
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
            Self::BadResponse(..) => "bad_response",
            Self::BadResponseBody(_) => "bad_response_body",
            Self::UpstreamStray(_) => "upstream_stray_bytes",
            Self::TooManyInterims => "upstream_interim_answers",
            Self::UpstreamSwitched => "upstream_switched_protocols",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamStalled => "upstream_stalled",
            Self::UpstreamUnasked => "upstream_answered_unasked",
            Self::TunnelIdle => "tunnel_idle",
            Self::DrainTimeout => "drain_timeout",
            Self::Internal(_) => "internal_error",
        }
    }

    /// How a server has failed, if it has. One that does this again and again should get no requests for a while.
    pub(crate) fn failure(&self) -> Option<Failure> {
        match self {
            Self::UpstreamConnect(_)
            | Self::UpstreamTls(_)
            | Self::UpstreamConnectTimeout
            | Self::UpstreamHandshakeTimeout => Some(Failure::Connect),
            Self::UpstreamTimeout | Self::UpstreamStalled => Some(Failure::Timeout),
            Self::UpstreamClosed
            | Self::UpstreamTruncated
            | Self::BadResponse(..)
            | Self::BadResponseBody(_)
            | Self::TooManyInterims
            | Self::UpstreamSwitched
            | Self::UpstreamUnasked => Some(Failure::Invalid),
            _ => None,
        }
    }

    /// Details for the log, with the setting by which it would not have happened.
    pub fn detail(&self) -> Option<String> {
        match (self.cause(), self.remedy()) {
            (Some(cause), Some(remedy)) => Some(format!("{cause}; {remedy}")),
            (cause, remedy) => cause.or(remedy),
        }
    }

    fn cause(&self) -> Option<String> {
        match self {
            Self::ClientTls(fault) | Self::UpstreamConnect(fault) | Self::UpstreamTls(fault) => {
                Some(fault.to_string())
            }
            Self::BadProxyHeader(error) => Some(error.to_string()),
            Self::UnknownName(name) if name.is_empty() => Some("it asked for none".to_owned()),
            Self::UnknownName(name) => Some(name.clone()),
            Self::BadHello(error) => Some(error.to_string()),
            Self::BadRequest(error, _) => Some(error.to_string()),
            Self::BadResponse(error, _) => Some(error.to_string()),
            Self::BadRequestBody(error) | Self::BadResponseBody(error) => Some(error.to_string()),
            Self::UpstreamStray(bytes) => Some(format!("{bytes} bytes belong to no request; closed")),
            Self::Internal(what) => Some((*what).to_owned()),
            _ => None,
        }
    }

    /// The place of [`Reason::as_str`] in [`CODES`].
    pub(crate) fn code(&self) -> usize {
        let name = self.as_str();
        let code = CODES.iter().position(|known| *known == name);
        debug_assert!(code.is_some(), "{name} has no code");
        code.unwrap_or(CODES.len() - 1)
    }
}

/// All codes, by which the workers count. `internal_error` comes last.
pub(crate) const CODES: [&str; 88] = [
    "body_too_large",
    "no_server",
    "queue_full",
    "queue_timeout",
    "no_descriptors",
    "no_memory",
    "no_route",
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
    "client_stalled",
    "client_too_slow",
    "answer_overdue",
    "upstream_connect",
    "upstream_tls",
    "upstream_connect_timeout",
    "upstream_handshake_timeout",
    "exchange_timeout",
    "upstream_closed",
    "upstream_truncated",
    "bad_response",
    "bad_response_body",
    "upstream_stray_bytes",
    "upstream_interim_answers",
    "upstream_switched_protocols",
    "upstream_timeout",
    "upstream_stalled",
    "upstream_answered_unasked",
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

    /// docs/gateway/reasons.md defines each reason, docs/OPERATING.md has the response to it.
    #[test]
    fn every_reason_is_documented() {
        let meanings = include_str!("../../../docs/gateway/reasons.md");
        let (_, remedies) =
            include_str!("../../../docs/OPERATING.md").split_once("## Response to each reason").unwrap();
        let (own, _) = include_str!("reason.rs").split_once("mod tests").unwrap();
        let rules = include_str!("../../http1/src/error.rs");
        // Those of answers stand in the line's detail.
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
