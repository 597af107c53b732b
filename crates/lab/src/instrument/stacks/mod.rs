//! TLS stacks: the cost of a handshake, a resumption and a megabyte in each library and version, separately for client
//! and server, in memory. Engines are separate programs; `docs/ENGINES.md` has their protocol.

mod build;
mod check;
mod engine;
mod execute;
mod instructions;
mod key;
mod output;
mod scaling;
mod scenario;
mod shown;
#[cfg(test)]
pub(crate) mod synthetic;
#[cfg(test)]
mod tests;
mod title;
mod together;
mod values;
mod view;

pub use build::{build, list};
#[cfg(test)]
pub(crate) use output::Side;
pub(crate) use values::Ran;

use crate::base::error::{ConfigError, LabError};
use crate::experiment::metric::Metric;
use crate::experiment::options::RunOptions;
use crate::experiment::reader::{blame, directory_key};
use crate::experiment::{AGAIN, Blame, Experiment, Grammar, Level, Levels};
use crate::findings::foreign::taken;
use crate::findings::judge::{Facts, Judge};
use crate::found::{ExperimentFile, Folders};
use crate::planning::cell::Cell;
use crate::planning::plan::Plan;
use crate::planning::planned_run::Stage;
use crate::planning::subjects::{Candidate, Standing, Subjects};
use crate::running::guard::Guard;
use crate::running::host::{allowed_cores, this_program};
use crate::running::interrupt::Interrupt;
use crate::running::measure::{Executor, Measure, Request};
use crate::running::progress::note;
use crate::running::tool;
use crate::store::Store;
use crate::store::machine::Machine;
use crate::store::profiles::Profiled;
use crate::store::run::{Run, RunOf, Stored, Validity};
use engine::{Engine, Variant};
use execute::{ProcessRunner, Tool};
use key::KEYS;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use values::{compared, compared_in_duets, measured};
use weir_profile::{Frame, Recorded};

/// The shortest window of a profile: start and warm-up are sampled too.
const PROFILED_MS: u64 = 5000;

/// The remark on a lock that many threads may hold at once.
const SHARED: &str = "shared by readers: no bound";

/// The instrument for TLS libraries in memory.
#[derive(Clone, Copy, Debug)]
pub struct Stacks;

/// The engines of an experiment, as found on this machine.
#[derive(Clone, Debug, Default)]
pub struct Engines {
    pub(crate) present: BTreeMap<String, Engine>,
    pub(crate) absent: BTreeMap<String, String>,
    /// The variants of present engines that cannot be built, with the reason.
    pub(crate) unbuilt: BTreeMap<(String, Variant), String>,
}

impl Engines {
    /// The engines of an experiment; one with a missing directory or an invalid description is absent.
    pub(crate) fn find(experiment: &Experiment, folders: &Folders) -> Self {
        let mut engines = Self::default();
        for name in experiment.subjects() {
            match Engine::read(folders, &name) {
                Ok(engine) => drop(engines.present.insert(name, engine)),
                Err(error) => drop(engines.absent.insert(name, error.to_string())),
            }
        }
        engines
    }

    /// Why an engine cannot run a scenario.
    fn lacks(&self, engine: &Engine, scenario: &Levels) -> Option<String> {
        let unbuilt = || self.unbuilt.get(&(engine.name.clone(), engine.variant(scenario))).cloned();
        engine.description.lacks(scenario).or_else(unbuilt)
    }

    /// An engine of which no needed variant was built is absent.
    fn leave_out_unbuilt(&mut self, needed: &BTreeSet<(String, Variant)>) {
        let Self { present, absent, unbuilt } = self;
        for (name, why) in unbuilt.iter().map(|((name, _), why)| (name, why)) {
            let mut variants = needed.iter().filter(|(other, _)| other == name);
            if variants.all(|variant| unbuilt.contains_key(variant)) && present.remove(name).is_some() {
                absent.insert(name.clone(), why.clone());
            }
        }
    }
}

impl Executor<Stacks> for ProcessRunner {
    fn execute(&mut self, turn: &[Request<'_>]) -> Result<Vec<Ran>, LabError> {
        let runs = turn.iter().map(|request| (&request.run.cell, request.run.cell.levels.lines()));
        self.made_together(&runs.collect::<Vec<_>>(), &Tool::default())
    }

    fn profile(&mut self, Request { run, .. }: Request<'_>) -> Result<Option<Profiled>, LabError> {
        let cell = &run.cell;
        let window_ms = cell.levels.number("window_ms").unwrap_or(0).max(PROFILED_MS);
        let levels = cell.levels.with("window_ms", Level::new(window_ms));
        let data = self.directory.join("perf.data");
        let ran = self.made(cell, &levels.lines(), &self.sampler(cell, &data)?)?;
        let recorded = match ran.failure.clone() {
            Some(why) => Err(why),
            None => weir_profile::sampled(&data).map_err(|error| error.to_string()).map(measured_only),
        };
        let _ = fs::remove_file(&data);
        let ran = Run::new(run, ran);
        let cost_us = shown::COSTS.iter().find_map(|(metric, _)| values::of_run(*metric, &ran));
        Ok(Some(Profiled { recorded, cost_us }))
    }

    /// Counts instructions if the experiment asks for them.
    fn finish(&mut self, plan: &Plan, is_done: bool) -> Result<(), LabError> {
        let is_wanted = is_done && plan.experiment.instructions;
        if is_wanted { instructions::count(plan, &Store::open(&self.directory), self) } else { Ok(()) }
    }
}

/// The samples of what is measured, without start and warm-up; all if the runner's functions have no names.
fn measured_only(recorded: Recorded) -> Recorded {
    let is_measured = |frame: &Frame| MEASURED.iter().any(|name| frame.symbol == *name);
    if !recorded.stacks.frames().iter().any(is_measured) {
        return recorded;
    }
    Recorded { stacks: recorded.stacks.within(is_measured), ..recorded }
}

/// The functions of a runner that `docs/ENGINES.md` names.
const MEASURED: [&str; 2] = ["weir_engine_client", "weir_engine_server"];

impl Grammar for Stacks {
    const NAME: &'static str = "stacks";
    const SUBJECT: &'static str = "engine";
    const DIRECTORY: &'static str = "../engines";
    const OWN_KEYS: &'static [&'static str] = &["engines", "engines_directory", "scenarios", "instructions"];
    const METRICS: &'static [Metric] = &[
        Metric::ServerUsPerHandshake,
        Metric::ClientUsPerHandshake,
        Metric::HandshakesPerSecond,
        Metric::SendMbPerSecond,
        Metric::ReceiveMbPerSecond,
        Metric::KibPerSession,
        Metric::OperationUs,
        Metric::LockNsPerHandshake,
        Metric::WaitsPerHandshake,
        Metric::CpuUsPerHandshake,
        Metric::CpuUsPerOperation,
        Metric::CpuUsPerMb,
    ];

    fn check(experiment: &Experiment, wrong: &Blame<'_>) -> Result<(), ConfigError> {
        scenario::check(experiment, wrong)
    }

    fn keys(_: &Experiment) -> Vec<String> {
        KEYS.iter().map(|key| key.name.to_owned()).collect()
    }

    fn ignored(experiment: &Experiment, key: &str) -> Option<String> {
        scenario::ignored(experiment, key)
    }

    fn levels(experiment: &Experiment, key: &str) -> Vec<Level> {
        scenario::levels_of(experiment, key)
    }

    fn takes(key: &str, value: &toml::Value) -> bool {
        key::find(key).is_none_or(|key| key.check(&Level::of(value)).is_ok())
    }
}

impl Subjects for Stacks {
    const OVERHEAD_MS: u64 = 120;

    type Found = Engines;

    fn find(
        experiment: &Experiment,
        file: &ExperimentFile,
        options: &RunOptions,
        text: &str,
    ) -> Result<Engines, LabError> {
        let folders = Folders::engines(None).of_experiment(file, &experiment.directory);
        let wrong = blame(&file.path, text, options);
        Ok(Engines::find(
            experiment,
            &folders.map_err(|message| wrong(directory_key(text, options), message))?,
        ))
    }

    fn candidates(experiment: &Experiment, engines: &Engines) -> Result<Vec<Candidate>, ConfigError> {
        let mut candidates = Vec::new();
        for scenario in scenario::scenarios(experiment) {
            for engine in experiment.subjects() {
                let found = engines.present.get(&engine);
                let standing = match found.map(|found| engines.lacks(found, &scenario)) {
                    None => Standing::Absent,
                    Some(None) => Standing::Present,
                    Some(Some(why)) => Standing::Unable(why),
                };
                let is_shared = found.is_some_and(|found| found.description.is_shared(&scenario));
                let again = (experiment.aa.as_ref() == Some(&engine)).then(|| format!("{engine}{AGAIN}"));
                for name in [Some(engine.clone()), again].into_iter().flatten() {
                    let (id, levels) = (format!("{}.{name}", scenario.id()), scenario.clone());
                    let cell = Cell { id, name, subject: engine.clone(), levels };
                    let remark = is_shared.then(|| SHARED.to_owned());
                    candidates.push(Candidate { cell, standing: standing.clone(), remark });
                }
            }
        }
        Ok(candidates)
    }

    fn absent(engines: &Engines) -> BTreeMap<String, String> {
        engines.absent.clone()
    }

    fn phases_ms(_: &Experiment, cell: &Cell, _: Stage) -> u64 {
        cell.levels.number("window_ms").unwrap_or(0)
    }
}

impl Stored for Stacks {
    type Seen = Ran;
}

impl Judge for Stacks {
    fn compared(cell: &Cell) -> Vec<Metric> {
        compared(cell).to_vec()
    }

    fn compared_in_duets(cell: &Cell) -> Vec<Metric> {
        compared_in_duets(cell).to_vec()
    }

    fn has(metric: Metric, cell: &Cell) -> bool {
        measured(cell).contains(&metric)
    }

    fn judge(_: &Experiment, run: &mut RunOf<Self>) -> Result<(), ConfigError> {
        run.validity = Validity::of(check::first_wrong(&run.run.cell.levels, &run.seen));
        Ok(())
    }

    fn value(metric: Metric, run: &RunOf<Self>) -> Option<f64> {
        values::of_run(metric, run)
    }

    fn short(cell: &Cell) -> String {
        title::of(&cell.levels)
    }

    fn facts(ran: &Ran) -> Facts<'_> {
        let Ran { elapsed_ms, foreign_cpu, stolen_cpu, failure, .. } = ran;
        Facts {
            elapsed_ms: *elapsed_ms,
            taken: taken(*foreign_cpu, *stolen_cpu),
            has_failed: failure.is_some(),
            ..Facts::default()
        }
    }

    /// A remark if the cells use different allocators, unless the allocator is what is compared.
    fn unlike(cells: [&Cell; 2], runs: [&[&RunOf<Self>]; 2]) -> Option<String> {
        let [first, second] = cells.map(|cell| cell.levels.word("allocator"));
        if first != second {
            return None;
        }
        let facts = runs.map(|runs| runs.iter().find_map(|run| run.seen.seen.facts.as_ref()));
        let [first, second] = facts.map(|facts| facts.map(|facts| facts.allocator.as_str()));
        let (first, second) = (first?, second?);
        (first != second).then(|| format!("the allocators differ: {first} and {second}"))
    }

    /// Every level, including those that a name omits.
    fn conditions(plan: &Plan, cell: &Cell) -> Result<BTreeMap<String, String>, ConfigError> {
        let own = plan.cells.iter().find(|own| own.id == cell.id).unwrap_or(cell);
        Ok(own.levels.iter().map(|(key, level)| (key.to_owned(), level.to_string())).collect())
    }

    /// A system library can change without any change of the description; it reports its own version.
    fn is_other(runs: [&[&RunOf<Self>]; 2], _: bool) -> bool {
        let [before, after] = runs.map(|runs| runs.iter().find_map(|run| run.seen.seen.facts.as_ref()));
        before.is_some() && after.is_some() && before != after
    }
}

impl Measure for Stacks {
    type Executor = ProcessRunner;

    /// Builds the engines that are not built yet.
    fn make_ready(engines: &mut Engines, plan: &Plan, interrupt: &Interrupt) -> Result<(), LabError> {
        let guard = Guard::start(&this_program()?)?;
        let variant = |cell: &Cell| {
            Some((cell.subject.clone(), engines.present.get(&cell.subject)?.variant(&cell.levels)))
        };
        let needed: BTreeSet<(String, Variant)> = plan.cells.iter().filter_map(variant).collect();
        for (name, variant) in &needed {
            let Some(engine) = engines.present.get(name) else { continue };
            let Err(error) = engine.build(variant, tool::jobs(), interrupt, &guard) else { continue };
            if interrupt.is_set() {
                return Err(error);
            }
            note(&error);
            let why = match error {
                LabError::Install { message, .. } => message,
                other => other.to_string(),
            };
            engines.unbuilt.insert((name.clone(), variant.clone()), why);
        }
        engines.leave_out_unbuilt(&needed);
        Ok(())
    }

    fn machine(_: &Experiment, engines: &Engines) -> Result<Machine, LabError> {
        let mut machine = Machine::read(&allowed_cores()?);
        // Compared with stored results, so the words must not change.
        machine.network = "none: both ends in one process".into();
        for (name, engine) in &engines.present {
            let about = &engine.description;
            machine.folders.insert(name.clone(), engine.directory.display().to_string());
            machine.versions.insert(name.clone(), format!("{} {}", about.stack, about.version));
            let words = format!("A runner in {}. {}", about.language, about.about);
            machine.about.insert(name.clone(), words.trim().to_owned());
            machine.sources.insert(name.clone(), engine.sources()?);
        }
        Ok(machine)
    }

    fn executor(
        _: &Experiment,
        engines: Engines,
        directory: &Path,
        interrupt: Interrupt,
    ) -> Result<ProcessRunner, LabError> {
        let directory = fs::canonicalize(directory).map_err(LabError::file(directory, "cannot find"))?;
        let (allowed, guard) = (allowed_cores()?, Guard::start(&this_program()?)?);
        Ok(ProcessRunner { engines: engines.present, directory, allowed, interrupt, guard })
    }
}
