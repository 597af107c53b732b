//! The poller and the turn: wait, then report ready descriptors and due timers.

use crate::address::Address;
use crate::listener::Listener;
use crate::net::Net;
use crate::slab::Key;
use crate::socket;
use crate::wheel::Wheel;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// One core's event loop: a level-triggered epoll and a timer wheel.
#[derive(Debug)]
pub struct Reactor {
    epoll: OwnedFd,
    wheel: Wheel,
    now: Instant,
}

/// The interest of a registration. The poller always reports errors and full hang-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Bytes to read, a connection to accept, or the end of the peer's stream.
    pub read: bool,
    /// Room to write.
    pub write: bool,
}

impl Interest {
    /// No interest: only errors and hang-ups.
    pub const NONE: Self = Self { read: false, write: false };
    /// Readable.
    pub const READ: Self = Self { read: true, write: false };
    /// Writable.
    pub const WRITE: Self = Self { read: false, write: true };
}

/// The state of one ready descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// The key of the registration.
    pub key: Key,
    /// A read will not block (it may return end of stream or an error).
    pub readable: bool,
    /// A write will not block.
    pub writable: bool,
    /// Both directions are closed, or the socket has an error: no more bytes can be sent.
    pub hangup: bool,
}

/// The results of one turn. The worker owns this value, so iterating does not borrow the loop.
#[derive(Default)]
pub struct Events {
    raw: Vec<epoll::Event>,
    due: Vec<Key>,
    is_partial: bool,
}

impl Reactor {
    /// Creates a loop without registrations. Fails if the process has run out of descriptors.
    pub fn new() -> io::Result<Self> {
        let now = Instant::now();
        Ok(Self { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?, wheel: Wheel::new(now), now })
    }

    /// Registers a descriptor. Closing the descriptor ends the registration. Errors: those of epoll_ctl(2).
    pub fn register(&self, source: impl AsFd, key: Key, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, data(key), flags(interest))?)
    }

    /// Changes the interest of a registration. Errors: those of epoll_ctl(2).
    pub fn reregister(&self, source: impl AsFd, key: Key, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, source, data(key), flags(interest))?)
    }

    /// Removes a registration whose descriptor stays open. Errors: those of epoll_ctl(2).
    pub fn deregister(&self, source: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// The loop's time, read once per turn after the wait.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The time that the turn has taken so far.
    pub fn spent(&self) -> Duration {
        self.now.elapsed()
    }

    /// Schedules `key` for `deadline`. For an entry that can be cancelled, use the [`Wheel`] itself: see
    /// [`Net::wheel`].
    pub fn arm(&mut self, deadline: Instant, key: Key) {
        self.wheel.arm(deadline, key);
    }

    /// Waits until a descriptor is ready, a timer is due, or `until`; refills `events`. Errors: those of epoll_wait(2),
    /// except that an interrupted wait ends the turn without events.
    pub fn turn(&mut self, events: &mut Events, until: Option<Instant>) -> io::Result<()> {
        events.raw.clear();
        events.due.clear();
        if events.raw.capacity() == 0 {
            events.raw.reserve(EVENTS_PER_TURN);
        }
        let wake = earliest(self.wheel.next(), until);
        let (began, ended) = (self.now, Instant::now());
        let timeout = wake.map(|wake| timespec(wake.saturating_duration_since(ended)));
        match epoll::wait(&self.epoll, spare_capacity(&mut events.raw), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        events.is_partial = events.raw.len() >= EVENTS_PER_TURN;
        self.now = Instant::now();
        self.wheel.expire(self.now, ended - began, &mut events.due);
        Ok(())
    }
}

impl Net for Reactor {
    type Socket = OwnedFd;
    type Listener = Listener;

    #[inline]
    fn now(&self) -> Instant {
        self.now
    }

    fn spent(&self) -> Duration {
        Self::spent(self)
    }

    #[inline]
    fn wheel(&mut self) -> &mut Wheel {
        &mut self.wheel
    }

    fn turn(&mut self, events: &mut Events, until: Option<Instant>) -> io::Result<()> {
        Self::turn(self, events, until)
    }

    fn register(&self, socket: &OwnedFd, key: Key, interest: Interest) -> io::Result<()> {
        Self::register(self, socket, key, interest)
    }

    fn reregister(&self, socket: &OwnedFd, key: Key, interest: Interest) -> io::Result<()> {
        Self::reregister(self, socket, key, interest)
    }

    fn deregister(&self, socket: &OwnedFd) -> io::Result<()> {
        Self::deregister(self, socket)
    }

    fn listen(&self, listener: &Listener, key: Key) -> io::Result<()> {
        // Wake one worker, not all workers that wait on the socket.
        let shared =
            if listener.is_shared() { epoll::EventFlags::EXCLUSIVE } else { epoll::EventFlags::empty() };
        Ok(epoll::add(&self.epoll, listener, data(key), flags(Interest::READ) | shared)?)
    }

    fn mute(&self, listener: &Listener) -> io::Result<()> {
        self.deregister(listener)
    }

    fn accept(&self, listener: &Listener) -> io::Result<Option<(OwnedFd, Option<SocketAddr>)>> {
        listener.accept()
    }

    fn refuse_new(&self, listener: &Listener) -> bool {
        listener.refuse_new()
    }

    fn connect(&self, address: &Address) -> io::Result<OwnedFd> {
        socket::connect_to(address)
    }
}

/// The earlier of two instants; `None` if both are.
#[inline]
#[must_use]
pub fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("ready", &self.raw.len()).field("due", &self.due).finish()
    }
}

impl Events {
    /// Empties the lists of events and due keys, for the next turn.
    pub fn clear(&mut self) {
        self.raw.clear();
        self.due.clear();
        self.is_partial = false;
    }

    /// Whether the event list was full: a descriptor without an event may be ready, too.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Marks the events as partial, for a [`Net`] without a kernel.
    pub fn set_partial(&mut self) {
        self.is_partial = true;
    }

    /// Adds an event, for a [`Net`] without a kernel.
    pub fn push(&mut self, ready: Ready) {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, ready.readable);
        flags.set(epoll::EventFlags::OUT, ready.writable);
        flags.set(epoll::EventFlags::HUP, ready.hangup);
        self.raw.push(epoll::Event { flags, data: data(ready.key) });
    }

    /// The list of due keys, for [`Wheel::expire`].
    pub fn due_mut(&mut self) -> &mut Vec<Key> {
        &mut self.due
    }

    /// The events, in the kernel's order.
    pub fn ready(&self) -> impl Iterator<Item = Ready> + '_ {
        self.raw.iter().map(|event| {
            let flags = event.flags;
            let over = epoll::EventFlags::ERR | epoll::EventFlags::HUP;
            Ready {
                key: Key::from_u64(event.data.u64()),
                readable: flags.intersects(epoll::EventFlags::IN | over),
                writable: flags.intersects(epoll::EventFlags::OUT | over),
                hangup: flags.intersects(over),
            }
        })
    }

    /// The due keys. A key may be due although its owner has moved the deadline.
    pub fn due(&self) -> &[Key] {
        &self.due
    }
}

fn data(key: Key) -> epoll::EventData {
    epoll::EventData::new_u64(key.as_u64())
}

fn flags(interest: Interest) -> epoll::EventFlags {
    let mut flags = epoll::EventFlags::empty();
    flags.set(epoll::EventFlags::IN, interest.read);
    flags.set(epoll::EventFlags::OUT, interest.write);
    flags
}

fn timespec(wait: Duration) -> Timespec {
    Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) }
}

/// The maximum number of events per turn: usually enough for all sockets that are ready at once on a busy core, and few
/// enough to keep a turn within a few milliseconds. Further events wait for the next turn.
const EVENTS_PER_TURN: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::write;
    use std::os::fd::OwnedFd;

    fn pipe() -> (OwnedFd, OwnedFd) {
        rustix::pipe::pipe().unwrap()
    }

    #[test]
    fn an_event_is_reported_until_it_is_handled() {
        let mut reactor = Reactor::new().unwrap();
        let mut events = Events::default();
        let (reader, writer) = pipe();
        reactor.register(&reader, Key::fixed(1, 9), Interest::READ).unwrap();
        write(&writer, b"x").unwrap();
        for _ in 0..2 {
            reactor.turn(&mut events, Some(Instant::now() + Duration::from_secs(5))).unwrap();
            let ready: Vec<Ready> = events.ready().collect();
            assert_eq!((ready.len(), ready[0].key, ready[0].readable), (1, Key::fixed(1, 9), true));
        }
        reactor.reregister(&reader, Key::fixed(1, 9), Interest::NONE).unwrap();
        reactor.turn(&mut events, Some(Instant::now())).unwrap();
        assert_eq!(events.ready().count(), 0);
    }

    #[test]
    fn a_turn_ends_at_the_next_deadline() {
        let mut reactor = Reactor::new().unwrap();
        let mut events = Events::default();
        let deadline = Instant::now() + Duration::from_millis(20);
        reactor.arm(deadline, Key::fixed(2, 1));
        while events.due().is_empty() {
            reactor.turn(&mut events, None).unwrap();
        }
        assert_eq!(events.due(), [Key::fixed(2, 1)]);
        assert!(reactor.now() >= deadline, "never early");
    }

    #[test]
    fn a_closed_writer_is_a_hangup() {
        let mut reactor = Reactor::new().unwrap();
        let mut events = Events::default();
        let (reader, writer) = pipe();
        reactor.register(&reader, Key::fixed(1, 0), Interest::READ).unwrap();
        drop(writer);
        reactor.turn(&mut events, None).unwrap();
        let ready = events.ready().next().unwrap();
        assert!(ready.hangup && ready.readable);
    }
}
