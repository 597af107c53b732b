//! The factors of a cell, as closed sets: anything else is rejected.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One side of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    /// HTTP/1.1 in cleartext.
    H1c,
    /// HTTP/1.1 over TLS.
    H1,
    /// HTTP/2 in cleartext, with prior knowledge (RFC 9113, section 3.3).
    H2c,
    /// HTTP/2 over TLS, by ALPN.
    H2,
}

impl Side {
    pub(crate) fn scheme(self) -> &'static str {
        if self.is_tls() { "https" } else { "http" }
    }

    pub(crate) fn is_tls(self) -> bool {
        matches!(self, Self::H1 | Self::H2)
    }

    pub(crate) fn is_http2(self) -> bool {
        matches!(self, Self::H2c | Self::H2)
    }
}

/// The client side, then the upstream side; a mode with one side has no gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    H1c,
    H1,
    H1cH1c,
    H1H1c,
    H1cH1,
    H1H1,
    H2c,
    H2,
    H2cH1c,
    H2H1c,
    H2H1,
    H2cH2c,
    H2H2,
}

impl Mode {
    /// Its client side, its upstream side, its description, and the same as the first words of a sentence.
    fn row(self) -> (Side, Option<Side>, &'static str, &'static str) {
        use Side::{H1, H1c, H2, H2c};
        match self {
            Self::H1c => (H1c, None, "cleartext, no gateway", "without a gateway, in cleartext"),
            Self::H1 => (H1, None, "TLS, no gateway", "without a gateway, with TLS"),
            Self::H1cH1c => (H1c, Some(H1c), "cleartext in, cleartext out", "in cleartext"),
            Self::H1H1c => (H1, Some(H1c), "TLS in, cleartext out", "with TLS to the client"),
            Self::H1cH1 => (H1c, Some(H1), "cleartext in, TLS out", "with TLS to the upstream"),
            Self::H1H1 => (H1, Some(H1), "TLS in, TLS out", "with TLS on both sides"),
            Self::H2c => {
                (H2c, None, "HTTP/2 in cleartext, no gateway", "without a gateway, with HTTP/2 in cleartext")
            }
            Self::H2 => (H2, None, "HTTP/2 over TLS, no gateway", "without a gateway, with HTTP/2 over TLS"),
            Self::H2cH1c => (
                H2c,
                Some(H1c),
                "HTTP/2 in, HTTP/1.1 out, both in cleartext",
                "with HTTP/2 to the client, in cleartext",
            ),
            Self::H2H1c => (
                H2,
                Some(H1c),
                "HTTP/2 over TLS in, HTTP/1.1 in cleartext out",
                "with HTTP/2 and TLS to the client",
            ),
            Self::H2H1 => (
                H2,
                Some(H1),
                "HTTP/2 over TLS in, HTTP/1.1 over TLS out",
                "with HTTP/2 to the client, TLS on both sides",
            ),
            Self::H2cH2c => (
                H2c,
                Some(H2c),
                "HTTP/2 in, HTTP/2 out, both in cleartext",
                "with HTTP/2 on both sides, in cleartext",
            ),
            Self::H2H2 => (H2, Some(H2), "HTTP/2 over TLS in and out", "with HTTP/2 and TLS on both sides"),
        }
    }

    /// The client's side.
    pub(crate) fn client(self) -> Side {
        self.row().0
    }

    /// The side between gateway and origin; `None` without a gateway.
    pub(crate) fn upstream(self) -> Option<Side> {
        self.row().1
    }

    /// The origin's side.
    pub(crate) fn origin(self) -> Side {
        self.upstream().unwrap_or(self.client())
    }

    pub(crate) fn describe(self) -> &'static str {
        self.row().2
    }

    /// As the first words of a sentence.
    pub(crate) fn circumstance(self) -> &'static str {
        self.row().3
    }
}

/// The arrival of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Load {
    /// Open loop at one rate for all targets of a mode, below every target's maximum.
    EqualRate,
    /// Closed loop: each connection sends its next request after the response.
    Saturated,
}

/// The TLS factors, pinned for every run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tls {
    pub(crate) version: TlsVersion,
    pub(crate) suite: Suite,
    pub(crate) group: Group,
    pub(crate) certificate: CertificateKind,
    /// Session tickets that a server sends after a full handshake.
    pub(crate) tickets: u8,
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

/// TLS 1.2 (RFC 5246) and 1.3 (RFC 8446).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TlsVersion {
    #[serde(rename = "1.2")]
    V1_2,
    #[serde(rename = "1.3")]
    V1_3,
}

/// Suites of TLS 1.3 (RFC 8446, appendix B.4) and, for the supported certificates, of TLS 1.2, named as the load engine
/// names the negotiated one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Suite {
    Aes128GcmSha256,
    Aes256GcmSha384,
    Chacha20Poly1305Sha256,
    EcdheEcdsaAes128GcmSha256,
    EcdheEcdsaAes256GcmSha384,
    EcdheEcdsaChacha20Poly1305,
    EcdheRsaAes128GcmSha256,
    EcdheRsaAes256GcmSha384,
    EcdheRsaChacha20Poly1305,
}

impl Suite {
    pub(crate) fn openssl(self) -> &'static str {
        match self {
            Self::Aes128GcmSha256 => "TLS_AES_128_GCM_SHA256",
            Self::Aes256GcmSha384 => "TLS_AES_256_GCM_SHA384",
            Self::Chacha20Poly1305Sha256 => "TLS_CHACHA20_POLY1305_SHA256",
            Self::EcdheEcdsaAes128GcmSha256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
            Self::EcdheEcdsaAes256GcmSha384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
            Self::EcdheEcdsaChacha20Poly1305 => "ECDHE-ECDSA-CHACHA20-POLY1305",
            Self::EcdheRsaAes128GcmSha256 => "ECDHE-RSA-AES128-GCM-SHA256",
            Self::EcdheRsaAes256GcmSha384 => "ECDHE-RSA-AES256-GCM-SHA384",
            Self::EcdheRsaChacha20Poly1305 => "ECDHE-RSA-CHACHA20-POLY1305",
        }
    }

    /// The keys it authenticates with; `None` for any, as in TLS 1.3.
    pub(crate) fn certificate(self) -> Option<CertificateKind> {
        match self {
            Self::Aes128GcmSha256 | Self::Aes256GcmSha384 | Self::Chacha20Poly1305Sha256 => None,
            Self::EcdheEcdsaAes128GcmSha256
            | Self::EcdheEcdsaAes256GcmSha384
            | Self::EcdheEcdsaChacha20Poly1305 => Some(CertificateKind::EcdsaP256),
            Self::EcdheRsaAes128GcmSha256
            | Self::EcdheRsaAes256GcmSha384
            | Self::EcdheRsaChacha20Poly1305 => Some(CertificateKind::Rsa2048),
        }
    }

    pub(crate) fn version(self) -> TlsVersion {
        match self {
            Self::Aes128GcmSha256 | Self::Aes256GcmSha384 | Self::Chacha20Poly1305Sha256 => TlsVersion::V1_3,
            _ => TlsVersion::V1_2,
        }
    }
}

/// Groups (RFC 8446, section 4.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Group {
    X25519,
    #[serde(alias = "p-256", alias = "P-256", alias = "secp256r1")]
    P256,
    #[serde(alias = "p-384", alias = "P-384", alias = "secp384r1")]
    P384,
    /// The post-quantum hybrid, in TLS 1.3 only. Targets with an older library reject it.
    #[serde(rename = "x25519mlkem768", alias = "X25519MLKEM768")]
    X25519Mlkem768,
}

impl Group {
    pub(crate) fn openssl(self) -> &'static str {
        match self {
            Self::X25519 => "X25519",
            Self::P256 => "P-256",
            Self::P384 => "P-384",
            Self::X25519Mlkem768 => "X25519MLKEM768",
        }
    }
}

/// Certificate keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CertificateKind {
    /// ECDSA on P-256 with SHA-256.
    #[serde(rename = "ecdsa-p256")]
    EcdsaP256,
    /// RSA with 2048 bits.
    #[serde(rename = "rsa-2048")]
    Rsa2048,
}

impl CertificateKind {
    /// The key and the signature of its issuer, which has a key of the same kind, as the test server on OpenSSL names
    /// them.
    pub(crate) fn chain(self) -> &'static str {
        match self {
            Self::EcdsaP256 => "ecdsa-p256 by ecdsa",
            Self::Rsa2048 => "rsa-2048 by rsa",
        }
    }

    /// The signature scheme of a handshake with this key, as the load engine names it.
    pub(crate) fn signature(self) -> &'static str {
        match self {
            Self::EcdsaP256 => "ecdsa-p256-sha256",
            Self::Rsa2048 => "rsa-pss-sha256",
        }
    }
}

/// The names of a closed set are those in a file.
macro_rules! shown_as_written {
    ($($set:ty),*) => {
        $(impl fmt::Display for $set {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.serialize(formatter)
            }
        })*
    };
}

shown_as_written!(Side, Mode, Load, TlsVersion, Suite, Group, CertificateKind);
