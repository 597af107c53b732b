//! The simulated network: links between the gateway and its peers, with a clock, buffers that fill and bytes on their way.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::time::{Duration, Instant};
use weir_reactor::{Interest, Key};
use weir_stats::rng::Rng;

/// Everything that the net and the peers share.
#[derive(Debug)]
pub(crate) struct World {
    /// The instant at which the clock shows zero.
    pub(crate) base: Instant,
    /// The clock.
    pub(crate) now: Duration,
    /// What a turn takes without anything that may wait for the next.
    pub(crate) turn: Duration,
    /// All links, dead ones too: the index is a link's name.
    pub(crate) links: Vec<Link>,
    /// Those that not both ends have closed, in their order.
    pub(crate) live: Vec<usize>,
    /// The listeners, one of each worker.
    pub(crate) listeners: Vec<Listening>,
    /// Links that the gateway opened and no origin has taken.
    pub(crate) dialled: Vec<usize>,
    /// Links that the gateway has tried to open and nobody has judged.
    pub(crate) attempts: Vec<usize>,
    /// Origins at these addresses refuse connections until then.
    pub(crate) dark: HashMap<[u8; 4], Duration>,
    /// When a connection to the address has failed last.
    pub(crate) failed: HashMap<[u8; 4], Duration>,
    /// Bytes and ends that have moved: whether anything happens at all.
    pub(crate) moves: u64,
    /// How the network misbehaves.
    pub(crate) weather: Weather,
    /// All chance in the network.
    pub(crate) rng: Rng,
}

/// A worker's listener and clock.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    /// Links that were not accepted yet.
    pub(crate) backlog: VecDeque<usize>,
    /// The key of the listener while it is watched.
    pub(crate) key: Option<Key>,
    /// Whether it drops what would open a connection.
    pub(crate) refuses: bool,
    /// The next instant at which the worker's timers want to be looked at.
    pub(crate) timer: Option<Duration>,
    /// Entries in the worker's timer wheel.
    pub(crate) timers: usize,
    /// The configuration that the worker follows.
    pub(crate) version: u32,
}

/// How the network behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weather {
    /// Bytes come and go in pieces of any length, late, through buffers of any size. Without it everything is at once.
    pub(crate) rough: bool,
    /// Some buffers take a few bytes alone. A handshake through them would outlast the time that it is given.
    pub(crate) tiny: bool,
    /// Per thousand: a connection to an origin is refused.
    pub(crate) refusals: u64,
    /// Per thousand: there is no descriptor for a connection.
    pub(crate) shortages: u64,
    /// Turns a byte into another one now and then: no gateway can pass this, so it shows that the checks see.
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
    /// What the gateway watches.
    pub(crate) watched: Option<(Key, Interest)>,
    /// The worker that has it, or that it waits for.
    pub(crate) worker: usize,
    /// Where the gateway has dialled; `None`: it was dialled itself.
    pub(crate) to: Option<[u8; 4]>,
    /// How many bytes had come up when the gateway ended its stream, or closed.
    pub(crate) heard: Option<usize>,
    /// The gateway has ended its stream before it closed.
    pub(crate) is_finished: bool,
    /// The gateway has closed its socket.
    pub(crate) gateway_gone: bool,
    /// The peer has closed its socket.
    pub(crate) peer_gone: bool,
    /// Closing the gateway's socket sends a reset.
    pub(crate) resets_on_close: bool,
    /// What the peer sends comes at once and whole.
    pub(crate) is_calm: bool,
}

/// The gateway's view of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Established from this instant on.
    Connecting(Duration),
    /// Refused from this instant on.
    Refusing(Duration),
    /// Bytes can flow.
    Established,
    /// The peer has reset it, from this instant on; the error was not taken yet.
    Reset(Duration),
    /// It has failed, and the error was taken.
    Failed,
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Pipe {
    /// How many bytes fit, those on their way included.
    pub(crate) capacity: usize,
    /// Bytes that were read so far.
    pub(crate) read: usize,
    flight: VecDeque<(Duration, Vec<u8>)>,
    /// What has come, in the pieces that it came in, and how much of each was read.
    arrived: VecDeque<(Vec<u8>, usize)>,
    /// The instant at which the end of the stream arrives.
    end: Option<Duration>,
    /// The sender reset the stream, from this instant on.
    reset: Option<Duration>,
}

impl Pipe {
    fn new(capacity: usize) -> Self {
        Self { capacity, read: 0, flight: VecDeque::new(), arrived: VecDeque::new(), end: None, reset: None }
    }

    /// Bytes that still fit.
    pub(crate) fn room(&self) -> usize {
        let used = self.arrived.iter().map(|(piece, read)| piece.len() - read).sum::<usize>()
            + self.flight.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        self.capacity.saturating_sub(used)
    }

    /// Whether the sender has ended the stream.
    pub(crate) fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Whether everything up to the end has been read.
    pub(crate) fn is_read_out(&self, now: Duration) -> bool {
        self.arrived.is_empty() && self.flight.is_empty() && self.end.is_some_and(|end| end <= now)
    }

    /// Whether a read returns something.
    pub(crate) fn is_readable(&self, now: Duration) -> bool {
        !self.arrived.is_empty() || self.is_read_out(now)
    }

    /// Whether bytes wait.
    pub(crate) fn has_bytes(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// Whether a reset has arrived.
    pub(crate) fn is_reset(&self, now: Duration) -> bool {
        self.reset.is_some_and(|reset| reset <= now)
    }

    /// Bytes that have come so far.
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

    /// Appends at most `most` bytes that have arrived to `into`: of one piece alone, or of all.
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
    /// A world in which nothing has happened.
    pub(crate) fn new(seed: u64, weather: Weather, workers: usize) -> Self {
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
            moves: 0,
            weather,
            rng: Rng::new(seed),
        }
    }

    /// The loop's clock.
    pub(crate) fn instant(&self) -> Instant {
        self.base + self.now
    }

    /// A number below `below`, which is not zero.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.rng.below(below as usize) as u64
    }

    /// A client's connection to the gateway, to any worker that listens; `None` if the gateway takes no more.
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

    /// A client's connection to this worker.
    pub(crate) fn connect_to(&mut self, worker: usize) -> usize {
        let link = self.link(State::Established, worker, None);
        self.listeners[worker].backlog.push_back(link);
        self.moves += 1;
        link
    }

    /// A worker's connection to an origin.
    pub(crate) fn dial(&mut self, worker: usize, to: [u8; 4]) -> usize {
        let at = self.now + self.delay();
        let is_dark = self.dark.get(&to).is_some_and(|until| self.now < *until);
        let refused = self.below(1000) < self.weather.refusals || is_dark;
        let state = if refused { State::Refusing(at) } else { State::Connecting(at) };
        let link = self.link(state, worker, Some(to));
        // Nobody is there.
        self.links[link].peer_gone = refused;
        if !refused {
            self.dialled.push(link);
        }
        self.attempts.push(link);
        self.moves += 1;
        link
    }

    /// Errors: there is no descriptor for another connection.
    pub(crate) fn descriptor(&mut self) -> io::Result<()> {
        let is_short = self.weather.shortages > 0 && self.below(1000) < self.weather.shortages;
        if !is_short {
            return Ok(());
        }
        // It goes on by a timer, which the net is to be asked for again.
        self.moves += 1;
        Err(rustix::io::Errno::MFILE.into())
    }

    fn link(&mut self, state: State, worker: usize, to: Option<[u8; 4]>) -> usize {
        let (up, down) = (self.capacity(), self.capacity());
        self.links.push(Link {
            up: Pipe::new(up),
            down: Pipe::new(down),
            state,
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

    /// All links that not both ends have closed.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Link> {
        self.live.iter().map(|link| &self.links[*link])
    }

    fn forget_dead(&mut self) {
        let links = &self.links;
        self.live.retain(|link| !(links[*link].gateway_gone && links[*link].peer_gone));
    }

    fn capacity(&mut self) -> usize {
        if !self.weather.rough {
            return 1 << 20;
        }
        match self.below(4) {
            0 if self.weather.tiny => 64 + self.below(200) as usize,
            1 => 200_000,
            _ => 100 + self.below(20_000) as usize,
        }
    }

    /// How long something takes on its way.
    pub(crate) fn delay(&mut self) -> Duration {
        if !self.weather.rough {
            return Duration::ZERO;
        }
        match self.below(8) {
            0..=3 => Duration::ZERO,
            4..=6 => Duration::from_micros(self.below(3000)),
            _ => Duration::from_millis(self.below(300)),
        }
    }

    /// How much of `most` is done at once: at least one, if anything.
    pub(crate) fn piece(&mut self, most: usize) -> usize {
        if !self.weather.rough || most == 0 {
            return most;
        }
        match self.below(4) {
            0 => 1,
            1 => 1 + self.below(most as u64) as usize,
            _ => most,
        }
    }

    /// From now on what the peer of this link sends comes at once and whole.
    pub(crate) fn calm(&mut self, link: usize) {
        self.pipe(link, true).capacity = 1 << 22;
        self.links[link].is_calm = true;
    }

    /// Puts bytes on their way, in order, as many as fit; returns how many.
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
        if self.weather.corrupts && self.below(200) == 0 {
            let at = self.below(count as u64) as usize;
            bytes[at] ^= 1;
        }
        self.pipe(link, upward).flight.push_back((at, bytes));
        self.moves += 1;
        count
    }

    /// Ends a direction, behind its last byte.
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

    /// The gateway has said all that it will say: what comes later gets no answer.
    fn hears_no_more(&mut self, link: usize) {
        let link = &mut self.links[link];
        link.is_finished |= !link.gateway_gone;
        let heard = link.up.heard();
        link.heard.get_or_insert(heard);
    }

    /// Resets a connection from one side: what is on its way in that direction is lost.
    pub(crate) fn reset(&mut self, link: usize, upward: bool) {
        let (now, at) = (self.now, self.now + self.delay());
        let pipe = self.pipe(link, upward);
        pipe.arrive(now);
        pipe.flight.clear();
        // The end was behind what is lost.
        pipe.end = pipe.end.filter(|end| *end <= now);
        pipe.reset.get_or_insert(at);
        self.moves += 1;
    }

    /// One direction of a link.
    pub(crate) fn pipe(&mut self, link: usize, upward: bool) -> &mut Pipe {
        let link = &mut self.links[link];
        if upward { &mut link.up } else { &mut link.down }
    }

    /// Delivers what has come by now, and lets connections come about.
    pub(crate) fn arrive(&mut self) {
        let now = self.now;
        for link in &self.live {
            let link = &mut self.links[*link];
            link.up.arrive(now);
            link.down.arrive(now);
            if link.up.is_reset(now) && !matches!(link.state, State::Reset(_) | State::Failed) {
                // The kernel drops what was not read.
                link.up.arrived.clear();
                link.state = State::Reset(now);
            }
        }
    }

    /// The next instant at which something arrives by itself.
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

    /// The gateway closes its socket.
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

    /// A peer closes its socket.
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
