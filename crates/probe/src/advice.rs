//! Advice: each line is based on something in the report, and names it.

use crate::offers::Preference;
use crate::report::{Chain, ClientCertificate, Report, VersionReport};
use crate::trust::Verification;

/// Warn this many days before a certificate expires: automatic renewal happens earlier.
const SOON_DAYS: i64 = 14;
/// Minimum prime size (NIST SP 800-131A).
const MIN_PRIME_BITS: usize = 2048;

/// The lines, most important first.
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
        lines.push(format!("the certificate is not trusted ({reason}): {detail}"));
    }
    let is_cheap = |chain: &Chain| {
        chain.certificates.first().is_some_and(|leaf| matches!(leaf.key.as_str(), "ecdsa p256" | "ed25519"))
    };
    let has_cheap_key = report.chains.iter().any(is_cheap);
    for chain in &report.chains {
        let Some(leaf) = chain.certificates.first() else { continue };
        if (0..SOON_DAYS).contains(&leaf.days_left) {
            lines.push(format!("the certificate expires in {} days, on {}", leaf.days_left, leaf.not_after));
        }
        match leaf.key.as_str() {
            // A server that also has a cheaper key uses this one only for clients that ask for it.
            _ if has_cheap_key => {}
            key if key.starts_with("rsa") => lines.push(format!(
                "{} certificate: signing costs several times as much as with ecdsa p256",
                key.replace("rsa ", "rsa-"),
            )),
            key @ ("ecdsa p384" | "ecdsa p521") => lines
                .push(format!("{key} certificate: signing costs several times as much as with ecdsa p256")),
            _ => {}
        }
        if chain.over_initial_window {
            lines.push(format!(
                "chain of {} bytes: exceeds the initial TCP window, which costs a round trip",
                chain.bytes,
            ));
        }
        if chain.root_sent {
            let root = chain.certificates.last().map_or(0, |root| root.bytes);
            lines.push(format!("the chain includes the root, {root} bytes that no client needs"));
        }
    }
    if report.client_certificate == Some(ClientCertificate::AskedNonePresented) {
        lines.push("the server requests a client certificate: use --cert and --key".to_owned());
    }
}

fn versions(report: &Report, lines: &mut Vec<String>) {
    let offered = |name: &str| report.versions.iter().any(|v| v.version == name && v.offered);
    if !offered("1.3") {
        lines.push("no TLS 1.3: a full handshake takes two round trips instead of one".to_owned());
    }
    let old = ["1.1", "1.0"].into_iter().filter(|name| offered(name)).collect::<Vec<_>>();
    if !old.is_empty() {
        lines.push(format!("offers old versions, deprecated by RFC 8996: TLS {}", old.join(" and ")));
    }
    let mut broken = Vec::new();
    for suite in report.versions.iter().flat_map(|version| &version.suites) {
        if is_broken(suite.iana) && !broken.contains(&suite.name) {
            broken.push(suite.name.clone());
        }
    }
    if let Some(first) = broken.first() {
        lines.push(format!("offers broken suites: {first}{}", others(broken.len() - 1)));
    }
    let chacha_first = |version: &VersionReport| {
        version.suite_preference == Some(Preference::Server)
            && version.suites.len() > 1
            && version.suites[0].iana.contains("CHACHA20")
    };
    for version in report.versions.iter().filter(|version| chacha_first(version)) {
        lines.push(format!(
            "TLS {}: prefers chacha20-poly1305; with AES instructions aes-gcm costs less per byte",
            version.version,
        ));
    }
}

fn others(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" and {count} more") }
}

fn is_broken(iana: &str) -> bool {
    ["_NULL_", "_anon_", "EXPORT", "_RC4_", "_DES_", "_3DES_"].iter().any(|mark| iana.contains(mark))
}

fn key_exchange(report: &Report, lines: &mut Vec<String>) {
    let taken = report.first_shares.iter().find(|share| share.retry_to.is_none());
    let retried =
        report.first_shares.iter().find(|share| share.group == "x25519" && share.retry_to.is_some());
    let without_x25519 = report.versions.iter().find(|version| {
        version.version == "1.3"
            && version.incomplete.is_none()
            && !version.groups.is_empty()
            && version.groups.iter().all(|g| g != "x25519")
    });
    let avoid =
        taken.map_or(String::new(), |share| format!("; a first key share for {} avoids it", share.group));
    if retried.is_some() {
        lines.push(format!("an x25519 key share gets a HelloRetryRequest, which costs a round trip{avoid}"));
    } else if without_x25519.is_some() {
        lines.push(format!(
            "no x25519: most clients send an x25519 key share first, and get a HelloRetryRequest{avoid}"
        ));
    }
    for version in &report.versions {
        if let Some(bits) = version.prime_bits.filter(|bits| *bits < MIN_PRIME_BITS) {
            lines.push(format!("TLS {}: finite-field key exchange with {bits} bits", version.version));
        }
    }
}

fn resumption(report: &Report, lines: &mut Vec<String>) {
    if report.tickets_13.as_ref().is_some_and(|tickets| tickets.count == 0) {
        lines.push("0 tickets after a TLS 1.3 handshake: returning clients do full handshakes".to_owned());
    }
    for tried in report.resumptions.iter().filter(|tried| tried.tries > tried.failed) {
        let (kind, resumed, tries) = (tried.kind, tried.resumed, tried.tries);
        if resumed == 0 {
            lines
                .push(format!("{kind} 0 of {tries}: the server does not accept its own tickets or sessions"));
        } else if resumed + tried.failed < tries {
            lines
                .push(format!("{kind} {resumed} of {tries}: workers or hosts do not share keys or sessions"));
        }
    }
    for tried in report.resumptions.iter().filter(|tried| tried.failed > 0) {
        lines.push(format!("{}: {} of {} connections failed", tried.kind, tried.failed, tried.tries));
    }
    let early = report.tickets_13.iter().flat_map(|tickets| &tickets.tickets);
    if let Some(most) = early.map(|ticket| ticket.max_early_data).max().filter(|most| *most > 0) {
        lines.push(format!("accepts early data of {most} bytes, which can be replayed (RFC 8446 8)"));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::certificate::Certificate;
    use crate::report::{Chain, FirstShare, SuiteReport, Tickets13};
    use crate::resume::Resumed;
    use crate::tickets::Ticket13;

    fn version(name: &'static str, suites: &[&'static str], groups: &[&str]) -> VersionReport {
        let suite =
            |iana: &&'static str| SuiteReport { name: iana.to_lowercase(), iana, number: "0x1301".into() };
        VersionReport {
            version: name,
            offered: !suites.is_empty(),
            refusal: None,
            suites: suites.iter().map(suite).collect(),
            suite_preference: Some(Preference::Server),
            groups: groups.iter().map(ToString::to_string).collect(),
            group_preference: None,
            signatures: vec!["ecdsa-p256-sha256".into()],
            prime_bits: None,
            incomplete: None,
        }
    }

    fn chain(key: &str, days_left: i64, bytes: usize) -> Chain {
        let certificate = Certificate {
            subject: "CN=a".into(),
            issuer: "CN=b".into(),
            key: key.into(),
            signature: "ecdsa-sha256".into(),
            not_before: "2026-01-01".into(),
            not_after: "2026-04-01".into(),
            days_left,
            bytes,
            self_issued: false,
        };
        let over_initial_window = bytes > crate::INITIAL_WINDOW;
        Chain { certificates: vec![certificate], bytes, over_initial_window, root_sent: false, ocsp_bytes: 0 }
    }

    fn resumed(kind: &'static str, resumed: u32, failed: u32) -> Resumed {
        Resumed { kind, tries: 10, resumed, failed, not_tried: None }
    }

    fn tickets(count: usize, max_early_data: u32) -> Option<Tickets13> {
        Some(Tickets13 {
            count,
            tickets: vec![Ticket13 { lifetime_s: 7200, bytes: 100, max_early_data }; count],
        })
    }

    /// A server without advice.
    pub(crate) fn report() -> Report {
        let share = |group: &str| FirstShare { group: group.into(), retry_to: None };
        Report {
            schema: 1,
            host: "a".into(),
            port: 443,
            address: "127.0.0.1:443".into(),
            addresses: 1,
            server_name: Some("a".into()),
            connections: 50,
            elapsed_ms: 100,
            versions: vec![
                version("1.3", &["TLS_AES_128_GCM_SHA256"], &["x25519", "p256"]),
                version("1.0", &[], &[]),
            ],
            negotiated: None,
            first_shares: vec![share("x25519"), share("p256")],
            alpn: None,
            verification: Verification::Verified,
            chains: vec![chain("ecdsa p256", 60, 500)],
            client_certificate: Some(ClientCertificate::NotAsked),
            tickets_13: tickets(2, 0),
            session_12: None,
            resumptions: vec![resumed("resume-1.3-psk", 10, 0)],
            notes: Vec::new(),
            advice: Vec::new(),
            load: None,
        }
    }

    #[test]
    fn each_line_rests_on_what_was_seen() {
        assert_eq!(advice(&report()), [""; 0]);
        type Change = fn(&mut Report);
        let cases: [(Change, &str); 17] = [
            (|r| drop(r.versions.remove(0)), "no TLS 1.3"),
            (
                |r| r.versions[1] = version("1.0", &["TLS_RSA_WITH_AES_128_CBC_SHA"], &[]),
                "offers old versions",
            ),
            (
                |r| r.versions[1] = version("1.2", &["TLS_RSA_WITH_RC4_128_SHA"], &[]),
                "offers broken suites: tls_rsa_with_rc4",
            ),
            (
                |r| {
                    r.versions[0] = version(
                        "1.3",
                        &["TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"],
                        &["x25519"],
                    );
                },
                "prefers chacha20-poly1305",
            ),
            (|r| r.versions[0].prime_bits = Some(1024), "finite-field key exchange with 1024 bits"),
            (|r| r.versions[0].groups = vec!["p384".into()], "no x25519"),
            (|r| r.first_shares[0].retry_to = Some("p256".into()), "a first key share for p256 avoids it"),
            (
                |r| r.chains = vec![chain("rsa 2048", 60, 900)],
                "rsa-2048 certificate: signing costs several times",
            ),
            (|r| r.chains = vec![chain("ecdsa p384", 60, 900)], "ecdsa p384 certificate"),
            (|r| r.chains = vec![chain("ecdsa p256", 3, 900)], "expires in 3 days, on 2026-04-01"),
            (|r| r.chains = vec![chain("ecdsa p256", 60, 14_001)], "chain of 14001 bytes"),
            (|r| r.chains[0].root_sent = true, "includes the root, 500 bytes"),
            (|r| r.tickets_13 = tickets(0, 0), "0 tickets"),
            (|r| r.tickets_13 = tickets(1, 16384), "accepts early data of 16384 bytes"),
            (
                |r| r.resumptions = vec![resumed("resume-1.2-id", 4, 0)],
                "resume-1.2-id 4 of 10: workers or hosts do not share",
            ),
            (
                |r| r.resumptions = vec![resumed("resume-1.2-id", 0, 0)],
                "resume-1.2-id 0 of 10: the server does not accept",
            ),
            (
                |r| r.resumptions = vec![resumed("resume-1.2-id", 9, 1)],
                "resume-1.2-id: 1 of 10 connections failed",
            ),
        ];
        for (change, expected) in cases {
            let mut report = report();
            change(&mut report);
            let lines = advice(&report);
            assert!(lines.len() == 1 && lines[0].contains(expected), "{expected}: {lines:?}");
        }
        let mut report = report();
        let detail = "not for this name".to_owned();
        report.verification = Verification::Refused { reason: "wrong_name", detail };
        report.client_certificate = Some(ClientCertificate::AskedNonePresented);
        let lines = advice(&report);
        assert!(lines[0].contains("not trusted (wrong name): not for this name"), "{lines:?}");
        assert!(lines[1].contains("--cert and --key"), "{lines:?}");
    }
}
