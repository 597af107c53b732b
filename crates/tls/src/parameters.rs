//! Negotiable parameters of both sides: versions, suites and groups, and their names.

use std::fmt;
use std::str::FromStr;

use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{cipher_suite, kx_group};
use rustls::{CipherSuite, NamedGroup, ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion};

use weir_ifma::Ifma;

use crate::setting_names::find;
use crate::{UnknownName, curves};

/// A TLS version. Older ones are not supported (RFC 8996).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

/// A cipher suite. In TLS 1.2 it also fixes the key exchange and the certificate's key type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suite {
    /// `TLS_AES_128_GCM_SHA256` (TLS 1.3).
    Aes128GcmSha256,
    /// `TLS_AES_256_GCM_SHA384` (TLS 1.3).
    Aes256GcmSha384,
    /// `TLS_CHACHA20_POLY1305_SHA256` (TLS 1.3).
    Chacha20Poly1305Sha256,
    /// `TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256` (TLS 1.2).
    EcdheEcdsaAes128GcmSha256,
    /// `TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384` (TLS 1.2).
    EcdheEcdsaAes256GcmSha384,
    /// `TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256` (TLS 1.2).
    EcdheEcdsaChacha20Poly1305,
    /// `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` (TLS 1.2).
    EcdheRsaAes128GcmSha256,
    /// `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384` (TLS 1.2).
    EcdheRsaAes256GcmSha384,
    /// `TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256` (TLS 1.2).
    EcdheRsaChacha20Poly1305,
}

/// A group for the key exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// X25519 (RFC 7748).
    X25519,
    /// NIST P-256, `secp256r1`.
    P256,
    /// NIST P-384, `secp384r1`.
    P384,
    /// X25519 combined with ML-KEM-768, a post-quantum hybrid. TLS 1.3 only. Its key shares take 1216 and
    /// 1120 bytes, those of X25519 take 32.
    X25519Mlkem768,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Self; 2] = [Self::Tls12, Self::Tls13];

    /// The name in settings and reports: `1.2`, `1.3`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls12 => "1.2",
            Self::Tls13 => "1.3",
        }
    }

    pub(crate) fn rustls(self) -> &'static SupportedProtocolVersion {
        match self {
            Self::Tls12 => &rustls::version::TLS12,
            Self::Tls13 => &rustls::version::TLS13,
        }
    }

    pub(crate) fn from_rustls(version: ProtocolVersion) -> Option<Self> {
        match version {
            ProtocolVersion::TLSv1_2 => Some(Self::Tls12),
            ProtocolVersion::TLSv1_3 => Some(Self::Tls13),
            _ => None,
        }
    }
}

impl Suite {
    /// Every suite in the default order of preference. AES-128 comes first: every TLS 1.3 peer must support
    /// it (RFC 8446 9.1), and it is the cheapest per byte on a CPU with AES instructions.
    pub const ALL: [Self; 9] = [
        Self::Aes128GcmSha256,
        Self::Aes256GcmSha384,
        Self::Chacha20Poly1305Sha256,
        Self::EcdheEcdsaAes128GcmSha256,
        Self::EcdheEcdsaAes256GcmSha384,
        Self::EcdheEcdsaChacha20Poly1305,
        Self::EcdheRsaAes128GcmSha256,
        Self::EcdheRsaAes256GcmSha384,
        Self::EcdheRsaChacha20Poly1305,
    ];

    /// The name in settings and reports, such as `aes128-gcm-sha256` or `ecdhe-rsa-aes128-gcm-sha256`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes128GcmSha256 => "aes128-gcm-sha256",
            Self::Aes256GcmSha384 => "aes256-gcm-sha384",
            Self::Chacha20Poly1305Sha256 => "chacha20-poly1305-sha256",
            Self::EcdheEcdsaAes128GcmSha256 => "ecdhe-ecdsa-aes128-gcm-sha256",
            Self::EcdheEcdsaAes256GcmSha384 => "ecdhe-ecdsa-aes256-gcm-sha384",
            Self::EcdheEcdsaChacha20Poly1305 => "ecdhe-ecdsa-chacha20-poly1305",
            Self::EcdheRsaAes128GcmSha256 => "ecdhe-rsa-aes128-gcm-sha256",
            Self::EcdheRsaAes256GcmSha384 => "ecdhe-rsa-aes256-gcm-sha384",
            Self::EcdheRsaChacha20Poly1305 => "ecdhe-rsa-chacha20-poly1305",
        }
    }

    /// The name in the IANA registry of TLS cipher suites.
    pub fn iana_name(self) -> &'static str {
        match self {
            Self::Aes128GcmSha256 => "TLS_AES_128_GCM_SHA256",
            Self::Aes256GcmSha384 => "TLS_AES_256_GCM_SHA384",
            Self::Chacha20Poly1305Sha256 => "TLS_CHACHA20_POLY1305_SHA256",
            Self::EcdheEcdsaAes128GcmSha256 => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            Self::EcdheEcdsaAes256GcmSha384 => "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            Self::EcdheEcdsaChacha20Poly1305 => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            Self::EcdheRsaAes128GcmSha256 => "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            Self::EcdheRsaAes256GcmSha384 => "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            Self::EcdheRsaChacha20Poly1305 => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        }
    }

    /// The version of this suite.
    pub fn version(self) -> Version {
        match self.rustls() {
            SupportedCipherSuite::Tls12(_) => Version::Tls12,
            SupportedCipherSuite::Tls13(_) => Version::Tls13,
        }
    }

    pub(crate) fn rustls(self) -> SupportedCipherSuite {
        match self {
            Self::Aes128GcmSha256 => cipher_suite::TLS13_AES_128_GCM_SHA256,
            Self::Aes256GcmSha384 => cipher_suite::TLS13_AES_256_GCM_SHA384,
            Self::Chacha20Poly1305Sha256 => cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
            Self::EcdheEcdsaAes128GcmSha256 => cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            Self::EcdheEcdsaAes256GcmSha384 => cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            Self::EcdheEcdsaChacha20Poly1305 => cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            Self::EcdheRsaAes128GcmSha256 => cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            Self::EcdheRsaAes256GcmSha384 => cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            Self::EcdheRsaChacha20Poly1305 => cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        }
    }

    pub(crate) fn from_rustls(suite: CipherSuite) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.rustls().suite() == suite)
    }
}

impl Group {
    /// Every group.
    pub const ALL: [Self; 4] = [Self::X25519, Self::P256, Self::P384, Self::X25519Mlkem768];

    /// The default groups, most preferred first. The hybrid comes first, since quantum computers may one day decrypt
    /// recorded traffic that was exchanged without it, and since browsers, Go and OpenSSL 3.5 prefer it. Compared with
    /// X25519, a full handshake takes the server 1.25 times as many instructions with the hybrid, 1.3 times with P-256
    /// and 2.9 times with P-384; the hybrid also sends 2.3 KB.
    pub const DEFAULT: [Self; 4] = [Self::X25519Mlkem768, Self::X25519, Self::P256, Self::P384];

    /// The default groups of measuring tools: without the hybrid, so that results stay comparable with earlier ones,
    /// and the cheapest key exchange first.
    pub const CLASSICAL: [Self; 3] = [Self::X25519, Self::P256, Self::P384];

    /// The name in settings and reports: `x25519`, `p256`, `p384`, `x25519mlkem768`.
    pub fn name(self) -> &'static str {
        match self {
            Self::X25519 => "x25519",
            Self::P256 => "p256",
            Self::P384 => "p384",
            Self::X25519Mlkem768 => "x25519mlkem768",
        }
    }

    /// Other names of this group that settings may contain.
    pub fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::X25519 | Self::X25519Mlkem768 => &[],
            Self::P256 => &["p-256", "secp256r1", "prime256v1"],
            Self::P384 => &["p-384", "secp384r1"],
        }
    }

    /// Whether `name` is this group's name or an alias, ignoring case.
    fn is_called(self, name: &str) -> bool {
        let is_it = |known: &&str| name.eq_ignore_ascii_case(known);
        is_it(&self.name()) || self.aliases().iter().any(is_it)
    }

    /// Weir's name for a group in another spelling (`p-256`, `secp256r1`). Returns any other word unchanged.
    pub fn spelling(name: &str) -> &str {
        Self::ALL.into_iter().find(|group| group.is_called(name)).map_or(name, |group| group.name())
    }

    /// Whether a handshake of `version` can use this group.
    pub fn fits(self, version: Version) -> bool {
        !(self == Self::X25519Mlkem768 && version == Version::Tls12)
    }

    /// This group's implementation: weir-ifma's for the X25519 groups if `ifma` permits it, else AWS-LC's.
    pub(crate) fn rustls(self, ifma: Option<Ifma>) -> &'static dyn SupportedKxGroup {
        match (self, ifma) {
            (Self::X25519, None) => kx_group::X25519,
            (Self::X25519, Some(ifma)) => curves::x25519(ifma),
            (Self::P256, _) => kx_group::SECP256R1,
            (Self::P384, _) => kx_group::SECP384R1,
            (Self::X25519Mlkem768, None) => kx_group::X25519MLKEM768,
            (Self::X25519Mlkem768, Some(ifma)) => curves::x25519_mlkem768(ifma),
        }
    }

    pub(crate) fn from_rustls(group: NamedGroup) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.rustls(None).name() == group)
    }
}

impl FromStr for Version {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        find("TLS version", name, &Self::ALL, |version| name == version.name())
    }
}

impl FromStr for Suite {
    type Err = UnknownName;

    /// Parses Weir's name or the IANA name, ignoring case.
    fn from_str(name: &str) -> Result<Self, UnknownName> {
        find("suite", name, &Self::ALL, |suite| {
            name.eq_ignore_ascii_case(suite.name()) || name.eq_ignore_ascii_case(suite.iana_name())
        })
    }
}

impl FromStr for Group {
    type Err = UnknownName;

    /// Parses `x25519`, `p256` (also `p-256`, `secp256r1`, `prime256v1`), `p384` (also `p-384`, `secp384r1`)
    /// and `x25519mlkem768`, ignoring case.
    fn from_str(name: &str) -> Result<Self, UnknownName> {
        find("group", name, &Self::ALL, |group| group.is_called(name))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
