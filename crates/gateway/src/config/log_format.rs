//! The format of the access log's lines.

use crate::variables::{self, Piece};

/// The format of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// An object with all fields.
    #[default]
    Json,
    /// A text with variables such as `{status}`; `{{` is a brace.
    Template(Vec<LogPiece>),
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogPiece {
    Text(Box<str>),
    Variable(LogVariable),
}

/// A fact about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogVariable {
    Time,
    Client,
    ClientPort,
    Listener,
    Method,
    Host,
    Target,
    Protocol,
    Status,
    GrpcStatus,
    Reason,
    Received,
    Sent,
    Service,
    Server,
    Retries,
    TlsVersion,
    TlsSuite,
    TlsHandshake,
    ConnectMs,
    TlsMs,
    WaitMs,
    TransferMs,
    TotalMs,
    UserAgent,
    Referer,
    RequestId,
}

/// The variables by name, in the order of error messages.
const VARIABLES: [(&str, LogVariable); 27] = [
    ("time", LogVariable::Time),
    ("client", LogVariable::Client),
    ("client_port", LogVariable::ClientPort),
    ("listener", LogVariable::Listener),
    ("method", LogVariable::Method),
    ("host", LogVariable::Host),
    ("target", LogVariable::Target),
    ("protocol", LogVariable::Protocol),
    ("status", LogVariable::Status),
    ("grpc_status", LogVariable::GrpcStatus),
    ("reason", LogVariable::Reason),
    ("received", LogVariable::Received),
    ("sent", LogVariable::Sent),
    ("service", LogVariable::Service),
    ("server", LogVariable::Server),
    ("retries", LogVariable::Retries),
    ("tls_version", LogVariable::TlsVersion),
    ("tls_suite", LogVariable::TlsSuite),
    ("tls_handshake", LogVariable::TlsHandshake),
    ("connect_ms", LogVariable::ConnectMs),
    ("tls_ms", LogVariable::TlsMs),
    ("wait_ms", LogVariable::WaitMs),
    ("transfer_ms", LogVariable::TransferMs),
    ("total_ms", LogVariable::TotalMs),
    ("user_agent", LogVariable::UserAgent),
    ("referer", LogVariable::Referer),
    ("request_id", LogVariable::RequestId),
];

impl LogFormat {
    /// Parses a template. Errors: an unknown variable, or a brace alone.
    pub(crate) fn template(text: &str) -> Result<Self, String> {
        let pieces = variables::parse(text, &VARIABLES.map(|(name, _)| name))?;
        let pieces = pieces.into_iter().map(|piece| match piece {
            Piece::Text(text) => LogPiece::Text(text),
            Piece::Variable(at) => LogPiece::Variable(VARIABLES[at].1),
        });
        Ok(Self::Template(pieces.collect()))
    }
}
