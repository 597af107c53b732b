//! The connections that a process accepts.

use super::sockets::{Pair, Socket, port};
use crate::fact::Facts;
use std::collections::BTreeSet;

/// The connections that processes accepted while they were watched. A socket that either side keeps in TIME_WAIT for a
/// minute reveals even the shortest connection. If a client on another machine closed it first, only a scan while it is
/// open finds it.
#[derive(Debug, Default)]
pub(crate) struct Accepted {
    /// The ports on which the processes listen.
    ports: BTreeSet<String>,
    /// New connections, the processes' side first, and the connections open at the last scan.
    new: BTreeSet<Pair>,
    open: BTreeSet<Pair>,
}

impl Accepted {
    /// Finds the processes' connections among `all` sockets, by the inodes `own`; connections in `before` are not new.
    pub(super) fn look_at(&mut self, all: &[Socket], own: &BTreeSet<u64>, before: &BTreeSet<Pair>) {
        let own: Vec<&Socket> = all.iter().filter(|one| own.contains(&one.inode)).collect();
        let listening = own.iter().filter(|one| one.is_listening);
        self.ports.extend(listening.map(|one| port(&one.local).to_owned()));
        let is_accepted = |one: &&&Socket| !one.is_listening && self.ports.contains(port(&one.local));
        self.open = own.iter().filter(is_accepted).map(|one| one.pair()).collect();
        self.new.extend(self.open.difference(before).cloned());
    }

    /// Adds the accepted connections among those that `ended`.
    pub(super) fn end(&mut self, ended: &BTreeSet<Pair>, before: &BTreeSet<Pair>) {
        let is_own = |(local, _): &&Pair| self.ports.contains(port(local));
        let own: BTreeSet<Pair> = ended.iter().filter(is_own).cloned().collect();
        // A client on the same machine may keep the TIME_WAIT socket instead, also if it connects to another local port
        // of the service.
        let addresses: BTreeSet<&String> =
            own.iter().chain(&self.new).chain(&self.open).map(|(local, _)| local).collect();
        let clients = ended.iter().filter(|(_, remote)| addresses.contains(remote));
        let clients: Vec<Pair> = clients.map(|(local, remote)| (remote.clone(), local.clone())).collect();
        self.new.extend(own.into_iter().chain(clients).filter(|pair| !before.contains(pair)));
    }

    /// The number of new connections; `None` if the processes do not listen, or their sockets are unknown.
    pub(super) fn count(&self) -> Option<u64> {
        (!self.ports.is_empty()).then_some(self.new.len() as u64)
    }

    /// The share of the new connections that have closed.
    fn ended_share(&self) -> f64 {
        self.new.difference(&self.open).count() as f64 / self.new.len().max(1) as f64
    }

    /// The number of client addresses of the new connections.
    fn clients(&self) -> usize {
        let host = |(_, remote): &Pair| remote.rsplit_once(':').map(|(host, _)| host.to_owned());
        self.new.iter().filter_map(host).collect::<BTreeSet<String>>().len()
    }
}

impl Facts {
    /// Adds the connections that clients opened during the processes' existing load.
    pub(crate) fn add_accepted(&mut self, accepted: &Accepted, seconds: f64) {
        let Some(count) = accepted.count() else { return };
        let source = format!("sockets for {seconds:.1} s of its own load");
        self.add("accepted.connections", count as f64, &source);
        self.add("accepted.connections_per_second", count as f64 / seconds.max(1e-9), &source);
        if count > 0 {
            self.add("accepted.ended_share", accepted.ended_share(), &source);
            self.add("accepted.clients", accepted.clients() as f64, &source);
            self.add("accepted.connections_per_client", count as f64 / accepted.clients() as f64, &source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sockets::testing::socket_of;
    use super::*;

    fn pair(local: &str, remote: &str) -> Pair {
        (local.to_owned(), remote.to_owned())
    }

    /// Scans a process that listens on port 1 and has these clients.
    fn look(accepted: &mut Accepted, clients: &[&str]) {
        let own = clients.iter().zip(2..).map(|(client, inode)| socket_of("a:1", client, inode));
        // The process's own upstream connection, and another process on port 9.
        let others = [socket_of("0:1", "0:0", 1), socket_of("a:70", "u:2", 99), socket_of("a:9", "c:5", 500)];
        let all: Vec<Socket> = others.into_iter().chain(own).collect();
        accepted.look_at(&all, &(1..100).collect(), &[pair("a:1", "c:1")].into());
    }

    fn facts(accepted: &Accepted) -> [Option<f64>; 4] {
        let mut facts = Facts::default();
        facts.add_accepted(accepted, 2.0);
        ["connections", "connections_per_second", "ended_share", "connections_per_client"]
            .map(|name| facts.number(&format!("accepted.{name}")))
    }

    #[test]
    fn kept_connections_are_counted_once_and_those_of_before_not() {
        let mut accepted = Accepted::default();
        for _ in 0..5 {
            look(&mut accepted, &["c:1", "c:2", "d:3"]);
        }
        assert_eq!(facts(&accepted), [Some(2.0), Some(1.0), Some(0.0), Some(1.0)]);
    }

    #[test]
    fn closed_connections_count_whichever_side_keeps_their_end() {
        let mut accepted = Accepted::default();
        look(&mut accepted, &["c:2", "c:3"]);
        look(&mut accepted, &["c:4"]);
        let ended = [
            pair("a:1", "c:3"),
            pair("a:1", "c:7"),
            pair("c:8", "a:1"),
            // Connections that existed before, to the process's upstream, and of other processes.
            pair("a:1", "c:1"),
            pair("a:71", "u:2"),
            pair("a:9", "c:6"),
            pair("c:6", "z:1"),
        ];
        accepted.end(&ended.into(), &[pair("a:1", "c:1")].into());
        assert_eq!(facts(&accepted), [Some(5.0), Some(2.5), Some(0.8), Some(5.0)]);
    }

    #[test]
    fn without_a_listener_nothing_is_known() {
        let mut accepted = Accepted::default();
        accepted.look_at(&[socket_of("a:70", "u:2", 3)], &[3].into(), &BTreeSet::new());
        accepted.end(&[pair("a:71", "u:2")].into(), &BTreeSet::new());
        assert_eq!(facts(&accepted), [None; 4]);
    }
}
