//! Compilation of one service whose servers the admin address has set.

use super::server_addresses::Finder;
use super::{Findings, services, sticky};
use crate::config::document::{self, Dns};
use crate::config::endpoints::{Endpoints, ServersFrom};
use crate::config::snapshot::{Listener, Server, Service};
use std::sync::Arc;

/// The active `service` with the servers in `endpoints`. `written` is its table in the file: each server must have the
/// scheme of the servers there. Servers that are also in `known` keep their addresses. Keys of faults begin with
/// `servers`. Returns `None` if there is a fault.
pub(crate) fn with_endpoints(
    service: &Service,
    written: &document::Service,
    endpoints: &Arc<Endpoints>,
    known: &[Server],
    dns: &Dns,
    listeners: &[Listener],
    findings: &mut Findings,
) -> Option<Service> {
    let list = &endpoints.servers;
    let known = known.iter().map(|server| (server.place.to_string(), server.address.clone())).collect();
    let finder = findings.keep(Finder::of(dns, list.iter().map(|server| &server.url), known))?;
    let first = &written.servers.first()?.url;
    let servers = services::servers(list, first, written, Some(&finder), "servers", findings);
    let sticky = match &service.sticky {
        Some(cookie) => {
            Some(findings.keep(sticky::for_servers(cookie, listeners, &service.name, &servers))?)
        }
        None => None,
    };
    let servers_from = ServersFrom::Admin(Arc::clone(endpoints));
    let is_valid = findings.faults().next().is_none();
    is_valid.then(|| Service { servers, sticky, servers_from, ..service.clone() })
}
