//! The interface between a worker and its network: the kernel's sockets, or a simulation with its own clock.
//!
//! Workers use this interface through a type parameter, never through a vtable, so kernel sockets are as fast as with
//! direct calls.

use crate::address::Address;
use crate::slab::Key;
use crate::socket::Read;
use crate::turn::{Events, Interest};
use crate::wheel::Wheel;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A poller with its clock and timers, and the connections and listeners that it watches.
pub trait Net: fmt::Debug {
    /// One connection.
    type Socket: Socket;
    /// A source of connections.
    type Listener: fmt::Debug;

    /// The loop's time, read once per turn after the wait.
    fn now(&self) -> Instant;

    /// The time that the turn has taken so far.
    fn spent(&self) -> Duration;

    /// The loop's timers.
    fn wheel(&mut self) -> &mut Wheel;

    /// Waits until a descriptor is ready, a timer is due, or `until`; refills `events`. Fails if polling fails.
    fn turn(&mut self, events: &mut Events, until: Option<Instant>) -> io::Result<()>;

    /// Watches a connection until it is dropped. Errors: those of epoll_ctl(2).
    fn register(&self, socket: &Self::Socket, key: Key, interest: Interest) -> io::Result<()>;

    /// Changes the interest in a connection. Errors: those of epoll_ctl(2).
    fn reregister(&self, socket: &Self::Socket, key: Key, interest: Interest) -> io::Result<()>;

    /// Stops watching a connection that stays open. Errors: those of epoll_ctl(2).
    fn deregister(&self, socket: &Self::Socket) -> io::Result<()>;

    /// Reports `key` as readable while connections are queued. Errors: those of epoll_ctl(2).
    fn listen(&self, listener: &Self::Listener, key: Key) -> io::Result<()>;

    /// Stops watching a listener; its queue remains. Errors: those of epoll_ctl(2).
    fn mute(&self, listener: &Self::Listener) -> io::Result<()>;

    /// Accepts one queued connection, with the address of its peer (`None` on a Unix socket); `None` if the queue is
    /// empty. Errors: those of accept(2).
    fn accept(&self, listener: &Self::Listener) -> io::Result<Option<(Self::Socket, Option<SocketAddr>)>>;

    /// Starts to drain a listener: see [`crate::Listener::refuse_new`]. Returns `false` if the queue belongs to another
    /// process.
    fn refuse_new(&self, listener: &Self::Listener) -> bool;

    /// Starts to connect. The connection is established once it is writable and [`Socket::error`] returns no error.
    /// Errors: those of connect(2), except "in progress".
    fn connect(&self, address: &Address) -> io::Result<Self::Socket>;
}

/// One connection: a byte stream in each direction. No call blocks.
pub trait Socket: fmt::Debug {
    /// Reads at most `limit` bytes and appends them to `into`. Fails if the connection has failed.
    fn read(&self, into: &mut Vec<u8>, limit: usize) -> io::Result<Read>;

    /// Writes as much as the socket accepts; a short count means that its buffer is full. Fails if the connection has
    /// failed.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// As [`Socket::write`], for the last bytes before [`Socket::finish`]: the data and the FIN may share a segment.
    /// Fails if the connection has failed.
    fn write_last(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Whether a read would block: no bytes, end of stream or error is pending.
    fn is_quiet(&self) -> bool;

    /// The local address; `None` for a Unix socket.
    fn local(&self) -> Option<SocketAddr>;

    /// Takes the connection's pending error, such as that of a failed connect. Returns that error as `Err`.
    fn error(&self) -> io::Result<()>;

    /// Closes the sending side.
    fn finish(&self);

    /// Makes dropping the connection send a reset; unsent data is lost.
    fn reset_on_close(&self);
}
