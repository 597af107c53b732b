//! A synthetic world, programs and guards for the tests of this crate.

use crate::LabError;
use crate::experiment::{self, Experiment, Factor};
use crate::instrument::gateway::testing::{encode, observation, result_for};
use crate::instrument::gateway::{Asked, Gateway, Load, NO_RATE, Observation, Place as _, Seen};
use crate::instrument::stacks::{Ran, Stacks, synthetic};
use crate::running::guard::Guard;
use crate::running::measure::{Executor, Request};
use crate::stats::rng::Rng;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use toml::Value;
use weir_load::result::LoadResult;

/// Changes a result.
pub(crate) type Spoil = fn(&mut LoadResult);

/// Executes every run in a synthetic world where each subject has its own cost, with noise.
pub(crate) struct MockExecutor {
    /// Microseconds of a subject: CPU per request in cleartext, or of a server per handshake.
    pub(crate) cost_us: BTreeMap<String, f64>,
    /// The requested runs, in order.
    pub(crate) asked: Vec<(String, Option<f64>, u64)>,
    /// Runs that fail, by a part of their id.
    pub(crate) broken: Option<String>,
    /// Changes to the results of runs, by a part of their id.
    pub(crate) spoil: Option<(&'static str, Spoil)>,
    /// Interrupts at this run, counted from 0.
    pub(crate) interrupt_at: Option<usize>,
    /// The noise that the host adds to all runs of a turn alike, as the standard deviation of a logarithm.
    pub(crate) host_noise: f64,
    /// Runs whose first attempt loses half of the cores to foreign load, by a part of their id.
    pub(crate) disturbed: Option<&'static str>,
    pub(crate) rng: Rng,
}

impl MockExecutor {
    pub(crate) fn new(costs: &[(&str, f64)]) -> Self {
        let cost_us = costs.iter().map(|(name, cost)| ((*name).to_owned(), *cost)).collect();
        Self {
            cost_us,
            asked: Vec::new(),
            broken: None,
            spoil: None,
            interrupt_at: None,
            host_noise: 0.0,
            disturbed: None,
            rng: Rng::new(6),
        }
    }

    fn noise(&mut self, sd: f64) -> f64 {
        (sd * self.rng.normal()).exp()
    }

    /// Records the request. Whether the run fails.
    fn ask(&mut self, request: &Request<'_>, window_ms: u64) -> Result<bool, LabError> {
        if self.interrupt_at == Some(self.asked.len()) {
            return Err(LabError::Interrupted { directory: "here".into() });
        }
        self.asked.push((request.run.id.clone(), request.rate, window_ms));
        Ok(self.broken.as_ref().is_some_and(|part| request.run.id.contains(part)))
    }

    fn gateway(&mut self, request: &Request<'_>, host: f64) -> Result<Seen, LabError> {
        let cell = &request.run.cell;
        let conditions = request.experiment.conditions(cell).expect("is a cell of it");
        let window_ms = conditions.window_ms(request.run.stage);
        let asked = Asked { run: request.run, conditions, rate: request.rate };
        let failed = |why: &str| Observation { failure: Some(why.to_owned()), ..Observation::default() };
        if cell.load() == Load::EqualRate && request.rate.is_none() {
            return Ok(asked.seen(failed(NO_RATE)));
        }
        if self.ask(request, window_ms)? {
            return Ok(asked.seen(failed("target: it ended")));
        }
        let tls = 1.0 + 0.3 * f64::from(u8::from(cell.mode().client().is_tls()));
        let cost = self.cost_us[&cell.subject] * tls * host * self.noise(0.02);
        let mut result = result_for(cell, request.rate);
        let rate = request.rate.unwrap_or(1e6 / cost);
        result.window_s = window_ms as f64 / 1000.0;
        result.requests = (rate * result.window_s) as u64;
        result.requests_per_second = rate;
        result.handshakes.per_second = if cell.case().is_handshake() { rate } else { 0.0 };
        if cell.mode().upstream().is_some() {
            result.servers[0].cost.cpu_us_per_request = Some(cost);
            if cell.case().is_handshake() {
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
        let mut observation = observation(cell, result);
        observation.common_share = request.run.beside.as_ref().map(|_| 1.0);
        let is_first = self.asked.iter().filter(|(id, ..)| *id == request.run.id).count() == 1;
        if is_first && self.disturbed.is_some_and(|part| request.run.id.contains(part)) {
            observation.foreign_cpu = Some(0.5);
        }
        Ok(asked.seen(observation))
    }
}

impl Executor<Gateway> for MockExecutor {
    fn execute(&mut self, turn: &[Request<'_>]) -> Result<Vec<Seen>, LabError> {
        let host = self.noise(self.host_noise);
        turn.iter().map(|request| self.gateway(request, host)).collect()
    }
}

impl Executor<Stacks> for MockExecutor {
    fn execute(&mut self, turn: &[Request<'_>]) -> Result<Vec<Ran>, LabError> {
        let one = |request: &Request<'_>| {
            let cell = &request.run.cell;
            let is_broken = self.ask(request, cell.levels.number("window_ms").unwrap_or_default())?;
            let (server, client) = (self.cost_us[&cell.subject] * self.noise(0.02), 200.0 * self.noise(0.02));
            let ran = synthetic::ran(cell, server, client);
            let failure = is_broken.then(|| "runner: it ended".to_owned());
            Ok(Ran { failure, ..ran })
        };
        turn.iter().map(one).collect()
    }
}

/// A program that is a shell script. Another process writes it: the system cannot execute a file that this process,
/// or a child that another test just starts, has open for writing.
pub(crate) fn program(directory: &Path, script: &str) -> PathBuf {
    let path = directory.join("program");
    let write = "printf '#!/bin/sh\n%s\n' \"$1\" >\"$0\" && chmod +x \"$0\"";
    let written = Command::new("sh").args(["-c", write]).arg(&path).arg(script).status();
    assert!(written.expect("runs").success());
    path
}

/// A guard that ignores its input.
pub(crate) fn no_guard() -> Guard {
    Guard::start(Path::new("true")).expect("starts")
}

/// The input of a guard during `work`.
pub(crate) fn guard_input(work: impl FnOnce(&Guard)) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let guard = Guard::start(&program(directory.path(), "exec cat >\"$0.input\"")).expect("starts");
    work(&guard);
    // It has written all when it has exited.
    drop(guard);
    std::fs::read_to_string(directory.path().join("program.input")).expect("is written")
}

/// For the tests, which change levels.
impl Experiment {
    pub(crate) fn set_constant(&mut self, key: &str, value: Value) {
        self.factors.retain(|factor| factor.key != key);
        experiment::insert(&mut self.constants, key, value);
    }

    pub(crate) fn set_factor(&mut self, key: &str, levels: Vec<Value>) {
        self.factors.retain(|factor| factor.key != key);
        self.factors.push(Factor { key: key.to_owned(), levels });
    }
}
