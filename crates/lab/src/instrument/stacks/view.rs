//! The page of TLS stacks: charts by task, and the facts that engines report.

use super::key::{HANDSHAKE, MEMORY, PRIMITIVE, TRANSFER};
use super::output::Facts;
use super::scaling::in_locks;
use super::values::{COUNTED, Ran};
use super::{Stacks, title};
use crate::experiment::Level;
use crate::experiment::metric::Metric;
use crate::findings::results::Results;
use crate::findings::summary::CellSummary;
use crate::findings::value::Value;
use crate::planning::cell::{Cell, Levels};
use crate::report::shown::{Looks, Page};
use crate::store::run::Run;
use std::collections::BTreeMap;
use weir_report::chart::axis::{Axis, count, plain};
use weir_report::chart::bars::{self, Bar};
use weir_report::chart::palette::Look;
use weir_report::chart::plot::{self, Curve, Point};
use weir_report::model::{About, Figures, Picture};

/// The parts of the page that are specific to TLS stacks.
pub(super) fn page(results: &Results<Stacks>, looks: &Looks<'_>) -> Page {
    let view = View { results, looks };
    let order = format!("drawn from seed {}", results.plan.experiment.seed);
    let run = "a fresh process each; both sides in it, in memory, without sockets";
    Page {
        figures: view.figures(),
        targets: view.engines(),
        method: vec![("run", run.into()), ("order", order)],
        ..Page::default()
    }
}

/// The facts that each engine reported, by engine.
pub(super) fn facts(runs: &[Run<Ran>]) -> BTreeMap<&str, &Facts> {
    let reported = runs.iter().filter_map(|run| Some((&run.run.cell.subject, run.seen.seen.facts.as_ref()?)));
    reported.map(|(name, facts)| (name.as_str(), facts)).collect()
}

struct View<'a> {
    results: &'a Results<Stacks>,
    looks: &'a Looks<'a>,
}

impl View<'_> {
    fn look(&self, name: &str) -> Look {
        (self.looks)(name).1
    }

    fn figures(&self) -> Vec<Figures> {
        let per_core = "Handshakes that a core could complete if it did nothing else: 1 s divided by that side's own \
                        time for one. Longer is better; the whisker is the interval.";
        let counted = "Counted once under valgrind, without noise. Valgrind hides AVX-512, so this code path differs \
                       from the timed one. Shorter is better.";
        vec![
            self.bars(HANDSHAKE, Metric::ServerUsPerHandshake, "Server: handshakes per second of a core", per_core),
            self.bars(HANDSHAKE, Metric::ClientUsPerHandshake, "Client: handshakes per second of a core", per_core),
            self.split(),
            self.bars(HANDSHAKE, Metric::ServerInstructions, "Server: instructions of a handshake (AVX2 path)", counted),
            self.bars(HANDSHAKE, Metric::ClientInstructions, "Client: instructions of a handshake (AVX2 path)", counted),
            self.bars(HANDSHAKE, Metric::LockNsPerHandshake, "Time inside locks",
                "Nanoseconds for which a handshake holds the lock of the ticket keys or the session store. If only one \
                 thread at a time can hold it, 1 s divided by it is the maximum rate on any number of cores; a lock \
                 shared by readers sets no bound."),
            self.lines("threads", Metric::HandshakesPerSecond, "Handshakes per second of each thread, by threads",
                "Each thread runs both sides. A flat line scales perfectly; a line that falls before all cores are busy \
                 shows contention: for a lock, a counter or execution units."),
            self.lines("record", Metric::SendMbPerSecond, "Sending, by record size",
                "Megabytes per second of the sender's time, by plaintext bytes per record."),
            self.lines("record", Metric::ReceiveMbPerSecond, "Receiving, by record size",
                "The same for the receiver's time."),
            self.bars(TRANSFER, Metric::SendMbPerSecond, "Sending", "Megabytes per second of the sender's time."),
            self.bars(TRANSFER, Metric::ReceiveMbPerSecond, "Receiving", "Megabytes per second of the receiver's time."),
            self.bars(MEMORY, Metric::KibPerSession, "Memory per session",
                "Resident KiB for each open side. Shorter is better."),
            self.bars(PRIMITIVE, Metric::OperationUs, "Primitives", "Microseconds per operation. Shorter is better."),
        ]
    }

    /// A panel for each scenario of a task, a bar for each engine. Scenarios shown as lines are omitted.
    fn bars(&self, task: &str, metric: Metric, title: &str, note: &str) -> Figures {
        let is_on_a_line =
            |cell: &Cell| ["threads", "record"].iter().any(|key| self.varies(&cell.levels, key));
        // Counts have no noise, so the second of the A/A pair is not counted.
        let is_counted_again = |cell: &Cell| COUNTED.contains(&metric) && cell.is_again();
        let is_shown =
            |cell: &Cell| cell.levels.word("do") == task && !is_counted_again(cell) && !is_on_a_line(cell);
        let axis = if is_rate_of_core(metric) { "handshakes per second of a core" } else { metric.unit() };
        let panels = self.panels(is_shown, Levels::clone);
        let pictures = pictures(panels, title, |title, cells| {
            let has_any = cells.iter().any(|cell| cell.values.contains_key(&metric));
            let bars: Vec<Bar<'_>> = cells.iter().map(|cell| self.bar(cell, metric)).collect();
            if has_any { bars::draw(title, axis, &bars, bars::reach(&bars)) } else { None }
        });
        Figures { title: title.to_owned(), note: note.to_owned(), pictures }
    }

    fn bar<'a>(&self, found: &'a CellSummary, metric: Metric) -> Bar<'a> {
        let is_counted = COUNTED.contains(&metric);
        let located = found.values.get(&metric).map(|located| shown(metric, *located));
        let words = match located {
            None if is_counted => found.why_uncounted.clone().unwrap_or_else(|| "not counted".into()),
            None => found.why_invalid.clone().unwrap_or_else(|| "no valid run".into()),
            Some(Value { value, .. }) if is_counted => format!("{:.0} k", value / 1e3),
            Some(Value { value, .. }) if metric == Metric::LockNsPerHandshake => {
                in_locks(&self.results.plan, found, value)
            }
            Some(Value { value, low: Some(low), high: Some(high) }) => {
                format!("{} [{}, {}]", figure(value), figure(low), figure(high))
            }
            Some(Value { value, .. }) => figure(value),
        };
        Bar {
            name: &found.cell.name,
            look: self.look(&found.cell.name),
            value: located.map(|located| located.value),
            interval: located.and_then(|located| located.interval()),
            parts: Vec::new(),
            words,
        }
    }

    /// The shares of signature and key exchange in the server's time of full handshakes.
    fn split(&self) -> Figures {
        let panels = self.panels(|cell| cell.levels.is_full_handshake(), Levels::clone);
        let pictures = pictures(panels, "Split", |title, cells| {
            let bars: Vec<Bar<'_>> = cells.iter().filter_map(|found| self.split_bar(found)).collect();
            bars::draw(title, "us of the server", &bars, bars::reach(&bars))
        });
        Figures {
            title: "Composition of the server's full handshake".into(),
            note: "Microseconds: the signature (darkest), the key exchange (lighter), and the rest: parsing, hashing, \
                   key schedule, records, memory (lightest). The first two are the engine's own primitives, measured \
                   separately."
                .into(),
            pictures,
        }
    }

    /// `None` if a primitive of the engine was not measured.
    fn split_bar<'a>(&self, found: &'a CellSummary) -> Option<Bar<'a>> {
        let cell = &found.cell;
        let all = found.values.get(&Metric::ServerUsPerHandshake)?.value;
        let operation = |name: &str| {
            let is_it =
                |one: &&CellSummary| one.cell.name == cell.name && one.cell.levels.word("operation") == name;
            Some(self.results.summary.cells.iter().find(is_it)?.values.get(&Metric::OperationUs)?.value)
        };
        let sign = operation(&format!("{}-sign", cell.levels.word("certificate")))?;
        let exchange = match cell.levels.word("group") {
            "x25519mlkem768" => operation("x25519mlkem768-server")?,
            group => operation(group)?,
        };
        let rest = (all - sign - exchange).max(0.0);
        let share = |part: f64| (100.0 * part / all).round();
        let words = format!("{all:.1}: {} % + {} % + {} %", share(sign), share(exchange), share(rest));
        let (name, look) = (&cell.name, self.look(&cell.name));
        Some(Bar { name, look, value: Some(all), interval: None, parts: vec![sign, exchange, rest], words })
    }

    /// The cells to show, by the levels common to a panel.
    fn panels(
        &self,
        is_shown: impl Fn(&Cell) -> bool,
        common: impl Fn(&Levels) -> Levels,
    ) -> BTreeMap<Levels, Vec<&CellSummary>> {
        let mut panels: BTreeMap<Levels, Vec<&CellSummary>> = BTreeMap::new();
        for found in self.results.summary.cells.iter().filter(|found| is_shown(&found.cell)) {
            panels.entry(common(&found.cell.levels)).or_default().push(found);
        }
        panels
    }

    /// Whether other scenarios differ from this one in that key only.
    fn varies(&self, scenario: &Levels, key: &str) -> bool {
        let is_other = |(other, _): &(&str, &Level)| *other != key;
        let is_but_for_it = |cell: &Cell| {
            cell.levels != *scenario
                && cell.levels.iter().filter(is_other).eq(scenario.iter().filter(is_other))
        };
        scenario.get(key).is_some() && self.results.plan.cells.iter().any(is_but_for_it)
    }

    /// A panel for each set of scenarios that differ only in a number, a line for each engine.
    fn lines(&self, key: &str, metric: Metric, title: &str, note: &str) -> Figures {
        let panels = self.panels(|cell| self.varies(&cell.levels, key), |levels| levels.without(key));
        let pictures = pictures(panels, title, |title, cells| self.plot(title, key, metric, cells));
        Figures { title: title.to_owned(), note: note.to_owned(), pictures }
    }

    fn plot(&self, title: &str, key: &str, metric: Metric, cells: &[&CellSummary]) -> Option<String> {
        let mut lines: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
        for found in cells {
            let x = found.cell.levels.number(key)? as f64;
            let Some(located) = found.values.get(&metric) else { continue };
            // With threads, the rate per thread.
            let of_each = if key == "threads" { 1.0 / x } else { 1.0 };
            let interval = located.interval().map(|(low, high)| (low * of_each, high * of_each));
            let point = Point { x, y: located.value * of_each, interval, is_marked: true };
            lines.entry(&found.cell.name).or_default().push(point);
        }
        let lines: Vec<Curve> = lines
            .into_iter()
            .map(|(name, mut points)| {
                points.sort_by(|left, right| left.x.total_cmp(&right.x));
                Curve { name: name.to_owned(), look: self.look(name), points }
            })
            .collect();
        let all = || lines.iter().flat_map(|line| &line.points);
        let mut values: Vec<f64> = all().map(|point| point.x).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let most = all().map(|point| point.interval.map_or(point.y, |(_, high)| high)).fold(0.0, f64::max);
        let unit = if key == "threads" { "handshakes/s of each thread" } else { metric.unit() };
        plot::draw(title, &Axis::of_values(&values, key, plain), &Axis::from_zero(most, unit, count), &lines)
    }

    /// The facts of each engine.
    fn engines(&self) -> Vec<About> {
        let about = |(name, facts): (&str, &Facts)| {
            let Facts { crypto, compiler, allocator, features, .. } = facts;
            let features = if features.is_empty() { "unknown".into() } else { features.join(" ") };
            let words = self.results.machine.about.get(name).map_or("", String::as_str);
            About {
                title: name.to_owned(),
                version: facts.tls.clone(),
                about: format!(
                    "{words} Crypto: {crypto}; compiler: {compiler}; allocator: {allocator}; features used: {features}."
                ),
                files: Vec::new(),
            }
        };
        facts(&self.results.runs).into_iter().map(about).collect()
    }
}

/// A picture of each panel, with a caption of its common levels.
fn pictures(
    panels: BTreeMap<Levels, Vec<&CellSummary>>,
    title: &str,
    draw: impl Fn(&str, &[&CellSummary]) -> Option<String>,
) -> Vec<Picture> {
    let picture = |(common, cells): (Levels, Vec<&CellSummary>)| {
        let caption = title::of(&common);
        Some(Picture { svg: draw(&format!("{title}: {caption}"), &cells)?, caption })
    };
    panels.into_iter().filter_map(picture).collect()
}

/// Converts a time per handshake to the rate of a core.
fn shown(metric: Metric, located: Value) -> Value {
    let inverse = |us: f64| 1e6 / us;
    match is_rate_of_core(metric) {
        true => Value {
            value: inverse(located.value),
            low: located.high.map(inverse),
            high: located.low.map(inverse),
        },
        false => located,
    }
}

fn is_rate_of_core(metric: Metric) -> bool {
    matches!(metric, Metric::ServerUsPerHandshake | Metric::ClientUsPerHandshake)
}

/// Three digits or more.
fn figure(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}
