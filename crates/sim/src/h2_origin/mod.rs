//! An HTTP/2 origin: concurrent requests on one connection, responses in any order, and faults.

mod behaviour;
mod control;
mod faults;
mod read;
mod respond;
mod stream;
#[cfg(test)]
mod tests;

use crate::h2::wire::{ANY_STREAM, INITIAL_WINDOW, Wire};
use crate::ledger::Ledger;
use crate::origin::Site;
use crate::peer::{End, Peer};
use crate::plan::Plan;
use crate::world::World;
use behaviour::{Behaviour, Tunnels};
use std::time::Duration;
use stream::Stream;
use weir_http2::{Budgets, Config, Connection, Head, Role, Settings, frame};

/// One connection from the gateway.
#[derive(Debug)]
pub(crate) struct H2Origin {
    peer: Peer,
    site: Site,
    behaviour: Behaviour,
    connection: Connection,
    head: Head,
    wire: Wire,
    state: State,
    /// The number of requests received.
    requests: u64,
    /// The highest stream that has received a response or was reset without one.
    processed: u32,
    streams: Vec<Stream>,
    /// Credit that the origin gives now or later.
    credits: Vec<Credit>,
    /// Received bytes that the origin has credited or will credit to the connection, if its window is narrow.
    credited: u64,
    /// The size of streams' windows in the latest SETTINGS.
    window: u32,
    /// The limit of concurrent streams in each SETTINGS frame sent; `None`: no limit.
    limits: Vec<Option<u32>>,
    /// The number of SETTINGS frames up to and including the first one that allows tunnels; `None` before that one is
    /// sent.
    takes_tunnels_from: Option<usize>,
    /// Frames to send.
    out: Vec<u8>,
    /// The number of cleartext bytes sent so far.
    said: usize,
    /// The origin does nothing before this instant.
    wake: Duration,
    /// The origin sends no frame without effect before this instant.
    fidgets_again: Duration,
    /// The origin has violated a rule, so the gateway may close the connection.
    has_broken_rules: bool,
    /// The origin resets the connection with the next frames.
    aborts: bool,
    /// The origin has closed its connection.
    pub(crate) is_done: bool,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// GOAWAY was sent in two steps.
    Draining,
    /// GOAWAY with this last stream was sent, regardless of open streams.
    Cut(u32),
    /// The origin has ended its stream, and discards input until the gateway has done the same: closing a connection
    /// with unread bytes would reset it and lose the last responses.
    Lingering,
    /// The origin ends its stream, and then closes the connection.
    Closing,
}

/// Received bytes to be credited on a stream, or on the connection (0).
#[derive(Clone, Copy, Debug)]
struct Credit {
    at: Duration,
    stream: u32,
    bytes: u32,
}

impl H2Origin {
    /// An origin's side of a connection.
    pub(crate) fn new(peer: Peer, site: Site, plan: &Plan, world: &mut World) -> Self {
        let behaviour = Behaviour::by_chance(plan, world);
        Self::with(peer, site, behaviour)
    }

    fn with(peer: Peer, site: Site, behaviour: Behaviour) -> Self {
        let usual = Config::default();
        // A server must not announce that it may push; `write` omits `true`, the initial value.
        let settings = Settings { enable_push: true, max_concurrent_streams: None, ..usual.settings };
        // `Wire` checks the windows, which may change during the connection, and `count` checks the number of streams,
        // so the protocol state limits neither.
        let roomy = Settings { initial_window_size: ANY_STREAM, enable_connect_protocol: true, ..settings };
        // Clients that send single bytes make the gateway send small frames, so the origin accepts any number of these.
        let budgets = Budgets { empty_data: u32::MAX, ..usual.budgets };
        let mut connection = Connection::new(Role::Server, Config { settings: roomy, budgets, ..usual });
        let (mut out, mut wire) = (Vec::new(), Wire::of_client());
        connection.settle(&mut out);
        out.clear();
        let Behaviour { most_streams, window, tunnels, .. } = behaviour;
        let takes_tunnels = tunnels == Tunnels::Taken;
        let own = Settings { initial_window_size: window, max_concurrent_streams: most_streams, ..settings };
        Settings { enable_connect_protocol: takes_tunnels, ..own }.write(&mut out);
        wire.resizes(window);
        if !behaviour.has_narrow_connection {
            let update = ANY_STREAM - INITIAL_WINDOW;
            frame::write_window_update(0, update, &mut out);
            wire.gives(0, update);
        }
        Self {
            peer,
            site,
            behaviour,
            connection,
            head: Head::new(),
            wire,
            state: State::Open,
            requests: 0,
            processed: 0,
            streams: Vec::new(),
            credits: Vec::new(),
            credited: 0,
            window,
            limits: vec![most_streams],
            takes_tunnels_from: takes_tunnels.then_some(1),
            out,
            said: 0,
            wake: Duration::ZERO,
            fidgets_again: Duration::ZERO,
            has_broken_rules: false,
            aborts: false,
            is_done: false,
        }
    }

    /// The instants at which the origin acts on its own.
    pub(crate) fn wakes(&self) -> Vec<Duration> {
        if self.is_done {
            return Vec::new();
        }
        let responses = self.streams.iter().filter_map(Stream::wakes);
        let credits = self.credits.iter().map(|credit| credit.at);
        let own = [self.behaviour.speaks_at, self.wake].into_iter().chain(self.behaviour.idle_until);
        responses.chain(credits).chain(own).collect()
    }

    /// The connection's link.
    pub(crate) fn link(&self) -> usize {
        self.peer.link
    }

    /// Whether no frame to the gateway is in transit.
    pub(crate) fn is_quiet(&self, world: &World) -> bool {
        self.peer.is_flushed() && world.links[self.peer.link].up.is_empty()
    }

    /// Resets the connection, since the server has an outage.
    pub(crate) fn goes_dark(&mut self, world: &mut World) {
        if !self.is_done {
            world.reset(self.peer.link, true);
            self.leave(world);
        }
    }

    /// Sends and receives as much as possible now.
    pub(crate) fn poll(&mut self, world: &mut World, ledger: &mut Ledger) {
        if self.is_done {
            return;
        }
        let reads = world.now >= self.wake;
        self.peer.poll(world, reads);
        if reads && self.is_ending() {
            self.peer.input.clear();
        } else if reads {
            self.read(world, ledger);
            self.respond(world, ledger);
            self.shrink(world, ledger);
            self.take_tunnels(ledger);
            self.say_without_effect(world);
            self.give_credit(world);
            self.end(world, ledger);
        }
        self.say(world);
        self.peer.poll(world, false);
        if self.aborts {
            ledger.note(|| format!("origin {} resets its connection", self.peer.link));
            world.reset(self.peer.link, true);
            return self.leave(world);
        }
        let has_ended = self.state == State::Closing
            && self.peer.is_flushed()
            && world.pipe(self.peer.link, true).is_ended();
        if has_ended || self.peer.ended.is_some_and(|end| end != End::Clean || self.peer.is_flushed()) {
            self.leave(world);
        }
    }

    /// The limit of concurrent streams in the latest SETTINGS.
    fn limit(&self) -> Option<u32> {
        self.limits.last().copied().flatten()
    }

    /// Starts to close the connection after enough requests or time, and closes it after the last response.
    fn end(&mut self, world: &mut World, ledger: &mut Ledger) {
        let is_idle = self.streams.is_empty() && self.peer.is_flushed();
        if self.state == State::Open
            && self.behaviour.goes_away_after.is_some_and(|most| self.requests >= most)
        {
            ledger.note(|| format!("origin {} goes away", self.peer.link));
            self.connection.go_away();
            self.state = State::Draining;
        }
        let is_open = self.state == State::Open;
        if is_open && is_idle && self.behaviour.idle_until.is_some_and(|until| until <= world.now) {
            self.behaviour.idle_until = None;
            let is_announced = world.below(2) == 0;
            ledger.note(|| format!("origin {} ends an idle connection: {is_announced}", self.peer.link));
            self.state = match is_announced {
                true => State::Lingering,
                false => State::Closing,
            };
            if is_announced {
                self.connection.close();
            }
        }
        let is_drained = match self.state {
            State::Draining => self.connection.is_drained(),
            State::Cut(_) => true,
            State::Open | State::Lingering | State::Closing => false,
        };
        if is_idle && is_drained {
            self.state = State::Lingering;
        }
    }

    /// Queues all frames for sending, once the origin may speak; an ending origin then ends its stream.
    fn say(&mut self, world: &mut World) {
        self.settle();
        if world.now < self.behaviour.speaks_at || world.now < self.wake {
            return;
        }
        self.said += self.out.len();
        self.peer.say(&self.out);
        self.out.clear();
        if self.is_ending() {
            self.peer.finish();
        }
    }

    /// Whether the origin has stopped reading and sending frames.
    fn is_ending(&self) -> bool {
        matches!(self.state, State::Lingering | State::Closing)
    }

    /// Ends the stream after all queued frames.
    fn close(&mut self) {
        self.state = State::Closing;
    }

    fn leave(&mut self, world: &mut World) {
        world.close_peer(self.peer.link);
        self.is_done = true;
    }
}
