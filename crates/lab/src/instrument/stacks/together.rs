//! Runners at the same time, each from start to exit: pinned, guarded, and held to a deadline.

use super::values::Ran;
use crate::running::guard::Guard;
use crate::running::interrupt::Interrupt;
use crate::running::process::{Exit, Process, Stop, StopSignal, Waited};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use weir_doctor::{Meter, Taken};

/// A runner that has not started.
pub(super) struct Staged<'a> {
    pub(super) ran: Ran,
    /// The directory of its scenario and its output.
    pub(super) words: PathBuf,
    pub(super) command: Vec<String>,
    pub(super) cores: &'a [usize],
    pub(super) deadline: Duration,
}

/// A runner that has exited or was killed.
pub(super) struct Ended {
    pub(super) process: Process,
    pub(super) exit: Exit,
    /// The foreign load on its cores meanwhile; `None` if the system does not report it.
    pub(super) taken: Option<Taken>,
    /// Why it was killed, if it was.
    pub(super) cut_short: Option<String>,
}

/// Runs each to its exit. An error is the reason why one of them did not start.
pub(super) fn to_their_ends(
    staged: &[Staged<'_>],
    interrupt: &Interrupt,
    guard: &Guard,
) -> Result<Vec<Ended>, String> {
    let cores: BTreeSet<usize> = staged.iter().flat_map(|one| one.cores).copied().collect();
    let cores: Vec<usize> = cores.into_iter().collect();
    let meter = Meter::begin(&cores, &[]);
    let mut running: Vec<(Process, Instant, Duration)> = Vec::new();
    for one in staged {
        let began = Instant::now();
        let process =
            one.start().inspect_err(|_| running.drain(..).for_each(|(process, ..)| kill(process, guard)))?;
        guard.watch(process.pid());
        running.push((process, began, one.deadline));
    }
    let wait = |(process, began, deadline): &(Process, Instant, Duration)| {
        process.wait(deadline.saturating_sub(began.elapsed()), interrupt)
    };
    let waited: Vec<Waited> = running.iter().map(wait).collect();
    let groups: Vec<u32> = running.iter().map(|(process, ..)| process.pid()).collect();
    let taken = meter.and_then(|meter| meter.taken(&cores, &groups));
    let mut ended = Vec::new();
    for ((mut process, _, deadline), waited) in running.into_iter().zip(waited) {
        process.signal(StopSignal::Term);
        let exit = process.finish(Stop::default());
        guard.release(process.pid());
        let cut_short = match waited {
            Waited::Ended => None,
            Waited::Deadline => Some(format!("it did not exit within {} s", deadline.as_secs_f64())),
            Waited::Interrupted => Some("interrupted".into()),
        };
        let exit = exit.map_err(|error| error.to_string())?;
        ended.push(Ended { process, exit, taken, cut_short });
    }
    Ok(ended)
}

fn kill(process: Process, guard: &Guard) {
    let pid = process.pid();
    drop(process);
    guard.release(pid);
}

impl Staged<'_> {
    fn start(&self) -> Result<Process, String> {
        let Self { ran, words, command, cores, .. } = self;
        let file = words.join("scenario");
        let input = fs::write(&file, &ran.scenario).and_then(|()| File::open(&file));
        let input = input.map_err(|error| format!("cannot write the scenario: {error}"))?;
        Process::start_in(&ran.folder, "runner", command, cores, words, input)
            .map_err(|error| format!("{}: {error}", command.first().map_or("", String::as_str)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::running::host::allowed_cores;
    use crate::testing::guard_input;

    /// Regression test: the guard still had the first runner, and in the end killed any group with its number.
    #[test]
    fn the_guard_releases_a_runner_beside_one_that_does_not_start() {
        let directory = tempfile::tempdir().expect("a directory");
        let cores = allowed_cores().expect("cores");
        let staged = ["sleep 1000", "/no/such/program"].map(|command| Staged {
            ran: Ran { folder: "/".into(), ..Ran::default() },
            words: directory.path().to_owned(),
            command: command.split(' ').map(str::to_owned).collect(),
            cores: &cores[..1],
            deadline: Duration::ZERO,
        });
        let words = guard_input(|guard| {
            let error =
                to_their_ends(&staged, &Interrupt::default(), guard).err().expect("one does not start");
            assert!(error.starts_with("/no/such/program: No such file"), "{error}");
        });
        let [started, released] = words.lines().collect::<Vec<_>>()[..] else { panic!("{words}") };
        assert_eq!(started.strip_prefix('+').expect("is watched"), &released[1..]);
        assert!(released.starts_with('-'), "{words}");
    }
}
