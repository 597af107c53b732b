//! The engine's ceiling: realistic loads against a server that does next to nothing.
//!
//! Repeats run round-robin through all cells, so that slow drift of the machine affects all
//! alike. If the null server saturated before the engine, the ceiling is extrapolated from the engine's CPU per
//! request to a full core, and marked so.

mod server;

use crate::ceiling::{Ceilings, Cell, Connection, Failed, Kind, Machine, SCHEMA, Spread};
use crate::engine;
use crate::error::LoadError;
use crate::limit::FULL;
use crate::options::{Close, Meter, Options, PerConnection, Server};
use crate::result::{Limit, LoadResult, Role};
use server::NullServer;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::{Duration, SystemTime};
use weir_reactor::cores::Cores;
use weir_tls::Group;

/// Options of a calibration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program to run as `origin --null`: this one.
    pub program: PathBuf,
    /// Cores of the engine, one worker each.
    pub cores: Cores,
    /// Cores of the null server, one worker each.
    pub server_cores: Cores,
    /// Measured window of each repeat.
    pub window: Duration,
    /// Warm-up before it.
    pub warmup: Duration,
    /// Repeats per cell; at least 1.
    pub repeats: u32,
}

/// Why a calibration failed.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// The null server.
    #[error("the null server did not start: {0}")]
    Server(io::Error),
    /// The engine.
    #[error("{cell}: {error}")]
    Load {
        /// The cell.
        cell: String,
        /// The reason.
        error: Box<LoadError>,
    },
    /// Stopped.
    #[error("interrupted: nothing stored")]
    Interrupted,
}

/// Progress: the next run.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Its cell.
    pub cell: &'a str,
    /// Runs completed.
    pub done: usize,
    /// Total runs.
    pub all: usize,
}

/// Body sizes for keep-alive.
const SIZES: [u64; 3] = [0, 1024, 65_536];

/// Connections per worker: enough to keep it busy.
const CONNECTIONS: u32 = 64;

/// Measures all cells. Calls `watch` before each run. A message on `stop` ends the calibration.
///
/// # Errors
/// When the null server or the engine cannot run at all. A cell whose runs are invalid is a result: it has no ceiling.
pub fn calibrate(
    settings: &Settings,
    stop: &Receiver<()>,
    mut watch: impl FnMut(&Step<'_>),
) -> Result<Ceilings, CalibrateError> {
    let servers: Vec<(u64, NullServer)> = SIZES
        .into_iter()
        .map(|bytes| Ok((bytes, NullServer::start(&settings.program, bytes, &settings.server_cores)?)))
        .collect::<io::Result<_>>()
        .map_err(CalibrateError::Server)?;
    let kinds = kinds();
    let mut results: Vec<Vec<LoadResult>> = kinds.iter().map(|_| Vec::new()).collect();
    let all = kinds.len() * settings.repeats as usize;
    for round in 0..settings.repeats as usize {
        for (index, kind) in kinds.iter().enumerate() {
            watch(&Step { cell: &kind.cell, done: round * kinds.len() + index, all });
            if stop.try_recv().is_ok() {
                return Err(CalibrateError::Interrupted);
            }
            // One server per size.
            let Some((_, server)) = servers.iter().find(|(bytes, _)| *bytes == kind.bytes) else { continue };
            let options = options(kind, server, settings);
            match engine::run(&options, stop, |_| {}) {
                Ok(result) if result.partial => return Err(CalibrateError::Interrupted),
                Ok(result) => results[index].push(result),
                Err(LoadError::NoWindow) => return Err(CalibrateError::Interrupted),
                Err(error) => {
                    return Err(CalibrateError::Load { cell: kind.cell.clone(), error: Box::new(error) });
                }
            }
        }
    }
    let (mut cells, mut failed) = (Vec::new(), Vec::new());
    for (kind, results) in kinds.into_iter().zip(&results) {
        match cell(kind, results, settings.cores.0.len()) {
            Ok(cell) => cells.push(cell),
            Err(why) => failed.push(why),
        }
    }
    Ok(Ceilings {
        schema: SCHEMA,
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        measured: httpdate::fmt_http_date(SystemTime::now()),
        machine: Machine::read(),
        engine_cores: settings.cores.0.clone(),
        server_cores: settings.server_cores.0.clone(),
        window_s: settings.window.as_secs_f64(),
        repeats: settings.repeats,
        cells,
        failed,
    })
}

/// The cells to measure.
fn kinds() -> Vec<Kind> {
    let kept = |tls| SIZES.map(|bytes| Kind::new(tls, Connection::KeepAlive, bytes));
    let mut kinds = Vec::from(kept(None));
    kinds.extend(kept(Some("1.3")));
    kinds.push(Kind::new(Some("1.3"), Connection::NewFull, 0));
    kinds.push(Kind::new(Some("1.3"), Connection::NewResumed, 0));
    kinds.push(Kind::new(Some("1.2"), Connection::NewResumed, 0));
    kinds
}

fn options(kind: &Kind, server: &NullServer, settings: &Settings) -> Options {
    let mut target = if kind.tls.is_some() { server.https.clone() } else { server.http.clone() };
    target.path = format!("/bytes/{}", kind.bytes);
    let mut options = Options::new(target);
    options.workers = settings.cores.0.len();
    options.cores = Some(settings.cores.clone());
    options.connections = CONNECTIONS * options.workers as u32;
    options.phases.warmup = settings.warmup;
    options.phases.window = settings.window;
    options.tls.ca = Some(server.ca.clone());
    options.tls.versions = kind.tls.as_ref().and_then(|version| Some(vec![version.parse().ok()?]));
    options.tls.groups = vec![Group::X25519];
    options.servers = vec![Server { role: Role::Gateway, meter: Meter::Process(server.pid()) }];
    if kind.connection != Connection::KeepAlive {
        options.policy.per_connection = PerConnection::Requests { least: 1, most: 1 };
        // The null server never announces a close; a reset leaves no port in TIME_WAIT.
        options.policy.close = Close::Reset;
    }
    if kind.connection == Connection::NewResumed {
        options.policy.resume = 100.0;
    }
    options
}

/// A cell's ceiling from its valid repeats.
fn cell(kind: Kind, results: &[LoadResult], workers: usize) -> Result<Cell, Failed> {
    let valid = || results.iter().filter(|result| result.validity == "valid");
    let ceilings = Spread::of(valid().filter_map(|result| per_worker(result, workers)));
    let cpu_us = Spread::of(valid().filter_map(|result| result.engine.cost.cpu_us_per_request));
    let server = |result: &LoadResult| result.servers.first()?.cost.cpu_us_per_request;
    let (Some(per_worker), Some(cpu_us), Some(server_cpu_us)) =
        (ceilings, cpu_us, Spread::of(valid().filter_map(server)))
    else {
        let why = results.first().map_or("no run", |result| &result.validity);
        return Err(Failed { cell: kind.cell, why: why.to_owned() });
    };
    let limits: Vec<Limit> = valid().map(limit).collect();
    let count = |limit: &Limit| limits.iter().filter(|other| *other == limit).count();
    let extrapolated = limits.iter().any(|limit| *limit != Limit::Load);
    let limit = limits.iter().max_by_key(|limit| count(limit)).copied().unwrap_or_default();
    Ok(Cell { kind, per_worker, cpu_us, server_cpu_us, limit, extrapolated })
}

/// A saturated engine is the limit here, even if the null server is saturated as well.
fn limit(result: &LoadResult) -> Limit {
    let full = result.engine.workers.iter().all(|worker| worker.utilisation >= FULL);
    match (full, result.limit) {
        (true, _) => Limit::Load,
        // It dominated a full core without saturating by itself.
        (false, Limit::Load) => Limit::SharedCores,
        (false, other) => other,
    }
}

/// The rate of a worker when the engine was saturated, or extrapolated to that.
fn per_worker(result: &LoadResult, workers: usize) -> Option<f64> {
    match limit(result) {
        Limit::Load => Some(result.requests_per_second / workers as f64),
        Limit::Gateway | Limit::Origin | Limit::SharedCores | Limit::Neither => {
            Some(1e6 / result.engine.cost.cpu_us_per_request.filter(|us| *us > 0.0)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::sample;

    fn result(limit: Limit, rate: f64, cpu_us: f64) -> LoadResult {
        let mut result = sample();
        (result.limit, result.requests_per_second) = (limit, rate);
        result.engine.cost.cpu_us_per_request = Some(cpu_us);
        result.engine.workers[0].utilisation = if limit == Limit::Load { 0.97 } else { 0.6 };
        result
    }

    fn kind() -> Kind {
        Kind::new(None, Connection::KeepAlive, 0)
    }

    #[test]
    fn a_full_engines_rate_is_its_ceiling() {
        let results = [100_000.0, 120_000.0, 90_000.0].map(|rate| result(Limit::Load, rate, 19.5));
        let cell = cell(kind(), &results, 2).unwrap();
        assert_eq!(cell.per_worker, Spread { median: 50_000.0, min: 45_000.0, max: 60_000.0 });
        assert_eq!((cell.cpu_us.median, cell.limit, cell.extrapolated), (19.5, Limit::Load, false));
    }

    #[test]
    fn behind_a_full_server_the_ceiling_is_extrapolated() {
        let results = [
            result(Limit::Gateway, 50_000.0, 10.0),
            result(Limit::Gateway, 50_000.0, 12.5),
            result(Limit::Load, 90_000.0, 11.0),
        ];
        let cell = cell(kind(), &results, 1).unwrap();
        assert_eq!(cell.per_worker, Spread { median: 90_000.0, min: 80_000.0, max: 100_000.0 });
        assert_eq!((cell.limit, cell.extrapolated), (Limit::Gateway, true));
    }

    #[test]
    fn where_both_are_full_nothing_need_be_extrapolated() {
        let mut both = result(Limit::Gateway, 100_000.0, 9.0);
        both.engine.workers[0].utilisation = 0.95;
        let cell = cell(kind(), &[both], 1).unwrap();
        assert_eq!((cell.per_worker.median, cell.limit, cell.extrapolated), (100_000.0, Limit::Load, false));
    }

    #[test]
    fn invalid_repeats_count_nothing_and_a_cell_of_them_says_why() {
        let mut bad = result(Limit::Load, 1e6, 1.0);
        bad.validity = "invalid: errors (1 reset)".into();
        let good = result(Limit::Load, 100_000.0, 9.0);
        assert_eq!(cell(kind(), &[bad.clone(), good], 1).unwrap().per_worker.max, 100_000.0);
        let failed = cell(kind(), &[bad], 1).unwrap_err();
        assert_eq!(
            (&failed.cell[..], &failed.why[..]),
            ("cleartext-keep-alive-0", "invalid: errors (1 reset)")
        );
    }

    #[test]
    fn every_cell_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<String> = kinds().into_iter().map(|kind| kind.cell).collect();
        assert_eq!(names.len(), 9);
        assert!(
            names.contains("tls-1.3-new-full") && names.contains("tls-1.3-keep-alive-65536"),
            "{names:?}"
        );
    }
}
