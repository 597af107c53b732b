//! Detection of wall clock steps. Deadlines do not depend on the wall clock, but dates and ticket keys do.

use crate::observe::journal::Journal;
use crate::process::ConfigStatus;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Starts a thread that reports each step of the clock until the process ends. Errors: as timerfd_create(2), or the
/// thread cannot be started.
pub(crate) fn watch(status: Arc<ConfigStatus>, journal: Journal) -> io::Result<()> {
    let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::CLOEXEC)?;
    arm(&timer)?;
    let mut before = Reading::now();
    thread::Builder::new().name("clock".into()).spawn(move || {
        // Any other error ends the loop, since it would repeat immediately.
        while let Err(Errno::CANCELED | Errno::INTR) = rustix::io::read(&timer, &mut [0; 8]) {
            let now = Reading::now();
            status.clock_was_set();
            if let Some(step) = Step::between(before, now) {
                journal.line(step);
            }
            before = now;
            if arm(&timer).is_err() {
                break;
            }
        }
    })?;
    Ok(())
}

/// Arms the timer for a date in the far future. The kernel cancels the wait when the clock is set (timerfd_create(2)).
fn arm(timer: &OwnedFd) -> io::Result<()> {
    let never = Timespec { tv_sec: i64::MAX / 1_000_000_000, tv_nsec: 0 };
    let once = Itimerspec { it_interval: Timespec::default(), it_value: never };
    let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    timerfd_settime(timer, flags, &once)?;
    Ok(())
}

/// The times of the wall clock and of the monotonic clock at one moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    wall: SystemTime,
    monotonic: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Forward(Duration),
    Back(Duration),
}

/// The smallest step to report; smaller ones have no visible effect.
const LEAST: Duration = Duration::from_secs(1);

impl Reading {
    fn now() -> Self {
        Self { wall: SystemTime::now(), monotonic: Instant::now() }
    }
}

impl Step {
    fn between(before: Reading, now: Reading) -> Option<Self> {
        let expected = before.wall + now.monotonic.saturating_duration_since(before.monotonic);
        let step = match now.wall.duration_since(expected) {
            Ok(step) => Self::Forward(step),
            Err(error) => Self::Back(error.duration()),
        };
        let (Self::Forward(by) | Self::Back(by)) = step;
        (by >= LEAST).then_some(step)
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (by, direction) = match self {
            Self::Forward(by) => (by, "forward"),
            Self::Back(by) => (by, "back"),
        };
        write!(
            f,
            "weir: the clock was set {direction} by {:.1} s; timeouts are unaffected, dates and ticket keys follow it",
            by.as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_what_the_monotonic_clock_does_not_explain() {
        let before = Reading::now();
        let after = |wall: f64| Reading {
            wall: before.wall + Duration::from_secs_f64(wall),
            monotonic: before.monotonic + Duration::from_secs(100),
        };
        assert_eq!(Step::between(before, after(100.5)), None);
        let said = |wall| Step::between(before, after(wall)).unwrap().to_string();
        assert!(said(500.0).starts_with("weir: the clock was set forward by 400.0 s;"), "{}", said(500.0));
        assert!(said(40.0).starts_with("weir: the clock was set back by 60.0 s;"), "{}", said(40.0));
    }
}
