//! CPU clocks, which count nanoseconds, and the machine's.

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

/// The clock of a process, with all of its threads; `None` when there is no such process.
pub(crate) fn of_process(pid: u32) -> Option<ClockId> {
    clock_getcpuclockid(Pid::from_raw(i32::try_from(pid).ok()?)).ok()
}

/// What has been used by a clock; `None` when its process is gone.
pub(crate) fn now(clock: ClockId) -> Option<Duration> {
    clock.now().ok().map(Duration::from)
}

/// What this process has used.
pub(crate) fn own() -> Duration {
    now(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap_or_default()
}

/// What the calling thread has used.
pub(crate) fn own_thread() -> Duration {
    now(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default()
}

/// How long the machine had been up at an instant, sleep included (CLOCK_BOOTTIME); `None` where the system does not say.
pub fn since_boot(at: Instant) -> Option<Duration> {
    let now = ClockId::CLOCK_BOOTTIME.now().ok().map(Duration::from)?;
    now.checked_sub(at.elapsed())
}
