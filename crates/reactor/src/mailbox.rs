//! Messages from other threads to a loop.

use crate::slab::Key;
use crate::turn::{Interest, Reactor};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The receiving side, held by the loop.
#[derive(Debug)]
pub struct Mailbox<M>(Arc<Shared<M>>);

/// The sending side, held by other threads.
#[derive(Debug)]
pub struct Sender<M>(Arc<Shared<M>>);

#[derive(Debug)]
struct Shared<M> {
    /// The pending messages; `None` once the loop has ended.
    letters: Mutex<Option<Vec<M>>>,
    bell: OwnedFd,
}

/// Creates a mailbox and its first sender. Fails if the process has run out of descriptors.
pub fn mailbox<M>() -> io::Result<(Mailbox<M>, Sender<M>)> {
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let shared = Arc::new(Shared { letters: Mutex::new(Some(Vec::new())), bell });
    Ok((Mailbox(Arc::clone(&shared)), Sender(shared)))
}

impl<M> Mailbox<M> {
    /// Makes `reactor` report `key` as readable while there are messages. Errors: those of epoll_ctl(2).
    pub fn register(&self, reactor: &Reactor, key: Key) -> io::Result<()> {
        reactor.register(&self.0.bell, key, Interest::READ)
    }

    /// Takes all messages in the order of sending.
    pub fn take(&self) -> Vec<M> {
        let mut count = [0; 8];
        // Clear the eventfd before taking the messages: a message sent in between sets it again.
        let _ = rustix::io::read(&self.0.bell, &mut count);
        self.0.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }
}

impl<M> Drop for Mailbox<M> {
    /// Drops pending and later messages, so that a sender that waits for a reply sees the reply channel close.
    fn drop(&mut self) {
        let letters = self.0.lock().take();
        drop(letters);
    }
}

impl<M> Sender<M> {
    /// Sends a message and wakes the loop; does nothing once the loop has ended.
    pub fn send(&self, message: M) {
        let Some(()) = self.0.lock().as_mut().map(|letters| letters.push(message)) else { return };
        // The write fails only if the counter is full. The eventfd is then readable, and the loop wakes anyway.
        let _ = rustix::io::write(&self.0.bell, &1u64.to_ne_bytes());
    }
}

impl<M> Shared<M> {
    fn lock(&self) -> MutexGuard<'_, Option<Vec<M>>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> Clone for Sender<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::Events;

    #[test]
    fn messages_of_another_thread_wake_the_loop_and_keep_their_order() {
        let (mailbox, sender) = mailbox().unwrap();
        let mut reactor = Reactor::new().unwrap();
        mailbox.register(&reactor, Key::fixed(9, 0)).unwrap();
        let thread = std::thread::spawn(move || (0..100).for_each(|n| sender.send(n)));
        let (mut got, mut events) = (Vec::new(), Events::default());
        while got.len() < 100 {
            reactor.turn(&mut events, None).unwrap();
            assert!(events.ready().all(|ready| ready.key == Key::fixed(9, 0)));
            got.extend(mailbox.take());
        }
        thread.join().unwrap();
        assert_eq!(got, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn what_a_loop_that_has_ended_does_not_take_is_dropped() {
        let (mailbox, sender) = mailbox().unwrap();
        let letter = Arc::new(());
        sender.send(Arc::clone(&letter));
        assert_eq!(Arc::strong_count(&letter), 2);
        drop(mailbox);
        assert_eq!(Arc::strong_count(&letter), 1);
        sender.send(Arc::clone(&letter));
        assert_eq!(Arc::strong_count(&letter), 1);
    }
}
