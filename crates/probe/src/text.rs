//! The report as text: one screen of 100 columns.

use crate::offers::Preference;
use crate::report::{Alpn, Chain, ClientCertificate, FirstShare, Report, VersionReport};
use crate::resume::Resumed;
use crate::trust::Verification;
use std::fmt::Write as _;
use weir_http::visible;

/// The width of the screen.
const WIDTH: usize = 100;
/// The width of the name column.
const NAME: usize = 19;
/// Maximum suites shown per version; the JSON has all.
const SUITES: usize = 12;

/// The report as text.
pub fn text(report: &Report) -> String {
    let mut page = Page::default();
    let name = report.server_name.as_deref().map_or("no SNI".to_owned(), |name| format!("name {name}"));
    let more = if report.addresses > 1 { format!(", 1 of {}", report.addresses) } else { String::new() };
    page.row("server", [format!("{} ({}{more}), {name}", report.host, report.address)]);
    offers(&mut page, report);
    negotiated(&mut page, report);
    certificates(&mut page, report);
    sessions(&mut page, report);
    for note in &report.notes {
        page.row("note", words(note));
    }
    let seconds = report.elapsed_ms as f64 / 1000.0;
    page.row("probed", [format!("{} connections, {seconds:.1} s", report.connections)]);
    for (at, line) in report.advice.iter().enumerate() {
        page.row(if at == 0 { "advice" } else { "" }, words(line));
    }
    if let Some(command) = &report.load {
        // Not wrapped, for copying.
        let _ = writeln!(page.0, "load\n  {command}");
    }
    page.0
}

fn offers(page: &mut Page, report: &Report) {
    let (yes, no): (Vec<_>, Vec<_>) = report.versions.iter().partition(|version| version.offered);
    let names =
        |versions: &[&VersionReport]| versions.iter().map(|v| v.version).collect::<Vec<_>>().join(" ");
    let not = if no.is_empty() { String::new() } else { format!("; not {}", names(&no)) };
    page.row("versions", [format!("{}{not}", names(&yes))]);
    page.lists("suites", &yes, |version| {
        let mut suites = version.suites.iter().map(|suite| suite.name.clone()).collect::<Vec<_>>();
        if suites.len() > SUITES {
            let more = suites.len() - SUITES;
            suites.truncate(SUITES);
            suites.push(format!("and {more} more"));
        }
        (suites, version.suite_preference)
    });
    page.lists("groups", &yes, |version| {
        let prime = version.prime_bits.map(|bits| format!("finite field of {bits} bits"));
        (version.groups.iter().cloned().chain(prime).collect(), version.group_preference)
    });
    page.lists("signatures", &yes, |version| (version.signatures.clone(), None));
    for version in &yes {
        if let Some(why) = &version.incomplete {
            page.row("note", words(&format!("TLS {}: there may be more {why}", version.version)));
        }
    }
}

fn negotiated(page: &mut Page, report: &Report) {
    if let Some(n) = &report.negotiated {
        let parts = [Some(n.version), Some(&n.suite), n.group.as_deref(), n.signature.as_deref()];
        page.row("negotiated", parts.into_iter().flatten().map(str::to_owned));
    }
    if !report.first_shares.is_empty() {
        let (taken, retried): (Vec<&FirstShare>, Vec<_>) =
            report.first_shares.iter().partition(|share| share.retry_to.is_none());
        let mut parts = vec!["no retry:".to_owned()];
        parts.extend(taken.iter().map(|share| share.group.clone()));
        if taken.is_empty() {
            parts.push("none".to_owned());
        }
        for share in retried {
            let to = share.retry_to.as_deref().unwrap_or_default();
            parts.push(format!("({}: retry with {to})", share.group));
        }
        page.row("first key share", parts);
    }
    if let Some(Alpn { both, h2, http11 }) = &report.alpn {
        page.row("alpn", [format!("both: {both}; only h2: {h2}; only http/1.1: {http11}")]);
    }
}

fn certificates(page: &mut Page, report: &Report) {
    let verdict = match &report.verification {
        Verification::Verified => "verified".to_owned(),
        Verification::Refused { reason, .. } => format!("NOT TRUSTED: {}", reason.replace('_', " ")),
        Verification::NotChecked { detail } => format!("not checked: {detail}"),
    };
    let asked = match report.client_certificate {
        Some(ClientCertificate::AskedNonePresented) => "; requests a client certificate",
        Some(ClientCertificate::Presented) => "; client certificate presented",
        Some(ClientCertificate::NotAsked) | None => "",
    };
    page.row("certificate", words(&format!("{verdict}{asked}")));
    for chain in &report.chains {
        chain_rows(page, chain);
    }
}

fn chain_rows(page: &mut Page, chain: &Chain) {
    for (at, certificate) in chain.certificates.iter().enumerate() {
        let left = match certificate.days_left {
            days if days < 0 => format!("expired {} days ago", -days),
            days => format!("{days} days left"),
        };
        let mut parts = words(&format!("{at}: {}", certificate.subject));
        parts.extend(words(&format!(
            "| {} {} to {} ({left}), {} bytes | {} by {}",
            certificate.key,
            certificate.not_before,
            certificate.not_after,
            certificate.bytes,
            certificate.signature,
            if certificate.self_issued { "itself" } else { &certificate.issuer },
        )));
        page.row("", parts);
    }
    let count = chain.certificates.len();
    let many = if count == 1 { "certificate" } else { "certificates" };
    let stapled = match chain.ocsp_bytes {
        0 => "no OCSP stapling".to_owned(),
        bytes => format!("OCSP stapling of {bytes} bytes"),
    };
    page.row("chain", [format!("{count} {many}, {} bytes, {stapled}", chain.bytes)]);
}

fn sessions(page: &mut Page, report: &Report) {
    if let Some(tickets) = &report.tickets_13 {
        let mut line = format!("{}", tickets.count);
        if let Some(first) = tickets.tickets.first() {
            let early = match first.max_early_data {
                0 => "no early data".to_owned(),
                bytes => format!("early data of {bytes} bytes"),
            };
            let _ = write!(line, " of {} bytes, lifetime {} s, {early}", first.bytes, first.lifetime_s);
        }
        page.row("tickets 1.3", [line]);
    }
    if let Some(session) = &report.session_12 {
        let id = match session.id_bytes {
            0 => "no session ID".to_owned(),
            bytes => format!("session ID of {bytes} bytes"),
        };
        let ticket = match session.ticket {
            Some(ticket) => format!("ticket of {} bytes, lifetime {} s", ticket.bytes, ticket.lifetime_s),
            None if session.whole => "no ticket".to_owned(),
            None => "tickets unknown".to_owned(),
        };
        page.row("session 1.2", [format!("{id}; {ticket}")]);
    }
    let each = |tried: &Resumed| {
        let failed = if tried.failed > 0 { format!(", {} failed", tried.failed) } else { String::new() };
        match &tried.not_tried {
            Some(why) if tried.tries == 0 => format!("{}: {why}", tried.kind),
            _ => format!("{} {} of {}{failed}", tried.kind, tried.resumed, tried.tries),
        }
    };
    if !report.resumptions.is_empty() {
        let mut parts = report.resumptions.iter().map(|tried| each(tried) + ";").collect::<Vec<_>>();
        parts.last_mut().map(String::pop);
        page.row("resumption", parts);
    }
}

/// Rows of names and values.
#[derive(Default)]
struct Page(String);

impl Page {
    /// Parts are not split; a full line continues on the next.
    fn row(&mut self, name: &str, parts: impl IntoIterator<Item = String>) {
        let mut column = NAME;
        let _ = write!(self.0, "{name:<NAME$}");
        for part in parts {
            // Names come from the server: nothing in them acts on the terminal.
            let part = visible(&part).replace(['\n', '\t'], "\u{fffd}");
            let length = part.chars().count();
            if column > NAME && column + 1 + length > WIDTH {
                let _ = write!(self.0, "\n{:NAME$}", "");
                column = NAME;
            } else if column > NAME {
                self.0.push(' ');
                column += 1;
            }
            self.0.push_str(&part);
            column += length;
        }
        self.0.truncate(self.0.trim_end().len());
        self.0.push('\n');
    }

    /// A row per version; consecutive equal rows are merged.
    fn lists(
        &mut self,
        what: &str,
        versions: &[&VersionReport],
        of: impl Fn(&VersionReport) -> (Vec<String>, Option<Preference>),
    ) {
        for same in versions.chunk_by(|a, b| of(a) == of(b)) {
            let (mut parts, preference) = of(same[0]);
            if parts.is_empty() {
                continue;
            }
            match preference {
                Some(Preference::Server) => parts.push("(server's order)".to_owned()),
                Some(Preference::Client) => parts.push("(client's order)".to_owned()),
                Some(Preference::Mixed) | None => {}
            }
            let names = same.iter().map(|version| version.version).collect::<Vec<_>>().join(" ");
            self.row(&format!("{what} {names}"), parts);
        }
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::tests::report;
    use crate::report::SuiteReport;

    #[test]
    fn a_report_fits_one_screen_of_100_columns() {
        let mut report = report();
        let suite = |at: usize| SuiteReport {
            name: format!("ecdhe-ecdsa-camellia256-cbc-sha-{at}"),
            iana: "TLS_X",
            number: "0xc073".into(),
        };
        report.versions[0].suites = (0..90).map(suite).collect();
        report.versions[1] = report.versions[0].clone();
        report.versions[1].version = "1.2";
        report.chains[0].certificates[0].subject = "CN=a name, ".repeat(30);
        report.notes = vec!["something that could not be found out ".repeat(8)];
        report.advice = vec!["a line of advice ".repeat(12); 4];
        let text = text(&report);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.lines().count() <= 50, "{text}");
        assert!(text.contains("suites 1.3 1.2") && text.contains("and 78 more"), "{text}");
    }

    /// Regression test: a certificate's subject could send escape codes to the terminal.
    #[test]
    fn names_from_the_server_cannot_control_the_terminal() {
        let mut report = report();
        for name in [
            "CN=\u{1b}[2J\nverified",
            "CN=\u{9b}2J",
            "CN=\u{202e}gro.elpmaxe\u{2069}",
            "CN=\u{200f}\u{61c}\r",
        ] {
            report.chains[0].certificates[0].subject = name.to_owned();
            let text = text(&report);
            let is_hidden = |char| weir_http::is_hidden(char) && char != '\n';
            assert!(!text.contains(is_hidden), "{}", text.escape_debug());
            assert!(!text.lines().any(|line| line.starts_with("verified")), "{text}");
        }
    }
}
