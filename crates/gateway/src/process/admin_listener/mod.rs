//! The door to an admin address: it admits connections, and closes once each of them has its response.

pub(super) mod claim;

use claim::{Claim, Claims};
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
pub(crate) struct AdminListener {
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Readable after a change of phase, so that the accepting thread wakes up.
    shutdown_event: OwnedFd,
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
pub(crate) enum Next {
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
    responding: usize,
}

impl AdminListener {
    /// A door without a thread, which [`super::start`] adds. Errors: the process is out of descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            thread: Mutex::default(),
            shutdown_event: eventfd(0, EventfdFlags::CLOEXEC)?,
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
    /// at most [`LAST_RESPONSES`]. It does not wait for the client that asked for an upgrade.
    pub(crate) fn clear(&self) {
        self.close();
        drop(self.changed.wait_timeout_while(self.lock(), LAST_RESPONSES, |state| state.counts.owed > 0));
    }

    /// Closes the door, and waits for requests in progress, but at most [`LAST_RESPONSES`].
    pub(crate) fn finish(&self) {
        self.close();
        drop(
            self.changed.wait_timeout_while(self.lock(), LAST_RESPONSES, |state| state.counts.responding > 0),
        );
    }

    /// Records the thread that accepts connections.
    pub(crate) fn opened_by(&self, thread: JoinHandle<()>) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    /// Whether the door admits no more connections.
    pub(crate) fn is_closed(&self) -> bool {
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
        let _ = rustix::io::write(&self.shutdown_event, &1u64.to_ne_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next event. `claims` is opened when a drain begins. Errors: as accept(2).
    pub(crate) fn next(&self, listener: &Listener, claims: &mut Option<Claims>) -> io::Result<Next> {
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
                vec![PollFd::new(listener, PollFlags::IN), PollFd::new(&self.shutdown_event, PollFlags::IN)];
            waits.extend(claims.as_ref().map(|claims| PollFd::new(claims, PollFlags::IN)));
            rustix::io::retry_on_intr(|| poll(&mut waits, None))?;
            let has_changed = !waits[1].revents().is_empty();
            if has_changed {
                // No other thread reads it.
                let _ = rustix::io::read(&self.shutdown_event, &mut [0; 8]);
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
pub(crate) struct Counted {
    listener: Arc<AdminListener>,
    of: fn(&mut Counts) -> &mut usize,
}

impl Counted {
    fn new(listener: &Arc<AdminListener>, of: fn(&mut Counts) -> &mut usize) -> Self {
        *of(&mut listener.lock().counts) += 1;
        Self { listener: Arc::clone(listener), of }
    }

    /// A connection or a request that waits for a response.
    pub(crate) fn owed(listener: &Arc<AdminListener>) -> Self {
        Self::new(listener, |counts| &mut counts.owed)
    }

    /// A request in progress.
    pub(crate) fn responding(listener: &Arc<AdminListener>) -> Self {
        Self::new(listener, |counts| &mut counts.responding)
    }

    pub(crate) fn listener(&self) -> &Arc<AdminListener> {
        &self.listener
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        *(self.of)(&mut self.listener.lock().counts) -= 1;
        self.listener.changed.notify_all();
    }
}

/// The timeout for the last responses. A response takes milliseconds, even to a slow reader.
const LAST_RESPONSES: Duration = Duration::from_secs(1);
