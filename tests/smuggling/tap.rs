//! A recording relay between the gateway and a server.

use crate::common::{DEADLINE, poll_until};
use rustix::io::ioctl_fionread;
use socket2::SockRef;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A running relay.
pub(super) struct Tap {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// A position in the record.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    requests: usize,
    answers: usize,
}

#[derive(Default)]
struct Shared {
    record: Mutex<Record>,
    stopping: AtomicBool,
}

#[derive(Default)]
struct Record {
    /// Bytes from the gateway, with their connection.
    requests: Vec<(usize, Vec<u8>)>,
    /// Bytes from the server, on all connections.
    answers: Vec<u8>,
    /// Accepted connections with their sockets; the relay removes those that the gateway has closed, or either side has
    /// reset.
    accepted: Vec<(usize, TcpStream)>,
    /// Connections on which the gateway's stream has ended.
    closed: Vec<usize>,
    /// Connections on which the server's stream has ended.
    answered: Vec<usize>,
}

impl Tap {
    /// Listens on a free port and relays to `server`.
    pub(super) fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, shared) = (listener.local_addr().unwrap(), Arc::<Shared>::default());
        let seen = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for (index, gateway) in listener.incoming().enumerate() {
                if seen.stopping.load(Ordering::SeqCst) {
                    break;
                }
                let (Ok(gateway), Ok(server)) = (gateway, TcpStream::connect(server)) else { continue };
                let copies = [gateway.try_clone().unwrap(), server];
                seen.record.lock().unwrap().accepted.push((index, gateway));
                relay_both(index, copies, &seen);
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    /// Waits until the record has all bytes that the gateway sent before this call.
    pub(super) fn settle(&self) {
        // The kernel queues connections in order.
        let last = TcpStream::connect(self.address).unwrap();
        let port = last.local_addr().unwrap().port();
        poll_until(DEADLINE, "the tap has read everything", || {
            let record = self.shared.record.lock().unwrap();
            let is_last = |stream: &TcpStream| stream.peer_addr().is_ok_and(|from| from.port() == port);
            let is_read = |stream: &TcpStream| ioctl_fionread(stream).is_ok_and(|left| left == 0);
            record.accepted.iter().any(|(_, stream)| is_last(stream))
                && record.accepted.iter().all(|(_, stream)| is_read(stream))
        });
        let Record { accepted, closed, .. } = &mut *self.shared.record.lock().unwrap();
        accepted.retain(|(index, _)| !closed.contains(index));
    }

    pub(super) fn now(&self) -> Moment {
        let record = self.shared.record.lock().unwrap();
        Moment { requests: record.requests.len(), answers: record.answers.len() }
    }

    /// Bytes from the gateway since then, by connection, in the order of their first bytes.
    pub(super) fn requests_since(&self, then: Moment) -> Vec<(usize, Vec<u8>)> {
        let record = self.shared.record.lock().unwrap();
        let (mut order, mut by_connection) = (Vec::new(), BTreeMap::<usize, Vec<u8>>::new());
        for (connection, bytes) in &record.requests[then.requests..] {
            if !by_connection.contains_key(connection) {
                order.push(*connection);
            }
            by_connection.entry(*connection).or_default().extend_from_slice(bytes);
        }
        order.into_iter().map(|connection| (connection, by_connection.remove(&connection).unwrap())).collect()
    }

    /// Bytes from the server since then.
    pub(super) fn answers_since(&self, then: Moment) -> Vec<u8> {
        self.shared.record.lock().unwrap().answers[then.answers..].to_vec()
    }

    /// Whether both streams of this connection have ended.
    pub(super) fn is_over(&self, connection: usize) -> bool {
        let record = self.shared.record.lock().unwrap();
        record.closed.contains(&connection) && record.answered.contains(&connection)
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wake the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn relay_both(index: usize, [gateway, server]: [TcpStream; 2], shared: &Arc<Shared>) {
    let copies = [gateway.try_clone().unwrap(), server.try_clone().unwrap()];
    let seen = Arc::clone(shared);
    std::thread::spawn(move || {
        relay(gateway, server, index, &seen, |record, bytes| record.requests.push((index, bytes.to_vec())));
        seen.record.lock().unwrap().closed.push(index);
    });
    let [gateway, server] = copies;
    let seen = Arc::clone(shared);
    std::thread::spawn(move || {
        relay(server, gateway, index, &seen, |record, bytes| record.answers.extend_from_slice(bytes));
        seen.record.lock().unwrap().answered.push(index);
    });
}

/// Relays one direction until its end. Records bytes before forwarding them, so a response implies a recorded request.
fn relay(
    mut from: TcpStream,
    mut to: TcpStream,
    index: usize,
    shared: &Shared,
    note: impl Fn(&mut Record, &[u8]),
) {
    to.set_nodelay(true).unwrap();
    let mut bytes = vec![0; 1 << 16];
    loop {
        let peeked = from.peek(&mut bytes);
        // The record is locked during the read, so that bytes are either unread or recorded; [`Tap::settle`] relies on
        // that.
        let mut record = shared.record.lock().unwrap();
        let read = peeked.and_then(|length| from.read(&mut bytes[..length]));
        if let Ok(length @ 1..) = read {
            note(&mut record, &bytes[..length]);
        }
        drop(record);
        match read {
            Ok(0) => {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Ok(read) => {
                // A recipient that no longer reads also ends the other direction.
                let _ = to.write_all(&bytes[..read]);
            }
            Err(_) => {
                // Relays a reset as a reset; a FIN could look like the end of a message.
                let _ = SockRef::from(&to).set_linger(Some(Duration::ZERO));
                let _ = to.shutdown(Shutdown::Read);
                // The kernel sends the reset when the last copy of the socket is closed.
                shared.record.lock().unwrap().accepted.retain(|(accepted, _)| *accepted != index);
                return;
            }
        }
    }
}
