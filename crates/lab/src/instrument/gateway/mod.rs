//! Gateways: a load engine, a target and an origin, each a process of its own on given cores.

mod case;
mod check;
mod conditions;
mod executor;
mod factors;
mod feasible;
mod fix;
mod gc;
mod ignored;
mod levels;
mod limit;
mod load_table;
mod plan;
pub(crate) mod ports;
mod run;
mod shown;
#[cfg(test)]
pub(crate) mod synthetic;
mod table;
pub mod target;
pub(crate) mod template;
#[cfg(test)]
pub(crate) mod testing;
mod validity;
mod values;
mod vary;
mod view;

pub(crate) use case::Case;
pub(crate) use conditions::{Conditions, Framing, OriginKind, RequestKind, UpstreamConnections, echo};
#[cfg(test)]
pub(crate) use executor::NO_RATE;
pub(crate) use executor::{ProcessExecutor, issue_certificate, sample_values, short_directory};
#[cfg(test)]
pub(crate) use factors::Group;
pub(crate) use factors::{CertificateKind, Load, Mode, Side, Suite, Tls, TlsVersion};
pub use fix::{Fix, Fixes, proof};
pub(crate) use levels::Place;
#[cfg(test)]
pub(crate) use plan::two_digits;
#[cfg(test)]
pub(crate) use run::Asked;
pub use run::{Observation, ProcessReport, Seen};

use crate::base::error::{ConfigError, LabError};
use crate::base::hash;
use crate::base::leaves::leaves;
use crate::experiment::metric::Metric;
use crate::experiment::options::RunOptions;
use crate::experiment::reader::{blame, directory_key};
use crate::experiment::{Blame, Experiment, Grammar};
use crate::findings::foreign::taken;
use crate::findings::judge::{Facts, Judge};
use crate::findings::value::Value;
use crate::found::{ExperimentFile, Folders};
use crate::planning::cell::Cell;
use crate::planning::placement::Placement;
use crate::planning::plan::Plan;
use crate::planning::planned_run::Stage;
use crate::planning::subjects::{Candidate, Subjects};
use crate::running::host::{allowed_cores, this_program};
use crate::running::interrupt::Interrupt;
use crate::running::measure::Measure;
use crate::store::machine::Machine;
use crate::store::run::{RunOf, Stored, Validity};
use crate::store::{Store, check_layout};
use run::{Parts, parts};
use std::collections::BTreeMap;
use std::path::Path;
use target::Targets;
use weir_load::result::{Cost, SCHEMA as LOAD_SCHEMA};

/// Gateways under test.
#[derive(Clone, Copy, Debug)]
pub struct Gateway;

impl Grammar for Gateway {
    const NAME: &'static str = "gateway";
    const SUBJECT: &'static str = "target";
    const DIRECTORY: &'static str = "../targets";
    const OWN_KEYS: &'static [&'static str] = &["calibration_runs", "rate_share"];
    const METRICS: &'static [Metric] = &[
        Metric::CpuUsPerRequest,
        Metric::CpuUsPerHandshake,
        Metric::OriginCpuUsPerRequest,
        Metric::OriginCpuUsPerHandshake,
        Metric::LoadCpuUsPerRequest,
        Metric::LoadCpuUsPerHandshake,
        Metric::SwitchesPerRequest,
        Metric::RequestsPerSecond,
        Metric::HandshakesPerSecond,
        Metric::MeanUs,
        Metric::SdUs,
        Metric::P50Us,
        Metric::P95Us,
        Metric::P99Us,
        Metric::LittleRatio,
        Metric::RssKib,
        Metric::RssEndKib,
        Metric::UpstreamConnectionsPerRequest,
        Metric::UpstreamHandshakesPerRequest,
        Metric::UpstreamResumedPercent,
        Metric::GcThroughputPercent,
        Metric::AfterFullGcKib,
        Metric::Utilisation,
        Metric::ErrorRatio,
    ];

    fn check(experiment: &Experiment, wrong: &Blame<'_>) -> Result<(), ConfigError> {
        check::check(experiment, wrong)
    }

    fn takes(key: &str, value: &toml::Value) -> bool {
        check::takes(key, value)
    }

    fn ignored(experiment: &Experiment, key: &str) -> Option<String> {
        ignored::ignored(experiment, key)
    }

    fn placed(key: &str, value: &toml::Value, folder: &Path) -> toml::Value {
        load_table::placed(key, value, folder)
    }
}

impl Subjects for Gateway {
    const KEEPS_PAIR: bool = false;
    const OVERHEAD_MS: u64 = 350;

    type Found = Targets;

    fn find(
        experiment: &Experiment,
        file: &ExperimentFile,
        options: &RunOptions,
        text: &str,
    ) -> Result<Targets, LabError> {
        let wrong = blame(&file.path, text, options);
        let conditions = experiment.any_conditions()?;
        let folders = Folders::targets(None).of_experiment(file, &experiment.directory);
        let folders = folders.map_err(|message| wrong(directory_key(text, options), message))?;
        let values = sample_values(&this_program()?, &conditions.tls);
        let mut targets = target::find(&experiment.subjects(), &folders, &values)?;
        experiment.check_tickets(&mut targets)?;
        let allowed = allowed_cores()?;
        experiment.check_feasible(&targets, &allowed, &wrong)?;
        experiment.check_given(&targets, options, (&values, &allowed), &wrong)?;
        if !options.set.iter().any(|(key, _)| key == "baseline") {
            experiment.check_baseline(text, &targets, &wrong)?;
        }
        Ok(targets)
    }

    fn candidates(experiment: &Experiment, targets: &Targets) -> Result<Vec<Candidate>, ConfigError> {
        plan::candidates(experiment, targets)
    }

    fn absent(targets: &Targets) -> BTreeMap<String, String> {
        targets.absent.iter().map(|(name, absent)| (name.clone(), absent.why.clone())).collect()
    }

    fn dropped(experiment: &Experiment, targets: &Targets) -> Vec<String> {
        plan::unsupported(experiment, targets)
    }

    fn calibration(experiment: &Experiment, cells: &[Cell]) -> Result<Vec<Cell>, ConfigError> {
        plan::calibration(experiment, cells)
    }

    fn phases_ms(experiment: &Experiment, cell: &Cell, stage: Stage) -> u64 {
        experiment
            .conditions(cell)
            .map_or(0, |conditions| conditions.served_ms + conditions.warmup_ms + conditions.window_ms(stage))
    }

    fn overheads_ms(targets: &Targets) -> BTreeMap<String, u64> {
        let present = targets.present.iter();
        present.filter_map(|(name, target)| Some((name.clone(), target.overhead_ms()?))).collect()
    }
}

impl Stored for Gateway {
    type Seen = Seen;

    fn check_layout(run: &serde_json::Value) -> Result<(), String> {
        let load = &run["observation"]["load"];
        match load.is_null() {
            true => Ok(()),
            false => check_layout("observation.load.schema", &load["schema"], LOAD_SCHEMA),
        }
    }
}

impl Judge for Gateway {
    const SESSIONS: &'static str =
        "Nightly runs of one program differ by 5 % from one day to the next, and by 28 % in one of ten.";

    fn compared(cell: &Cell) -> Vec<Metric> {
        values::compared(cell.load(), cell.case())
    }

    fn compared_in_duets(cell: &Cell) -> Vec<Metric> {
        vec![values::unit_metrics(cell.case()).cpu]
    }

    fn judge(experiment: &Experiment, run: &mut RunOf<Self>) -> Result<(), ConfigError> {
        let conditions = experiment.conditions(&run.run.cell)?;
        let cores = ["target", "origin", "load"].map(|role| run.seen.observation.cores(role));
        // The two of a duet limit each other.
        let alone = parts(run).filter(|_| run.run.beside.is_none());
        run.seen.limit = alone.map(|parts| limit::of(&parts, cores));
        run.validity = Validity::of(validity::broken_rule(run, &conditions));
        Ok(())
    }

    fn value(metric: Metric, run: &RunOf<Self>) -> Option<f64> {
        values::of_run(metric, run)
    }

    fn short(cell: &Cell) -> String {
        cell.mode().to_string()
    }

    fn facts(seen: &Seen) -> Facts<'_> {
        let Seen { rate, served_ms, warmup_ms, window_ms, limit, observation } = seen;
        let last_words = observation.process("target").map_or("", |target| target.stderr.as_str());
        let failure = observation.failure.as_deref();
        Facts {
            elapsed_ms: observation.elapsed_ms,
            phases_ms: served_ms + warmup_ms + window_ms,
            taken: taken(observation.foreign_cpu, observation.stolen_cpu),
            rate: *rate,
            limit: *limit,
            broken: failure.filter(|why| why.starts_with("target: ")).map(|why| (why, last_words)),
            has_failed: failure.is_some(),
            logs: observation.logs.as_deref(),
        }
    }

    fn is_control(cell: &Cell) -> bool {
        cell.mode().upstream().is_none()
    }

    fn family(cell: &Cell) -> &str {
        cell.levels.word("load_model")
    }

    fn order(cell: &Cell) -> u32 {
        cell.mode() as u32
    }

    fn unsupported(metric: Metric, cell: &Cell, name: &str, valid: &[&RunOf<Self>]) -> Option<String> {
        values::unsupported(metric, cell, name, valid)
    }

    fn spoilt(metric: Metric, run: &RunOf<Self>) -> Option<String> {
        validity::spoilt(metric, run)
    }

    fn without_value(metric: Metric, name: &str, valid: &[&RunOf<Self>]) -> Option<String> {
        values::without_value(metric, name, valid)
    }

    fn remark(metric: Metric, cell: &Cell, name: &str, valid: &[&RunOf<Self>]) -> Option<String> {
        values::remark(metric, cell, name, valid)
    }

    fn summarise(metric: Metric, cell: &Cell, valid: &[&RunOf<Self>], all: &[&RunOf<Self>]) -> Option<Value> {
        values::summarise(metric, cell, valid, all)
    }

    fn conditions(plan: &Plan, cell: &Cell) -> Result<BTreeMap<String, String>, ConfigError> {
        plan.experiment.conditions(cell).map(|conditions| leaves(&conditions))
    }

    fn is_other(runs: [&[&RunOf<Self>]; 2], is_other_lab: bool) -> bool {
        is_other_lab && run::is_this_program(runs)
    }
}

impl Measure for Gateway {
    type Executor = ProcessExecutor;

    fn install(
        experiment: &Experiment,
        targets: &Targets,
        options: &RunOptions,
        interrupt: &Interrupt,
    ) -> Result<bool, LabError> {
        target::install_wanted(experiment, targets, options, interrupt)
    }

    fn machine(experiment: &Experiment, targets: &Targets) -> Result<Machine, LabError> {
        let allowed = allowed_cores()?;
        let mut machine = Machine::read(&allowed);
        machine.network = experiment.network();
        machine.placement = Some(Placement::choose(&experiment.any_conditions()?.cores, &allowed));
        // A different build of this program, template or body changes the runs, though every version and path may be
        // the same.
        machine.sources = experiment.load_files()?;
        for (name, target) in &targets.present {
            machine.versions.insert(name.clone(), target.version.clone());
            machine.titles.insert(name.clone(), target.title.clone());
            machine.about.insert(name.clone(), target.description.about.clone());
            machine.folders.insert(name.clone(), target.folder().display().to_string());
            machine.sources.insert(name.clone(), hash::files(&target.sources())?);
        }
        machine.sources.insert(Machine::THIS_PROGRAM.to_owned(), hash::files(&[this_program()?])?);
        Ok(machine)
    }

    fn executor(
        experiment: &Experiment,
        targets: Targets,
        directory: &Path,
        interrupt: Interrupt,
    ) -> Result<ProcessExecutor, LabError> {
        ProcessExecutor::new(Store::open(directory), experiment, targets, allowed_cores()?, interrupt)
    }

    fn calibrated(plan: &mut Plan, runs: &[RunOf<Self>], needs_all: bool) -> Result<(), LabError> {
        plan.rates = plan::equal_rates(plan, runs, needs_all)?;
        Ok(())
    }

    fn rate(plan: &Plan, cell: &Cell) -> Option<f64> {
        plan::rate(plan, cell)
    }

    /// `weir h1-h1c saturated 40000/s  CPU us/request: gateway 10.0 origin 3.1 load 8.0  limit gateway`.
    fn line(run: &RunOf<Self>) -> String {
        let cell = &run.run.cell;
        let (case, stage) = (cell.case(), run.run.id.split('-').next().unwrap_or_default());
        let (mode, load_model) = (cell.levels.word("mode"), cell.levels.word("load_model"));
        let what = format!("{stage} {:<12} {mode:<7} {load_model:<10}", cell.name);
        let Some(Parts { load, gateway, origin, .. }) = parts(run) else {
            return format!("{what}  {}", run.validity);
        };
        let each = |cost: Option<&Cost>| {
            cost.and_then(|cost| case.cpu_us(cost)).map_or("     -".into(), |us| format!("{us:6.1}"))
        };
        let mut line = format!(
            "{what} {:>8.0}/s  CPU us/{}: gateway {} origin {} load {}  limit {}",
            load.requests_per_second,
            case.unit(),
            each(gateway.map(|server| &server.cost)),
            each(origin.map(|server| &server.cost)),
            each(Some(&load.engine.cost)),
            run.seen.limit.map_or_else(String::new, |limit| limit.to_string()),
        );
        if !run.validity.is_valid() {
            line.push_str(&format!("  {}", run.validity));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::testing::record;
    use super::*;

    #[test]
    fn a_line_names_every_parts_cost() {
        let line = Gateway::line(&record(Mode::H1H1c, Load::Saturated));
        assert!(line.contains("40000/s  CPU us/request: gateway   25.0 origin    7.5 load   10.0"), "{line}");
        assert!(line.ends_with("limit gateway"), "{line}");
        let direct = Gateway::line(&record(Mode::H1, Load::Saturated));
        assert!(direct.contains("gateway      - origin    7.5"), "{direct}");
    }
}
