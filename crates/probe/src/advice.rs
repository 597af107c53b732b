//! What to change: each line rests on something in the report, and says what.

use crate::offers::Preference;
use crate::report::{ClientCertificate, Report, VersionReport};
use crate::trust::Verification;

/// Fewer days than this before a certificate ends are worth a line: what renews itself does so earlier.
const SOON_DAYS: i64 = 14;
/// What NIST SP 800-131A asks of a prime field.
const MIN_PRIME_BITS: usize = 2048;

/// The lines, most costly first.
pub(crate) fn advice(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    certificate(report, &mut lines);
    versions(report, &mut lines);
    key_exchange(report, &mut lines);
    resumption(report, &mut lines);
    lines
}

fn certificate(report: &Report, lines: &mut Vec<String>) {
    if let Verification::Refused { reason, detail } = &report.verification {
        let reason = reason.replace('_', " ");
        lines.push(format!("the certificate is not believed ({reason}): {detail}"));
    }
    for chain in &report.chains {
        let Some(leaf) = chain.certificates.first() else { continue };
        if (0..SOON_DAYS).contains(&leaf.days_left) {
            lines.push(format!("the certificate ends in {} days, on {}", leaf.days_left, leaf.not_after));
        }
        match leaf.key.as_str() {
            key if key.starts_with("rsa") => lines.push(format!(
                "{} certificate: signing costs several times what it does with ecdsa p-256",
                key.replace("rsa ", "rsa-"),
            )),
            key @ ("ecdsa p-384" | "ecdsa p-521") => lines.push(format!(
                "{key} certificate: signing costs several times what it does with ecdsa p-256"
            )),
            _ => {}
        }
        if chain.over_initial_window {
            lines.push(format!(
                "chain of {} bytes: more than a new TCP connection may send at once, so a round trip more",
                chain.bytes,
            ));
        }
        if chain.root_sent {
            let root = chain.certificates.last().map_or(0, |root| root.bytes);
            lines.push(format!("the chain has the root, {root} bytes that no client needs"));
        }
    }
    if report.client_certificate == Some(ClientCertificate::AskedNonePresented) {
        lines.push("the server asks for a client certificate: give one by --cert and --key".to_owned());
    }
}

fn versions(report: &Report, lines: &mut Vec<String>) {
    let offered = |name: &str| report.versions.iter().any(|v| v.version == name && v.offered);
    if !offered("1.3") {
        lines.push("no TLS 1.3: a full handshake takes two round trips where 1.3 takes one".to_owned());
    }
    let old = ["1.1", "1.0"].into_iter().filter(|name| offered(name)).collect::<Vec<_>>();
    if !old.is_empty() {
        lines.push(format!("TLS {} is offered, deprecated by RFC 8996", old.join(" and ")));
    }
    let mut broken = Vec::new();
    for suite in report.versions.iter().flat_map(|version| &version.suites) {
        if is_broken(suite.iana) && !broken.contains(&suite.name) {
            broken.push(suite.name.clone());
        }
    }
    if let Some(first) = broken.first() {
        lines.push(format!("{} broken suites are offered, such as {first}", broken.len()));
    }
    let chacha_first = |version: &VersionReport| {
        version.suite_preference == Some(Preference::Server)
            && version.suites.len() > 1
            && version.suites[0].iana.contains("CHACHA20")
    };
    for version in report.versions.iter().filter(|version| chacha_first(version)) {
        lines.push(format!(
            "TLS {}: chacha20-poly1305 comes first; with AES instructions aes-gcm costs less per byte",
            version.version,
        ));
    }
}

fn is_broken(iana: &str) -> bool {
    ["_NULL_", "_anon_", "EXPORT", "_RC4_", "_DES_", "_3DES_"].iter().any(|mark| iana.contains(mark))
}

fn key_exchange(report: &Report, lines: &mut Vec<String>) {
    let taken = report.first_shares.iter().find(|share| share.retry_to.is_none());
    let retried =
        report.first_shares.iter().find(|share| share.group == "x25519" && share.retry_to.is_some());
    let without_x25519 = report.versions.iter().find(|version| {
        version.version == "1.3" && !version.groups.is_empty() && version.groups.iter().all(|g| g != "x25519")
    });
    let avoid =
        taken.map_or(String::new(), |share| format!("; a first key share for {} avoids it", share.group));
    if retried.is_some() {
        lines.push(format!(
            "a key share for x25519 is refused by a HelloRetryRequest, a round trip more{avoid}"
        ));
    } else if without_x25519.is_some() {
        lines.push(format!(
            "no x25519: most clients send its key share first, and pay a HelloRetryRequest{avoid}"
        ));
    }
    for version in &report.versions {
        if let Some(bits) = version.prime_bits.filter(|bits| *bits < MIN_PRIME_BITS) {
            lines.push(format!("TLS {}: a key exchange in a prime field of {bits} bits", version.version));
        }
    }
}

fn resumption(report: &Report, lines: &mut Vec<String>) {
    if report.tickets_13.as_ref().is_some_and(|tickets| tickets.count == 0) {
        lines.push("0 tickets after a TLS 1.3 handshake: returning clients pay full handshakes".to_owned());
    }
    for tried in report.resumptions.iter().filter(|tried| tried.tries > tried.failed) {
        let (kind, resumed, tries) = (tried.kind, tried.resumed, tried.tries);
        if resumed == 0 {
            lines
                .push(format!("{kind} 0 of {tries}: what the server gives to resume with, it does not take"));
        } else if resumed + tried.failed < tries {
            lines.push(format!("{kind} {resumed} of {tries}: workers or hosts share no keys or sessions"));
        }
    }
    for tried in report.resumptions.iter().filter(|tried| tried.failed > 0) {
        lines.push(format!("{}: {} of {} connections failed", tried.kind, tried.failed, tried.tries));
    }
    let early = report.tickets_13.iter().flat_map(|tickets| &tickets.tickets);
    if let Some(most) = early.map(|ticket| ticket.max_early_data).max().filter(|most| *most > 0) {
        lines.push(format!("early data of {most} bytes is taken: it can be replayed (RFC 8446 8)"));
    }
}
