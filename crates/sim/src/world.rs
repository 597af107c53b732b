//! The simulated network: links between the gateway and its peers, with a clock, finite buffers and bytes in transit.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::time::{Duration, Instant};
use weir_reactor::{Interest, Key};
use weir_stats::rng::Rng;

/// State shared by the net and the peers.
#[derive(Debug)]
pub(crate) struct World {
    /// The instant of clock zero.
    pub(crate) base: Instant,
    /// The virtual clock.
    pub(crate) now: Duration,
    /// The duration that each turn reports as spent before any deferrable work.
    pub(crate) turn: Duration,
    /// All links, including closed ones; other fields refer to a link by its index.
    pub(crate) links: Vec<Link>,
    /// Links that at least one side has open, in order of creation.
    pub(crate) live: Vec<usize>,
    /// One listener per worker.
    pub(crate) listeners: Vec<Listening>,
    /// Links that the gateway opened and no origin has accepted yet.
    pub(crate) dialled: Vec<usize>,
    /// The gateway's connection attempts that the checks have not processed yet.
    pub(crate) attempts: Vec<usize>,
    /// Addresses at which origins refuse connections, with the end of the outage.
    pub(crate) dark: HashMap<[u8; 4], Duration>,
    /// The instant of the latest failed connection to each address.
    pub(crate) failed: HashMap<[u8; 4], Duration>,
    /// The configurations that renamed the listener, oldest first.
    pub(crate) renames: Vec<u32>,
    /// Counts events such as bytes, closes and messages; an unchanged count means that nothing happened.
    pub(crate) moves: u64,
    /// The network's faults.
    pub(crate) faults: Faults,
    /// The random numbers of the network.
    pub(crate) rng: Rng,
}

/// A worker's listener and clock.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    /// Links in the accept queue.
    pub(crate) backlog: VecDeque<usize>,
    /// The listener's key while the worker polls it.
    pub(crate) key: Option<Key>,
    /// The listener refuses new connections.
    pub(crate) refuses: bool,
    /// The instant of the worker's next timer.
    pub(crate) timer: Option<Duration>,
    /// Entries in the worker's timer wheel.
    pub(crate) timers: usize,
    /// The configuration that the worker uses.
    pub(crate) version: u32,
}

/// The network's faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Faults {
    /// Delays bytes, splits them at random and limits buffers. If false, everything is immediate.
    pub(crate) rough: bool,
    /// Allows buffers below 300 bytes. False if any side uses TLS: a handshake through such a small buffer would exceed
    /// its timeout.
    pub(crate) tiny: bool,
    /// Refused connections to origins, per thousand.
    pub(crate) refusals: u64,
    /// Connections for which the gateway has no free descriptor, per thousand.
    pub(crate) shortages: u64,
    /// Flips bits in transit, so that runs report violations even if the gateway is correct. This tests the checks.
    pub(crate) corrupts: bool,
}

/// One connection between the gateway and a peer.
#[derive(Debug)]
pub(crate) struct Link {
    /// Bytes towards the gateway.
    pub(crate) up: Pipe,
    /// Bytes from the gateway.
    pub(crate) down: Pipe,
    /// The gateway's view of the connection's state.
    pub(crate) state: State,
    /// The configuration with which the gateway accepted the connection.
    pub(crate) accepted: Option<u32>,
    /// The key and interest that the gateway polls for.
    pub(crate) watched: Option<(Key, Interest)>,
    /// The worker that owns the link or has it in its accept queue.
    pub(crate) worker: usize,
    /// The address that the gateway dialled; `None`: a client dialled the gateway.
    pub(crate) to: Option<[u8; 4]>,
    /// Bytes received from the peer when the gateway ended its stream or closed; `None` before that.
    pub(crate) heard: Option<usize>,
    /// The gateway ended its stream before closing.
    pub(crate) is_finished: bool,
    /// The gateway has closed its socket.
    pub(crate) gateway_gone: bool,
    /// The peer has closed its socket.
    pub(crate) peer_gone: bool,
    /// Closing the gateway's socket sends a reset.
    pub(crate) resets_on_close: bool,
    /// The peer's bytes arrive whole and without delay.
    pub(crate) is_calm: bool,
}

/// The gateway's view of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The connection is established at this instant.
    Connecting(Duration),
    /// The peer refuses the connection at this instant.
    Refusing(Duration),
    /// Established: bytes can flow.
    Established,
    /// The peer's reset arrives at this instant; the gateway has not read the error yet.
    Reset(Duration),
    /// Failed; the gateway has read the error.
    Failed,
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Pipe {
    /// Buffer size; bytes in transit count.
    pub(crate) capacity: usize,
    /// Bytes read so far.
    pub(crate) read: usize,
    flight: VecDeque<(Duration, Vec<u8>)>,
    /// Received pieces, each with the number of bytes read from it.
    arrived: VecDeque<(Vec<u8>, usize)>,
    /// The instant at which the end of the stream arrives; `None` before the sender ends it.
    end: Option<Duration>,
    /// The instant at which the sender's reset arrives; `None` without a reset.
    reset: Option<Duration>,
}

impl Pipe {
    fn new(capacity: usize) -> Self {
        Self { capacity, read: 0, flight: VecDeque::new(), arrived: VecDeque::new(), end: None, reset: None }
    }

    /// The free space in the buffer, in bytes.
    pub(crate) fn room(&self) -> usize {
        let used = self.arrived.iter().map(|(piece, read)| piece.len() - read).sum::<usize>()
            + self.flight.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        self.capacity.saturating_sub(used)
    }

    /// Whether the sender ended the stream.
    pub(crate) fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Whether the reader has read everything, including the end of the stream.
    pub(crate) fn is_read_out(&self, now: Duration) -> bool {
        self.is_empty() && self.end.is_some_and(|end| end <= now)
    }

    /// Whether a read would return bytes or the end of the stream.
    pub(crate) fn is_readable(&self, now: Duration) -> bool {
        !self.arrived.is_empty() || self.is_read_out(now)
    }

    /// Whether received bytes are unread.
    pub(crate) fn has_bytes(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// Whether no byte is in transit or unread.
    pub(crate) fn is_empty(&self) -> bool {
        self.arrived.is_empty() && self.flight.is_empty()
    }

    /// Whether a reset arrived.
    pub(crate) fn is_reset(&self, now: Duration) -> bool {
        self.reset.is_some_and(|reset| reset <= now)
    }

    /// The number of bytes received so far.
    fn heard(&self) -> usize {
        self.read + self.arrived.iter().map(|(piece, read)| piece.len() - read).sum::<usize>()
    }

    fn last_arrival(&self) -> Duration {
        self.flight.back().map_or(Duration::ZERO, |(at, _)| *at)
    }

    fn arrive(&mut self, now: Duration) {
        while self.flight.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, bytes)) = self.flight.pop_front() {
                self.arrived.push_back((bytes, 0));
            }
        }
    }

    fn next_arrival(&self, now: Duration) -> Option<Duration> {
        let flight = self.flight.front().map(|(at, _)| *at);
        [flight, self.end, self.reset].into_iter().flatten().filter(|at| *at > now).min()
    }

    /// Appends at most `most` received bytes to `into`, from one piece if `one_piece`.
    pub(crate) fn take(&mut self, mut most: usize, one_piece: bool, into: &mut Vec<u8>) {
        while let Some((piece, read)) = self.arrived.front_mut() {
            let count = (piece.len() - *read).min(most);
            into.extend_from_slice(&piece[*read..*read + count]);
            *read += count;
            self.read += count;
            most -= count;
            if *read < piece.len() {
                return;
            }
            self.arrived.pop_front();
            if one_piece {
                return;
            }
        }
    }
}

impl World {
    /// A network without connections.
    pub(crate) fn new(seed: u64, faults: Faults, workers: usize) -> Self {
        Self {
            base: Instant::now(),
            now: Duration::ZERO,
            turn: Duration::ZERO,
            links: Vec::new(),
            live: Vec::new(),
            listeners: (0..workers).map(|_| Listening::default()).collect(),
            dialled: Vec::new(),
            attempts: Vec::new(),
            dark: HashMap::new(),
            failed: HashMap::new(),
            renames: Vec::new(),
            moves: 0,
            faults,
            rng: Rng::new(seed),
        }
    }

    /// The current time, as the gateway's event loops read it.
    pub(crate) fn instant(&self) -> Instant {
        self.base + self.now
    }

    /// A random number below `below`, which must not be zero.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.rng.below(below as usize) as u64
    }

    /// Opens a client's connection to a random listening worker; `None` if every worker refuses.
    pub(crate) fn connect(&mut self) -> Option<usize> {
        let open: Vec<usize> =
            (0..self.listeners.len()).filter(|worker| !self.listeners[*worker].refuses).collect();
        let worker = match open[..] {
            [] => return None,
            [only] => only,
            _ => open[self.below(open.len() as u64) as usize],
        };
        Some(self.connect_to(worker))
    }

    /// Opens a client's connection to this worker.
    pub(crate) fn connect_to(&mut self, worker: usize) -> usize {
        let link = self.link(State::Established, worker, None);
        self.listeners[worker].backlog.push_back(link);
        self.moves += 1;
        link
    }

    /// Opens a worker's connection to an origin.
    pub(crate) fn dial(&mut self, worker: usize, to: [u8; 4]) -> usize {
        let at = self.now + self.delay();
        let is_dark = self.dark.get(&to).is_some_and(|until| self.now < *until);
        let refused = self.below(1000) < self.faults.refusals || is_dark;
        let state = if refused { State::Refusing(at) } else { State::Connecting(at) };
        let link = self.link(state, worker, Some(to));
        // A refused connection has no peer.
        self.links[link].peer_gone = refused;
        if !refused {
            self.dialled.push(link);
        }
        self.attempts.push(link);
        self.moves += 1;
        link
    }

    /// Takes a descriptor for another connection. Fails at random, as if no descriptor were free.
    pub(crate) fn descriptor(&mut self) -> io::Result<()> {
        let is_short = self.faults.shortages > 0 && self.below(1000) < self.faults.shortages;
        if !is_short {
            return Ok(());
        }
        // The worker retries after a timer; counting a move makes the driver read that timer.
        self.moves += 1;
        Err(rustix::io::Errno::MFILE.into())
    }

    fn link(&mut self, state: State, worker: usize, to: Option<[u8; 4]>) -> usize {
        let (up, down) = (self.capacity(), self.capacity());
        self.links.push(Link {
            up: Pipe::new(up),
            down: Pipe::new(down),
            state,
            accepted: None,
            watched: None,
            worker,
            to,
            heard: None,
            is_finished: false,
            gateway_gone: false,
            peer_gone: false,
            resets_on_close: false,
            is_calm: false,
        });
        let link = self.links.len() - 1;
        self.live.push(link);
        link
    }

    /// The links that at least one side has open.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Link> {
        self.live.iter().map(|link| &self.links[*link])
    }

    fn forget_dead(&mut self) {
        let links = &self.links;
        self.live.retain(|link| !(links[*link].gateway_gone && links[*link].peer_gone));
    }

    fn capacity(&mut self) -> usize {
        if !self.faults.rough {
            return 1 << 20;
        }
        match self.below(4) {
            0 if self.faults.tiny => 64 + self.below(200) as usize,
            1 => 200_000,
            _ => 100 + self.below(20_000) as usize,
        }
    }

    /// Returns a random transit delay on a rough network, else zero.
    pub(crate) fn delay(&mut self) -> Duration {
        if !self.faults.rough {
            return Duration::ZERO;
        }
        match self.below(8) {
            0..=3 => Duration::ZERO,
            4..=6 => Duration::from_micros(self.below(3000)),
            _ => Duration::from_millis(self.below(300)),
        }
    }

    /// Returns a random part of `most` on a rough network, else `most`; at least one, unless `most` is zero.
    pub(crate) fn piece(&mut self, most: usize) -> usize {
        if !self.faults.rough || most == 0 {
            return most;
        }
        match self.below(4) {
            0 => 1,
            1 => 1 + self.below(most as u64) as usize,
            _ => most,
        }
    }

    /// Makes the network deliver later bytes of the peer on this link whole and without delay.
    pub(crate) fn calm(&mut self, link: usize) {
        self.pipe(link, true).capacity = 1 << 22;
        self.links[link].is_calm = true;
    }

    /// Sends as many bytes as fit in the buffer, or on a rough network a random part of them; returns their number.
    pub(crate) fn send(&mut self, link: usize, upward: bool, bytes: &[u8]) -> usize {
        let room = self.pipe(link, upward).room();
        let calm = upward && self.links[link].is_calm;
        let count = if calm { bytes.len().min(room) } else { self.piece(bytes.len().min(room)) };
        if count == 0 {
            return 0;
        }
        let delay = if calm { Duration::ZERO } else { self.delay() };
        let at = (self.now + delay).max(self.pipe(link, upward).last_arrival());
        let mut bytes = bytes[..count].to_vec();
        if self.faults.corrupts && self.below(200) == 0 {
            let at = self.below(count as u64) as usize;
            bytes[at] ^= 1;
        }
        self.pipe(link, upward).flight.push_back((at, bytes));
        self.moves += 1;
        count
    }

    /// Ends a direction after its last byte.
    pub(crate) fn end(&mut self, link: usize, upward: bool) {
        let at = (self.now + self.delay()).max(self.pipe(link, upward).last_arrival());
        let pipe = self.pipe(link, upward);
        if pipe.reset.is_none() {
            pipe.end.get_or_insert(at);
        }
        if !upward {
            self.hears_no_more(link);
        }
        self.moves += 1;
    }

    /// Records that the gateway has sent its last byte, and will not respond to later requests.
    fn hears_no_more(&mut self, link: usize) {
        let link = &mut self.links[link];
        link.is_finished |= !link.gateway_gone;
        let heard = link.up.heard();
        link.heard.get_or_insert(heard);
    }

    /// Resets a connection from one side; bytes in transit in that direction are lost.
    pub(crate) fn reset(&mut self, link: usize, upward: bool) {
        let (now, at) = (self.now, self.now + self.delay());
        let pipe = self.pipe(link, upward);
        pipe.arrive(now);
        pipe.flight.clear();
        // The end of the stream followed the lost bytes, so it is lost, too.
        pipe.end = pipe.end.filter(|end| *end <= now);
        pipe.reset.get_or_insert(at);
        self.moves += 1;
    }

    /// Returns the direction of a link towards the gateway if `upward`, else the one from the gateway.
    pub(crate) fn pipe(&mut self, link: usize, upward: bool) -> &mut Pipe {
        let link = &mut self.links[link];
        if upward { &mut link.up } else { &mut link.down }
    }

    /// Delivers due bytes and resets.
    pub(crate) fn arrive(&mut self) {
        let now = self.now;
        for link in &self.live {
            let link = &mut self.links[*link];
            link.up.arrive(now);
            link.down.arrive(now);
            if link.up.is_reset(now) && !matches!(link.state, State::Reset(_) | State::Failed) {
                // As in the kernel, a reset discards unread bytes.
                link.up.arrived.clear();
                link.state = State::Reset(now);
            }
        }
    }

    /// The last configuration in which the listener still has the name that it had when the gateway accepted this
    /// connection; `None`: the current configuration.
    pub(crate) fn last_configuration(&self, link: usize) -> Option<u32> {
        let accepted = self.links[link].accepted?;
        self.renames.iter().find(|renamed| **renamed > accepted).map(|renamed| renamed - 1)
    }

    /// The oldest configuration that may forward a request sent now.
    pub(crate) fn oldest_configuration(&self, link: usize) -> u32 {
        let now = self.listeners[self.links[link].worker].version;
        self.last_configuration(link).map_or(now, |last| last.min(now))
    }

    /// The next instant at which bytes, an end or a connection event arrive.
    pub(crate) fn next_arrival(&self) -> Option<Duration> {
        self.live()
            .flat_map(|link| {
                let state = match link.state {
                    State::Connecting(at) | State::Refusing(at) | State::Reset(at) if at > self.now => {
                        Some(at)
                    }
                    _ => None,
                };
                [link.up.next_arrival(self.now), link.down.next_arrival(self.now), state]
            })
            .flatten()
            .min()
    }

    /// Closes the gateway's socket.
    pub(crate) fn close_gateway(&mut self, link: usize) {
        self.links[link].gateway_gone = true;
        self.hears_no_more(link);
        let this = &mut self.links[link];
        this.watched = None;
        let unread = this.up.has_bytes() || !this.up.flight.is_empty();
        if this.resets_on_close || unread || matches!(this.state, State::Connecting(_)) {
            self.reset(link, false);
        } else if !this.down.is_ended() {
            self.end(link, false);
        }
        self.forget_dead();
        self.moves += 1;
    }

    /// Closes a peer's socket.
    pub(crate) fn close_peer(&mut self, link: usize) {
        let this = &mut self.links[link];
        this.peer_gone = true;
        let unread = this.down.has_bytes() || !this.down.flight.is_empty();
        if unread {
            self.reset(link, true);
        } else if !this.up.is_ended() {
            self.end(link, true);
        }
        self.forget_dead();
        self.moves += 1;
    }
}
