//! The page of an experiment with stacks: its plan, summary and runs as the plain values that the page shows.

use super::cell::{Scenario, StackCell};
use super::key::Task;
use super::output::Facts;
use super::plan::StacksPlan;
use super::run::StackRun;
use super::summary::{CellFindings, Contrast, Located, StacksSummary};
use super::text::{in_locks, labels, titles};
use crate::machine::Machine;
use crate::metric::{Better, Metric};
use crate::report::chart::axis::{Axis, count, plain};
use crate::report::chart::bars::{self, Bar};
use crate::report::chart::palette::Look;
use crate::report::chart::plot::{self, Line, Point};
use crate::report::markup::quote;
use crate::report::model::{
    About, Comparison, Family, Figures, InvalidRun, Picture, Report, Reproduction, Subject,
};
use crate::report::{page, view};
use crate::table::QUICK;
use crate::verdict;
use std::collections::{BTreeMap, BTreeSet};

/// The whole file.
pub(super) fn render(
    plan: &StacksPlan,
    summary: &StacksSummary,
    records: &[StackRun],
    machine: &Machine,
) -> String {
    let view = View { plan, summary, machine, looks: looks(plan) };
    let invalid = records.iter().filter(|run| !run.validity.is_valid());
    let titles = titles(plan);
    let called = |cell: &str| titles.get(cell).unwrap_or(&cell.to_owned()).clone();
    let (claims, claims_unrun) = view::claims(&summary.claims, &called);
    let experiment = &plan.experiment;
    page::render(&Report {
        name: experiment.name.clone(),
        question: experiment.question.clone(),
        quick: plan.quick.then(|| QUICK.to_owned()),
        labels: labels(plan, summary),
        analysis: view::paragraphs(experiment.analysis.as_deref()),
        subjects: view.subjects(),
        families: view.families(),
        claims,
        claims_unrun,
        figures: view.figures(),
        invalid: invalid
            .map(|run| InvalidRun { id: run.run.id.clone(), why: run.validity.to_string() })
            .collect(),
        reproductions: reproductions(plan, records),
        targets: view.engines(),
        machine: machine_facts(plan, machine),
        findings: view::findings(machine),
        ..Report::default()
    })
}

struct View<'a> {
    plan: &'a StacksPlan,
    summary: &'a StacksSummary,
    machine: &'a Machine,
    looks: BTreeMap<&'a str, Look>,
}

/// Each engine's look, in the experiment's order; the second of the A/A pair looks like the first.
fn looks(plan: &StacksPlan) -> BTreeMap<&str, Look> {
    let place = |engine: &str| plan.experiment.engines.iter().position(|name| name == engine).unwrap_or(0);
    let look = |cell: &StackCell| Look { place: place(&cell.engine), is_again: cell.is_again() };
    plan.cells.iter().map(|cell| (cell.name.as_str(), look(cell))).collect()
}

impl View<'_> {
    fn look(&self, name: &str) -> Look {
        self.looks.get(name).copied().unwrap_or(Look { place: 0, is_again: false })
    }

    fn subjects(&self) -> Vec<Subject> {
        let subject = |(name, look): (&&str, &Look)| Subject {
            name: (*name).to_owned(),
            version: String::new(),
            look: *look,
            is_baseline: self.plan.baseline.as_deref() == Some(*name),
        };
        self.looks.iter().map(subject).collect()
    }

    fn families(&self) -> Vec<Family> {
        let mut families: BTreeMap<(Option<&str>, Metric), Vec<&Contrast>> = BTreeMap::new();
        for one in &self.summary.contrasts {
            families.entry((one.factor.as_deref(), one.metric)).or_default().push(one);
        }
        let family = |((factor, metric), all): ((Option<&str>, Metric), Vec<&Contrast>)| Family {
            title: factor.map_or_else(
                || metric.title().to_owned(),
                |factor| format!("{}, by {factor}", metric.title()),
            ),
            is_less_better: metric.better() == Better::Less,
            has_floor: self
                .summary
                .contrasts
                .iter()
                .any(|one| one.aa && one.metric == metric && one.ratio.reach().is_some()),
            comparisons: all.into_iter().map(|one| self.comparison(one)).collect(),
        };
        families.into_iter().map(family).collect()
    }

    fn comparison(&self, one: &Contrast) -> Comparison {
        let margin = self.plan.experiment.margin;
        Comparison {
            mode: one.cell.scenario.word("do").to_owned(),
            group: one.cell.scenario.title(),
            target: one.target.clone(),
            look: self.look(&one.cell.name),
            baseline: one.baseline.clone(),
            is_aa: one.aa,
            ratio: one.ratio.value,
            interval: one.ratio.interval(),
            coverage: one.ratio.coverage,
            p_adjusted: one.ratio.p_adjusted,
            blocks: one.blocks,
            outcome: view::outcome(one.ratio.verdict, one.ratio.value, one.metric),
            is_indication: one.ratio.is_indication(),
            difference: one.ratio.value.map_or_else(String::new, |ratio| verdict::difference(ratio, margin)),
            words: one.words(margin),
        }
    }

    fn figures(&self) -> Vec<Figures> {
        let per_core = "Handshakes that a core could make if it did nothing else: 1 s over that end's own time for one. \
                        Longer is better; the whisker is the interval.";
        let counted = "Counted once under valgrind, without noise. It hides AVX-512, so this is another path than the one that was \
                       timed. Shorter is better.";
        vec![
            self.bars(Task::Handshake, Metric::ServerUsPerHandshake, "Server: handshakes per second of a core", per_core),
            self.bars(Task::Handshake, Metric::ClientUsPerHandshake, "Client: handshakes per second of a core", per_core),
            self.split(),
            self.bars(Task::Handshake, Metric::ServerInstructions, "Server: instructions of a handshake (AVX2 path)", counted),
            self.bars(Task::Handshake, Metric::ClientInstructions, "Client: instructions of a handshake (AVX2 path)", counted),
            self.bars(Task::Handshake, Metric::LockNsPerHandshake, "Time inside locks",
                "Nanoseconds for which a handshake holds the lock of ticket keys or session store. Where one thread at a time can, \
                 1 s over it is the most that any number of cores make; a lock that readers share sets no bound."),
            self.lines("threads", Metric::HandshakesPerSecond, "Handshakes per second of each thread, by threads",
                "Both ends in each thread. A level line scales; one that falls before the cores are used up shares something: a lock, a counter, the processor's own units."),
            self.lines("record", Metric::SendMbPerSecond, "Sending, by record size", "Plaintext bytes of a record against megabytes per second of the sender's time."),
            self.lines("record", Metric::ReceiveMbPerSecond, "Receiving, by record size", "The same of the receiver's time."),
            self.bars(Task::Transfer, Metric::SendMbPerSecond, "Sending", "Megabytes per second of the sender's time."),
            self.bars(Task::Transfer, Metric::ReceiveMbPerSecond, "Receiving", "Megabytes per second of the receiver's time."),
            self.bars(Task::Memory, Metric::KibPerSession, "Memory per session", "Resident KiB for each end that is open. Shorter is better."),
            self.bars(Task::Primitive, Metric::OperationUs, "Primitives", "Microseconds for an operation. Shorter is better."),
        ]
    }

    /// A panel for each scenario of a task, a bar for each engine. What a line shows is not shown again.
    fn bars(&self, task: Task, metric: Metric, title: &str, note: &str) -> Figures {
        let is_shown = |scenario: &&Scenario| {
            scenario.task() == Some(task)
                && !["threads", "record"].iter().any(|key| self.varies(scenario, key))
        };
        let scenarios: BTreeSet<&Scenario> =
            self.summary.cells.iter().map(|one| &one.cell.scenario).collect();
        let pictures = scenarios.into_iter().filter(is_shown).filter_map(|scenario| {
            let is_counted = Metric::COUNTED.contains(&metric);
            let cells: Vec<&CellFindings> =
                self.of_scenario(scenario).filter(|found| !(is_counted && found.cell.is_again())).collect();
            if !cells.iter().any(|cell| cell.values.contains_key(&metric)) {
                return None;
            }
            let bars: Vec<Bar<'_>> = cells.iter().map(|cell| self.bar(cell, metric)).collect();
            let axis =
                if is_rate_of_core(metric) { "handshakes per second of a core" } else { metric.unit() };
            let svg = bars::draw(&format!("{title}: {}", scenario.title()), axis, &bars, bars::reach(&bars))?;
            Some(Picture { caption: scenario.title(), svg })
        });
        Figures { title: title.to_owned(), note: note.to_owned(), pictures: pictures.collect() }
    }

    fn bar<'a>(&self, found: &'a CellFindings, metric: Metric) -> Bar<'a> {
        let located = found.values.get(&metric).map(|located| shown(metric, *located));
        let words = match located {
            None if Metric::COUNTED.contains(&metric) => {
                found.why_uncounted.clone().unwrap_or_else(|| "not counted".into())
            }
            None => found.why_invalid.clone().unwrap_or_else(|| "no valid run".into()),
            Some(Located { value, .. }) if Metric::COUNTED.contains(&metric) => {
                format!("{:.0} k", value / 1e3)
            }
            Some(Located { value, .. }) if metric == Metric::LockNsPerHandshake => {
                in_locks(self.plan, found, value)
            }
            Some(Located { value, low: Some(low), high: Some(high) }) => {
                format!("{} [{}, {}]", figure(value), figure(low), figure(high))
            }
            Some(Located { value, .. }) => figure(value),
        };
        Bar {
            name: &found.cell.name,
            look: self.look(&found.cell.name),
            value: located.map(|located| located.value),
            interval: located.and_then(|located| located.low.zip(located.high)),
            parts: Vec::new(),
            words,
        }
    }

    /// Of full handshakes: how much of the server's time its signature and its key exchange are.
    fn split(&self) -> Figures {
        let is_full = |found: &&CellFindings| found.cell.scenario.is_full_handshake();
        let scenarios: BTreeSet<&Scenario> =
            self.summary.cells.iter().filter(is_full).map(|one| &one.cell.scenario).collect();
        let pictures = scenarios.into_iter().filter_map(|scenario| {
            let bars: Vec<Bar<'_>> =
                self.of_scenario(scenario).filter_map(|found| self.split_bar(found)).collect();
            let svg = bars::draw(
                &format!("Split: {}", scenario.title()),
                "us of the server",
                &bars,
                bars::reach(&bars),
            )?;
            Some(Picture { caption: scenario.title(), svg })
        });
        Figures {
            title: "What a server's full handshake is made of".into(),
            note: "Microseconds: the signature (darkest), the key exchange (lighter), and all the rest: parsing, hashing, key \
                   schedule, records, memory (lightest). The first two are the engine's own primitives, measured apart."
                .into(),
            pictures: pictures.collect(),
        }
    }

    /// `None` where a primitive of the engine is not known.
    fn split_bar<'a>(&self, found: &'a CellFindings) -> Option<Bar<'a>> {
        let cell = &found.cell;
        let all = found.values.get(&Metric::ServerUsPerHandshake)?.value;
        let operation = |name: &str| {
            let is_it = |one: &&CellFindings| {
                one.cell.name == cell.name && one.cell.scenario.word("operation") == name
            };
            Some(self.summary.cells.iter().find(is_it)?.values.get(&Metric::OperationUs)?.value)
        };
        let sign = operation(&format!("{}-sign", cell.scenario.word("certificate")))?;
        let exchange = match cell.scenario.word("group") {
            "x25519mlkem768" => operation("x25519mlkem768-server")?,
            group => operation(group)?,
        };
        let rest = (all - sign - exchange).max(0.0);
        let share = |part: f64| (100.0 * part / all).round();
        let words = format!("{all:.1}: {} % + {} % + {} %", share(sign), share(exchange), share(rest));
        let (name, look) = (&cell.name, self.look(&cell.name));
        Some(Bar { name, look, value: Some(all), interval: None, parts: vec![sign, exchange, rest], words })
    }

    fn of_scenario<'a>(&'a self, scenario: &'a Scenario) -> impl Iterator<Item = &'a CellFindings> {
        self.summary.cells.iter().filter(move |one| one.cell.scenario == *scenario)
    }

    /// Whether scenarios differ from this one in that key alone.
    fn varies(&self, scenario: &Scenario, key: &str) -> bool {
        let without = scenario.without(key);
        scenario.get(key).is_some()
            && self
                .plan
                .cells
                .iter()
                .any(|cell| cell.scenario != *scenario && cell.scenario.without(key) == without)
    }

    /// A panel for each set of scenarios that differ in a number alone, a line for each engine.
    fn lines(&self, key: &str, metric: Metric, title: &str, note: &str) -> Figures {
        let mut panels: BTreeMap<Scenario, Vec<&CellFindings>> = BTreeMap::new();
        for found in self.summary.cells.iter().filter(|one| self.varies(&one.cell.scenario, key)) {
            panels.entry(found.cell.scenario.without(key)).or_default().push(found);
        }
        let pictures = panels.iter().filter_map(|(scenario, cells)| {
            let svg = self.plot(&format!("{title}: {}", scenario.title()), key, metric, cells)?;
            Some(Picture { caption: scenario.title(), svg })
        });
        Figures { title: title.to_owned(), note: note.to_owned(), pictures: pictures.collect() }
    }

    fn plot(&self, title: &str, key: &str, metric: Metric, cells: &[&CellFindings]) -> Option<String> {
        let mut lines: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
        for found in cells {
            let x = found.cell.scenario.number(key)? as f64;
            let Some(located) = found.values.get(&metric) else { continue };
            // Of threads, the rate of each.
            let of_each = if key == "threads" { 1.0 / x } else { 1.0 };
            let interval = located.low.zip(located.high).map(|(low, high)| (low * of_each, high * of_each));
            let point = Point { x, y: located.value * of_each, interval, is_marked: true };
            lines.entry(&found.cell.name).or_default().push(point);
        }
        let lines: Vec<Line<'_>> = lines
            .into_iter()
            .map(|(name, mut points)| {
                points.sort_by(|left, right| left.x.total_cmp(&right.x));
                Line { name, look: self.look(name), points }
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

    /// What each engine says of itself.
    fn engines(&self) -> Vec<About> {
        let about = |(name, facts): (&String, &Facts)| {
            let Facts { crypto, compiler, allocator, features, .. } = facts;
            let features = if features.is_empty() { "not told".into() } else { features.join(" ") };
            let words = self.machine.about.get(name).map_or("", String::as_str);
            About {
                title: name.clone(),
                version: facts.tls.clone(),
                about: format!(
                    "{words} Crypto: {crypto}; compiler: {compiler}; allocator: {allocator}; features used: {features}."
                ),
                files: Vec::new(),
            }
        };
        self.summary.facts.iter().map(about).collect()
    }
}

/// A time per handshake is shown as how many a core could make.
fn shown(metric: Metric, located: Located) -> Located {
    let inverse = |us: f64| 1e6 / us;
    match is_rate_of_core(metric) {
        true => Located {
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

/// How each cell's last run can be made by hand.
fn reproductions(plan: &StacksPlan, records: &[StackRun]) -> Vec<Reproduction> {
    let mut last: BTreeMap<&StackCell, &StackRun> = BTreeMap::new();
    last.extend(records.iter().map(|record| (&record.run.cell, record)));
    let one = |cell: &StackCell| {
        let run = last.get(cell)?;
        let words: Vec<String> = run.environment.iter().chain(&run.command).map(|word| quote(word)).collect();
        Some(Reproduction {
            mode: cell.scenario.word("do").to_owned(),
            cell: cell.to_string(),
            commands: format!("{} <<'SCENARIO'\n{}SCENARIO", words.join(" "), run.scenario),
        })
    };
    plan.cells.iter().filter_map(one).collect()
}

fn machine_facts(plan: &StacksPlan, machine: &Machine) -> Vec<(&'static str, String)> {
    let mut facts = view::hardware(machine);
    facts.push(("run", "a fresh process for each; both ends in it, in memory, without sockets".into()));
    facts.push(("order", format!("drawn from seed {}", plan.experiment.seed)));
    facts
}
