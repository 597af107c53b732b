//! Synthetic experiments, runs and targets of gateways, for tests.

use super::levels::id;
use super::run::Asked;
use super::target::Targets;
use super::{Case, Gateway, Load, Mode, Observation, Place as _, ProcessReport, Seen, Side};
use crate::base::error::LabError;
use crate::experiment::options::RunOptions;
use crate::experiment::{Experiment, Level, reader};
use crate::findings::judge::Judge as _;
use crate::planning::cell::{Cell, Levels};
use crate::planning::plan::Plan;
use crate::planning::planned_run::{PlannedRun, Stage};
use crate::planning::planner;
use crate::store::run::Run;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use std::path::Path;
use weir_load::result::{
    Asked as AskedOfLoad, Cost, EngineCost, Handshakes, Http2Figures, Latency, LoadResult, Negotiated, Pacer,
    Role, SCHEMA, ServerCost,
};

pub(crate) const TEXT: &str = r#"name = "small"
question = "Two targets, one mode."
baseline = ["slow"]
aa = "fast"
calibration_runs = 1
blocks = 6
seed = 42

[factors]
target = ["direct", "fast", "slow"]
mode = ["h1c", "h1c-h1c", "h1-h1c"]
load_model = ["equal-rate", "saturated"]

[constants]
connections = 8
bytes = 100
warmup_ms = 10
window_ms = 50
calibration_ms = 20
cores = { gateway = [0], origin = [1], load = [1] }

[constants.tls]
version = "1.3"
suite = "aes128-gcm-sha256"
group = "x25519"
certificate = "ecdsa-p256"
tickets = 2
"#;

/// The experiment of the tests, as from its file.
pub(crate) fn experiment() -> Experiment {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("small.toml");
    std::fs::write(&file, TEXT).expect("is written");
    reader::load::<Gateway>(&RunOptions { file, ..RunOptions::default() }).expect("parses").0
}

/// A histogram in the load engine's format.
pub(crate) fn encode(nanoseconds: &[u64]) -> String {
    let mut histogram = Histogram::<u64>::new(3).expect("three digits");
    for value in nanoseconds {
        histogram.record(*value).expect("auto-resizes");
    }
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&histogram, &mut bytes).expect("serialises");
    STANDARD.encode(bytes)
}

/// A valid result of a saturated cleartext run.
pub(crate) fn load_result() -> LoadResult {
    let server = |role, cpu_us: f64, utilisation| ServerCost {
        role,
        cost: Cost {
            cpu_us,
            cpu_us_per_request: Some(cpu_us / 2000.0),
            utilisation,
            cores: 1,
            ..Cost::default()
        },
        rss_peak_kib: Some(8000),
        ..ServerCost::default()
    };
    let latency = Latency {
        count: 2000,
        mean_us: 200.0,
        sd_us: 20.0,
        p50_us: Some(200.0),
        p90_us: Some(210.0),
        p95_us: Some(215.0),
        p99_us: Some(220.0),
        p999_us: None,
        max_us: 230.0,
        hdr_v2: encode(&[200_000; 2000]),
        ..Latency::default()
    };
    LoadResult {
        schema: SCHEMA,
        url: "http://127.0.0.1:1/bytes/100".into(),
        asked: AskedOfLoad {
            connections: 8,
            requests_per_connection: "keep-alive".into(),
            ..AskedOfLoad::default()
        },
        window_s: 0.05,
        requests: 2000,
        requests_per_second: 40_000.0,
        bytes_received: 1,
        bytes_sent: 1,
        answered_in_all: 3000,
        response: latency.clone(),
        service: latency,
        connections_opened: 8,
        engine: EngineCost { cost: server(Role::Gateway, 20_000.0, 0.4).cost, ..EngineCost::default() },
        servers: vec![server(Role::Gateway, 50_000.0, 1.0), server(Role::Origin, 15_000.0, 0.3)],
        validity: "valid".into(),
        ..LoadResult::default()
    }
}

/// Full handshakes with the parameters of the tests' experiment, but for the version.
pub(crate) fn negotiated(version: &str, count: u64) -> Negotiated {
    Negotiated {
        version: version.into(),
        suite: "aes128-gcm-sha256".into(),
        group: Some("x25519".into()),
        signature: Some("ecdsa-p256-sha256".into()),
        kind: "full".into(),
        count,
        ..Negotiated::default()
    }
}

/// A result that fits the cell: handshakes in a TLS mode, a pacer in an open loop, one server without a gateway.
pub(crate) fn result_for(cell: &Cell, rate: Option<f64>) -> LoadResult {
    let mut result = load_result();
    result.asked.rate = rate;
    result.connections_opened = u64::from(cell.connections());
    if cell.mode().client().is_tls() {
        result.handshakes.full = 8;
        result.handshakes.negotiated = vec![negotiated("1.3", 8)];
    }
    if cell.mode().client().is_http2() {
        http2(&mut result, cell);
    }
    if let Some(rate) = rate {
        result.pacer = Some(Pacer {
            planned: 1000,
            sent: 1000,
            achieved_ratio: 1.0,
            lag_p99_us: 50.0,
            lag_max_us: 100.0,
        });
        result.requests_per_second = rate;
        result.servers[0].cost.utilisation = 0.5;
    }
    if cell.case().is_handshake() {
        handshakes_only(&mut result, cell.case());
    }
    if cell.mode().upstream().is_none() {
        result.servers.remove(0);
    }
    result
}

/// The load engine spoke HTTP/2, with as many streams as the cell asks for.
fn http2(result: &mut LoadResult, cell: &Cell) {
    result.asked.http = "2".into();
    result.asked.streams = cell.streams();
    result.connections_opened = u64::from(cell.connections() / cell.streams());
    result.http2 = Some(Http2Figures::default());
    result.handshakes.negotiated.iter_mut().for_each(|facts| facts.alpn = Some("h2".into()));
}

/// A run with `handshake-only`: 3000 handshakes, 2000 of them in the window.
fn handshakes_only(result: &mut LoadResult, case: Case) {
    let resumed = match case {
        Case::Request | Case::HandshakeFull => 0,
        Case::HandshakeResumed => 3000,
        Case::HandshakeMixed(mille) => u64::from(mille) * 3,
    };
    let psk = Negotiated { signature: None, kind: "resume-1.3-psk".into(), ..negotiated("1.3", resumed) };
    let all = [psk, negotiated("1.3", 3000 - resumed)];
    result.asked.requests_per_connection = "handshake-only".into();
    result.asked.resume_percent = resumed as f64 / 30.0;
    result.connections_opened = 3000;
    result.handshakes = Handshakes {
        full: 3000 - resumed,
        resumed: [("resume-1.3-psk".to_owned(), resumed)].into(),
        offered: resumed,
        in_window: 2000,
        per_second: 2000.0 / result.window_s,
        negotiated: all.into_iter().filter(|facts| facts.count > 0).collect(),
        ..Handshakes::default()
    };
    let servers = result.servers.iter_mut().map(|server| &mut server.cost);
    for cost in servers.chain([&mut result.engine.cost]) {
        cost.cpu_us_per_handshake = cost.cpu_us_per_request;
    }
}

/// A cell of the tests' experiment.
pub(crate) fn cell(name: &str, mode: Mode, load: Load) -> Cell {
    let own = [
        ("case", Level::new(Case::Request)),
        ("mode", Level::new(mode)),
        ("load_model", Level::new(load)),
        ("connections", Level::new(8)),
        ("bytes", Level::new(100)),
    ];
    let levels: Levels = own.into_iter().map(|(key, level)| (key.to_owned(), level)).collect();
    Cell { id: id(&levels, name), name: name.into(), subject: name.into(), levels }
}

/// The same at another level.
pub(crate) fn with(cell: &Cell, key: &str, level: impl std::fmt::Display) -> Cell {
    let levels = cell.levels.with(key, Level::new(level));
    Cell { id: id(&levels, &cell.name), levels, ..cell.clone() }
}

/// A valid run.
pub(crate) fn record(mode: Mode, load: Load) -> Run<Seen> {
    let name = if mode.upstream().is_some() { "fast" } else { "direct" };
    let cell = cell(name, mode, load);
    let run = PlannedRun { id: format!("b001-001-{cell}"), stage: Stage::Block(1), cell, beside: None };
    let rate = (load == Load::EqualRate).then_some(20_000.0);
    made(&experiment(), &run, rate, result_for(&run.cell, rate))
}

/// A judged run with this result.
pub(crate) fn made(
    experiment: &Experiment,
    run: &PlannedRun,
    rate: Option<f64>,
    result: LoadResult,
) -> Run<Seen> {
    let conditions = experiment.conditions(&run.cell).expect("is a cell of it");
    let asked = Asked { run, conditions, rate };
    let mut made = Run::new(run, asked.seen(observation(&run.cell, result)));
    Gateway::judge(experiment, &mut made).expect("is judged");
    made
}

pub(crate) fn observation(cell: &Cell, result: LoadResult) -> Observation {
    let process = |role: &str, cores: Vec<usize>| ProcessReport {
        role: role.into(),
        command: vec![format!("a-{role}"), "--header=X-Run: 1".into()],
        cores,
        exit: "exit status: 0".into(),
        killed: false,
        stderr: String::new(),
    };
    let mut processes = vec![process("origin", vec![1]), process("load", vec![1])];
    if cell.mode().upstream().is_some() {
        processes.insert(1, process("target", vec![0]));
    }
    let upstream_connections = cell.mode().upstream().map(|_| 9);
    Observation {
        common_share: None,
        stolen_cpu: None,
        load: Some(result),
        failure: None,
        processes,
        upstream_connections,
        upstream_http1: cell.mode().upstream().is_some_and(Side::is_http2).then_some(0),
        upstream_handshakes: None,
        profile: None,
        foreign_cpu: Some(0.01),
        net: None,
        notes: Vec::new(),
        gc: None,
        logs: None,
        elapsed_ms: 300,
    }
}

/// Targets without programs: `direct`, and two whose start command is never run.
pub(crate) fn targets(directory: &Path) -> Targets {
    let gateway = "title = 'T'\nabout = 'A'\nmodes = ['h1c-h1c', 'h1-h1c']\nstart = ['true', '{{listen_port}}']\n\
        [ready]\nconnect = '127.0.0.1:{{listen_port}}'\ntimeout_ms = 1000\n";
    let direct = "title = 'Direct'\nabout = 'No gateway.'\nmodes = ['h1c', 'h1']\n";
    for (name, text) in [("direct", direct), ("fast", gateway), ("slow", gateway)] {
        std::fs::create_dir_all(directory.join(name)).expect("is made");
        std::fs::write(directory.join(name).join("target.toml"), text).expect("is written");
    }
    let values = super::template::Values::default().with("listen_port", 1);
    super::target::find(&experiment().subjects(), &crate::found::Folders::targets(Some(directory)), &values)
        .expect("are read")
}

/// An experiment with gateways, from its text.
pub(crate) fn parse(text: &str, options: &RunOptions) -> Result<Experiment, String> {
    reader::parse::<Gateway>(Path::new("e.toml"), text, options).map_err(|error| error.to_string())
}

/// Its plan.
pub(crate) fn plan(
    experiment: Experiment,
    targets: &Targets,
    options: &RunOptions,
) -> Result<Plan, LabError> {
    planner::plan::<Gateway>(experiment, targets, options)
}
