//! Services and their servers: state, and changes at run time.

use super::server_change::Change;
use super::{Admin, Response};
use crate::config::{Override, Server, Service, Snapshot};
use crate::observe::{Report, ServerReport, Source};
use crate::process::{gather, gather_service};
use serde::Serialize;
use std::collections::HashMap;
use weir_transport::Place;

/// The error of a request that does not name exactly one server.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unknown {
    #[error("unknown service `{name}`: expected one of {known}")]
    Service { name: String, known: String },
    #[error("service `{service}`: unknown server `{name}`: expected one of {known}")]
    Server { service: String, name: String, known: String },
    #[error("service `{service}`: `{name}` is {count} of its servers: {known}")]
    Ambiguous { service: String, name: String, count: usize, known: String },
}

impl Admin {
    /// Changes the state or weight of a server, and waits until all workers have applied the change.
    pub(super) fn change_server(&self, service: &str, server: &str, query: Option<&[u8]>) -> Response {
        let change = match Change::parse(query.unwrap_or_default()) {
            Ok(change) => change,
            Err(why) => return Response::text(400, format!("{why}\n")),
        };
        let (mut unknown, mut lost) = (None, None);
        self.active.change(|snapshot| match find(snapshot, service, server) {
            Ok((service, server)) => {
                let before = snapshot.overrides.of(&service.name, server.id);
                let after = change.of(before);
                if after == before {
                    return None;
                }
                // If a new process took over, the change would be lost.
                if let Err(why) = self.upgrades.lasts() {
                    lost = Some(why);
                    return None;
                }
                let (name, place) = (&service.name, &server.place);
                let words = in_words(before, after, server.weight);
                self.journal.line(format_args!("weir: {name}: {place} was set: {words}"));
                let mut next = snapshot.clone();
                next.overrides.set(name, server.id, after);
                Some(next)
            }
            Err(why) => {
                unknown = Some(why);
                None
            }
        });
        if let Some(why) = lost {
            return Response::text(409, format!("{why}\n"));
        }
        match unknown {
            Some(unknown) => unknown.into(),
            None => self.show_server(service, server),
        }
    }

    /// Shows all services once all workers have reported. By then, the workers have applied all earlier changes.
    pub(super) fn show_services(&self) -> Response {
        let report = match gather(&self.workers) {
            Ok(report) => report,
            Err(partial) => return partial.into(),
        };
        let (snapshot, reports) = (self.active.snapshot(), by_name(&report));
        let services = snapshot.services.iter().map(|service| Shown::of(service, &reports));
        Response::json(200, &All { services: services.collect() })
    }

    /// As [`Admin::show_services`], for one service.
    pub(super) fn show_service(&self, service: &str) -> Response {
        let report = match gather_service(&self.workers, service) {
            Ok(report) => report,
            Err(partial) => return partial.into(),
        };
        match find_service(&self.active.snapshot(), service) {
            Ok(service) => Response::json(200, &Shown::of(service, &by_name(&report))),
            Err(unknown) => unknown.into(),
        }
    }

    /// As [`Admin::show_services`], for one server.
    pub(super) fn show_server(&self, service: &str, server: &str) -> Response {
        let report = match gather_service(&self.workers, service) {
            Ok(report) => report,
            Err(partial) => return partial.into(),
        };
        match find(&self.active.snapshot(), service, server) {
            Ok((service, server)) => Response::json(200, &shown(service, server, &by_name(&report))),
            Err(unknown) => unknown.into(),
        }
    }
}

impl From<Unknown> for Response {
    fn from(unknown: Unknown) -> Self {
        let status = match unknown {
            Unknown::Service { .. } | Unknown::Server { .. } => 404,
            Unknown::Ambiguous { .. } => 409,
        };
        Self::text(status, format!("{unknown}\n"))
    }
}

#[derive(Serialize)]
struct All<'a> {
    services: Vec<Shown<'a>>,
}

/// A service in a response.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    servers_from: Source,
    servers: Vec<ShownServer<'a>>,
}

impl<'a> Shown<'a> {
    fn of(service: &'a Service, reports: &Reports<'a>) -> Self {
        let servers = service.servers.iter().filter_map(|server| shown(service, server, reports));
        Self { name: &service.name, servers_from: (&service.servers_from).into(), servers: servers.collect() }
    }
}

#[derive(Serialize)]
struct ShownServer<'a> {
    url: String,
    address: String,
    backup: bool,
    #[serde(flatten)]
    report: &'a ServerReport,
}

/// The servers' reports, by the names of service and server.
type Reports<'a> = HashMap<(&'a str, &'a str), &'a ServerReport>;

fn by_name(report: &Report) -> Reports<'_> {
    report.servers.iter().map(|server| (server.names(), server)).collect()
}

/// Describes a server for a response; `None` if the workers have not reported it yet.
fn shown<'a>(service: &Service, server: &Server, reports: &Reports<'a>) -> Option<ShownServer<'a>> {
    Some(ShownServer {
        url: server.place.to_string(),
        address: server.address.to_string(),
        backup: server.backup,
        report: reports.get(&(&*service.name, &*server.label())).copied()?,
    })
}

fn find_service<'a>(snapshot: &'a Snapshot, name: &str) -> Result<&'a Service, Unknown> {
    let found = snapshot.service_named(name).map(|at| &*snapshot.services[at]);
    found.ok_or_else(|| {
        let known = listed(snapshot.services.iter().map(|service| &service.name));
        Unknown::Service { name: name.to_owned(), known }
    })
}

/// Finds a server by its URL, or by its host and port. Fails if no server matches, or several do.
pub(super) fn find<'a>(
    snapshot: &'a Snapshot,
    service: &str,
    server: &str,
) -> Result<(&'a Service, &'a Server), Unknown> {
    let service = find_service(snapshot, service)?;
    let is_stream = service.servers.iter().any(|server| matches!(server.place, Place::Stream(_)));
    let scheme = match (is_stream, service.tls.is_some()) {
        (false, false) => "http",
        (false, true) => "https",
        (true, false) => "tcp",
        (true, true) => "tls",
    };
    let place = server.parse().or_else(|_| format!("{scheme}://{server}").parse::<Place>());
    let is_meant = |known: &&Server| place.as_ref().is_ok_and(|place| is_same(&known.place, place));
    let meant: Vec<_> = service.servers.iter().filter(is_meant).collect();
    let known = || listed(service.servers.iter().map(|server| &server.place));
    let (name, of) = (server.to_owned(), service.name.clone());
    match meant[..] {
        [only] => Ok((service, only)),
        [] => Err(Unknown::Server { service: of, name, known: known() }),
        _ => Err(Unknown::Ambiguous { service: of, name, count: meant.len(), known: known() }),
    }
}

/// Whether two places are the same server: host names are case-insensitive (RFC 4343).
fn is_same(known: &Place, place: &Place) -> bool {
    match (known, place) {
        (Place::Url(known), Place::Url(place)) | (Place::Stream(known), Place::Stream(place)) => {
            known.host.eq_ignore_ascii_case(&place.host) && (known.tls, known.port) == (place.tls, place.port)
        }
        _ => known == place,
    }
}

/// Describes a change, such as `state drain (was ready), weight 5 (was 1 as configured)`.
fn in_words(before: Override, after: Override, configured: u32) -> String {
    let state = |set: Override| if set.is_drained { "drain" } else { "ready" };
    let weight = |set: Override| match set.weight {
        Some(weight) => weight.to_string(),
        None => format!("{configured} as configured"),
    };
    let parts = [
        (before.is_drained != after.is_drained)
            .then(|| format!("state {} (was {})", state(after), state(before))),
        (before.weight != after.weight).then(|| format!("weight {} (was {})", weight(after), weight(before))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn listed(names: impl Iterator<Item = impl std::fmt::Display>) -> String {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none is defined".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::observe::State;
    use std::collections::BTreeSet;

    fn snapshot() -> Snapshot {
        let text = "[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\n\
            servers = ['http://192.0.2.1', 'http://192.0.2.2:81', 'http://[::1]:82', 'unix:/run/a.sock', \
                       'http://192.0.2.9', 'http://192.0.2.9']\n[service.tls]\nservers = 'https://192.0.2.1'";
        config::compile(&toml::from_str(text).unwrap(), &mut config::Findings::default()).unwrap()
    }

    fn found(service: &str, server: &str) -> Result<String, String> {
        let snapshot = snapshot();
        let found = find(&snapshot, service, server).map(|(_, server)| server.place.to_string());
        found.map_err(|unknown| unknown.to_string())
    }

    #[test]
    fn a_server_is_found_by_its_url_or_host_and_port() {
        for (name, place) in [
            ("http://192.0.2.1", "http://192.0.2.1"),
            ("HTTP://192.0.2.1:80/", "http://192.0.2.1"),
            ("192.0.2.1", "http://192.0.2.1"),
            ("192.0.2.1:80", "http://192.0.2.1"),
            ("192.0.2.2:81", "http://192.0.2.2:81"),
            ("[::1]:82", "http://[::1]:82"),
            ("unix:/run/a.sock", "unix:/run/a.sock"),
        ] {
            assert_eq!(found("app", name).as_deref(), Ok(place), "{name}");
        }
        assert_eq!(found("tls", "192.0.2.1:443").as_deref(), Ok("https://192.0.2.1"));
        assert!(found("app", "https://192.0.2.1:80").is_err(), "another scheme is another server");
    }

    #[test]
    fn one_that_is_unknown_or_ambiguous_is_refused_with_all_there_are() {
        assert_eq!(found("x", "a").unwrap_err(), "unknown service `x`: expected one of `app`, `tls`");
        for name in ["", "192.0.2.2", "192.0.2.1:0x50", "unix:run"] {
            let why = format!("service `tls`: unknown server `{name}`: expected one of `https://192.0.2.1`");
            assert_eq!(found("tls", name).unwrap_err(), why);
        }
        let why = found("app", "192.0.2.9").unwrap_err();
        assert!(
            why.starts_with("service `app`: `192.0.2.9` is 2 of its servers: `http://192.0.2.1`, "),
            "{why}"
        );
    }

    /// Regression test: a renamed field changed its key in JSON, so `weir top` showed no requests of servers.
    #[test]
    fn a_server_has_the_documented_fields() {
        let snapshot = snapshot();
        let service = &snapshot.services[0];
        let server = &service.servers[0];
        let report = Report {
            servers: vec![ServerReport {
                service: service.name.clone(),
                server: server.label().into_owned(),
                state: State::Up,
                from: Source::File,
                weight: 1,
                configured_weight: 1,
                in_flight: 0,
                idle: 0,
                responses: [0; 6],
                ejected: 0,
                down: false,
            }],
            ..Report::default()
        };
        let json = serde_json::to_value(shown(service, server, &by_name(&report))).unwrap();
        let found: BTreeSet<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let document = include_str!("../../../../docs/gateway/services.md");
        let (_, table) = document.split_once("and its `servers`, each with:").unwrap();
        let (table, _) = table.split_once("\n\nA request").unwrap();
        let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" | "));
        let documented: BTreeSet<_> = rows
            .flat_map(|(fields, _)| fields.split("`, `"))
            .map(|name| name.trim_end_matches('`'))
            .collect();
        assert_eq!(found, documented);
    }

    #[test]
    fn a_change_is_in_words() {
        let drained = Override { is_drained: true, weight: None };
        let light = Override { is_drained: false, weight: Some(0) };
        assert_eq!(in_words(Override::default(), drained, 3), "state drain (was ready)");
        assert_eq!(in_words(drained, light, 3), "state ready (was drain), weight 0 (was 3 as configured)");
    }
}
