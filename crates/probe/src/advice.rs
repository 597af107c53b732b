//! Advice on trust and safety: each line is based on something in the report, and names it. The rules of `weir-advice` say
//! what costs.

use crate::report::{ClientCertificate, Report};
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
    sessions(report, &mut lines);
    lines
}

fn certificate(report: &Report, lines: &mut Vec<String>) {
    if let Verification::Refused { reason, detail } = &report.verification {
        let reason = reason.replace('_', " ");
        lines.push(format!("the certificate is not trusted ({reason}): {detail}"));
    }
    for leaf in report.chains.iter().filter_map(|chain| chain.certificates.first()) {
        if (0..SOON_DAYS).contains(&leaf.days_left) {
            lines.push(format!("the certificate expires in {} days, on {}", leaf.days_left, leaf.not_after));
        }
    }
    if report.client_certificate == Some(ClientCertificate::AskedNonePresented) {
        lines.push("the server requests a client certificate: use --cert and --key".to_owned());
    }
}

fn versions(report: &Report, lines: &mut Vec<String>) {
    let offered = |name: &str| report.versions.iter().any(|v| v.version == name && v.offered);
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
    for version in &report.versions {
        if let Some(bits) = version.prime_bits.filter(|bits| *bits < MIN_PRIME_BITS) {
            lines.push(format!("TLS {}: finite-field key exchange with {bits} bits", version.version));
        }
    }
}

fn others(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" and {count} more") }
}

fn is_broken(iana: &str) -> bool {
    ["_NULL_", "_anon_", "EXPORT", "_RC4_", "_DES_", "_3DES_"].iter().any(|mark| iana.contains(mark))
}

fn sessions(report: &Report, lines: &mut Vec<String>) {
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
    use crate::offers::Preference;
    use crate::report::{Chain, FirstShare, SuiteReport, Tickets13, VersionReport};
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

    fn chain(days_left: i64) -> Chain {
        let certificate = Certificate {
            subject: "CN=a".into(),
            issuer: "CN=b".into(),
            key: "ecdsa p256".into(),
            signature: "ecdsa-sha256".into(),
            not_before: "2026-01-01".into(),
            not_after: "2026-04-01".into(),
            days_left,
            bytes: 500,
            self_issued: false,
        };
        let certificates = vec![certificate];
        Chain { certificates, bytes: 500, over_initial_window: false, root_sent: false, ocsp_bytes: 0 }
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
            chains: vec![chain(60)],
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
        let cases: [(Change, &str); 6] = [
            (
                |r| r.versions[1] = version("1.0", &["TLS_RSA_WITH_AES_128_CBC_SHA"], &[]),
                "offers old versions",
            ),
            (
                |r| r.versions[1] = version("1.2", &["TLS_RSA_WITH_RC4_128_SHA"], &[]),
                "offers broken suites: tls_rsa_with_rc4",
            ),
            (|r| r.versions[0].prime_bits = Some(1024), "finite-field key exchange with 1024 bits"),
            (|r| r.chains = vec![chain(3)], "expires in 3 days, on 2026-04-01"),
            (|r| r.tickets_13 = tickets(1, 16384), "accepts early data of 16384 bytes"),
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
