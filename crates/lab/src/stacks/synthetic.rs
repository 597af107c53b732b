//! Made-up results with a known truth.

use super::document::StacksExperiment;
use super::engine::Engine;
use super::output::{Facts, Memory, Seen, Side, Times};
use super::plan::StacksPlan;
use super::run::{PlannedStackRun, StackRun};
use super::{StacksResults, StacksSummary};
use crate::machine::Machine;
use crate::validity::Validity;
use std::path::PathBuf;
use weir_load::rng::Rng;

/// What is planned, and what is true.
#[derive(Clone, Debug)]
pub(crate) struct Made<'a> {
    pub(crate) blocks: u32,
    pub(crate) window_ms: u32,
    /// The version of the engine `fast`; that of `slow`, the baseline, is 7.
    pub(crate) version: &'a str,
    /// By what factor the server of `fast` takes longer than that of `slow`.
    pub(crate) effect: f64,
    /// By what factor everything takes longer in this session.
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
pub(crate) fn results(made: &Made<'_>) -> StacksResults {
    let mut experiment: StacksExperiment = toml::from_str(EXPERIMENT).expect("is read");
    experiment.blocks = made.blocks;
    experiment.constants.insert("window_ms".into(), made.window_ms.into());
    let description: super::engine::Description = toml::from_str(ENGINE).expect("is read");
    let engine = |name: &str| Engine {
        name: name.into(),
        directory: PathBuf::new(),
        description: description.clone(),
    };
    let engines = ["fast", "slow"].map(|name| (name.to_owned(), engine(name))).into();
    let plan = StacksPlan::new(experiment, &engines, [].into(), &[]).expect("plans");
    let versions = [("fast", made.version), ("slow", "7")];
    let told = |prefix: &str| {
        versions.map(|(name, version)| (name.to_owned(), format!("{prefix} {version}"))).into()
    };
    let machine = Machine { versions: told("fake"), sources: told("hash of"), ..Machine::default() };
    let mut rng = Rng::new(made.seed);
    let records: Vec<StackRun> =
        plan.blocks.iter().flatten().map(|planned| run(planned, made, &mut rng)).collect();
    let summary = StacksSummary::of(&plan, &records);
    let directory = PathBuf::from(format!("made-up-{}", made.seed));
    StacksResults { directory, plan, machine, records, summary }
}

fn run(planned: &PlannedStackRun, made: &Made<'_>, rng: &mut Rng) -> StackRun {
    let cell = &planned.cell;
    let is_fast = cell.engine == "fast";
    let mut around = |value: f64| value * made.drift * (0.02 * rng.normal()).exp();
    let effect = if is_fast { made.effect } else { 1.0 };
    let times = |ns: f64| Times { units: 100, total_ns: (100.0 * ns) as u64, ..Times::default() };
    let mut seen = Seen {
        facts: Some(Facts {
            stack: "fake".into(),
            tls: format!("fake {}", if is_fast { made.version } else { "7" }),
            allocator: "system".into(),
            build: "release".into(),
            ..Facts::default()
        }),
        is_done: true,
        ..Seen::default()
    };
    match cell.scenario.word("do") {
        "memory" => {
            let after_kib = 1000 + around(1_000_000.0) as u64;
            seen.memory = Some(Memory { sessions: 100, before_kib: 1000, after_kib });
        }
        _ => {
            seen.times.insert(Side::Server, times(around(100_000.0 * effect)));
            seen.times.insert(Side::Client, times(around(200_000.0)));
        }
    }
    StackRun {
        schema: StackRun::SCHEMA,
        run: planned.clone(),
        validity: Validity::Valid,
        command: vec!["true".into()],
        environment: Vec::new(),
        scenario: cell.scenario.lines(),
        seen,
        exit: "exit status: 0".into(),
        stderr: String::new(),
        elapsed_ms: 10,
        foreign_cpu: Some(made.foreign),
    }
}
