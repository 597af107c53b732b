//! The thread that conducts the workers: starts them together, watches the time, gathers the seconds.

use crate::accounting::{Accounts, Look, Span};
use crate::error::LoadError;
use crate::options::Options;
use crate::record::recorder::{Recorder, Window};
use crate::record::seconds::{Outbox, Seconds};
use crate::rendezvous::Rendezvous;
use crate::result::{PhaseTime, Second};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// How far a run is, for whoever watches.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Connections are being made, the warm-up runs, the window, the drain.
    pub phase: Phase,
    /// What is left of the phase; zero where that is not known.
    pub left: Duration,
    /// Right answers so far, the warm-up's included.
    pub answered: u64,
    /// The last second that is over; before the window, its `at_s` is negative.
    pub last: Option<Second>,
}

/// The phases of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Connections are being made.
    Opening,
    /// Requests flow and are not measured yet.
    WarmUp,
    /// What the warm-up left waiting is worked off.
    Settle,
    /// The measured window.
    Window,
    /// Requests that have begun come to their end.
    Drain,
}

/// What the workers and the thread that conducts them share; nothing of it is touched for each request.
#[derive(Default)]
pub(crate) struct Shared {
    /// Workers whose connections have been made, or have failed.
    pub(crate) opened: AtomicUsize,
    pub(crate) failed: AtomicBool,
    pub(crate) times: OnceLock<(Instant, Window)>,
    /// An end of the window that comes before the planned one.
    pub(crate) stop: OnceLock<Instant>,
    pub(crate) outboxes: Vec<Outbox>,
    /// What each worker leaves behind.
    pub(crate) parts: Mutex<Vec<(Recorder, Span)>>,
}

pub(crate) struct Conductor<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) accounts: &'a Accounts,
    pub(crate) options: &'a Options,
    pub(crate) stop: &'a Receiver<()>,
}

/// What it has gathered.
pub(crate) struct Conducted {
    /// Looks at the servers near the edges of the window.
    pub(crate) looks: (Look, Look),
    pub(crate) phases: Vec<PhaseTime>,
    pub(crate) seconds: Vec<Second>,
    pub(crate) partial: bool,
}

impl Conductor<'_> {
    /// Starts the workers together once all have their connections, and tells `watch` until they have `finished`.
    pub(crate) fn conduct(
        &self,
        finished: impl Fn() -> bool,
        watch: &mut dyn FnMut(&Progress),
    ) -> Result<Option<Conducted>, LoadError> {
        let (shared, options) = (self.shared, self.options);
        let mut seconds = Seconds::new(options.workers);
        let mut answered = 0;
        let mut tell = |seconds: &mut Seconds, phase, left| {
            answered += seconds.collect(&shared.outboxes);
            watch(&Progress { phase, left, answered, last: seconds.last().cloned() });
        };
        let begun = Instant::now();
        tell(&mut seconds, Phase::Opening, Duration::ZERO);
        let patience = begun + 2 * options.timeout + OPENING_MARGIN;
        let mut told = begun;
        while shared.opened.load(Ordering::Acquire) < options.workers && Instant::now() < patience {
            if finished() || self.stopped(POLL) {
                return Ok(self.give_up(finished));
            }
            if told.elapsed() >= TICK {
                told = Instant::now();
                tell(&mut seconds, Phase::Opening, Duration::ZERO);
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

        // Whether it was told to end early.
        let mut pass = |seconds: &mut Seconds, phase, until: Instant| loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || finished() {
                return false;
            }
            tell(seconds, phase, left);
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
        // Every worker looks in time, so that all end their windows at one instant.
        let to = if stopped { (Instant::now() + STOP_MARGIN).min(to) } else { to };
        if stopped {
            let _ = shared.stop.set(to);
        }
        let after = self.accounts.look();
        let mut partial = stopped;
        tell(&mut seconds, Phase::Drain, Duration::ZERO);
        let mut told = Instant::now();
        while !finished() {
            if self.stopped(5 * POLL) {
                partial = true;
                let _ = shared.stop.set(Instant::now());
            }
            if told.elapsed() >= TICK {
                told = Instant::now();
                tell(&mut seconds, Phase::Drain, Duration::ZERO);
            }
        }
        let phases = [
            ("opening", begun, start),
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

    /// When the warm-up begins; `None` when the run ends before.
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

    /// Waits that long at most; whether the run is to end now.
    fn stopped(&self, time: Duration) -> bool {
        match self.stop.recv_timeout(time) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            // Nobody can tell any more.
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(time);
                false
            }
        }
    }

    /// Has the workers end without a window.
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

/// How long the opening may take beyond the time-outs of a connection and of its first request.
const OPENING_MARGIN: Duration = Duration::from_secs(1);

/// How often the conductor looks while it waits for the workers.
const POLL: Duration = Duration::from_millis(2);

/// How often the conductor wakes up within the window, perhaps on a measured core.
const TICK: Duration = Duration::from_secs(1);

/// How far ahead the early end of a window lies: more than the time within which each worker looks.
const STOP_MARGIN: Duration = Duration::from_millis(200);
