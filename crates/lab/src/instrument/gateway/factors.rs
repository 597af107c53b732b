//! The factors that a cell is made of, as closed sets: what is not listed here cannot be asked for.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One side of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// HTTP/1.1 in cleartext.
    H1c,
    /// HTTP/1.1 over TLS.
    H1,
}

impl Side {
    /// The name in a mode.
    pub fn name(self) -> &'static str {
        match self {
            Self::H1c => "h1c",
            Self::H1 => "h1",
        }
    }

    /// The scheme of its URLs.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::H1c => "http",
            Self::H1 => "https",
        }
    }
}

/// The client side, then the upstream side; a mode with one side has no gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// Client to origin, cleartext.
    #[serde(rename = "h1c")]
    H1c,
    /// Client to origin, TLS.
    #[serde(rename = "h1")]
    H1,
    /// Cleartext in, cleartext out.
    #[serde(rename = "h1c-h1c")]
    H1cH1c,
    /// TLS in, cleartext out.
    #[serde(rename = "h1-h1c")]
    H1H1c,
    /// Cleartext in, TLS out.
    #[serde(rename = "h1c-h1")]
    H1cH1,
    /// TLS in, TLS out.
    #[serde(rename = "h1-h1")]
    H1H1,
}

impl Mode {
    const ALL: [Self; 6] = [Self::H1c, Self::H1, Self::H1cH1c, Self::H1H1c, Self::H1cH1, Self::H1H1];

    /// That of such a name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::H1c => "h1c",
            Self::H1 => "h1",
            Self::H1cH1c => "h1c-h1c",
            Self::H1H1c => "h1-h1c",
            Self::H1cH1 => "h1c-h1",
            Self::H1H1 => "h1-h1",
        }
    }

    /// The side that the client sees.
    pub fn client(self) -> Side {
        match self {
            Self::H1c | Self::H1cH1c | Self::H1cH1 => Side::H1c,
            Self::H1 | Self::H1H1c | Self::H1H1 => Side::H1,
        }
    }

    /// The side between gateway and origin; `None` without a gateway.
    pub fn upstream(self) -> Option<Side> {
        match self {
            Self::H1c | Self::H1 => None,
            Self::H1cH1c | Self::H1H1c => Some(Side::H1c),
            Self::H1cH1 | Self::H1H1 => Some(Side::H1),
        }
    }

    /// The mode with the same client side and no gateway.
    pub fn without_gateway(self) -> Self {
        match self.client() {
            Side::H1c => Self::H1c,
            Side::H1 => Self::H1,
        }
    }

    /// The side that the origin serves.
    pub fn origin(self) -> Side {
        self.upstream().unwrap_or(self.client())
    }

    /// The mode in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::H1c => "cleartext, no gateway",
            Self::H1 => "TLS, no gateway",
            Self::H1cH1c => "cleartext in, cleartext out",
            Self::H1H1c => "TLS in, cleartext out",
            Self::H1cH1 => "cleartext in, TLS out",
            Self::H1H1 => "TLS in, TLS out",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// How requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Open loop at one rate for all targets of a mode, below every target's maximum.
    EqualRate,
    /// Closed loop: each connection sends its next request when it has its answer.
    Saturated,
}

impl Load {
    /// That of such a name; whatever is no open loop is a closed one.
    pub fn of(name: &str) -> Self {
        if name == "equal-rate" { Self::EqualRate } else { Self::Saturated }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::EqualRate => "equal-rate",
            Self::Saturated => "saturated",
        })
    }
}

/// The TLS factors, pinned for every run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Protocol version.
    pub version: TlsVersion,
    /// Cipher suite.
    pub suite: Suite,
    /// Key exchange group.
    pub group: Group,
    /// Kind of the certificate's key.
    pub certificate: CertificateKind,
    /// Session tickets that a server sends after a full handshake.
    pub tickets: u8,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            version: TlsVersion::V1_3,
            suite: Suite::Aes128GcmSha256,
            group: Group::X25519,
            certificate: CertificateKind::EcdsaP256,
            tickets: 2,
        }
    }
}

/// TLS versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsVersion {
    /// RFC 5246.
    #[serde(rename = "1.2")]
    V1_2,
    /// RFC 8446.
    #[serde(rename = "1.3")]
    V1_3,
}

/// Suites of TLS 1.3 (RFC 8446, appendix B.4) and, for the certificates that there are, of TLS 1.2, named as the load engine
/// names what was negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suite {
    /// TLS_AES_128_GCM_SHA256
    Aes128GcmSha256,
    /// TLS_AES_256_GCM_SHA384
    Aes256GcmSha384,
    /// TLS_CHACHA20_POLY1305_SHA256
    Chacha20Poly1305Sha256,
    /// TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
    EcdheEcdsaAes128GcmSha256,
    /// TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
    EcdheEcdsaAes256GcmSha384,
    /// TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
    EcdheEcdsaChacha20Poly1305,
}

/// Groups (RFC 8446, section 4.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// X25519
    X25519,
    /// NIST P-256
    #[serde(alias = "p-256", alias = "P-256", alias = "secp256r1")]
    P256,
    /// NIST P-384
    #[serde(alias = "p-384", alias = "P-384", alias = "secp384r1")]
    P384,
}

/// Certificate keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CertificateKind {
    /// ECDSA on P-256 with SHA-256.
    EcdsaP256,
}

impl TlsVersion {
    /// The name in `--tls` and in a negotiated fact.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1_2 => "1.2",
            Self::V1_3 => "1.3",
        }
    }
}

impl Suite {
    /// The name in `--suite` and in a negotiated fact.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes128GcmSha256 => "aes128-gcm-sha256",
            Self::Aes256GcmSha384 => "aes256-gcm-sha384",
            Self::Chacha20Poly1305Sha256 => "chacha20-poly1305-sha256",
            Self::EcdheEcdsaAes128GcmSha256 => "ecdhe-ecdsa-aes128-gcm-sha256",
            Self::EcdheEcdsaAes256GcmSha384 => "ecdhe-ecdsa-aes256-gcm-sha384",
            Self::EcdheEcdsaChacha20Poly1305 => "ecdhe-ecdsa-chacha20-poly1305",
        }
    }

    /// The version that has it.
    pub fn version(self) -> TlsVersion {
        match self {
            Self::Aes128GcmSha256 | Self::Aes256GcmSha384 | Self::Chacha20Poly1305Sha256 => TlsVersion::V1_3,
            Self::EcdheEcdsaAes128GcmSha256
            | Self::EcdheEcdsaAes256GcmSha384
            | Self::EcdheEcdsaChacha20Poly1305 => TlsVersion::V1_2,
        }
    }

    /// OpenSSL's list of suites for TLS 1.3; for a suite of TLS 1.2 any, since that version is off.
    pub fn openssl_13(self) -> &'static str {
        match self {
            Self::Aes256GcmSha384 => "TLS_AES_256_GCM_SHA384",
            Self::Chacha20Poly1305Sha256 => "TLS_CHACHA20_POLY1305_SHA256",
            _ => "TLS_AES_128_GCM_SHA256",
        }
    }

    /// OpenSSL's list of suites for TLS 1.2; for a suite of TLS 1.3 any, since that version is off.
    pub fn openssl_12(self) -> &'static str {
        match self {
            Self::EcdheEcdsaAes256GcmSha384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
            Self::EcdheEcdsaChacha20Poly1305 => "ECDHE-ECDSA-CHACHA20-POLY1305",
            _ => "ECDHE-ECDSA-AES128-GCM-SHA256",
        }
    }
}

impl Group {
    /// The name in `--group` and in a negotiated fact.
    pub fn name(self) -> &'static str {
        match self {
            Self::X25519 => "x25519",
            Self::P256 => "p256",
            Self::P384 => "p384",
        }
    }

    /// OpenSSL's name.
    pub fn openssl(self) -> &'static str {
        match self {
            Self::X25519 => "X25519",
            Self::P256 => "P-256",
            Self::P384 => "P-384",
        }
    }
}

impl CertificateKind {
    /// The signature scheme of a handshake with such a key, as a negotiated fact names it.
    pub fn signature(self) -> &'static str {
        match self {
            Self::EcdsaP256 => "ecdsa-p256-sha256",
        }
    }
}
