//! Runs of runners: a fresh process for each, on stated cores, with its scenario in a file that is its standard input.

use super::cell::{Scenario, StackCell};
use super::check;
use super::engine::Engine;
use super::key::mask_variable;
use super::material::{Files, key_of};
use super::output::Seen;
use super::run::{PlannedStackRun, StackRun};
use crate::busy::Meter;
use crate::error::LabError;
use crate::guard::Guard;
use crate::interrupt::Interrupt;
use crate::process::{Process, Waited};
use crate::target::{Stop, StopSignal};
use crate::validity::Validity;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a runner may take beyond its window: its start, its warm-up with the slowest of keys, its output.
const GRACE: Duration = Duration::from_secs(60);

const STOP: Stop = Stop { signal: StopSignal::Term, timeout_ms: 2000 };

/// Makes one run. The lab's own starts a process; tests give results that they made up.
pub(super) trait Runner {
    /// A runner that fails is an invalid run, not an error.
    fn run(&mut self, planned: &PlannedStackRun) -> Result<StackRun, LabError>;
}

/// Starts processes.
pub(super) struct ProcessRunner<'a> {
    pub(super) engines: &'a BTreeMap<String, Engine>,
    /// Where results go.
    pub(super) directory: PathBuf,
    pub(super) allowed: Vec<usize>,
    pub(super) interrupt: &'a Interrupt,
    pub(super) guard: &'a mut Guard,
}

impl Runner for ProcessRunner<'_> {
    fn run(&mut self, planned: &PlannedStackRun) -> Result<StackRun, LabError> {
        let lines = planned.cell.scenario.lines();
        let (record, ()) = self.made(planned.clone(), &lines, Vec::new(), || ())?;
        Ok(record)
    }
}

impl ProcessRunner<'_> {
    /// What a tool that the runner runs under leaves behind, if the run is valid; or why it is not. Nothing is stored.
    pub(super) fn watched<T>(
        &mut self,
        cell: &StackCell,
        lines: &str,
        tool: Vec<String>,
        left: impl FnOnce() -> T,
    ) -> Result<Result<T, String>, LabError> {
        let planned = PlannedStackRun { id: String::new(), block: 0, cell: cell.clone() };
        let (record, left) = self.made(planned, lines, tool, left)?;
        Ok(match record.validity {
            Validity::Valid => Ok(left),
            Validity::Invalid(why) => Err(why),
        })
    }

    /// Runs a runner under a tool, if there is one, and looks at what is `left` before the place that it ran in goes.
    fn made<T>(
        &mut self,
        planned: PlannedStackRun,
        lines: &str,
        tool: Vec<String>,
        left: impl FnOnce() -> T,
    ) -> Result<(StackRun, T), LabError> {
        let cell = &planned.cell;
        let engine = self
            .engines
            .get(&cell.engine)
            .ok_or_else(|| LabError::Nothing(format!("engine {} is not present any more", cell.engine)))?;
        let work = self.directory.join("work");
        fs::create_dir_all(&work).map_err(LabError::file(&work, "cannot be made"))?;
        let scenario = lines.to_owned() + &self.files(&cell.scenario)?;
        let environment: Vec<String> = mask_variable(cell.scenario.word("mask"))
            .map(|(name, value)| format!("{name}={value}"))
            .into_iter()
            .collect();
        let target = engine.target(&engine.variant(&cell.scenario));
        let command = tool.into_iter().chain(engine.words(&engine.description.run, &target)).collect();
        let mut record = StackRun {
            schema: StackRun::SCHEMA,
            run: planned,
            validity: Validity::Valid,
            command,
            environment,
            scenario,
            seen: Seen::default(),
            exit: String::new(),
            stderr: String::new(),
            elapsed_ms: 0,
            foreign_cpu: None,
        };
        let began = Instant::now();
        record.validity = match self.process(&mut record, &work) {
            Ok(()) => check::judge(&record.run.cell.scenario, &engine.description, &record.seen),
            Err(why) => Validity::Invalid(why),
        };
        record.elapsed_ms = began.elapsed().as_millis() as u64;
        let left = left();
        let _ = fs::remove_dir_all(&work);
        if self.interrupt.is_set() {
            return Err(LabError::Interrupted { directory: self.directory.clone() });
        }
        Ok((record, left))
    }

    /// The lines of what the runner reads that name files.
    fn files(&self, scenario: &Scenario) -> Result<String, LabError> {
        let files = |kind: &str| Files::of(kind, &self.directory.join("tls"));
        Ok(match (scenario.get("certificate"), key_of(scenario.word("operation"))) {
            (Some(kind), _) => files(kind.as_str())?.lines(),
            (None, Some(kind)) => files(kind)?.key_line(),
            (None, None) => String::new(),
        })
    }

    /// The text of an error is the reason why the run is invalid.
    fn process(&mut self, record: &mut StackRun, work: &Path) -> Result<(), String> {
        let scenario = &record.run.cell.scenario;
        let input = with_file(work, &record.scenario).map_err(|error| format!("its scenario: {error}"))?;
        // In front of the program, so that the stored command is the whole of it.
        let with_environment = ["env".to_owned()].into_iter().chain(record.environment.iter().cloned());
        let command: Vec<String> = match record.environment.is_empty() {
            true => record.command.clone(),
            false => with_environment.chain(record.command.iter().cloned()).collect(),
        };
        let threads = scenario.number("threads").unwrap_or(1) as usize;
        let cores = &self.allowed[..threads.clamp(1, self.allowed.len())];
        let meter = Meter::begin(cores, &[]);
        let mut process = Process::start_reading("runner", &command, cores, work, input)
            .map_err(|error| format!("{}: {error}", record.command[0]))?;
        self.guard.watch(process.pid());
        let window = Duration::from_millis(scenario.number("window_ms").unwrap_or(0));
        let waited = process.wait(window + GRACE, self.interrupt);
        record.foreign_cpu = meter.and_then(|meter| meter.foreign_share(cores, &[process.pid()]));
        process.signal(StopSignal::Term);
        let exit = process.finish(STOP);
        self.guard.release(process.pid());
        let exit = exit.map_err(|error| error.to_string())?;
        record.exit = exit.status.clone();
        record.stderr = process.last_words();
        let output = process.output().map_err(|error| format!("its output: {error}"))?;
        match waited {
            Waited::Ended => {}
            Waited::Deadline => return Err(format!("it did not end in {} s", (window + GRACE).as_secs())),
            Waited::Interrupted => return Err("interrupted".into()),
        }
        let read = Seen::read(&output);
        if let Ok(seen) = &read {
            record.seen = seen.clone();
        }
        match (exit.code, read) {
            (_, Err(why)) => Err(format!("its output: {why}")),
            // What it says itself tells more.
            (code, Ok(seen)) if code != Some(0) && seen.errors.is_empty() => {
                let last = record.stderr.lines().last().unwrap_or_default();
                Err(format!("runner: {}: {last}", record.exit))
            }
            _ => Ok(()),
        }
    }
}

fn with_file(work: &Path, text: &str) -> io::Result<File> {
    let path = work.join("scenario");
    fs::write(&path, text)?;
    File::open(path)
}
