//! From the options to the report.

use crate::advice::advice;
use crate::breadth::{Asker, Offer, Reply};
use crate::certificate::Certificate;
use crate::depth::{Depth, Looker};
use crate::dial::Dialer;
use crate::names;
use crate::options::{Options, Sni};
use crate::report::{Chain, INITIAL_WINDOW, Report};
use crate::trust::Trust;
use crate::{Answer, AnswerError, ProbeError, Version};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use weir_tls::{Group, Roots, Suite};

/// Probes what a server offers and negotiates.
///
/// Errors: when it cannot be resolved or reached, does not speak TLS or accepts no version, and when a file
/// or name in the options is invalid. An untrusted certificate is a finding.
pub fn probe(options: &Options) -> Result<Report, ProbeError> {
    let started = Instant::now();
    let trust = Trust::new(options)?;
    let mut dialer = Dialer::new(&options.server, options.timeout, options.most_connections())?;
    let mut asker =
        Asker { dialer: &mut dialer, server_name: trust.sent_name.as_deref(), chains: Vec::new() };
    let mut offers = offers(&mut asker, options)?;
    let plain_chains = asker.chains;
    let looker = Looker { trust: &trust, dialer: &mut dialer, found: Depth::default() };
    let mut depth = looker.look(&offers, options.tries)?;
    for offer in offers.iter_mut().filter(|offer| offer.version == Version::Tls13) {
        offer.report.sign_by(&depth.schemes_13);
    }
    for chain in plain_chains {
        if !depth.chains.iter().any(|(known, _)| *known == chain) {
            depth.chains.push((chain, Vec::new()));
        }
    }
    let verification = match depth.chains.first() {
        Some((chain, ocsp)) => trust.verify(chain, ocsp),
        None => trust.verify(&[], &[]),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let chains = depth.chains.iter().map(|(chain, ocsp)| read(chain, ocsp, now, &mut depth.notes)).collect();
    let mut report = Report {
        schema: 1,
        host: options.server.host.clone(),
        port: options.server.port,
        address: dialer.address.to_string(),
        addresses: dialer.addresses,
        server_name: trust.sent_name.clone(),
        connections: dialer.made,
        elapsed_ms: started.elapsed().as_millis() as u64,
        versions: offers.into_iter().map(|offer| offer.report).collect(),
        negotiated: depth.negotiated,
        first_shares: depth.first_shares,
        alpn: depth.alpn,
        verification,
        chains,
        client_certificate: depth.client_certificate,
        tickets_13: depth.tickets_13,
        session_12: depth.session_12,
        resumptions: depth.resumptions,
        notes: depth.notes,
        advice: Vec::new(),
        load: None,
    };
    report.advice = advice(&report);
    report.load = load(&report, options);
    Ok(report)
}

/// All versions; an error if there are none.
fn offers(asker: &mut Asker<'_>, options: &Options) -> Result<Vec<Offer>, ProbeError> {
    let (host, address) = (options.server.host.clone(), asker.dialer.address);
    let mut offers = Vec::new();
    let mut spoke_tls = false;
    for version in Version::ALL {
        let refusal = match asker.version(version) {
            Ok(offer) => {
                offers.push(offer);
                continue;
            }
            // A server that spoke TLS before rejects this hello in another way.
            Err(Reply::Broken(error @ AnswerError::NotTls { .. })) if offers.is_empty() => {
                return Err(ProbeError::NotTls { host, address, detail: error.to_string() });
            }
            Err(reply) => {
                spoke_tls |= matches!(reply, Reply::Answer(_));
                refusal(&reply)
            }
        };
        offers.push(Offer::refused(version, refusal));
    }
    if offers.iter().any(|offer| offer.report.offered) {
        return Ok(offers);
    }
    let each =
        offers.iter().filter_map(|offer| Some((offer.report.version, offer.report.refusal.as_deref()?)));
    let mut detail = each.map(|(version, why)| format!("{version}: {why}")).collect::<Vec<_>>().join(", ");
    if spoke_tls {
        return Err(ProbeError::Nothing { host, address, detail });
    }
    if let Some(why) = offers[0].report.refusal.as_deref()
        && offers.iter().all(|offer| offer.report.refusal.as_deref() == Some(why))
    {
        detail = format!("for every ClientHello: {why}");
    }
    Err(ProbeError::NotTls { host, address, detail })
}

fn refusal(reply: &Reply) -> String {
    match reply {
        Reply::Answer(Answer::Alert(code)) => format!("alert {}", names::alert(*code)),
        Reply::Answer(Answer::Flight(flight)) => match Version::of(flight.version) {
            Some(version) => format!("TLS {} instead", version.name()),
            None => format!("version 0x{:04x} instead", flight.version),
        },
        Reply::Closed => "connection closed".to_owned(),
        Reply::Lost(why) => why.clone(),
        Reply::Broken(error) => error.to_string(),
    }
}

fn read(chain: &[Vec<u8>], ocsp: &[u8], now: i64, notes: &mut Vec<String>) -> Chain {
    let mut certificates = Vec::new();
    for (at, der) in chain.iter().enumerate() {
        match Certificate::read(der, now) {
            Ok(certificate) => certificates.push(certificate),
            Err(why) => notes.push(format!("certificate {at} cannot be read: {why}")),
        }
    }
    let bytes = chain.iter().map(Vec::len).sum();
    Chain {
        root_sent: certificates.len() > 1 && certificates.last().is_some_and(|last| last.self_issued),
        certificates,
        bytes,
        over_initial_window: bytes > INITIAL_WINDOW,
        ocsp_bytes: ocsp.len(),
    }
}

/// A file name quoted for a shell.
fn quoted(file: &Path) -> String {
    let name = file.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@".contains(c);
    if name.chars().all(plain) { name } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

/// A command with the negotiated parameters, if `weir load` supports them all.
fn load(report: &Report, options: &Options) -> Option<String> {
    let negotiated = report.negotiated.as_ref()?;
    let suite: Suite = negotiated.suite.parse().ok()?;
    let group: Group = negotiated.group.as_deref()?.parse().ok()?;
    let mut command = format!(
        "weir load {}/ --new-connection --tls {} --suite {suite} --group {group}",
        options.server, negotiated.version,
    );
    match &options.roots {
        Roots::Native => {}
        Roots::File(path) => command += &format!(" --cacert {}", quoted(path)),
        Roots::DangerouslyNone => command += " -k",
    }
    if let Some((cert, key)) = &options.identity {
        command += &format!(" --cert {} --key {}", quoted(cert), quoted(key));
    }
    match &options.sni {
        Sni::Host => {}
        Sni::Name(name) => command += &format!(" --sni {name}"),
        Sni::None => command += " --sni none",
    }
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_a_files_name_as_it_is() {
        for (name, shown) in
            [("ca.pem", "ca.pem"), ("/a b/ca.pem", "'/a b/ca.pem'"), ("it's", r"'it'\''s'"), ("$x", "'$x'")]
        {
            assert_eq!(quoted(Path::new(name)), shown);
        }
    }
}
