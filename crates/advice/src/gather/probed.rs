//! Facts from a probe: the server's offers and choices.

use crate::fact::Facts;
use weir_probe::{Certificate, Chain, Preference, Report, Resumed, VersionReport};

const SOURCE: &str = "probe";

impl Facts {
    /// Adds the facts of a probe's report.
    pub fn add_probe(&mut self, report: &Report) {
        self.negotiated(report);
        self.chain(report);
        self.resumptions(report);
    }

    fn negotiated(&mut self, report: &Report) {
        if let Some(seen) = &report.negotiated {
            self.add("tls.version", seen.version, SOURCE);
            self.add("tls.suite", seen.suite.clone(), SOURCE);
            self.add_known("tls.group", seen.group.clone(), SOURCE);
            // Do not count a retry for a hybrid: most clients send its key share in the first ClientHello, unlike the
            // probe.
            let retried = seen.group.as_deref().filter(|group| seen.hello_retry && !group.contains("mlkem"));
            self.add("tls.retries_x25519", retried.is_some(), SOURCE);
            self.add_known("tls.retries_to", retried, SOURCE);
            self.add_known("tls.retry_share", retried.map(|_| 1.0), SOURCE);
        }
        let is_offered =
            |name: &str| report.versions.iter().any(|version| version.version == name && version.offered);
        self.add("tls.offers_1_3", is_offered("1.3"), SOURCE);
        if let Some(newest) = report.versions.iter().find(|version| version.offered) {
            self.add("tls.version", newest.version, SOURCE);
            self.add("tls.suites", newest.suites.len() as f64, SOURCE);
            self.add("tls.prefers_chacha20", prefers_chacha20(newest), SOURCE);
        }
        if let Some(tickets) = &report.tickets_13 {
            self.add("tls.tickets", tickets.count as f64, SOURCE);
            let lifetime = tickets.tickets.iter().map(|ticket| ticket.lifetime_s).min();
            self.add_known("tls.ticket_lifetime_s", lifetime.map(f64::from), SOURCE);
        }
    }

    fn chain(&mut self, report: &Report) {
        let leaves = report.chains.iter().filter_map(|chain| chain.certificates.first());
        let keys: Vec<&str> = leaves.map(|leaf| leaf.key.as_str()).collect();
        // The first of several chains, unless another one has a fault.
        let fault = |chain: &&Chain| (chain.root_sent, chain.over_initial_window);
        let Some(chain) = report.chains.iter().rev().max_by_key(fault) else { return };
        // A server with several certificates presents the cheapest to clients that support it.
        let key = keys.iter().find(|key| ["ecdsa p256", "ed25519"].contains(key)).or_else(|| keys.first());
        if let Some(key) = key {
            let (kind, size) = key.split_once(' ').unwrap_or((key, ""));
            self.add("certificate.key", key.replace(' ', "-"), SOURCE);
            self.add("certificate.kind", kind, SOURCE);
            self.add_known("certificate.bits", size.trim_start_matches('p').parse::<f64>().ok(), SOURCE);
        }
        let further = chain.certificates.iter().skip(1);
        let costly = further
            .filter(|one| ["ecdsa p384", "ecdsa p521", "rsa 4096"].contains(&one.key.as_str()))
            .count();
        self.add("chain.costly_keys", costly as f64, SOURCE);
        self.add("chain.certificates", chain.certificates.len() as f64, SOURCE);
        self.add("chain.unused", unused(&chain.certificates) as f64, SOURCE);
        self.add("chain.bytes", chain.bytes as f64, SOURCE);
        self.add("chain.over_initial_window", chain.over_initial_window, SOURCE);
        self.add("chain.root_sent", chain.root_sent, SOURCE);
    }

    fn resumptions(&mut self, report: &Report) {
        let version = report.negotiated.as_ref().map_or("", |seen| seen.version);
        let sessions = match (&report.tickets_13, &report.session_12) {
            (Some(tickets), _) if version == "1.3" => Some(tickets.count),
            (_, Some(session)) if version == "1.2" && session.whole => {
                Some(usize::from(session.id_bytes > 0 || session.ticket.is_some()))
            }
            _ => None,
        };
        self.add_known("resumption.sessions", sessions.map(|count| count as f64), SOURCE);
        // Only the version that clients get: resumption in an older version does not help them. The best of several
        // kinds, since a client uses one that works.
        let kind = format!("resume-{version}");
        let tried =
            report.resumptions.iter().filter(|one| one.kind.starts_with(&kind) && one.tries > one.failed);
        if let Some(best) = tried.max_by_key(|one| one.resumed * 1000 / one.tries.max(1)) {
            self.add_resumption(best);
        }
    }

    /// Adds the attempts of one kind, unless all failed to connect.
    pub(crate) fn add_resumption(&mut self, tried: &Resumed) {
        let tries = f64::from(tried.tries - tried.failed);
        if tries > 0.0 {
            self.add("resumption.kind", tried.kind, SOURCE);
            self.add("resumption.tries", tries, SOURCE);
            self.add("resumption.resumed", f64::from(tried.resumed), SOURCE);
            self.add("resumption.share", f64::from(tried.resumed) / tries, SOURCE);
        }
    }
}

/// Whether the server chooses ChaCha20 for clients without a preference.
fn prefers_chacha20(newest: &VersionReport) -> bool {
    let is_own_choice = newest.suite_preference == Some(Preference::Server) || newest.suites.len() == 1;
    is_own_choice && newest.suites.first().is_some_and(|suite| suite.iana.contains("CHACHA20"))
}

/// The number of certificates outside the path from the leaf to a root: copies, and certificates of other CAs.
fn unused(chain: &[Certificate]) -> usize {
    let Some(leaf) = chain.first() else { return 0 };
    let mut path = vec![leaf];
    while let Some(last) = path.last().filter(|last| !last.self_issued) {
        let issuer = chain.iter().find(|one| one.subject == last.issuer);
        match issuer.filter(|issuer| !path.contains(issuer)) {
            Some(issuer) => path.push(issuer),
            None => break,
        }
    }
    chain.len() - path.len()
}
