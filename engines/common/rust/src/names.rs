//! The values of a scenario, with names and TLS code points.

/// A named value of a scenario or report.
pub trait Named: Copy + PartialEq + 'static {
    /// All of them with their names in scenario and report, in the specification's order.
    const NAMES: &'static [(Self, &'static str)];

    /// The name in scenario and report.
    fn name(self) -> &'static str {
        let named = Self::NAMES.iter().find(|(one, _)| *one == self);
        named.map_or("unnamed", |(_, name)| name)
    }

    /// The one of this name.
    fn named(name: &str) -> Option<Self> {
        Self::all().find(|one| one.name() == name)
    }

    /// All of them, in the specification's order.
    fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.iter().map(|(one, _)| *one)
    }
}

/// The owner of a time or an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The connecting side.
    Client,
    /// The accepting side.
    Server,
    /// Neither: a primitive.
    Operation,
}

impl Named for Side {
    const NAMES: &'static [(Side, &'static str)] =
        &[(Side::Client, "client"), (Side::Server, "server"), (Side::Operation, "operation")];
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl Version {
    /// Its code point.
    pub fn code(self) -> u16 {
        match self {
            Version::Tls12 => 0x0303,
            Version::Tls13 => 0x0304,
        }
    }
}

impl Named for Version {
    const NAMES: &'static [(Version, &'static str)] = &[(Version::Tls12, "1.2"), (Version::Tls13, "1.3")];
}

/// How a session is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumption {
    /// Not at all: the client stores nothing.
    None,
    /// TLS 1.2, by the ID of a session stored by the server.
    Id,
    /// TLS 1.2, by a ticket.
    Ticket,
    /// TLS 1.3, by a pre-shared key from a ticket, with a key exchange.
    Psk,
}

impl Named for Resumption {
    const NAMES: &'static [(Resumption, &'static str)] = &[
        (Resumption::None, "none"),
        (Resumption::Id, "id"),
        (Resumption::Ticket, "ticket"),
        (Resumption::Psk, "psk"),
    ];
}

/// The record cipher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// AES-128-GCM, with SHA-256.
    Aes128Gcm,
    /// AES-256-GCM, with SHA-384.
    Aes256Gcm,
    /// ChaCha20-Poly1305, with SHA-256.
    ChaCha20Poly1305,
}

impl Suite {
    /// Its code point in a version, with a certificate: TLS 1.2 has one suite for each kind of key.
    pub fn code(self, version: Version, certificate: Certificate) -> u16 {
        let rsa = certificate == Certificate::Rsa2048;
        match (version, self) {
            (Version::Tls13, Suite::Aes128Gcm) => 0x1301,
            (Version::Tls13, Suite::Aes256Gcm) => 0x1302,
            (Version::Tls13, Suite::ChaCha20Poly1305) => 0x1303,
            (Version::Tls12, Suite::Aes128Gcm) if rsa => 0xc02f,
            (Version::Tls12, Suite::Aes128Gcm) => 0xc02b,
            (Version::Tls12, Suite::Aes256Gcm) if rsa => 0xc030,
            (Version::Tls12, Suite::Aes256Gcm) => 0xc02c,
            (Version::Tls12, Suite::ChaCha20Poly1305) if rsa => 0xcca8,
            (Version::Tls12, Suite::ChaCha20Poly1305) => 0xcca9,
        }
    }
}

impl Named for Suite {
    const NAMES: &'static [(Suite, &'static str)] = &[
        (Suite::Aes128Gcm, "aes128-gcm"),
        (Suite::Aes256Gcm, "aes256-gcm"),
        (Suite::ChaCha20Poly1305, "chacha20-poly1305"),
    ];
}

/// The key exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// X25519.
    X25519,
    /// NIST P-256.
    P256,
    /// X25519 and ML-KEM-768 together; TLS 1.3 only.
    X25519MlKem768,
}

impl Group {
    /// Its code point.
    pub fn code(self) -> u16 {
        match self {
            Group::X25519 => 0x001d,
            Group::P256 => 0x0017,
            Group::X25519MlKem768 => 0x11ec,
        }
    }
}

impl Named for Group {
    const NAMES: &'static [(Group, &'static str)] =
        &[(Group::X25519, "x25519"), (Group::P256, "p256"), (Group::X25519MlKem768, "x25519mlkem768")];
}

/// The kind of key in the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificate {
    /// RSA of 2048 bits.
    Rsa2048,
    /// ECDSA on P-256.
    EcdsaP256,
    /// ECDSA on P-384.
    EcdsaP384,
}

impl Certificate {
    /// The code point of the server's signature scheme with it.
    pub fn signature(self) -> u16 {
        match self {
            Certificate::Rsa2048 => 0x0804,
            Certificate::EcdsaP256 => 0x0403,
            Certificate::EcdsaP384 => 0x0503,
        }
    }
}

impl Named for Certificate {
    const NAMES: &'static [(Certificate, &'static str)] = &[
        (Certificate::Rsa2048, "rsa-2048"),
        (Certificate::EcdsaP256, "ecdsa-p256"),
        (Certificate::EcdsaP384, "ecdsa-p384"),
    ];
}

/// A cryptographic operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Signing 32 bytes, with the certificate's scheme.
    Sign(Certificate),
    /// Verifying such a signature.
    Verify(Certificate),
    /// Key pair and agreement.
    X25519,
    /// Key pair and agreement.
    P256,
    /// Key pairs, agreement and decapsulation.
    HybridClient,
    /// Key pair, agreement and encapsulation.
    HybridServer,
    /// Encrypting a record.
    Seal(Suite),
    /// Decrypting a record.
    Open(Suite),
}

impl Named for Operation {
    const NAMES: &'static [(Operation, &'static str)] = &[
        (Operation::Sign(Certificate::Rsa2048), "rsa-2048-sign"),
        (Operation::Verify(Certificate::Rsa2048), "rsa-2048-verify"),
        (Operation::Sign(Certificate::EcdsaP256), "ecdsa-p256-sign"),
        (Operation::Verify(Certificate::EcdsaP256), "ecdsa-p256-verify"),
        (Operation::Sign(Certificate::EcdsaP384), "ecdsa-p384-sign"),
        (Operation::Verify(Certificate::EcdsaP384), "ecdsa-p384-verify"),
        (Operation::X25519, "x25519"),
        (Operation::P256, "p256"),
        (Operation::HybridClient, "x25519mlkem768-client"),
        (Operation::HybridServer, "x25519mlkem768-server"),
        (Operation::Seal(Suite::Aes128Gcm), "aes128-gcm-seal"),
        (Operation::Open(Suite::Aes128Gcm), "aes128-gcm-open"),
        (Operation::Seal(Suite::Aes256Gcm), "aes256-gcm-seal"),
        (Operation::Open(Suite::Aes256Gcm), "aes256-gcm-open"),
        (Operation::Seal(Suite::ChaCha20Poly1305), "chacha20-poly1305-seal"),
        (Operation::Open(Suite::ChaCha20Poly1305), "chacha20-poly1305-open"),
    ];
}

/// The report's name of a version's code point.
pub(crate) fn version(code: u16) -> String {
    name_of(code, |one: Version| one.code() == code)
}

/// The report's name of a suite's code point, whatever its version and certificate.
pub(crate) fn suite(code: u16) -> String {
    name_of(code, |suite: Suite| {
        Version::all()
            .any(|version| Certificate::all().any(|certificate| suite.code(version, certificate) == code))
    })
}

/// The report's name of a group's code point.
pub(crate) fn group(code: u16) -> String {
    name_of(code, |one: Group| one.code() == code)
}

/// The report's name of a signature scheme's code point.
pub(crate) fn signature(code: u16) -> String {
    match code {
        0x0804 => "rsa_pss_rsae_sha256".to_owned(),
        0x0403 => "ecdsa_secp256r1_sha256".to_owned(),
        0x0503 => "ecdsa_secp384r1_sha384".to_owned(),
        _ => unknown(code),
    }
}

fn name_of<T: Named>(code: u16, is: impl Fn(T) -> bool) -> String {
    let known = T::all().find(|one| is(*one));
    known.map_or_else(|| unknown(code), |one| one.name().to_owned())
}

fn unknown(code: u16) -> String {
    format!("0x{code:04x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_names_of_what_they_stand_for() {
        assert_eq!(version(0x0303), "1.2");
        assert_eq!(suite(0xc02c), "aes256-gcm");
        assert_eq!(suite(0x1303), "chacha20-poly1305");
        assert_eq!(group(0x11ec), "x25519mlkem768");
        assert_eq!(signature(Certificate::EcdsaP384.signature()), "ecdsa_secp384r1_sha384");
        assert_eq!(suite(0x009c), "0x009c");
    }

    #[test]
    fn names_lead_back() {
        for operation in Operation::all() {
            assert_eq!(Operation::named(operation.name()), Some(operation));
        }
        assert_eq!(Group::named("p384"), None);
    }
}
