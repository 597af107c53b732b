//! What a handshake negotiated.

use std::fmt;

use rustls::{CommonState, SignatureScheme};

use crate::notes::{Notes, Origin};
use crate::{Group, Suite, Version};

/// What a finished handshake negotiated.
///
/// Its `Display` is one stable line: version, suite, group, signature, kind, `hello-retry` if there was one, and
/// `alpn=`; what does not apply is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The version.
    pub version: Version,
    /// The cipher suite.
    pub suite: Suite,
    /// The group of the key exchange. None for a resumption in TLS 1.2, which has no key exchange.
    pub group: Option<Group>,
    /// How the server signed the handshake. None for a resumption, which has no signature.
    pub signature: Option<Signature>,
    /// Full or one of the resumptions.
    pub kind: HandshakeKind,
    /// Whether the server answered the first ClientHello by a HelloRetryRequest (RFC 8446 4.1.4), which costs a round
    /// trip.
    pub hello_retry: bool,
    /// The application protocol (RFC 7301), None if none was agreed.
    pub alpn: Option<Vec<u8>>,
}

/// How the server proved that it has the certificate's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signature {
    /// ECDSA over P-256 with SHA-256. In TLS 1.2 the name does not bind the curve.
    EcdsaP256Sha256,
    /// ECDSA over P-384 with SHA-384. In TLS 1.2 the name does not bind the curve.
    EcdsaP384Sha384,
    /// ECDSA over P-521 with SHA-512. In TLS 1.2 the name does not bind the curve.
    EcdsaP521Sha512,
    /// Ed25519.
    Ed25519,
    /// RSA-PSS with SHA-256.
    RsaPssSha256,
    /// RSA-PSS with SHA-384.
    RsaPssSha384,
    /// RSA-PSS with SHA-512.
    RsaPssSha512,
    /// RSA PKCS#1 1.5 with SHA-256 (TLS 1.2 only).
    RsaPkcs1Sha256,
    /// RSA PKCS#1 1.5 with SHA-384 (TLS 1.2 only).
    RsaPkcs1Sha384,
    /// RSA PKCS#1 1.5 with SHA-512 (TLS 1.2 only).
    RsaPkcs1Sha512,
    /// Another one, by its number in the IANA registry of signature schemes.
    Other(u16),
}

/// Whether the handshake was full or a resumption, and by which means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandshakeKind {
    /// A full handshake, with a key exchange and a signature.
    Full,
    /// TLS 1.2, by a session identifier that the server looked up (RFC 5246 7.3).
    Resume12Id,
    /// TLS 1.2, by a ticket (RFC 5077).
    Resume12Ticket,
    /// TLS 1.3, by a pre-shared key with a new key exchange (RFC 8446 2.2).
    Resume13Psk,
}

impl Facts {
    /// None as long as the handshake goes on.
    pub(crate) fn of(state: &CommonState, notes: Notes, hello_retry: bool) -> Option<Self> {
        let version = Version::from_rustls(state.protocol_version()?)?;
        let kind = match (state.handshake_kind()?, version) {
            (rustls::HandshakeKind::Full | rustls::HandshakeKind::FullWithHelloRetryRequest, _) => {
                HandshakeKind::Full
            }
            (rustls::HandshakeKind::Resumed, Version::Tls13) => HandshakeKind::Resume13Psk,
            (rustls::HandshakeKind::Resumed, Version::Tls12) => match notes.origin {
                Some(Origin::Ticket) => HandshakeKind::Resume12Ticket,
                Some(Origin::SessionId) | None => HandshakeKind::Resume12Id,
            },
        };
        let group = state.negotiated_key_exchange_group().map(rustls::crypto::SupportedKxGroup::name);
        Some(Self {
            version,
            suite: Suite::from_rustls(state.negotiated_cipher_suite()?.suite())?,
            group: group.and_then(Group::from_rustls),
            signature: match kind {
                HandshakeKind::Full => notes.signature.map(Signature::from),
                _ => None,
            },
            kind,
            hello_retry,
            alpn: state.alpn_protocol().map(<[u8]>::to_vec),
        })
    }
}

impl HandshakeKind {
    /// The name in reports: `full`, `resume-1.2-id`, `resume-1.2-ticket`, `resume-1.3-psk`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Resume12Id => "resume-1.2-id",
            Self::Resume12Ticket => "resume-1.2-ticket",
            Self::Resume13Psk => "resume-1.3-psk",
        }
    }

    /// Whether this is a resumption.
    pub fn is_resumption(self) -> bool {
        self != Self::Full
    }
}

impl From<SignatureScheme> for Signature {
    fn from(scheme: SignatureScheme) -> Self {
        match scheme {
            SignatureScheme::ECDSA_NISTP256_SHA256 => Self::EcdsaP256Sha256,
            SignatureScheme::ECDSA_NISTP384_SHA384 => Self::EcdsaP384Sha384,
            SignatureScheme::ECDSA_NISTP521_SHA512 => Self::EcdsaP521Sha512,
            SignatureScheme::ED25519 => Self::Ed25519,
            SignatureScheme::RSA_PSS_SHA256 => Self::RsaPssSha256,
            SignatureScheme::RSA_PSS_SHA384 => Self::RsaPssSha384,
            SignatureScheme::RSA_PSS_SHA512 => Self::RsaPssSha512,
            SignatureScheme::RSA_PKCS1_SHA256 => Self::RsaPkcs1Sha256,
            SignatureScheme::RSA_PKCS1_SHA384 => Self::RsaPkcs1Sha384,
            SignatureScheme::RSA_PKCS1_SHA512 => Self::RsaPkcs1Sha512,
            other => Self::Other(u16::from(other)),
        }
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.version, self.suite)?;
        if let Some(group) = self.group {
            write!(f, " {group}")?;
        }
        if let Some(signature) = self.signature {
            write!(f, " {signature}")?;
        }
        write!(f, " {}", self.kind)?;
        if self.hello_retry {
            f.write_str(" hello-retry")?;
        }
        if let Some(alpn) = &self.alpn {
            write!(f, " alpn={}", alpn.escape_ascii())?;
        }
        Ok(())
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::EcdsaP256Sha256 => "ecdsa-p256-sha256",
            Self::EcdsaP384Sha384 => "ecdsa-p384-sha384",
            Self::EcdsaP521Sha512 => "ecdsa-p521-sha512",
            Self::Ed25519 => "ed25519",
            Self::RsaPssSha256 => "rsa-pss-sha256",
            Self::RsaPssSha384 => "rsa-pss-sha384",
            Self::RsaPssSha512 => "rsa-pss-sha512",
            Self::RsaPkcs1Sha256 => "rsa-pkcs1-sha256",
            Self::RsaPkcs1Sha384 => "rsa-pkcs1-sha384",
            Self::RsaPkcs1Sha512 => "rsa-pkcs1-sha512",
            Self::Other(number) => return write!(f, "0x{number:04x}"),
        })
    }
}

impl fmt::Display for HandshakeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
