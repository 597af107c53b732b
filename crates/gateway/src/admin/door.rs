//! The door to an admin address: it admits connections, and closes once each of them has its response.

use super::claim::{Claim, Claims};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_reactor::Listener;
use weir_reactor::listener::Hold;

/// The thread that accepts connections, and the count of requests in progress.
#[derive(Debug)]
pub(crate) struct Door {
    thread: Mutex<Option<JoinHandle<()>>>,
    /// An eventfd that becomes readable when the phase changes.
    bell: OwnedFd,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    counts: Counts,
}

/// The phase of a door. It only ever moves to a later variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    #[default]
    Open,
    /// The process drains: the socket closes when another process claims the address. Connections stay open.
    Draining,
    /// The door admits no more connections. Admitted ones get one more response.
    Closed,
}

/// The next event for the accepting thread.
#[derive(Debug)]
pub(super) enum Next {
    Client(OwnedFd),
    /// The process drains, and another one waits for the address: close the socket, then grant the claim.
    Claimed(Claim),
    /// The door is closed.
    Closed,
}

#[derive(Debug, Default)]
struct Counts {
    /// Connections without their first response, and later requests in progress; upgrades do not count.
    owed: usize,
    /// Requests in progress.
    answering: usize,
}

impl Door {
    /// A door without a thread, which [`super::start`] adds. Errors: the process is out of descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            thread: Mutex::default(),
            bell: eventfd(0, EventfdFlags::CLOEXEC)?,
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Begins to drain: the process remains observable, and releases the address to the next process that claims it.
    pub(crate) fn drain(&self) {
        self.enter(Phase::Draining);
    }

    /// Admits no more connections, and closes the socket. Admitted connections get one more response.
    pub(crate) fn close(&self) {
        self.enter(Phase::Closed);
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A panic has ended the thread, too.
            let _ = thread.join();
        }
    }

    /// Closes the door while the workers still run, and waits until all admitted connections have their response, but
    /// at most [`LAST_ANSWERS`]. It does not wait for the client that asked for an upgrade.
    pub(crate) fn clear(&self) {
        self.close();
        drop(self.changed.wait_timeout_while(self.lock(), LAST_ANSWERS, |state| state.counts.owed > 0));
    }

    /// Closes the door, and waits for requests in progress, but at most [`LAST_ANSWERS`].
    pub(crate) fn finish(&self) {
        self.close();
        drop(self.changed.wait_timeout_while(self.lock(), LAST_ANSWERS, |state| state.counts.answering > 0));
    }

    /// Records the thread that accepts connections.
    pub(super) fn opened_by(&self, thread: JoinHandle<()>) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    /// Whether the door admits no more connections.
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
        // The write fails only if the counter is full, and the eventfd readable already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next event. `claims` is opened when a drain begins. Errors: as accept(2).
    pub(super) fn next(&self, listener: &Listener, claims: &mut Option<Claims>) -> io::Result<Next> {
        loop {
            match self.phase() {
                Phase::Open => {}
                // The next process gets a socket of systemd's without a claim.
                Phase::Draining if claims.is_some() || listener.hold() == Hold::Lent => {}
                Phase::Draining => match Claims::open(listener.address()) {
                    Ok(opened) => *claims = Some(opened),
                    // Without claims, release the address at once: the next process needs it more.
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
                // No other thread reads the eventfd.
                let _ = rustix::io::read(&self.bell, &mut [0; 8]);
                continue;
            }
            if let Some(claim) = claims.as_ref().and_then(Claims::take) {
                return Ok(Next::Claimed(claim));
            }
            // Another process may have accepted the connection.
            if let Some((stream, _)) = listener.accept()? {
                rustix::io::ioctl_fionbio(&stream, false)?;
                return Ok(Next::Client(stream));
            }
        }
    }
}

/// A guard that counts a connection or a request until it is dropped.
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

    /// A connection or a request that waits for a response.
    pub(super) fn owed(door: &Arc<Door>) -> Self {
        Self::new(door, |counts| &mut counts.owed)
    }

    /// A request in progress.
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

/// The timeout for the last responses. A response takes milliseconds, even to a slow reader.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
