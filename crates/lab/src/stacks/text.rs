//! Plan, list and findings in words, within 100 columns.

use super::cell::StackCell;
use super::engine::{Engine, Variant};
use super::plan::StacksPlan;
use super::summary::{CellFindings, Contrast, Located, StacksSummary};
use crate::metric::Metric;
use crate::progress::duration;
use crate::stats::{BLOCKS_FOR_INTERVAL, BLOCKS_FOR_VERDICT, Weight};
use crate::table::{QUICK, WIDTH, claims, extended, flow, no_baseline, no_pair, wrap};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;
use weir_load::plural;

/// What has to be known before any number is read.
pub(super) fn labels(plan: &StacksPlan, summary: &StacksSummary) -> Vec<String> {
    let blocks = plural(plan.blocks.len() as u64, "block");
    let mut labels = vec![match summary.weight {
        Weight::Verdict => format!("Verdict: {blocks}."),
        Weight::Indication => format!(
            "Indication: {blocks}, not adjusted for the number of comparisons. A verdict needs \
             {BLOCKS_FOR_VERDICT} or more (--blocks 12)."
        ),
        Weight::None => {
            format!("{blocks}: no interval and no verdict below {BLOCKS_FOR_INTERVAL} (--blocks 12).")
        }
    }];
    labels.extend(summary.foreign.label());
    labels.push("Both ends in one process, in memory: no sockets, no network, no HTTP.".into());
    for (metric, floor) in noise(summary) {
        labels.push(format!("Noise floor (A/A, {}): {floor}.", metric.title()));
    }
    labels.extend(pair(plan));
    if plan.baseline.is_none() && !plan.experiment.baseline.is_empty() {
        labels.push(no_baseline(&plan.experiment.baseline, &plan.absent));
    }
    labels.extend(extended(&plan.extended, plan.blocks.len()));
    labels.extend(summary.drops.iter().map(|drop| format!("{}.", drop.text())));
    labels.extend(counting(summary));
    labels.extend(plan.absent.iter().map(|(name, why)| format!("{name}: absent: {why}.")));
    if !plan.unable.is_empty() {
        let some: Vec<String> =
            plan.unable.iter().take(3).map(|(cell, why)| format!("{cell} ({why})")).collect();
        let more = if plan.unable.len() > 3 { ", ..." } else { "" };
        let (cells, verb) = match plan.unable.len() {
            1 => ("1 cell".to_owned(), "is"),
            many => (plural(many as u64, "cell"), "are"),
        };
        let some = some.join(", ");
        labels.push(format!("{cells} {verb} not run, since the engine cannot: {some}{more}."));
    }
    labels
}

/// What became of the A/A pair, where it is not run as the experiment has it.
fn pair(plan: &StacksPlan) -> Option<String> {
    let aa = plan.experiment.aa.as_ref()?;
    if !plan.cells.iter().any(StackCell::is_again) {
        return Some(no_pair(aa, &plan.absent));
    }
    plan.is_pair_kept.then(|| {
        format!(
            "The A/A pair of {aa} is run beside what --only names: it shows the noise floor. --only name=.. leaves it out."
        )
    })
}

/// What is to be known of instruction counts, where there are any or were to be.
fn counting(summary: &StacksSummary) -> Vec<String> {
    let is_counted =
        |found: &CellFindings| Metric::COUNTED.iter().any(|metric| found.values.contains_key(metric));
    let mut labels = Vec::new();
    if summary.cells.iter().any(is_counted) {
        labels.push("Instructions are of the AVX2 path: valgrind, which counts them, hides AVX-512.".into());
    }
    let uncounted = summary.cells.iter().filter_map(|found| {
        let why = found.why_uncounted.as_ref()?;
        Some(format!("{}: instructions are not counted: {}.", found.cell.engine, why.trim_end_matches('.')))
    });
    labels.extend(uncounted.collect::<BTreeSet<_>>());
    labels
}

/// The widest distance that an A/A pair has from itself, by metric.
fn noise(summary: &StacksSummary) -> Vec<(Metric, String)> {
    let mut floors: Vec<(Metric, f64)> = Vec::new();
    for one in summary.contrasts.iter().filter(|one| one.aa) {
        let Some(reach) = one.ratio.reach() else { continue };
        match floors.iter_mut().find(|(metric, _)| *metric == one.metric) {
            Some((_, most)) => *most = most.max(reach),
            None => floors.push((one.metric, reach)),
        }
    }
    floors
        .into_iter()
        .map(|(metric, reach)| (metric, format!("at most {:.1} %", reach.exp_m1() * 100.0)))
        .collect()
}

/// The findings.
pub(super) fn render(plan: &StacksPlan, summary: &StacksSummary) -> String {
    let mut text = String::new();
    if plan.quick {
        wrap(&mut text, QUICK);
    }
    for label in labels(plan, summary) {
        wrap(&mut text, &label);
    }
    let names = summary.cells.iter().map(|found| found.cell.name.chars().count());
    let width = names.max().unwrap_or_default().min(NAME);
    let mut scenario = String::new();
    for found in &summary.cells {
        let own = found.cell.scenario.title();
        if own != scenario {
            text.push('\n');
            wrap(&mut text, &own);
            scenario = own;
        }
        row(&mut text, plan, found, width);
    }
    let mut family = String::new();
    for one in &summary.contrasts {
        let own = heading(one);
        if own != family {
            let _ = writeln!(text, "\n{own}:");
            family = own;
        }
        wrap(&mut text, &contrast(plan, one));
    }
    let titles = titles(plan);
    claims(&mut text, &summary.claims, &|cell| titles.get(cell).unwrap_or(&cell.to_owned()).clone());
    text
}

/// What each cell is called in words, by its name.
pub(super) fn titles(plan: &StacksPlan) -> BTreeMap<String, String> {
    plan.cells.iter().map(|cell| (cell.to_string(), cell.title())).collect()
}

/// A cell's values beside its name, on as many lines as they need.
fn row(text: &mut String, plan: &StacksPlan, found: &CellFindings, width: usize) {
    // That nobody waited is the rule.
    let is_news = |(metric, located): &(&Metric, &Located)| {
        **metric != Metric::WaitsPerHandshake || located.value > 0.0
    };
    let word = |(metric, located): (&Metric, &Located)| match metric {
        Metric::LockNsPerHandshake => in_locks(plan, found, located.value),
        _ => value(*metric, located.value),
    };
    let values: Vec<String> = found.values.iter().filter(is_news).map(word).collect();
    let name = &found.cell.name;
    if values.is_empty() {
        flow(text, &format!("{name}: {}", found.why_invalid.as_deref().unwrap_or("no run")), 2, 6);
        return;
    }
    let mut line = format!("  {name:<width$}");
    for value in values {
        if line.chars().count() + GAP.len() + value.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = " ".repeat(width + 2);
        }
        line += GAP;
        line += &value;
    }
    let _ = writeln!(text, "{line}");
}

/// The widest name that leaves the values in columns.
const NAME: usize = 32;
/// Between values.
const GAP: &str = "  ";

/// The time inside a lock and the bound that it sets: no number of cores makes more of what is done one at a time.
pub(super) fn in_locks(plan: &StacksPlan, found: &CellFindings, ns: f64) -> String {
    match plan.shared_locks.contains(&found.cell.to_string()) {
        true => format!("in locks {ns:.0} ns (shared by readers: no bound)"),
        false => format!("in locks {ns:.0} ns (at most {:.0} k/s)", 1e6 / ns),
    }
}

/// A value with its name and unit, and with what follows from it.
fn value(metric: Metric, value: f64) -> String {
    let plain = |name: &str| format!("{name} {value:.1} {}", metric.unit()).trim().to_owned();
    match metric {
        Metric::ServerUsPerHandshake => format!("{} ({:.0}/s)", plain("server"), 1e6 / value),
        Metric::ClientUsPerHandshake => format!("{} ({:.0}/s)", plain("client"), 1e6 / value),
        Metric::SendMbPerSecond => plain("send"),
        Metric::ReceiveMbPerSecond => plain("receive"),
        Metric::HandshakesPerSecond => plain("both ends"),
        Metric::WaitsPerHandshake => format!("waits {value:.4}"),
        Metric::ServerInstructions => format!("server {:.1} k instructions", value / 1e3),
        Metric::ClientInstructions => format!("client {:.1} k instructions", value / 1e3),
        _ => plain(""),
    }
}

/// What comparisons have in common that stand together.
fn heading(one: &Contrast) -> String {
    match (&one.factor, one.aa) {
        (_, true) => format!("{}, A/A pair", one.metric.title()),
        (Some(factor), _) => format!("{}, by {factor}", one.metric.title()),
        (None, _) => format!("{}, over {}", one.metric.title(), one.baseline),
    }
}

fn contrast(plan: &StacksPlan, one: &Contrast) -> String {
    let over = one.factor.as_ref().map_or_else(String::new, |_| format!(" over {}", one.baseline));
    let (scenario, target) = (one.cell.scenario.title(), &one.target);
    format!("  {scenario}: {target}{over}: {} {}", one.ratio.text(), one.words(plan.experiment.margin))
}

/// A plan, before anything is run.
pub(super) fn plan(plan: &StacksPlan) -> String {
    let mut text = format!("{}: {}\n", plan.experiment.name, plan.experiment.question.trim());
    for (name, why) in &plan.absent {
        wrap(&mut text, &format!("engine {name}: absent: {why}"));
    }
    match &plan.baseline {
        Some(baseline) => drop(writeln!(text, "baseline: {baseline}")),
        None => wrap(&mut text, &no_baseline(&plan.experiment.baseline, &plan.absent)),
    }
    if let Some(label) = pair(plan) {
        wrap(&mut text, &label);
    }
    let _ = writeln!(text, "\n{}:", plural(plan.cells.len() as u64, "cell"));
    for cell in &plan.cells {
        let _ = writeln!(text, "  {cell}");
    }
    for (cell, why) in &plan.unable {
        wrap(&mut text, &format!("  not run: {cell}: {why}"));
    }
    let expected = duration(Duration::from_millis(plan.expected_ms()));
    let _ = writeln!(
        text,
        "\nblocks: {} of {}; in all about {expected}, builds apart",
        plan.blocks.len(),
        plural(plan.cells.len() as u64, "run")
    );
    text
}

/// The engines of a folder: what is built, and in which versions.
pub(super) fn list(engines: &[Result<Engine, (String, String)>]) -> String {
    let row = |engine: &Result<Engine, (String, String)>| match engine {
        Ok(engine) => {
            let about = &engine.description;
            let state = if engine.is_built(&Variant::plain()) { "built" } else { "not built" };
            [&engine.name, &about.version, &about.crypto, state].map(str::to_owned)
        }
        Err((name, why)) => [name.clone(), String::new(), String::new(), format!("broken: {why}")],
    };
    let head = ["engine", "version", "crypto", "state"].map(str::to_owned);
    let rows: Vec<[String; 4]> = std::iter::once(head).chain(engines.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let [name, version, crypto] = [0, 1, 2].map(width);
    let mut text = String::new();
    for [first, second, third, state] in &rows {
        let _ = writeln!(text, "{first:<name$}  {second:<version$}  {third:<crypto$}  {state}");
    }
    if rows.iter().any(|row| row[3] == "not built") {
        text.push_str(
            "\n`weir stacks build NAME` builds one; `weir stacks run` builds those that it needs.\n",
        );
    }
    text
}
