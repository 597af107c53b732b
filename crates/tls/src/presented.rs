//! Facts about a certificate that this side presents.

use std::fmt;

use rustls::NamedGroup;
use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};
use x509_parser::public_key::PublicKey;

use crate::Staple;

/// A certificate that a server or a client presents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presented {
    /// The file, or a name for PEM in memory.
    pub origin: String,
    /// The DNS names of the certificate, in lower case; a wildcard begins with `*.`.
    pub names: Vec<String>,
    /// The kind of the certificate's key.
    pub key: KeyName,
    /// The first second of the certificate's validity, since the epoch.
    pub not_before: i64,
    /// The last second of the certificate's validity, since the epoch.
    pub not_after: i64,
    /// The OCSP response, if any.
    pub ocsp: Option<Staple>,
}

/// The kind of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyName {
    /// ECDSA with a curve of this many bits.
    Ecdsa(usize),
    /// Ed25519.
    Ed25519,
    /// RSA with this many bits.
    Rsa(usize),
    /// Another kind of key.
    Other,
}

impl Presented {
    /// Parses the leaf. Omits parts that fail to parse, since rustls has already accepted the certificate.
    pub(crate) fn of(origin: String, leaf: &CertificateDer<'_>) -> Self {
        let Ok((_, leaf)) = X509Certificate::from_der(leaf) else {
            return Self {
                origin,
                names: Vec::new(),
                key: KeyName::Other,
                not_before: 0,
                not_after: i64::MAX,
                ocsp: None,
            };
        };
        let names = leaf.subject_alternative_name().ok().flatten();
        let names = names.iter().flat_map(|names| &names.value.general_names);
        let dns = names.filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        });
        Self {
            origin,
            names: dns.collect(),
            key: KeyName::of(&leaf),
            not_before: leaf.validity().not_before.timestamp(),
            not_after: leaf.validity().not_after.timestamp(),
            ocsp: None,
        }
    }
}

impl KeyName {
    fn of(leaf: &X509Certificate<'_>) -> Self {
        match leaf.public_key().parsed() {
            Ok(PublicKey::RSA(key)) => Self::Rsa(key.key_size()),
            // The parser rounds the curve's size up to whole bytes.
            Ok(PublicKey::EC(point)) => Self::Ecdsa(match point.key_size() {
                528 => 521,
                bits => bits,
            }),
            // The OID of Ed25519 (RFC 8410 section 3).
            _ if leaf.public_key().algorithm.algorithm.to_id_string() == "1.3.101.112" => Self::Ed25519,
            _ => Self::Other,
        }
    }

    /// Ranks kinds of keys by the time per signature: docs/decisions/0011-stacks.md.
    pub(crate) fn cost(self) -> u32 {
        match self {
            Self::Ecdsa(bits) if bits <= 256 => 0,
            Self::Ed25519 => 1,
            Self::Ecdsa(bits) if bits <= 384 => 2,
            Self::Ecdsa(_) => 3,
            Self::Rsa(_) => 4,
            Self::Other => 5,
        }
    }

    /// Whether a client that can verify signatures by one of the two kinds of keys can also verify those by the other.
    /// Clients that support RSA support all sizes; each curve has its own signature scheme.
    pub(crate) fn is_alike(self, other: Self) -> bool {
        matches!((self, other), (Self::Rsa(_), Self::Rsa(_))) || self == other
    }

    /// The curve of an ECDSA key, which TLS 1.2 clients list among their groups; `None` for other keys and curves.
    pub(crate) fn curve(self) -> Option<NamedGroup> {
        match self {
            Self::Ecdsa(256) => Some(NamedGroup::secp256r1),
            Self::Ecdsa(384) => Some(NamedGroup::secp384r1),
            Self::Ecdsa(521) => Some(NamedGroup::secp521r1),
            Self::Ecdsa(_) | Self::Ed25519 | Self::Rsa(_) | Self::Other => None,
        }
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ecdsa(bits) => write!(f, "ECDSA P-{bits}"),
            Self::Ed25519 => f.write_str("Ed25519"),
            Self::Rsa(bits) => write!(f, "RSA {bits}"),
            Self::Other => f.write_str("other"),
        }
    }
}
