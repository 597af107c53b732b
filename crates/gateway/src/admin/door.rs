//! The door to an admin address: it admits connections, and closes when each of them has its response.

use super::claim::{Claim, Claims};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_reactor::Listener;
use weir_reactor::listener::Hold;

/// The thread that accepts, and what is being answered.
#[derive(Debug)]
pub(crate) struct Door {
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Readable when the phase has changed.
    bell: OwnedFd,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    counts: Counts,
}

/// It moves downwards alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    #[default]
    Open,
    /// The process drains: the socket is closed once another process claims the address. Connections go on.
    Draining,
    /// It admits no new connection. Those it has admitted get one more response.
    Closed,
}

/// What came to the socket.
#[derive(Debug)]
pub(super) enum Next {
    Client(OwnedFd),
    /// The process drains, and another one waits for the address: close the socket, and grant it.
    Claimed(Claim),
    /// Admits no more connections.
    Closed,
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
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// The process drains: it stays observable, and leaves the address to the next process that claims it.
    pub(crate) fn drain(&self) {
        self.enter(Phase::Draining);
    }

    /// Lets nobody in any more, and closes the socket. Connections that are there get one more answer.
    pub(crate) fn close(&self) {
        self.enter(Phase::Closed);
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A panic there has ended it, too.
            let _ = thread.join();
        }
    }

    /// Closes it, and waits, but not long, until all that were let in have their answer: it needs the workers. Who has asked for
    /// an upgrade is not waited for.
    pub(crate) fn clear(&self) {
        self.close();
        drop(self.changed.wait_timeout_while(self.lock(), LAST_ANSWERS, |state| state.counts.owed > 0));
    }

    /// Closes it, and waits for answers that are being given, but not long.
    pub(crate) fn finish(&self) {
        self.close();
        drop(self.changed.wait_timeout_while(self.lock(), LAST_ANSWERS, |state| state.counts.answering > 0));
    }

    /// This thread accepts.
    pub(super) fn opened_by(&self, thread: JoinHandle<()>) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    /// Whether nobody is let in any more.
    pub(super) fn is_closed(&self) -> bool {
        self.phase() == Phase::Closed
    }

    fn phase(&self) -> Phase {
        self.lock().phase
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.lock();
        state.phase = state.phase.max(phase);
        drop(state);
        // A full counter is readable already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next connection, or the end. `claims`: those of a drain, opened when it begins. Errors: as accept(2).
    pub(super) fn next(&self, listener: &Listener, claims: &mut Option<Claims>) -> io::Result<Next> {
        loop {
            match self.phase() {
                Phase::Open => {}
                // The next process gets the socket of systemd, and needs no claim.
                Phase::Draining if claims.is_some() || listener.hold() == Hold::Lent => {}
                Phase::Draining => match Claims::open(listener.address()) {
                    Ok(opened) => *claims = Some(opened),
                    // An address that cannot be claimed is left at once: the next process matters more.
                    Err(_) => return Ok(Next::Closed),
                },
                Phase::Closed => return Ok(Next::Closed),
            }
            let mut waits =
                vec![PollFd::new(listener, PollFlags::IN), PollFd::new(&self.bell, PollFlags::IN)];
            waits.extend(claims.as_ref().map(|claims| PollFd::new(claims, PollFlags::IN)));
            rustix::io::retry_on_intr(|| poll(&mut waits, None))?;
            let has_rung = !waits[1].revents().is_empty();
            if has_rung {
                // Its thread alone waits for it.
                let _ = rustix::io::read(&self.bell, &mut [0; 8]);
                continue;
            }
            if let Some(claim) = claims.as_ref().and_then(Claims::take) {
                return Ok(Next::Claimed(claim));
            }
            // Another process may have been first.
            if let Some((stream, _)) = listener.accept()? {
                rustix::io::ioctl_fionbio(&stream, false)?;
                return Ok(Next::Client(stream));
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
        *of(&mut door.lock().counts) += 1;
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
        *(self.of)(&mut self.door.lock().counts) -= 1;
        self.door.changed.notify_all();
    }
}

/// An answer takes milliseconds, even to a reader that is slow.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
