//! A worker's listeners: accepting, pausing, and draining without resets.

use crate::net::Net;
use crate::share::share;
use crate::slab::Key;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

/// A connection and its peer's address (`None` for a Unix socket); `None` if the queue is empty.
pub type Accepted<N> = Option<(<N as Net>::Socket, Option<SocketAddr>)>;

/// The maximum number of connections to accept from a listener in a turn that has already taken `spent`.
#[must_use]
pub fn accepts(spent: Duration) -> usize {
    share(spent)
}

/// The pause of a listener when the process is out of descriptors or memory. Without it, the poller would
/// report the queue in every turn. Connections stay queued until others close.
pub const REST: Duration = Duration::from_millis(100);

/// A drain's wait for TCP handshakes in progress: a client whose connect has returned may already have sent
/// its request. One round trip without retransmissions.
pub const HANDSHAKES_END: Duration = Duration::from_millis(200);

/// A worker's listeners, each with the context of its connections (`T`, for example the TLS acceptor).
#[derive(Debug)]
pub struct Frontends<N: Net, T> {
    frontends: Vec<Frontend<N::Listener, T>>,
    tag: u8,
    /// Index of the drain's timer.
    end: u32,
    draining: bool,
}

#[derive(Debug)]
struct Frontend<L, T> {
    /// `None`: another process has taken over.
    listener: Option<L>,
    with: T,
    rests: bool,
    /// The wheel holds a timer for this listener.
    armed: bool,
}

impl<N: Net, T> Frontends<N, T> {
    /// Watches every listener. The keys of listeners, and of timers for [`Frontends::due`], carry `tag`; a
    /// listener's index is its position. Errors: as [`Net::listen`].
    pub fn new(listeners: Vec<(N::Listener, T)>, tag: u8, net: &N) -> io::Result<Self> {
        for (index, (listener, _)) in listeners.iter().enumerate() {
            net.listen(listener, Key::fixed(tag, index as u32))?;
        }
        let end = listeners.len() as u32;
        let frontend =
            |(listener, with)| Frontend { listener: Some(listener), with, rests: false, armed: false };
        Ok(Self { frontends: listeners.into_iter().map(frontend).collect(), tag, end, draining: false })
    }

    /// Accepts one queued connection; `None` if the queue is empty or the listener is closed. Errors: as
    /// [`Net::accept`]; see [`Frontends::rest`].
    pub fn accept(&mut self, index: u32, net: &mut N) -> io::Result<Accepted<N>> {
        let frontend = self.frontends.get(index as usize);
        match frontend.and_then(|frontend| frontend.listener.as_ref()) {
            Some(listener) => net.accept(listener),
            None => Ok(None),
        }
    }

    /// Stops accepting from a listener for [`REST`] or until [`Frontends::wake`]. Connections stay in its
    /// queue.
    pub fn rest(&mut self, index: u32, net: &mut N) {
        let Some(frontend) = self.frontends.get_mut(index as usize) else { return };
        let Some(listener) = &frontend.listener else { return };
        if frontend.rests || net.mute(listener).is_err() {
            return;
        }
        frontend.rests = true;
        if !std::mem::replace(&mut frontend.armed, true) {
            self.arm(REST, index, net);
        }
    }

    /// Resumes all paused listeners.
    pub fn wake(&mut self, net: &mut N) {
        for index in self.indexes() {
            self.watch(index, net);
        }
    }

    /// Whether any listener is paused.
    pub fn is_resting(&self) -> bool {
        self.frontends.iter().any(|frontend| frontend.rests)
    }

    /// The context of a listener's connections; `None` once it is closed.
    pub fn of(&self, index: u32) -> Option<&T> {
        self.frontends.get(index as usize).map(|frontend| &frontend.with)
    }

    /// Replaces the context of a listener's later connections and returns the previous one; `None` once it is
    /// closed.
    pub fn replace(&mut self, index: u32, with: T) -> Option<T> {
        let frontend = self.frontends.get_mut(index as usize)?;
        Some(std::mem::replace(&mut frontend.with, with))
    }

    /// Call when a timer with the tag is due. Resumes a paused listener. Returns true if the drain's wait for
    /// handshakes is over; then the worker accepts the queued connections of every listener and closes all
    /// listeners.
    #[must_use]
    pub fn due(&mut self, index: u32, net: &mut N) -> bool {
        if let Some(frontend) = self.frontends.get_mut(index as usize) {
            frontend.armed = false;
            self.watch(index, net);
        }
        index == self.end
    }

    /// Starts a drain: see [`Listener::refuse_new`](crate::Listener::refuse_new). [`Frontends::due`] returns
    /// true after [`HANDSHAKES_END`].
    pub fn drain(&mut self, net: &mut N) {
        if self.draining {
            return;
        }
        self.draining = true;
        for frontend in &mut self.frontends {
            if frontend.listener.as_ref().is_some_and(|listener| !net.refuse_new(listener)) {
                frontend.leave(net);
            }
        }
        if self.frontends.iter().all(|frontend| frontend.listener.is_none()) {
            return self.frontends.clear();
        }
        self.arm(HANDSHAKES_END, self.end, net);
    }

    /// Starts a drain after another process has taken over the listeners whose index satisfies `is_taken`:
    /// leaves these at once, with their queues, and drains the others as [`Frontends::drain`].
    pub fn hand_over(&mut self, is_taken: impl Fn(u32) -> bool, net: &mut N) {
        if self.draining {
            return;
        }
        for (_, frontend) in (0..).zip(&mut self.frontends).filter(|(index, _)| is_taken(*index)) {
            frontend.leave(net);
        }
        self.drain(net);
    }

    /// Closes all listeners; the kernel resets queued connections.
    pub fn close(&mut self, net: &N) {
        for mut frontend in self.frontends.drain(..) {
            frontend.leave(net);
        }
    }

    /// Whether all listeners are closed.
    pub fn is_closed(&self) -> bool {
        self.frontends.is_empty()
    }

    /// The indexes of the open listeners.
    pub fn indexes(&self) -> Range<u32> {
        0..self.frontends.len() as u32
    }

    /// Resumes a paused listener.
    fn watch(&mut self, index: u32, net: &mut N) {
        let Some(frontend) = self.frontends.get_mut(index as usize).filter(|frontend| frontend.rests) else {
            return;
        };
        let Some(listener) = &frontend.listener else { return };
        frontend.rests = net.listen(listener, Key::fixed(self.tag, index)).is_err();
        if frontend.rests && !std::mem::replace(&mut frontend.armed, true) {
            // Registering failed, so memory is still short: try again later.
            self.arm(REST, index, net);
        }
    }

    fn arm(&self, time: Duration, index: u32, net: &mut N) {
        let at = net.now() + time;
        net.wheel().arm(at, Key::fixed(self.tag, index));
    }
}

impl<L, T> Frontend<L, T> {
    /// Closes this process's handle on the socket.
    fn leave<N: Net<Listener = L>>(&mut self, net: &N) {
        if let Some(listener) = self.listener.take()
            && !self.rests
        {
            // Other processes keep the socket open, and epoll would go on reporting it.
            let _ = net.mute(&listener);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::Listener;
    use crate::turn::{Events, Reactor};
    use rustix::net::{Shutdown, listen, shutdown};
    use std::net::{Ipv4Addr, TcpStream};
    use std::time::Instant;

    const TAG: u8 = 7;

    struct Worker {
        reactor: Reactor,
        events: Events,
        frontends: Frontends<Reactor, char>,
        addresses: Vec<SocketAddr>,
    }

    impl Worker {
        /// One listener per name.
        fn new(names: &[char]) -> Self {
            let reactor = Reactor::new().unwrap();
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let listeners: Vec<Listener> =
                names.iter().map(|_| Listener::bind(any, 1).unwrap().remove(0)).collect();
            let addresses = listeners.iter().filter_map(|listener| listener.address().tcp()).collect();
            let listeners = listeners.into_iter().zip(names.iter().copied()).collect();
            let frontends = Frontends::new(listeners, TAG, &reactor).unwrap();
            Self { reactor, events: Events::default(), frontends, addresses }
        }

        /// Waits until connections are queued or a timer is due; returns the indexes of the ready listeners
        /// and of the due timers.
        fn wait(&mut self) -> (Vec<u32>, Vec<u32>) {
            let deadline = Instant::now() + Duration::from_secs(10);
            loop {
                self.reactor.turn(&mut self.events, Some(deadline)).unwrap();
                let ready: Vec<Key> = self.events.ready().map(|ready| ready.key).collect();
                let due = self.events.due().to_vec();
                assert!(ready.iter().chain(&due).all(|key| key.tag() == TAG));
                if !ready.is_empty() || !due.is_empty() {
                    let indexes = |keys: Vec<Key>| keys.into_iter().map(Key::index).collect();
                    return (indexes(ready), indexes(due));
                }
                assert!(Instant::now() < deadline);
            }
        }

        fn accept(&mut self, index: u32) -> io::Result<Option<SocketAddr>> {
            Ok(self.frontends.accept(index, &mut self.reactor)?.and_then(|(_, peer)| peer))
        }

        fn due(&mut self, index: u32) -> bool {
            self.frontends.due(index, &mut self.reactor)
        }
    }

    #[test]
    fn connections_come_with_the_index_of_their_listener() {
        let mut worker = Worker::new(&['a', 'b']);
        assert_eq!(worker.frontends.indexes(), 0..2);
        for (index, name) in [(1, 'b'), (0, 'a')] {
            let client = TcpStream::connect(worker.addresses[index as usize]).unwrap();
            assert_eq!(worker.wait(), (vec![index], vec![]));
            assert_eq!(worker.frontends.of(index), Some(&name));
            assert_eq!(worker.accept(index).unwrap(), Some(client.local_addr().unwrap()));
            assert_eq!(worker.accept(index).unwrap(), None);
        }
    }

    #[test]
    fn what_a_listener_needs_is_replaced_until_it_is_closed() {
        let mut worker = Worker::new(&['a', 'b']);
        assert_eq!(worker.frontends.replace(1, 'c'), Some('b'));
        assert_eq!([0, 1].map(|index| worker.frontends.of(index).copied()), [Some('a'), Some('c')]);
        worker.frontends.close(&worker.reactor);
        assert_eq!(worker.frontends.replace(1, 'd'), None);
    }

    /// accept(2) fails on a listening socket after shutdown(2), and the poller reports the socket in every
    /// turn.
    #[test]
    fn a_listener_that_cannot_accept_rests_and_is_watched_again() {
        let mut worker = Worker::new(&['a']);
        let start = worker.reactor.now();
        shutdown(worker.frontends.frontends[0].listener.as_ref().unwrap(), Shutdown::Read).unwrap();
        assert_eq!(worker.wait(), (vec![0], vec![]));
        for _ in 0..2 {
            assert!(worker.accept(0).is_err());
            worker.frontends.rest(0, &mut worker.reactor);
            assert_eq!(worker.reactor.wheel().len(), 1, "one rest at a time");
        }
        assert_eq!(worker.wait(), (vec![], vec![0]));
        assert!(worker.reactor.now() >= start + REST);
        listen(worker.frontends.frontends[0].listener.as_ref().unwrap(), 10).unwrap();
        let client = TcpStream::connect(worker.addresses[0]).unwrap();
        assert!(!worker.due(0), "this is no drain");
        assert_eq!(worker.wait(), (vec![0], vec![]));
        assert_eq!(worker.accept(0).unwrap(), Some(client.local_addr().unwrap()));
    }

    #[test]
    fn a_listener_that_rests_is_woken_early() {
        let mut worker = Worker::new(&['a', 'b']);
        let client = TcpStream::connect(worker.addresses[0]).unwrap();
        assert_eq!(worker.wait(), (vec![0], vec![]));
        for _ in 0..2 {
            worker.frontends.rest(0, &mut worker.reactor);
            assert!(worker.frontends.is_resting());
            worker.frontends.wake(&mut worker.reactor);
            assert!(!worker.frontends.is_resting());
            assert_eq!(worker.reactor.wheel().len(), 1, "one timer, however often");
        }
        worker.reactor.turn(&mut worker.events, Some(Instant::now())).unwrap();
        assert_eq!(worker.events.ready().count(), 1, "before the timer");
        assert_eq!(worker.accept(0).unwrap(), Some(client.local_addr().unwrap()));
        assert_eq!(worker.wait(), (vec![], vec![0]));
        assert!(!worker.due(0) && worker.reactor.wheel().is_empty());
    }

    #[test]
    fn a_drain_takes_what_is_queued_and_then_closes() {
        let mut worker = Worker::new(&['a', 'b']);
        let clients = [0, 1, 1].map(|index| TcpStream::connect(worker.addresses[index]).unwrap());
        let start = worker.reactor.now();
        for _ in 0..2 {
            worker.frontends.drain(&mut worker.reactor);
        }
        assert_eq!(worker.reactor.wheel().len(), 1, "a drain begins once");
        let mut due = Vec::new();
        while due.is_empty() {
            due = worker.wait().1;
        }
        assert!(worker.reactor.now() >= start + HANDSHAKES_END);
        assert!(worker.due(due[0]));
        let mut accepted = Vec::new();
        for index in worker.frontends.indexes() {
            while let Some(peer) = worker.accept(index).unwrap() {
                accepted.push(peer);
            }
        }
        accepted.sort();
        let mut peers = clients.map(|client| client.local_addr().unwrap());
        peers.sort();
        assert_eq!(accepted, peers);
        assert!(!worker.frontends.is_closed());
        worker.frontends.close(&worker.reactor);
        assert!(worker.frontends.is_closed() && worker.frontends.of(0).is_none());
        assert_eq!(worker.accept(0).unwrap(), None);
        assert!(TcpStream::connect(worker.addresses[0]).is_err());
    }

    #[test]
    fn what_another_process_takes_keeps_its_queue() {
        let mut worker = Worker::new(&['a', 'b']);
        let successor = worker.frontends.frontends[0].listener.as_ref().unwrap().handle().unwrap();
        let clients = [0, 1].map(|index| TcpStream::connect(worker.addresses[index]).unwrap());
        worker.frontends.hand_over(|index| index == 0, &mut worker.reactor);
        assert_eq!(worker.accept(0).unwrap(), None, "it is the other's");
        let due = loop {
            let (ready, due) = worker.wait();
            assert!(!ready.contains(&0), "a socket that is not ours is not watched");
            if let Some(due) = due.first() {
                break *due;
            }
        };
        assert!(worker.due(due), "what nobody takes is drained");
        assert_eq!(worker.accept(1).unwrap(), clients[1].local_addr().ok());
        worker.frontends.close(&worker.reactor);
        let late = TcpStream::connect(worker.addresses[0]).unwrap();
        for client in [&clients[0], &late] {
            assert_eq!(successor.accept().unwrap().unwrap().1, client.local_addr().ok());
        }
        assert!(TcpStream::connect(worker.addresses[1]).is_err());
    }

    #[test]
    fn when_another_process_takes_all_the_drain_is_over_at_once() {
        let mut worker = Worker::new(&['a', 'b']);
        worker.frontends.hand_over(|_| true, &mut worker.reactor);
        assert!(worker.frontends.is_closed() && worker.reactor.wheel().is_empty());
    }

    #[test]
    fn a_rest_that_ends_after_the_close_finds_nothing() {
        let mut worker = Worker::new(&['a']);
        worker.frontends.close(&worker.reactor);
        assert!(!worker.due(0));
    }

    #[test]
    fn a_timer_that_nobody_set_does_not_disturb_a_listener() {
        let mut worker = Worker::new(&['a']);
        assert!(!worker.due(0));
        assert!(worker.reactor.wheel().is_empty());
    }
}
