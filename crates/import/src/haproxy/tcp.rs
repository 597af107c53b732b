//! `mode tcp`: passthrough connections by server name.

use super::acl::{Atom, condition};
use super::{Config, backend, bind, rules};
use crate::model::{Document, Passthrough};
use crate::note::Notes;
use crate::values;
use weir_syntax::haproxy::{Line, Section};

pub(super) fn translate(section: &Section, config: &Config<'_>, document: &mut Document, notes: &mut Notes) {
    let looks_inside = section.lines.iter().any(|line| {
        let text = line.text();
        ["req_ssl_sni", "req.ssl_sni", "req_ssl_hello_type", "req.ssl_hello_type"]
            .iter()
            .any(|sni| text.contains(sni))
    });
    let terminates = section.lines.iter().any(|line| line.word(0) == "bind" && line.has("ssl"));
    if !looks_inside || terminates {
        let message =
            "Weir passes on TLS by name (req.ssl_sni) and HTTP, no other TCP; keep HAProxy for this";
        return notes.loss(&section.at, format!("{} {}", section.kind, section.name), message);
    }
    let keeps_out =
        |line: &&Line| rules::rejects_connections(line) && !line.text().contains("ssl_hello_type");
    if let Some(line) = config.all(section).find(keeps_out) {
        let message =
            "Weir passes on the connections of all clients, so this section is left out; keep HAProxy for it";
        return notes.loss(&line.at, line.text(), message);
    }
    let mut passthrough: Vec<Passthrough> = Vec::new();
    let add = |names: Vec<String>, service: String, passthrough: &mut Vec<Passthrough>| match passthrough
        .iter_mut()
        .find(|known| known.service == service)
    {
        Some(known) => known.names.extend(names),
        None => passthrough.push(Passthrough { names, service }),
    };
    for line in section.lines.iter().filter(|line| line.word(0) == "use_backend") {
        let Some(target) = config.section("backend", line.word(1)) else {
            notes.loss(&line.at, line.text(), "there is no such backend");
            continue;
        };
        let asked = condition(line.words.get(2..).unwrap_or_default(), section, config, notes, line);
        let names = match asked {
            None => Some(vec!["*".to_owned()]),
            Some(lists) => lists
                .iter()
                .map(|list| names_of(list))
                .collect::<Option<Vec<_>>>()
                .map(|names| names.concat()),
        };
        match (names, backend::service(target, config, true, document, notes)) {
            (Some(names), Some(service)) => add(names, service, &mut passthrough),
            (None, _) => {
                let message =
                    "connections are passed on by name alone; name each in the listener's `passthrough`";
                notes.loss(&line.at, line.text(), message);
            }
            (_, None) => notes.loss(&line.at, line.text(), "the backend has no server that is up"),
        }
    }
    let default = config.find(section, &["default_backend"]);
    let default = default.and_then(|line| config.section("backend", line.word(1)));
    let own = Some(section).filter(|section| section.lines.iter().any(|line| line.word(0) == "server"));
    if let Some(target) = default.or(own)
        && let Some(service) = backend::service(target, config, true, document, notes)
    {
        add(vec!["*".to_owned()], service, &mut passthrough);
    }
    if passthrough.is_empty() {
        return notes.loss(
            &section.at,
            format!("{} {}", section.kind, section.name),
            "no connection is passed on",
        );
    }
    // Weir's tunnels have an idle timeout only.
    for timeout in ["tunnel", "server", "client"] {
        let line = config.find(section, &["timeout", timeout]);
        if let Some(ms) = line.and_then(|line| values::time(line.word(2), 1)) {
            document.timeouts.set("tunnel", ms, "timeout of tunnels", notes);
            break;
        }
    }
    // The first rule for a name wins.
    let mut seen = std::collections::BTreeSet::new();
    for entry in &mut passthrough {
        entry.names.retain(|name| seen.insert(name.clone()));
    }
    passthrough.retain(|entry| !entry.names.is_empty());
    for entry in bind::listeners(section, config, document, notes) {
        if let Some(listener) = document.listeners.iter_mut().find(|listener| listener.name == entry.listener)
        {
            listener.passthrough.clone_from(&passthrough);
        }
    }
}

/// The server names in a list of conditions; `None` if it has other conditions.
fn names_of(list: &[super::acl::Literal]) -> Option<Vec<String>> {
    let mut names = None;
    for literal in list {
        let atoms = literal.means.any.as_ref().filter(|_| !literal.is_negated)?;
        if atoms.contains(&Atom::Always) {
            continue;
        }
        let hosts = atoms.iter().map(|atom| match atom {
            Atom::Host(host) => Some(host.clone()),
            _ => None,
        });
        let hosts: Vec<_> = hosts.collect::<Option<_>>()?;
        if names.replace(hosts).is_some() {
            return None;
        }
    }
    Some(names.unwrap_or_else(|| vec!["*".to_owned()]))
}
