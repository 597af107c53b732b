//! The commands of the lab: run, plan, report.

use crate::doctor;
use crate::error::{ConfigError, LabError};
use crate::executor::{ProcessExecutor, allowed_cores, sample_values, this_program};
use crate::experiment::{Experiment, blame};
use crate::interrupt::Interrupt;
use crate::machine::Machine;
use crate::options::RunOptions;
use crate::placement::Placement;
use crate::plan::{Plan, Targets};
use crate::progress::Bar;
use crate::report::render;
use crate::results::Results;
use crate::store::{Store, default_directory};
use crate::{conduct, describe, hash, table, target};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What a command came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Where the results are.
    pub directory: PathBuf,
    /// Labels, tables and verdicts, at most 100 columns wide, for standard output.
    pub text: String,
    /// Runs of the blocks that were invalid.
    pub invalid_runs: u32,
    /// Whether an invalid run is a failure.
    pub strict: bool,
    /// What the text was made from.
    pub results: Results,
}

impl Outcome {
    /// The exit code of the program: 0, or 3 when a run was invalid and `--strict` was given.
    pub fn exit_code(&self) -> u8 {
        if self.strict && self.invalid_runs > 0 { 3 } else { 0 }
    }
}

/// What an experiment needs before it can be planned.
struct Setup {
    weir: PathBuf,
    experiment: Experiment,
    text: String,
    targets: Targets,
    placement: Placement,
    allowed: Vec<usize>,
}

impl Setup {
    fn new(options: &RunOptions) -> Result<Self, LabError> {
        let weir = this_program()?;
        let (experiment, text) = Experiment::load(options)?;
        let directory = experiment.targets_directory(&options.file);
        let conditions = experiment.any_conditions()?;
        let mut targets =
            target::find(&experiment.targets(), &directory, &sample_values(&weir, &conditions.tls))?;
        target::check_tickets(&experiment, &mut targets)?;
        let allowed = allowed_cores()?;
        experiment.check_here(&targets, &allowed, &blame(&options.file, &text, options))?;
        let placement = Placement::choose(&conditions.cores, &allowed);
        Ok(Self { weir, experiment, text, targets, placement, allowed })
    }
}

/// Runs an experiment to its end, or goes on with one that was interrupted.
///
/// # Errors
/// A wrong experiment, target or option; files that cannot be written; an interrupt. A target that fails, an invalid
/// run and a slow gateway are results.
pub fn run(options: &RunOptions) -> Result<Outcome, LabError> {
    let setup = Setup::new(options)?;
    let fresh = Plan::new(setup.experiment.clone(), &setup.targets, options)?;
    let mut machine = Machine::read(&setup.allowed, &setup.targets, &setup.placement);
    machine.network = setup.experiment.network();
    machine.sources = sources(&setup)?;
    let (store, mut plan) = match &options.continue_dir {
        Some(directory) => resume(directory, fresh, &machine)?,
        None => {
            let directory = options.out.clone().unwrap_or_else(|| default_directory(&setup.experiment.name));
            let store = Store::create(&directory)?;
            machine.doctor = doctor::examine();
            doctor::warn(&machine.doctor);
            store.write("experiment.toml", &setup.text)?;
            store.write_json("machine.json", &machine)?;
            (store, fresh)
        }
    };
    for (name, why) in &plan.absent {
        eprintln!("{name}: {why}");
    }
    let interrupt = Interrupt::on_signals()?;
    let mut executor = ProcessExecutor::new(
        setup.weir,
        store.clone(),
        &setup.experiment,
        setup.targets,
        setup.allowed,
        interrupt,
    )?;
    let conducted = conduct::conduct(&mut plan, &store, &mut executor, &mut Bar::default());
    executor.clean();
    conducted?;
    let mut outcome = report(store.directory())?;
    outcome.strict = options.strict;
    Ok(outcome)
}

/// Says what [`run`] would do and how long it would take.
pub fn plan(options: &RunOptions) -> Result<String, LabError> {
    let setup = Setup::new(options)?;
    let plan = Plan::new(setup.experiment, &setup.targets, options)?;
    Ok(describe::plan(&plan, &setup.placement, &setup.targets))
}

/// Rebuilds `summary.json` and `report.html` from the stored runs.
pub fn report(directory: &Path) -> Result<Outcome, LabError> {
    let results = Results::read(directory)?;
    let Results { plan, records, summary, .. } = &results;
    let store = Store::open(directory);
    store.write_json("summary.json", summary)?;
    store.write("report.html", &render(plan, summary, records, &store.settings()?))?;
    let mut text = table::render(plan, summary);
    let _ = writeln!(text, "\nReport: {}", directory.join("report.html").display());
    let invalid_runs = summary.cells.iter().map(|cell| cell.invalid_runs).sum();
    Ok(Outcome { directory: directory.to_owned(), text, invalid_runs, strict: false, results })
}

/// What the runs are made of beside the targets' programs: another build of this one, another template or another body
/// makes other runs though every version and every path is the same.
fn sources(setup: &Setup) -> Result<BTreeMap<String, String>, LabError> {
    let mut sources = setup.experiment.load_files()?;
    for (name, target) in &setup.targets.present {
        sources.insert(name.clone(), hash::files(&target.sources())?);
    }
    sources.insert(Machine::THIS_PROGRAM.to_owned(), hash::files(std::slice::from_ref(&setup.weir))?);
    Ok(sources)
}

/// The stored plan of an interrupted experiment, if it is the same experiment on the same programs.
fn resume(directory: &Path, fresh: Plan, machine: &Machine) -> Result<(Store, Plan), LabError> {
    let store = Store::open(directory);
    let (stored, before) = (store.plan()?, store.machine()?);
    let refuse = |what: &str| {
        let source = format!("--continue {}", directory.display());
        Err(ConfigError::new(source, format!("{what}: its runs cannot be put beside new ones")).into())
    };
    if stored.experiment != fresh.experiment {
        return refuse("it was begun with another experiment or other options");
    }
    if stored.cells != fresh.cells {
        return refuse("it was begun with other cells (targets present, or --only)");
    }
    if (&before.versions, &before.cpu) != (&machine.versions, &machine.cpu) {
        return refuse("it was begun with other versions of the targets, or on another processor");
    }
    let is_other =
        |(name, hash): (&String, &String)| machine.sources.get(name).is_some_and(|now| now != hash);
    if let Some((name, _)) = before.sources.iter().find(|one| is_other(*one)) {
        return refuse(&format!("it was begun with another build, description or content of `{name}`"));
    }
    if before.placement != machine.placement {
        return refuse("it was begun on other cores");
    }
    Ok((store, stored))
}
