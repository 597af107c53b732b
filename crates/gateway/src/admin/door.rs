//! The door to the admin address: who is let in, and who is owed an answer before it closes.

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_reactor::Listener;

/// The thread that accepts, and what is being answered.
#[derive(Debug)]
pub(crate) struct Door {
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Readable once nobody is let in any more.
    bell: OwnedFd,
    is_closed: AtomicBool,
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    /// Connections that wait for their first answer, and other requests that are being answered, but for upgrades.
    owed: usize,
    /// Requests that are being answered.
    answering: usize,
}

impl Door {
    /// Closed; [`super::start`] opens it. Errors: the process has no descriptor left.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            thread: Mutex::default(),
            bell: eventfd(0, EventfdFlags::CLOEXEC)?,
            is_closed: AtomicBool::new(false),
            counts: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Lets nobody in any more, and closes the socket. Connections that are there get one more answer.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        // A full counter is readable already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A panic there has ended it, too.
            let _ = thread.join();
        }
    }

    /// Closes it, and waits, but not long, until all that were let in have their answer: it needs the workers. Who has asked for
    /// an upgrade is not waited for.
    pub(crate) fn clear(&self) {
        self.close();
        drop(self.changed.wait_timeout_while(self.lock(), LAST_ANSWERS, |counts| counts.owed > 0));
    }

    /// Closes it, and waits for answers that are being given, but not long.
    pub(crate) fn finish(&self) {
        self.close();
        drop(self.changed.wait_timeout_while(self.lock(), LAST_ANSWERS, |counts| counts.answering > 0));
    }

    /// This thread accepts.
    pub(super) fn opened_by(&self, thread: JoinHandle<()>) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    /// Whether nobody is let in any more.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next connection; None: nobody is let in any more. Errors: as accept(2).
    pub(super) fn accept(&self, listener: &Listener) -> io::Result<Option<OwnedFd>> {
        loop {
            let mut waits = [PollFd::new(listener, PollFlags::IN), PollFd::new(&self.bell, PollFlags::IN)];
            rustix::io::retry_on_intr(|| poll(&mut waits, None))?;
            if self.is_closed() {
                return Ok(None);
            }
            // Another process may have been first.
            if let Some((stream, _)) = listener.accept()? {
                rustix::io::ioctl_fionbio(&stream, false)?;
                return Ok(Some(stream));
            }
        }
    }
}

/// One that is counted until it is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    door: Arc<Door>,
    of: fn(&mut Counts) -> &mut usize,
}

impl Counted {
    fn new(door: &Arc<Door>, of: fn(&mut Counts) -> &mut usize) -> Self {
        *of(&mut door.lock()) += 1;
        Self { door: Arc::clone(door), of }
    }

    /// A connection, or a request, that is owed an answer.
    pub(super) fn owed(door: &Arc<Door>) -> Self {
        Self::new(door, |counts| &mut counts.owed)
    }

    /// A request that is being answered.
    pub(super) fn answering(door: &Arc<Door>) -> Self {
        Self::new(door, |counts| &mut counts.answering)
    }

    pub(super) fn door(&self) -> &Arc<Door> {
        &self.door
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        *(self.of)(&mut self.door.lock()) -= 1;
        self.door.changed.notify_all();
    }
}

/// An answer takes milliseconds, even to a reader that is slow.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
