//! What `weir plan` says: cells, order, time.

use crate::experiment::{Order, Stop};
use crate::placement::Placement;
use crate::plan::{Cell, Plan, Targets};
use crate::progress::duration;
use crate::table::{QUICK, WIDTH};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use weir_load::plural;

/// Blocks whose order is written out.
const BLOCKS_SHOWN: usize = 4;

/// A plan in words.
pub(crate) fn plan(plan: &Plan, placement: &Placement, targets: &Targets) -> String {
    let experiment = &plan.experiment;
    let mut text = format!("{}: {}\n", experiment.name, experiment.question.trim());
    if experiment.quick {
        text.insert_str(0, &format!("{QUICK}\n"));
    }
    if let Some(note) = &placement.note {
        let _ = writeln!(text, "CORES: {note}");
    }
    for (name, target) in &targets.present {
        let _ = writeln!(text, "target {name}: {} {}", target.title, target.version);
        let _ = writeln!(text, "    from {}", target.folder().display());
    }
    for (name, why) in &plan.absent {
        let _ = writeln!(text, "target {name}: absent, so none of its cells is run: {why}");
    }
    for line in &plan.dropped {
        let _ = writeln!(text, "not run: {line}");
    }
    let _ = writeln!(text, "baseline: {}", plan.baseline.as_deref().unwrap_or("none is present"));
    if let Some(aa) = &experiment.aa {
        let _ = writeln!(text, "A/A pair: {aa}, run twice in every block");
    }
    for factor in &experiment.factors {
        let levels: Vec<String> = factor.names().iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "factor {}: {}", factor.key, levels.join(" | "));
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
        for run in block {
            let word = format!(" {}", numbers.get(&run.cell).copied().unwrap_or_default());
            if line.len() + word.len() > WIDTH {
                let _ = writeln!(text, "{line}");
                line = " ".repeat(10);
            }
            line.push_str(&word);
        }
        let _ = writeln!(text, "{line}");
    }
    if plan.blocks.len() > BLOCKS_SHOWN {
        let _ = writeln!(text, "  and so on");
    }
}

fn time(text: &mut String, plan: &Plan) {
    let calibration = plan.calibration_total_ms();
    let _ = writeln!(
        text,
        "\ncalibration: {}, about {}",
        plural(plan.calibration.len() as u64, "run"),
        about(calibration)
    );
    let block = plan.block_ms();
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
                format!(" at most; from {least} on until no interval of {metric} is wider than {width} %"),
            )
        }
    };
    let (runs, each) = (plural(plan.cells.len() as u64, "run"), about(block));
    let _ = writeln!(text, "blocks: {blocks} of {runs}, about {each} each{note}");
    let _ = writeln!(text, "in all: about {}", about(calibration + block * u64::from(blocks)));
}

fn about(milliseconds: u64) -> String {
    duration(Duration::from_millis(milliseconds))
}
