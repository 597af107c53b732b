//! The output of `weir plan`: cells, order, time.

use crate::base::duration::duration;
use crate::experiment::{AGAIN, Layout, Order, Stop};
use crate::planning::cell::Cell;
use crate::planning::plan::{Plan, Turn};
use crate::planning::planned_run::PlannedRun;
use crate::planning::schedule::duets;
use crate::report::shown::Shown;
use crate::report::words::{QUICK, no_baseline, pair};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use weir_load::plural;
use weir_report::text::{WIDTH, wrap};

/// Blocks whose order is listed.
const BLOCKS_SHOWN: usize = 4;

/// A plan in words.
pub(crate) fn plan<I: Shown>(plan: &Plan, found: &I::Found) -> String {
    let experiment = &plan.experiment;
    let mut text = String::new();
    if experiment.quick {
        text.push_str(&format!("{QUICK}\n"));
    }
    text.push_str(&format!("{}: {}\n", experiment.name, experiment.question.trim()));
    I::describe(&mut text, plan, found);
    for (name, why) in &plan.absent {
        let line = match experiment.install.contains(name) {
            true => {
                format!("{} {name}: absent; `weir run` installs it first, and more cells follow", I::SUBJECT)
            }
            false => format!("{} {name}: absent, so its cells are skipped: {why}", I::SUBJECT),
        };
        wrap(&mut text, &line);
    }
    for line in &plan.dropped {
        wrap(&mut text, &format!("not run: {line}"));
    }
    match &plan.baseline {
        Some(baseline) => drop(writeln!(text, "baseline: {baseline}")),
        None => wrap(&mut text, &no_baseline(&experiment.baseline, &plan.absent)),
    }
    match (pair(plan), &experiment.aa) {
        (Some(label), _) => wrap(&mut text, &label),
        (None, Some(aa)) => drop(writeln!(text, "A/A pair: {aa} and {aa}{AGAIN}")),
        (None, None) => {}
    }
    for levels in &experiment.leave_out {
        let _ = writeln!(text, "left out: {levels}");
    }
    let _ = writeln!(text, "\n{}:", plural(plan.cells.len() as u64, "cell"));
    for (index, cell) in plan.cells.iter().enumerate() {
        let _ = writeln!(text, "{:>5}  {cell}", index + 1);
    }
    order(&mut text, plan);
    time(&mut text, plan);
    text
}

/// The first blocks as the numbers of their cells.
fn order(text: &mut String, plan: &Plan) {
    let numbers: BTreeMap<&Cell, usize> = plan.cells.iter().zip(1..).collect();
    let word = match plan.experiment.order {
        Order::Random => "random",
        Order::Abba => "ABBA",
    };
    let _ = writeln!(text, "\norder: {word}, from seed {}", plan.experiment.seed);
    for (index, block) in plan.blocks.iter().enumerate().take(BLOCKS_SHOWN) {
        let mut line = format!("  block {}:", index + 1);
        for Turn(runs) in block {
            let number = |run: &PlannedRun| numbers.get(&run.cell).copied().unwrap_or_default().to_string();
            let word = format!(" {}", runs.iter().map(number).collect::<Vec<_>>().join("+"));
            if line.len() + word.len() > WIDTH {
                let _ = writeln!(text, "{line}");
                line = " ".repeat(10);
            }
            line.push_str(&word);
        }
        let _ = writeln!(text, "{line}");
    }
    if plan.blocks.len() > BLOCKS_SHOWN {
        let _ = writeln!(text, "  ...");
    }
}

fn time(text: &mut String, plan: &Plan) {
    let calibration = plan.calibration_total_ms();
    text.push('\n');
    if !plan.calibration.is_empty() {
        let runs = plural(plan.calibration.len() as u64, "run");
        let _ = writeln!(text, "calibration: {runs}, about {}", about(calibration));
    }
    let (blocks, note) = match plan.experiment.stop {
        Stop::Blocks(blocks) => (blocks, String::new()),
        Stop::Minutes(minutes) => {
            let blocks = plan.blocks_that_fit(minutes, calibration);
            (blocks, "; the number is fixed after calibration".to_owned())
        }
        Stop::Precision(rule) => {
            let (least, metric, width) = (rule.least, rule.metric, rule.width * 100.0);
            (
                rule.most,
                format!(
                    " at most; after {least}, stops when no interval of {metric} is wider than {width} %"
                ),
            )
        }
    };
    let runs = in_a_block(plan);
    let _ = writeln!(text, "blocks: {blocks} of {runs}, about {} each{note}", about(plan.blocks_ms(1)));
    let _ = writeln!(text, "total: about {}", about(calibration + plan.blocks_ms(blocks)));
}

/// `4 runs`, `3 duets, in 2 blocks each of 4 cells alone too`.
fn in_a_block(plan: &Plan) -> String {
    let cells = plan.cells.len() as u64;
    match (plan.experiment.layout, plan.experiment.alone_blocks) {
        (Layout::Blocks, _) => plural(cells, "run"),
        (Layout::Duet, 0) => plural(duets(plan).len() as u64, "duet"),
        (Layout::Duet, alone) => format!(
            "{}, in {} also {} alone",
            plural(duets(plan).len() as u64, "duet"),
            plural(alone.into(), "block"),
            plural(cells, "cell"),
        ),
    }
}

fn about(milliseconds: u64) -> String {
    duration(Duration::from_millis(milliseconds))
}
