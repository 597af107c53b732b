//! TLS stacks side by side: what a handshake, a resumption and a megabyte cost in each library and version, client and
//! server apart, in memory. Engines are programs of their own; `docs/ENGINES.md` has their protocol.

mod build;
mod cell;
mod check;
mod conduct;
mod document;
mod engine;
mod execute;
mod instructions;
mod key;
mod material;
mod output;
mod plan;
mod report;
mod results;
mod run;
mod scaling;
mod store;
mod summary;
#[cfg(test)]
pub(crate) mod synthetic;
#[cfg(test)]
mod tests;
mod text;
mod title;

pub use cell::{Scenario, StackCell};
pub use output::{Facts, Seen, Side};
pub use results::StacksResults;
pub(crate) use results::select;
pub use run::StackRun;
pub use scaling::Drop;
pub use store::is_of_stacks;
pub use summary::{CellFindings, Contrast, Located, StacksSummary};

use crate::doctor;
use crate::error::{ConfigError, LabError};
use crate::executor::{allowed_cores, this_program};
use crate::experiment::CoreSets;
use crate::found::{self, Folders};
use crate::guard::Guard;
use crate::interrupt::Interrupt;
use crate::machine::Machine;
use crate::options::RunOptions;
use crate::placement::Placement;
use crate::plan::Targets;
use crate::progress::tell;
use crate::store::{Store, default_directory};
use document::StacksExperiment;
use engine::{Engine, Variant};
use execute::ProcessRunner;
use plan::StacksPlan;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// What a command came to.
#[derive(Clone, Debug)]
pub struct StacksOutcome {
    /// Where the results are.
    pub directory: PathBuf,
    /// Labels, values, verdicts and claims for standard output.
    pub text: String,
    /// Runs that were invalid.
    pub invalid_runs: u32,
    /// What the text was made from.
    pub results: StacksResults,
}

/// Whether a file is an experiment with stacks, and not one with gateways.
pub fn is_experiment(file: &Path) -> bool {
    let found = found::experiment(file).map(|found| found.path);
    let text = fs::read_to_string(found.as_deref().unwrap_or(file)).unwrap_or_default();
    let table: Option<toml::Table> = toml::from_str(&text).ok();
    table.is_some_and(|table| {
        table.get("instrument").and_then(toml::Value::as_str) == Some(document::INSTRUMENT)
    })
}

/// The engines of these folders with their versions, and whether they are built.
///
/// # Errors
/// Folders without any engine. A description that is wrong is a row that says so.
pub fn list(folders: &Folders) -> Result<String, LabError> {
    let read = |name: String| Engine::read(folders, &name).map_err(|error| (name, error.to_string()));
    Ok(text::list(&folders.names()?.into_iter().map(read).collect::<Vec<_>>()))
}

/// Builds engines: those named, or all. Returns what became of each, and how many failed.
///
/// # Errors
/// An unknown name, a wrong description among those named, an interrupt.
pub fn build(folders: &Folders, names: &[String], jobs: usize) -> Result<(String, usize), LabError> {
    let names = if names.is_empty() { folders.names()? } else { names.to_vec() };
    let engines = names.iter().map(|name| Engine::read(folders, name)).collect::<Result<Vec<_>, _>>()?;
    let interrupt = Interrupt::on_signals()?;
    let mut guard = Guard::start(&this_program()?)?;
    let (mut text, mut failed) = (String::new(), 0);
    for engine in &engines {
        let about = &engine.description;
        tell(format_args!("{}: {} {}", engine.name, about.stack, about.version));
        match engine.build(&Variant::plain(), jobs, &interrupt, &mut guard) {
            Ok(()) => drop(writeln!(text, "{}: built", engine.name)),
            Err(error) if interrupt.is_set() => return Err(error),
            Err(error) => {
                failed += 1;
                let _ = writeln!(text, "{error}");
            }
        }
    }
    Ok((text, failed))
}

/// Plans an experiment and says what it would run; nothing is built or run.
///
/// # Errors
/// A wrong experiment, engine or option.
pub fn plan(options: &RunOptions) -> Result<String, LabError> {
    let (_, experiment, _, folders) = load(options)?;
    let (engines, absent) = engines(&experiment, &folders);
    Ok(text::plan(&StacksPlan::new(experiment, &engines, absent, &options.only)?))
}

/// Builds the engines that are not built, and runs an experiment to its end.
///
/// # Errors
/// A wrong experiment, engine or option; files that cannot be written; an interrupt. An engine that cannot be built and
/// an invalid run are results.
pub fn run(options: &RunOptions) -> Result<StacksOutcome, LabError> {
    let (options, experiment, source, folders) = load(options)?;
    let options = &options;
    let (mut engines, mut absent) = engines(&experiment, &folders);
    let interrupt = Interrupt::on_signals()?;
    let mut guard = Guard::start(&this_program()?)?;
    let selected = StacksPlan::new(experiment.clone(), &engines, absent.clone(), &options.only)?;
    for (name, variant) in needed(&selected, &engines) {
        let Some(engine) = engines.get(&name) else { continue };
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        if let Err(error) = engine.build(&variant, jobs, &interrupt, &mut guard) {
            if interrupt.is_set() {
                return Err(error);
            }
            tell(&error);
            engines.remove(&name);
            let why = match error {
                LabError::Install { message, .. } => message,
                other => other.to_string(),
            };
            absent.insert(name, why);
        }
    }
    let why_absent = |name: &str| absent.get(name).map(String::as_str);
    options.check_named(&["engine", "engines", "name", "aa"], why_absent)?;
    let mut plan = StacksPlan::new(experiment, &engines, absent, &options.only)?;
    plan.file = options.file.clone();
    plan.arguments = options.arguments();
    plan.quick = options.quick;
    let allowed = allowed_cores()?;
    let store = match &options.continue_dir {
        Some(directory) => {
            doctor::warn(&doctor::examine());
            let (store, stored) = resume(directory, &plan, &engines, options.blocks)?;
            plan = stored;
            store.write_json("plan.json", &plan)?;
            store
        }
        None => {
            let directory = options.out.clone().unwrap_or_else(|| default_directory(&plan.experiment.name));
            let store = Store::create(&directory)?;
            store.write("experiment.toml", &source)?;
            let machine = machine(&allowed, &engines)?;
            doctor::warn(&machine.doctor);
            store.write_json("machine.json", &machine)?;
            store.write_json("plan.json", &plan)?;
            store
        }
    };
    let directory =
        fs::canonicalize(store.directory()).map_err(LabError::file(store.directory(), "cannot be found"))?;
    let mut runner =
        ProcessRunner { engines: &engines, directory, allowed, interrupt: &interrupt, guard: &mut guard };
    conduct::conduct(&plan, &store, &mut runner)?;
    if plan.experiment.instructions {
        instructions::count(&plan, &store, &mut runner)?;
    }
    report(store.directory())
}

/// Rebuilds `summary.json` and `report.html` from the stored runs.
///
/// # Errors
/// What is not the result of such an experiment.
pub fn report(directory: &Path) -> Result<StacksOutcome, LabError> {
    let results = StacksResults::read(directory)?;
    let StacksResults { plan, machine, records, summary, .. } = &results;
    let store = Store::open(directory);
    store.write_json("summary.json", summary)?;
    store.write("report.html", &report::render(plan, summary, records, machine))?;
    let mut text = text::render(plan, summary);
    let _ = writeln!(text, "\nReport: {}", directory.join("report.html").display());
    let invalid_runs = summary.cells.iter().map(|cell| cell.invalid_runs).sum();
    Ok(StacksOutcome { directory: directory.to_owned(), text, invalid_runs, results })
}

/// The options with the file that is named, or else with that of the result which is gone on with; the experiment, its text,
/// and where its engines are.
fn load(options: &RunOptions) -> Result<(RunOptions, StacksExperiment, String, Folders), LabError> {
    let Some(directory) = options.stored() else {
        if let Some(directory) = &options.continue_dir {
            // Before anything is built.
            store::plan(&Store::open(directory))?;
        }
        let file = found::experiment(&options.file)?;
        let located = RunOptions { file: file.path.clone(), ..options.clone() };
        let (experiment, text) = StacksExperiment::load(&located)?;
        let folders = experiment.folders(&file)?;
        return Ok((options.clone(), experiment, text, folders));
    };
    let StacksPlan { file, only, mut experiment, .. } = store::plan(&Store::open(directory))?;
    if options.instructions && !experiment.instructions {
        let why = "the result was begun without; expected a new result";
        return Err(ConfigError::new("--instructions", why).into());
    }
    experiment.blocks = options.blocks.unwrap_or(experiment.blocks);
    let folders = experiment.folders(&found::stored(&file))?;
    Ok((RunOptions { file, only, ..options.clone() }, experiment, String::new(), folders))
}

type Engines = (BTreeMap<String, Engine>, BTreeMap<String, String>);

/// The experiment's engines by name, and those whose folder or description is missing or wrong, with the reason.
fn engines(experiment: &StacksExperiment, folders: &Folders) -> Engines {
    let (mut present, mut absent) = (BTreeMap::new(), BTreeMap::new());
    for name in &experiment.engines {
        match Engine::read(folders, name) {
            Ok(engine) => drop(present.insert(name.clone(), engine)),
            Err(error) => drop(absent.insert(name.clone(), error.to_string())),
        }
    }
    (present, absent)
}

/// What has to be built for a plan.
fn needed(plan: &StacksPlan, engines: &BTreeMap<String, Engine>) -> BTreeSet<(String, Variant)> {
    let variant =
        |cell: &StackCell| Some((cell.engine.clone(), engines.get(&cell.engine)?.variant(&cell.scenario)));
    plan.cells.iter().filter_map(variant).collect()
}

fn machine(allowed: &[usize], engines: &BTreeMap<String, Engine>) -> Result<Machine, LabError> {
    let placement = Placement { cores: CoreSets::default(), note: None };
    let mut machine = Machine::read(allowed, &Targets::default(), &placement);
    machine.placement = None;
    machine.network = "none: both ends in one process".into();
    machine.doctor = doctor::examine();
    for (name, engine) in engines {
        let about = &engine.description;
        machine.folders.insert(name.clone(), engine.directory.display().to_string());
        machine.versions.insert(name.clone(), format!("{} {}", about.stack, about.version));
        let words = format!("A runner in {}. {}", about.language, about.about);
        machine.about.insert(name.clone(), words.trim().to_owned());
        machine.sources.insert(name.clone(), engine.sources()?);
    }
    Ok(machine)
}

/// The store of an experiment, and its plan with more blocks where so many are asked for, if it is the same experiment.
fn resume(
    directory: &Path,
    plan: &StacksPlan,
    engines: &BTreeMap<String, Engine>,
    blocks: Option<u32>,
) -> Result<(Store, StacksPlan), LabError> {
    let store = Store::open(directory);
    let (mut stored, before) = (store::plan(&store)?, store.machine()?);
    if let Some(blocks) = blocks {
        let measured = store::runs(&store, &stored)?.iter().map(|run| run.run.block).max().unwrap_or(0);
        stored.extend(blocks, measured).map_err(|why| ConfigError::new("--blocks", why))?;
    }
    let refuse = |what: &str| {
        let source = format!("--continue {}", directory.display());
        Err(ConfigError::new(source, format!("{what}: its runs cannot be put beside new ones")).into())
    };
    if (&stored.experiment, &stored.cells) != (&plan.experiment, &plan.cells) {
        return refuse("it was begun with another experiment, other options or other engines");
    }
    for (name, engine) in engines {
        if before.sources.get(name).is_some_and(|sources| engine.sources().is_ok_and(|now| now != *sources)) {
            return refuse(&format!("it was begun with other sources of `{name}`"));
        }
    }
    Ok((store, stored))
}
