//! One process as the kernel reports it (proc_pid_stat(5), proc_pid_status(5)).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::Duration;
use weir_doctor::proc::{Stat, field, pids, text, thread_cpu};

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Life {
    pub(crate) parent: u32,
    /// Start time in ticks since boot. PIDs are reused; PID and start time identify a process.
    pub(crate) started: u64,
    /// CPU time by its own clock.
    pub(crate) cpu: Duration,
    /// CPU time of reaped descendants, in ticks (usually 10 ms).
    pub(crate) waited: Duration,
    pub(crate) faults: Faults,
    /// Those of its reaped children.
    pub(crate) waited_faults: Faults,
    pub(crate) rss_kib: Option<u64>,
    /// Open files; `None` without permission.
    pub(crate) open_files: Option<u64>,
    pub(crate) threads: BTreeMap<u32, Thread>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Thread {
    /// Its name; empty if unknown.
    pub(crate) name: String,
    /// CPU time.
    pub(crate) cpu: Duration,
    /// `None` if unknown.
    pub(crate) switches: Option<Switches>,
}

/// Context switches of a thread since it started, or between two instants.
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

/// Every process, without its own CPU and threads.
pub(crate) fn stats() -> BTreeMap<u32, Life> {
    pids().filter_map(|pid| Some((pid, stat(pid)?))).collect()
}

pub(crate) fn stat(pid: u32) -> Option<Life> {
    life(&Stat::of(pid)?)
}

fn life(stat: &Stat) -> Option<Life> {
    let field = |number| stat.field(number);
    Some(Life {
        parent: u32::try_from(field(4)?).ok()?,
        started: field(22)?,
        waited: stat.time(16)? + stat.time(17)?,
        faults: Faults { minor: field(10)?, major: field(12)? },
        waited_faults: Faults { minor: field(11)?, major: field(13)? },
        ..Life::default()
    })
}

pub(crate) fn thread(pid: u32, tid: u32) -> Option<Thread> {
    let cpu = thread_cpu(pid, tid)?;
    let status = text(&format!("{pid}/task/{tid}/status")).unwrap_or_default();
    Some(Thread { name: name(&status), cpu, switches: switches(&status) })
}

/// Resident memory of a process (`VmRSS`). A zombie has none.
pub(crate) fn rss_kib(pid: u32) -> Option<u64> {
    let status = text(&format!("{pid}/status"))?;
    Some(number_in(&status, "VmRSS").unwrap_or(0))
}

/// Peak resident memory of a process (`VmHWM`).
pub(crate) fn rss_peak_kib(pid: u32) -> Option<u64> {
    number_in(&text(&format!("{pid}/status"))?, "VmHWM")
}

/// Number of open files of a process; `None` without permission.
pub(crate) fn open_files(pid: u32) -> Option<u64> {
    match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(files) => Some(files.count() as u64),
        // It exited meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(0),
        Err(_) => None,
    }
}

/// The name of a thread, from its status file, safe for a terminal; empty if unknown.
pub(crate) fn name(status: &str) -> String {
    let name = field(status, "Name").unwrap_or_default();
    name.chars().map(|char| if char.is_control() { '?' } else { char }).collect()
}

/// Context switches of a thread, from its own status file: the process's covers only the first thread.
pub(crate) fn switches(status: &str) -> Option<Switches> {
    Some(Switches {
        voluntary: number_in(status, "voluntary_ctxt_switches")?,
        involuntary: number_in(status, "nonvoluntary_ctxt_switches")?,
    })
}

/// The number of a field, without its unit.
fn number_in(status: &str, name: &str) -> Option<u64> {
    field(status, name)?.split(' ').next()?.parse().ok()
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
        assert_eq!((number_in(text, "VmRSS"), number_in(text, "VmSwap")), (Some(8208), None));
        for text in ["", "voluntary_ctxt_switches:\t41\n", "voluntary_ctxt_switches:\tmany\n"] {
            assert_eq!(switches(text), None, "{text:?}");
        }
    }

    #[test]
    fn lines_of_proc_stat() {
        let fields = |name: &str| {
            format!("12 ({name}) S 7 12 12 0 -1 4194560 1 2 3 4 50 60 11 4 20 0 3 0 987654 1 2 3")
        };
        let parse_stat = |text: &str| life(&Stat::parse(text)?);
        for name in ["sh", "a b", "a) R 1 (b"] {
            let life = parse_stat(&fields(name)).unwrap();
            assert_eq!((life.parent, life.started), (7, 987_654), "{name}");
            assert_eq!(life.faults, Faults { minor: 1, major: 3 });
            assert_eq!(life.waited_faults, Faults { minor: 2, major: 4 });
            let ticks = rustix::param::clock_ticks_per_second() as f64;
            assert!((life.waited.as_secs_f64() - 15.0 / ticks).abs() < 1e-9);
        }
        for text in ["", "12 (sh", "12 (sh) S 7", "12 (sh) S x 12 12 0 -1 1 1 2 3 4 5 6 7 8 9 10 11 12 13 14"]
        {
            assert_eq!(parse_stat(text), None, "{text}");
        }
    }
}
