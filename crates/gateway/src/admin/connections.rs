//! Connections to the admin address. Each has a thread, so their number is limited.

use socket2::Socket;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The open connections, the oldest first.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    open: Mutex<Vec<Arc<Connection>>>,
}

#[derive(Debug)]
struct Connection {
    stream: Socket,
    /// Whether the connection waits for the client, and may therefore be closed to make room for another.
    awaits_client: AtomicBool,
}

/// An admitted connection. Dropping it makes room for another.
#[derive(Debug)]
pub(super) struct Entered {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

impl Connections {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// Admits a connection. If `most` are open, closes the oldest one that waits for its client; returns `None` if none
    /// waits.
    pub(super) fn enter(self: &Arc<Self>, stream: OwnedFd) -> Option<Entered> {
        let mut open = self.lock();
        if open.len() >= self.most {
            let awaits = |known: &Arc<Connection>| known.awaits_client.load(Ordering::Relaxed);
            let at = open.iter().position(awaits)?;
            let oldest = open.remove(at);
            // After this call, the connection's thread reads an end of stream. The call fails if the client has already
            // disconnected.
            let _ = oldest.stream.shutdown(Shutdown::Both);
        }
        let connection =
            Arc::new(Connection { stream: Socket::from(stream), awaits_client: AtomicBool::new(true) });
        open.push(Arc::clone(&connection));
        Some(Entered { connections: Arc::clone(self), connection })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entered {
    pub(super) fn stream(&self) -> &Socket {
        &self.connection.stream
    }

    /// Runs `respond`. Meanwhile, the connection is not closed to make room for another.
    pub(super) fn responding<T>(&self, respond: impl FnOnce() -> T) -> T {
        self.connection.awaits_client.store(false, Ordering::Relaxed);
        let response = respond();
        self.connection.awaits_client.store(true, Ordering::Relaxed);
        response
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.connections.lock().retain(|known| !Arc::ptr_eq(known, &self.connection));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read as _};
    use std::os::unix::net::UnixStream;

    fn pair() -> (UnixStream, OwnedFd) {
        let (client, server) = UnixStream::pair().unwrap();
        client.set_nonblocking(true).unwrap();
        (client, server.into())
    }

    /// Whether the client's connection is still open.
    fn is_open(client: &mut UnixStream) -> bool {
        matches!(client.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    #[test]
    fn the_oldest_that_waits_for_its_client_makes_room() {
        let connections = Connections::new(2);
        let (mut clients, servers): (Vec<_>, Vec<_>) = (0..5).map(|_| pair()).unzip();
        let mut entered = servers.into_iter().map(|server| connections.enter(server));
        let first = entered.next().flatten().unwrap();
        let second = entered.next().flatten().unwrap();
        let third = first.responding(|| entered.next().flatten()).unwrap();
        let open: Vec<_> = clients.iter_mut().take(3).map(is_open).collect();
        assert_eq!(open, [true, false, true], "the first one gets its response");
        assert!(first.responding(|| third.responding(|| entered.next().flatten())).is_none());
        drop(third);
        assert!(entered.next().flatten().is_some() && is_open(&mut clients[0]), "there is room");
        drop((first, second));
        assert!(connections.lock().is_empty());
    }
}
