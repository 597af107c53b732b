//! Versions, suites, groups, signature schemes and alerts: numbers on the wire, names in the report.
//!
//! Unknown numbers are shown in hex, such as `0x1a1a`.

use crate::suites;
use weir_tls::{Suite, TlsError};

/// A TLS version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// TLS 1.0 (RFC 2246), deprecated by RFC 8996.
    Tls10,
    /// TLS 1.1 (RFC 4346), deprecated by RFC 8996.
    Tls11,
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl Version {
    /// Every version, newest first.
    pub const ALL: [Self; 4] = [Self::Tls13, Self::Tls12, Self::Tls11, Self::Tls10];

    /// The name in reports: `1.3`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls10 => "1.0",
            Self::Tls11 => "1.1",
            Self::Tls12 => "1.2",
            Self::Tls13 => "1.3",
        }
    }

    /// The number on the wire (RFC 8446 4.2.1).
    pub fn number(self) -> u16 {
        match self {
            Self::Tls10 => 0x0301,
            Self::Tls11 => 0x0302,
            Self::Tls12 => 0x0303,
            Self::Tls13 => 0x0304,
        }
    }

    pub(crate) fn of(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.number() == number)
    }

    /// The suites offered for this version, most preferred first.
    pub(crate) fn suites(self) -> Vec<u16> {
        let table = if self == Self::Tls13 { suites::TLS13 } else { suites::TLS12 };
        table.iter().map(|(number, _)| *number).collect()
    }

    /// The groups offered for this version, most preferred first. Hybrids are only for TLS 1.3,
    /// and most TLS 1.2 servers do not negotiate finite fields as groups: they have one of their own, whatever is
    /// offered.
    pub(crate) fn groups(self) -> Vec<u16> {
        let is_curve = |number: &u16| *number < 0x100;
        GROUPS.iter().map(|(number, _)| *number).filter(|n| self == Self::Tls13 || is_curve(n)).collect()
    }
}

/// The key exchange of a suite of TLS 1.2 or older: the form of its ServerKeyExchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyAgreement {
    /// Elliptic curves (RFC 8422); unsigned in anonymous suites.
    Ecdhe { signed: bool },
    /// Finite field (RFC 5246 7.4.3); unsigned in anonymous suites.
    Dhe { signed: bool },
    /// No message: RSA key transport, or an unknown suite.
    None,
}

impl KeyAgreement {
    pub(crate) fn of(suite: u16) -> Self {
        let name = iana_name(suite).unwrap_or_default();
        let signed = !name.contains("_anon_");
        if name.starts_with("TLS_ECDH") {
            Self::Ecdhe { signed }
        } else if name.starts_with("TLS_DH") {
            Self::Dhe { signed }
        } else {
            Self::None
        }
    }
}

/// The groups (RFC 8446 4.2.7 and the IANA registry), most preferred first.
pub(crate) const GROUPS: &[(u16, &str)] = &[
    (0x001d, "x25519"),
    (0x0017, "p256"),
    (0x0018, "p384"),
    (0x0019, "p521"),
    (0x001e, "x448"),
    (0x11ec, "x25519mlkem768"),
    (0x11eb, "secp256r1mlkem768"),
    (0x11ed, "secp384r1mlkem1024"),
    (0x0100, "ffdhe2048"),
    (0x0101, "ffdhe3072"),
    (0x0102, "ffdhe4096"),
    (0x0103, "ffdhe6144"),
    (0x0104, "ffdhe8192"),
];

/// The signature schemes (RFC 8446 4.2.3, RFC 5246 7.4.1.4.1), most preferred first.
pub(crate) const SCHEMES: &[(u16, &str)] = &[
    (0x0403, "ecdsa-p256-sha256"),
    (0x0804, "rsa-pss-sha256"),
    (0x0807, "ed25519"),
    (0x0503, "ecdsa-p384-sha384"),
    (0x0603, "ecdsa-p521-sha512"),
    (0x0808, "ed448"),
    (0x0805, "rsa-pss-sha384"),
    (0x0806, "rsa-pss-sha512"),
    (0x0809, "rsa-pss-pss-sha256"),
    (0x080a, "rsa-pss-pss-sha384"),
    (0x080b, "rsa-pss-pss-sha512"),
    (0x0401, "rsa-pkcs1-sha256"),
    (0x0501, "rsa-pkcs1-sha384"),
    (0x0601, "rsa-pkcs1-sha512"),
    (0x0303, "ecdsa-sha224"),
    (0x0301, "rsa-pkcs1-sha224"),
    (0x0203, "ecdsa-sha1"),
    (0x0201, "rsa-pkcs1-sha1"),
];

/// The suite's name in the IANA registry, if it is one of those offered.
pub(crate) fn iana_name(suite: u16) -> Option<&'static str> {
    named(suites::TLS13, suite).or_else(|| named(suites::TLS12, suite))
}

/// The suite's name for `weir load --suite`, or one in the same style if that does not support the
/// suite.
pub(crate) fn suite(number: u16) -> String {
    let Some(name) = iana_name(number) else { return hexadecimal(number) };
    if let Some(known) = Suite::ALL.into_iter().find(|suite| suite.iana_name() == name) {
        return known.name().to_owned();
    }
    let bare = name.trim_start_matches("TLS_").replace("_WITH_", "-");
    bare.replace("AES_", "AES")
        .replace("CAMELLIA_", "CAMELLIA")
        .replace("ARIA_", "ARIA")
        .replace('_', "-")
        .to_ascii_lowercase()
}

pub(crate) fn group(number: u16) -> String {
    named(GROUPS, number).map_or_else(|| hexadecimal(number), str::to_owned)
}

/// The signature scheme's name. In TLS 1.2, ECDSA names do not imply a curve.
pub(crate) fn scheme(number: u16) -> String {
    named(SCHEMES, number).map_or_else(|| hexadecimal(number), str::to_owned)
}

pub(crate) fn alert(code: u8) -> String {
    match TlsError::PeerAlert(code).reason() {
        "alert_unknown" => format!("number {code}"),
        known => known.trim_start_matches("alert_").to_owned(),
    }
}

fn named(table: &[(u16, &'static str)], number: u16) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

fn hexadecimal(number: u16) -> String {
    format!("0x{number:04x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_the_names_that_load_takes() {
        assert_eq!(suite(0x1301), "aes128-gcm-sha256");
        assert_eq!(suite(0xcca9), "ecdhe-ecdsa-chacha20-poly1305");
        assert_eq!(suite(0xc02f), "ecdhe-rsa-aes128-gcm-sha256");
        assert_eq!(suite(0x000a), "rsa-3des-ede-cbc-sha");
        assert_eq!(suite(0x0041), "rsa-camellia128-cbc-sha");
        assert_eq!(suite(0xc0a3), "dhe-rsa-aes256-ccm-8");
        assert_eq!(suite(0x1a1a), "0x1a1a");
        let mut known = Version::Tls13.suites();
        known.extend(Version::Tls12.suites());
        for suite_of_ours in Suite::ALL {
            assert!(known.iter().any(|number| suite(*number) == suite_of_ours.name()), "{suite_of_ours}");
        }
    }

    #[test]
    fn no_number_stands_in_a_table_twice() {
        for mut numbers in [
            [Version::Tls13.suites(), Version::Tls12.suites()].concat(),
            Version::Tls13.groups(),
            SCHEMES.iter().map(|(number, _)| *number).collect(),
        ] {
            let all = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), all);
        }
    }

    #[test]
    fn an_alert_that_has_no_name_is_a_number() {
        assert_eq!([40, 112, 200].map(alert), ["handshake_failure", "unrecognized_name", "number 200"]);
    }

    #[test]
    fn the_key_agreement_follows_from_the_name() {
        assert_eq!(KeyAgreement::of(0xc02b), KeyAgreement::Ecdhe { signed: true });
        assert_eq!(KeyAgreement::of(0xc018), KeyAgreement::Ecdhe { signed: false });
        assert_eq!(KeyAgreement::of(0x009e), KeyAgreement::Dhe { signed: true });
        assert_eq!(KeyAgreement::of(0x0034), KeyAgreement::Dhe { signed: false });
        assert_eq!(KeyAgreement::of(0x009c), KeyAgreement::None);
        assert_eq!(KeyAgreement::of(0x1301), KeyAgreement::None);
    }
}
