//! Settings that only a new process can change, by an upgrade or a restart.

use super::document::{Admin, Config, Rights};
use super::{Fault, Findings};
use std::fmt::Display;

/// Adds a fault for each changed key that only a new process can apply.
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
