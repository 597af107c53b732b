//! The negotiated parameters of a handshake.

use std::fmt;

use rustls::CommonState;
use rustls_pki_types::CertificateDer;

use crate::notes::{Notes, Origin};
use crate::{Group, Signature, Suite, Version};

/// The negotiated parameters of a finished handshake.
///
/// Its `Display` is one stable line: version, suite, group, signature, kind, `hello-retry` after a
/// HelloRetryRequest, `alpn=`, and `chain=` with the number of certificates and their bytes, as in
/// `chain=2/1543`; inapplicable parts are omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The negotiated TLS version.
    pub version: Version,
    /// The negotiated cipher suite.
    pub suite: Suite,
    /// The group of the key exchange; `None` for a TLS 1.2 resumption, which has no key exchange.
    pub group: Option<Group>,
    /// The signature scheme of the handshake; `None` for a resumption, which has no signature.
    pub signature: Option<Signature>,
    /// Whether the handshake was full, or the kind of resumption.
    pub kind: HandshakeKind,
    /// Whether the server sent a HelloRetryRequest (RFC 8446 4.1.4), which costs a round trip.
    pub hello_retry: bool,
    /// The application protocol (RFC 7301); `None` without ALPN.
    pub alpn: Option<Vec<u8>>,
    /// The peer's certificates; `None` for a resumption, which sends none, and for a client without a certificate.
    pub chain: Option<Chain>,
}

/// The certificate chain of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chain {
    /// The number of certificates, including the leaf; saturates at 255.
    pub certificates: u8,
    /// The total DER size in bytes, without TLS framing.
    pub bytes: u32,
}

/// The kind of handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandshakeKind {
    /// A full handshake, with a key exchange and a signature.
    Full,
    /// TLS 1.2, by session ID (RFC 5246 7.3).
    Resume12Id,
    /// TLS 1.2, by a ticket (RFC 5077).
    Resume12Ticket,
    /// TLS 1.3, by a pre-shared key with a new key exchange (RFC 8446 2.2).
    Resume13Psk,
}

impl Facts {
    /// The facts of a connection; `None` during the handshake.
    pub(crate) fn of(
        state: &CommonState,
        notes: Notes,
        hello_retry: bool,
        chain: Option<Chain>,
    ) -> Option<Self> {
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
            // After a resumption, rustls still reports the certificates of the full handshake.
            chain: chain.filter(|_| kind == HandshakeKind::Full),
        })
    }
}

impl HandshakeKind {
    /// The name in reports: `full`, `resume-1.2-id`, `resume-1.2-ticket`, `resume-1.3-psk`.
    pub const fn name(self) -> &'static str {
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

impl Chain {
    pub(crate) fn of(certificates: &[CertificateDer<'_>]) -> Self {
        let bytes = certificates.iter().map(|certificate| certificate.len()).sum::<usize>();
        Self {
            certificates: u8::try_from(certificates.len()).unwrap_or(u8::MAX),
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
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
        if let Some(Chain { certificates, bytes }) = self.chain {
            write!(f, " chain={certificates}/{bytes}")?;
        }
        Ok(())
    }
}

impl fmt::Display for HandshakeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
