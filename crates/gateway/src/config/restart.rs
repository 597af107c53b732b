//! Settings that only a new process can change, by an upgrade or a restart.

use super::document::{Admin, Config, Rights};
use super::snapshot::Listener;
use super::{Fault, Findings};
use std::fmt::Display;
use weir_transport::Place;

/// Adds a fault for each key in which the new configuration differs from the one in force, and which only a new process
/// can change.
pub(crate) fn check(now: &Config, before: &Config, findings: &mut Findings) {
    let cores = |config: &Config| {
        let cores = config.cores.as_ref()?;
        Some(cores.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
    };
    let log = |config: &Config| config.log.access.as_ref().map(|path| path.display().to_string());
    findings.keep(same("workers", now.workers, before.workers));
    findings.keep(same("cores", cores(now), cores(before)));
    findings.keep(same("log.access", log(now), log(before)));
    for rights in [Rights::All, Rights::Read] {
        let of = |config: &Config| {
            config.watched().find(|(found, _)| *found == rights).map(|(_, admin)| admin.clone())
        };
        let (now, before) = (of(now), of(before));
        let address = |admin: &Option<Admin>| admin.as_ref().map(|admin| admin.bind(rights).to_string());
        findings.keep(same(&format!("{}.bind", rights.name()), address(&now), address(&before)));
        let mode = |admin: &Option<Admin>| Some(format!("{:o}", admin.as_ref()?.mode?.0));
        findings.keep(same(&format!("{}.mode", rights.name()), mode(&now), mode(&before)));
        let hosts = |admin: &Option<Admin>| admin.as_ref().map(|admin| admin.hosts.join(", "));
        findings.keep(same(&format!("{}.hosts", rights.name()), hosts(&now), hosts(&before)));
    }
}

/// Sorts listeners into the order of the bound ones. Errors: an address is new or missing, or a mode differs.
pub(crate) fn arrange(mut now: Vec<Listener>, bound: &[Listener]) -> Result<Vec<Listener>, Fault> {
    let mut arranged = Vec::with_capacity(bound.len());
    let mut gone = Vec::new();
    for before in bound {
        let is_there = |listener: &Listener| is_same(&listener.place, &before.place);
        // Several listeners may have port 0, so the name is compared first.
        let at = now.iter().position(|listener| is_there(listener) && listener.name == before.name);
        let Some(at) = at.or_else(|| now.iter().position(is_there)) else {
            gone.push(before);
            continue;
        };
        let listener = now.remove(at);
        if matches!(listener.place, Place::Unix(_)) {
            let mode = |listener: &Listener| Some(format!("{:o}", listener.mode));
            same(&format!("listener.{}.mode", listener.name), mode(&listener), mode(before))?;
        }
        arranged.push(listener);
    }
    let listed = |listeners: &[&Listener]| {
        let addresses: Vec<_> = listeners.iter().map(|listener| format!("`{}`", address(listener))).collect();
        addresses.join(", ")
    };
    let added: Vec<_> = now.iter().collect();
    let what = match (&added[..], &gone[..]) {
        ([], []) => return Ok(arranged),
        (added, []) => format!("not listened on since the start: {}", listed(added)),
        ([], gone) => format!("listened on and missing: {}", listed(gone)),
        (added, gone) => {
            format!(
                "not listened on since the start: {}; listened on and missing: {}",
                listed(added),
                listed(gone)
            )
        }
    };
    let first = added.first().or(gone.first()).map(|listener| listener.key.clone()).unwrap_or_default();
    let message = format!("{what}: a change of addresses needs an upgrade (SIGUSR2) or a restart");
    Err(Fault { key: first, message })
}

/// The address without the scheme, which a reload may change.
pub(crate) fn address(listener: &Listener) -> String {
    let place = listener.place.to_string();
    place.split_once("://").map_or(place.clone(), |(_, address)| address.to_owned())
}

fn is_same(now: &Place, before: &Place) -> bool {
    match (now, before) {
        (Place::Url(now), Place::Url(before)) => (&now.host, now.port) == (&before.host, before.port),
        (Place::Unix(now), Place::Unix(before)) => now == before,
        (Place::Url(_), Place::Unix(_)) | (Place::Unix(_), Place::Url(_)) => false,
    }
}

fn same<T: PartialEq + Display>(key: &str, now: Option<T>, before: Option<T>) -> Result<(), Fault> {
    if now == before {
        return Ok(());
    }
    let shown = |value: Option<T>| value.map_or_else(|| "not set".to_owned(), |value| format!("`{value}`"));
    let (now, before) = (shown(now), shown(before));
    Err(Fault {
        key: key.to_owned(),
        message: format!(
            "{now}, and {before} since the start: a change needs an upgrade (SIGUSR2) or a restart"
        ),
    })
}
