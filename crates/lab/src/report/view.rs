//! From plan, summary and runs to what the page shows. What the experiment's model is like is known here alone.

use super::chart::palette::Look;
use super::chart::percentiles;
use super::chart::plot::Point;
use super::markup::quote;
use super::model::{
    About, Cell, Claim, Comparison, Curve, Family, Group, InvalidRun, Outcome, Report, Reproduction,
    Standing, Subject,
};
use crate::claims::{self, ClaimVerdict, Evidence, Finding};
use crate::comparison::{self, Verdict};
use crate::doctor;
use crate::experiment::Load;
use crate::machine::Machine;
use crate::metric::{Better, Metric};
use crate::pairing::valid;
use crate::plan::{self, Plan};
use crate::run::RunRecord;
use crate::stats;
use crate::summary::{CellSummary, Summary, by_cell, latencies};
use crate::table::{QUICK, groups, labels};
use crate::vary::Vary;
use crate::verdict;
use std::collections::BTreeMap;
use weir_load::plural;

/// Points of a course at most; longer windows have several seconds in each.
const COURSE: usize = 120;

/// Seconds below which there is no course to see.
const LEAST: usize = 3;

type Runs<'a> = [(&'a plan::Cell, Vec<&'a RunRecord>)];

/// Everything that the page shows.
pub(crate) fn report(
    plan: &Plan,
    summary: &Summary,
    records: &[RunRecord],
    settings: &[(String, String)],
) -> Report {
    let (claims, claims_unrun) = claims(&summary.claims, &str::to_owned);
    let view = View { plan, summary, subjects: subjects(plan, summary), vary: Vary::of(plan) };
    let runs = by_cell(plan, records);
    let experiment = &plan.experiment;
    Report {
        name: experiment.name.clone(),
        question: experiment.question.clone(),
        quick: experiment.quick.then(|| QUICK.to_owned()),
        labels: labels(plan, summary),
        constants: view.vary.constants(plan),
        analysis: paragraphs(experiment.analysis.as_deref()),
        groups: view.groups(&runs),
        families: view.families(),
        figures: Vec::new(),
        claims,
        claims_unrun,
        invalid: records.iter().filter(|run| !run.validity.is_valid()).map(invalid).collect(),
        reproductions: runs.iter().map(|(cell, runs)| reproduction(plan, cell, runs)).collect(),
        targets: targets(summary, settings),
        machine: machine(plan, summary),
        findings: findings(&summary.machine),
        subjects: view.subjects,
    }
}

/// An author's text, by paragraph.
pub(crate) fn paragraphs(text: Option<&str>) -> Vec<String> {
    let paragraphs = text.into_iter().flat_map(|text| text.split("\n\n"));
    paragraphs.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
}

/// What the doctor did not find good.
pub(crate) fn findings(machine: &Machine) -> Vec<String> {
    let found = machine.doctor.iter().filter(|finding| finding.level != doctor::Level::Good);
    found.map(|finding| format!("{}: {}. {}", finding.id, finding.value, finding.advice)).collect()
}

struct View<'a> {
    plan: &'a Plan,
    summary: &'a Summary,
    subjects: Vec<Subject>,
    vary: Vary,
}

/// The targets in the order of their first cell; the second of the A/A pair looks like its target.
fn subjects(plan: &Plan, summary: &Summary) -> Vec<Subject> {
    let mut names: Vec<&plan::Cell> = Vec::new();
    for cell in &plan.cells {
        if !names.iter().any(|seen| seen.name == cell.name) {
            names.push(cell);
        }
    }
    let mut subjects: Vec<Subject> = Vec::new();
    let mut next = 0;
    for cell in names {
        let of_pair = |subject: &&Subject| cell.is_again() && subject.name == cell.subject();
        let pair = subjects.iter().find(of_pair);
        let look = match pair {
            Some(subject) => Look { is_again: true, ..subject.look },
            None => {
                next += 1;
                Look { place: next - 1, is_again: false }
            }
        };
        subjects.push(Subject {
            name: cell.name.clone(),
            version: summary.machine.versions.get(&cell.target).cloned().unwrap_or_default(),
            look,
            is_baseline: plan.baseline.as_ref() == Some(&cell.name),
        });
    }
    subjects
}

impl View<'_> {
    fn subject(&self, name: &str) -> usize {
        self.subjects.iter().position(|subject| subject.name == name).unwrap_or(0)
    }

    fn look(&self, name: &str) -> Look {
        self.subjects
            .get(self.subject(name))
            .map_or(Look { place: 0, is_again: false }, |subject| subject.look)
    }

    /// All groups, those of each load in the experiment's order of modes.
    fn groups(&self, runs: &Runs<'_>) -> Vec<Group> {
        let mut all = Vec::new();
        let any_gateway = self.plan.cells.iter().any(|cell| cell.mode.upstream().is_some());
        for group in groups(self.plan) {
            for load in [Load::EqualRate, Load::Saturated] {
                let group = plan::Group { load, ..group.clone() };
                let own: Vec<_> = runs.iter().filter(|(cell, _)| cell.group() == group).collect();
                if own.is_empty() {
                    continue;
                }
                let cells: Vec<Cell> = own.iter().filter_map(|(cell, _)| self.cell(cell)).collect();
                let has_curves = group.mode.upstream().is_some() || !any_gateway;
                all.push(Group {
                    mode: group.mode.to_string(),
                    mode_words: group.mode.describe(),
                    users: group.connections,
                    conditions: self.vary.conditions(&group, None),
                    users_vary: self.vary.users,
                    is_saturated: load == Load::Saturated,
                    rate: own.iter().find_map(|(cell, _)| self.plan.rate(cell)),
                    is_calibrated: own.iter().all(|(cell, _)| self.plan.is_calibrated(cell)),
                    unit: group.case.unit(),
                    cells,
                    curves: if has_curves { self.curves(&group, runs) } else { Vec::new() },
                    courses: own.iter().filter_map(|(cell, runs)| self.course(cell, runs)).collect(),
                });
            }
        }
        all
    }

    fn cell(&self, cell: &plan::Cell) -> Option<Cell> {
        let found: &CellSummary = self.summary.cell(cell, cell.load)?;
        Some(Cell {
            subject: self.subject(&cell.name),
            has_gateway: cell.mode.upstream().is_some(),
            per_second: found.per_second(),
            mean_us: found.mean_us,
            sd_us: found.sd_us,
            p50_us: found.p50_us,
            p95_us: found.p95_us,
            p99_us: found.p99_us,
            error_ratio: found.error_ratio,
            cpu_us: found.cpu_us(),
            cpu_interval: found.cpu_us_interval(),
            origin_cpu_us: found.origin_cpu_us(),
            load_cpu_us: found.load_cpu_us(),
            utilisation: found.utilisation,
            rss_kib: found.rss_kib,
            rss_end_kib: found.rss_end_kib,
            switches_per_request: found.switches_per_request,
            gc_throughput_percent: found.gc_throughput_percent,
            after_full_gc_kib: found.after_full_gc_kib,
            limit: found.limit.map(|limit| limit.to_string()),
            valid_runs: found.blocks,
            runs: found.blocks + found.invalid_runs,
            validity: found.validity.to_string(),
        })
    }

    /// The latencies of a group, and without a gateway the least that a client can see on this machine.
    fn curves(&self, group: &plan::Group, runs: &Runs<'_>) -> Vec<Curve> {
        let direct = plan::Group { mode: group.mode.without_gateway(), ..group.clone() };
        let shown = runs.iter().filter(|(cell, _)| cell.group() == *group || cell.group() == direct);
        let curve = |(cell, runs): &(&plan::Cell, Vec<&RunRecord>)| {
            let valid = valid(runs);
            let all = latencies(&valid)?;
            let loads = valid.iter().filter_map(|run| run.observation.load.as_ref());
            let known = loads.filter_map(|load| load.response.censored_from_us).fold(f64::INFINITY, f64::min);
            let points = percentiles::curve(|quantile| all.quantile_us(quantile).filter(|us| *us < known));
            Some(Curve { name: cell.name.clone(), look: self.look(&cell.name), points })
        };
        shown.filter_map(curve).filter(|curve| !curve.points.is_empty()).collect()
    }

    /// The median over the valid runs of each second.
    fn course(&self, cell: &plan::Cell, runs: &[&RunRecord]) -> Option<Curve> {
        let (handshakes, saturated) = (cell.case.is_handshake(), cell.load == Load::Saturated);
        let mut by_second: BTreeMap<usize, (f64, Vec<f64>)> = BTreeMap::new();
        for load in valid(runs).iter().filter_map(|run| run.observation.load.as_ref()) {
            for (index, second) in load.seconds.iter().enumerate() {
                let next = load.seconds.get(index + 1).map_or(load.window_s, |next| next.at_s);
                let width = next - second.at_s;
                let count = if handshakes { second.handshakes } else { second.requests };
                let value = if saturated { Some(count as f64 / width) } else { second.p50_us };
                // What is left of a window that is not whole seconds is too short to be put beside them.
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
        Some(Curve { name: cell.name.clone(), look: self.look(&cell.name), points: points.collect() })
    }

    /// By load, metric and what is compared, as they are sorted: CPU at the equal rate comes first where there is one.
    fn families(&self) -> Vec<Family> {
        type Key<'a> = (Load, Metric, Option<&'a str>);
        let mut families: BTreeMap<Key<'_>, Vec<Comparison>> = BTreeMap::new();
        for one in &self.summary.comparisons {
            families
                .entry((one.load, one.metric, one.factor.as_deref()))
                .or_default()
                .push(self.comparison(one));
        }
        let family = |((load, metric, factor), comparisons): (Key<'_>, Vec<Comparison>)| {
            let at = match load {
                Load::EqualRate => "at one equal rate",
                Load::Saturated => "at saturation",
            };
            let whose = if metric.is_cpu() { " (the gateway's)" } else { "" };
            let by = factor.map_or_else(String::new, |factor| format!(", by {factor}"));
            let title = format!("{}{whose}, {at}{by}", metric.title());
            let is_floor = |one: &comparison::Comparison| {
                one.aa && (one.load, one.metric) == (load, metric) && one.ratio.reach().is_some()
            };
            let has_floor = self.summary.comparisons.iter().any(is_floor);
            Family { title, is_less_better: metric.better() == Better::Less, has_floor, comparisons }
        };
        families.into_iter().map(family).collect()
    }

    fn comparison(&self, one: &comparison::Comparison) -> Comparison {
        let comparison::Comparison { case, mode, connections, bytes, load, .. } = *one;
        let group = plan::Group { case, mode, connections, bytes, load, factors: one.factors.clone() };
        let margin = self.plan.experiment.margin;
        // Where levels of a factor are compared, the level follows the target's name.
        let subject = one.factor.as_ref().and_then(|factor| one.target.split(&format!(" {factor}=")).next());
        Comparison {
            mode: mode.to_string(),
            group: self.vary.row(&group, one.factor.as_deref()),
            target: one.target.clone(),
            look: self.look(subject.unwrap_or(&one.target)),
            baseline: one.baseline.clone(),
            is_aa: one.aa,
            ratio: one.ratio.value,
            interval: one.ratio.interval(),
            coverage: one.ratio.coverage,
            p_adjusted: one.ratio.p_adjusted,
            blocks: one.blocks,
            outcome: outcome(one.ratio.verdict, one.ratio.value, one.metric),
            is_indication: one.ratio.is_indication(),
            difference: one.ratio.value.map_or_else(String::new, |ratio| verdict::difference(ratio, margin)),
            words: one.verdict_text(margin),
        }
    }
}

/// What a verdict on such a ratio says.
pub(crate) fn outcome(verdict: Verdict, ratio: Option<f64>, metric: Metric) -> Outcome {
    match (verdict, ratio) {
        (Verdict::Different, Some(ratio)) if !metric.is_worse(ratio) => Outcome::Better,
        (Verdict::Different, _) => Outcome::Worse,
        (Verdict::Equivalent, _) => Outcome::Equivalent,
        (Verdict::Undecided, _) => Outcome::Undecided,
    }
}

/// The claims that are shown, and a line about the others. `called` says what a person calls a cell of such a name.
pub(crate) fn claims(findings: &[Finding], called: &dyn Fn(&str) -> String) -> (Vec<Claim>, String) {
    let (shown, unrun) = claims::shown(findings);
    (shown.into_iter().map(|finding| claim(finding, called)).collect(), unrun.unwrap_or_default())
}

fn claim(finding: &Finding, called: &dyn Fn(&str) -> String) -> Claim {
    Claim {
        id: finding.id.clone(),
        source: finding.source.clone(),
        says: finding.says.clone(),
        asked: finding.asked_text(),
        figures: finding.figures_text(),
        verdict: finding.verdict_text(),
        standing: match finding.verdict {
            ClaimVerdict::Confirmed => Standing::Confirmed,
            ClaimVerdict::Contradicted => Standing::Contradicted,
            ClaimVerdict::Undecided | ClaimVerdict::NotTestable => Standing::Open,
        },
        why: finding.why.clone(),
        evidence: finding.cells.iter().map(|one| evidence(one, called)).collect(),
    }
}

/// `request.h1-h1c.c100.b1000.saturated.weir against ..nginx: 0.93 [0.90, 0.97], 12 blocks: confirmed`.
fn evidence(one: &Evidence, called: &dyn Fn(&str) -> String) -> String {
    let against =
        one.against.as_ref().map_or_else(String::new, |other| format!(" against {}", called(other)));
    let notes: Vec<&str> = one.note.iter().chain(&one.remark).map(String::as_str).collect();
    let note = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    let (cell, blocks) = (called(&one.cell), plural(one.blocks.into(), "block"));
    format!("{cell}{against}: {}, {blocks}: {}{note}", one.value_text(), one.verdict)
}

fn invalid(run: &RunRecord) -> InvalidRun {
    InvalidRun { id: run.run.id.clone(), why: run.validity.to_string() }
}

fn reproduction(plan: &Plan, cell: &plan::Cell, runs: &[&RunRecord]) -> Reproduction {
    let mut commands = command(plan, cell);
    for process in runs.last().iter().flat_map(|run| &run.observation.processes) {
        let cores = crate::placement::list(&process.cores);
        let words: Vec<String> = process.command.iter().map(|word| quote(word)).collect();
        commands.push_str(&format!("\n\n# {} on core {cores}\n{}", process.role, words.join(" ")));
    }
    Reproduction { mode: cell.mode.to_string(), cell: cell.to_string(), commands }
}

fn command(plan: &Plan, cell: &plan::Cell) -> String {
    let mut words = vec!["weir run".to_owned(), plan.file.display().to_string()];
    words.extend(plan.arguments.iter().map(|word| quote(word)));
    let plan::Cell { name, mode, connections, bytes, load, factors, .. } = cell;
    let mut only = format!("name={name},mode={mode},load={load},connections={connections},bytes={bytes}");
    only.extend(factors.iter().map(|(key, level)| format!(",{key}={level}")));
    words.extend(["--only".into(), format!("'{}'", only.replace('\'', "'\\''"))]);
    if let Some(rate) = plan.rate(cell).filter(|_| !factors.contains_key("rate")) {
        words.push(format!("--set rate={rate:?}"));
    }
    words.push("--blocks 1".into());
    words.join(" ")
}

fn targets(summary: &Summary, settings: &[(String, String)]) -> Vec<About> {
    let machine = &summary.machine;
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

fn machine(plan: &Plan, summary: &Summary) -> Vec<(&'static str, String)> {
    let (machine, experiment) = (&summary.machine, &plan.experiment);
    let mut facts = hardware(machine);
    if let Some(placement) = &machine.placement {
        let [gateway, origin, load] =
            [&placement.cores.gateway, &placement.cores.origin, &placement.cores.load]
                .map(|c| crate::placement::list(c));
        facts.push(("cores", format!("gateway {gateway}; origin {origin}; load {load}")));
    }
    if let Ok(conditions) = experiment.any_conditions() {
        let tls = &conditions.tls;
        let [version, suite, group, certificate] =
            [tls.version.name(), tls.suite.name(), tls.group.name(), tls.certificate.signature()];
        facts.push(("TLS", format!("{version} {suite}, {group}, {certificate}, {} tickets", tls.tickets)));
        let (warmup, window) = (conditions.warmup_ms, conditions.window_ms);
        let order = format!("order drawn from seed {}", experiment.seed);
        facts.push(("run", format!("fresh processes, warm-up {warmup} ms, window {window} ms, {order}")));
    }
    let factor = |factor: &crate::experiment::Factor| {
        let levels: Vec<String> = factor.names().iter().map(ToString::to_string).collect();
        format!("{}: {}", factor.key, levels.join(" | "))
    };
    facts.push(("factors", experiment.factors.iter().map(factor).collect::<Vec<_>>().join("; ")));
    if !experiment.leave_out.is_empty() {
        let left_out = experiment.leave_out.iter().map(ToString::to_string).collect::<Vec<_>>();
        facts.push(("left out", left_out.join("; ")));
    }
    facts.push(("versions", versions(summary)));
    facts
}

/// What it ran on.
pub(crate) fn hardware(machine: &Machine) -> Vec<(&'static str, String)> {
    let virtual_words = if machine.is_virtual { ", virtual" } else { "" };
    let (features, cores) = (machine.cpu_features.join(" "), machine.cores.len());
    let mut facts = vec![
        ("processor", format!("{} ({cores} cores usable{virtual_words}; {features})", machine.cpu)),
        ("kernel, memory", format!("{}, {:.1} GiB", machine.kernel, machine.memory_kib as f64 / 1_048_576.0)),
        ("network", machine.network.clone()),
    ];
    facts.extend(machine.governor.clone().map(|governor| ("governor", governor)));
    facts
}

fn versions(summary: &Summary) -> String {
    let all = summary.machine.versions.iter().map(|(name, version)| format!("{name} {version}"));
    all.collect::<Vec<_>>().join("; ")
}
