//! The listener of an admin address: admits connections until it is closed, then waits for their responses.

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
    /// Becomes readable when the phase changes, to wake the accepting thread.
    shutdown_event: OwnedFd,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    counts: Counts,
}

/// The phase of the listener. It only ever moves to a later variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    #[default]
    Open,
    /// The process is draining: the socket closes when another process claims the address. Connections stay open.
    Draining,
    /// No more connections are admitted. Admitted ones get one more response.
    Closed,
}

#[derive(Debug)]
pub(crate) enum Next {
    Client(OwnedFd),
    /// The process is draining, and another one waits for the address: close the socket, then grant the claim.
    Claimed(Claim),
    Closed,
}

#[derive(Debug, Default)]
struct Counts {
    /// The number of connections that wait for their first response, and of later requests in progress, except for
    /// `/upgrade`.
    owed: usize,
    responding: usize,
}

impl AdminListener {
    /// A listener without a thread, which [`admin::start`](crate::admin::start) adds. Errors: the process is out of
    /// descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            thread: Mutex::default(),
            shutdown_event: eventfd(0, EventfdFlags::CLOEXEC)?,
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Begins to drain: the address still serves, but the next process can claim it.
    pub(crate) fn drain(&self) {
        self.enter(Phase::Draining);
    }

    /// Admits no more connections, and closes the socket. Admitted connections get one more response.
    pub(crate) fn close(&self) {
        self.enter(Phase::Closed);
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // An error means that the thread panicked, and has ended, too.
            let _ = thread.join();
        }
    }

    /// Closes while the workers still run, and waits until all admitted connections have their response, but at most
    /// [`LAST_RESPONSES`]. Does not wait for the client that requested an upgrade.
    pub(crate) fn clear(&self) {
        self.close();
        drop(self.changed.wait_timeout_while(self.lock(), LAST_RESPONSES, |state| state.counts.owed > 0));
    }

    /// Closes, and waits for requests in progress, but at most [`LAST_RESPONSES`].
    pub(crate) fn finish(&self) {
        self.close();
        drop(
            self.changed.wait_timeout_while(self.lock(), LAST_RESPONSES, |state| state.counts.responding > 0),
        );
    }

    pub(crate) fn opened_by(&self, thread: JoinHandle<()>) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

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
        // This fails only if the counter is full, and then the event is readable already.
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
                // systemd passes its own socket to the next process without a claim.
                Phase::Draining if claims.is_some() || listener.hold() == Hold::Lent => {}
                Phase::Draining => match Claims::open(listener.address()) {
                    Ok(opened) => *claims = Some(opened),
                    // If claims are impossible, release the address now: the next process needs it more.
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
                // Resets the event. No other thread reads it.
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

/// A guard that counts a connection or a request until the guard is dropped.
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

    /// Counts a connection or a request that waits for a response.
    pub(crate) fn owed(listener: &Arc<AdminListener>) -> Self {
        Self::new(listener, |counts| &mut counts.owed)
    }

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

/// The timeout for the last responses. Writing a response takes milliseconds, even to a slow reader.
const LAST_RESPONSES: Duration = Duration::from_secs(1);
