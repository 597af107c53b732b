//! CPU clocks, in nanoseconds, and the boot clock.

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

/// The clock of a process, with all of its threads; `None` when there is no such process.
pub(crate) fn of_process(pid: u32) -> Option<ClockId> {
    clock_getcpuclockid(Pid::from_raw(i32::try_from(pid).ok()?)).ok()
}

/// CPU time on a clock; `None` once its process is gone.
pub(crate) fn now(clock: ClockId) -> Option<Duration> {
    clock.now().ok().map(Duration::from)
}

/// CPU time of this process.
pub(crate) fn own() -> Duration {
    now(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap_or_default()
}

/// Time since boot at an instant, suspend included (CLOCK_BOOTTIME); `None` if unavailable.
pub fn since_boot(at: Instant) -> Option<Duration> {
    let now = ClockId::CLOCK_BOOTTIME.now().ok().map(Duration::from)?;
    now.checked_sub(at.elapsed())
}
