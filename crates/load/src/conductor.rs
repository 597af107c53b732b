//! The conductor's thread: starts the workers together, watches the time, collects per-second figures.

use crate::accounting::{Accounts, Look, Span};
use crate::error::LoadError;
use crate::options::Options;
use crate::record::recorder::{Recorder, Window};
use crate::record::seconds::{Outbox, Seconds};
use crate::rendezvous::Rendezvous;
use crate::result::{PhaseTime, Second};
use crate::share::Share;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Progress of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// Time left in the phase; zero if unknown.
    pub left: Duration,
    /// Correct responses so far, warm-up included.
    pub answered: u64,
    /// The last complete second; before the window its `at_s` is negative.
    pub last: Option<Second>,
    /// Whether the requests are gRPC calls.
    pub grpc: bool,
}

/// The phases of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Opening connections.
    Opening,
    /// Warm-up: requests are sent but not measured.
    WarmUp,
    /// Settling: the backlog of the warm-up drains.
    Settle,
    /// The measured window.
    Window,
    /// Requests in flight finish.
    Drain,
}

/// State shared by the workers and the conductor; not touched per request.
#[derive(Default)]
pub(crate) struct Shared {
    /// Workers that have opened their connections, or failed to.
    pub(crate) opened: AtomicUsize,
    pub(crate) failed: AtomicBool,
    pub(crate) times: OnceLock<(Instant, Window)>,
    /// An early end of the window.
    pub(crate) stop: OnceLock<Instant>,
    pub(crate) outboxes: Vec<Outbox>,
    /// The result of each worker.
    pub(crate) parts: Mutex<Vec<(Recorder, Span)>>,
}

pub(crate) struct Conductor<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) accounts: &'a Accounts,
    pub(crate) shares: &'a [Share],
    pub(crate) options: &'a Options,
    pub(crate) stop: &'a Receiver<()>,
}

/// What it has collected.
pub(crate) struct Conducted {
    /// Scans of the servers near the edges of the window.
    pub(crate) looks: (Look, Look),
    pub(crate) phases: Vec<PhaseTime>,
    pub(crate) seconds: Vec<Second>,
    pub(crate) partial: bool,
}

impl Conductor<'_> {
    /// Starts the workers together once all have their connections, and reports to `watch` until they have `finished`.
    pub(crate) fn conduct(
        &self,
        finished: impl Fn() -> bool,
        watch: &mut dyn FnMut(&Progress),
    ) -> Result<Option<Conducted>, LoadError> {
        let (shared, options) = (self.shared, self.options);
        let mut seconds = Seconds::new(self.shares.iter().map(|share| share.version).collect());
        let (mut answered, grpc) = (0, options.grpc.is_some());
        let mut report = |seconds: &mut Seconds, phase, left| {
            answered += seconds.collect(&shared.outboxes);
            watch(&Progress { phase, left, answered, last: seconds.last().cloned(), grpc });
        };
        let started = Instant::now();
        report(&mut seconds, Phase::Opening, Duration::ZERO);
        let patience = started + 2 * options.timeout + OPENING_MARGIN;
        let mut reported = started;
        while shared.opened.load(Ordering::Acquire) < options.workers && Instant::now() < patience {
            if finished() || self.stopped(POLL) {
                return Ok(self.give_up(finished));
            }
            if reported.elapsed() >= TICK {
                reported = Instant::now();
                report(&mut seconds, Phase::Opening, Duration::ZERO);
            }
        }
        let start = match self.start(&finished) {
            Ok(Some(start)) => start,
            Ok(None) => return Ok(self.give_up(finished)),
            Err(error) => {
                self.give_up(finished);
                return Err(error);
            }
        };
        let warm = start + options.phases.warmup;
        let from = warm + options.phases.settle;
        let to = from + options.phases.window;
        shared.times.get_or_init(|| (start, Window { from, to }));

        // Whether it was stopped early.
        let mut pass = |seconds: &mut Seconds, phase, until: Instant| loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || finished() {
                return false;
            }
            report(seconds, phase, left);
            if self.stopped(left.min(TICK)) {
                return true;
            }
        };
        let (start_lead, end_lead) = self.accounts.leads();
        let before_window = from - POLL - start_lead;
        let mut stopped = pass(&mut seconds, Phase::WarmUp, warm.min(before_window));
        stopped |= !stopped && pass(&mut seconds, Phase::Settle, before_window);
        if stopped {
            return Ok(self.give_up(finished));
        }
        let before = self.accounts.look();
        let stopped = pass(&mut seconds, Phase::Window, to - end_lead);
        // Every worker checks in time, so that all windows end at the same instant.
        let to = if stopped { (Instant::now() + STOP_MARGIN).min(to) } else { to };
        if stopped {
            let _ = shared.stop.set(to);
        }
        let after = self.accounts.look();
        let mut partial = stopped;
        report(&mut seconds, Phase::Drain, Duration::ZERO);
        let mut reported = Instant::now();
        while !finished() {
            if self.stopped(5 * POLL) {
                partial = true;
                let _ = shared.stop.set(Instant::now());
            }
            if reported.elapsed() >= TICK {
                reported = Instant::now();
                report(&mut seconds, Phase::Drain, Duration::ZERO);
            }
        }
        let phases = [
            ("opening", started, start),
            ("warm-up", start, warm),
            ("settle", warm, from),
            ("window", from, to),
            ("drain", to, Instant::now().max(to)),
        ];
        let phases = phases
            .map(|(name, from, to)| PhaseTime { name: name.to_string(), seconds: (to - from).as_secs_f64() });
        seconds.collect(&shared.outboxes);
        let seconds = seconds.into_window();
        Ok(Some(Conducted { looks: (before, after), phases: phases.into(), seconds, partial }))
    }

    /// The start of the warm-up; `None` if the run ends before.
    fn start(&self, finished: impl Fn() -> bool) -> Result<Option<Instant>, LoadError> {
        // Far enough ahead for every worker to notice.
        let soonest = || Instant::now() + 5 * POLL;
        if !self.options.rendezvous {
            return Ok(Some(soonest()));
        }
        let rendezvous = Rendezvous::ask()?;
        loop {
            if let Some(start) = rendezvous.start()? {
                return Ok(Some(start.max(soonest())));
            }
            if finished() || self.stopped(POLL) {
                return Ok(None);
            }
        }
    }

    /// Waits at most that long; whether to stop now.
    fn stopped(&self, time: Duration) -> bool {
        match self.stop.recv_timeout(time) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            // The sender is gone: nothing can stop it any more.
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(time);
                false
            }
        }
    }

    /// Ends the workers without a window.
    fn give_up(&self, finished: impl Fn() -> bool) -> Option<Conducted> {
        let now = Instant::now();
        let _ = self.shared.stop.set(now);
        self.shared.times.get_or_init(|| (now, Window { from: now, to: now }));
        while !finished() {
            thread::sleep(POLL);
        }
        None
    }
}

/// Time allowed for opening beyond the timeouts of a connection and its first request.
const OPENING_MARGIN: Duration = Duration::from_secs(1);

/// Polling interval while waiting for the workers.
const POLL: Duration = Duration::from_millis(2);

/// Wake-up interval within the window, perhaps on a measured core.
const TICK: Duration = Duration::from_secs(1);

/// How far ahead to schedule an early end: longer than each worker's polling interval.
const STOP_MARGIN: Duration = Duration::from_millis(200);
