//! The commands of the lab: run, plan, report.

use crate::conduct::Broken;
use crate::doctor;
use crate::error::{ConfigError, LabError};
use crate::executor::{ProcessExecutor, allowed_cores, sample_values, this_program};
use crate::experiment::{Experiment, Stop, blame};
use crate::found::ExperimentFile;
use crate::interrupt::Interrupt;
use crate::machine::Machine;
use crate::options::RunOptions;
use crate::placement::Placement;
use crate::plan::{Plan, Stage, Targets};
use crate::progress::{Bar, tell};
use crate::report::render;
use crate::results::Results;
use crate::run::RunRecord;
use crate::store::{Store, default_directory};
use crate::{conduct, describe, found, hash, table, target};
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
    /// What the text was made from.
    pub results: Results,
}

/// What an experiment needs before it can be planned.
struct Setup {
    options: RunOptions,
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
        let (options, file, experiment, text) = chosen(options)?;
        let located = RunOptions { file: file.path.clone(), ..options.clone() };
        let wrong = blame(&located.file, &text, &located);
        let folders = experiment.folders(&file, &wrong)?;
        let conditions = experiment.any_conditions()?;
        let mut targets =
            target::find(&experiment.targets(), &folders, &sample_values(&weir, &conditions.tls))?;
        target::check_tickets(&experiment, &mut targets)?;
        let allowed = allowed_cores()?;
        experiment.check_here(&targets, &allowed, &wrong)?;
        if !options.set.iter().any(|(key, _)| key == "baseline") {
            experiment.check_baseline(&text, &targets, &wrong)?;
        }
        drop(wrong);
        let placement = Placement::choose(&conditions.cores, &allowed);
        Ok(Self { options, weir, experiment, text, targets, placement, allowed })
    }
}

/// The options with the file that is named, or else with that of the result which is gone on with; where it is; the
/// experiment and its text.
fn chosen(options: &RunOptions) -> Result<(RunOptions, ExperimentFile, Experiment, String), LabError> {
    let Some(directory) = options.stored() else {
        let file = found::experiment(&options.file)?;
        let located = RunOptions { file: file.path.clone(), ..options.clone() };
        let (experiment, text) = Experiment::load(&located)?;
        return Ok((options.clone(), file, experiment, text));
    };
    let Plan { file, only, mut experiment, .. } = Store::open(directory).plan()?;
    if let Some(blocks) = options.blocks {
        experiment.stop = Stop::Blocks(blocks);
    }
    let place = found::stored(&file);
    Ok((RunOptions { file, only, ..options.clone() }, place, experiment, String::new()))
}

/// Runs an experiment to its end, or goes on with one that was interrupted or that is to have more blocks.
///
/// # Errors
/// A wrong experiment, target or option; files that cannot be written; an interrupt. A target that fails, an invalid
/// run and a slow gateway are results.
pub fn run(options: &RunOptions) -> Result<Outcome, LabError> {
    let setup = Setup::new(options)?;
    let options = &setup.options;
    let why_absent = |name: &str| setup.targets.absent.get(name).map(|absent| absent.why.as_str());
    options.check_named(&["target", "name", "aa"], why_absent)?;
    let fresh = Plan::new(setup.experiment.clone(), &setup.targets, options)?;
    if fresh.baseline.is_none() {
        options.check_named(&["baseline"], why_absent)?;
    }
    let mut machine = Machine::read(&setup.allowed, &setup.targets, &setup.placement);
    machine.network = setup.experiment.network();
    machine.sources = sources(&setup)?;
    let (store, mut plan) = match &options.continue_dir {
        Some(directory) => {
            doctor::warn(&doctor::examine());
            resume(directory, fresh, &machine, options.blocks)?
        }
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
        tell(format_args!("{name}: {why}"));
    }
    let interrupt = Interrupt::on_signals()?;
    let broken = if options.allow_invalid { Broken::GoesOn } else { Broken::Ends };
    let mut executor = ProcessExecutor::new(
        setup.weir,
        store.clone(),
        &setup.experiment,
        setup.targets,
        setup.allowed,
        interrupt,
    )?;
    let conducted = conduct::conduct(&mut plan, &store, &mut executor, &mut Bar::default(), broken);
    executor.clean();
    conducted?;
    report(store.directory())
}

/// Says what [`run`] would do and how long it would take.
pub fn plan(options: &RunOptions) -> Result<String, LabError> {
    let setup = Setup::new(options)?;
    let plan = Plan::new(setup.experiment, &setup.targets, &setup.options)?;
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
    Ok(Outcome { directory: directory.to_owned(), text, invalid_runs, results })
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

/// The stored plan of an experiment, with more blocks where so many are asked for, if it is the same experiment on the same
/// programs.
fn resume(
    directory: &Path,
    fresh: Plan,
    machine: &Machine,
    blocks: Option<u32>,
) -> Result<(Store, Plan), LabError> {
    let store = Store::open(directory);
    let (mut stored, before) = (store.plan()?, store.machine()?);
    if let Some(blocks) = blocks {
        let block = |record: &RunRecord| match record.run.stage {
            Stage::Block(block) => block,
            Stage::Calibration => 0,
        };
        let measured = store.runs()?.iter().map(block).max().unwrap_or(0);
        stored.extend(blocks, measured).map_err(|why| ConfigError::new("--blocks", why))?;
    }
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
