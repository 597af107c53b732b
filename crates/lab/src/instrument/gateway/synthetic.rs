//! Synthetic results with a known truth, in a directory as an experiment leaves it. A run's text is created once and
//! filled in for each experiment, so that thousands of experiments can be stored, and loaded as `weir report` does.

use super::testing::{encode, made, result_for, targets};
use super::{Gateway, Seen};
use crate::experiment::options::RunOptions;
use crate::experiment::reader;
use crate::findings::results::Results;
use crate::planning::plan::Plan;
use crate::planning::planned_run::{PlannedRun, Stage};
use crate::planning::planner;
use crate::stats::rng::Rng;
use crate::store::Store;
use crate::store::machine::Machine;
use crate::store::run::Run;
use std::fs;
use std::path::{Path, PathBuf};

/// The standard deviation of a per-block log ratio.
pub(crate) const SD: f64 = 0.03;

/// The slowdown on a host of another kind (nightly runs of one service: 4001, 5120, 4214 requests per second).
const LEVEL: f64 = 1.25;

/// The movement of the host's level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// None.
    Steady,
    /// It jumps between blocks, in three of ten; and in one of ten within a block.
    OfBlocks,
    /// One run in ten is on the other level, alone.
    OfRuns,
}

/// The truth in one experiment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truth<'a> {
    pub(crate) host: Host,
    /// The factor by which these targets cost more in the first group.
    pub(crate) effects: &'a [(&'a str, f64)],
    /// The factor by which everything costs more in this session.
    pub(crate) drift: f64,
}

impl Truth<'_> {
    pub(crate) const NOTHING: Self = Self { host: Host::Steady, effects: &[], drift: 1.0 };
}

/// The plan's shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    /// Whether `fast` is run twice in each block.
    pub(crate) aa: bool,
    pub(crate) blocks: u32,
    /// Groups of cells that are compared with each other.
    pub(crate) groups: u32,
    /// The targets' versions.
    pub(crate) versions: &'a [(&'a str, &'a str)],
}

/// A directory of results with new random values for each experiment.
pub(crate) struct Synthetic {
    directory: tempfile::TempDir,
    runs: Vec<Template>,
    rng: Rng,
}

/// The text of a stored run, cut at its two values.
struct Template {
    file: PathBuf,
    run: PlannedRun,
    text: [String; 3],
}

/// Values that occur nowhere else in a run's text.
const CPU_MARK: f64 = 7_777.062_5;
const RATE_MARK: f64 = 8_888.062_5;

impl Synthetic {
    /// Targets `fast` and `slow`, the baseline; no run is stored yet.
    pub(crate) fn new(shape: Shape<'_>, seed: u64) -> Self {
        let Shape { aa, blocks, groups, versions } = shape;
        let delays: Vec<u32> = (0..groups).collect();
        let text = format!(
            "name = 'synthetic'\nquestion = 'Q'\nbaseline = ['slow']\nblocks = {blocks}\nseed = 1\n{}\
             [factors]\ntarget = ['fast', 'slow']\ndelay_ms = {delays:?}\n\
             [constants]\nmode = 'h1c-h1c'\nload_model = 'saturated'\nconnections = 8\nbytes = 100\nwarmup_ms = 10\n\
             window_ms = 50\n",
            if aa { "aa = 'fast'\n" } else { "" },
        );
        // In memory if possible: files rewritten over and over are flushed to disk each time.
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let directory = tempfile::tempdir_in(place).expect("a directory");
        let experiment =
            reader::parse::<Gateway>(Path::new("e.toml"), &text, &RunOptions::default()).expect("parses");
        let plan = planner::plan::<Gateway>(experiment, &targets(directory.path()), &RunOptions::default())
            .expect("plans");
        let results = directory.path().join("results");
        let store = Store::create(&results).expect("is made");
        let versions = versions.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned()));
        let machine = Machine { versions: versions.collect(), ..Machine::default() };
        store.write_json("plan.json", &plan).expect("is written");
        store.write_json("machine.json", &machine).expect("is written");
        let template = |run: &PlannedRun| {
            let text = serde_json::to_string(&marked(&plan, run)).expect("serialises");
            let (head, rest) = text.split_once(&RATE_MARK.to_string()).expect("the rate is in it");
            let (middle, tail) = rest.split_once(&CPU_MARK.to_string()).expect("the cost comes after it");
            assert!(!tail.contains(&CPU_MARK.to_string()) && !tail.contains(&RATE_MARK.to_string()), "once");
            let file = results.join(format!("runs/{}.json", run.id));
            Template { file, run: run.clone(), text: [head, middle, tail].map(str::to_owned) }
        };
        let runs = plan.runs().filter(|run| run.stage != Stage::Calibration).map(template).collect();
        Self { directory, runs, rng: Rng::new(seed) }
    }

    /// The results directory.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("results")
    }

    /// Stores one experiment, and loads it.
    pub(crate) fn experiment(&mut self, truth: Truth<'_>) -> Results<Gateway> {
        let mut level = Level { host: truth.host, now: 0.0, block: None, switch_in: None };
        let in_block = self.runs.iter().take_while(|one| one.run.stage == self.runs[0].run.stage).count();
        for Template { file, run, text: [head, middle, tail] } in &self.runs {
            let level = level.of(run.stage, in_block, &mut self.rng);
            let of_target = truth.effects.iter().find(|(name, _)| *name == run.cell.subject);
            let effect = of_target.filter(|_| run.cell.levels.word("delay_ms") == "0");
            let true_log = effect.map_or(0.0, |(_, factor)| factor.ln()) + truth.drift.ln() + level;
            let mut noise = || self.rng.normal() * SD / f64::sqrt(2.0);
            let cpu = 20.0 * (true_log + noise()).exp();
            let rate = 50_000.0 * (noise() - true_log).exp();
            fs::write(file, format!("{head}{rate}{middle}{cpu}{tail}")).expect("is written");
        }
        Results::read(&self.path()).expect("reads")
    }
}

/// A valid run with marks in place of its values.
fn marked(plan: &Plan, run: &PlannedRun) -> Run<Seen> {
    let mut result = result_for(&run.cell, None);
    result.response.hdr_v2 = encode(&[200; 2000]);
    result.servers[0].cost.cpu_us_per_request = Some(CPU_MARK);
    result.requests_per_second = RATE_MARK;
    let record = made(&plan.experiment, run, None, result);
    assert!(record.validity.is_valid(), "{}", record.validity);
    record
}

/// The host's level, as a logarithm.
struct Level {
    host: Host,
    now: f64,
    block: Option<Stage>,
    /// Runs of this block until the jump.
    switch_in: Option<usize>,
}

impl Level {
    fn of(&mut self, stage: Stage, in_block: usize, rng: &mut Rng) -> f64 {
        match self.host {
            Host::Steady => {}
            Host::OfRuns => self.now = if rng.unit() < 0.1 { LEVEL.ln() } else { 0.0 },
            Host::OfBlocks => {
                let mut jumps = false;
                if self.block.replace(stage) != Some(stage) {
                    jumps = rng.unit() < 0.3;
                    let position = rng.below(in_block);
                    self.switch_in = (rng.unit() < 0.1).then_some(position);
                }
                jumps ^= self.switch_in == Some(0);
                self.switch_in = self.switch_in.and_then(|runs| runs.checked_sub(1));
                self.now = if jumps { LEVEL.ln() - self.now } else { self.now };
            }
        }
        self.now
    }
}
