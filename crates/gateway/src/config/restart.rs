//! What only another process can change: an upgrade, or a restart.

use super::Fault;
use super::document::{Admin, Config};
use super::snapshot::Listener;
use std::fmt::Display;
use weir_transport::Place;

/// Checks that a configuration differs from the one in force in nothing that needs another process. Errors: the first such key.
pub(crate) fn check(now: &Config, before: &Config) -> Result<(), Fault> {
    let cores = |config: &Config| {
        let cores = config.cores.as_ref()?;
        Some(cores.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
    };
    same("workers", now.workers, before.workers)?;
    same("cores", cores(now), cores(before))?;
    let log = |config: &Config| config.log.access.as_ref().map(|path| path.display().to_string());
    same("log.access", log(now), log(before))?;
    let admin = |config: &Config| config.admin.as_ref().map(Admin::address);
    same("admin.bind", admin(now), admin(before))?;
    let mode = |config: &Config| {
        let mode = config.admin.as_ref()?.mode?;
        Some(format!("{:o}", mode.0))
    };
    same("admin.mode", mode(now), mode(before))?;
    let hosts = |config: &Config| config.admin.as_ref().map(|admin| admin.hosts.join(", "));
    same("admin.hosts", hosts(now), hosts(before))
}

/// Brings listeners into the order of those that are bound. Errors: an address was added or is gone, or a mode is another one.
pub(crate) fn arrange(mut now: Vec<Listener>, bound: &[Listener]) -> Result<Vec<Listener>, Fault> {
    let mut arranged = Vec::with_capacity(bound.len());
    let mut gone = None;
    for before in bound {
        let is_there = |listener: &Listener| is_same(&listener.place, &before.place);
        // Several may have port 0: then names tell them apart.
        let at = now.iter().position(|listener| is_there(listener) && listener.name == before.name);
        let Some(at) = at.or_else(|| now.iter().position(is_there)) else {
            gone = gone.or(Some(before));
            continue;
        };
        let listener = now.remove(at);
        if matches!(listener.place, Place::Unix(_)) {
            let mode = |listener: &Listener| Some(format!("{:o}", listener.mode));
            same(&format!("listener.{}.mode", listener.name), mode(&listener), mode(before))?;
        }
        arranged.push(listener);
    }
    if let Some(added) = now.first() {
        let addresses: Vec<_> = bound.iter().map(|listener| format!("`{}`", address(listener))).collect();
        let why = format!(
            "`{}` is not listened on, which only an upgrade (SIGUSR2) or a restart can change: expected one of {}",
            address(added),
            addresses.join(", ")
        );
        return Err(Fault { key: added.key.clone(), message: why });
    }
    match gone {
        None => Ok(arranged),
        Some(gone) => {
            let why = format!(
                "`{}` is listened on and missing, which only an upgrade (SIGUSR2) or a restart can change",
                address(gone)
            );
            Err(Fault { key: gone.key.clone(), message: why })
        }
    }
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
