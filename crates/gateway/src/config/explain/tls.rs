//! The effective TLS settings, and hints about expensive ones.

use crate::config::Checked;
use crate::config::document::{ClientCertificates, Curves, ListenerTls, Service, ServiceTls};
use std::collections::HashSet;
use std::fmt::{self, Write};
use weir_tls::{Group, KeyName, Offer, Presented, ServerSettings, Suite, Version};

/// Writes the settings of all listeners and services with TLS. `own` returns the key type of a service's certificate,
/// by service name.
pub(super) fn write(
    out: &mut String,
    checked: &Checked,
    own: impl Fn(&str) -> Option<KeyName>,
) -> fmt::Result {
    let Checked { config, snapshot, .. } = checked;
    let listeners = config.listeners.iter().filter_map(|(name, listener)| {
        let known = snapshot.listeners.iter().find(|known| *known.name == **name)?;
        let own = known.certificates.iter().filter_map(|index| checked.certificates().get(*index));
        let presented: Vec<_> = own.map(|served| served.certificate.presented()).collect();
        Some((format!("listener {name}"), of_listener(listener.tls.as_ref()?, &presented)))
    });
    let is_tls = |service: &Service| service.servers.iter().any(|server| server.url.tls());
    let services = config.services.iter().filter(|(_, service)| is_tls(service));
    let services =
        services.map(|(name, service)| (format!("service {name}"), of_service(&service.tls, own(name))));
    let sections: Vec<_> = listeners.chain(services).collect();
    if sections.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nTLS")?;
    for (name, Section { settings, hints }) in &sections {
        writeln!(out, "  {name}")?;
        for (label, value) in settings {
            write_wrapped(out, &format!("    {label:<19}"), value)?;
        }
        for hint in hints {
            write_wrapped(out, "    hint:", hint)?;
        }
    }
    if sections.iter().any(|(_, section)| !section.hints.is_empty()) {
        writeln!(out, "  `weir cost` and `weir stacks` measure such differences on your processor.")?;
    }
    Ok(())
}

/// The settings and hints of one listener or service.
#[derive(Debug, Default)]
struct Section {
    settings: Vec<(&'static str, String)>,
    hints: Vec<String>,
}

/// Writes a label and a text, in lines of at most 100 columns.
fn write_wrapped(out: &mut String, label: &str, text: &str) -> fmt::Result {
    write!(out, "{label}")?;
    let mut column = label.len();
    for word in text.split(' ') {
        if column + 1 + word.len() > 100 {
            write!(out, "\n{:width$}", "", width = label.len())?;
            column = label.len();
        }
        write!(out, " {word}")?;
        column += 1 + word.len();
    }
    writeln!(out)
}

fn of_listener(tls: &ListenerTls, presented: &[&Presented]) -> Section {
    let Offer { versions, mut suites, groups } = offer(&tls.versions, &tls.suites, &tls.groups);
    let is_rsa = |presented: &&Presented| matches!(presented.key, KeyName::Rsa(_));
    let (has_rsa, has_ecdsa) =
        (presented.iter().any(is_rsa), presented.iter().any(|presented| !is_rsa(presented)));
    let is_cheap = |presented: &&&Presented| expensive_key(presented.key).is_none();
    let cheap = presented.iter().filter(is_cheap).flat_map(|presented| &presented.names);
    let cheap: HashSet<&str> = cheap.map(String::as_str).collect();
    suites.retain(|suite| match suite.name() {
        name if name.starts_with("ecdhe-rsa") => has_rsa,
        name if name.starts_with("ecdhe-ecdsa") => has_ecdsa,
        _ => true,
    });
    let tickets = tls.tickets.unwrap_or(ServerSettings::TICKETS);
    let mut section = Section::default();
    section.add_offer(&versions, &groups, &suites);
    section.settings.push(("tickets", tickets.to_string()));
    section.settings.push(("client certificates", client_certificates(tls).to_owned()));
    section.add_record_size(tls.record_size);
    section.add_curves(tls.curves);
    section.hints.extend(presented.iter().filter_map(|certificate| certificate_hint(certificate, &cheap)));
    if versions.contains(&Version::Tls13) {
        section.hints.extend(tickets_hint(tickets, &versions));
    }
    section
}

fn of_service(tls: &ServiceTls, own: Option<KeyName>) -> Section {
    let Offer { versions, suites, groups } = offer(&tls.versions, &tls.suites, &tls.groups);
    let mut section = Section::default();
    section.add_offer(&versions, &groups, &suites);
    section.settings.push(("certificate", own.map_or("none".to_owned(), |key| key.to_string())));
    section.add_record_size(tls.record_size);
    section.add_curves(tls.curves);
    section.hints.extend(own.and_then(expensive_key).map(|hint| format!("certificate: {hint}")));
    section
}

fn offer(versions: &[Version], suites: &[Suite], groups: &[Group]) -> Offer {
    Offer { versions: versions.to_vec(), suites: suites.to_vec(), groups: groups.to_vec() }.complete()
}

impl Section {
    fn add_offer(&mut self, versions: &[Version], groups: &[Group], suites: &[Suite]) {
        let words = |names: Vec<&'static str>| names.join(" ");
        self.settings.push(("versions", words(versions.iter().map(|version| version.name()).collect())));
        self.settings.push(("groups", words(groups.iter().map(|group| group.name()).collect())));
        self.settings.push(("suites", words(suites.iter().map(|suite| suite.name()).collect())));
        // No hint about the hybrid group: it is worth its cost, since it protects recorded traffic from future quantum
        // computers.
        if let Some(first @ (Group::P256 | Group::P384)) = groups.first() {
            self.hints.push(format!("groups: `x25519` first takes less CPU time than `{}`", first.name()));
        }
        for version in versions {
            let mut of_version = suites.iter().filter(|suite| suite.version() == *version).peekable();
            if of_version.peek().is_some() && !of_version.any(|suite| suite.name().contains("aes128")) {
                let version = version.name();
                self.hints.push(format!(
                    "suites: none of TLS {version} has AES-128, which takes the least CPU time on processors with AES instructions"
                ));
            }
        }
    }

    fn add_record_size(&mut self, size: Option<u64>) {
        let size = size.unwrap_or(LARGEST_RECORD);
        self.settings.push(("record size", format!("{size} bytes")));
        if size < LARGEST_RECORD {
            self.hints.push(
                "record_size: bodies take more CPU time than in records of 16 KiB, but smaller ones arrive sooner"
                    .to_owned(),
            );
        }
    }

    fn add_curves(&mut self, curves: Curves) {
        self.settings.push(("curves", in_words(curves)));
    }
}

const LARGEST_RECORD: u64 = 16_384;

/// The curves setting, and the CPU time that Weir's own curves save.
fn in_words(curves: Curves) -> String {
    let name = weir_tls::Curves::from(curves).name();
    let saved = match curves {
        Curves::AwsLc => return name.to_owned(),
        Curves::Ifma => [EXCHANGE, SIGNATURE].join(", "),
        Curves::IfmaX25519 => EXCHANGE.to_owned(),
    };
    format!("{name}: {saved} ({MEASURED_ON}); outsiders have not reviewed this code")
}

/// Medians of 20 runs that alternated with AWS-LC (docs/gateway/tls.md).
const EXCHANGE: &str = "an X25519 key exchange takes 0.66 of AWS-LC's CPU time";
const SIGNATURE: &str = "an ECDSA P-256 signature 0.42";
const MEASURED_ON: &str = "measured on AMD EPYC, Zen 5";

fn client_certificates(tls: &ListenerTls) -> &'static str {
    match (&tls.client_ca, tls.client_certificates.unwrap_or_default()) {
        (None, _) => "none",
        (Some(_), ClientCertificates::Required) => "required",
        (Some(_), ClientCertificates::Optional) => "optional",
    }
}

/// A hint about a certificate whose key is expensive to sign with. No hint is needed if all its names are in `cheap`,
/// the names of certificates with a cheap key.
fn certificate_hint(certificate: &Presented, cheap: &HashSet<&str>) -> Option<String> {
    let hint = expensive_key(certificate.key)?;
    let origin = &certificate.origin;
    let is_only =
        certificate.names.is_empty() || !certificate.names.iter().all(|name| cheap.contains(name.as_str()));
    is_only.then(|| format!("certificates: {hint}: clients get one beside {origin} if they can verify it"))
}

/// A hint about a key with expensive signatures: ECDSA P-256 is cheaper, and nearly every client can verify it.
fn expensive_key(key: KeyName) -> Option<String> {
    let is_cheap = matches!(key, KeyName::Ecdsa(256) | KeyName::Ed25519 | KeyName::Other);
    (!is_cheap).then(|| format!("a full handshake takes less CPU time with ECDSA P-256 than with {key}"))
}

/// A hint about the number of tickets in TLS 1.3.
fn tickets_hint(tickets: u32, versions: &[Version]) -> Option<String> {
    let who = if versions.contains(&Version::Tls12) { "TLS 1.3 clients" } else { "clients" };
    match tickets {
        0 => {
            Some(format!("tickets: without any, {who} cannot resume: each connection takes a full handshake"))
        }
        1 | 2 => None,
        _ => Some(
            "tickets: 1 takes less CPU time, and each connection brings its successor's ticket".to_owned(),
        ),
    }
}
