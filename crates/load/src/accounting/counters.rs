//! What processes do besides using CPU: memory, switches, page faults, open files.
//!
//! Read by the looks near the window's edges, some milliseconds outside it, but for the engine's own switches and faults,
//! which are one system call at the edge itself.

use crate::result::Counters;
use nix::sys::resource::{UsageWho, getrusage};
use std::fs;
use std::io;

/// Switches of a thread since it started, or between two instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
}

/// Page faults of a process since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    pub(crate) minor: u64,
    pub(crate) major: u64,
}

/// What this process has counted so far, with its threads that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Own {
    switches: Switches,
    faults: Faults,
}

/// What this process holds at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    rss_kib: Option<u64>,
    open_files: Option<u64>,
}

impl Own {
    /// Asks getrusage(2).
    pub(crate) fn read() -> Option<Self> {
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
        let number = |number: i64| u64::try_from(number).unwrap_or(0);
        Some(Self {
            switches: Switches {
                voluntary: number(usage.voluntary_context_switches()),
                involuntary: number(usage.involuntary_context_switches()),
            },
            faults: Faults {
                minor: number(usage.minor_page_faults()),
                major: number(usage.major_page_faults()),
            },
        })
    }
}

impl Held {
    pub(crate) fn read() -> Self {
        let pid = std::process::id();
        // One of the files is the directory that is being read.
        Self { rss_kib: rss_kib(pid), open_files: open_files(pid).map(|files| files.saturating_sub(1)) }
    }
}

/// The counters of this process between two edges.
pub(crate) fn of_this_process(from: Option<Own>, to: Option<Own>, held: Held) -> Counters {
    let both = from.zip(to);
    let since = |count: fn(&Own) -> u64| both.map(|(from, to)| count(&to).saturating_sub(count(&from)));
    Counters {
        rss_end_kib: held.rss_kib,
        voluntary_switches: since(|own| own.switches.voluntary),
        involuntary_switches: since(|own| own.switches.involuntary),
        minor_faults: since(|own| own.faults.minor),
        major_faults: since(|own| own.faults.major),
        open_files: held.open_files,
    }
}

/// Resident memory of a process (`VmRSS`). One that has ended and was not waited for yet has none.
pub(crate) fn rss_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(number_in(&status, "VmRSS:").unwrap_or(0))
}

/// The largest resident size that a process has had (`VmHWM`).
pub(crate) fn rss_peak_kib(pid: u32) -> Option<u64> {
    number_in(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmHWM:")
}

/// How many files a process has open; `None` where this process may not look.
pub(crate) fn open_files(pid: u32) -> Option<u64> {
    match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(files) => Some(files.count() as u64),
        // It has ended meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(0),
        Err(_) => None,
    }
}

/// The name of a thread, by its own status file, as it can stand on a terminal; empty where there is none.
pub(crate) fn name(status: &str) -> String {
    let name = status.lines().find_map(|line| line.strip_prefix("Name:")).unwrap_or_default();
    name.trim().chars().map(|char| if char.is_control() { '?' } else { char }).collect()
}

/// The switches of a thread, by its own status file: that of a process tells its first thread's alone.
pub(crate) fn switches(status: &str) -> Option<Switches> {
    Some(Switches {
        voluntary: number_in(status, "voluntary_ctxt_switches:")?,
        involuntary: number_in(status, "nonvoluntary_ctxt_switches:")?,
    })
}

/// The number behind the name that begins a line.
fn number_in(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_threads_status() {
        let text = "Name:\tx\nVmHWM:\t    9000 kB\nVmRSS:\t    8208 kB\nvoluntary_ctxt_switches:\t41\n\
                    nonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(switches(text), Some(Switches { voluntary: 41, involuntary: 7 }));
        assert_eq!([name(text), name("Name:\ta\u{1b}[2J b\n"), name("")], ["x", "a?[2J b", ""]);
        assert_eq!((number_in(text, "VmRSS:"), number_in(text, "VmSwap:")), (Some(8208), None));
        for text in ["", "voluntary_ctxt_switches:\t41\n", "voluntary_ctxt_switches:\tmany\n"] {
            assert_eq!(switches(text), None, "{text:?}");
        }
    }

    #[test]
    fn this_process_by_the_system_itself() {
        let pid = std::process::id();
        let files = open_files(pid).unwrap();
        let more: Vec<_> = (0..200).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        // Other tests open and close a few of their own meanwhile.
        assert!(open_files(pid).unwrap() >= files + 100, "{files}");
        drop(more);
        let from = Own::read();
        let pages = std::hint::black_box(vec![1_u8; 16 << 20]);
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let waiter = std::thread::spawn(move || receiver.recv());
        drop(sender);
        waiter.join().unwrap().unwrap_err();
        let counters = of_this_process(from, Own::read(), Held::read());
        assert!(counters.minor_faults > Some(0) && counters.major_faults.is_some(), "{counters:?}");
        assert!(counters.voluntary_switches > Some(0) && counters.involuntary_switches.is_some());
        assert!(counters.rss_end_kib > Some(16 << 10) && counters.open_files > Some(2), "{counters:?}");
        assert!(rss_peak_kib(pid) >= Some(16 << 10));
        drop(pages);
        assert_eq!((open_files(u32::MAX), rss_kib(u32::MAX)), (Some(0), None));
    }
}
