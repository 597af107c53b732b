//! Errors, classified by fault.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};

use crate::{CurvesError, Signature, Suite, UnknownName, Version};

/// Invalid settings; the operator must correct them.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A file of certificates, keys or secrets, or the system's certificate store, is unusable.
    #[error(transparent)]
    File(#[from] FileError),
    /// Versions, suites, groups, signature schemes, application protocols or tickets are invalid.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// An unknown name.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// Curves that this process cannot use.
    #[error(transparent)]
    Curves(#[from] CurvesError),
    /// The TLS library or crypto backend rejected the settings for another reason.
    #[error("the TLS library rejected the settings: {0}")]
    Refused(String),
}

/// An unusable file of certificates, keys or secrets, or an unusable system certificate store.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file cannot be read, written, locked or replaced.
    #[error("cannot {what} {path}: {source}", path = path.display())]
    System {
        /// The failed operation, such as `read`.
        what: &'static str,
        /// The file on which the operation failed.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file, or PEM in memory, has invalid content.
    #[error("{origin}: {what}: {detail}")]
    Bad {
        /// The file, or a name for PEM in memory.
        origin: String,
        /// The finding, such as `no usable private key`.
        what: &'static str,
        /// The cause, and the expected content.
        detail: String,
    },
    /// The key does not match the certificate.
    #[error("the key in {key} does not match the first certificate in {certificates}")]
    KeyMismatch {
        /// The file of the certificate chain.
        certificates: String,
        /// The file of the key.
        key: String,
    },
    /// Two certificates for the same name have the same kind of key.
    #[error("{first} and {second} are both for {name}, with the same kind of key: expected one of them")]
    SameName {
        /// The name in both certificates.
        name: String,
        /// The file of the first certificate.
        first: String,
        /// The file of the second certificate.
        second: String,
    },
    /// The system has no certificate store, or an empty one.
    #[error("no trusted CAs found on this system{detail}; specify a CA file")]
    NoNativeRoots {
        /// The cause after a colon, or empty.
        detail: String,
    },
}

/// Parameters that are invalid or contradict each other.
#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    /// No enabled TLS 1.2 suite fits the certificate's key.
    #[error(
        "the certificate's key is {key}: with only TLS 1.2 enabled, expected one of the suites {allowed}"
    )]
    SuitesDoNotFitKey {
        /// The key's kind, `ECDSA` or `RSA`.
        key: &'static str,
        /// The TLS 1.2 suites that fit the key.
        allowed: String,
    },
    /// A suite of a version that is not enabled.
    #[error("suite {suite} belongs to TLS {}, but only {enabled} is enabled", suite.version())]
    SuiteFitsNoVersion {
        /// The configured suite.
        suite: Suite,
        /// The enabled versions.
        enabled: String,
    },
    /// A version is enabled without a suite or group for it.
    #[error("TLS {version} is enabled without any of its {what}: expected one of {allowed}")]
    VersionHasNone {
        /// The enabled version.
        version: Version,
        /// `suites` or `groups`.
        what: &'static str,
        /// The version's suites or groups.
        allowed: String,
    },
    /// A version is enabled without a signature scheme that fits the version and its suites.
    #[error("TLS {version} is enabled without a signature scheme for it: expected one of {allowed}")]
    VersionHasNoSignature {
        /// The enabled version.
        version: Version,
        /// The schemes that fit the version's suites.
        allowed: String,
    },
    /// An unsupported signature scheme.
    #[error("signature scheme {signature} is not supported: expected one of {allowed}")]
    SignatureNotSupported {
        /// The configured scheme.
        signature: Signature,
        /// The supported schemes.
        allowed: String,
    },
    /// An empty list that needs at least one entry.
    #[error("no TLS {what} enabled: expected at least one")]
    Empty {
        /// The name of the list.
        what: &'static str,
    },
    /// An application protocol name of invalid length.
    #[error("ALPN protocol {name:?}: expected 1 to 255 bytes")]
    BadAlpn {
        /// The name, escaped.
        name: String,
    },
    /// Too many tickets per handshake.
    #[error("tickets: invalid value {tickets}: expected 0 to {most}")]
    TooManyTickets {
        /// The configured number.
        tickets: u32,
        /// The maximum number of tickets.
        most: u32,
    },
    /// A ticket lifetime that is too short or too long.
    #[error("ticket lifetime: invalid value {} s: expected 60 s to 84 h", lifetime.as_secs())]
    TicketLifetime {
        /// The configured lifetime.
        lifetime: Duration,
    },
    /// A record size that is too small or too large.
    #[error("record size: invalid value {bytes}: expected 512 to 16384 bytes")]
    RecordSize {
        /// The configured size.
        bytes: usize,
    },
}

/// The party at fault for a failed session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The peer violated the protocol, or does not speak TLS.
    Peer,
    /// The settings of both sides are incompatible: versions, suites, certificates.
    Settings,
    /// This side: a misuse of [`crate::Session`], or a library failure.
    Ours,
}

/// The cause of a failed session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The peer does not speak TLS: its first bytes are not a TLS record.
    #[error("not TLS{}", if *.http { ": the peer speaks plain HTTP" } else { "" })]
    NotTls {
        /// Whether the first bytes look like HTTP/1 or the HTTP/2 preface, so that a cleartext response may help.
        http: bool,
    },
    /// The peer sent a fatal alert (RFC 8446 6.2).
    #[error("the peer sent alert {}{}", alert_name(*.0), alert_hint(*.0))]
    PeerAlert(u8),
    /// The ClientHello is too long, or has too many records.
    #[error("a ClientHello of more than 16 KiB or 64 records")]
    HelloTooLong,
    /// The peer violated the protocol.
    #[error("the peer violated the protocol: {0}")]
    PeerMisbehaved(String),
    /// A record failed to decrypt: it was modified, or encrypted under another key.
    #[error("cannot decrypt a record from the peer")]
    BadRecord,
    /// The two sides have no version, suite, group or signature scheme in common.
    #[error("nothing in common with the peer: {0}")]
    Incompatible(String),
    /// The two sides have no application protocol in common (RFC 7301 3.2).
    #[error("no application protocol in common with the peer")]
    NoApplicationProtocol,
    /// The peer's certificate is not trusted.
    #[error("the peer's certificate is not trusted: {detail}")]
    CertificateNotTrusted {
        /// The reason, as a stable name: see [`TlsError::reason`].
        reason: &'static str,
        /// The reason, as text.
        detail: String,
    },
    /// A certificate was required and the peer sent none.
    #[error("the peer sent no certificate, but one is required")]
    CertificateMissing,
    /// `send` was called before the handshake was done.
    #[error("the handshake is not done")]
    Handshaking,
    /// `send` was called after `close`.
    #[error("the session is closed")]
    Closed,
    /// The TLS library failed.
    #[error("TLS failed on our side: {0}")]
    Internal(String),
}

impl TlsError {
    /// The party at fault.
    pub fn fault(&self) -> Fault {
        match self {
            Self::NotTls { .. } | Self::HelloTooLong | Self::PeerMisbehaved(_) | Self::BadRecord => {
                Fault::Peer
            }
            Self::PeerAlert(_)
            | Self::Incompatible(_)
            | Self::NoApplicationProtocol
            | Self::CertificateNotTrusted { .. }
            | Self::CertificateMissing => Fault::Settings,
            Self::Handshaking | Self::Closed | Self::Internal(_) => Fault::Ours,
        }
    }

    /// A stable name in snake case, for logs and metrics: `not_tls`, `not_tls_http`, `alert_` with the
    /// alert's name, `hello_too_long`, `peer_misbehaved`, `bad_record`, `incompatible`,
    /// `no_application_protocol`; `certificate_` with `expired`, `not_valid_yet`, `unknown_issuer`,
    /// `wrong_name`, `revoked`, `bad_signature`, `bad_encoding`, `wrong_purpose`, `list_expired`, `is_a_ca`,
    /// `missing` or `other`; `handshaking`, `closed`, `internal`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotTls { http: true } => "not_tls_http",
            Self::NotTls { http: false } => "not_tls",
            Self::PeerAlert(alert) => alert_reason(*alert),
            Self::HelloTooLong => "hello_too_long",
            Self::PeerMisbehaved(_) => "peer_misbehaved",
            Self::BadRecord => "bad_record",
            Self::Incompatible(_) => "incompatible",
            Self::NoApplicationProtocol => "no_application_protocol",
            Self::CertificateNotTrusted { reason, .. } => reason,
            Self::CertificateMissing => "certificate_missing",
            Self::Handshaking => "handshaking",
            Self::Closed => "closed",
            Self::Internal(_) => "internal",
        }
    }
}

impl From<Error> for TlsError {
    fn from(error: Error) -> Self {
        match error {
            Error::AlertReceived(alert) => Self::PeerAlert(u8::from(alert)),
            Error::DecryptError => Self::BadRecord,
            Error::NoApplicationProtocol => Self::NoApplicationProtocol,
            Error::NoCertificatesPresented => Self::CertificateMissing,
            Error::InvalidCertificate(why) => Self::CertificateNotTrusted {
                reason: certificate_reason(&why),
                detail: certificate_detail(&why),
            },
            Error::PeerIncompatible(why) => Self::Incompatible(incompatibility(&why)),
            Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion) => {
                Self::PeerMisbehaved("a record of an unknown protocol version".to_owned())
            }
            error @ (Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::InvalidMessage(_)
            | Error::InvalidEncryptedClientHello(_)
            | Error::PeerMisbehaved(_)
            | Error::PeerSentOversizedRecord) => Self::PeerMisbehaved(error.to_string()),
            other => Self::Internal(other.to_string()),
        }
    }
}

fn certificate_reason(why: &CertificateError) -> &'static str {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "certificate_expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "certificate_not_valid_yet"
        }
        CertificateError::UnknownIssuer => "certificate_unknown_issuer",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "certificate_wrong_name"
        }
        CertificateError::Revoked => "certificate_revoked",
        CertificateError::ExpiredRevocationList | CertificateError::ExpiredRevocationListContext { .. } => {
            "certificate_list_expired"
        }
        CertificateError::BadSignature => "certificate_bad_signature",
        CertificateError::BadEncoding => "certificate_bad_encoding",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "certificate_wrong_purpose"
        }
        why if is_ca_as_server(why) => "certificate_is_a_ca",
        _ => "certificate_other",
    }
}

fn certificate_detail(why: &CertificateError) -> String {
    use CertificateError::{ExpiredRevocationList, ExpiredRevocationListContext};
    if matches!(why, ExpiredRevocationList | ExpiredRevocationListContext { .. }) {
        return "the next revocation list of its CA is overdue".to_owned();
    }
    match is_ca_as_server(why) {
        true => "it is marked as a CA, as `openssl req -x509` makes it unless told otherwise; issue it with \
                 `-addext basicConstraints=critical,CA:FALSE`"
            .to_owned(),
        false => why.to_string(),
    }
}

/// Whether the peer's certificate was rejected because it is marked as a CA, as most self-signed ones are.
/// The library reports this only as debug text.
pub fn is_ca_as_server(why: &CertificateError) -> bool {
    matches!(why, CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity"))
}

fn incompatibility(why: &PeerIncompatible) -> String {
    match why {
        PeerIncompatible::NoCipherSuitesInCommon => "no suite".to_owned(),
        PeerIncompatible::NoKxGroupsInCommon => "no group".to_owned(),
        PeerIncompatible::NoSignatureSchemesInCommon
        | PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon => "no signature scheme".to_owned(),
        PeerIncompatible::ServerDoesNotSupportTls12Or13
        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
        | PeerIncompatible::SupportedVersionsExtensionRequired
        | PeerIncompatible::Tls12NotOffered
        | PeerIncompatible::Tls12NotOfferedOrEnabled => "no version".to_owned(),
        other => format!("{other:?}"),
    }
}

fn alert_name(alert: u8) -> String {
    match alert_reason(alert) {
        "alert_unknown" => format!("number {alert}"),
        known => known.trim_start_matches("alert_").to_owned(),
    }
}

/// Explains an alert whose name says little about its many causes.
fn alert_hint(alert: u8) -> &'static str {
    match AlertDescription::from(alert) {
        AlertDescription::HandshakeFailure => {
            ": it found no version, suite, group or signature in common; in TLS 1.2, the curve of a server's ECDSA \
             certificate must be a group, too, which P-521 is not here"
        }
        _ => "",
    }
}

fn alert_reason(alert: u8) -> &'static str {
    match AlertDescription::from(alert) {
        AlertDescription::CloseNotify => "alert_close_notify",
        AlertDescription::UnexpectedMessage => "alert_unexpected_message",
        AlertDescription::BadRecordMac => "alert_bad_record_mac",
        AlertDescription::DecryptionFailed => "alert_decryption_failed",
        AlertDescription::RecordOverflow => "alert_record_overflow",
        AlertDescription::DecompressionFailure => "alert_decompression_failure",
        AlertDescription::HandshakeFailure => "alert_handshake_failure",
        AlertDescription::NoCertificate => "alert_no_certificate",
        AlertDescription::BadCertificate => "alert_bad_certificate",
        AlertDescription::UnsupportedCertificate => "alert_unsupported_certificate",
        AlertDescription::CertificateRevoked => "alert_certificate_revoked",
        AlertDescription::CertificateExpired => "alert_certificate_expired",
        AlertDescription::CertificateUnknown => "alert_certificate_unknown",
        AlertDescription::IllegalParameter => "alert_illegal_parameter",
        AlertDescription::UnknownCA => "alert_unknown_ca",
        AlertDescription::AccessDenied => "alert_access_denied",
        AlertDescription::DecodeError => "alert_decode_error",
        AlertDescription::DecryptError => "alert_decrypt_error",
        AlertDescription::ExportRestriction => "alert_export_restriction",
        AlertDescription::ProtocolVersion => "alert_protocol_version",
        AlertDescription::InsufficientSecurity => "alert_insufficient_security",
        AlertDescription::InternalError => "alert_internal_error",
        AlertDescription::InappropriateFallback => "alert_inappropriate_fallback",
        AlertDescription::UserCanceled => "alert_user_canceled",
        AlertDescription::NoRenegotiation => "alert_no_renegotiation",
        AlertDescription::MissingExtension => "alert_missing_extension",
        AlertDescription::UnsupportedExtension => "alert_unsupported_extension",
        AlertDescription::CertificateUnobtainable => "alert_certificate_unobtainable",
        AlertDescription::UnrecognisedName => "alert_unrecognized_name",
        AlertDescription::BadCertificateStatusResponse => "alert_bad_certificate_status_response",
        AlertDescription::BadCertificateHashValue => "alert_bad_certificate_hash_value",
        AlertDescription::UnknownPSKIdentity => "alert_unknown_psk_identity",
        AlertDescription::CertificateRequired => "alert_certificate_required",
        AlertDescription::NoApplicationProtocol => "alert_no_application_protocol",
        AlertDescription::EncryptedClientHelloRequired => "alert_ech_required",
        _ => "alert_unknown",
    }
}
