//! The gateways' part of the page: cells by place, latencies, the course of the windows, and how to repeat a run.

use super::levels::Place as _;
use super::plan::{is_calibrated, rate};
use super::run::Seen;
use super::values::{latencies, results, unit_metrics};
use super::vary::{Vary, places};
use super::{Case, Gateway, Load, Tls};
use crate::experiment::Factor;
use crate::experiment::metric::Metric;
use crate::findings::pairing::valid;
use crate::findings::results::Results;
use crate::findings::summary::{CellSummary, by_cell};
use crate::planning::cell::{Cell, Levels};
use crate::planning::placement::list;
use crate::planning::plan::Plan;
use crate::report::shown::{Looks, Page};
use crate::stats;
use crate::store::Store;
use crate::store::run::Run;
use std::collections::BTreeMap;
use weir_report::chart::percentiles;
use weir_report::chart::plot::{Curve, Point};
use weir_report::markup::{command_line, quote};
use weir_report::model::{self, About, Group};
use weir_report::text::{NONE, number};

/// The maximum of points in a course; in longer windows a point covers several seconds.
const COURSE: usize = 120;

const MIB_OF_KIB: f64 = 1.0 / 1024.0;

/// Shorter windows, in seconds, have no course.
const LEAST: usize = 3;

type Runs<'a> = [(&'a Cell, Vec<&'a Run<Seen>>)];

/// The valid runs alone, which times come from.
fn alone<'a>(runs: &[&'a Run<Seen>]) -> Vec<&'a Run<Seen>> {
    valid::<Gateway>(runs).into_iter().filter(|run| run.run.beside.is_none()).collect()
}

/// The instrument's part of the page.
pub(super) fn page(results: &Results<Gateway>, store: &Store, looks: &Looks<'_>) -> Page {
    let vary = Vary::of(&results.plan);
    Page {
        constants: vary.constants(&results.plan),
        groups: View { results, looks, vary }.groups(&by_cell(&results.plan, &results.runs)),
        figures: Vec::new(),
        targets: targets(results, &store.settings().unwrap_or_default()),
        method: method(results),
    }
}

struct View<'a> {
    results: &'a Results<Gateway>,
    looks: &'a Looks<'a>,
    vary: Vary,
}

impl View<'_> {
    /// All places, those of each load in the experiment's order of modes.
    fn groups(&self, runs: &Runs<'_>) -> Vec<Group> {
        let plan = &self.results.plan;
        let mut all = Vec::new();
        let any_gateway = plan.cells.iter().any(|cell| cell.mode().upstream().is_some());
        for place in places(plan) {
            for load in [Load::EqualRate, Load::Saturated] {
                let place = place.at(load);
                let own: Vec<_> = runs.iter().filter(|(cell, _)| cell.place() == place).collect();
                if own.is_empty() {
                    continue;
                }
                let has_curves = place.mode().upstream().is_some() || !any_gateway;
                all.push(Group {
                    mode: place.mode().to_string(),
                    mode_words: place.mode().describe(),
                    users: place.connections(),
                    conditions: self.vary.conditions(&place, None).join(", "),
                    users_vary: self.vary.has("connections"),
                    is_saturated: load == Load::Saturated,
                    rate: own.iter().find_map(|(cell, _)| rate(plan, cell)),
                    is_calibrated: own.iter().all(|(cell, _)| is_calibrated(plan, cell)),
                    unit: place.case().unit(),
                    cells: own.iter().filter_map(|(cell, _)| self.cell(cell)).collect(),
                    curves: if has_curves { self.curves(&place, runs) } else { Vec::new() },
                    courses: own.iter().filter_map(|(cell, runs)| self.course(cell, runs)).collect(),
                });
            }
        }
        all
    }

    fn cell(&self, cell: &Cell) -> Option<model::Cell> {
        let found: &CellSummary = self.results.summary.cell(cell)?;
        let of = unit_metrics(cell.case());
        Some(model::Cell {
            subject: (self.looks)(&cell.name).0,
            has_gateway: cell.mode().upstream().is_some(),
            per_second: found.get(of.rate),
            cpu_us: found.get(of.cpu),
            cpu_interval: found.values.get(&of.cpu).and_then(crate::findings::value::Value::interval),
            utilisation: found.get(Metric::Utilisation),
            figures: figures(found, cell.case()),
            limit: found.limit.map(|limit| limit.to_string()),
            valid_runs: found.valid_runs,
            runs: found.runs(),
            validity: found.validity.to_string(),
        })
    }

    /// The latencies of a place, and without a gateway the minimum that a client can see on this machine.
    fn curves(&self, place: &Levels, runs: &Runs<'_>) -> Vec<Curve> {
        let direct = place.with("mode", crate::experiment::Level::new(place.mode().client()));
        let shown = runs.iter().filter(|(cell, _)| cell.place() == *place || cell.place() == direct);
        let curve = |(cell, runs): &(&Cell, Vec<&Run<Seen>>)| {
            let valid = alone(runs);
            let all = latencies(&valid)?;
            let censored = results(&valid).filter_map(|load| load.response.censored_from_us);
            let known = censored.fold(f64::INFINITY, f64::min);
            let points = percentiles::curve(|quantile| all.quantile_us(quantile).filter(|us| *us < known));
            Some(Curve { name: cell.name.clone(), look: (self.looks)(&cell.name).1, points })
        };
        shown.filter_map(curve).filter(|curve| !curve.points.is_empty()).collect()
    }

    /// The median over the valid runs of each second.
    fn course(&self, cell: &Cell, runs: &[&Run<Seen>]) -> Option<Curve> {
        let (handshakes, saturated) = (cell.case().is_handshake(), cell.load() == Load::Saturated);
        let mut by_second: BTreeMap<usize, (f64, Vec<f64>)> = BTreeMap::new();
        for load in results(&alone(runs)) {
            for (index, second) in load.seconds.iter().enumerate() {
                let next = load.seconds.get(index + 1).map_or(load.window_s, |next| next.at_s);
                let width = next - second.at_s;
                let count = if handshakes { second.handshakes } else { second.requests };
                let value = if saturated { Some(count as f64 / width) } else { second.p50_us };
                // A fraction of a second at the window's end is too short to compare.
                if let Some(value) = value.filter(|_| width > 0.9) {
                    by_second.entry(index).or_insert((second.at_s, Vec::new())).1.push(value);
                }
            }
        }
        let seconds: Vec<(f64, f64)> =
            by_second.into_values().filter_map(|(at, values)| Some((at, stats::median(&values)?))).collect();
        if seconds.len() < LEAST {
            return None;
        }
        let points = seconds.chunks(seconds.len().div_ceil(COURSE)).map(|chunk| {
            let values = || chunk.iter().map(|(_, value)| *value);
            let mean = values().sum::<f64>() / chunk.len() as f64;
            let y = if saturated { mean } else { values().fold(0.0, f64::max) };
            Point { x: chunk[0].0, y, ..Point::default() }
        });
        Some(Curve { name: cell.name.clone(), look: (self.looks)(&cell.name).1, points: points.collect() })
    }
}

/// A cell's row in the table of all numbers: title, and value with this many digits. Columns without any value, such as
/// a JVM's, are left out.
fn figures(found: &CellSummary, case: Case) -> Vec<(String, String)> {
    let of = unit_metrics(case);
    let rate = format!("{}s/s", case.unit());
    let figure = |(title, metric, factor, digits): (&str, Metric, f64, usize)| {
        let value = number(found.get(metric).map(|value| value * factor), digits);
        let is_blank =
            value == NONE && matches!(metric, Metric::GcThroughputPercent | Metric::AfterFullGcKib);
        (title.to_owned(), if is_blank { String::new() } else { value })
    };
    let all = [
        (rate.as_str(), of.rate, 1.0, 0),
        ("mean \u{b5}s", Metric::MeanUs, 1.0, 0),
        ("sd \u{b5}s", Metric::SdUs, 1.0, 0),
        ("p50 \u{b5}s", Metric::P50Us, 1.0, 0),
        ("p95 \u{b5}s", Metric::P95Us, 1.0, 0),
        ("p99 \u{b5}s", Metric::P99Us, 1.0, 0),
        ("errors %", Metric::ErrorRatio, 100.0, 2),
        ("CPU \u{b5}s", of.cpu, 1.0, 1),
        ("utili-<br>sation", Metric::Utilisation, 1.0, 2),
        ("origin<br>CPU \u{b5}s", of.origin_cpu, 1.0, 1),
        ("load<br>CPU \u{b5}s", of.load_cpu, 1.0, 1),
        ("switches,<br>each", Metric::SwitchesPerRequest, 1.0, 2),
        ("RSS MiB<br>peak", Metric::RssKib, MIB_OF_KIB, 1),
        ("RSS MiB<br>at end", Metric::RssEndKib, MIB_OF_KIB, 1),
        ("GC through-<br>put %", Metric::GcThroughputPercent, 1.0, 2),
        ("MiB after<br>full GC", Metric::AfterFullGcKib, MIB_OF_KIB, 1),
    ];
    all.map(figure).into()
}

/// How to reproduce the last run of a cell by hand.
pub(super) fn reproduction(plan: &Plan, cell: &Cell, runs: &[&Run<Seen>]) -> String {
    let mut commands = command(plan, cell);
    for process in runs.last().iter().flat_map(|run| &run.seen.observation.processes) {
        let (cores, line) = (list(&process.cores), command_line(&process.command));
        commands.push_str(&format!("\n\n# {} on core {cores}\n{line}", process.role));
    }
    commands
}

fn command(plan: &Plan, cell: &Cell) -> String {
    let mut words = vec!["weir run".to_owned(), plan.file.display().to_string()];
    words.extend(plan.arguments.iter().map(|word| quote(word)));
    let (name, mode, load) = (&cell.name, cell.mode(), cell.load());
    let (connections, bytes) = (cell.connections(), cell.bytes());
    let mut only = format!("name={name},mode={mode},load={load},connections={connections},bytes={bytes}");
    only.extend(cell.further().map(|(key, level)| format!(",{key}={level}")));
    words.extend(["--only".into(), format!("'{}'", only.replace('\'', "'\\''"))]);
    if let Some(rate) = rate(plan, cell).filter(|_| cell.level("rate").is_none()) {
        words.push(format!("--set rate={rate:?}"));
    }
    words.push("--blocks 1".into());
    words.join(" ")
}

fn targets(results: &Results<Gateway>, settings: &[(String, String)]) -> Vec<About> {
    let machine = &results.machine;
    let target = |(name, about): (&String, &String)| {
        let files = settings.iter().filter(|(file, _)| file.split(['.', '+']).next() == Some(name));
        About {
            title: machine.titles.get(name).unwrap_or(name).clone(),
            version: machine.versions.get(name).cloned().unwrap_or_default(),
            about: about.clone(),
            files: files
                .map(|(file, text)| (file.trim_end_matches(".txt").to_owned(), text.clone()))
                .collect(),
        }
    };
    machine.about.iter().map(target).collect()
}

/// The pinned settings, and how runs were made.
fn method(results: &Results<Gateway>) -> Vec<(&'static str, String)> {
    let (machine, experiment) = (&results.machine, &results.plan.experiment);
    let mut facts = Vec::new();
    if let Some(placement) = &machine.placement {
        let cores = &placement.cores;
        let [gateway, origin, load] = [&cores.gateway, &cores.origin, &cores.load].map(|cores| list(cores));
        facts.push(("cores", format!("gateway {gateway}; origin {origin}; load {load}")));
    }
    if let Ok(conditions) = experiment.any_conditions() {
        let Tls { version, suite, group, certificate, tickets } = &conditions.tls;
        let signature = certificate.signature();
        facts.push(("TLS", format!("{version} {suite}, {group}, {signature}, {tickets} tickets")));
        let (warmup, window) = (conditions.warmup_ms, conditions.window_ms);
        let order = format!("order drawn from seed {}", experiment.seed);
        facts.push(("run", format!("fresh processes, warm-up {warmup} ms, window {window} ms, {order}")));
    }
    facts.push(("factors", experiment.factors.iter().map(varied).collect::<Vec<_>>().join("; ")));
    if !experiment.leave_out.is_empty() {
        let left_out = experiment.leave_out.iter().map(ToString::to_string).collect::<Vec<_>>();
        facts.push(("left out", left_out.join("; ")));
    }
    let versions = machine.versions.iter().map(|(name, version)| format!("{name} {version}"));
    facts.push(("versions", versions.collect::<Vec<_>>().join("; ")));
    facts
}

/// A factor and its levels.
pub(super) fn varied(factor: &Factor) -> String {
    let levels: Vec<String> = factor.names().iter().map(ToString::to_string).collect();
    format!("{}: {}", factor.key, levels.join(" | "))
}
