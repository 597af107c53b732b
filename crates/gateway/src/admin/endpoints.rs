//! Changes of a service's servers at run time.

use super::services::find;
use super::target::Target;
use super::{Admin, RELOAD, Response};
use crate::config::{ServersFrom, endpoint, endpoints};
use crate::process::{Ask, Edit, EndpointChange, Refusal};
use std::sync::mpsc::{self, RecvTimeoutError};

impl Admin {
    /// The configuration of the file in words, and the services that have other servers.
    pub(super) fn config(&self) -> String {
        let mut words = self.status.current().in_words.to_string();
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

    /// Replaces all servers of a service by those in a JSON list.
    pub(super) fn replace_servers(&self, service: &str, body: &[u8]) -> Response {
        match endpoints(body) {
            Ok(servers) => self.change_servers(service, Edit::Replace(servers)),
            Err(fault) => Response::text(400, format!("{fault}\n")),
        }
    }

    /// Adds the server in a JSON text or object.
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

    /// Returns to the servers of the file.
    pub(super) fn reset_servers(&self, service: &str) -> Response {
        self.change_servers(service, Edit::Reset)
    }

    /// Has the servers changed, and waits until all workers have the change.
    fn change_servers(&self, service: &str, edit: Edit) -> Response {
        // An upgrade keeps the thread busy to its end.
        if let Err(why) = self.upgrades.lasts() {
            return Response::text(409, format!("{why}\n"));
        }
        let (reply, outcome) = mpsc::channel();
        let change = EndpointChange { service: service.to_owned(), edit, reply };
        let is_asked = self.reload.as_ref().is_some_and(|thread| thread.send(Ask::Endpoints(change)).is_ok());
        let outcome =
            if is_asked { outcome.recv_timeout(RELOAD) } else { Err(RecvTimeoutError::Disconnected) };
        match outcome {
            Ok(Ok(())) => self.shown(&Target::Servers(service.to_owned())),
            Ok(Err(Refusal::Unknown(why))) => Response::text(404, format!("{why}\n")),
            Ok(Err(Refusal::Invalid(why))) => Response::text(400, format!("{why}\n")),
            Ok(Err(Refusal::Conflict(why))) => Response::text(409, format!("{why}\n")),
            Err(RecvTimeoutError::Timeout) => {
                Response::text(504, "the change continues; see the log for its outcome\n")
            }
            Err(RecvTimeoutError::Disconnected) => {
                Response::text(501, "this gateway does not change servers\n")
            }
        }
    }
}
