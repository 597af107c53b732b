//! Made-up results, programs and guards for the tests of this crate.

use crate::experiment::{Case, Experiment, Load, Mode, Side};
use crate::guard::Guard;
use crate::options::RunOptions;
use crate::plan::{Cell, PlannedRun, Stage};
use crate::run::{Executor, Observation, ProcessReport, Request, RunRecord};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use weir_load::result::{
    Asked, Cost, EngineCost, Handshakes, Latency, LoadResult, Negotiated, Pacer, Role, SCHEMA, ServerCost,
};
use weir_load::rng::Rng;

/// The experiment of the tests, as its file would be.
pub(crate) fn experiment() -> Experiment {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("small.toml");
    std::fs::write(&file, crate::experiment::tests::TEXT).expect("is written");
    Experiment::load(&RunOptions { file, ..RunOptions::default() }).expect("parses").0
}

/// A histogram as the load engine writes it.
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
        asked: Asked { connections: 8, requests_per_connection: "keep-alive".into(), ..Asked::default() },
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

/// Full handshakes as the experiment of these tests asks for them, but for the version.
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
    result.connections_opened = u64::from(cell.connections);
    if cell.mode.client() == Side::H1 {
        result.handshakes.full = 8;
        result.handshakes.negotiated = vec![negotiated("1.3", 8)];
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
    if cell.case.is_handshake() {
        handshakes_only(&mut result, cell.case);
    }
    if cell.mode.upstream().is_none() {
        result.servers.remove(0);
    }
    result
}

/// As of a run with `handshake-only`: 3000 handshakes, of which 2000 fell into the window.
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

/// A valid run.
pub(crate) fn record(mode: Mode, load: Load) -> RunRecord {
    let name = if mode.upstream().is_some() { "fast" } else { "direct" };
    let cell = Cell {
        name: name.into(),
        target: name.into(),
        case: Case::Request,
        mode,
        connections: 8,
        bytes: 100,
        load,
        factors: BTreeMap::new(),
    };
    let run = PlannedRun { id: format!("b001-001-{cell}"), stage: Stage::Block(1), cell };
    let rate = (load == Load::EqualRate).then_some(20_000.0);
    let experiment = experiment();
    let conditions = experiment.conditions(&run.cell).expect("is a cell of it");
    let request = Request::new(&run, conditions, rate);
    RunRecord::new(&request, observation(&run.cell, result_for(&run.cell, rate)))
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
    if cell.mode.upstream().is_some() {
        processes.insert(1, process("target", vec![0]));
    }
    let upstream_connections = cell.mode.upstream().map(|_| 9);
    Observation {
        load: Some(result),
        failure: None,
        processes,
        upstream_connections,
        foreign_cpu: Some(0.01),
        net: None,
        notes: Vec::new(),
        gc: None,
        logs: None,
        elapsed_ms: 300,
    }
}

/// Changes a result.
pub(crate) type Spoil = fn(&mut LoadResult);

/// Answers every request from a made-up world in which each target has its own cost, with noise.
pub(crate) struct MockExecutor {
    /// CPU microseconds per request of a target in cleartext.
    pub(crate) cost_us: BTreeMap<String, f64>,
    /// The runs asked for, in order.
    pub(crate) asked: Vec<(String, Option<f64>, u64)>,
    /// Runs that fail, by a part of their id.
    pub(crate) broken: Option<String>,
    /// What becomes of the results of some runs, which a part of their id names.
    pub(crate) spoil: Option<(&'static str, Spoil)>,
    /// Interrupts at this run, counted from 0.
    pub(crate) interrupt_at: Option<usize>,
    pub(crate) rng: Rng,
}

impl MockExecutor {
    pub(crate) fn new(costs: &[(&str, f64)]) -> Self {
        let cost_us = costs.iter().map(|(name, cost)| ((*name).to_owned(), *cost)).collect();
        Self { cost_us, asked: Vec::new(), broken: None, spoil: None, interrupt_at: None, rng: Rng::new(3) }
    }

    fn noise(&mut self, sd: f64) -> f64 {
        (sd * self.rng.normal()).exp()
    }
}

impl Executor for MockExecutor {
    fn execute(&mut self, request: &Request<'_>) -> Result<Observation, crate::LabError> {
        if self.interrupt_at == Some(self.asked.len()) {
            return Err(crate::LabError::Interrupted { directory: "here".into() });
        }
        self.asked.push((request.run.id.clone(), request.rate, request.window_ms));
        let cell = &request.run.cell;
        if self.broken.as_ref().is_some_and(|part| request.run.id.contains(part)) {
            return Ok(Observation { failure: Some("target: it ended".into()), ..Observation::default() });
        }
        let tls = 1.0 + 0.3 * f64::from(u8::from(cell.mode.client() == Side::H1));
        let cost = self.cost_us[&cell.target] * tls * self.noise(0.02);
        let mut result = result_for(cell, request.rate);
        let rate = request.rate.unwrap_or(1e6 / cost);
        result.window_s = request.window_ms as f64 / 1000.0;
        result.requests = (rate * result.window_s) as u64;
        result.requests_per_second = rate;
        result.handshakes.per_second = if cell.case.is_handshake() { rate } else { 0.0 };
        if cell.mode.upstream().is_some() {
            result.servers[0].cost.cpu_us_per_request = Some(cost);
            if cell.case.is_handshake() {
                result.servers[0].cost.cpu_us_per_handshake = Some(cost);
            }
            result.servers[0].cost.cpu_us = cost * result.requests as f64;
            result.servers[0].cost.utilisation = (cost * rate / 1e6).min(1.0);
        }
        let base = 90_000.0 + 3000.0 * cost;
        let samples: Vec<u64> = (0..result.requests.max(2000))
            .map(|_| (base * self.noise(0.25) * if self.rng.below(40) == 0 { 4.0 } else { 1.0 }) as u64)
            .collect();
        result.response.hdr_v2 = encode(&samples);
        result.response.p99_us = Some(base * self.noise(0.05) / 400.0);
        if let Some((_, spoil)) = self.spoil.filter(|(part, _)| request.run.id.contains(part)) {
            spoil(&mut result);
        }
        Ok(observation(cell, result))
    }
}

/// Targets that need no program: `direct`, and two whose start command is never run.
pub(crate) fn targets(directory: &std::path::Path) -> crate::plan::Targets {
    let gateway = "title = 'T'\nabout = 'A'\nmodes = ['h1c-h1c', 'h1-h1c']\nstart = ['true', '{{listen_port}}']\n\
        [ready]\nconnect = '127.0.0.1:{{listen_port}}'\ntimeout_ms = 1000\n";
    let direct = "title = 'Direct'\nabout = 'No gateway.'\nmodes = ['h1c', 'h1']\n";
    for (name, text) in [("direct", direct), ("fast", gateway), ("slow", gateway)] {
        std::fs::create_dir_all(directory.join(name)).expect("is made");
        std::fs::write(directory.join(name).join("target.toml"), text).expect("is written");
    }
    let values = crate::template::Values::default().with("listen_port", 1);
    crate::target::find(&experiment().targets(), &crate::found::Folders::targets(Some(directory)), &values)
        .expect("are read")
}

/// A program that is a shell script. Another process writes it: a file that this one has open for writing, or a child that
/// another test is just starting, cannot be started.
pub(crate) fn program(directory: &Path, script: &str) -> PathBuf {
    let path = directory.join("program");
    let write = "printf '#!/bin/sh\n%s\n' \"$1\" >\"$0\" && chmod +x \"$0\"";
    let written = Command::new("sh").args(["-c", write]).arg(&path).arg(script).status();
    assert!(written.expect("runs").success());
    path
}

/// A guard that is told and does nothing.
pub(crate) fn no_guard() -> Guard {
    Guard::start(Path::new("true")).expect("starts")
}

/// What a guard is told by `work`.
pub(crate) fn told_to_guard(work: impl FnOnce(&mut Guard)) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let mut guard = Guard::start(&program(directory.path(), "exec cat >\"$0.told\"")).expect("starts");
    work(&mut guard);
    // It has written all when it has ended.
    drop(guard);
    std::fs::read_to_string(directory.path().join("program.told")).expect("is written")
}
