//! The state of each server, for `/status`, the metrics page and the admin address.

use super::counters::CLASSES;
use super::exposition::Exposition;
use crate::config::ServersFrom;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

/// The state of one server of a service, as the admin address reports it. When parsed, missing keys are 0 or empty.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerReport {
    /// The service's name.
    pub service: String,
    /// The server's host and port, or its socket.
    pub server: String,
    /// Whether the server gets requests, or the reason why not.
    pub state: State,
    /// The source of the server: the file, or the admin address at run time.
    pub from: Source,
    /// The current weight.
    pub weight: u32,
    /// The weight in the configuration.
    pub configured_weight: u32,
    /// The number of requests in flight, over all workers.
    pub in_flight: usize,
    /// The number of idle connections, over all workers.
    pub idle: usize,
    /// Responses by the first digit of their status; index 0 counts requests without a response.
    pub responses: [u64; 6],
    /// The number of workers that have ejected the server.
    pub ejected: usize,
    /// Whether the server's health checks fail.
    pub down: bool,
}

/// Whether a server gets requests. If several variants apply, the last of them is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The server gets requests.
    #[default]
    Up,
    /// Some workers have ejected the server after failures.
    Ejected,
    /// The server's health checks fail.
    Down,
    /// The server's weight is 0.
    Off,
    /// The server gets no new requests, except from clients with its sticky cookie.
    Drained,
}

/// The source of a service's servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The configuration file.
    #[default]
    File,
    /// The admin address.
    Admin,
}

impl From<&ServersFrom> for Source {
    fn from(from: &ServersFrom) -> Self {
        match from {
            ServersFrom::File => Self::File,
            ServersFrom::Admin(_) => Self::Admin,
        }
    }
}

impl ServerReport {
    /// The names of the service and of the server.
    pub(crate) fn names(&self) -> (&str, &str) {
        (&self.service, &self.server)
    }

    /// Adds another worker's report of the same server.
    pub(super) fn add(&mut self, other: &Self) {
        self.state = self.state.max(other.state);
        self.in_flight += other.in_flight;
        self.idle += other.idle;
        self.ejected += other.ejected;
        self.down |= other.down;
        for (mine, theirs) in self.responses.iter_mut().zip(other.responses) {
            *mine += theirs;
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = STATES.iter().find(|(state, _)| state == self);
        f.pad(named.map_or("", |(_, name)| name))
    }
}

/// Adds another worker's reports, in linear time. Reports with equal names of service and server are about one server.
pub(super) fn add(mine: &mut Vec<ServerReport>, theirs: &[ServerReport]) {
    let name = |server: &ServerReport| (server.service.clone(), server.server.clone());
    let mut places: HashMap<_, _> = mine.iter().map(name).zip(0..).collect();
    for server in theirs {
        match places.entry(name(server)) {
            Entry::Occupied(place) => mine[*place.get()].add(server),
            Entry::Vacant(place) => {
                place.insert(mine.len());
                mine.push(server.clone());
            }
        }
    }
}

/// Appends the metrics of servers.
pub(super) fn metrics(servers: &[ServerReport], text: &mut Exposition) {
    text.family("weir_server_responses_total", "counter", "Responses of a server by class of status.");
    for server in servers {
        for (class, count) in CLASSES.iter().zip(server.responses) {
            let [service, name] = labels(server);
            text.sample("weir_server_responses_total", &[service, name, ("class", class)], count);
        }
    }
    type Gauge = (&'static str, &'static str, fn(&ServerReport) -> usize);
    let gauges: [Gauge; 5] = [
        ("weir_server_up", "Whether a server's health checks pass; 1 without checks.", |server| {
            usize::from(!server.down)
        }),
        ("weir_server_weight", "The weight in force of a server.", |server| server.weight as usize),
        ("weir_server_in_flight", "Requests in flight at a server.", |server| server.in_flight),
        ("weir_server_idle_connections", "Idle connections to a server.", |server| server.idle),
        ("weir_server_ejected", "Workers that have ejected a server.", |server| server.ejected),
    ];
    for (name, help, value) in gauges {
        text.family(name, "gauge", help);
        for server in servers {
            text.sample(name, &labels(server), value(server) as u64);
        }
    }
    text.family("weir_server_state", "gauge", "1 for the current state of a server, else 0.");
    for server in servers {
        for (state, name) in STATES {
            let [service, label] = labels(server);
            let labels = [service, label, ("state", name)];
            text.sample("weir_server_state", &labels, u64::from(server.state == state));
        }
    }
}

fn labels(server: &ServerReport) -> [(&'static str, &str); 2] {
    [("service", &server.service), ("server", &server.server)]
}

const STATES: [(State, &str); 5] = [
    (State::Up, "up"),
    (State::Ejected, "ejected"),
    (State::Down, "down"),
    (State::Off, "off"),
    (State::Drained, "drained"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(names: &[(&str, &str, u64)]) -> Vec<ServerReport> {
        let report = |(service, server, ok): &(&str, &str, u64)| ServerReport {
            service: (*service).to_owned(),
            server: (*server).to_owned(),
            responses: [0, 0, *ok, 0, 0, 0],
            ..ServerReport::default()
        };
        names.iter().map(report).collect()
    }

    /// During a reload, workers may report different configurations, and a service may list a server twice.
    #[test]
    fn reports_are_added_by_service_and_server() {
        let mut sum = Vec::new();
        add(&mut sum, &servers(&[("a", "x", 1), ("a", "y", 2), ("a", "x", 4), ("b", "x", 8)]));
        add(&mut sum, &servers(&[("b", "x", 16), ("c", "x", 32), ("a", "y", 64)]));
        let found: Vec<_> =
            sum.iter().map(|of| (of.service.as_str(), of.server.as_str(), of.responses[2])).collect();
        assert_eq!(found, [("a", "x", 5), ("a", "y", 66), ("b", "x", 24), ("c", "x", 32)]);
    }
}
