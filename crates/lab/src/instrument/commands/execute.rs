//! Runs of commands: a fresh process for each.

use super::line::{Found, timeout_ms};
use crate::base::error::LabError;
use crate::running::guard::Guard;
use crate::running::interrupt::Interrupt;
use crate::running::measure::Request;
use crate::running::once::{Start, to_its_end};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// A run of a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The working directory.
    pub folder: PathBuf,
    /// Milliseconds from start to exit; `None` if it did not start.
    pub wall_ms: Option<f64>,
    /// Milliseconds of user and system CPU, of the process and its reaped children.
    pub cpu_ms: Option<f64>,
    /// Why the run is invalid.
    pub failure: Option<String>,
    /// The end of its standard error, or else of its standard output.
    pub stderr: String,
    /// The share of its cores that other processes used meanwhile; `None` if unavailable, and for runs under 200 ms.
    pub foreign_cpu: Option<f64>,
    /// The share that the hypervisor gave to other guests (steal time); `None` as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_cpu: Option<f64>,
}

/// Starts commands.
#[derive(Debug)]
pub struct CommandRunner {
    pub(super) found: Found,
    /// The directory of the results.
    pub(super) directory: PathBuf,
    pub(super) cores: Vec<usize>,
    pub(super) interrupt: Interrupt,
    pub(super) guard: Guard,
}

impl CommandRunner {
    /// Runs a turn, and removes its output files.
    pub(super) fn turn(&mut self, turn: &[Request<'_>]) -> Result<Vec<Ran>, LabError> {
        let work = self.directory.join("work");
        fs::create_dir_all(&work).map_err(LabError::file(&work, "cannot create"))?;
        let runs = turn.iter().map(|request| self.run(request, &work)).collect();
        let _ = fs::remove_dir_all(&work);
        match self.interrupt.is_set() {
            true => Err(LabError::Interrupted { directory: self.directory.clone() }),
            false => Ok(runs),
        }
    }

    fn run(&mut self, request: &Request<'_>, words: &Path) -> Ran {
        let cell = &request.run.cell;
        let command = self.found.lines.get(&cell.subject).map(|line| line.words(&cell.levels));
        let command = command.unwrap_or_default();
        let folder = self.found.folder.clone();
        let deadline = Duration::from_millis(timeout_ms(request.experiment));
        let (cores, input) = (&self.cores[..], Stdio::null());
        let start =
            Start { name: "command", command: &command, folder: &folder, words, cores, input, deadline };
        let ended = to_its_end(start, &self.interrupt, &self.guard);
        let ran = Ran { command, folder, ..Ran::default() };
        match ended {
            Err(why) => Ran { failure: Some(why), ..ran },
            Ok(ended) => {
                // Counted in ticks of 10 ms, too coarse for a shorter run.
                let taken = ended.taken.filter(|_| ended.wall_ms >= 200.0);
                Ran {
                    wall_ms: Some(ended.wall_ms),
                    cpu_ms: ended.cpu_ms,
                    failure: ended.cut_short.or((ended.exit.code != Some(0)).then_some(ended.exit.status)),
                    stderr: ended.process.last_words(),
                    foreign_cpu: taken.map(|taken| taken.foreign),
                    stolen_cpu: taken.map(|taken| taken.stolen),
                    ..ran
                }
            }
        }
    }
}
