//! Metrics of the process, under the names that all Prometheus client libraries share.

use super::exposition::Exposition;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_reactor::limits::open_files;

/// The fields of `/proc/self/stat`, numbered as in proc_pid_stat(5), after the program's name, which may contain any
/// character.
struct Stat(Vec<u64>);

/// Appends the metrics. Without `/proc`, only the descriptor limit is known.
pub(crate) fn metrics(text: &mut Exposition) {
    let mut metric = |name: &str, kind: &str, help: &str, value: f64| {
        text.family(name, kind, help);
        text.sample(name, &[], value);
    };
    if let Some(stat) = Stat::read() {
        let cpu = stat.seconds(14) + stat.seconds(15);
        metric("process_cpu_seconds_total", "counter", "User and system CPU time, in seconds.", cpu);
        let resident = stat.field(24) as f64 * page_size() as f64;
        metric("process_resident_memory_bytes", "gauge", "Resident memory, in bytes.", resident);
        metric("process_virtual_memory_bytes", "gauge", "Virtual memory, in bytes.", stat.field(23) as f64);
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

impl Stat {
    fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let (_, fields) = text.rsplit_once(')')?;
        // A few fields are negative, but none of those in use.
        let fields = fields.split_ascii_whitespace().map(|field| field.parse().unwrap_or_default());
        Some(Self(fields.collect()))
    }

    fn field(&self, number: usize) -> u64 {
        // The first field after the name is number 3.
        number.checked_sub(3).and_then(|at| self.0.get(at)).copied().unwrap_or_default()
    }

    fn seconds(&self, number: usize) -> f64 {
        self.field(number) as f64 / clock_ticks_per_second() as f64
    }
}

/// The start time of the process. It is computed once, as a later step of the wall clock would move it.
static START: LazyLock<Option<f64>> = LazyLock::new(|| {
    let since_boot = clock_gettime(ClockId::Boottime);
    let since_boot = since_boot.tv_sec as f64 + since_boot.tv_nsec as f64 / 1e9;
    let age = Duration::try_from_secs_f64(since_boot - Stat::read()?.seconds(22)).ok()?;
    let start = SystemTime::now().checked_sub(age)?.duration_since(UNIX_EPOCH).ok()?;
    Some((start.as_secs_f64() * 100.0).round() / 100.0)
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_those_behind_the_name() {
        let numbers: Vec<String> = (4..=52).map(|number| number.to_string()).collect();
        for name in ["weir", "a b", ") 1 2 (", ""] {
            let stat = Stat::parse(&format!("7 ({name}) S {}\n", numbers.join(" "))).unwrap();
            for number in 4..=52 {
                assert_eq!(stat.field(number), number as u64, "{name}");
            }
            assert_eq!((stat.field(0), stat.field(53)), (0, 0));
        }
        assert!(Stat::parse("").is_none());
    }
}
