//! Running, planning and reporting with one instrument, through all rooms of the pipeline.

use crate::base::error::{ConfigError, LabError};
use crate::doctor;
use crate::experiment::options::RunOptions;
use crate::planning::plan::Plan;
use crate::report::export::Reported;
use crate::report::shown::Shown;
use crate::report::{describe, page, split, words};
use crate::running::conduct::{Broken, conduct};
use crate::running::interrupt::Interrupt;
use crate::running::measure::{Executor, Measure};
use crate::running::profiles;
use crate::running::progress::{Bar, note};
use crate::running::setup::Setup;
use crate::store::machine::Machine;
use crate::store::run::RunOf;
use crate::store::{Store, default_directory};
use std::path::{Path, PathBuf};

/// The outcome of a command.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The results directory.
    pub directory: PathBuf,
    /// The findings in sentences, tables and caveats, on 30 lines of 100 columns.
    pub text: String,
    /// Labels, tables, verdicts and claims, at most 100 columns wide.
    pub full: String,
    /// Invalid runs of the blocks.
    pub invalid_runs: u32,
    /// The findings in machine-readable form.
    pub reported: Reported,
}

/// As [`crate::run`].
pub(crate) fn run<I: Measure + Shown>(options: &RunOptions) -> Result<Outcome, LabError> {
    let mut setup = Setup::<I>::new(options)?;
    let interrupt = Interrupt::on_signals()?;
    if I::install(&setup.experiment, &setup.found, &setup.options, &interrupt)? {
        setup = Setup::new(options)?;
    }
    let wanted = setup.plan()?;
    I::make_ready(&mut setup.found, &wanted, &interrupt)?;
    let absent = I::absent(&setup.found);
    let why_absent = |name: &str| absent.get(name).map(String::as_str);
    setup.options.check_named(&[I::SUBJECT, "engines", "name", "aa"], why_absent)?;
    let fresh = setup.plan()?;
    if fresh.baseline.is_none() {
        setup.options.check_named(&["baseline"], why_absent)?;
    }
    let mut machine = I::machine(&setup.experiment, &setup.found)?;
    let (store, mut plan) = match &setup.options.continue_dir {
        Some(directory) => {
            doctor::warn(&doctor::examine());
            resume::<I>(directory, fresh, &machine, setup.options.blocks)?
        }
        None => {
            let out = setup.options.out.clone();
            let store = Store::create(&out.unwrap_or_else(|| default_directory(&setup.experiment.name)))?;
            machine.doctor = doctor::examine();
            doctor::warn(&machine.doctor);
            store.write("experiment.toml", &setup.text)?;
            store.write_json("machine.json", &machine)?;
            (store, fresh)
        }
    };
    for (name, why) in &plan.absent {
        note(format_args!("{name}: {why}"));
    }
    let broken = if setup.options.allow_invalid { Broken::GoesOn } else { Broken::Ends };
    let mut executor = I::executor(&plan.experiment, setup.found, store.directory(), interrupt)?;
    let conducted = conduct::<I>(&mut plan, &store, &mut executor, &mut Bar::default(), broken);
    let profiled = match (&conducted, setup.options.profile) {
        (Ok(()), true) => profiles::make::<I>(&plan, &store, &mut executor, &mut Bar::default()),
        _ => Ok(()),
    };
    executor.finish(&plan, conducted.is_ok() && profiled.is_ok())?;
    conducted.and(profiled)?;
    report::<I>(store.directory())
}

/// As [`crate::plan`].
pub(crate) fn plan<I: Measure + Shown>(options: &RunOptions) -> Result<String, LabError> {
    let setup = Setup::<I>::new(options)?;
    Ok(describe::plan::<I>(&setup.plan()?, &setup.found))
}

/// As [`crate::report`].
pub(crate) fn report<I: Shown>(directory: &Path) -> Result<Outcome, LabError> {
    let results = I::results(directory)?;
    let store = Store::open(directory);
    let mut summary = I::json(&results);
    if !results.profiles.is_empty() {
        summary["profiles"] = split::json(&results);
    }
    store.write_json("summary.json", &summary)?;
    store.write("report.html", &page::render(&results, &store))?;
    let page = directory.join("report.html");
    let text = words::brief(&results, &page);
    let full = format!("{}\nReport: {}\n", words::render(&results), page.display());
    let invalid_runs = results.summary.cells.iter().map(|cell| cell.invalid_runs).sum();
    Ok(Outcome {
        directory: directory.to_owned(),
        text,
        full,
        invalid_runs,
        reported: Reported::from(&results),
    })
}

/// The stored plan, extended to `blocks` if given. It must be of the same experiment on the same programs.
fn resume<I: Shown>(
    directory: &Path,
    fresh: Plan,
    machine: &Machine,
    blocks: Option<u32>,
) -> Result<(Store, Plan), LabError> {
    let store = Store::open(directory);
    let (mut stored, before) = (store.plan()?, store.machine()?);
    if let Some(blocks) = blocks {
        let runs: Vec<RunOf<I>> = store.runs::<I>()?;
        let measured = runs.iter().map(|run| run.run.stage.block()).max().unwrap_or(0);
        stored.extend(blocks, measured).map_err(|why| ConfigError::new("--blocks", why))?;
    }
    let refuse = |what: &str| {
        let source = format!("--continue {}", directory.display());
        Err(ConfigError::new(source, format!("{what}; start a new result, since the runs would not compare"))
            .into())
    };
    if stored.experiment != fresh.experiment {
        return refuse("it was started with another experiment or other options");
    }
    if stored.cells != fresh.cells {
        return refuse(&format!("it was started with other cells ({}s present, or --only)", I::SUBJECT));
    }
    if (&before.versions, &before.hardware.cpu) != (&machine.versions, &machine.hardware.cpu) {
        return refuse(&format!(
            "it was started with other versions of the {}s, or on another processor",
            I::SUBJECT
        ));
    }
    let is_other =
        |(name, hash): &(&String, &String)| machine.sources.get(*name).is_some_and(|now| now != *hash);
    if let Some((name, _)) = before.sources.iter().find(is_other) {
        return refuse(&format!("it was started with another build, description or content of `{name}`"));
    }
    if before.placement != machine.placement {
        return refuse("it was started on other cores");
    }
    Ok((store, stored))
}
