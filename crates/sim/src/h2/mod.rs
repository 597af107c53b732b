//! An HTTP/2 client of the gateway: concurrent requests on one connection, with faults on each stream.

mod behaviour;
pub(crate) mod padding;
mod read;
mod send;
mod stream;
pub(crate) mod wire;

pub(crate) use behaviour::Behaviour;

use crate::client::Way;
use crate::ledger::{Ledger, Outcome};
use crate::message::Ask;
use crate::peer::{End, Peer};
use crate::world::World;
use behaviour::Vanish;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use stream::Stream;
use weir_http2::{Budgets, Config, Connection, ErrorCode, Head, PREFACE, Role, Settings, frame};
use wire::Wire;

/// One client on one connection.
#[derive(Debug)]
pub(crate) struct H2Client {
    peer: Peer,
    connection: Connection,
    head: Head,
    wire: Wire,
    /// Requests not sent yet.
    asks: VecDeque<Ask>,
    /// The number of requests sent.
    asked: u64,
    streams: Vec<Stream>,
    /// Credit that the client gives now or later.
    credits: Vec<Credit>,
    /// Received bytes that the client has not credited to the connection, if its window is narrow.
    owed: u32,
    behaviour: Behaviour,
    way: Way,
    phase: Phase,
    /// The number of cleartext bytes sent so far.
    said: usize,
    /// Frames to send.
    out: Vec<u8>,
    /// Received bytes that [`Wire`] has observed.
    observed: usize,
    /// The client does not read before this instant.
    wake: Duration,
    /// The client sends no request before this instant.
    asks_again: Duration,
    /// The client sends no frame without effect before this instant.
    fidgets_again: Duration,
    /// A GOAWAY was sent or received: the client must not open streams.
    is_closing: bool,
    /// The gateway has read all the client's bytes.
    has_pong: bool,
    /// The client has become idle, and the checks have not processed this yet.
    is_idle: bool,
    /// The client has closed its connection.
    pub(crate) is_done: bool,
}

/// The state of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Asking,
    /// All streams have ended; a PING shows when the gateway has read all bytes.
    Pinging,
    /// The client has ended its stream, and waits for the gateway to do the same.
    Leaving,
    /// The client has given up, and only waits for the end of the connection.
    Gone,
}

/// Received bytes to be credited on a stream, or on the connection (stream 0).
#[derive(Clone, Copy, Debug)]
struct Credit {
    at: Duration,
    stream: u32,
    bytes: u32,
}

impl H2Client {
    /// A client with these requests to send.
    pub(crate) fn new(peer: Peer, asks: VecDeque<Ask>, behaviour: Behaviour, way: Way) -> Self {
        let usual = Config::default();
        let settings = Settings { max_concurrent_streams: None, ..usual.settings };
        // `Wire` checks the windows, which may change during the connection, so the protocol state allows any amount.
        let roomy = Settings { initial_window_size: wire::ANY_STREAM, ..settings };
        // An origin that sends single bytes makes the gateway send small frames, so the client accepts any number of
        // these.
        let budgets = Budgets { empty_data: u32::MAX, ..usual.budgets };
        let mut connection = Connection::new(Role::Client, Config { settings: roomy, budgets, ..usual });
        let (mut out, mut wire) = (Vec::new(), Wire::new());
        connection.settle(&mut out);
        out.truncate(PREFACE.len());
        Settings { initial_window_size: behaviour.window, ..settings }.write(&mut out);
        wire.resizes(behaviour.window);
        if !behaviour.has_narrow_connection {
            let update = wire::ANY_STREAM - wire::INITIAL_WINDOW;
            frame::write_window_update(0, update, &mut out);
            wire.gives(0, update);
        }
        Self {
            peer,
            connection,
            head: Head::new(),
            wire,
            asks,
            asked: 0,
            streams: Vec::new(),
            credits: Vec::new(),
            owed: 0,
            behaviour,
            said: way.preface,
            way,
            phase: Phase::Asking,
            out,
            observed: 0,
            wake: Duration::ZERO,
            asks_again: Duration::ZERO,
            fidgets_again: Duration::ZERO,
            is_closing: false,
            has_pong: false,
            is_idle: false,
            is_done: false,
        }
    }

    /// The unsent requests, for another connection.
    pub(crate) fn into_rest(self) -> VecDeque<Ask> {
        self.asks
    }

    /// The instants at which the client acts on its own.
    pub(crate) fn wakes(&self) -> Vec<Duration> {
        let continues = self.streams.iter().filter_map(Stream::wakes);
        let credits = self.credits.iter().map(|credit| credit.at);
        continues.chain(credits).chain([self.wake, self.asks_again]).collect()
    }

    /// The address of a client that has become idle, as known to the gateway; reported once.
    pub(crate) fn take_idle(&mut self) -> Option<SocketAddr> {
        std::mem::take(&mut self.is_idle).then_some(self.way.source).flatten()
    }

    /// Sends and receives as much as possible now.
    pub(crate) fn poll(&mut self, world: &mut World, ledger: &mut Ledger) {
        if self.is_done {
            return;
        }
        let reads = world.now >= self.wake;
        if reads && let Some(wake) = self.behaviour.pause(!self.streams.is_empty(), world) {
            self.wake = wake;
        }
        self.peer.poll(world, reads);
        match self.phase {
            Phase::Gone => self.peer.input.clear(),
            _ => self.read(world, ledger),
        }
        if self.vanishes(world, ledger) {
            return;
        }
        if let Some(end) = self.peer.ended {
            return self.ended(end, world, ledger);
        }
        if self.phase != Phase::Gone {
            self.reset_some(ledger);
            self.say_without_effect(world);
            self.ask(world, ledger);
            self.send_bodies(world);
            self.give_credit(world);
            self.leave(world);
            self.say();
        }
        self.peer.poll(world, false);
    }

    /// Leaves after the last stream: sends a PING to learn whether the gateway has read everything, then ends its
    /// stream.
    fn leave(&mut self, world: &mut World) {
        let is_over = self.asks.is_empty() || self.is_closing;
        if self.phase == Phase::Asking && is_over && self.streams.is_empty() {
            self.phase = Phase::Pinging;
            self.connection.ping();
        }
        if self.phase == Phase::Pinging && self.has_pong {
            self.phase = Phase::Leaving;
            if world.below(2) == 0 {
                self.connection.go_away();
            }
        }
    }

    /// Queues all frames for sending; a leaving client then ends its stream.
    fn say(&mut self) {
        self.connection.settle(&mut self.out);
        self.said += self.out.len();
        self.peer.say(&self.out);
        self.out.clear();
        if self.phase == Phase::Leaving {
            self.peer.finish();
        }
    }

    /// Resets the streams that are due.
    fn reset_some(&mut self, ledger: &mut Ledger) {
        for stream in &mut self.streams {
            if let Some(polls) = &mut stream.resets_after {
                *polls = polls.saturating_sub(1);
            }
        }
        let is_due = |stream: &mut Stream| stream.resets_after == Some(0);
        for stream in self.streams.extract_if(.., is_due) {
            ledger.note(|| format!("client {} resets #{}", self.peer.link, stream.id));
            self.connection.reset(stream.no, ErrorCode::CANCEL);
            self.connection.release(stream.no);
            if !stream.has_ended {
                ledger.outcome(stream.id, Outcome::Forgone);
            }
        }
    }

    fn vanishes(&mut self, world: &mut World, ledger: &mut Ledger) -> bool {
        match &mut self.behaviour.vanishes {
            None => return false,
            Some((0, _)) => {}
            Some((polls, _)) => {
                *polls -= 1;
                return false;
            }
        }
        let Some((_, way)) = self.behaviour.vanishes.take() else { return false };
        ledger.note(|| format!("client {} vanishes: {way:?}", self.peer.link));
        for stream in std::mem::take(&mut self.streams) {
            if !stream.has_ended {
                ledger.outcome(stream.id, Outcome::Forgone);
            }
        }
        if way == Vanish::End {
            self.say();
            self.phase = Phase::Gone;
            self.peer.finish();
            return false;
        }
        if way == Vanish::Reset {
            world.reset(self.peer.link, true);
        }
        world.close_peer(self.peer.link);
        self.is_done = true;
        true
    }

    fn ended(&mut self, end: End, world: &mut World, ledger: &mut Ledger) {
        ledger.note(|| format!("client {} sees its connection end: {end:?}", self.peer.link));
        for stream in std::mem::take(&mut self.streams) {
            if !stream.has_ended {
                ledger.outcome(stream.id, Outcome::Lost);
            }
        }
        world.close_peer(self.peer.link);
        self.is_done = true;
    }
}
