//! Command lines: the wall-clock and CPU time of whole processes, from start to exit.

mod execute;
mod line;
#[cfg(test)]
mod tests;

pub use execute::{CommandRunner, Ran};

use crate::base::error::{ConfigError, LabError};
use crate::base::hash;
use crate::experiment::metric::Metric;
use crate::experiment::options::RunOptions;
use crate::experiment::reader::{blame, directory_key};
use crate::experiment::{Blame, Experiment, Grammar, Level, Stop};
use crate::findings::foreign::taken;
use crate::findings::judge::{Facts, Judge};
use crate::findings::summary::Summary;
use crate::found::ExperimentFile;
use crate::planning::cell::{Cell, Levels};
use crate::planning::plan::Plan;
use crate::planning::subjects::{Candidate, Standing, Subjects, with_pair};
use crate::report::shown::Shown;
use crate::running::guard::Guard;
use crate::running::host::{allowed_cores, this_program};
use crate::running::interrupt::Interrupt;
use crate::running::measure::{Executor, Measure, Request};
use crate::store::machine::Machine;
use crate::store::run::{RunOf, Stored, Validity};
pub use line::Found;
use std::collections::BTreeMap;
use std::path::Path;
use weir_report::markup::{command_line, quote};
use weir_report::text::flow;

/// Whole processes.
#[derive(Clone, Copy, Debug)]
pub struct Commands;

impl Executor<Commands> for CommandRunner {
    fn execute(&mut self, turn: &[Request<'_>]) -> Result<Vec<Ran>, LabError> {
        self.turn(turn)
    }
}

impl Grammar for Commands {
    const NAME: &'static str = "commands";
    const SUBJECT: &'static str = "command";
    /// Commands run in the directory of the experiment file.
    const DIRECTORY: &'static str = ".";
    const METRICS: &'static [Metric] = &[Metric::WallMs, Metric::ProcessCpuMs];

    fn check(experiment: &Experiment, wrong: &Blame<'_>) -> Result<(), ConfigError> {
        if let Stop::Minutes(_) = experiment.stop {
            let why = "the duration of a command is unknown: expected `blocks` or `precision`";
            return Err(wrong("minutes", why.into()));
        }
        line::check(experiment, Self::keys(experiment), wrong)
    }
}

impl Subjects for Commands {
    type Found = Found;

    fn find(
        experiment: &Experiment,
        file: &ExperimentFile,
        options: &RunOptions,
        text: &str,
    ) -> Result<Found, LabError> {
        let folder = file.base.join(&experiment.directory);
        let folder = folder.canonicalize().map_err(|error| {
            let wrong = blame(&file.path, text, options);
            wrong(directory_key(text, options), format!("{}: {error}", folder.display()))
        })?;
        let mut found = Found { folder, ..Found::default() };
        for (name, line) in line::all(experiment) {
            match line.file(&found.folder) {
                Some(_) => drop(found.lines.insert(name, line)),
                None => drop(found.absent.insert(name, format!("program `{}` not found", line.program()))),
            }
        }
        Ok(found)
    }

    fn candidates(experiment: &Experiment, found: &Found) -> Result<Vec<Candidate>, ConfigError> {
        let mut candidates = Vec::new();
        for combination in experiment.combinations() {
            let levels = combination.iter().map(|(key, value)| ((*key).to_owned(), Level::of(value)));
            let levels: Levels = levels.collect();
            let place: String =
                levels.iter().map(|(key, level)| format!("{key}={}.", level.file_name())).collect();
            for subject in experiment.subjects() {
                let is_present = found.lines.contains_key(&subject);
                let standing = if is_present { Standing::Present } else { Standing::Absent };
                for cell in with_pair(experiment, &subject, &levels, &place) {
                    candidates.push(Candidate { cell, standing: standing.clone(), remark: None });
                }
            }
        }
        Ok(candidates)
    }

    fn absent(found: &Found) -> BTreeMap<String, String> {
        found.absent.clone()
    }
}

impl Stored for Commands {
    type Seen = Ran;
}

impl Judge for Commands {
    fn judge(_: &Experiment, run: &mut RunOf<Self>) -> Result<(), ConfigError> {
        run.validity = Validity::of(run.seen.failure.clone());
        Ok(())
    }

    fn value(metric: Metric, run: &RunOf<Self>) -> Option<f64> {
        match metric {
            Metric::WallMs => run.seen.wall_ms,
            Metric::ProcessCpuMs => run.seen.cpu_ms,
            _ => None,
        }
    }

    fn facts(ran: &Ran) -> Facts<'_> {
        Facts {
            elapsed_ms: ran.wall_ms.map_or(0, |ms| ms as u64),
            taken: taken(ran.foreign_cpu, ran.stolen_cpu),
            broken: ran.failure.as_deref().map(|why| (why, ran.stderr.as_str())),
            has_failed: ran.failure.is_some(),
            ..Facts::default()
        }
    }
}

impl Measure for Commands {
    type Executor = CommandRunner;

    fn machine(_: &Experiment, found: &Found) -> Result<Machine, LabError> {
        let mut machine = Machine::read(&allowed_cores()?);
        // Compared with stored results, so the words must not change.
        machine.network = "whatever the commands use".into();
        for (name, line) in &found.lines {
            let file = line.file(&found.folder).map(|file| hash::contents(&file)).transpose()?;
            let source = format!("{line} {}", file.unwrap_or_default());
            machine.sources.insert(name.clone(), hash::bytes(source.as_bytes()));
            machine.about.insert(name.clone(), line.to_string());
            machine.folders.insert(name.clone(), found.folder.display().to_string());
        }
        Ok(machine)
    }

    fn executor(
        _: &Experiment,
        found: Found,
        directory: &Path,
        interrupt: Interrupt,
    ) -> Result<CommandRunner, LabError> {
        let (directory, cores) = (directory.to_owned(), allowed_cores()?);
        Ok(CommandRunner { found, directory, cores, interrupt, guard: Guard::start(&this_program()?)? })
    }
}

impl Shown for Commands {
    fn setting(_: &Summary) -> String {
        "Whole processes, one at a time, with empty standard input and their output in a file.".into()
    }

    fn describe(text: &mut String, _: &Plan, found: &Found) {
        for (name, line) in &found.lines {
            flow(text, &format!("command {name}: {line}"), 0, 4);
        }
    }

    fn reproduction(_: &Plan, _: &Cell, runs: &[&RunOf<Self>]) -> Option<String> {
        let ran = &runs.last()?.seen;
        let folder = quote(&ran.folder.display().to_string());
        Some(format!("cd {folder} && {}", command_line(&ran.command)))
    }
}
