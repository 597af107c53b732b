//! The CPU time of processes and their threads between two instants.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use weir_doctor::proc::{Stat, thread_times, threads};

/// The CPU time of processes and threads from one instant to another, in seconds.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    /// Including threads that have exited.
    processes: BTreeMap<u32, f64>,
    threads: BTreeMap<u32, f64>,
    /// The time for which threads were runnable without a core.
    queued: BTreeMap<u32, f64>,
    at: Instant,
    time: Duration,
}

impl Activity {
    /// The CPU time so far.
    pub(crate) fn begin(pids: &[u32]) -> Self {
        let process = |pid: &u32| Some((*pid, Stat::of(pid)?.cpu()?.as_secs_f64()));
        let processes = pids.iter().filter_map(process).collect();
        let all_threads = pids.iter().flat_map(|&pid| threads(pid).map(move |tid| (pid, tid)));
        let times = all_threads.filter_map(|(pid, tid)| Some((tid, thread_times(pid, tid)?)));
        let both =
            times.map(|(tid, times)| ((tid, times.cpu.as_secs_f64()), (tid, times.queued.as_secs_f64())));
        let (threads, queued) = both.unzip();
        Self { processes, threads, queued, at: Instant::now(), time: Duration::ZERO }
    }

    /// The CPU time since [`Activity::begin`].
    pub(crate) fn end(&self, pids: &[u32]) -> Self {
        let mut now = Self::begin(pids);
        now.time = self.at.elapsed();
        for (all, before) in [
            (&mut now.processes, &self.processes),
            (&mut now.threads, &self.threads),
            (&mut now.queued, &self.queued),
        ] {
            for (id, used) in all {
                *used = (*used - before.get(id).copied().unwrap_or(0.0)).max(0.0);
            }
        }
        now
    }

    /// The length of the period in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.time.as_secs_f64()
    }

    /// The CPU time of all processes, in seconds.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        self.processes.values().sum()
    }

    /// The cores that were busy, on average.
    pub(crate) fn cores(&self) -> f64 {
        self.cpu_seconds() / self.seconds().max(1e-9)
    }

    /// The CPU time of the busiest thread, as a share of a core.
    pub(crate) fn busiest_thread(&self) -> f64 {
        most(&self.threads) / self.seconds().max(1e-9)
    }

    /// The maximum share of the time for which a thread was runnable without a core.
    pub(crate) fn most_queued(&self) -> f64 {
        most(&self.queued) / self.seconds().max(1e-9)
    }

    /// The number of threads that used at least this share of the busiest one's CPU time.
    pub(crate) fn threads(&self, part: f64) -> usize {
        busy(&self.threads, part)
    }

    /// The number of processes that used at least this share of the busiest one's CPU time.
    pub(crate) fn processes(&self, part: f64) -> usize {
        busy(&self.processes, part)
    }
}

fn most(all: &BTreeMap<u32, f64>) -> f64 {
    all.values().copied().fold(0.0, f64::max)
}

fn busy(all: &BTreeMap<u32, f64>, part: f64) -> usize {
    let least = most(all) * part;
    all.values().filter(|used| **used > 0.0 && **used >= least).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_those_that_used_much() {
        let activity = Activity {
            processes: [(1, 0.0), (2, 0.0001), (3, 1.0), (4, 0.9)].into(),
            threads: [(1, 0.0), (2, 0.0001), (3, 1.0), (5, 0.4), (6, 0.5)].into(),
            queued: [(1, 0.1), (3, 0.5)].into(),
            at: Instant::now(),
            time: Duration::from_secs(2),
        };
        assert_eq!((activity.processes(0.1), activity.threads(0.1)), (2, 3));
        assert!((activity.busiest_thread() - 0.5).abs() < 1e-9, "{activity:?}");
        assert!((activity.most_queued() - 0.25).abs() < 1e-9, "{activity:?}");
        assert!(activity.cores() > 0.9 && activity.cores() < 1.0, "{activity:?}");
    }

    #[test]
    fn work_shows() {
        let pids = [std::process::id()];
        let begin = Activity::begin(&pids);
        let deadline = Instant::now() + Duration::from_secs(10);
        while begin.end(&pids).cpu_seconds() < 0.05 {
            assert!(Instant::now() < deadline, "no CPU was counted");
        }
    }
}
