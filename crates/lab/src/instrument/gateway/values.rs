//! The values of a gateway's run by metric, and when a run has none.

use super::levels::Place as _;
use super::run::{Parts, Seen, UpstreamHandshakes, parts};
use super::{Case, Load};
use crate::experiment::metric::Metric;
use crate::findings::foreign::FOREIGN_MUCH;
use crate::findings::pairing::joined;
use crate::findings::value::Value;
use crate::planning::cell::Cell;
use crate::stats::histogram::Latencies;
use crate::store::run::Run;
use std::collections::BTreeMap;
use weir_load::figures::is_lower_bound;
use weir_load::plural;
use weir_load::result::{Cost, Latency, Limit, LoadResult};

/// The main metrics of a cell.
pub(super) struct UnitMetrics {
    pub(super) rate: Metric,
    pub(super) cpu: Metric,
    pub(super) origin_cpu: Metric,
    pub(super) load_cpu: Metric,
}

/// For requests or for handshakes.
pub(super) fn unit_metrics(case: Case) -> UnitMetrics {
    match case.is_handshake() {
        false => UnitMetrics {
            rate: Metric::RequestsPerSecond,
            cpu: Metric::CpuUsPerRequest,
            origin_cpu: Metric::OriginCpuUsPerRequest,
            load_cpu: Metric::LoadCpuUsPerRequest,
        },
        true => UnitMetrics {
            rate: Metric::HandshakesPerSecond,
            cpu: Metric::CpuUsPerHandshake,
            origin_cpu: Metric::OriginCpuUsPerHandshake,
            load_cpu: Metric::LoadCpuUsPerHandshake,
        },
    }
}

/// The metrics compared under a load: at one equal rate a rate says nothing, at saturation latency is the queue's.
pub(crate) fn compared(load: Load, case: Case) -> Vec<Metric> {
    let of = unit_metrics(case);
    match load {
        Load::EqualRate => vec![of.cpu, Metric::P99Us],
        Load::Saturated => vec![of.cpu, of.rate],
    }
}

/// A run's value.
pub(super) fn of_run(metric: Metric, run: &Run<Seen>) -> Option<f64> {
    let parts = parts(run)?;
    let Parts { load, gateway, origin, gc, .. } = parts;
    let request = |cost: &Cost| cost.cpu_us_per_request.filter(|_| has_requests(load));
    match metric {
        Metric::CpuUsPerRequest => request(&gateway?.cost),
        Metric::CpuUsPerHandshake => gateway?.cost.cpu_us_per_handshake,
        Metric::OriginCpuUsPerRequest => request(&origin?.cost),
        Metric::OriginCpuUsPerHandshake => origin?.cost.cpu_us_per_handshake,
        Metric::LoadCpuUsPerRequest => request(&load.engine.cost),
        Metric::LoadCpuUsPerHandshake => load.engine.cost.cpu_us_per_handshake,
        Metric::P99Us => load.response.p99_us,
        Metric::RequestsPerSecond => has_requests(load).then_some(load.requests_per_second),
        Metric::HandshakesPerSecond => Some(load.handshakes.per_second),
        Metric::MeanUs => Some(load.response.mean_us),
        Metric::SdUs => Some(load.response.sd_us),
        Metric::P50Us => load.response.p50_us,
        Metric::P95Us => load.response.p95_us,
        Metric::LittleRatio => {
            let users = f64::from(load.asked.connections.max(1)) * f64::from(load.asked.streams.max(1));
            Some(load.response.mean_us * load.requests_per_second / (users * 1e6))
        }
        Metric::RssKib => gateway?.rss_peak_kib.map(|kib| kib as f64),
        Metric::RssEndKib => gateway?.counters.rss_end_kib.map(|kib| kib as f64),
        Metric::SwitchesPerRequest => {
            let counters = &gateway?.counters;
            let switches = counters.voluntary_switches? + counters.involuntary_switches?;
            (load.requests > 0).then(|| switches as f64 / load.requests as f64)
        }
        Metric::Utilisation => gateway.map(|gateway| gateway.cost.utilisation),
        Metric::UpstreamConnectionsPerRequest => {
            let opened = run.seen.observation.upstream_connections?;
            (load.answered_in_all > 0).then(|| opened as f64 / load.answered_in_all as f64)
        }
        Metric::UpstreamHandshakesPerRequest => {
            let UpstreamHandshakes { full, resumed, .. } =
                run.seen.observation.upstream_handshakes.as_ref()?;
            (load.answered_in_all > 0).then(|| (full + resumed) as f64 / load.answered_in_all as f64)
        }
        Metric::UpstreamResumedPercent => {
            let UpstreamHandshakes { full, resumed, .. } =
                run.seen.observation.upstream_handshakes.as_ref()?;
            (full + resumed > 0).then(|| 100.0 * *resumed as f64 / (full + resumed) as f64)
        }
        Metric::GcThroughputPercent => gc?.throughput_percent,
        Metric::AfterFullGcKib => gc?.after_full_gc_kib.map(|kib| kib as f64),
        Metric::ErrorRatio => error_ratio([load].into_iter()),
        _ => None,
    }
}

/// CPU microseconds of the gateway per request or handshake, whichever the run counts.
pub(super) fn cost_us(run: &Run<Seen>) -> Option<f64> {
    of_run(unit_metrics(run.run.cell.case()).cpu, run)
}

/// A cell's value: times come from all requests of all valid runs, errors from all runs, the rest are medians.
pub(super) fn summarise(
    metric: Metric,
    cell: &Cell,
    valid: &[&Run<Seen>],
    all: &[&Run<Seen>],
) -> Option<Value> {
    let handshakes = cell.case().is_handshake();
    let median = || {
        let values: Vec<f64> = valid.iter().filter_map(|run| of_run(metric, run)).collect();
        Value::of(&values)
    };
    let percentile = |quantile: f64| {
        let value = latencies(valid)?.quantile_us(quantile);
        value.filter(|us| !results(valid).any(|load| is_lower_bound(&load.response, *us)))
    };
    let is_known = || !results(valid).any(|load| has_censored(&load.response));
    match metric {
        Metric::CpuUsPerHandshake
        | Metric::OriginCpuUsPerHandshake
        | Metric::LoadCpuUsPerHandshake
        | Metric::HandshakesPerSecond
            if !handshakes =>
        {
            None
        }
        Metric::P50Us => percentile(0.5).map(Value::exactly),
        Metric::P95Us => percentile(0.95).map(Value::exactly),
        Metric::P99Us => percentile(0.99).map(Value::exactly),
        Metric::MeanUs => latencies(valid).filter(|_| is_known()).map(|all| Value::exactly(all.mean_us())),
        Metric::SdUs => latencies(valid).filter(|_| is_known()).map(|all| Value::exactly(all.sd_us())),
        Metric::ErrorRatio => error_ratio(results(all)).map(Value::exactly),
        _ if metric.is_cpu() => median(),
        _ => median().map(|median| Value::exactly(median.value)),
    }
}

/// The load engine's results of the runs that have one.
pub(super) fn results<'a>(runs: &'a [&'a Run<Seen>]) -> impl Iterator<Item = &'a LoadResult> {
    runs.iter().filter_map(|run| run.seen.observation.load.as_ref())
}

/// The merged latencies of valid runs.
pub(crate) fn latencies(valid: &[&Run<Seen>]) -> Option<Latencies> {
    let texts: Vec<&str> = results(valid).map(|load| load.response.hdr_v2.as_str()).collect();
    Latencies::merge(&texts)
}

fn error_ratio<'a>(results: impl Iterator<Item = &'a LoadResult>) -> Option<f64> {
    let (errors, answered) = results.fold((0, 0), |(errors, answered), load| {
        (errors + load.errors.values().sum::<u64>(), answered + load.requests)
    });
    (errors + answered > 0).then(|| errors as f64 / (errors + answered) as f64)
}

/// If at least one in this many runs was limited, there is no verdict: from 29 % of one side on, such runs determine
/// the estimate of Hodges and Lehmann.
const ONE_OF: usize = 4;

/// Why these runs are no evidence about the target: at least a quarter was limited by something else.
pub(super) fn unsupported(metric: Metric, cell: &Cell, name: &str, valid: &[&Run<Seen>]) -> Option<String> {
    let (held, words) = held_down(metric, cell.load(), name, valid);
    words.filter(|_| ONE_OF * held >= valid.len())
}

/// A remark on runs that are evidence: fewer than a quarter were limited by something else, or the target was saturated
/// at a rate meant to be below its maximum.
pub(super) fn remark(metric: Metric, cell: &Cell, name: &str, valid: &[&Run<Seen>]) -> Option<String> {
    let (held, words) = held_down(metric, cell.load(), name, valid);
    let few = words.filter(|_| ONE_OF * held < valid.len());
    let full = valid.iter().filter(|run| run.seen.limit == Some(Limit::Gateway)).count();
    let is_saturated = cell.load() == Load::EqualRate && metric.depends_on_rate() && full > 0;
    let saturated = is_saturated.then(|| {
        format!("{name} was saturated at this rate in {full} of {}", plural(valid.len() as u64, "run"))
    });
    joined(few.into_iter().chain(saturated).collect())
}

/// The number of runs limited by something else than the target, and by what.
fn held_down(metric: Metric, load: Load, name: &str, runs: &[&Run<Seen>]) -> (usize, Option<String>) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for run in runs {
        let by = match run.seen.limit {
            // Its limit applies to the other of its duet too.
            _ if run.run.beside.is_some() => continue,
            None if !is_supported(metric, load, None) => "has no result".to_owned(),
            Some(limit) if !is_supported(metric, load, Some(limit)) => format!("was limited by {limit}"),
            _ if is_starved(metric, load, run) => "shared its cores with other processes".to_owned(),
            _ => continue,
        };
        *counts.entry(by).or_default() += 1;
    }
    let words = counts
        .iter()
        .map(|(by, count)| format!("{name} {by} in {count} of {}", plural(runs.len() as u64, "run")));
    (counts.values().sum(), joined(words.collect()))
}

/// Whether foreign load may have limited a saturated run: then its rate and times are not the target's.
fn is_starved(metric: Metric, load: Load, run: &Run<Seen>) -> bool {
    let is_of_speed =
        metric.is_rate() || matches!(metric, Metric::P99Us | Metric::MeanUs | Metric::P50Us | Metric::P95Us);
    let foreign = run.seen.observation.foreign_cpu.is_some_and(|share| share > FOREIGN_MUCH);
    is_of_speed && load == Load::Saturated && foreign && run.seen.limit == Some(Limit::Neither)
}

/// Whether runs with this limit are evidence about the target.
pub(super) fn is_supported(metric: Metric, load: Load, limit: Option<Limit>) -> bool {
    match (metric, load, limit) {
        // A limit changes neither an identity nor counts and memory.
        (
            Metric::LittleRatio
            | Metric::RssKib
            | Metric::ErrorRatio
            | Metric::Utilisation
            | Metric::GcThroughputPercent
            | Metric::AfterFullGcKib,
            _,
            limit,
        ) => limit.is_some(),
        (Metric::CpuUsPerRequest | Metric::CpuUsPerHandshake, Load::EqualRate, _) => true,
        (_, _, Some(Limit::Gateway | Limit::Neither)) => true,
        (_, _, Some(Limit::Origin | Limit::Load | Limit::SharedCores) | None) => false,
    }
}

/// Why these valid runs of a target have no comparable value.
pub(super) fn without_value(metric: Metric, target: &str, runs: &[&Run<Seen>]) -> Option<String> {
    let results: Vec<&LoadResult> = results(runs).collect();
    let count = |is_such: &dyn Fn(&Latency) -> bool| {
        Some(results.iter().filter(|load| is_such(&load.response)).count()).filter(|count| *count > 0)
    };
    let all = runs.len();
    let bound =
        |what, bounds| format!("the {what} of {target} is only a lower bound in {bounds} of {all} runs");
    let percentile = |name, of: &dyn Fn(&Latency) -> Option<f64>| {
        let few = |few| format!("{few} of {all} runs of {target} have too few samples for a {name}");
        let bounds = count(&|response| of(response).is_some_and(|us| is_lower_bound(response, us)));
        bounds
            .map(|bounds| bound(name, bounds))
            .or_else(|| count(&|response| of(response).is_none()).map(few))
    };
    match metric {
        Metric::P99Us => percentile("p99", &|response| response.p99_us),
        Metric::P50Us => percentile("p50", &|response| response.p50_us),
        Metric::P95Us => percentile("p95", &|response| response.p95_us),
        Metric::MeanUs | Metric::SdUs | Metric::LittleRatio => {
            count(&has_censored).map(|bounds| bound("mean", bounds))
        }
        Metric::RequestsPerSecond | Metric::CpuUsPerRequest => {
            let is_without = results.iter().any(|load| !has_requests(load));
            is_without.then(|| format!("the connections to {target} carry no request"))
        }
        _ => None,
    }
}

/// The name of the policy of connections without requests in a result.
pub(super) const HANDSHAKE_ONLY: &str = "handshake-only";

/// Whether connections carry requests; if not, their rate and cost are those of handshakes.
fn has_requests(load: &LoadResult) -> bool {
    load.asked.requests_per_connection != HANDSHAKE_ONLY
}

/// Whether some samples are lower bounds: then their mean is one too.
fn has_censored(latency: &Latency) -> bool {
    latency.censored_from_us.is_some()
}
