//! The gateway's side of the simulated network.

use crate::world::{State, World};
use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};
use weir_reactor::socket::Read;
use weir_reactor::{Address, Events, Interest, Key, Net, Ready, Socket, Wheel};

/// A poller without a kernel. It never blocks: the driver moves the clock.
#[derive(Debug)]
pub(crate) struct SimNet {
    world: Rc<RefCell<World>>,
    worker: usize,
    wheel: Wheel,
    now: Instant,
}

/// The gateway's side of a link.
#[derive(Debug)]
pub(crate) struct SimSocket {
    world: Rc<RefCell<World>>,
    link: usize,
}

/// A worker's only listener.
#[derive(Debug)]
pub(crate) struct SimListener;

impl SimNet {
    /// Creates a worker's view of this world.
    pub(crate) fn new(world: Rc<RefCell<World>>, worker: usize) -> Self {
        let now = world.borrow().instant();
        Self { world, worker, wheel: Wheel::new(now), now }
    }

    fn socket(&self, link: usize) -> SimSocket {
        SimSocket { world: Rc::clone(&self.world), link }
    }
}

impl Net for SimNet {
    type Socket = SimSocket;
    type Listener = SimListener;

    fn now(&self) -> Instant {
        self.now
    }

    fn spent(&self) -> Duration {
        self.world.borrow().turn
    }

    fn wheel(&mut self) -> &mut Wheel {
        &mut self.wheel
    }

    fn turn(&mut self, events: &mut Events, until: Option<Instant>) -> io::Result<()> {
        events.clear();
        let mut world = self.world.borrow_mut();
        self.now = world.instant();
        let own = world.live().filter(|link| link.worker == self.worker);
        let mut ready: Vec<Ready> = own.filter_map(|link| readiness(link, &world)).collect();
        let listener = &world.listeners[self.worker];
        if let Some(key) = listener.key.filter(|_| !listener.backlog.is_empty()) {
            ready.push(Ready { key, readable: true, writable: false, hangup: false });
        }
        if world.faults.rough && !ready.is_empty() {
            // Shuffles the events, and sometimes holds some back.
            for at in (1..ready.len()).rev() {
                let with = world.below(at as u64 + 1) as usize;
                ready.swap(at, with);
            }
            if world.below(3) == 0 {
                let some = 1 + world.below(ready.len() as u64) as usize;
                ready.truncate(some);
                events.set_partial();
            }
        }
        ready.into_iter().for_each(|ready| events.push(ready));
        self.wheel.expire(self.now, world.turn, events.due_mut());
        let next = [self.wheel.next(), until].into_iter().flatten().min();
        let next = next.map(|at| at.saturating_duration_since(world.base));
        let listener = &mut world.listeners[self.worker];
        listener.timer = next;
        listener.timers = self.wheel.len();
        Ok(())
    }

    fn register(&self, socket: &SimSocket, key: Key, interest: Interest) -> io::Result<()> {
        let mut world = self.world.borrow_mut();
        let link = &mut world.links[socket.link];
        link.watched = Some((key, interest));
        link.worker = self.worker;
        Ok(())
    }

    fn reregister(&self, socket: &SimSocket, key: Key, interest: Interest) -> io::Result<()> {
        self.register(socket, key, interest)
    }

    fn deregister(&self, socket: &SimSocket) -> io::Result<()> {
        self.world.borrow_mut().links[socket.link].watched = None;
        Ok(())
    }

    fn listen(&self, _: &SimListener, key: Key) -> io::Result<()> {
        self.world.borrow_mut().listeners[self.worker].key = Some(key);
        Ok(())
    }

    fn mute(&self, _: &SimListener) -> io::Result<()> {
        self.world.borrow_mut().listeners[self.worker].key = None;
        Ok(())
    }

    fn accept(&self, _: &SimListener) -> io::Result<Option<(SimSocket, Option<SocketAddr>)>> {
        let mut world = self.world.borrow_mut();
        // A draining worker accepts its whole queue, so it always gets a descriptor.
        if !world.listeners[self.worker].refuses {
            world.descriptor()?;
        }
        let link = world.listeners[self.worker].backlog.pop_front();
        if let Some(link) = link {
            world.links[link].accepted = Some(world.listeners[self.worker].version);
        }
        // The worker reads an accepted connection only in a later turn: counting a move makes the driver run that turn.
        world.moves += u64::from(link.is_some());
        drop(world);
        Ok(link.map(|link| (self.socket(link), Some(peer_address(link)))))
    }

    fn refuse_new(&self, _: &SimListener) -> bool {
        self.world.borrow_mut().listeners[self.worker].refuses = true;
        true
    }

    fn connect(&self, to: &Address) -> io::Result<SimSocket> {
        let Some(SocketAddr::V4(to)) = to.tcp() else { return Err(ErrorKind::Unsupported.into()) };
        let mut world = self.world.borrow_mut();
        world.descriptor()?;
        let link = world.dial(self.worker, to.ip().octets());
        drop(world);
        Ok(self.socket(link))
    }
}

/// The client address of a link, as in the gateway's log.
pub(crate) fn peer_address(link: usize) -> SocketAddr {
    // 192.0.2.0/24 is reserved for documentation (RFC 5737).
    SocketAddr::from(([192, 0, 2, (link >> 16) as u8], (link & 0xffff) as u16))
}

/// The gateway's address.
pub(crate) const LISTENER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 80);

fn readiness(link: &crate::world::Link, world: &World) -> Option<Ready> {
    let (key, interest) = link.watched?;
    let now = world.now;
    let failed = match link.state {
        State::Connecting(at) | State::Refusing(at) if at > now => return None,
        State::Reset(at) if at > now => false,
        State::Refusing(_) | State::Reset(_) | State::Failed => true,
        State::Connecting(_) | State::Established => false,
    };
    let over = failed || (link.up.is_read_out(now) && link.down.is_ended());
    let readable = over || (interest.read && link.up.is_readable(now));
    let writable = over || (interest.write && link.down.room() > 0);
    (readable || writable).then_some(Ready { key, readable, writable, hangup: over })
}

impl SimSocket {
    /// Establishes the connection if its time has come. Fails before that time, and returns a refusal or reset once;
    /// later calls succeed.
    fn check(&self, world: &mut World) -> io::Result<()> {
        let now = world.now;
        let link = &mut world.links[self.link];
        let state = &mut link.state;
        let failure = match *state {
            State::Reset(at) if at > now => return Ok(()),
            State::Refusing(_) => ErrorKind::ConnectionRefused,
            State::Reset(_) => ErrorKind::ConnectionReset,
            State::Connecting(at) if at > now => return Err(ErrorKind::NotConnected.into()),
            State::Connecting(_) => {
                *state = State::Established;
                return Ok(());
            }
            State::Established | State::Failed => return Ok(()),
        };
        *state = State::Failed;
        if let Some(to) = link.to {
            world.failed.insert(to, now);
        }
        Err(failure.into())
    }
}

impl Socket for SimSocket {
    fn read(&self, into: &mut Vec<u8>, limit: usize) -> io::Result<Read> {
        let mut world = self.world.borrow_mut();
        self.check(&mut world)?;
        if world.links[self.link].state == State::Failed {
            return Ok(Read::End);
        }
        into.reserve(limit);
        let most = world.piece(limit);
        let one_piece = world.faults.rough && world.below(2) == 0;
        let now = world.now;
        let pipe = world.pipe(self.link, true);
        if !pipe.has_bytes() {
            return Ok(if pipe.is_read_out(now) { Read::End } else { Read::WouldBlock });
        }
        let before = into.len();
        pipe.take(most, one_piece, into);
        let count = into.len() - before;
        world.moves += 1;
        Ok(Read::Bytes(count))
    }

    fn local(&self) -> Option<SocketAddr> {
        Some(LISTENER)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut world = self.world.borrow_mut();
        self.check(&mut world)?;
        let link = &world.links[self.link];
        if link.state == State::Failed || link.down.is_ended() {
            return Err(ErrorKind::BrokenPipe.into());
        }
        if link.peer_gone {
            // The peer has closed its side, so it responds with a reset.
            let at = world.now + world.delay();
            let link = &mut world.links[self.link];
            if link.state == State::Established {
                link.state = State::Reset(at);
            }
            world.moves += 1;
            return Ok(bytes.len());
        }
        Ok(world.send(self.link, false, bytes))
    }

    fn write_last(&self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes)
    }

    fn is_quiet(&self) -> bool {
        let world = self.world.borrow();
        let link = &world.links[self.link];
        matches!(link.state, State::Established | State::Connecting(_)) && !link.up.is_readable(world.now)
    }

    fn error(&self) -> io::Result<()> {
        self.check(&mut self.world.borrow_mut())
    }

    fn finish(&self) {
        let mut world = self.world.borrow_mut();
        if !world.links[self.link].down.is_ended() {
            world.end(self.link, false);
        }
    }

    fn reset_on_close(&self) {
        self.world.borrow_mut().links[self.link].resets_on_close = true;
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        self.world.borrow_mut().close_gateway(self.link);
    }
}
