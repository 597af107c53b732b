//! Changes of a service's servers at run time.

use super::services::find;
use super::{Admin, Response};
use crate::config::{ServersFrom, endpoint, endpoints};
use crate::process::{Ask, Edit, EndpointChange};

impl Admin {
    /// A description of the file's configuration, and of the servers and certificates set at run time.
    pub(super) fn config(&self) -> String {
        let mut words = self.status.current().checked.explain();
        let snapshot = self.active.snapshot();
        let set = snapshot.services.iter().filter(|service| service.servers_from != ServersFrom::File);
        for (at, service) in set.enumerate() {
            if at == 0 {
                words.push_str("\nServers set at run time\n");
            }
            let servers: Vec<_> = service.servers.iter().map(|server| server.place.to_string()).collect();
            let servers = if servers.is_empty() { "none".to_owned() } else { servers.join(" ") };
            words.push_str(&format!("  {:<16} {servers}\n", service.name));
        }
        self.set_certificates_in_words(&mut words);
        words
    }

    /// Replaces all servers of a service with those in a JSON list.
    pub(super) fn replace_servers(&self, service: &str, body: &[u8]) -> Response {
        match endpoints(body) {
            Ok(servers) => self.change_servers(service, Edit::Replace(servers)),
            Err(fault) => Response::text(400, format!("{fault}\n")),
        }
    }

    /// Adds the server in a JSON string or object.
    pub(super) fn add_server(&self, service: &str, body: &[u8]) -> Response {
        match endpoint(body) {
            Ok(server) => self.change_servers(service, Edit::Add(server)),
            Err(fault) => Response::text(400, format!("{fault}\n")),
        }
    }

    pub(super) fn remove_server(&self, service: &str, server: &str) -> Response {
        let place = match find(&self.active.snapshot(), service, server) {
            Ok((_, server)) => server.place.clone(),
            Err(unknown) => return unknown.into(),
        };
        self.change_servers(service, Edit::Remove(place))
    }

    /// Replaces a service's servers set at run time with those in the configuration file.
    pub(super) fn reset_servers(&self, service: &str) -> Response {
        self.change_servers(service, Edit::Reset)
    }

    fn change_servers(&self, service: &str, edit: Edit) -> Response {
        let ask = |reply| Ask::Endpoints(EndpointChange { service: service.to_owned(), edit, reply });
        match self.apply("servers", ask) {
            Ok(()) => self.show_service(service),
            Err(refused) => refused,
        }
    }
}
