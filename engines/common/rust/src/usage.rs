//! Operating system counters.
#![allow(unsafe_code)] // two calls of the C library, each into memory of ours

use std::fs;

use crate::error::Error;

/// Usage of a thread so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) cpu_ns: u64,
    pub(crate) voluntary_switches: u64,
}

impl Usage {
    /// For the calling thread.
    pub(crate) fn of_thread() -> Usage {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a timespec of ours, which the call fills.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        // SAFETY: all zeros are a valid rusage, which has only integers.
        let mut counts: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `counts` is an rusage of ours, which the call fills.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut counts) };
        Usage {
            cpu_ns: time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
            voluntary_switches: counts.ru_nvcsw as u64,
        }
    }

    /// Usage since an earlier reading.
    pub(crate) fn since(self, earlier: Usage) -> Usage {
        Usage {
            cpu_ns: self.cpu_ns - earlier.cpu_ns,
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
        }
    }
}

/// The process's resident memory. The roll-up walks the pages: the cheap counters lag on machines with many cores.
pub(crate) fn resident_kib() -> Result<u64, Error> {
    const FILE: &str = "/proc/self/smaps_rollup";
    let text = fs::read_to_string(FILE).map_err(|error| Error::runner(FILE, error))?;
    text.lines()
        .find_map(|line| line.strip_prefix("Rss:")?.trim().strip_suffix("kB")?.trim().parse().ok())
        .ok_or_else(|| Error::runner(FILE, "has no line `Rss`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_cpu_time() {
        let before = Usage::of_thread();
        let sum: u64 = (0..1_000_000u64).map(std::hint::black_box).sum();
        assert!(sum > 0 && Usage::of_thread().since(before).cpu_ns > 0);
    }

    #[test]
    fn a_process_resides_somewhere() {
        assert!(resident_kib().is_ok_and(|kib| kib > 100));
    }
}
