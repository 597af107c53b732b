//! What the workers and the thread that conducts them share.

use crate::accounting::Span;
use crate::options::{Options, Schedule};
use crate::record::recorder::{Recorder, Window};
use crate::record::seconds::Outbox;
use crate::schedule::{Arrivals, Plan};
use crate::worker::Worker;
use rustix::process::setpriority_process;
use rustix::thread::set_current_timer_slack;
use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// What the workers and the thread that conducts them share; nothing of it is touched for each request.
pub(crate) struct Shared {
    /// Workers whose connections have been made, or have failed.
    pub(crate) opened: AtomicUsize,
    pub(crate) failed: AtomicBool,
    pub(crate) times: OnceLock<(Instant, Window)>,
    /// An end of the window that comes before the planned one.
    pub(crate) stop: OnceLock<Instant>,
    pub(crate) outboxes: Vec<Outbox>,
    pub(crate) parts: Mutex<Vec<Part>>,
}

/// A worker's number, and what it leaves behind.
type Part = (usize, Recorder, Span);

impl Shared {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            opened: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            times: OnceLock::new(),
            stop: OnceLock::new(),
            outboxes: (0..workers).map(|_| Outbox::default()).collect(),
            parts: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn work(&self, mut worker: Worker<'_>, index: usize, options: &Options) -> io::Result<()> {
        if options.schedule.rate().is_some() {
            // The kernel gathers the wake-ups of 50 us by default; where it does not let us, the lag will tell.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
            // On a core that it shares (with the origin, on a small machine), a pacer that waits for its turn is late. A
            // thread's own priority (setpriority(2)) needs the right to raise it; without, the lag will tell as well.
            let _ = setpriority_process(None, HIGHEST_PRIORITY);
        }
        let mut told = false;
        worker.open(|settled| {
            if settled && !told {
                told = true;
                self.opened.fetch_add(1, Ordering::AcqRel);
            }
            self.times.get().is_none() && !self.failed.load(Ordering::Acquire)
        })?;
        let Some(&(start, window)) = self.times.get() else { return Ok(()) };
        let arrivals = match &options.schedule {
            Schedule::Closed { .. } => None,
            Schedule::Open { arrivals, steps } => {
                let plan = Plan { start, window: window.from, kind: *arrivals, steps, seed: options.seed };
                Some(Arrivals::new(&plan, index, options.workers))
            }
        };
        let (recorder, edges) = worker.run(start, window, arrivals, &step_ends(options, window))?;
        if let Some(edges) = edges.both() {
            let part = (index, recorder, edges);
            self.parts.lock().unwrap_or_else(PoisonError::into_inner).push(part);
        }
        Ok(())
    }
}

/// Where the steps of a rate that ramps end.
fn step_ends(options: &Options, window: Window) -> Vec<Instant> {
    match &options.schedule {
        Schedule::Open { steps, .. } if steps.len() > 1 => steps
            .iter()
            .scan(window.from, |end, step| {
                *end += step.time;
                Some(*end)
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The nice value that goes first.
const HIGHEST_PRIORITY: i32 = -20;
