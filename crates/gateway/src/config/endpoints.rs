//! Servers set at run time, in place of those in the configuration file. Reloads and upgrades keep them while the list
//! in the file is unchanged; a restart loses them.

use super::compile::with_endpoints;
use super::document::{self, Config};
use super::snapshot::{Service, Snapshot};
use super::{Checked, Fault, Findings};
use crate::hash::hash_of;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// The source of a service's servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServersFrom {
    /// The configuration file.
    File,
    /// The admin address.
    Admin(Arc<Endpoints>),
}

/// The servers of one service, set at run time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Endpoints {
    pub servers: Vec<document::Server>,
    /// The fingerprint of the list in the configuration file that these servers replace. Every process computes the
    /// same fingerprint.
    replaces: u64,
}

/// The servers set at run time, by service.
pub(crate) type EndpointLists = BTreeMap<String, Arc<Endpoints>>;

impl Endpoints {
    /// Creates a list of servers that replaces the list in `written`.
    pub(crate) fn new(servers: Vec<document::Server>, written: &document::Service) -> Self {
        Self { servers, replaces: fingerprint(&written.servers) }
    }

    /// Splits the list into parts of at most `most` servers; an empty list has one part.
    pub(crate) fn parts(&self, most: usize) -> impl Iterator<Item = Self> {
        let count = self.servers.len().div_ceil(most).max(1);
        (0..count).map(move |part| {
            let servers = self.servers.iter().skip(part * most).take(most).cloned().collect();
            Self { servers, replaces: self.replaces }
        })
    }

    /// Appends the next part of a list that [`Endpoints::parts`] has split.
    pub(crate) fn extend(&mut self, part: Self) {
        self.servers.extend(part.servers);
    }
}

impl Snapshot {
    /// The servers set at run time.
    pub(crate) fn endpoints(&self) -> EndpointLists {
        let set = self.services.iter().filter_map(|service| match &service.servers_from {
            ServersFrom::File => None,
            ServersFrom::Admin(endpoints) => Some((service.name.clone(), Arc::clone(endpoints))),
        });
        set.collect()
    }
}

impl Checked {
    /// Replaces the servers of services with those in `lists`. Skips and returns the services whose list in the file
    /// has changed since their servers were set. Servers that are also in `active` keep their addresses. Fails if a
    /// server in `lists` no longer fits the service, or its name does not resolve.
    pub(crate) fn take_endpoints(
        &mut self,
        lists: &EndpointLists,
        active: Option<&Snapshot>,
    ) -> Result<Vec<String>, Fault> {
        let mut outdated = Vec::new();
        for (name, endpoints) in lists {
            let Some(written) = self.config.services.get(name) else { continue };
            if fingerprint(&written.servers) != endpoints.replaces {
                outdated.push(name.clone());
                continue;
            }
            let Some(at) = self.snapshot.service_named(name) else { continue };
            let known = active.and_then(|active| Some(&active.services[active.service_named(name)?]));
            let known = known.map_or(&[][..], |service| &service.servers);
            let mut findings = Findings::default();
            let (service, listeners) = (&self.snapshot.services[at], &self.snapshot.listeners);
            let dns = &self.config.dns;
            let compiled = with_endpoints(service, written, endpoints, known, dns, listeners, &mut findings);
            let Some(service) = compiled else {
                let why = findings.faults().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                let message = format!(
                    "set at run time: {why}; return to the servers of the file: DELETE /services/{name}/servers"
                );
                return Err(Fault { key: format!("service.{name}.servers"), message });
            };
            Arc::make_mut(&mut self.snapshot).services[at] = Arc::new(service);
        }
        Ok(outdated)
    }
}

impl Config {
    /// Compiles only `service` of the active snapshot, with other servers. The error lists all faults, with keys such
    /// as `servers.0`.
    pub(crate) fn with_endpoints(
        &self,
        active: &Snapshot,
        service: &Service,
        endpoints: &Arc<Endpoints>,
    ) -> Result<Service, Findings> {
        let mut findings = Findings::default();
        let compiled = self.services.get(&service.name).and_then(|written| {
            let known = &service.servers;
            with_endpoints(service, written, endpoints, known, &self.dns, &active.listeners, &mut findings)
        });
        compiled.ok_or(findings)
    }
}

/// Returns a fingerprint of the servers' URLs, weights and roles as backups.
fn fingerprint(servers: &[document::Server]) -> u64 {
    let mut text = String::new();
    for document::Server { url, weight, backup } in servers {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{url} {weight} {backup}");
    }
    hash_of(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::endpoints;

    fn checked(service: &str) -> Checked {
        let text = format!(
            "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nservice = 'app'\n[service.app]\n{service}"
        );
        Checked::new(toml::from_str(&text).unwrap()).unwrap()
    }

    fn set(checked: &Checked, list: &str) -> Endpoints {
        Endpoints::new(endpoints(list.as_bytes()).unwrap(), &checked.config.services["app"])
    }

    fn places(snapshot: &Snapshot) -> Vec<String> {
        snapshot.services[0].servers.iter().map(|server| server.place.to_string()).collect()
    }

    #[test]
    fn a_list_is_taken_while_that_of_the_file_is_the_same() {
        let first = checked("servers = ['http://127.0.0.1:1', 'http://127.0.0.1:2']");
        let endpoints = Arc::new(set(&first, "[\"http://127.0.0.1:3\"]"));
        let lists = EndpointLists::from([
            ("app".to_owned(), endpoints),
            ("gone".to_owned(), set(&first, "[]").into()),
        ]);
        for (service, outdated) in [
            (
                "servers = ['http://127.0.0.1:1', 'http://127.0.0.1:2']\nsticky = 'SRV'\nbalance = 'hash'",
                false,
            ),
            ("servers = ['http://127.0.0.1:1', { url = 'http://127.0.0.1:2', weight = 1 }]", false),
            ("servers = ['http://127.0.0.1:1', { url = 'http://127.0.0.1:2', weight = 2 }]", true),
            ("servers = ['http://127.0.0.1:2', 'http://127.0.0.1:1']", true),
            ("servers = ['http://127.0.0.1:3']", true),
        ] {
            let mut next = checked(service);
            let found = next.take_endpoints(&lists, None).unwrap();
            assert_eq!(found, if outdated { vec!["app".to_owned()] } else { Vec::new() }, "{service}");
            let snapshot = &next.snapshot;
            assert_eq!(snapshot.endpoints().contains_key("app"), !outdated);
            if !outdated {
                assert_eq!(places(snapshot), ["http://127.0.0.1:3"]);
                let sticky = snapshot.services[0].sticky.as_ref();
                assert!(sticky.is_none_or(|sticky| sticky.values.len() == 1));
            }
        }
    }

    #[test]
    fn servers_at_fault_are_named() {
        let file = checked("servers = 'http://127.0.0.1:1'");
        for (list, fault) in [
            (
                "[\"http://127.0.0.1:1\", \"https://127.0.0.1:2\"]",
                "servers.1: `https://127.0.0.1:2`: expected the scheme of the first server, http://127.0.0.1:1",
            ),
            ("[\"http://127.0.0.1:0\"]", "servers.0: http://127.0.0.1:0: invalid port 0"),
            (
                "[{\"url\": \"http://127.0.0.1:1\", \"weight\": 1001}]",
                "servers.0.weight: invalid value `1001`: expected 0 to 1000",
            ),
        ] {
            let endpoints = Arc::new(set(&file, list));
            let service = &file.snapshot.services[0];
            let found = file.config.with_endpoints(&file.snapshot, service, &endpoints).unwrap_err();
            assert_eq!(found.faults_in_words(), fault);
            let mut next = checked("servers = 'http://127.0.0.1:1'");
            let refused = next.take_endpoints(&[("app".to_owned(), endpoints)].into(), None).unwrap_err();
            assert_eq!(refused.key, "service.app.servers");
            let advice = "; return to the servers of the file: DELETE /services/app/servers";
            assert_eq!(refused.message, format!("set at run time: {fault}{advice}"));
        }
    }

    /// A server keeps its resolved address even if its name no longer resolves.
    #[test]
    fn servers_that_stay_keep_their_addresses() {
        let file = checked("servers = 'http://127.0.0.1:1'");
        let mut snapshot = Snapshot::clone(&file.snapshot);
        let service = Arc::make_mut(&mut snapshot.services[0]);
        service.servers[0].place = "http://name.invalid:1".parse().unwrap();
        let address = service.servers[0].address.clone();
        let list = "[\"http://127.0.0.1:2\", \"http://name.invalid:1\"]";
        let endpoints = Arc::new(set(&file, list));
        let made = file.config.with_endpoints(&snapshot, &snapshot.services[0], &endpoints).unwrap();
        assert_eq!(made.servers[1].address, address);
    }

    #[test]
    fn parts_of_a_list_make_the_whole() {
        let file = checked("servers = 'http://127.0.0.1:1'");
        for (count, parts) in [(0, 1), (1, 1), (3, 1), (4, 2), (9, 3)] {
            let urls: Vec<_> = (1..=count).map(|port| format!("\"http://127.0.0.1:{port}\"")).collect();
            let all = set(&file, &format!("[{}]", urls.join(",")));
            let mut found: Vec<_> = all.parts(3).collect();
            assert_eq!(found.len(), parts);
            let json = serde_json::to_string(&found[0]).unwrap();
            let mut whole: Endpoints = serde_json::from_str(&json).unwrap();
            for part in found.drain(1..) {
                whole.extend(part);
            }
            assert_eq!(whole, all);
        }
    }
}
