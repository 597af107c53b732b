//! Changes of a service's servers at run time. The reload thread makes them, since it owns the configuration as
//! written. So no reload overtakes a change.

use super::reload::Reloader;
use super::reports::confirm;
use crate::config::document::Server;
use crate::config::{self, Endpoints, ServersFrom, inherit_service_state};
use crate::observe::journal::Journal;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use weir_transport::Place;

/// A change of a service's servers, and the sender for its outcome.
pub(crate) struct EndpointChange {
    pub service: String,
    pub edit: Edit,
    pub reply: Sender<Result<(), Refusal>>,
}

#[derive(Debug)]
pub(crate) enum Edit {
    Replace(Vec<Server>),
    Add(Server),
    Remove(Place),
    /// Restores the servers in the configuration file.
    Reset,
}

/// The reason why nothing has changed, with a message.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The service or the server does not exist.
    Unknown(String),
    /// The servers do not fit the service, or do not resolve.
    Invalid(String),
    /// The server to add exists already, or a new process is taking over or has taken over.
    Conflict(String),
}

impl Reloader {
    /// Changes the servers of a service, and sends the change to the workers. Errors: the reason why nothing has
    /// changed.
    pub(super) fn change_endpoints(&mut self, name: &str, edit: Edit) -> Result<(), Refusal> {
        // If a new process took over, the change would be lost.
        self.upgrades.lasts().map_err(Refusal::Conflict)?;
        let document = &self.checked.config;
        let active = self.active.snapshot();
        let unknown = || Refusal::Unknown(format!("unknown service `{name}`"));
        let (written, at) =
            document.services.get(name).zip(active.service_named(name)).ok_or_else(unknown)?;
        let before = &active.services[at];
        let list = match &before.servers_from {
            ServersFrom::File => &written.servers,
            ServersFrom::Admin(endpoints) => &endpoints.servers,
        };
        let (servers, is_reset) = match edited(name, list, edit)? {
            Some(servers) => (servers, false),
            None if before.servers_from == ServersFrom::File => return Ok(()),
            None => (written.servers.clone(), true),
        };
        let endpoints = Arc::new(Endpoints::new(servers, written));
        let made = document.with_endpoints(&active, before, &endpoints);
        let mut service = made.map_err(|findings| Refusal::Invalid(findings.faults_in_words()))?;
        if is_reset {
            service.servers_from = ServersFrom::File;
        }
        if service.is_same(before) {
            return Ok(());
        }
        let known: HashSet<_> = before.servers.iter().map(|server| server.id).collect();
        let is_new = |server: &&config::Server| !known.contains(&server.id);
        let (count, new) = (service.servers.len(), service.servers.iter().filter(is_new).count());
        let gone = (before.servers.len() + new).saturating_sub(count);
        let from = match service.servers_from {
            ServersFrom::File => "the file",
            ServersFrom::Admin(_) => "the admin address",
        };
        self.journal
            .line(format_args!("weir: {name}: servers of {from}: {count} ({new} new, {gone} removed)"));
        self.active.replace_service(at, |current| {
            // A name may have moved to another address meanwhile, so inherit the address from `current`.
            let mut service = service;
            inherit_service_state(&mut service, current);
            service
        });
        self.follow_names();
        confirm(&self.workers);
        Ok(())
    }
}

/// Reports the services whose servers in the file replace those set at run time.
pub(super) fn report_outdated(services: Vec<String>, journal: &Journal) {
    for name in services {
        journal.line(format_args!(
            "weir: {name}: the file has other servers now, which replace those set at run time"
        ));
    }
}

/// The servers after a change; `None`: those in the configuration file.
fn edited(service: &str, list: &[Server], edit: Edit) -> Result<Option<Vec<Server>>, Refusal> {
    let mut servers = list.to_vec();
    match edit {
        Edit::Reset => return Ok(None),
        Edit::Replace(all) => return Ok(Some(all)),
        Edit::Add(server) => {
            if let Some(at) = servers.iter().position(|known| known.url == server.url) {
                let why =
                    format!("duplicate server `{}`: service `{service}` has it as servers.{at}", server.url);
                return Err(Refusal::Conflict(why));
            }
            servers.push(server);
        }
        Edit::Remove(place) => {
            let Some(at) = servers.iter().position(|known| known.url == place) else {
                return Err(Refusal::Unknown(format!("service `{service}`: unknown server `{place}`")));
            };
            servers.remove(at);
        }
    }
    Ok(Some(servers))
}
