//! The number of connections that a process opens to its upstreams and accepts, from the kernel's socket tables.

use super::accepted::Accepted;
use super::sockets::{Pair, Socket, ended, inodes, opened, port, sockets};
use crate::fact::Facts;
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use weir_doctor::proc::own_thread_cpu;
use weir_load::plural;

/// Watches the outgoing connections of processes.
pub(crate) struct Upstream {
    pids: Vec<u32>,
    /// The connections of any process at the start.
    before: BTreeSet<Pair>,
    /// The remote addresses of outgoing connections.
    upstreams: BTreeSet<String>,
    /// New connections to the upstreams.
    new: BTreeSet<Pair>,
    /// Sightings of open connections, and those of connections that the previous scan did not find.
    sightings: usize,
    arrivals: usize,
    open: BTreeSet<Pair>,
    /// The maximum in one scan.
    most_open: usize,
    /// The processes' sockets at the start, and all their sockets since.
    own_before: BTreeSet<u64>,
    own: BTreeSet<u64>,
    /// Connections of any process in TIME_WAIT: at the start, and those that ended during the watch.
    ended_before: BTreeSet<Pair>,
    ended: BTreeSet<Pair>,
    /// Connections opened in the network namespace before the start, by the kernel's counter.
    opened: Option<u64>,
    /// The connections accepted during the watch.
    accepted: Accepted,
}

/// Scans of the processes' open files per scan of the table of all sockets.
const LOOKS_PER_TABLE: u32 = 10;

/// After each scan comes a pause of this many times its CPU time: with thousands of sockets a scan takes milliseconds,
/// and scans without a pause would take the core from the processes under test. The scan's wall-clock time is no
/// measure: on a busy machine most of it is waiting for a core, and a longer pause would miss short-lived connections.
const PAUSE_PER_LOOK: u32 = 5;

/// The highest priority for nice(2), which affects only the calling thread on Linux.
const FIRST: i32 = -20;

/// A process that is seen with a new socket for this share of the requests does not pool.
const NEW_SOCKETS: f64 = 0.1;

/// A pool grows to the number of concurrent requests.
const GROWTH: usize = 8;

/// With fewer sightings of upstream connections, the share of new ones is unreliable.
const SIGHTINGS: usize = 3 * GROWTH;

/// Scans find pooled connections repeatedly; a share of new ones above this means that connections are not pooled.
const CHURN: f64 = 0.3;

/// If this share of the new connections has ended by the last scan, they are not pooled.
const ENDED: f64 = 0.5;

/// A completed watch.
pub(crate) struct Watched {
    pub(crate) upstream: Upstream,
    /// The requests during the watch, and the client connections that carried them.
    pub(crate) requests: u64,
    pub(crate) accepted: u64,
    pub(crate) counted: Counted,
    /// Whether other clients also connect.
    pub(crate) has_other_clients: bool,
}

/// The kernel's counts for the whole network namespace.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// The number of requests in the meantime.
    pub(crate) requests: u64,
    /// Connections that any process opened, without those of this program and the usual ones of other processes.
    pub(crate) opened: u64,
}

impl Upstream {
    /// Starts with the current connections.
    pub(crate) fn watch(pids: &[u32]) -> Self {
        let before = sockets(pids).iter().map(Socket::pair).collect();
        Self {
            pids: pids.to_vec(),
            before,
            upstreams: BTreeSet::new(),
            new: BTreeSet::new(),
            sightings: 0,
            arrivals: 0,
            open: BTreeSet::new(),
            most_open: 0,
            own_before: inodes(pids),
            own: BTreeSet::new(),
            ended_before: ended(pids),
            ended: BTreeSet::new(),
            opened: opened(pids),
            accepted: Accepted::default(),
        }
    }

    /// Scans the sockets every `interval`, or less often if scans take long, while `work` runs. Returns the result of
    /// `work`, and the watch.
    pub(crate) fn during<T>(mut self, interval: Duration, work: impl FnOnce() -> T) -> (T, Self) {
        let is_over = AtomicBool::new(false);
        let own = Mutex::new(BTreeSet::new());
        let pids = self.pids.clone();
        let keep_own = || {
            let now = inodes(&pids);
            lock(&own).extend(now);
        };
        let done = thread::scope(|scope| {
            // The table contains the sockets of all processes. If these are thousands, a connection may open and close
            // while the table is read. So a separate thread scans the processes' files, to attribute such a connection
            // to them.
            scope.spawn(|| repeat(interval / LOOKS_PER_TABLE, &is_over, keep_own));
            let watch = &mut self;
            scope.spawn(|| {
                let mut look = || {
                    keep_own();
                    let all = sockets(&pids);
                    keep_own();
                    watch.look_at(&all, &lock(&own));
                };
                repeat(interval, &is_over, &mut look);
                look();
                watch.ended = ended(&pids).difference(&watch.ended_before).cloned().collect();
                watch.accepted.end(&watch.ended, &watch.before);
            });
            let done = work();
            is_over.store(true, Ordering::Relaxed);
            done
        });
        self.own = own.into_inner().unwrap_or_else(PoisonError::into_inner);
        (done, self)
    }

    fn look_at(&mut self, all: &[Socket], own: &BTreeSet<u64>) {
        self.accepted.look_at(all, own, &self.before);
        let listening: BTreeSet<&str> =
            all.iter().filter(|one| one.is_listening).map(|one| port(&one.local)).collect();
        let mut open = BTreeSet::new();
        for socket in all.iter().filter(|one| own.contains(&one.inode) && !one.is_listening) {
            if !listening.contains(port(&socket.local)) {
                self.upstreams.insert(socket.remote.clone());
                open.insert(socket.pair());
            }
        }
        // The first scan has no previous one to compare with.
        if !self.open.is_empty() {
            self.sightings += open.len();
            self.arrivals += open.difference(&self.open).count();
        }
        self.new.extend(open.difference(&self.before).cloned());
        self.most_open = self.most_open.max(open.len());
        self.open = open;
    }

    /// The share of sightings in which a connection was seen for the first time, without those of a growing pool;
    /// `None` with too few sightings.
    fn new_share(&self) -> Option<f64> {
        let ratio = || self.arrivals.saturating_sub(GROWTH) as f64 / (self.sightings - GROWTH) as f64;
        (self.sightings >= SIGHTINGS).then(ratio)
    }

    /// Whether the processes' new connections have ended.
    fn closes(&self) -> bool {
        let ended = self.new.difference(&self.open).count();
        !self.new.is_empty() && ended as f64 >= self.new.len() as f64 * ENDED
    }

    /// The number of connections to the upstreams that ended. Either side may keep the TIME_WAIT socket: also the
    /// upstream, if it is on the same machine.
    fn ended(&self) -> u64 {
        let is_upstream =
            |(local, remote): &&Pair| self.upstreams.contains(remote) || self.upstreams.contains(local);
        self.ended.iter().filter(is_upstream).count() as u64
    }

    /// What the processes accepted during the watch.
    pub(crate) fn into_accepted(self) -> Accepted {
        self.accepted
    }

    /// The number of connections that any process of the network namespace has opened since the start.
    pub(crate) fn opened(&self) -> u64 {
        opened(&self.pids).zip(self.opened).map_or(0, |(now, before)| now.saturating_sub(before))
    }
}

impl Watched {
    /// The connections to upstreams per request, and the number of requests; `None` without an upstream. Scans miss
    /// connections that open and close between two of them, so the largest of several counts is the most accurate.
    fn per_request(&self) -> Option<(f64, u64)> {
        let Self { upstream, requests, counted, .. } = self;
        // Fewer connections may be a growing pool, and one fetch for each client connection.
        let few = GROWTH as u64 + self.accepted.min(GROWTH as u64);
        let beyond = |count: u64| if count > few { count } else { 0 };
        // On a busy machine a short-lived connection may be missing in the table although its socket was in the
        // process's files.
        let has_upstream = !upstream.upstreams.is_empty() || beyond(self.new_sockets()) > 0;
        if !has_upstream || *requests == 0 {
            return None;
        }
        let ratio = |count: u64, of: u64| (beyond(count) as f64 / of.max(1) as f64, of);
        // Each sighting is of a connection in use for a request, so the share of new ones is also that of requests.
        let seen = (upstream.new_share().unwrap_or(0.0), *requests);
        let counts = [
            ratio(upstream.new.len() as u64, *requests),
            ratio(self.new_sockets(), *requests),
            seen,
            // The remaining counts include all processes.
            ratio(if upstream.closes() { upstream.ended() } else { 0 }, *requests),
            ratio(if self.churns() { counted.opened } else { 0 }, counted.requests),
        ];
        counts.into_iter().max_by(|(one, _), (other, _)| one.total_cmp(other))
    }

    /// The accepted connections per request, beyond those of this program, such as those of a proxy in between; `None`
    /// if unknown.
    fn accepted_per_request(&self) -> Option<(f64, u64)> {
        let count =
            self.upstream.accepted.count().filter(|_| self.requests > 0 && !self.has_other_clients)?;
        let others = count.saturating_sub(self.accepted);
        // A proxy also opens a pool.
        let beyond = if others > GROWTH as u64 { others } else { 0 };
        Some((beyond as f64 / self.requests as f64, self.requests))
    }

    /// The maximum of concurrent upstream connections; `None` if other clients' requests may have needed some.
    fn most_open(&self) -> Option<usize> {
        Some(self.upstream.most_open).filter(|most| *most > 0 && !self.has_other_clients)
    }

    /// Whether the processes do not pool their connections.
    fn churns(&self) -> bool {
        self.upstream.new_share().is_some_and(|share| share > CHURN)
            || self.new_sockets() as f64 > GROWTH as f64 + self.requests as f64 * NEW_SOCKETS
    }

    /// The processes' new sockets except accepted ones.
    fn new_sockets(&self) -> u64 {
        let Upstream { own, own_before, accepted, .. } = &self.upstream;
        let new = own.difference(own_before).count() as u64;
        // After a proxy, the process accepts more connections than this program opens.
        let accepted = accepted.count().unwrap_or(0).max(self.accepted);
        if self.has_other_clients { 0 } else { new.saturating_sub(accepted) }
    }
}

/// Calls `look` every `interval`, or less often if it takes long, until `is_over` is set.
fn repeat(interval: Duration, is_over: &AtomicBool, mut look: impl FnMut()) {
    // A scan that waits for a core misses short-lived connections. A higher priority needs a privilege, so ignore
    // failures.
    let _ = rustix::process::nice(FIRST);
    while !is_over.load(Ordering::Relaxed) {
        let before = own_thread_cpu();
        look();
        thread::sleep(interval.max((own_thread_cpu() - before) * PAUSE_PER_LOOK));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Rounds of requests, with a pause before each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    /// All requests, and the client connections that carried them.
    pub(crate) requests: u64,
    pub(crate) accepted: u64,
    /// The counts of the round with the fewest other connections.
    pub(crate) quietest: Counted,
    /// The rate at which other processes open connections.
    pub(crate) others_per_second: f64,
}

impl Rounds {
    /// Calls `send` once per round; it returns the numbers of its requests and connections.
    pub(crate) fn new(pids: &[u32], mut send: impl FnMut() -> io::Result<(u64, u64)>) -> io::Result<Self> {
        let now = || opened(pids).unwrap_or(0);
        let mut rounds = Self { quietest: Counted { requests: 0, opened: u64::MAX }, ..Self::default() };
        for _ in 0..ROUNDS {
            let (before, started) = (now(), Instant::now());
            thread::sleep(PAUSE);
            let usual = now().saturating_sub(before) as f64 / started.elapsed().as_secs_f64();
            rounds.others_per_second = rounds.others_per_second.max(usual);
            let (before, started) = (now(), Instant::now());
            let (requests, accepted) = send()?;
            let usual = (rounds.others_per_second * started.elapsed().as_secs_f64()).ceil() as u64;
            let opened = now().saturating_sub(before).saturating_sub(accepted + usual);
            if opened < rounds.quietest.opened {
                rounds.quietest = Counted { requests, opened };
            }
            rounds.requests += requests;
            rounds.accepted += accepted;
        }
        Ok(rounds)
    }
}

/// Other processes open connections too, but rarely in every round.
const ROUNDS: u32 = 5;

/// The time without requests of this program, before each round.
const PAUSE: Duration = Duration::from_millis(50);

impl Facts {
    /// Adds the connections per request: opened to upstreams, if any, and accepted ones.
    pub(crate) fn add_upstream(&mut self, watched: &[Watched]) {
        if let Some((ratio, requests, source)) = most(watched.iter().filter_map(Watched::per_request)) {
            self.add("upstream.connections_per_request", ratio, &source);
            self.add("upstream.connections", (ratio * requests as f64).round(), &source);
        }
        if let Some((ratio, _, source)) = most(watched.iter().filter_map(Watched::accepted_per_request)) {
            self.add("accepted.connections_per_request", ratio, &source);
        }
        let most_open = watched.iter().filter_map(Watched::most_open).max();
        self.add_known("upstream.open", most_open.map(|most| most as f64), "the most sockets at once");
    }

    /// Adds the upstream connections per handshake, if the watch during new client connections found any.
    pub(crate) fn add_handshakes(&mut self, watched: &Watched) {
        if let Some((ratio, handshakes)) = watched.per_request() {
            let source = format!("sockets during {}", plural(handshakes, "handshake"));
            self.add("upstream.connections_per_handshake", ratio, &source);
        }
    }
}

/// The largest ratio of connections to requests, with the number of requests and the source.
fn most(ratios: impl Iterator<Item = (f64, u64)>) -> Option<(f64, u64, String)> {
    let (ratio, requests) = ratios.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    Some((ratio, requests, format!("sockets during {}", plural(requests, "request"))))
}

#[cfg(test)]
mod tests {
    use super::super::sockets::testing::socket_of;
    use super::*;

    /// The connections per request, for 10 requests and this count of the kernel.
    fn per_request(upstream: Upstream, opened: u64) -> Option<f64> {
        let counted = Counted { requests: 10, opened };
        Watched { upstream, requests: 10, accepted: 1, counted, has_other_clients: false }
            .per_request()
            .map(|(ratio, _)| ratio)
    }

    #[test]
    fn pooled_connections_are_counted_once() {
        let mut upstream = Upstream::watch(&[]);
        let all = [socket_of("a:1", "0:0", 1), socket_of("a:1", "c:9", 2), socket_of("a:70", "u:2", 3)];
        for _ in 0..10 {
            upstream.look_at(&all, &[1, 2, 3].into());
        }
        assert_eq!(upstream.most_open, 1);
        assert_eq!(per_request(upstream, 500), Some(0.0));
    }

    /// Regression test: on a busy machine, a pool grew to its eight connections in 18 requests, and the service got
    /// advice to keep connections alive.
    #[test]
    fn a_growing_pool_opens_no_connection_per_request() {
        let listener = socket_of("a:1", "0:0", 1);
        for (connections, ratio) in [(1, 0.0), (7, 0.0), (8, 0.0), (9, 0.0), (10, 1.0), (20, 2.0)] {
            let mut upstream = Upstream::watch(&[]);
            let mut all = vec![listener.clone()];
            for port in 70..70 + connections {
                all.push(socket_of(&format!("a:{port}"), "u:2", port));
                upstream.look_at(&all, &(1..100).collect());
            }
            assert_eq!(per_request(upstream, 0), Some(ratio), "{connections}");
        }
    }

    /// Regression test: on a busy machine, 38 requests used eight client connections, and the service fetched an OCSP
    /// response for each of these. It got advice to keep its connections alive for requests.
    #[test]
    fn a_fetch_for_each_client_connection_is_none_for_each_request() {
        for (connections, accepted, ratio) in [(9, 8, 0.0), (16, 8, 0.0), (17, 8, 0.5), (34, 34, 1.0)] {
            let mut upstream = Upstream::watch(&[]);
            let sockets = (70..70 + connections).map(|port| socket_of(&format!("a:{port}"), "u:2", port));
            let all: Vec<Socket> = [socket_of("a:1", "0:0", 1)].into_iter().chain(sockets).collect();
            upstream.look_at(&all, &(1..200).collect());
            let watched = Watched {
                upstream,
                requests: 34,
                accepted,
                counted: Counted::default(),
                has_other_clients: false,
            };
            let found = watched.per_request().map(|(ratio, _)| ratio);
            assert_eq!(found, Some(ratio), "{connections}");
        }
    }

    #[test]
    fn connections_between_looks_are_counted_by_the_kernel() {
        let mut upstream = Upstream::watch(&[]);
        let listener = socket_of("a:1", "0:0", 1);
        for port in 70..100 {
            let all = [listener.clone(), socket_of(&format!("a:{port}"), "u:2", port)];
            upstream.look_at(&all, &[1, port].into());
        }
        assert_eq!(per_request(upstream, 40), Some(4.0));
    }

    #[test]
    fn sockets_between_looks_at_the_table_count() {
        for (sockets, ratio) in [(0, None), (9, None), (10, None), (11, Some(1.0)), (17, Some(1.6))] {
            let mut upstream = Upstream::watch(&[]);
            upstream.own.extend(100..100 + sockets);
            assert_eq!(per_request(upstream, 0), ratio, "{sockets}");
        }
        let mut upstream = Upstream::watch(&[]);
        upstream.own.extend(100..117);
        upstream.look_at(&[socket_of("a:1", "0:0", 1), socket_of("a:70", "u:2", 100)], &[1, 100].into());
        assert_eq!(per_request(upstream, 0), Some(1.6));
    }

    /// Regression test: a service without an upstream was reported to open connections to one. In fact, a proxy in
    /// front of it opened them to the service.
    #[test]
    fn accepted_sockets_are_not_the_processes_own_connections() {
        let mut upstream = Upstream::watch(&[]);
        upstream.own.extend(100..160);
        upstream.look_at(&[socket_of("a:1", "0:0", 1), socket_of("a:1", "c:9", 100)], &[1, 100].into());
        let ended = (10..69).map(|port| ("a:1".to_owned(), format!("c:{port}"))).collect();
        upstream.accepted.end(&ended, &BTreeSet::new());
        assert_eq!(per_request(upstream, 60), None);
    }

    #[test]
    fn connections_that_ended_count_if_one_was_seen_to_end() {
        let mut upstream = Upstream::watch(&[]);
        let listener = socket_of("a:1", "0:0", 1);
        let pair = |local: &str, remote: &str| (local.to_owned(), remote.to_owned());
        upstream.look_at(&[listener.clone(), socket_of("a:70", "u:2", 2)], &[1, 2].into());
        upstream.ended = [pair("a:1", "c:9"), pair("a:72", "v:2")].into();
        for port in 80..90 {
            let local = format!("a:{port}");
            upstream.ended.insert(if port % 2 == 0 { pair(&local, "u:2") } else { pair("u:2", &local) });
        }
        assert!(!upstream.closes(), "another process may have had the ended ones");
        upstream.look_at(&[listener], &[1].into());
        assert!(upstream.closes());
        assert_eq!(per_request(upstream, 0), Some(1.0));
    }

    #[test]
    fn the_quietest_round_counts() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
        let address = listener.local_addr().expect("is bound");
        let mut round = 0;
        let rounds = Rounds::new(&[std::process::id()], || {
            round += 1;
            // Other processes open connections in all rounds except the last.
            for _ in 0..if round == ROUNDS { 2 } else { 20 } {
                std::net::TcpStream::connect(address)?;
            }
            Ok((10, 1))
        });
        let Rounds { requests, accepted, quietest, .. } = rounds.expect("connects");
        assert_eq!((requests, accepted, quietest.requests), (50, 5, 10));
        // Other tests connect too.
        assert!(quietest.opened < 19, "{quietest:?}");
    }

    #[test]
    fn connections_of_a_proxy_in_front_are_those_beyond_our_own() {
        let per_request = |clients: u64, has_other_clients: bool| {
            let mut upstream = Upstream::watch(&[]);
            let accepted = (0..clients).map(|port| socket_of("a:1", &format!("c:{port}"), 2 + port));
            let all: Vec<Socket> = [socket_of("a:1", "0:0", 1)].into_iter().chain(accepted).collect();
            upstream.look_at(&all, &(1..200).collect());
            let counted = Counted::default();
            Watched { upstream, requests: 100, accepted: 5, counted, has_other_clients }
                .accepted_per_request()
        };
        for (clients, ratio) in [(5, 0.0), (13, 0.0), (105, 1.0), (55, 0.5)] {
            assert_eq!(per_request(clients, false), Some((ratio, 100)), "{clients}");
        }
        assert_eq!(per_request(105, true), None);
    }

    #[test]
    fn a_process_without_upstream_has_none() {
        let mut upstream = Upstream::watch(&[]);
        upstream.look_at(&[socket_of("a:1", "0:0", 1), socket_of("a:1", "c:9", 2)], &[1, 2].into());
        assert_eq!(per_request(upstream, 60), None);
    }
}
