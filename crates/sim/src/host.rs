//! Gateways that answer everything themselves, and their guests, step by step: for rules about connections rather than exchanges.

use crate::net::{SimListener, SimNet};
use crate::peer::Peer;
use crate::tls;
use crate::world::{Weather, World};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use weir_gateway::bare::{Bare, Bound, Census, Role};
use weir_gateway::document::{Limits, Listener, Respond, Route};
use weir_gateway::{Config, Counters, Timeouts};

/// The workers of a gateway whose only route says 200, over a network on which everything is at once.
#[derive(Debug)]
pub struct Host {
    world: Rc<RefCell<World>>,
    workers: Vec<Bare<SimNet>>,
    guests: Vec<Guest>,
    letters: u64,
}

/// One connection of a client.
#[derive(Debug)]
struct Guest {
    peer: Peer,
    reads: bool,
}

impl Host {
    /// So many workers, with these settings; `over_tls`: clients begin with a handshake.
    #[must_use]
    pub fn new(workers: usize, limits: Limits, timeouts: Timeouts, over_tls: bool) -> Self {
        let weather = Weather { rough: false, tiny: false, refusals: 0, shortages: 0, corrupts: false };
        let world = Rc::new(RefCell::new(World::new(0, weather, workers)));
        let parts =
            (0..workers).map(|nth| (SimNet::new(Rc::clone(&world), nth), vec![SimListener])).collect();
        let bound = bound(limits, timeouts, over_tls);
        let workers = Bare::several(parts, &bound).expect("there are some descriptors");
        Self { world, workers, guests: Vec::new(), letters: 0 }
    }

    /// A client connects to a worker; returns its number. It says nothing in the clear, and its first message over TLS.
    pub fn connect(&mut self, worker: usize, over_tls: bool) -> usize {
        let link = self.world.borrow_mut().connect_to(worker);
        let session = over_tls.then(|| tls::client_session(false));
        self.guests.push(Guest { peer: Peer::new(link, session), reads: true });
        self.guests.len() - 1
    }

    /// A client says something.
    pub fn say(&mut self, guest: usize, bytes: &[u8]) {
        self.guests[guest].peer.say(bytes);
    }

    /// A client sends bytes as they are, also before its handshake is done.
    pub fn send(&mut self, guest: usize, bytes: &[u8]) {
        self.guests[guest].peer.announce(bytes);
    }

    /// Whether the gateway wants to hear of bytes that a client sends.
    #[must_use]
    pub fn is_read(&self, guest: usize) -> bool {
        let link = &self.world.borrow().links[self.guests[guest].peer.link];
        link.watched.is_some_and(|(_, interest)| interest.read)
    }

    /// So many bytes for a client fit on their way.
    pub fn narrow(&mut self, guest: usize, bytes: usize) {
        self.world.borrow_mut().pipe(self.guests[guest].peer.link, false).capacity = bytes;
    }

    /// From now on a client reads, or does not.
    pub fn read(&mut self, guest: usize, reads: bool) {
        self.guests[guest].reads = reads;
    }

    /// Takes what a client has got.
    pub fn take(&mut self, guest: usize) -> Vec<u8> {
        std::mem::take(&mut self.guests[guest].peer.input)
    }

    /// Whether the gateway has ended a client's connection.
    #[must_use]
    pub fn has_ended(&self, guest: usize) -> bool {
        self.guests[guest].peer.ended.is_some()
    }

    /// Whether all that a client says has left it, its part of a handshake before that.
    #[must_use]
    pub fn has_said_all(&self, guest: usize) -> bool {
        self.guests[guest].peer.is_flushed()
    }

    /// A client closes its connection.
    pub fn leave(&mut self, guest: usize) {
        self.world.borrow_mut().close_peer(self.guests[guest].peer.link);
    }

    /// One turn: what these clients have to say arrives, and each worker turns and gets its mail.
    pub fn turn(&mut self, guests: impl IntoIterator<Item = usize>) {
        let mut world = self.world.borrow_mut();
        for guest in guests {
            let Guest { peer, reads } = &mut self.guests[guest];
            if !world.links[peer.link].peer_gone {
                peer.poll(&mut world, *reads);
            }
        }
        world.arrive();
        drop(world);
        for worker in 0..self.workers.len() {
            self.workers[worker].turn().expect("nothing here can fail");
            for to in 0..self.workers.len() {
                for letter in self.workers[to].letters() {
                    self.letters += 1;
                    self.workers[to].receive(letter);
                }
            }
        }
    }

    /// Turns until nothing moves; returns how many turns that took.
    pub fn settle(&mut self) -> usize {
        let mut still = 0;
        for turn in 0..MOST_TURNS {
            let before = self.world.borrow().moves;
            self.turn(0..self.guests.len());
            // A rest ends in one turn, the listener is reported in the next one, and the net learns of the next rest in the third.
            still = if self.world.borrow().moves == before { still + 1 } else { 0 };
            if still == 3 {
                return turn;
            }
        }
        panic!("the gateway turns without an end");
    }

    /// Time passes, with all timers in it.
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

    /// The clock goes on, and nobody looks at it yet.
    pub fn tick(&mut self, time: Duration) {
        self.world.borrow_mut().now += time;
    }

    /// Letters between workers so far.
    #[must_use]
    pub fn letters(&self) -> u64 {
        self.letters
    }

    /// What lives in a worker.
    #[must_use]
    pub fn census(&self, worker: usize) -> Census {
        self.workers[worker].census()
    }

    /// Bytes of heads that a worker has parsed in vain, counted each time.
    #[must_use]
    pub fn parsed_in_vain(&self, worker: usize) -> u64 {
        self.workers[worker].parsed_in_vain()
    }

    /// What a worker has counted.
    #[must_use]
    pub fn counters(&self, worker: usize) -> &Counters {
        self.workers[worker].counters()
    }
}

fn bound(limits: Limits, timeouts: Timeouts, over_tls: bool) -> Bound {
    let listener = Listener::new(vec!["192.0.2.1:443".parse().expect("a valid address")]);
    let respond = Some(Respond { status: 200, body: None, content_type: None });
    let config = Config {
        workers: Some(1),
        listeners: [("web".to_owned(), listener)].into(),
        routes: vec![Route { respond, ..Route::default() }],
        limits,
        timeouts,
        ..Config::default()
    };
    let server = over_tls.then(|| tls::server().clone());
    Bound::new(Role::Gateway, &config, server, None).expect("a valid configuration")
}

/// More than anything here takes.
const MOST_TURNS: usize = 10_000;
