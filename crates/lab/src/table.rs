//! The findings on a terminal, within 100 columns.

use crate::claims::{self, Finding};
use crate::comparison::Comparison;
use crate::experiment::Load;
use crate::plan::{Cell, Group, Plan};
use crate::stats::{BLOCKS_FOR_INTERVAL, BLOCKS_FOR_VERDICT, ErrorRate, Weight};
use crate::summary::{CellSummary, Summary};
use crate::vary::Vary;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use weir_load::plural;
use weir_report::text::{columns, milliseconds, number};

pub use weir_report::text::WIDTH;
pub(crate) use weir_report::text::{flow, short, wrap};

/// With more pairs than this the label would be a paragraph.
const MOST_RATIOS: usize = 6;

/// Of a claim about more cells the report has the figures.
const MOST_CELLS: usize = 3;

/// The first line of whatever comes from a quick run.
pub(crate) const QUICK: &str =
    "QUICK (--quick): a subset of the cells, fewer blocks and shorter windows than the experiment's own.";

const LEGEND: &str = "
equal, sat: CPU microseconds of the gateway for each, at the equal rate and at saturation.
origin: the same of the test server. mean, p99: milliseconds, at the equal rate where there is one.
Rate, util (share of its core that the gateway used), RSS (MiB) and limit: at saturation.
";

/// Labels, one table for each mode, one line for each comparison.
pub fn render(plan: &Plan, summary: &Summary) -> String {
    let mut text = String::new();
    if plan.experiment.quick {
        wrap(&mut text, QUICK);
    }
    for label in labels(plan, summary) {
        wrap(&mut text, &label);
    }
    for group in groups(plan) {
        text.push('\n');
        table(&mut text, plan, summary, &group);
    }
    text.push_str(LEGEND);
    verdicts(&mut text, plan, summary);
    text
}

/// What has to be known before any number is read.
pub fn labels(plan: &Plan, summary: &Summary) -> Vec<String> {
    let mut labels = Vec::new();
    let placement = summary.machine.placement.as_ref();
    if let Some(note) = placement.and_then(|placement| placement.note.as_ref()) {
        labels.push(format!("CORES: {note}."));
    }
    labels.push(weight(plan, summary));
    labels.extend(summary.foreign.label());
    let sharing = placement.and_then(crate::placement::Placement::sharing);
    labels.push(format!(
        "Client, gateway and origin ran on one machine over {}{}.",
        summary.machine.network,
        sharing.map_or_else(String::new, |sharing| format!("; {sharing}")),
    ));
    // Sorted by load and metric.
    let pairs: Vec<&Comparison> = summary.comparisons.iter().filter(|one| one.aa).collect();
    let same =
        |left: &&Comparison, right: &&Comparison| (left.load, left.metric) == (right.load, right.metric);
    labels.extend(pairs.chunk_by(same).filter_map(noise_floor));
    match &plan.baseline {
        Some(_) => {}
        None => labels.push(no_baseline(&plan.experiment.baseline, &plan.absent)),
    }
    if let Some(aa) = &plan.experiment.aa
        && !plan.cells.iter().any(Cell::is_again)
    {
        labels.push(no_pair(aa, &plan.absent));
    }
    for (name, why) in &plan.absent {
        labels.push(format!("{name}: absent: {why}."));
    }
    labels.extend(plan.dropped.iter().map(|line| format!("Not run: {line}.")));
    labels.extend(extended(&plan.extended, plan.blocks.len()));
    labels.extend(summary.killed.iter().map(|line| format!("{line}.")));
    labels
}

/// Why nothing is compared with a baseline: what became of each candidate.
pub(crate) fn no_baseline(candidates: &[String], absent: &BTreeMap<String, String>) -> String {
    let what = |name: &String| match absent.contains_key(name.split('+').next().unwrap_or_default()) {
        true => format!("{name} is absent"),
        false => format!("no cell of {name} is among those that are run"),
    };
    let each: Vec<String> = candidates.iter().map(what).collect();
    let why = if each.is_empty() { "the experiment has none".into() } else { each.join("; ") };
    format!("No baseline, so there are no ratios to one: {why}.")
}

/// Why there is no noise floor though the experiment names what is run twice.
pub(crate) fn no_pair(aa: &str, absent: &BTreeMap<String, String>) -> String {
    let why = match absent.contains_key(aa) {
        true => format!("{aa}, which would be run twice, is absent"),
        false => format!("the A/A pair of {aa} is not among the cells that are run"),
    };
    format!("No noise floor: {why}. What is called different may be noise.")
}

/// How much the comparisons weigh, by the blocks that they rest on.
fn weight(plan: &Plan, summary: &Summary) -> String {
    let (valid, planned) = (summary.blocks(), plan.blocks.len());
    let (least, most) = (*valid.start(), *valid.end());
    let valid = if least == most { most.to_string() } else { format!("{least} to {most}") };
    let blocks = format!("{valid} valid of {}", plural(planned as u64, "planned block"));
    // Where enough were planned, more of them are not what is missing.
    let more = if planned < BLOCKS_FOR_VERDICT { " (--blocks 12)" } else { "" };
    match summary.weight {
        Weight::Verdict if (least as usize) < BLOCKS_FOR_VERDICT => {
            format!("Verdict: {blocks}; what rests on fewer than {BLOCKS_FOR_VERDICT} says so.")
        }
        Weight::Verdict => format!("Verdict: {blocks}."),
        Weight::Indication => format!(
            "Indication: {blocks}, not adjusted for the number of comparisons. A verdict needs {BLOCKS_FOR_VERDICT} or \
             more{more}."
        ),
        Weight::None => format!("{blocks}: no interval and no verdict below {BLOCKS_FOR_INTERVAL}{more}."),
    }
}

/// That more blocks were added after somebody could have looked, and what is done about it.
pub(crate) fn extended(before: &[u32], blocks: usize) -> Option<String> {
    let first = before.first()?;
    let times = match before.len() {
        1 => "once".to_owned(),
        many => format!("{many} times"),
    };
    Some(format!(
        "Extended {times}, from {first} to {blocks} blocks, after a look at the result was possible. Whoever looks more often \
         finds more by chance: intervals and verdicts are held to an error rate of {:.3} instead of {}.",
        ErrorRate::of_looks(1 + before.len()).get(),
        ErrorRate::default().get(),
    ))
}

/// What the A/A pairs of one metric and load show.
fn noise_floor(pairs: &[&Comparison]) -> Option<String> {
    let Comparison { metric, load, baseline, .. } = pairs.first()?;
    let ratios: Vec<String> =
        pairs.iter().map(|pair| format!("{} {}", pair.mode, pair.ratio.text())).collect();
    let each = match ratios.len() {
        few if few <= MOST_RATIOS => format!("; {}", ratios.join(", ")),
        many => format!(" over {many} pairs"),
    };
    let known: Vec<f64> = pairs.iter().filter_map(|pair| pair.ratio.reach()).collect();
    let floor = match known.iter().copied().reduce(f64::max) {
        Some(floor) => format!("{:.1} %", floor.exp_m1() * 100.0),
        None => "not known".into(),
    };
    let missing = match pairs.len() - known.len() {
        0 => String::new(),
        some => format!(" Nothing is called different where it has no value: {some} of {}.", pairs.len()),
    };
    Some(format!("Noise floor (A/A, {baseline} against itself, {metric}, {load}): {floor}{each}.{missing}"))
}

/// The groups of a plan without their load, in the experiment's order of modes.
pub fn groups(plan: &Plan) -> Vec<Group> {
    let mut seen = BTreeSet::new();
    let mut groups = Vec::new();
    for mode in plan.experiment.modes() {
        for cell in plan.cells.iter().filter(|cell| cell.mode == mode) {
            let group = Group { load: Load::Saturated, ..cell.group() };
            if seen.insert(group.clone()) {
                groups.push(group);
            }
        }
    }
    groups
}

/// The rows of a group: target, its cell at the equal rate, its cell at saturation.
pub fn rows<'a>(
    plan: &'a Plan,
    summary: &'a Summary,
    group: &Group,
) -> Vec<(&'a str, Option<&'a CellSummary>, Option<&'a CellSummary>)> {
    let mut rows: Vec<(&str, _, _)> = Vec::new();
    for cell in &plan.cells {
        let same = Group { load: Load::Saturated, ..cell.group() } == *group;
        if same && !rows.iter().any(|(name, _, _)| *name == cell.name) {
            let of = |load| summary.cell(cell, load);
            rows.push((&cell.name, of(Load::EqualRate), of(Load::Saturated)));
        }
    }
    rows
}

/// The comparison of a target's CPU, at the equal rate where there is one.
pub fn headline<'a>(summary: &'a Summary, target: &str, group: &Group) -> Option<&'a Comparison> {
    let mut of_target = summary.comparisons.iter().filter(|comparison| {
        comparison.metric.is_cpu()
            && (comparison.target == target && comparison.factor.is_none())
            && (comparison.mode, comparison.connections, comparison.bytes, &comparison.factors)
                == (group.mode, group.connections, group.bytes, &group.factors)
    });
    // Sorted by load, and the equal rate comes first.
    of_target.next()
}

fn table(text: &mut String, plan: &Plan, summary: &Summary, group: &Group) {
    let rows = rows(plan, summary, group);
    let rate = rows.iter().find_map(|(_, equal, _)| equal.and_then(|cell| cell.rate));
    let rate = rate.map_or_else(String::new, |rate| format!(", equal rate {rate:.0}/s"));
    let Group { mode, case, .. } = *group;
    let _ = writeln!(text, "{mode} ({}), {group}{rate}", mode.describe());
    let per_second = if case.is_handshake() { "hs/s" } else { "req/s" };
    let titles = [
        "target",
        per_second,
        "mean",
        "p99",
        "err%",
        "equal",
        "sat",
        "util",
        "origin",
        "RSS",
        "limit",
        "ratio, CPU",
    ];
    let mut lines = vec![titles.map(str::to_owned)];
    for (name, equal, saturated) in rows {
        let timed = equal.or(saturated);
        lines.push([
            name.to_owned(),
            number(saturated.and_then(CellSummary::per_second), 0),
            milliseconds(timed.and_then(|cell| cell.mean_us)),
            milliseconds(timed.and_then(|cell| cell.p99_us)),
            number(worst_error(equal, saturated), 2),
            number(equal.and_then(CellSummary::cpu_us), 1),
            number(saturated.and_then(CellSummary::cpu_us), 1),
            number(saturated.and_then(|cell| cell.utilisation), 2),
            number(timed.and_then(CellSummary::origin_cpu_us), 1),
            number(saturated.or(equal).and_then(|cell| cell.rss_kib).map(|kib| kib / 1024.0), 1),
            saturated.and_then(|cell| cell.limit).map_or_else(|| "-".into(), |limit| limit.to_string()),
            ratio(plan, summary, name, group),
        ]);
    }
    columns(text, &lines);
}

/// The larger error share of the two cells, in percent.
fn worst_error(equal: Option<&CellSummary>, saturated: Option<&CellSummary>) -> Option<f64> {
    let of = |cell: Option<&CellSummary>| cell.and_then(|cell| cell.error_ratio);
    of(equal).into_iter().chain(of(saturated)).reduce(f64::max).map(|ratio| ratio * 100.0)
}

fn ratio(plan: &Plan, summary: &Summary, name: &str, group: &Group) -> String {
    if plan.baseline.as_deref() == Some(name) && group.mode.upstream().is_some() {
        return "baseline".into();
    }
    match headline(summary, name, group) {
        Some(comparison) => comparison.ratio.text(),
        None => "-".into(),
    }
}

fn verdicts(text: &mut String, plan: &Plan, summary: &Summary) {
    let vary = Vary::of(plan);
    let mut heading = None;
    for comparison in &summary.comparisons {
        let this = (comparison.load, comparison.metric);
        if heading != Some(this) {
            heading = Some(this);
            let _ = writeln!(text, "\n{}, {}:", comparison.metric.title(), comparison.load);
        }
        let row = vary.row(&comparison.group(), comparison.factor.as_deref());
        wrap(text, &format!("  {row}: {}", comparison.line(plan.experiment.margin)));
    }
    claims(text, &summary.claims, &str::to_owned);
    let invalid: u32 = summary.cells.iter().map(|cell| cell.invalid_runs).sum();
    if invalid > 0 {
        let _ = writeln!(text, "\n{}, kept and not averaged:", plural(invalid.into(), "invalid run"));
        for cell in summary.cells.iter().filter(|cell| cell.invalid_runs > 0) {
            let total = cell.blocks + cell.invalid_runs;
            let why =
                if cell.validity.is_valid() { "see the report".into() } else { cell.validity.to_string() };
            let line = format!(
                "  {} {} {}: {} of {}: {why}",
                cell.target,
                cell.mode,
                cell.load,
                cell.invalid_runs,
                plural(total.into(), "run")
            );
            wrap(text, &line);
        }
    }
}

/// What became of each claim, with the figure here beside the source's and the original's. `called` says what a person calls
/// a cell of such a name.
pub(crate) fn claims(text: &mut String, findings: &[Finding], called: &dyn Fn(&str) -> String) {
    if findings.is_empty() {
        return;
    }
    let (shown, unrun) = claims::shown(findings);
    text.push_str("\nClaims:\n");
    if let Some(unrun) = unrun {
        flow(text, &unrun, 2, 6);
    }
    for claim in shown {
        flow(text, &format!("{} ({}): {}", claim.id, claim.source, claim.says), 2, 6);
        flow(text, &format!("{}: {}", claim.verdict_text(), claim.why), 6, 10);
        if claim.cells.len() <= MOST_CELLS {
            for one in &claim.cells {
                flow(text, &format!("here {}: {}", one.value_text(), called(&one.cell)), 6, 10);
            }
        }
        let told = [("asked", claim.asked_text()), ("told", claim.figures_text())];
        for (what, words) in told.iter().filter(|(_, words)| !words.is_empty()) {
            flow(text, &format!("{what}: {words}"), 6, 10);
        }
    }
}
