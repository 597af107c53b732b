//! Made-up results with a known truth.

use super::engine::{Description, Engine};
use super::output::{Facts, Memory, Seen, Side, Times};
use super::values::Ran;
use super::{Engines, Stacks};
use crate::experiment::options::RunOptions;
use crate::experiment::{Stop, reader};
use crate::findings::results::Results;
use crate::findings::summary::Summary;
use crate::planning::cell::Cell;
use crate::planning::planned_run::PlannedRun;
use crate::planning::planner;
use crate::report::shown::Shown as _;
use crate::stats::rng::Rng;
use crate::store::machine::Machine;
use crate::store::run::Run;
use std::path::{Path, PathBuf};

/// The plan and its true effects.
#[derive(Clone, Debug)]
pub(crate) struct Made<'a> {
    pub(crate) blocks: u32,
    pub(crate) window_ms: u32,
    /// The version of the engine `fast`; that of `slow`, the baseline, is 7.
    pub(crate) version: &'a str,
    /// The server time of `fast`, relative to `slow`.
    pub(crate) effect: f64,
    /// The factor on all times in this session.
    pub(crate) drift: f64,
    /// The share of the cores that other processes used.
    pub(crate) foreign: f64,
    pub(crate) seed: u64,
}

impl Made<'_> {
    pub(crate) const NOTHING: Self =
        Self { blocks: 12, window_ms: 10, version: "1.0", effect: 1.0, drift: 1.0, foreign: 0.01, seed: 1 };
}

const EXPERIMENT: &str = "
name = 'made-up'
instrument = 'stacks'
question = 'Q'
engines = ['fast', 'slow']
baseline = ['slow']
aa = 'slow'
blocks = 1
seed = 1
[constants]
window_ms = 10
[[scenarios]]
do = 'handshake'
version = '1.3'
certificate = ['ecdsa-p256', 'rsa-2048']
[[scenarios]]
do = 'memory'
version = '1.3'
sessions = 100
[[claims]]
id = 'half'
source = 'own'
says = 'Half the time.'
metric = 'server_us_per_handshake'
cell = { engine = 'fast', certificate = 'rsa-2048' }
against = { engine = 'slow' }
expect = '< 0.6'
";

const ENGINE: &str = "
stack = 'fake'
version = '1'
crypto = 'none'
language = 'sh'
build = ['true']
run = ['true']
[abilities]
do = ['handshake', 'memory']
versions = ['1.3']
resumptions = ['none']
certificates = ['ecdsa-p256', 'rsa-2048']
groups = ['x25519']
suites = ['aes128-gcm']
tickets = [2]
";

/// Draws one experiment.
pub(crate) fn results(made: &Made<'_>) -> Results<Stacks> {
    let mut experiment =
        reader::parse::<Stacks>(Path::new("made-up.toml"), EXPERIMENT, &RunOptions::default())
            .expect("is read");
    experiment.stop = Stop::Blocks(made.blocks);
    experiment.constants.insert("window_ms".into(), made.window_ms.into());
    let description: Description = toml::from_str(ENGINE).expect("is read");
    let engine = |name: &str| Engine {
        name: name.into(),
        directory: PathBuf::new(),
        description: description.clone(),
    };
    let present = ["fast", "slow"].map(|name| (name.to_owned(), engine(name))).into();
    let engines = Engines { present, absent: [].into(), unbuilt: [].into() };
    let plan = planner::plan::<Stacks>(experiment, &engines, &RunOptions::default()).expect("plans");
    let versions = [("fast", made.version), ("slow", "7")];
    let prefixed = |prefix: &str| {
        versions.map(|(name, version)| (name.to_owned(), format!("{prefix} {version}"))).into()
    };
    let machine = Machine { versions: prefixed("fake"), sources: prefixed("hash of"), ..Machine::default() };
    let mut rng = Rng::new(made.seed);
    let runs: Vec<Run<Ran>> = plan.runs().map(|planned| run(planned, made, &mut rng)).collect();
    let directory = PathBuf::from(format!("made-up-{}", made.seed));
    let mut results = Results {
        directory,
        plan,
        machine,
        runs,
        summary: Summary::default(),
        profiles: Vec::new(),
        advised: None,
    };
    sum_up(&mut results);
    results
}

/// Sums up changed results again.
pub(crate) fn sum_up(results: &mut Results<Stacks>) {
    results.summary = Summary::of::<Stacks>(&results.plan, &results.machine, &results.runs);
    Stacks::complete(results).expect("is known");
}

fn run(planned: &PlannedRun, made: &Made<'_>, rng: &mut Rng) -> Run<Ran> {
    let cell = &planned.cell;
    let is_fast = cell.subject == "fast";
    let mut around = |value: f64| value * made.drift * (0.02 * rng.normal()).exp();
    let (server, client) = (around(if is_fast { 100.0 * made.effect } else { 100.0 }), around(200.0));
    let mut ran = ran(cell, server, client);
    ran.foreign_cpu = Some(made.foreign);
    if let Some(memory) = &mut ran.seen.memory {
        memory.after_kib = 1000 + around(1_000_000.0) as u64;
    }
    if let Some(facts) = &mut ran.seen.facts {
        facts.tls = format!("fake {}", if is_fast { made.version } else { "7" });
    }
    Run::new(planned, ran)
}

/// A valid run with these times per handshake.
pub(crate) fn ran(cell: &Cell, server_us: f64, client_us: f64) -> Ran {
    let times = |us: f64| Times { units: 100, total_ns: (100_000.0 * us) as u64, ..Times::default() };
    let mut seen = Seen {
        facts: Some(Facts {
            stack: "fake".into(),
            tls: "fake 1".into(),
            crypto: "none".into(),
            allocator: "system".into(),
            build: "release".into(),
            ..Facts::default()
        }),
        is_done: true,
        ..Seen::default()
    };
    match cell.levels.word("do") {
        "memory" => seen.memory = Some(Memory { sessions: 100, before_kib: 1000, after_kib: 1_001_000 }),
        _ => {
            seen.times.insert(Side::Server, times(server_us));
            seen.times.insert(Side::Client, times(client_us));
            seen.negotiated = [Side::Client, Side::Server].map(|side| outcome(cell, side)).into();
        }
    }
    Ran {
        command: vec!["true".into()],
        scenario: cell.levels.lines(),
        seen,
        exit: "exit status: 0".into(),
        elapsed_ms: 10,
        ..Ran::default()
    }
}

/// The outcome that the scenario expects.
fn outcome(cell: &Cell, side: Side) -> super::output::Negotiated {
    let word = |key: &str| cell.levels.word(key).to_owned();
    super::output::Negotiated {
        side,
        version: word("version"),
        kind: "full".into(),
        suite: word("suite"),
        group: Some(word("group")),
        signature: None,
        count: 100,
    }
}
