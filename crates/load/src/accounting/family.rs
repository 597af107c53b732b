//! Snapshots of processes with their threads, and the usage between two of them, exited children included.

use super::clock;
use super::proc::{self, Life, Thread};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use weir_doctor::proc::descendants;

/// A snapshot of processes, by PID.
#[derive(Clone, Debug, Default)]
pub(crate) struct Family(pub(crate) BTreeMap<u32, Life>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) cpu: Duration,
    /// Processes of the first snapshot; those that came and went cannot be counted.
    pub(crate) known: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Working {
    pub(crate) threads: usize,
    /// The cores they may run on.
    pub(crate) cores: Vec<usize>,
}

impl Family {
    pub(crate) fn of(roots: impl IntoIterator<Item = u32>) -> Self {
        let all = proc::stats();
        let parents: Vec<(u32, u32)> = all.iter().map(|(pid, life)| (*pid, life.parent)).collect();
        Self::seen(descendants(roots, &parents), all)
    }

    pub(crate) fn just(pids: impl IntoIterator<Item = u32>) -> Self {
        let pids: Vec<u32> = pids.into_iter().collect();
        let all = pids.iter().filter_map(|pid| Some((*pid, proc::stat(*pid)?))).collect();
        Self::seen(pids, all)
    }

    fn seen(pids: impl IntoIterator<Item = u32>, mut all: BTreeMap<u32, Life>) -> Self {
        let life = |pid: u32| {
            let mut life = all.remove(&pid)?;
            life.cpu = clock::of_process(pid).and_then(clock::now)?;
            let threads = weir_doctor::proc::threads(pid);
            life.threads = threads.filter_map(|tid| Some((tid, proc::thread(pid, tid)?))).collect();
            life.rss_kib = proc::rss_kib(pid);
            life.open_files = proc::open_files(pid);
            Some((pid, life))
        };
        Self(pids.into_iter().filter_map(life).collect())
    }

    /// The process `pid`, if it still has that start time.
    pub(crate) fn same(&self, pid: u32, started: u64) -> Option<&Life> {
        self.0.get(&pid).filter(|life| life.started == started)
    }

    /// CPU of processes that exited since `before`, as far as their parents reaped them and are still
    /// alive. The kernel reports their whole CPU on exit, so what they used before is subtracted. The account
    /// of a process whose parent does not wait (it ignores SIGCHLD), or exited without waiting, is lost.
    pub(crate) fn ended_since(&self, before: &Self) -> Ended {
        let nanoseconds = |time: Duration| time.as_nanos() as u64;
        let known = before.0.iter().filter(|(pid, life)| self.same(**pid, life.started).is_none()).count();
        let cpu = self.left_since(before, |life| nanoseconds(life.cpu), |life| nanoseconds(life.waited));
        Ended { cpu: Duration::from_nanos(cpu), known }
    }

    /// Usage of processes that exited since `before`, for any quantity that the kernel adds to the parent's:
    /// `own` is a process's, `waited` that of its reaped children. See
    /// [`Self::ended_since`].
    pub(crate) fn left_since(
        &self,
        before: &Self,
        own: impl Fn(&Life) -> u64,
        waited: impl Fn(&Life) -> u64,
    ) -> u64 {
        let mut known: BTreeMap<u32, u64> = BTreeMap::new();
        for (pid, life) in &before.0 {
            if self.same(*pid, life.started).is_none()
                && let Some(heir) = self.heir(before, life)
            {
                *known.entry(heir).or_default() += own(life) + waited(life);
            }
        }
        let left = |(pid, life): (&u32, &Life)| {
            let since = waited(life).saturating_sub(before.same(*pid, life.started).map_or(0, &waited));
            since.saturating_sub(known.get(pid).copied().unwrap_or_default())
        };
        self.0.iter().map(left).sum()
    }

    /// The nearest ancestor of a process of `before` that is still alive.
    fn heir(&self, before: &Self, life: &Life) -> Option<u32> {
        let mut parent = life.parent;
        // A chain of ancestors is at most as long as the number of processes.
        for _ in 0..before.0.len() {
            let of_parent = before.0.get(&parent)?;
            if self.same(parent, of_parent.started).is_some() {
                return Some(parent);
            }
            parent = of_parent.parent;
        }
        None
    }

    /// Each thread by TID, with its state in `before`, if any.
    pub(crate) fn threads<'a>(
        &'a self,
        before: &'a Self,
    ) -> impl Iterator<Item = (u32, &'a Thread, Option<&'a Thread>)> {
        self.0.iter().flat_map(|(pid, life)| {
            let earlier = before.same(*pid, life.started);
            let then = move |tid| earlier.and_then(|life| life.threads.get(tid));
            life.threads.iter().map(move |(tid, thread)| (*tid, thread, then(tid)))
        })
    }

    /// Number of threads that worked since `before`. A thread below 1 % of the window does not count unless all are
    /// below.
    pub(crate) fn working_since(&self, before: &Self, window: Duration) -> Working {
        let used = self.threads(before).map(|(tid, thread, then)| {
            (thread.cpu.saturating_sub(then.map_or(Duration::ZERO, |then| then.cpu)), tid)
        });
        let mut threads: Vec<(Duration, u32)> = used.collect();
        let most = threads.iter().map(|thread| thread.0).max().unwrap_or_default();
        threads.retain(|(used, _)| *used >= (window / 100).min(most));
        let mut cores = BTreeSet::new();
        for (_, tid) in &threads {
            let Some(tid) = rustix::process::Pid::from_raw(*tid as i32) else { continue };
            if let Ok(set) = sched_getaffinity(Some(tid)) {
                cores.extend((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)));
            }
        }
        Working { threads: threads.len(), cores: cores.into_iter().collect() }
    }

    /// Name and CPU of the thread that used the most since `before`, among those that existed then.
    pub(crate) fn busiest_since<'a>(&'a self, before: &'a Self) -> Option<(&'a str, Duration)> {
        let used = self.threads(before).filter_map(|(_, thread, then)| {
            Some((thread.name.as_str(), thread.cpu.saturating_sub(then?.cpu)))
        });
        used.max_by_key(|(_, used)| *used)
    }

    /// Peak resident memory, summed. Shared memory counts once per process.
    pub(crate) fn rss_peak_kib(&self) -> u64 {
        self.0.keys().filter_map(|pid| proc::rss_peak_kib(*pid)).sum()
    }
}

impl Working {
    /// How many cores these threads can use at once: their allowed cores, at most one per thread.
    pub(crate) fn usable(&self) -> u32 {
        self.cores.len().min(self.threads).max(1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Process, parent, own CPU, CPU of reaped children; all started at 1.
    fn family(lives: &[(u32, u32, u64, u64)]) -> Family {
        let life = |&(pid, parent, cpu, waited)| {
            let life = Life { parent, started: 1, cpu: ms(cpu), waited: ms(waited), ..Life::default() };
            (pid, life)
        };
        Family(lives.iter().map(life).collect())
    }

    #[test]
    fn exited_processes_are_accounted_to_the_parent_that_reaped_them() {
        let before = family(&[(1, 0, 50, 100), (2, 1, 300, 0), (3, 2, 40, 20)]);
        let ended = |after: &[(u32, u32, u64, u64)]| family(after).ended_since(&before);
        let all_there = [(1, 0, 60, 100), (2, 1, 310, 0), (3, 2, 45, 20)];
        assert_eq!(ended(&all_there), Ended::default());
        // Started and exited in between: 70 ms, not seen before.
        assert_eq!(ended(&[(1, 0, 60, 170), all_there[1], all_there[2]]), Ended { cpu: ms(70), known: 0 });
        // 3 exited: of the 100 ms that 2 reports, 60 were used before.
        assert_eq!(ended(&[all_there[0], (2, 1, 310, 100)]), Ended { cpu: ms(40), known: 1 });
        // 2 and 3 exited, 3 first: 1 reports 480 ms, of which 360 were used before.
        assert_eq!(ended(&[(1, 0, 60, 580)]), Ended { cpu: ms(120), known: 2 });
        // No parent waited: nothing is known, and nothing is subtracted.
        assert_eq!(ended(&[all_there[0], all_there[1]]), Ended { cpu: ms(0), known: 1 });
        assert_eq!(ended(&[]), Ended { cpu: ms(0), known: 3 });
    }

    #[test]
    fn an_id_that_is_used_again_is_another_process() {
        let before = family(&[(1, 0, 0, 0), (2, 1, 300, 0)]);
        let mut after = family(&[(1, 0, 0, 400), (2, 1, 5, 0)]);
        after.0.get_mut(&2).unwrap().started = 9;
        assert_eq!(after.ended_since(&before), Ended { cpu: ms(100), known: 1 });
        assert!(after.same(2, 1).is_none() && after.same(2, 9).is_some());
    }

    #[test]
    fn the_busiest_thread_is_one_that_was_there_all_the_time() {
        let of = |pid: u32, started: u64, threads: &[(u32, &str, u64)]| {
            let thread = |&(tid, name, cpu): &(u32, &str, u64)| {
                (tid, Thread { name: name.into(), cpu: ms(cpu), switches: None })
            };
            (pid, Life { started, threads: threads.iter().map(thread).collect(), ..Life::default() })
        };
        let before = Family([of(1, 1, &[(1, "node", 100), (2, "old", 0)]), of(9, 1, &[(9, "x", 0)])].into());
        let after = |threads: &[(u32, &str, u64)], other: u64| {
            Family([of(1, 1, threads), of(9, other, &[(9, "x", 900)])].into())
        };
        let all = after(&[(1, "node", 800), (2, "old", 600), (3, "new", 990)], 7);
        assert_eq!(
            all.busiest_since(&before),
            Some(("node", ms(700))),
            "neither a new one nor a new process"
        );
        assert_eq!(
            after(&[(1, "node", 800)], 1).busiest_since(&before),
            Some(("x", ms(900))),
            "of any process"
        );
        assert_eq!(all.busiest_since(&Family::default()), None);
    }

    #[test]
    fn threads_that_did_nothing_do_not_count() {
        let with = |threads: &[(u32, u64)]| {
            let thread = |&(tid, cpu): &(u32, u64)| (tid, Thread { cpu: ms(cpu), ..Thread::default() });
            let threads = threads.iter().map(thread).collect();
            Family([(1, Life { threads, ..Life::default() })].into())
        };
        let before = with(&[(1, 100), (2, 100), (3, 0)]);
        let working = |after: &[(u32, u64)]| with(after).working_since(&before, ms(1000)).threads;
        assert_eq!(working(&[(1, 600), (2, 105), (3, 9)]), 1);
        assert_eq!(working(&[(1, 600), (2, 110), (3, 10)]), 3);
        assert_eq!(working(&[(1, 100), (2, 104), (3, 4)]), 2, "if all did little, the busiest count");
        assert_eq!(working(&[]), 0);
    }
}
