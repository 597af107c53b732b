//! Signature schemes and their names.

use std::fmt;
use std::str::FromStr;

use rustls::{SignatureAlgorithm, SignatureScheme as Scheme};

use crate::setting_names::find;
use crate::{Suite, UnknownName, Version};

/// A signature scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signature {
    /// ECDSA over P-256 with SHA-256. In TLS 1.2 the name does not imply the curve.
    EcdsaP256Sha256,
    /// ECDSA over P-384 with SHA-384. In TLS 1.2 the name does not imply the curve.
    EcdsaP384Sha384,
    /// ECDSA over P-521 with SHA-512. In TLS 1.2 the name does not imply the curve.
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
    /// ML-DSA-44, post-quantum (TLS 1.3 only).
    MlDsa44,
    /// ML-DSA-65, post-quantum (TLS 1.3 only).
    MlDsa65,
    /// ML-DSA-87, post-quantum (TLS 1.3 only).
    MlDsa87,
    /// An unsupported scheme, by its number in the IANA registry of signature schemes. Settings cannot
    /// request it.
    Other(u16),
}

type Known = (Signature, &'static str, &'static str, Scheme);

/// The scheme, Weir's name, the name in the IANA registry, and rustls's name.
const KNOWN: [Known; 13] = [
    (
        Signature::EcdsaP256Sha256,
        "ecdsa-p256-sha256",
        "ecdsa_secp256r1_sha256",
        Scheme::ECDSA_NISTP256_SHA256,
    ),
    (
        Signature::EcdsaP384Sha384,
        "ecdsa-p384-sha384",
        "ecdsa_secp384r1_sha384",
        Scheme::ECDSA_NISTP384_SHA384,
    ),
    (
        Signature::EcdsaP521Sha512,
        "ecdsa-p521-sha512",
        "ecdsa_secp521r1_sha512",
        Scheme::ECDSA_NISTP521_SHA512,
    ),
    (Signature::Ed25519, "ed25519", "ed25519", Scheme::ED25519),
    (Signature::RsaPssSha256, "rsa-pss-sha256", "rsa_pss_rsae_sha256", Scheme::RSA_PSS_SHA256),
    (Signature::RsaPssSha384, "rsa-pss-sha384", "rsa_pss_rsae_sha384", Scheme::RSA_PSS_SHA384),
    (Signature::RsaPssSha512, "rsa-pss-sha512", "rsa_pss_rsae_sha512", Scheme::RSA_PSS_SHA512),
    (Signature::RsaPkcs1Sha256, "rsa-pkcs1-sha256", "rsa_pkcs1_sha256", Scheme::RSA_PKCS1_SHA256),
    (Signature::RsaPkcs1Sha384, "rsa-pkcs1-sha384", "rsa_pkcs1_sha384", Scheme::RSA_PKCS1_SHA384),
    (Signature::RsaPkcs1Sha512, "rsa-pkcs1-sha512", "rsa_pkcs1_sha512", Scheme::RSA_PKCS1_SHA512),
    (Signature::MlDsa44, "ml-dsa-44", "mldsa44", Scheme::ML_DSA_44),
    (Signature::MlDsa65, "ml-dsa-65", "mldsa65", Scheme::ML_DSA_65),
    (Signature::MlDsa87, "ml-dsa-87", "mldsa87", Scheme::ML_DSA_87),
];

impl Signature {
    /// The supported schemes.
    pub const ALL: [Self; 13] = {
        let mut all = [Self::Ed25519; 13];
        let mut at = 0;
        while at < all.len() {
            all[at] = KNOWN[at].0;
            at += 1;
        }
        all
    };

    fn known(self) -> Option<&'static Known> {
        KNOWN.iter().find(|known| known.0 == self)
    }

    /// The name in settings and reports, such as `ecdsa-p256-sha256`. For [`Signature::Other`] this is
    /// `other`, but `Display` prints the number.
    pub fn name(self) -> &'static str {
        self.known().map_or("other", |known| known.1)
    }

    /// The name in the IANA registry of TLS signature schemes; `unknown` for [`Signature::Other`].
    pub fn iana_name(self) -> &'static str {
        self.known().map_or("unknown", |known| known.2)
    }

    /// Whether a handshake with `suite` can use this scheme: in TLS 1.2 the suite determines the key type
    /// (RFC 8422 5.1); TLS 1.3 allows any scheme except PKCS#1 1.5 (RFC 8446 4.2.3).
    pub fn fits(self, suite: Suite) -> bool {
        match suite.version() {
            Version::Tls12 => {
                self.tls12_key().is_some_and(|key| suite.rustls().usable_for_signature_algorithm(key))
            }
            Version::Tls13 => !matches!(
                self,
                Self::RsaPkcs1Sha256 | Self::RsaPkcs1Sha384 | Self::RsaPkcs1Sha512 | Self::Other(_)
            ),
        }
    }

    /// The key type in TLS 1.2 terms; `None` for a scheme that TLS 1.2 does not support.
    fn tls12_key(self) -> Option<SignatureAlgorithm> {
        match self {
            Self::EcdsaP256Sha256 | Self::EcdsaP384Sha384 | Self::EcdsaP521Sha512 => {
                Some(SignatureAlgorithm::ECDSA)
            }
            Self::Ed25519 => Some(SignatureAlgorithm::ED25519),
            Self::RsaPssSha256
            | Self::RsaPssSha384
            | Self::RsaPssSha512
            | Self::RsaPkcs1Sha256
            | Self::RsaPkcs1Sha384
            | Self::RsaPkcs1Sha512 => Some(SignatureAlgorithm::RSA),
            Self::MlDsa44 | Self::MlDsa65 | Self::MlDsa87 | Self::Other(_) => None,
        }
    }

    pub(crate) fn rustls(self) -> Scheme {
        match self {
            Self::Other(number) => Scheme::from(number),
            known => known.known().map_or(Scheme::Unknown(0), |known| known.3),
        }
    }
}

impl From<Scheme> for Signature {
    fn from(scheme: Scheme) -> Self {
        let known = KNOWN.iter().find(|known| known.3 == scheme);
        known.map_or_else(|| Self::Other(u16::from(scheme)), |known| known.0)
    }
}

impl FromStr for Signature {
    type Err = UnknownName;

    /// Parses Weir's name or the IANA name, ignoring case.
    fn from_str(name: &str) -> Result<Self, UnknownName> {
        find("signature scheme", name, &Self::ALL, |signature| {
            name.eq_ignore_ascii_case(signature.name()) || name.eq_ignore_ascii_case(signature.iana_name())
        })
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(number) => f.pad(&format!("0x{number:04x}")),
            known => f.pad(known.name()),
        }
    }
}
