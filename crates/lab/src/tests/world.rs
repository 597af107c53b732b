//! A synthetic world: an experiment that is planned, conducted with synthetic results, and reported.

use crate::entry::pipeline::report;
use crate::experiment::metric::Metric;
use crate::experiment::options::RunOptions;
use crate::experiment::{Experiment, Stop};
use crate::findings::summary::Summary;
use crate::instrument::gateway::target::Targets;
use crate::instrument::gateway::testing::{experiment, targets};
use crate::instrument::gateway::{Gateway, Load, Mode, Place as _};
use crate::planning::placement::{CoreSets, Placement};
use crate::report::shown::Shown as _;
use crate::running::conduct::{Broken, conduct};
use crate::stats::verdict::Verdict;
use crate::store::Store;
use crate::store::machine::Machine;
use crate::testing::MockExecutor;

pub(crate) struct World {
    pub(crate) directory: tempfile::TempDir,
    /// The full text.
    pub(crate) text: String,
    /// The terminal's output.
    pub(crate) brief: String,
    pub(crate) summary: Summary,
    pub(crate) html: String,
}

pub(crate) fn world(blocks: u32, costs: &[(&str, f64)], broken: Option<&str>) -> World {
    let executor = MockExecutor { broken: broken.map(str::to_owned), ..MockExecutor::new(costs) };
    world_of(executor, |experiment| experiment.stop = Stop::Blocks(blocks))
}

pub(crate) fn world_of(mut executor: MockExecutor, change: impl FnOnce(&mut Experiment)) -> World {
    let directory = tempfile::tempdir().expect("a directory");
    let results = directory.path().join("results");
    let store = Store::create(&results).expect("is made");
    let targets: Targets = targets(directory.path());
    let mut experiment = experiment();
    change(&mut experiment);
    let mut machine = Machine::read(&[0, 1]);
    machine.placement = Some(Placement::choose(&CoreSets::default(), &[0, 1]));
    store.write_json("machine.json", &machine).expect("is written");
    let options = RunOptions { file: "experiments/small.toml".into(), ..RunOptions::default() };
    let mut plan = crate::instrument::gateway::testing::plan(experiment, &targets, &options).expect("plans");
    conduct::<Gateway>(&mut plan, &store, &mut executor, &mut (), Broken::GoesOn).expect("runs");
    let outcome = report::<Gateway>(&results).expect("reports");
    let read = |name: &str| std::fs::read_to_string(results.join(name)).expect("was written");
    World {
        text: outcome.full,
        brief: outcome.text,
        summary: Gateway::results(&results).expect("are read").summary,
        html: read("report.html"),
        directory,
    }
}

pub(crate) fn verdict(
    world: &World,
    target: &str,
    mode: Mode,
    load: Load,
    metric: Metric,
) -> (Verdict, Option<f64>, Option<String>) {
    let found = world.summary.comparisons.iter().find(|one| {
        (one.target.as_str(), one.cell.mode(), one.cell.load(), one.metric) == (target, mode, load, metric)
    });
    let found = found.unwrap_or_else(|| panic!("no comparison of {target}"));
    (found.ratio.verdict, found.ratio.value, found.ratio.note.clone())
}

pub(crate) const COSTS: [(&str, f64); 3] = [("direct", 10.0), ("fast", 20.0), ("slow", 25.0)];
