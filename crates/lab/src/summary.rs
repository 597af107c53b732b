//! `summary.json`: what each cell came to over its blocks, and what the comparisons say.

pub use crate::busy::{FOREIGN_MUCH, Foreign};
use crate::claims::{self, Finding};
use crate::comparison::{self, Comparison, is_lower_bound};
use crate::experiment::{Case, Level, Load, Mode};
use crate::histogram::Latencies;
use crate::limit::Limit;
use crate::machine::Machine;
use crate::metric::{has_censored, has_requests};
use crate::pairing;
use crate::plan::{Cell, Plan, Stage};
use crate::run::{Parts, RunRecord};
use crate::stats::{self, Estimate, Weight};
use crate::validity::Validity;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use weir_load::plural;
use weir_load::result::Cost;

/// The whole of an experiment's findings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Version of this layout.
    pub schema: u32,
    /// The experiment's name.
    pub experiment: String,
    /// `verdict` if a comparison rests on 10 blocks, `indication` if one does on 5, otherwise `none`. Where nothing is
    /// compared the cells count.
    pub weight: Weight,
    /// How busy other processes kept the cores.
    pub foreign: Foreign,
    /// Processes that did not end when they were asked to, a line for each target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub killed: Vec<String>,
    /// Where it was measured.
    pub machine: Machine,
    /// One entry for each cell.
    pub cells: Vec<CellSummary>,
    /// One entry for each target, mode and metric against the baseline, and for the A/A pair.
    pub comparisons: Vec<Comparison>,
    /// The statements that the experiment checks.
    pub claims: Vec<Finding>,
}

/// What a cell came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellSummary {
    /// What a client does.
    pub case: Case,
    /// The target, or its second in the A/A pair.
    pub target: String,
    /// Its version.
    pub version: String,
    /// Client side, upstream side.
    pub mode: Mode,
    /// Connections held open; with new connections, at once at most.
    pub connections: u32,
    /// Body bytes of an answer.
    pub bytes: u64,
    /// How requests arrive.
    pub load: Load,
    /// Its levels of the experiment's further factors, by their names.
    #[serde(default, flatten, serialize_with = "crate::cell::further")]
    pub factors: BTreeMap<String, Level>,
    /// Requests (or connections without one) per second that were offered; null in a closed loop.
    pub rate: Option<f64>,
    /// Blocks with a valid run: the number that everything below rests on.
    pub blocks: u32,
    /// Runs that were invalid.
    pub invalid_runs: u32,
    /// Median over blocks; null where connections carry no request.
    pub requests_per_second: Option<f64>,
    /// Median over blocks; null but in a case of handshakes.
    pub handshakes_per_second: Option<f64>,
    /// Mean response time of all requests of all valid runs; null where it would be a lower bound alone.
    pub mean_us: Option<f64>,
    /// Their standard deviation; null where the mean is.
    pub sd_us: Option<f64>,
    /// Median of the merged histograms; null where it would be a lower bound alone.
    pub p50_us: Option<f64>,
    /// 95th percentile of the merged histograms; null where it would be a lower bound alone, and in older summaries.
    #[serde(default)]
    pub p95_us: Option<f64>,
    /// 99th percentile of the merged histograms; null where it would be a lower bound alone.
    pub p99_us: Option<f64>,
    /// Errors over all requests of all runs, invalid ones too.
    pub error_ratio: Option<f64>,
    /// CPU of the gateway per request, median over blocks; null without a gateway or without requests.
    pub cpu_us_per_request: Option<f64>,
    /// Lower end of the interval of the CPU per request (Hodges-Lehmann).
    pub cpu_us_per_request_low: Option<f64>,
    /// Upper end of it.
    pub cpu_us_per_request_high: Option<f64>,
    /// CPU of the gateway per handshake, median over blocks; null but in a case of handshakes.
    pub cpu_us_per_handshake: Option<f64>,
    /// Lower end of the interval of the CPU per handshake (Hodges-Lehmann).
    pub cpu_us_per_handshake_low: Option<f64>,
    /// Upper end of it.
    pub cpu_us_per_handshake_high: Option<f64>,
    /// CPU of the test server per request, median over blocks.
    pub origin_cpu_us_per_request: Option<f64>,
    /// CPU of the test server per handshake of the clients, median over blocks.
    pub origin_cpu_us_per_handshake: Option<f64>,
    /// CPU of the load engine per request, median over blocks.
    pub load_cpu_us_per_request: Option<f64>,
    /// CPU of the load engine per handshake, median over blocks.
    pub load_cpu_us_per_handshake: Option<f64>,
    /// Peak resident memory of the gateway, median over blocks.
    pub rss_kib: Option<f64>,
    /// Resident memory of the gateway at the window's end, median over blocks.
    #[serde(default)]
    pub rss_end_kib: Option<f64>,
    /// Context switches of the gateway per request (or handshake), median over blocks.
    #[serde(default)]
    pub switches_per_request: Option<f64>,
    /// The share of the window in which a JVM's collector did not stop it, in percent, median over blocks.
    #[serde(default)]
    pub gc_throughput_percent: Option<f64>,
    /// What a JVM keeps in memory after a full collection, median over blocks.
    #[serde(default)]
    pub after_full_gc_kib: Option<f64>,
    /// The share of its cores that the gateway used, median over blocks.
    pub utilisation: Option<f64>,
    /// The most frequent limit of its valid runs.
    pub limit: Option<Limit>,
    /// `valid`, or why no run was.
    pub validity: Validity,
}

/// The targets that had to be killed, how they were to end, and how often it came to that.
fn killed(records: &[RunRecord]) -> Vec<String> {
    let mut found: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    for record in records {
        let target = record.run.cell.target.as_str();
        for process in record.observation.processes.iter().filter(|process| process.role == "target") {
            *runs.entry(target).or_default() += 1;
            if process.killed {
                *found.entry((target, &process.exit)).or_default() += 1;
            }
        }
    }
    let line = |((target, how), count): ((&str, &str), usize)| {
        format!("{target} was {how}: in {count} of {}", plural(runs[target] as u64, "run"))
    };
    found.into_iter().map(line).collect()
}

/// The stored runs of each cell, in the order of the plan; calibration is not among them.
pub fn by_cell<'a>(plan: &'a Plan, records: &'a [RunRecord]) -> Vec<(&'a Cell, Vec<&'a RunRecord>)> {
    let mut runs: BTreeMap<&Cell, Vec<&RunRecord>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.run.stage != Stage::Calibration) {
        runs.entry(&record.run.cell).or_default().push(record);
    }
    plan.cells.iter().map(|cell| (cell, runs.remove(cell).unwrap_or_default())).collect()
}

impl Summary {
    /// Sums up the stored runs of a plan.
    pub fn of(plan: &Plan, machine: &Machine, records: &[RunRecord]) -> Self {
        let cells = by_cell(plan, records);
        let comparisons = comparison::all(plan, &cells);
        let claims = claims::all(plan, &cells, &comparison::floors(&comparisons));
        let cells: Vec<CellSummary> =
            cells.iter().map(|(cell, runs)| CellSummary::of(cell, runs, machine)).collect();
        let of_blocks = records.iter().filter(|record| record.run.stage != Stage::Calibration);
        Self {
            schema: 1,
            experiment: plan.experiment.name.clone(),
            weight: Weight::of(*compared_blocks(&comparisons, &cells).end() as usize),
            killed: killed(records),
            foreign: Foreign::of(of_blocks.map(|run| run.observation.foreign_cpu)),
            machine: machine.clone(),
            comparisons,
            cells,
            claims,
        }
    }

    /// The fewest and the most blocks that a comparison rests on; where nothing is compared, a cell.
    pub fn blocks(&self) -> RangeInclusive<u32> {
        compared_blocks(&self.comparisons, &self.cells)
    }

    /// What a cell came to, under another load perhaps.
    pub fn cell(&self, cell: &Cell, load: Load) -> Option<&CellSummary> {
        self.cells.iter().find(|other| {
            (&other.target, other.load, &other.factors) == (&cell.name, load, &cell.factors)
                && (other.mode, other.connections, other.bytes) == (cell.mode, cell.connections, cell.bytes)
        })
    }
}

/// Each pair of cells is compared in its CPU, whatever else it is compared in, and an A/A pair is not what was asked for.
fn compared_blocks(comparisons: &[Comparison], cells: &[CellSummary]) -> RangeInclusive<u32> {
    let compared = comparisons.iter().filter(|one| one.metric.is_cpu() && !one.aa);
    let mut blocks: Vec<u32> = compared.map(|one| one.blocks).collect();
    if blocks.is_empty() {
        blocks = cells.iter().map(|cell| cell.blocks).collect();
    }
    let least = blocks.iter().copied().min().unwrap_or(0);
    least..=blocks.into_iter().max().unwrap_or(0)
}

impl CellSummary {
    fn of(cell: &Cell, runs: &[&RunRecord], machine: &Machine) -> Self {
        let valid = pairing::valid(runs);
        let values = |metric: &dyn Fn(&Parts<'_>) -> Option<f64>| -> Vec<f64> {
            valid.iter().filter_map(|run| run.parts().as_ref().and_then(metric)).collect()
        };
        let median = |metric: &dyn Fn(&Parts<'_>) -> Option<f64>| stats::median(&values(metric));
        let request =
            |cost: &Cost, parts: &Parts<'_>| cost.cpu_us_per_request.filter(|_| has_requests(parts.load));
        let handshake = |cost: &Cost| cost.cpu_us_per_handshake.filter(|_| cell.case.is_handshake());
        let cpu_request = |parts: &Parts<'_>| request(&parts.gateway?.cost, parts);
        let cpu_handshake = |parts: &Parts<'_>| handshake(&parts.gateway?.cost);
        let interval = |metric: &dyn Fn(&Parts<'_>) -> Option<f64>| {
            stats::location(&values(metric)).and_then(|estimate: Estimate| estimate.interval)
        };
        let (per_request, per_handshake) = (interval(&cpu_request), interval(&cpu_handshake));
        let latencies = latencies(&valid);
        let of_latencies = |metric: &dyn Fn(&Latencies) -> Option<f64>| latencies.as_ref().and_then(metric);
        let results = || valid.iter().filter_map(|run| run.observation.load.as_ref());
        let percentile = |quantile| {
            let value = of_latencies(&|all| all.quantile_us(quantile));
            value.filter(|_| !results().any(|load| is_lower_bound(&load.response, value)))
        };
        let is_known = !results().any(|load| has_censored(&load.response));
        Self {
            case: cell.case,
            target: cell.name.clone(),
            version: machine.versions.get(&cell.target).cloned().unwrap_or_default(),
            mode: cell.mode,
            connections: cell.connections,
            bytes: cell.bytes,
            load: cell.load,
            factors: cell.factors.clone(),
            rate: runs.iter().find_map(|run| run.rate),
            blocks: valid.len() as u32,
            invalid_runs: (runs.len() - valid.len()) as u32,
            requests_per_second: median(&|parts| {
                has_requests(parts.load).then_some(parts.load.requests_per_second)
            }),
            handshakes_per_second: median(&|parts| {
                cell.case.is_handshake().then_some(parts.load.handshakes.per_second)
            }),
            mean_us: of_latencies(&|all| is_known.then(|| all.mean_us())),
            sd_us: of_latencies(&|all| is_known.then(|| all.sd_us())),
            p50_us: percentile(0.5),
            p95_us: percentile(0.95),
            p99_us: percentile(0.99),
            error_ratio: error_ratio(runs),
            cpu_us_per_request: median(&cpu_request),
            cpu_us_per_request_low: per_request.map(|interval| interval.low),
            cpu_us_per_request_high: per_request.map(|interval| interval.high),
            cpu_us_per_handshake: median(&cpu_handshake),
            cpu_us_per_handshake_low: per_handshake.map(|interval| interval.low),
            cpu_us_per_handshake_high: per_handshake.map(|interval| interval.high),
            origin_cpu_us_per_request: median(&|parts| request(&parts.origin?.cost, parts)),
            origin_cpu_us_per_handshake: median(&|parts| handshake(&parts.origin?.cost)),
            load_cpu_us_per_request: median(&|parts| request(&parts.load.engine.cost, parts)),
            load_cpu_us_per_handshake: median(&|parts| handshake(&parts.load.engine.cost)),
            rss_kib: median(&|parts| Some(parts.gateway?.rss_peak_kib? as f64)),
            rss_end_kib: median(&|parts| Some(parts.gateway?.counters.rss_end_kib? as f64)),
            switches_per_request: median(&|parts| {
                let counters = &parts.gateway?.counters;
                let switches = counters.voluntary_switches? + counters.involuntary_switches?;
                (parts.load.requests > 0).then(|| switches as f64 / parts.load.requests as f64)
            }),
            gc_throughput_percent: median(&|parts| parts.gc?.throughput_percent),
            after_full_gc_kib: median(&|parts| Some(parts.gc?.after_full_gc_kib? as f64)),
            utilisation: median(&|parts| Some(parts.gateway?.cost.utilisation)),
            limit: usual_limit(&valid),
            validity: validity(runs, &valid),
        }
    }
}

/// The figures of what the cell is about, by its case: of a request or of a handshake.
impl CellSummary {
    /// CPU of the gateway for one.
    pub fn cpu_us(&self) -> Option<f64> {
        self.by_case(self.cpu_us_per_request, self.cpu_us_per_handshake)
    }

    /// The interval of [`Self::cpu_us`].
    pub fn cpu_us_interval(&self) -> Option<(f64, f64)> {
        let request = self.cpu_us_per_request_low.zip(self.cpu_us_per_request_high);
        self.by_case(request, self.cpu_us_per_handshake_low.zip(self.cpu_us_per_handshake_high))
    }

    /// CPU of the test server for one.
    pub fn origin_cpu_us(&self) -> Option<f64> {
        self.by_case(self.origin_cpu_us_per_request, self.origin_cpu_us_per_handshake)
    }

    /// CPU of the load engine for one.
    pub fn load_cpu_us(&self) -> Option<f64> {
        self.by_case(self.load_cpu_us_per_request, self.load_cpu_us_per_handshake)
    }

    /// How many in a second.
    pub fn per_second(&self) -> Option<f64> {
        self.by_case(self.requests_per_second, self.handshakes_per_second)
    }

    fn by_case<T>(&self, request: T, handshake: T) -> T {
        if self.case.is_handshake() { handshake } else { request }
    }
}

/// The merged latencies of valid runs.
pub(crate) fn latencies(valid: &[&RunRecord]) -> Option<Latencies> {
    let results = valid.iter().filter_map(|run| run.observation.load.as_ref());
    Latencies::merge(results.map(|load| load.response.hdr_v2.as_str()))
}

/// The limit of most of the runs.
pub(crate) fn usual_limit(runs: &[&RunRecord]) -> Option<Limit> {
    let mut counts: BTreeMap<Limit, usize> = BTreeMap::new();
    for limit in runs.iter().filter_map(|run| run.limit) {
        *counts.entry(limit).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(limit, _)| limit)
}

fn error_ratio(runs: &[&RunRecord]) -> Option<f64> {
    let results = || runs.iter().filter_map(|run| run.observation.load.as_ref());
    let errors: u64 = results().flat_map(|load| load.errors.values()).sum();
    let answered: u64 = results().map(|load| load.requests).sum();
    (errors + answered > 0).then(|| errors as f64 / (errors + answered) as f64)
}

fn validity(runs: &[&RunRecord], valid: &[&RunRecord]) -> Validity {
    match runs.first() {
        _ if !valid.is_empty() => Validity::Valid,
        Some(run) => run.validity.clone(),
        None => Validity::Invalid("not run".into()),
    }
}
