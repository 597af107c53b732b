//! Metrics of the process, under the standard names of Prometheus client libraries.

use super::exposition::Exposition;
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_doctor::proc::Stat;
use weir_reactor::limits::open_files;

/// Appends the metrics. Without `/proc`, only the descriptor limit is available.
pub(crate) fn metrics(text: &mut Exposition) {
    let mut metric = |name: &str, kind: &str, help: &str, value: f64| {
        text.family(name, kind, help);
        text.sample(name, &[], value);
    };
    if let Some(stat) = Stat::of("self") {
        let cpu = stat.cpu().unwrap_or_default().as_secs_f64();
        metric("process_cpu_seconds_total", "counter", "User and system CPU time, in seconds.", cpu);
        let resident = stat.field(24).unwrap_or_default() as f64 * page_size() as f64;
        metric("process_resident_memory_bytes", "gauge", "Resident memory, in bytes.", resident);
        let memory = stat.field(23).unwrap_or_default() as f64;
        metric("process_virtual_memory_bytes", "gauge", "Virtual memory, in bytes.", memory);
        metric("process_open_fds", "gauge", "Open file descriptors.", open_files() as f64);
    }
    if let Some(limit) = getrlimit(Resource::Nofile).current {
        metric("process_max_fds", "gauge", "The limit of open file descriptors.", limit as f64);
    }
    if let Some(start) = *START {
        let help = "Start time of the process, in seconds since 1970.";
        metric("process_start_time_seconds", "gauge", help, start);
    }
}

/// The start time of the process, computed once: a later step of the wall clock would change the result.
static START: LazyLock<Option<f64>> = LazyLock::new(|| {
    let since_boot = Duration::try_from(clock_gettime(ClockId::Boottime)).ok()?;
    let age = since_boot.checked_sub(Stat::of("self")?.time(22)?)?;
    let start = SystemTime::now().checked_sub(age)?.duration_since(UNIX_EPOCH).ok()?;
    Some((start.as_secs_f64() * 100.0).round() / 100.0)
});
