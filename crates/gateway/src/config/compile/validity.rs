//! Warnings about validity periods: of certificates, revocation lists and OCSP responses.

use super::Findings;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_tls::{Certificate, Presented, RevocationList, Server, Staple};

/// Warns about revocation lists that have expired or are not valid yet, and about CAs without a list if other CAs of
/// the listener have one.
pub(super) fn warn_of_lists(server: &Server, key: &str, findings: &mut Findings) {
    let (revocation, now) = (server.revocation(), now());
    for list in &revocation.lists {
        let RevocationList { origin, line, issuer, this_update, next_update } = list;
        let of = format!("{origin}, line {line}: the revocation list of {issuer}");
        if *this_update > now {
            let message = format!("{of} is from the future, {}", date(*this_update));
            findings.warn(key, message, "check this machine's clock, and fetch the CA's current list");
        }
        match next_update {
            Some(at) if *at < now => findings.warn(
                key,
                format!("{of} is expired: the next one was due on {}", date(*at)),
                "fetch the CA's current list",
            ),
            Some(_) => {}
            None => {
                let message = format!("{of} does not say when the next one is due, so it never expires");
                findings.warn(
                    key,
                    message,
                    "let the CA issue lists with nextUpdate (RFC 5280 section 5.1.2.5)",
                );
            }
        }
    }
    for authority in &revocation.unlisted {
        let message = format!("no revocation list of {authority}: none of its certificates is ever revoked");
        findings.warn(key, message, "add the CA's list");
    }
}

/// Warns about certificates that have expired or are not valid yet.
pub(super) fn warn_of_certificates(certificates: &[Certificate], findings: &mut Findings) {
    for (index, certificate) in certificates.iter().enumerate() {
        if let Some((message, next)) = why_invalid(certificate) {
            findings.warn(format!("certificate.{index}.chain"), message, next);
        }
    }
}

/// The reason why a certificate is not valid now, and advice; `None`: it is valid.
pub(crate) fn why_invalid(certificate: &Certificate) -> Option<(String, &'static str)> {
    let now = now();
    let Presented { origin, not_before, not_after, .. } = certificate.presented();
    if *not_after < now {
        Some((format!("{origin} expired on {}, so clients reject it", date(*not_after)), "renew it"))
    } else if *not_before > now {
        let next = "check this machine's clock, or wait until then";
        Some((format!("{origin} is not valid before {}, so clients reject it", date(*not_before)), next))
    } else {
        None
    }
}

/// Warns about OCSP responses that are not stapled.
pub(super) fn warn_of_responses(certificates: &[Certificate], findings: &mut Findings) {
    let now = now();
    for (index, certificate) in certificates.iter().enumerate() {
        let Some(staple) = &certificate.presented().ocsp else { continue };
        let Staple { origin, this_update, next_update, rejected } = staple;
        let why = match rejected {
            _ if staple.is_stapled_at(now) => continue,
            Some(why) => why.clone(),
            None if *next_update == i64::MIN => "it does not say when the next one is due".to_owned(),
            None if *this_update > now => format!("it is valid only from {}", date(*this_update)),
            None => format!("it expired on {}", date(*next_update)),
        };
        findings.warn(
            format!("certificate.{index}.ocsp"),
            format!("{origin}: the OCSP response is not stapled: {why}"),
            "fetch the CA's current response, as with `openssl ocsp -respout FILE`",
        );
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as i64
}

fn date(seconds: i64) -> String {
    // The date format and revocation lists allow only four-digit years.
    let since = Duration::from_secs(seconds.clamp(0, LAST) as u64);
    httpdate::fmt_http_date(UNIX_EPOCH + since)
}

/// The last second of the year 9999.
const LAST: i64 = 253_402_300_799;
