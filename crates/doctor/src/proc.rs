//! Processes and threads, by their files below /proc (proc(5)).
//!
//! The crate `procfs` parses all fields, and fails for one that it does not know. A thread's status takes twice the CPU
//! time of [`text`] and [`field`], a table of closed connections ten times that of a filter, and both are read near or
//! within measured windows. It also ends a thread's name at a colon.

use crate::system::System;
use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Display;
use std::fs;
use std::time::Duration;

pub use crate::system::field;

/// The line of a process or thread in its file `stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The name of the program or thread: up to 15 bytes, with any characters.
    pub name: String,
    /// All that follows the name.
    fields: String,
}

impl Stat {
    /// That of a process by its ID, or of `self` or `thread-self`; `None` if it does not exist or may not be read.
    pub fn of(process: impl Display) -> Option<Self> {
        Self::parse(&text(&format!("{process}/stat"))?)
    }

    /// Parses the line; `None` without a name in parentheses.
    pub fn parse(line: &str) -> Option<Self> {
        // The name may contain parentheses.
        let (name, fields) = line.split_once('(')?.1.rsplit_once(')')?;
        Some(Self { name: name.to_owned(), fields: fields.to_owned() })
    }

    /// A field by its number in proc_pid_stat(5), from 3; `None` if it is missing, negative or no number.
    pub fn field(&self, number: usize) -> Option<u64> {
        self.fields.split_ascii_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
    }

    /// A field in clock ticks, which are usually 10 ms.
    pub fn time(&self, number: usize) -> Option<Duration> {
        Some(Duration::from_secs(self.field(number)?) / clock_ticks_per_second().max(1) as u32)
    }

    /// User and system time of all threads, without children.
    pub fn cpu(&self) -> Option<Duration> {
        Some(self.time(14)? + self.time(15)?)
    }
}

/// The text of a file below /proc, trimmed; bytes that are not UTF-8 are replaced. `None` if it cannot be read.
pub fn text(path: &str) -> Option<String> {
    System::local().read(&format!("proc/{path}"))
}

/// The IDs of all processes.
pub fn pids() -> impl Iterator<Item = u32> {
    numbers("/proc")
}

/// The IDs of a process's threads.
pub fn threads(pid: u32) -> impl Iterator<Item = u32> {
    numbers(&format!("/proc/{pid}/task"))
}

fn numbers(directory: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The CPU time of a thread, to the nanosecond; `None` if it does not exist.
pub fn thread_cpu(pid: u32, tid: u32) -> Option<Duration> {
    thread_times(pid, tid).map(|times| times.cpu)
}

/// A thread's time on a core and on the queue for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Its CPU time, to the nanosecond.
    pub cpu: Duration,
    /// The time for which it was ready to run and had no core; 0 if the kernel does not count it.
    pub queued: Duration,
}

/// Both of a thread; `None` if it does not exist.
pub fn thread_times(pid: u32, tid: u32) -> Option<ThreadTimes> {
    let text = text(&format!("{pid}/task/{tid}/schedstat"))?;
    let mut times = text.split(' ').map(|time| time.parse().map(Duration::from_nanos));
    Some(ThreadTimes { cpu: times.next()?.ok()?, queued: times.next()?.ok()? })
}

/// The CPU time of the calling thread.
pub fn own_thread_cpu() -> Duration {
    // The clock begins at 0, and is never negative.
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Processes with their descendants; those given come first.
pub fn with_descendants(roots: &[u32]) -> Vec<u32> {
    let parent = |pid: u32| Some((pid, u32::try_from(Stat::of(pid)?.field(4)?).ok()?));
    descendants(roots.iter().copied(), &pids().filter_map(parent).collect::<Vec<_>>())
}

/// As [`with_descendants`], by pairs of a process and its parent.
pub fn descendants(roots: impl IntoIterator<Item = u32>, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut family: Vec<u32> = roots.into_iter().collect();
    let mut at = 0;
    while let Some(parent) = family.get(at).copied() {
        let children = parents.iter().filter(|(_, ppid)| *ppid == parent).map(|(pid, _)| *pid);
        let new: Vec<u32> = children.filter(|pid| !family.contains(pid)).collect();
        family.extend(new);
        at += 1;
    }
    family
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_those_behind_the_name() {
        let numbers: Vec<String> = (4..=52).map(|number| number.to_string()).collect();
        for name in ["weir", "a b", ") 1 2 (", "a) R 1 (b", ""] {
            let stat = Stat::parse(&format!("7 ({name}) S {}\n", numbers.join(" "))).unwrap();
            for number in 4..=52 {
                assert_eq!(stat.field(number), Some(number as u64), "{name}");
            }
            assert_eq!([0, 3, 53].map(|number| stat.field(number)), [None; 3]);
            assert_eq!(stat.name, name);
            let ticks = clock_ticks_per_second() as f64;
            assert!((stat.cpu().unwrap().as_secs_f64() - 29.0 / ticks).abs() < 1e-9);
        }
        assert!(Stat::parse("").is_none() && Stat::parse("12 (sh").is_none());
    }

    #[test]
    fn this_process_and_thread() {
        let pid = std::process::id();
        assert!(pids().any(|one| one == pid) && threads(pid).any(|one| one == pid));
        let (before, now) = (own_thread_cpu(), std::hint::black_box(own_thread_cpu()));
        assert!(before <= now && now > Duration::ZERO);
        let tid = text("thread-self/status").and_then(|status| field(&status, "Pid")?.parse().ok()).unwrap();
        assert!(thread_times(pid, tid).unwrap().cpu > Duration::ZERO);
        assert_eq!((thread_times(pid, u32::MAX), Stat::of(u32::MAX)), (None, None));
    }

    #[test]
    fn descendants_of_one_and_of_several() {
        let parents = [(1, 0), (2, 1), (3, 2), (4, 1), (5, 3)];
        assert_eq!(descendants([2], &parents), [2, 3, 5]);
        assert_eq!(descendants([4], &parents), [4]);
        assert_eq!(descendants([2, 3], &parents), [2, 3, 5], "none twice");
    }
}
