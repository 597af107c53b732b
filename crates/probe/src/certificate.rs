//! Certificate parsing.

use serde::Serialize;
use x509_parser::oid_registry::{Oid, asn1_rs::oid};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;
use x509_parser::time::ASN1Time;

const DAY: i64 = 24 * 60 * 60;

/// One certificate of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Certificate {
    /// The subject's distinguished name.
    pub subject: String,
    /// The issuer's distinguished name.
    pub issuer: String,
    /// The kind and size of the key: `ecdsa p256`, `rsa 2048`, `ed25519`.
    pub key: String,
    /// How the issuer signed it: `ecdsa-sha256`, `rsa-sha256`; an object identifier for uncommon
    /// algorithms.
    pub signature: String,
    /// The first day on which it is valid, in UTC: `2026-01-31`.
    pub not_before: String,
    /// The last day on which it is valid, in UTC.
    pub not_after: String,
    /// Whole days until it expires; negative if expired.
    pub days_left: i64,
    /// Its length in DER.
    pub bytes: usize,
    /// Whether subject and issuer are the same, as in a root.
    pub self_issued: bool,
}

impl Certificate {
    /// Parses a certificate in DER. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// When it is not an X.509 certificate (RFC 5280), with the reason.
    pub fn read(der: &[u8], now: i64) -> Result<Self, String> {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
        let validity = certificate.validity();
        Ok(Self {
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            key: key(&certificate),
            signature: name(&certificate.signature_algorithm.algorithm),
            not_before: day(&validity.not_before),
            not_after: day(&validity.not_after),
            days_left: validity.not_after.timestamp().saturating_sub(now).div_euclid(DAY),
            bytes: der.len(),
            self_issued: certificate.subject().as_raw() == certificate.issuer().as_raw(),
        })
    }
}

fn day(time: &ASN1Time) -> String {
    time.to_datetime().date().to_string()
}

fn key(certificate: &X509Certificate<'_>) -> String {
    let info = certificate.public_key();
    match info.parsed() {
        Ok(PublicKey::RSA(rsa)) => format!("rsa {}", rsa.key_size()),
        Ok(PublicKey::EC(_)) => {
            let curve = info.algorithm.parameters.as_ref().and_then(|any| any.as_oid().ok());
            format!("ecdsa {}", curve.map_or_else(|| "explicit curve".to_owned(), |oid| name(&oid)))
        }
        _ => name(&info.algorithm.algorithm),
    }
}

/// Curves (RFC 5480 2.1.1.1), keys (RFC 8410 3, RFC 4055 1.2, RFC 9881 2) and signatures (RFC 5758 3.2, RFC 8017 A.2.4,
/// RFC 8410 3, RFC 9881 2).
const NAMES: &[(Oid<'static>, &str)] = &[
    (oid!(1.2.840.10045.3.1.7), "p256"),
    (oid!(1.3.132.0.34), "p384"),
    (oid!(1.3.132.0.35), "p521"),
    (oid!(1.3.132.0.10), "secp256k1"),
    (oid!(1.3.101.112), "ed25519"),
    (oid!(1.3.101.113), "ed448"),
    (oid!(1.2.840.113549.1.1.10), "rsa-pss"),
    (oid!(1.2.840.10040.4.1), "dsa"),
    (oid!(2.16.840.1.101.3.4.3.17), "ml-dsa-44"),
    (oid!(2.16.840.1.101.3.4.3.18), "ml-dsa-65"),
    (oid!(2.16.840.1.101.3.4.3.19), "ml-dsa-87"),
    (oid!(1.2.840.10045.4.3.2), "ecdsa-sha256"),
    (oid!(1.2.840.10045.4.3.3), "ecdsa-sha384"),
    (oid!(1.2.840.10045.4.3.4), "ecdsa-sha512"),
    (oid!(1.2.840.10045.4.1), "ecdsa-sha1"),
    (oid!(1.2.840.113549.1.1.4), "rsa-md5"),
    (oid!(1.2.840.113549.1.1.5), "rsa-sha1"),
    (oid!(1.2.840.113549.1.1.11), "rsa-sha256"),
    (oid!(1.2.840.113549.1.1.12), "rsa-sha384"),
    (oid!(1.2.840.113549.1.1.13), "rsa-sha512"),
];

fn name(oid: &Oid<'_>) -> String {
    let known = NAMES.iter().find(|(known, _)| known == oid);
    known.map_or_else(|| oid.to_id_string(), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    fn made(key: &KeyPair) -> Vec<u8> {
        let mut params = CertificateParams::new(["a.test".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "a.test");
        params.not_before = date_time_ymd(2026, 1, 2);
        params.not_after = date_time_ymd(2026, 3, 4);
        params.self_signed(key).unwrap().der().to_vec()
    }

    /// 2026-03-01 at noon, in UTC.
    const NOW: i64 = 1_772_366_400;

    #[test]
    fn what_a_certificate_says() {
        let der = made(&KeyPair::generate().unwrap());
        let expected = Certificate {
            subject: "CN=a.test".into(),
            issuer: "CN=a.test".into(),
            key: "ecdsa p256".into(),
            signature: "ecdsa-sha256".into(),
            not_before: "2026-01-02".into(),
            not_after: "2026-03-04".into(),
            days_left: 2,
            bytes: der.len(),
            self_issued: true,
        };
        assert_eq!(Certificate::read(&der, NOW), Ok(expected));
        assert_eq!(Certificate::read(&der, NOW + 3 * DAY).unwrap().days_left, -1);
        assert!(Certificate::read(&der[..40], NOW).is_err());
    }

    #[test]
    fn kinds_of_keys() {
        for (algorithm, key, signature) in [
            (&rcgen::PKCS_ECDSA_P384_SHA384, "ecdsa p384", "ecdsa-sha384"),
            (&rcgen::PKCS_ED25519, "ed25519", "ed25519"),
            (&rcgen::PKCS_RSA_SHA256, "rsa 2048", "rsa-sha256"),
        ] {
            let made = Certificate::read(&made(&KeyPair::generate_for(algorithm).unwrap()), NOW).unwrap();
            assert_eq!((made.key.as_str(), made.signature.as_str()), (key, signature));
        }
    }
}
