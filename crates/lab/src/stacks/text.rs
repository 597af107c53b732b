//! Plan, list and findings in words, within 100 columns.

use super::engine::{Engine, Variant};
use super::plan::StacksPlan;
use super::summary::{CellFindings, Contrast, StacksSummary};
use crate::metric::Metric;
use crate::progress::duration;
use crate::stats::{BLOCKS_FOR_INTERVAL, BLOCKS_FOR_VERDICT, Weight};
use crate::table::{QUICK, flow, wrap};
use std::fmt::Write;
use std::time::Duration;

/// What has to be known before any number is read.
pub(super) fn labels(plan: &StacksPlan, summary: &StacksSummary) -> Vec<String> {
    let blocks = plan.blocks.len();
    let mut labels = vec![match summary.weight {
        Weight::Verdict => format!("Verdict: {blocks} blocks."),
        Weight::Indication => format!(
            "Indication: {blocks} blocks, not adjusted for the number of comparisons. A verdict needs \
             {BLOCKS_FOR_VERDICT} or more (--blocks 12)."
        ),
        Weight::None => {
            format!("{blocks} blocks: no interval and no verdict below {BLOCKS_FOR_INTERVAL} (--blocks 12).")
        }
    }];
    labels.push("Both ends in one process, in memory: no sockets, no network, no HTTP.".into());
    for (metric, floor) in noise(summary) {
        labels.push(format!("Noise floor (A/A, {}): {floor}.", metric.title()));
    }
    if plan.baseline.is_none() && !plan.experiment.baseline.is_empty() {
        labels.push(format!("No baseline: none of {} is present.", plan.experiment.baseline.join(", ")));
    }
    labels.extend(plan.absent.iter().map(|(name, why)| format!("{name}: absent: {why}.")));
    if !plan.unable.is_empty() {
        let some: Vec<String> =
            plan.unable.iter().take(3).map(|(cell, why)| format!("{cell} ({why})")).collect();
        let more = if plan.unable.len() > 3 { ", ..." } else { "" };
        labels.push(format!(
            "{} cells are not run, since the engine cannot: {}{more}.",
            plan.unable.len(),
            some.join(", ")
        ));
    }
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
    let mut scenario = String::new();
    for found in &summary.cells {
        let own = found.cell.scenario.to_string();
        if own != scenario {
            let _ = writeln!(text, "\n{own}");
            scenario = own;
        }
        let _ = writeln!(text, "  {:<28} {}", found.cell.name, values(found));
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
    if !summary.claims.is_empty() {
        text.push_str("\nClaims:\n");
    }
    for finding in &summary.claims {
        flow(&mut text, &format!("{} ({}): {}", finding.id, finding.source, finding.says), 2, 6);
        flow(&mut text, &format!("{}: {}", finding.verdict_text(), finding.why), 6, 10);
    }
    text
}

fn values(found: &CellFindings) -> String {
    let value = |(metric, located): (&Metric, &super::summary::Located)| {
        let per_core = match metric {
            Metric::ServerUsPerHandshake | Metric::ClientUsPerHandshake => {
                format!(" ({:.0}/s)", 1e6 / located.value)
            }
            _ => String::new(),
        };
        let name = match metric {
            Metric::ServerUsPerHandshake => "server",
            Metric::ClientUsPerHandshake => "client",
            Metric::SendMbPerSecond => "send",
            Metric::ReceiveMbPerSecond => "receive",
            Metric::HandshakesPerSecond => "both ends",
            Metric::WaitsPerHandshake => "waits",
            Metric::LockNsPerHandshake => "in locks",
            _ => "",
        };
        format!("{name} {:.1} {}{per_core}", located.value, metric.unit()).trim().to_owned()
    };
    // That nobody waited is the rule.
    let is_news = |(metric, located): &(&Metric, &super::summary::Located)| {
        **metric != Metric::WaitsPerHandshake || located.value > 0.0
    };
    let all: Vec<String> = found.values.iter().filter(is_news).map(value).collect();
    match (&found.why_invalid, all.as_slice()) {
        (Some(why), []) => why.clone(),
        (None, []) => "no run".into(),
        (_, all) => all.join("  "),
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
    let (scenario, target) = (&one.cell.scenario, &one.target);
    format!("  {scenario}: {target}{over}: {} {}", one.ratio.text(), one.words(plan.experiment.margin))
}

/// A plan, before anything is run.
pub(super) fn plan(plan: &StacksPlan) -> String {
    let mut text = format!("{}: {}\n", plan.experiment.name, plan.experiment.question.trim());
    for (name, why) in &plan.absent {
        wrap(&mut text, &format!("engine {name}: absent: {why}"));
    }
    let _ = writeln!(text, "baseline: {}", plan.baseline.as_deref().unwrap_or("none is present"));
    let _ = writeln!(text, "\n{} cells:", plan.cells.len());
    for cell in &plan.cells {
        let _ = writeln!(text, "  {cell}");
    }
    for (cell, why) in &plan.unable {
        let _ = writeln!(text, "  not run: {cell}: {why}");
    }
    let expected = duration(Duration::from_millis(plan.expected_ms()));
    let _ = writeln!(
        text,
        "\nblocks: {} of {} runs; in all about {expected}, builds apart",
        plan.blocks.len(),
        plan.cells.len()
    );
    text
}

/// The engines of a folder: what is built, and in which versions.
pub(super) fn list(engines: &[Result<Engine, (String, String)>]) -> String {
    let mut text = format!("{:<26} {:<12} {:<30} {}\n", "engine", "version", "crypto", "state");
    for engine in engines {
        let line = match engine {
            Ok(engine) => {
                let about = &engine.description;
                let state =
                    if engine.is_built(&Variant::plain()) { "built" } else { "not built: weir stacks build" };
                format!("{:<26} {:<12} {:<30} {state}", engine.name, about.version, about.crypto)
            }
            Err((name, why)) => format!("{name:<26} broken: {why}"),
        };
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
