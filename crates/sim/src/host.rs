//! A gateway with single clients, driven step by step, to test rules that apply to connections rather than exchanges.
//! The gateway generates all responses, or forwards to one server with a limit of one connection.

use crate::net::{SimListener, SimNet};
use crate::peer::Peer;
use crate::setting::origin;
use crate::tls;
use crate::world::{Faults, World};
use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;
use weir_gateway::document::{Limits, Listener, Respond, Route, Server, Service};
use weir_gateway::harness::{Bound, LeakCheck, Role, WorkerHarness};
use weir_gateway::{Config, Counters, Timeouts};

/// The workers of a gateway with one route, over a network without delays.
#[derive(Debug)]
pub struct Host {
    world: Rc<RefCell<World>>,
    workers: Vec<WorkerHarness<SimNet>>,
    clients: Vec<Client>,
    messages: u64,
    holds_mail: bool,
    /// Connections to the server, with the bytes received on each.
    servers: Vec<(usize, Vec<u8>)>,
}

/// One connection of a client.
#[derive(Debug)]
struct Client {
    peer: Peer,
    reads: bool,
}

impl Host {
    /// Starts workers that respond with 200 to each request; `over_tls`: clients start with a handshake.
    #[must_use]
    pub fn new(workers: usize, limits: Limits, timeouts: Timeouts, over_tls: bool) -> Self {
        Self::responding(workers, None, limits, timeouts, over_tls)
    }

    /// Starts one worker without TLS that responds to each request with `body`.
    #[must_use]
    pub fn with_body(body: String) -> Self {
        Self::responding(1, Some(body), Limits::default(), Timeouts::default(), false)
    }

    fn responding(
        workers: usize,
        body: Option<String>,
        limits: Limits,
        timeouts: Timeouts,
        over_tls: bool,
    ) -> Self {
        let respond = Some(Respond { status: 200, body, content_type: None });
        let route = Route { respond, ..Route::default() };
        let config = Config { routes: vec![route], limits, timeouts, ..Config::default() };
        Self::of(workers, config, over_tls)
    }

    /// Starts workers that forward each request to one server, over at most one connection.
    #[must_use]
    pub fn with_server(workers: usize, timeouts: Timeouts) -> Self {
        let url = format!("http://{}:80", Ipv4Addr::from(origin(0, 0)));
        let server = Server::new(url.parse().expect("a valid URL"));
        let service = Service { max_connections: Some(1), ..Service::new(vec![server]) };
        let config = Config {
            services: [("app".to_owned(), service)].into(),
            routes: vec![Route { service: Some("app".into()), ..Route::default() }],
            timeouts,
            ..Config::default()
        };
        Self::of(workers, config, false)
    }

    fn of(workers: usize, config: Config, over_tls: bool) -> Self {
        let faults = Faults { rough: false, tiny: false, refusals: 0, shortages: 0, corrupts: false };
        let world = Rc::new(RefCell::new(World::new(0, faults, workers)));
        let parts =
            (0..workers).map(|nth| (SimNet::new(Rc::clone(&world), nth), vec![SimListener])).collect();
        let bound = bound(config, over_tls);
        let workers = WorkerHarness::several(parts, &bound).expect("there are some descriptors");
        Self { world, workers, clients: Vec::new(), messages: 0, holds_mail: false, servers: Vec::new() }
    }

    /// Connects a client to a worker; returns the client's number. Over TLS, the next turn sends a ClientHello.
    pub fn connect(&mut self, worker: usize, over_tls: bool) -> usize {
        let link = self.world.borrow_mut().connect_to(worker);
        let session = over_tls.then(|| tls::client_session(false));
        self.clients.push(Client { peer: Peer::new(link, session), reads: true });
        self.clients.len() - 1
    }

    /// Sends application bytes from a client.
    pub fn say(&mut self, client: usize, bytes: &[u8]) {
        self.clients[client].peer.say(bytes);
    }

    /// Sends raw bytes from a client, even before its handshake is complete.
    pub fn send(&mut self, client: usize, bytes: &[u8]) {
        self.clients[client].peer.announce(bytes);
    }

    /// Whether the gateway polls a client's connection for reading.
    #[must_use]
    pub fn is_read(&self, client: usize) -> bool {
        let link = &self.world.borrow().links[self.clients[client].peer.link];
        link.watched.is_some_and(|(_, interest)| interest.read)
    }

    /// Limits the buffer for bytes to a client.
    pub fn narrow(&mut self, client: usize, bytes: usize) {
        self.world.borrow_mut().pipe(self.clients[client].peer.link, false).capacity = bytes;
    }

    /// Makes a client read or stop reading.
    pub fn read(&mut self, client: usize, reads: bool) {
        self.clients[client].reads = reads;
    }

    /// Takes the bytes that a client received.
    pub fn take(&mut self, client: usize) -> Vec<u8> {
        std::mem::take(&mut self.clients[client].peer.input)
    }

    /// Whether the gateway closed a client's connection.
    #[must_use]
    pub fn has_ended(&self, client: usize) -> bool {
        self.clients[client].peer.ended.is_some()
    }

    /// Whether a client has sent all its bytes, including its handshake.
    #[must_use]
    pub fn has_said_all(&self, client: usize) -> bool {
        self.clients[client].peer.is_flushed()
    }

    /// Closes a client's connection.
    pub fn leave(&mut self, client: usize) {
        self.world.borrow_mut().close_peer(self.clients[client].peer.link);
    }

    /// Resets a client's connection.
    pub fn reset(&mut self, client: usize) {
        let link = self.clients[client].peer.link;
        let mut world = self.world.borrow_mut();
        world.reset(link, true);
        world.links[link].peer_gone = true;
    }

    /// Makes each later turn report this much time as spent before any deferrable work.
    pub fn lengthen_turns(&mut self, time: Duration) {
        self.world.borrow_mut().turn = time;
    }

    /// Holds messages between workers if `holds`, else releases them.
    pub fn hold_letters(&mut self, holds: bool) {
        self.holds_mail = holds;
    }

    /// Runs one turn: delivers the bytes of these clients, then each worker runs a turn and receives its messages.
    pub fn turn(&mut self, clients: impl IntoIterator<Item = usize>) {
        let mut world = self.world.borrow_mut();
        for client in clients {
            let Client { peer, reads } = &mut self.clients[client];
            if !world.links[peer.link].peer_gone {
                peer.poll(&mut world, *reads);
            }
        }
        self.servers.extend(std::mem::take(&mut world.dialled).into_iter().map(|link| (link, Vec::new())));
        for (link, got) in &mut self.servers {
            world.pipe(*link, false).take(usize::MAX, false, got);
            if got.ends_with(b"\r\n\r\n") {
                got.clear();
                world.send(*link, true, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        }
        world.arrive();
        drop(world);
        for worker in 0..self.workers.len() {
            self.workers[worker].turn().expect("nothing here can fail");
            for to in (0..self.workers.len()).filter(|_| !self.holds_mail) {
                for message in self.workers[to].messages() {
                    self.messages += 1;
                    self.workers[to].receive(message);
                }
            }
        }
    }

    /// Runs turns until nothing happens; returns their number.
    pub fn settle(&mut self) -> usize {
        let mut still = 0;
        for turn in 0..MOST_TURNS {
            let before = self.world.borrow().moves;
            self.turn(0..self.clients.len());
            // A pause in accepting ends in one turn, the next one reports the listener, and the third exposes the next
            // timer.
            still = if self.world.borrow().moves == before { still + 1 } else { 0 };
            if still == 3 {
                return turn;
            }
        }
        panic!("the gateway turns without an end");
    }

    /// Advances the clock, and fires all timers that become due.
    pub fn pass(&mut self, time: Duration) {
        let end = self.world.borrow().now + time;
        for _ in 0..MOST_TURNS {
            let mut world = self.world.borrow_mut();
            let timers = world.listeners.iter().filter_map(|listener| listener.timer);
            let next = timers.min().map_or(end, |next| next.min(end));
            world.now = world.now.max(next);
            drop(world);
            self.settle();
            if next >= end {
                return;
            }
        }
        panic!("timers come without an end");
    }

    /// Advances the clock without a turn.
    pub fn tick(&mut self, time: Duration) {
        self.world.borrow_mut().now += time;
    }

    /// The number of messages between workers so far.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// The numbers of connections, exchanges and queued requests that a worker keeps.
    #[must_use]
    pub fn leak_check(&self, worker: usize) -> LeakCheck {
        self.workers[worker].leak_check()
    }

    /// The bytes of incomplete heads that a worker has parsed, counted again at each attempt.
    #[must_use]
    pub fn parsed_in_vain(&self, worker: usize) -> u64 {
        self.workers[worker].parsed_in_vain()
    }

    /// A worker's counters.
    #[must_use]
    pub fn counters(&self, worker: usize) -> &Counters {
        self.workers[worker].counters()
    }
}

fn bound(config: Config, over_tls: bool) -> Bound {
    let listener = Listener::new(vec!["192.0.2.1:443".parse().expect("a valid address")]);
    let listeners = [("web".to_owned(), listener)].into();
    let server = over_tls.then(|| tls::server().clone());
    let config = Config { workers: Some(1), listeners, ..config };
    Bound::new(Role::Gateway, &config, server, None).expect("a valid configuration")
}

/// The maximum number of turns per call, far more than a test needs.
const MOST_TURNS: usize = 10_000;
