//! The seam between a worker and what carries its bytes: the kernel's sockets, or a simulation with a clock of its own.
//!
//! Everything here is called through a type parameter, never through a table, so the kernel's side costs what a direct
//! call costs.

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
    /// Where connections come from.
    type Listener: fmt::Debug;

    /// The loop's time: read once per turn, after the wait.
    fn now(&self) -> Instant;

    /// How long the turn has taken so far.
    fn spent(&self) -> Duration;

    /// The loop's timers.
    fn wheel(&mut self) -> &mut Wheel;

    /// Waits until something is ready, something is due, or `until`; refills `events`.
    /// Errors: the poller failed.
    fn turn(&mut self, events: &mut Events, until: Option<Instant>) -> io::Result<()>;

    /// Watches a connection. Dropping it ends that. Errors: as epoll_ctl(2).
    fn register(&self, socket: &Self::Socket, key: Key, interest: Interest) -> io::Result<()>;

    /// Changes what a connection is watched for. Errors: as epoll_ctl(2).
    fn reregister(&self, socket: &Self::Socket, key: Key, interest: Interest) -> io::Result<()>;

    /// Ends the watch of a connection that lives on. Errors: as epoll_ctl(2).
    fn deregister(&self, socket: &Self::Socket) -> io::Result<()>;

    /// Reports `key` as readable while connections are queued. Errors: as epoll_ctl(2).
    fn listen(&self, listener: &Self::Listener, key: Key) -> io::Result<()>;

    /// Undoes [`Net::listen`]; the queue is kept. Errors: as epoll_ctl(2).
    fn mute(&self, listener: &Self::Listener) -> io::Result<()>;

    /// Takes one queued connection, and its other end; `None` if there is none. On a Unix socket, the other end has no
    /// address. Errors: as accept(2).
    fn accept(&self, listener: &Self::Listener) -> io::Result<Option<(Self::Socket, Option<SocketAddr>)>>;

    /// Begins to drain a listener: see [`crate::Listener::refuse_new`]. False: what is queued is for another process.
    fn refuse_new(&self, listener: &Self::Listener) -> bool;

    /// Starts a connection. It is established when it is writable and [`Socket::error`] returns none.
    /// Errors: as connect(2), except "in progress".
    fn connect(&self, address: &Address) -> io::Result<Self::Socket>;
}

/// One connection's stream of bytes each way. No call blocks.
pub trait Socket: fmt::Debug {
    /// Reads at most `limit` bytes to the end of `into`. Errors: the connection failed.
    fn read(&self, into: &mut Vec<u8>, limit: usize) -> io::Result<Read>;

    /// Writes as much as is accepted; a short count means that it is full. Errors: the connection failed.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// As [`Socket::write`], when [`Socket::finish`] follows the last byte: both may leave in one segment.
    /// Errors: the connection failed.
    fn write_last(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Whether nothing waits to be read, neither bytes nor the end of the stream nor an error.
    fn is_quiet(&self) -> bool;

    /// Our end's address; `None` for a Unix socket.
    fn local(&self) -> Option<SocketAddr>;

    /// Takes the pending error.
    fn error(&self) -> io::Result<()>;

    /// Closes the sending side.
    fn finish(&self);

    /// Makes dropping the connection a reset; unsent data is lost.
    fn reset_on_close(&self);
}
