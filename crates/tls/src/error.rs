//! Errors that say whose fault it was.

use std::io;
use std::path::PathBuf;

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};

use crate::{Signature, Suite, UnknownName, Version};

/// Settings that cannot work. Always the operator's to mend.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Certificates and keys: a file, or the system's store.
    #[error(transparent)]
    File(#[from] FileError),
    /// What is offered: versions, suites, groups, signature schemes, application protocols, tickets.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// A name that is none of the known ones.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// The TLS or cryptographic library refused for another reason.
    #[error("the TLS library refused the settings: {0}")]
    Refused(String),
}

/// What is wrong with a file of certificates, keys or secrets.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read or written.
    #[error("cannot {what} {path}: {source}", path = path.display())]
    System {
        /// `read` or `write`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not what it should be.
    #[error("{origin}: {what}: {detail}")]
    Bad {
        /// The file, or what stands for it.
        origin: String,
        /// What it is not, or has not.
        what: &'static str,
        /// What is wrong, or what it is instead and what is expected.
        detail: String,
    },
    /// The key belongs to another certificate.
    #[error("the key in {key} does not belong to the first certificate in {certificates}")]
    KeyMismatch {
        /// Where the certificates are.
        certificates: String,
        /// Where the key is.
        key: String,
    },
    /// The system has no certificate store, or an empty one.
    #[error("no trusted certificates found on this system{detail}; name a file of your own")]
    NoNativeRoots {
        /// What went wrong, with a leading colon, or nothing.
        detail: String,
    },
}

/// What cannot be offered, or not together.
#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    /// None of the suites of an enabled TLS 1.2 can be used with the certificate's key.
    #[error("the certificate's key is {key}: with only TLS 1.2 enabled, allowed suites: {allowed}")]
    SuitesDoNotFitKey {
        /// The key's kind, `ECDSA` or `RSA`.
        key: &'static str,
        /// The suites that fit.
        allowed: String,
    },
    /// A suite belongs to a version that is not enabled.
    #[error("suite {suite} belongs to TLS {}, enabled: {enabled}", suite.version())]
    SuiteFitsNoVersion {
        /// The suite.
        suite: Suite,
        /// The enabled versions.
        enabled: String,
    },
    /// A version is enabled without a suite or a group that it could use.
    #[error("TLS {version} is enabled and none of its {what} is; allowed: {allowed}")]
    VersionHasNone {
        /// The version.
        version: Version,
        /// `suites` or `groups`.
        what: &'static str,
        /// Its suites or groups.
        allowed: String,
    },
    /// A version is enabled without a signature scheme that it, with its suites, could use.
    #[error("TLS {version} is enabled and none of the signature schemes fits it; allowed: {allowed}")]
    VersionHasNoSignature {
        /// The version.
        version: Version,
        /// The schemes that fit its suites.
        allowed: String,
    },
    /// A signature scheme that cannot be verified.
    #[error("signature scheme {signature} cannot be verified; allowed: {allowed}")]
    SignatureNotSupported {
        /// The scheme.
        signature: Signature,
        /// Those that can be.
        allowed: String,
    },
    /// A list that needs at least one entry has none.
    #[error("no TLS {what} enabled; at least one is needed")]
    Empty {
        /// Which list.
        what: &'static str,
    },
    /// An application protocol's name has a length that cannot be sent.
    #[error("ALPN protocol {name:?}: its length must be 1 to 255 bytes")]
    BadAlpn {
        /// The name, escaped.
        name: String,
    },
    /// More tickets per handshake than make sense.
    #[error("tickets: {tickets}; allowed: 0 to {most}")]
    TooManyTickets {
        /// The number given.
        tickets: u32,
        /// The highest allowed.
        most: u32,
    },
}

/// Whose fault it was that a session failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The peer broke the protocol, or is something else than a TLS peer.
    Peer,
    /// The two sides' settings do not meet: versions, suites, certificates.
    Settings,
    /// Our own: a misuse of [`crate::Session`], or a failure of the library.
    Ours,
}

/// Why a session failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The peer does not speak TLS: its first bytes are no TLS record.
    #[error("not TLS{}", if *.http { ": the peer speaks plain HTTP" } else { "" })]
    NotTls {
        /// Whether the first bytes look like HTTP/1 or the HTTP/2 preface, so that an answer in clear may help.
        http: bool,
    },
    /// The peer gave up and said why (RFC 8446 6.2).
    #[error("the peer sent alert {}", alert_name(*.0))]
    PeerAlert(u8),
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    PeerMisbehaved(String),
    /// A record did not decrypt: it was changed on its way, or encrypted under another key.
    #[error("a record from the peer did not decrypt")]
    BadRecord,
    /// Nothing that both sides support: version, suite, group or signature.
    #[error("nothing in common with the peer: {0}")]
    Incompatible(String),
    /// No application protocol that both sides support (RFC 7301 3.2).
    #[error("no application protocol in common with the peer")]
    NoApplicationProtocol,
    /// The peer's certificate is not trusted.
    #[error("the peer's certificate is not trusted: {detail}")]
    CertificateNotTrusted {
        /// Why, as a stable name: see [`TlsError::reason`].
        reason: &'static str,
        /// Why, for people.
        detail: String,
    },
    /// A certificate was required and the peer gave none.
    #[error("the peer presented no certificate, and one is required")]
    CertificateMissing,
    /// `send` was called before the handshake was done.
    #[error("the handshake is not done")]
    Handshaking,
    /// `send` was called after `close`.
    #[error("the session is closed")]
    Closed,
    /// The library failed.
    #[error("TLS failed on our side: {0}")]
    Internal(String),
}

impl TlsError {
    /// Whose fault it was.
    pub fn fault(&self) -> Fault {
        match self {
            Self::NotTls { .. } | Self::PeerMisbehaved(_) | Self::BadRecord => Fault::Peer,
            Self::PeerAlert(_)
            | Self::Incompatible(_)
            | Self::NoApplicationProtocol
            | Self::CertificateNotTrusted { .. }
            | Self::CertificateMissing => Fault::Settings,
            Self::Handshaking | Self::Closed | Self::Internal(_) => Fault::Ours,
        }
    }

    /// A stable name in snake case, for logs and metrics: `not_tls`, `not_tls_http`, `alert_` and the alert's name,
    /// `peer_misbehaved`, `bad_record`, `incompatible`, `no_application_protocol`, `certificate_` and one of `expired`,
    /// `not_valid_yet`, `unknown_issuer`, `wrong_name`, `revoked`, `bad_signature`, `bad_encoding`, `wrong_purpose`,
    /// `missing`, `other`; `handshaking`, `closed`, `internal`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotTls { http: true } => "not_tls_http",
            Self::NotTls { http: false } => "not_tls",
            Self::PeerAlert(alert) => alert_reason(*alert),
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
            Error::InvalidCertificate(why) => {
                Self::CertificateNotTrusted { reason: certificate_reason(&why), detail: why.to_string() }
            }
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
        CertificateError::BadSignature => "certificate_bad_signature",
        CertificateError::BadEncoding => "certificate_bad_encoding",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "certificate_wrong_purpose"
        }
        _ => "certificate_other",
    }
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
