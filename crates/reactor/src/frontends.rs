//! A worker's listeners: accepting, pausing, and draining without resets.

use crate::net::Net;
use crate::share::share;
use crate::slab::Key;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A connection and its peer's address (`None` for a Unix socket); `None` if the queue is empty.
pub type Accepted<N> = Option<(<N as Net>::Socket, Option<SocketAddr>)>;

/// The maximum number of connections to accept from a listener in a turn that has already taken `spent`.
#[must_use]
pub fn accepts(spent: Duration) -> usize {
    share(spent)
}

/// The pause of a listener when the process has run out of descriptors or memory. Without a pause, the poller would
/// report the queue in every turn. Connections stay queued until others close.
pub const REST: Duration = Duration::from_millis(100);

/// A drain's wait for TCP handshakes in progress: a client whose connect(2) has returned may already have sent its
/// request. The time covers one round trip without retransmissions.
pub const HANDSHAKES_END: Duration = Duration::from_millis(200);

/// A worker's listeners, each with the context of its connections (`T`, such as the TLS acceptor).
#[derive(Debug)]
pub struct Frontends<N: Net, T> {
    /// The listeners by index; `None`: closed.
    frontends: Vec<Option<Frontend<N::Listener, T>>>,
    tag: u8,
}

#[derive(Debug)]
struct Frontend<L, T> {
    listener: L,
    with: T,
    rests: bool,
    /// Whether the wheel contains a timer for the end of a pause.
    armed: bool,
    /// The end of a drain's wait for handshakes; `None`: no drain.
    closes: Option<Instant>,
}

impl<N: Net, T> Frontends<N, T> {
    /// Watches every listener. The keys of listeners, and of timers for [`Frontends::due`], carry `tag`; a listener's
    /// index is its position. Errors: those of [`Net::listen`].
    pub fn new(listeners: Vec<(N::Listener, T)>, tag: u8, net: &N) -> io::Result<Self> {
        for (index, (listener, _)) in listeners.iter().enumerate() {
            net.listen(listener, Key::fixed(tag, index as u32))?;
        }
        let frontends = listeners.into_iter().map(|(listener, with)| Some(Frontend::new(listener, with)));
        Ok(Self { frontends: frontends.collect(), tag })
    }

    /// Watches one more listener and returns its index, possibly the index of a closed listener. If the poller has no
    /// memory left, the new listener starts paused.
    pub fn add(&mut self, listener: N::Listener, with: T, net: &mut N) -> u32 {
        let at = self.frontends.iter().position(Option::is_none).unwrap_or_else(|| {
            self.frontends.push(None);
            self.frontends.len() - 1
        });
        let index = at as u32;
        self.frontends[at] = Some(Frontend { rests: true, ..Frontend::new(listener, with) });
        self.watch(index, net);
        index
    }

    /// Accepts one queued connection; `None` if the queue is empty or the listener is closed. Errors: those of
    /// [`Net::accept`]; see [`Frontends::rest`].
    pub fn accept(&mut self, index: u32, net: &mut N) -> io::Result<Accepted<N>> {
        self.get(index).map_or(Ok(None), |frontend| net.accept(&frontend.listener))
    }

    /// Stops accepting from a listener for [`REST`] or until [`Frontends::wake`], unless the poller cannot stop
    /// watching it. Connections stay in the listener's queue.
    pub fn rest(&mut self, index: u32, net: &mut N) {
        let Some(frontend) = self.get_mut(index) else { return };
        if frontend.rests || net.mute(&frontend.listener).is_err() {
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
        self.frontends.iter().flatten().any(|frontend| frontend.rests)
    }

    /// The context of a listener's connections; `None` once the listener is closed.
    pub fn of(&self, index: u32) -> Option<&T> {
        self.get(index).map(|frontend| &frontend.with)
    }

    /// Replaces the context of a listener's later connections and returns the previous one; `None` once the listener is
    /// closed.
    pub fn replace(&mut self, index: u32, with: T) -> Option<T> {
        let frontend = self.get_mut(index)?;
        Some(std::mem::replace(&mut frontend.with, with))
    }

    /// Call this when a timer with the tag of these listeners is due. Returns true if the listener's wait for
    /// handshakes is over: the worker must then accept the queued connections and call [`Frontends::close`]. Otherwise
    /// resumes the listener if it is paused.
    #[must_use]
    pub fn due(&mut self, index: u32, net: &mut N) -> bool {
        let now = net.now();
        let Some(frontend) = self.get_mut(index) else { return false };
        frontend.armed = false;
        // The timer may be left over from an earlier listener with this index.
        if frontend.closes.is_some_and(|at| at <= now) {
            return true;
        }
        self.watch(index, net);
        false
    }

    /// Starts to drain all listeners: calls [`Frontends::drain`] for each.
    pub fn drain_all(&mut self, net: &mut N) {
        for index in self.indexes() {
            self.drain(index, net);
        }
    }

    /// Starts to drain a listener: see [`Listener::refuse_new`](crate::Listener::refuse_new). [`Frontends::due`]
    /// returns true after [`HANDSHAKES_END`]. A listener whose queue belongs to another process is closed immediately.
    /// Returns false if the listener is draining already, or is closed.
    pub fn drain(&mut self, index: u32, net: &mut N) -> bool {
        let closes = net.now() + HANDSHAKES_END;
        let Some(frontend) = self.get_mut(index).filter(|frontend| frontend.closes.is_none()) else {
            return false;
        };
        if net.refuse_new(&frontend.listener) {
            frontend.closes = Some(closes);
            self.arm(HANDSHAKES_END, index, net);
        } else {
            self.close(index, net);
        }
        true
    }

    /// Whether a listener is draining.
    pub fn is_draining(&self, index: u32) -> bool {
        self.get(index).is_some_and(|frontend| frontend.closes.is_some())
    }

    /// Closes a listener, and returns the context of its connections; `None` if it is closed already. The kernel resets
    /// queued connections, unless another process holds the socket, too.
    pub fn close(&mut self, index: u32, net: &N) -> Option<T> {
        let Frontend { listener, with, rests, .. } = self.frontends.get_mut(index as usize)?.take()?;
        if !rests {
            // Stop watching: another process may keep the socket open, and epoll would continue to report it.
            let _ = net.mute(&listener);
        }
        Some(with)
    }

    /// Whether all listeners are closed.
    pub fn is_closed(&self) -> bool {
        self.frontends.iter().all(Option::is_none)
    }

    /// The indexes of the open listeners.
    pub fn indexes(&self) -> Vec<u32> {
        let open = (0..).zip(&self.frontends).filter(|(_, frontend)| frontend.is_some());
        open.map(|(index, _)| index).collect()
    }

    /// Resumes a paused listener, or tries again after [`REST`].
    fn watch(&mut self, index: u32, net: &mut N) {
        let key = Key::fixed(self.tag, index);
        let Some(frontend) = self.get_mut(index).filter(|frontend| frontend.rests) else { return };
        frontend.rests = net.listen(&frontend.listener, key).is_err();
        if frontend.rests && !std::mem::replace(&mut frontend.armed, true) {
            // The poller is still short of memory: retry after another pause.
            self.arm(REST, index, net);
        }
    }

    fn arm(&self, time: Duration, index: u32, net: &mut N) {
        let at = net.now() + time;
        net.wheel().arm(at, Key::fixed(self.tag, index));
    }

    fn get(&self, index: u32) -> Option<&Frontend<N::Listener, T>> {
        self.frontends.get(index as usize)?.as_ref()
    }

    fn get_mut(&mut self, index: u32) -> Option<&mut Frontend<N::Listener, T>> {
        self.frontends.get_mut(index as usize)?.as_mut()
    }
}

impl<L, T> Frontend<L, T> {
    fn new(listener: L, with: T) -> Self {
        Self { listener, with, rests: false, armed: false, closes: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::Listener;
    use crate::turn::{Events, Reactor};
    use rustix::net::{Shutdown, listen, shutdown};
    use std::net::{Ipv4Addr, TcpStream};

    const TAG: u8 = 7;

    struct Worker {
        reactor: Reactor,
        events: Events,
        frontends: Frontends<Reactor, char>,
        addresses: Vec<SocketAddr>,
    }

    impl Worker {
        /// Creates a worker with one listener per name.
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
        assert_eq!(worker.frontends.indexes(), [0, 1]);
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
        assert_eq!(worker.frontends.close(1, &worker.reactor), Some('c'));
        assert_eq!(worker.frontends.replace(1, 'd'), None);
        assert_eq!(worker.frontends.close(1, &worker.reactor), None);
    }

    /// accept(2) fails on a listening socket after shutdown(2), and the poller would report the socket in every turn.
    #[test]
    fn a_listener_that_cannot_accept_rests_and_is_watched_again() {
        let mut worker = Worker::new(&['a']);
        let start = worker.reactor.now();
        shutdown(&worker.frontends.get(0).unwrap().listener, Shutdown::Read).unwrap();
        assert_eq!(worker.wait(), (vec![0], vec![]));
        for _ in 0..2 {
            assert!(worker.accept(0).is_err());
            worker.frontends.rest(0, &mut worker.reactor);
            assert_eq!(worker.reactor.wheel().len(), 1, "one rest at a time");
        }
        assert_eq!(worker.wait(), (vec![], vec![0]));
        assert!(worker.reactor.now() >= start + REST);
        listen(&worker.frontends.get(0).unwrap().listener, 10).unwrap();
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
            worker.frontends.drain_all(&mut worker.reactor);
        }
        assert_eq!(worker.reactor.wheel().len(), 2, "the drain of each begins once");
        let mut accepted = Vec::new();
        while !worker.frontends.is_closed() {
            for index in worker.wait().1 {
                assert!(worker.reactor.now() >= start + HANDSHAKES_END);
                assert!(worker.due(index));
                while let Some(peer) = worker.accept(index).unwrap() {
                    accepted.push(peer);
                }
                assert!(worker.frontends.close(index, &worker.reactor).is_some());
            }
        }
        accepted.sort();
        let mut peers = clients.map(|client| client.local_addr().unwrap());
        peers.sort();
        assert_eq!(accepted, peers);
        assert!(worker.frontends.of(0).is_none());
        assert_eq!(worker.accept(0).unwrap(), None);
        assert!(TcpStream::connect(worker.addresses[0]).is_err());
    }

    #[test]
    fn one_listener_drains_while_the_others_go_on() {
        let mut worker = Worker::new(&['a', 'b']);
        let queued = TcpStream::connect(worker.addresses[0]).unwrap();
        assert!(worker.frontends.drain(0, &mut worker.reactor));
        assert!(!worker.frontends.drain(0, &mut worker.reactor), "it drains already");
        assert_eq!([0, 1].map(|index| worker.frontends.is_draining(index)), [true, false]);
        while worker.wait().1.is_empty() {}
        assert!(worker.due(0));
        assert_eq!(worker.accept(0).unwrap(), queued.local_addr().ok());
        worker.frontends.close(0, &worker.reactor);
        assert!(!worker.frontends.drain(0, &mut worker.reactor), "it is closed");
        assert_eq!(worker.frontends.indexes(), [1]);
        let client = TcpStream::connect(worker.addresses[1]).unwrap();
        assert_eq!(worker.wait(), (vec![1], vec![]));
        assert_eq!(worker.accept(1).unwrap(), client.local_addr().ok());
    }

    #[test]
    fn a_listener_that_is_added_takes_the_index_of_a_closed_one() {
        let mut worker = Worker::new(&['a', 'b']);
        worker.frontends.drain(0, &mut worker.reactor);
        worker.frontends.close(0, &worker.reactor);
        let new = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 1).unwrap().remove(0);
        let address = new.address().tcp().unwrap();
        assert_eq!(worker.frontends.add(new, 'c', &mut worker.reactor), 0);
        assert_eq!(worker.frontends.of(0), Some(&'c'));
        assert!(!worker.frontends.is_resting());
        // The due timer is left over from the drain of the closed listener.
        assert_eq!(worker.wait(), (vec![], vec![0]));
        assert!(!worker.due(0));
        let client = TcpStream::connect(address).unwrap();
        assert_eq!(worker.wait(), (vec![0], vec![]));
        assert_eq!(worker.accept(0).unwrap(), client.local_addr().ok());
        let another = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 1).unwrap().remove(0);
        assert_eq!(worker.frontends.add(another, 'd', &mut worker.reactor), 2);
    }

    #[test]
    fn what_another_process_takes_keeps_its_queue() {
        let mut worker = Worker::new(&['a', 'b']);
        let successor = worker.frontends.get(0).unwrap().listener.handle().unwrap();
        let clients = [0, 1].map(|index| TcpStream::connect(worker.addresses[index]).unwrap());
        worker.frontends.close(0, &worker.reactor);
        worker.frontends.drain_all(&mut worker.reactor);
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
        worker.frontends.close(1, &worker.reactor);
        assert!(worker.frontends.is_closed());
        let late = TcpStream::connect(worker.addresses[0]).unwrap();
        for client in [&clients[0], &late] {
            assert_eq!(successor.accept().unwrap().unwrap().1, client.local_addr().ok());
        }
        assert!(TcpStream::connect(worker.addresses[1]).is_err());
    }

    #[test]
    fn a_rest_that_ends_after_the_close_finds_nothing() {
        let mut worker = Worker::new(&['a']);
        worker.frontends.close(0, &worker.reactor);
        assert!(!worker.due(0));
    }

    #[test]
    fn a_timer_that_nobody_set_does_not_disturb_a_listener() {
        let mut worker = Worker::new(&['a']);
        assert!(!worker.due(0));
        assert!(worker.reactor.wheel().is_empty());
    }
}
