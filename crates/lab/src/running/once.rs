//! Processes from start to exit: pinned, guarded, timed, and held to a deadline.

use crate::running::guard::Guard;
use crate::running::interrupt::Interrupt;
use crate::running::process::{Exit, Process, Stop, StopSignal, Waited};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use weir_doctor::{Meter, Taken};

/// A command and its setting.
pub(crate) struct Start<'a> {
    /// The name of its output files.
    pub(crate) name: &'a str,
    pub(crate) command: &'a [String],
    /// Its working directory.
    pub(crate) folder: &'a Path,
    /// The directory of its output.
    pub(crate) words: &'a Path,
    pub(crate) cores: &'a [usize],
    pub(crate) input: Stdio,
    pub(crate) deadline: Duration,
}

/// A process that has exited or was killed.
pub(crate) struct Ended {
    pub(crate) process: Process,
    pub(crate) exit: Exit,
    /// The foreign load on its cores meanwhile; `None` if the system does not report it.
    pub(crate) taken: Option<Taken>,
    /// The time from its start to its exit.
    pub(crate) wall_ms: f64,
    /// User and system CPU of it and of the children that it reaped; `None` if another process ran at the same time.
    pub(crate) cpu_ms: Option<f64>,
    /// Why it was killed, if it was.
    pub(crate) cut_short: Option<String>,
}

/// Runs a process to its exit. An error is the reason why it did not start.
pub(crate) fn to_its_end(start: Start<'_>, interrupt: &Interrupt, guard: &Guard) -> Result<Ended, String> {
    let ended = to_their_ends(vec![start], interrupt, guard)?.pop();
    ended.ok_or_else(|| "it was not started".into())
}

/// Runs processes at the same time, each to its exit. An error is the reason why one of them did not start.
pub(crate) fn to_their_ends(
    starts: Vec<Start<'_>>,
    interrupt: &Interrupt,
    guard: &Guard,
) -> Result<Vec<Ended>, String> {
    let cores: BTreeSet<usize> = starts.iter().flat_map(|start| start.cores).copied().collect();
    let cores: Vec<usize> = cores.into_iter().collect();
    let meter = Meter::begin(&cores, &[]);
    let cpu_before = cpu_of_children();
    let mut running = Vec::new();
    for start in starts {
        let Start { name, command, folder, words, cores, input, deadline } = start;
        let began = Instant::now();
        let process = Process::start_in(folder, name, command, cores, words, input)
            .map_err(|error| format!("{}: {error}", command.first().map_or("", String::as_str)))?;
        guard.watch(process.pid());
        running.push((process, began, deadline));
    }
    let waited: Vec<(Waited, f64)> = running
        .iter()
        .map(|(process, began, deadline)| {
            let waited = process.wait(deadline.saturating_sub(began.elapsed()), interrupt);
            (waited, began.elapsed().as_secs_f64() * 1000.0)
        })
        .collect();
    let groups: Vec<u32> = running.iter().map(|(process, ..)| process.pid()).collect();
    let taken = meter.and_then(|meter| meter.taken(&cores, &groups));
    let is_one = running.len() == 1;
    let mut ended = Vec::new();
    for ((mut process, _, deadline), (waited, wall_ms)) in running.into_iter().zip(waited) {
        process.signal(StopSignal::Term);
        let exit = process.finish(Stop::default());
        guard.release(process.pid());
        // CPU counts once the process is reaped; with several processes it cannot be attributed.
        let cpu_ms =
            cpu_of_children().zip(cpu_before).filter(|_| is_one).map(|(after, before)| after - before);
        let cut_short = match waited {
            Waited::Ended => None,
            Waited::Deadline => Some(format!("it did not exit within {} s", deadline.as_secs_f64())),
            Waited::Interrupted => Some("interrupted".into()),
        };
        let exit = exit.map_err(|error| error.to_string())?;
        ended.push(Ended { process, exit, taken, wall_ms, cpu_ms, cut_short });
    }
    Ok(ended)
}

/// Milliseconds of CPU of all reaped children.
fn cpu_of_children() -> Option<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    Some((usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1000.0)
}
