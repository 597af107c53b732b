//! OCSP responses to staple (RFC 6960, RFC 6066 section 8), checked as a client would check them.
//!
//! The server staples a response only if it is for the certificate, has the status "good", is signed by the
//! issuer or by a responder that the issuer has certified for this purpose, and is currently valid. Clients
//! reject an invalid response, but may accept a missing one.

use aws_lc_rs::digest;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::der::{Der, SEQUENCE, Signed, bits};

/// The OCSP response in a file, and the decision about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staple {
    /// The file of the response.
    pub origin: String,
    /// The first second of the response's validity, since the epoch.
    pub this_update: i64,
    /// The last second of the response's validity, since the epoch.
    pub next_update: i64,
    /// The reason why the server never staples the response. `None` if the server staples it during its validity.
    pub rejected: Option<String>,
}

impl Staple {
    /// Whether the server staples the response at `now`, in seconds since the epoch.
    pub fn is_stapled_at(&self, now: i64) -> bool {
        self.rejected.is_none() && (self.this_update..=self.next_update).contains(&now)
    }
}

/// The reason why a file is not a successful OCSP response.
pub(crate) enum Malformed {
    NotDer,
    /// The responder's error status (RFC 6960 section 4.2.1).
    Status(u8),
}

/// Checks a response for the first certificate of a chain. Fails only if it is not a successful OCSP response.
pub(crate) fn judge(
    origin: String,
    response: &[u8],
    chain: &[CertificateDer<'_>],
    algorithms: &WebPkiSupportedAlgorithms,
    now: i64,
) -> Result<Staple, Malformed> {
    let basic = basic(response)?;
    let mut staple = Staple { origin, this_update: i64::MAX, next_update: i64::MIN, rejected: None };
    let judged = Subject::of(chain).and_then(|subject| {
        let single = subject.single(&basic).ok_or("it is about another certificate")?;
        (staple.this_update, staple.next_update) = (single.this_update, single.next_update);
        match single.status {
            0x80 => {}
            0xa1 => return Err("it says that the certificate is revoked"),
            _ => return Err("its responder does not know the certificate"),
        }
        subject.check_signature(&basic, algorithms, now)
    });
    staple.rejected = judged.err().map(str::to_owned);
    Ok(staple)
}

/// The signed part of a successful response.
fn basic(response: &[u8]) -> Result<Signed<'_>, Malformed> {
    let parts = || {
        let mut outer = Der(response);
        let mut body = Der(outer.take(SEQUENCE)?);
        let &[status] = body.take(0x0a)? else { return None };
        outer.0.is_empty().then_some((status, body))
    };
    match parts().ok_or(Malformed::NotDer)? {
        (0, mut body) => {
            let mut bytes = || {
                let mut typed = Der(Der(body.take(0xa0)?).take(SEQUENCE)?);
                (typed.take(6)? == BASIC).then_some(typed.take(4)?)
            };
            bytes().and_then(Signed::read).ok_or(Malformed::NotDer)
        }
        (status, _) => Err(Malformed::Status(status)),
    }
}

/// The certificate of a response, and its issuer.
struct Subject<'a> {
    leaf: X509Certificate<'a>,
    issuer: X509Certificate<'a>,
}

struct Single {
    /// The tag of the certificate status.
    status: u8,
    this_update: i64,
    next_update: i64,
}

impl<'a> Subject<'a> {
    fn of(chain: &'a [CertificateDer<'_>]) -> Result<Self, &'static str> {
        let read = |der: &'a CertificateDer<'_>| X509Certificate::from_der(der).ok().map(|(_, read)| read);
        let leaf = chain.first().and_then(read).ok_or("its certificate is not X.509")?;
        let issuer = chain.iter().skip(1).filter_map(read).find(|issuer| issuer.subject() == leaf.issuer());
        let issuer = issuer.ok_or("it cannot be verified without its certificate's issuer in `chain`")?;
        Ok(Self { leaf, issuer })
    }

    /// The part of a response for this certificate; `None` if there is none, or the response is malformed.
    fn single(&self, response: &Signed<'_>) -> Option<Single> {
        let mut data = Der(Some(response.message.content).filter(|_| response.message.tag == SEQUENCE)?);
        data.optional(0xa0);
        // Skip the responder ID: the signature proves the responder.
        data.any()?;
        let _produced_at = data.take(GENERALIZED_TIME)?;
        let mut singles = Der(data.take(SEQUENCE)?);
        while !singles.0.is_empty() {
            let mut single = Der(singles.take(SEQUENCE)?);
            let is_own = self.is_named_by(Der(single.take(SEQUENCE)?))?;
            let status = single.any()?.tag;
            let this_update = seconds(single.take(GENERALIZED_TIME)?)?;
            // Without nextUpdate, newer information is always available, so the response is never valid.
            let next_update = match single.optional(0xa0) {
                Some(next) => seconds(Der(next).take(GENERALIZED_TIME)?)?,
                None => i64::MIN,
            };
            if is_own {
                return Some(Single { status, this_update, next_update });
            }
        }
        None
    }

    /// Whether a CertID (RFC 6960 section 4.1.1) identifies this certificate; `None` if the CertID is malformed.
    fn is_named_by(&self, mut id: Der<'_>) -> Option<bool> {
        let hash = match Der(id.take(SEQUENCE)?).take(6)? {
            SHA1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            SHA256 => &digest::SHA256,
            _ => return Some(false),
        };
        let (name, key, serial) = (id.take(4)?, id.take(4)?, id.take(2)?);
        let is_hash = |hashed: &[u8], of: &[u8]| digest::digest(hash, of).as_ref() == hashed;
        let key_bits = &self.issuer.public_key().subject_public_key.data;
        Some(
            is_hash(name, self.leaf.issuer().as_raw())
                && is_hash(key, key_bits)
                && serial == self.leaf.raw_serial(),
        )
    }

    /// Checks the signature by the issuer, or by a responder with an OCSP signing certificate from the issuer
    /// (RFC 6960 section 4.2.2.2).
    fn check_signature(
        &self,
        response: &Signed<'_>,
        algorithms: &WebPkiSupportedAlgorithms,
        now: i64,
    ) -> Result<(), &'static str> {
        let issuer_key = self.issuer.public_key().raw;
        if is_signed_by(response, issuer_key, algorithms) {
            return Ok(());
        }
        let mut rest = response.rest;
        let mut certificates =
            Der(rest.optional(0xa0).and_then(|list| Der(list).take(SEQUENCE)).unwrap_or_default());
        while let Some(certificate) = certificates.any() {
            let Ok((_, responder)) = X509Certificate::from_der(certificate.whole) else { continue };
            let validity = responder.validity();
            let is_valid = (validity.not_before.timestamp()..=validity.not_after.timestamp()).contains(&now);
            let usage = responder.extended_key_usage().ok().flatten();
            if is_valid
                && usage.is_some_and(|usage| usage.value.ocsp_signing)
                && responder.issuer() == self.issuer.subject()
                && Signed::read(certificate.whole)
                    .is_some_and(|signed| is_signed_by(&signed, issuer_key, algorithms))
                && is_signed_by(response, responder.public_key().raw, algorithms)
            {
                return Ok(());
            }
        }
        Err("it is not signed by the certificate's issuer, nor by a responder of it")
    }
}

/// Whether the key has signed the message. `key` is a public key with its algorithm (DER).
fn is_signed_by(signed: &Signed<'_>, key: &[u8], algorithms: &WebPkiSupportedAlgorithms) -> bool {
    let parts = || {
        let mut key = Der(Der(key).take(SEQUENCE)?);
        Some((key.take(SEQUENCE)?, bits(key.take(3)?)?))
    };
    let Some((kind, key)) = parts() else { return false };
    algorithms.all.iter().any(|algorithm| {
        algorithm.signature_alg_id().as_ref() == signed.algorithm
            && algorithm.public_key_alg_id().as_ref() == kind
            && algorithm.verify_signature(key, signed.message.whole, signed.signature).is_ok()
    })
}

/// Parses `YYYYMMDDHHMMSSZ` into seconds since the epoch (RFC 5280 section 4.1.2.5.2).
fn seconds(time: &[u8]) -> Option<i64> {
    let digits: &[u8; 14] = time.strip_suffix(b"Z")?.try_into().ok()?;
    let number = |range: std::ops::Range<usize>| {
        digits[range]
            .iter()
            .try_fold(0, |number, digit| Some(number * 10 + i64::from(char::from(*digit).to_digit(10)?)))
    };
    let (year, month, day) = (number(0..4)?, number(4..6)?, number(6..8)?);
    let (hour, minute, second) = (number(8..10)?, number(10..12)?, number(12..14)?);
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Count days from 1 March of year 0, so that a leap day is the last day of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (month * 153 + 2) / 5
        + day
        - 1;
    Some((days - 719_468) * 86_400 + hour * 3600 + minute * 60 + second)
}

const GENERALIZED_TIME: u8 = 0x18;
/// The OID id-pkix-ocsp-basic.
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];
const SHA1: &[u8] = &[0x2b, 0x0e, 3, 2, 0x1a];
const SHA256: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_since_the_epoch() {
        for (time, expected) in [
            (&b"19700101000000Z"[..], Some(0)),
            (b"20000229235959Z", Some(951_868_799)),
            (b"20000301000000Z", Some(951_868_800)),
            (b"21000301000000Z", Some(4_107_542_400)),
            (b"20261126153000Z", Some(1_795_707_000)),
            (b"20261326153000Z", None),
            (b"20261126243000Z", None),
            (b"202611261530Z", None),
            (b"20261126153000", None),
            (b"2026112615300xZ", None),
            (b"20261126153000.5Z", None),
        ] {
            assert_eq!(seconds(time), expected, "{}", time.escape_ascii());
        }
    }
}
