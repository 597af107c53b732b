//! `mode tcp`: connections that use protocols other than HTTP, and TLS connections by server name.

use super::targets::{self, Targets};
use super::{Config, admission, backend, bind};
use crate::access::of_kind;
use crate::model::{Document, Listener, Passthrough, Tcp};
use crate::note::Notes;
use crate::values::{self, host_covers};
use weir_syntax::At;
use weir_syntax::haproxy::{Line, Section};

/// The reason why a section is left out: one of its lines, and the problem with that line.
pub(super) struct LeftOut {
    at: At,
    text: String,
    why: String,
}

impl LeftOut {
    pub(super) fn line(line: &Line, why: impl Into<String>) -> Self {
        Self { at: line.at.clone(), text: line.text(), why: why.into() }
    }

    pub(super) fn section(section: &Section, why: impl Into<String>) -> Self {
        let text = format!("{} {}", section.kind, section.name);
        Self { at: section.at.clone(), text, why: why.into() }
    }
}

pub(super) fn translate(section: &Section, config: &Config<'_>, document: &mut Document, notes: &mut Notes) {
    let (listeners, services) = (document.listeners.len(), document.services.len());
    let certificates = document.certificates.len();
    if let Err(LeftOut { at, text, why }) = connections(section, config, document, notes) {
        document.listeners.truncate(listeners);
        document.services.truncate(services);
        document.certificates.truncate(certificates);
        let name = format!("{} {}", section.kind, section.name);
        notes.loss(&at, text, format!("{why}, so `{name}` is left out; keep HAProxy for it"));
    }
}

fn connections(
    section: &Section,
    config: &Config<'_>,
    document: &mut Document,
    notes: &mut Notes,
) -> Result<(), LeftOut> {
    let by_name = reads_hello(section, config);
    let decrypts = |line: &&Line| line.word(0) == "bind" && line.has("ssl");
    if let Some(bind) = section.lines.iter().find(decrypts).filter(|_| by_name) {
        return Err(LeftOut::line(bind, "it looks for a server name in what TLS contains"));
    }
    let entries = bind::listeners(section, config, bind::Serves::Bytes, document, notes);
    if entries.is_empty() {
        return Err(LeftOut::section(section, "it has no address"));
    }
    for entry in &entries {
        let targets = targets::of(section, entry, by_name, config, notes)?;
        let admitted = admission::admitted(section, entry, &targets, config, notes)?;
        let announced_by = admission::announced_by(section, entry, config, notes)?;
        let services = services(&targets, by_name, config, document, notes)?;
        let idle_ms = idle(section, &targets, config);
        if idle_ms.is_none() {
            let name = &section.name;
            notes.remark(format!(
                "{name} has no timeouts in HAProxy: connections without a byte end after timeouts.tunnel"
            ));
        }
        if let Some(ms) = idle_ms.filter(|_| by_name) {
            document.timeouts.set("tunnel", ms, "timeout of tunnels", notes);
        }
        let is_it = |listener: &&mut Listener| listener.name == entry.listener;
        let Some(listener) = document.listeners.iter_mut().find(is_it) else { continue };
        if let Some(networks) = announced_by {
            let networks = of_kind(&networks, &listener.bind);
            if networks.is_empty() {
                return Err(LeftOut::section(section, "no load balancer of its `expect-proxy` can connect"));
            }
            listener.settings.texts("proxy_protocol", networks);
        }
        let is_announced = listener.settings.get("proxy_protocol").is_some();
        if !admitted.write(&listener.bind, is_announced, &mut listener.settings) {
            return Err(LeftOut::section(section, "it admits no client"));
        }
        match by_name {
            true => listener.passthrough = services,
            false => {
                let service = services.into_iter().next().map(|all| all.service);
                listener.tcp = service.map(|service| Tcp { service, idle_ms });
            }
        }
    }
    Ok(())
}

/// Whether a section inspects the ClientHello, so that it serves only TLS.
fn reads_hello(section: &Section, config: &Config<'_>) -> bool {
    let fetches = ["req_ssl_sni", "req.ssl_sni", "req_ssl_hello_type", "req.ssl_hello_type"];
    config.all(section).any(|line| {
        line.word(0) != "stick"
            && line.words.iter().any(|word| fetches.iter().any(|fetch| word.contains(fetch)))
    })
}

/// Returns the services of the targets, with the names that select them. Fails if a target has no service.
fn services(
    targets: &Targets<'_>,
    by_name: bool,
    config: &Config<'_>,
    document: &mut Document,
    notes: &mut Notes,
) -> Result<Vec<Passthrough>, LeftOut> {
    let protocol = if by_name { backend::Protocol::Passthrough } else { backend::Protocol::Tcp };
    let mut found: Vec<Passthrough> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for (names, target) in targets {
        // The first rule for a name wins.
        let covered = |name: &String| seen.iter().any(|known| known == "*" || host_covers(known, name));
        let names: Vec<_> = names.iter().filter(|name| !covered(name)).cloned().collect();
        if names.is_empty() {
            continue;
        }
        let service = backend::service(target, config, protocol, document, notes);
        let service = service.ok_or_else(|| LeftOut::section(target, "it has no server that is up"))?;
        seen.extend(names.iter().cloned());
        match found.iter_mut().find(|known| known.service == service) {
            Some(known) => known.names.extend(names),
            None => found.push(Passthrough { names, service }),
        }
    }
    Ok(found)
}

/// The longest of the targets' idle timeouts in HAProxy, in milliseconds; `None` if HAProxy has none.
fn idle(section: &Section, targets: &Targets<'_>, config: &Config<'_>) -> Option<u64> {
    let of_target = |(_, target): &(_, &Section)| {
        let client = time(section, "client", config);
        let server = time(target, "server", config);
        // In HAProxy, 0 disables a timeout.
        let both = client.into_iter().chain(server).filter(|ms| *ms > 0).min();
        time(target, "tunnel", config).or(both).or(client).or(server)
    };
    targets.iter().filter_map(of_target).map(|ms| if ms == 0 { YEAR_MS } else { ms }).max()
}

fn time(section: &Section, name: &str, config: &Config<'_>) -> Option<u64> {
    values::time(config.find(section, &["timeout", name])?.word(2), 1)
}

/// Weir's maximum timeout.
const YEAR_MS: u64 = 365 * 86_400_000;
