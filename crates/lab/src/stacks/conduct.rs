//! An experiment with stacks from its plan to its stored runs.

use super::execute::Runner;
use super::plan::StacksPlan;
use super::run::StackRun;
use super::store;
use crate::error::LabError;
use crate::progress::{duration, tell_above};
use crate::store::Store;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// Makes every run of the plan that is not stored yet.
pub(super) fn conduct(plan: &StacksPlan, store: &Store, runner: &mut dyn Runner) -> Result<(), LabError> {
    let runs: Vec<_> = plan.blocks.iter().flatten().collect();
    let bar = ProgressBar::new(runs.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len}  {msg}") {
        bar.set_style(style);
    }
    let began = Instant::now();
    let mut made = 0;
    for (planned, left) in runs.iter().zip((1..=runs.len() as u32).rev()) {
        if store::run(store, &planned.id)?.is_some() {
            bar.inc(1);
            continue;
        }
        let each = match made {
            0 => Duration::from_millis(plan.expected_ms()) / runs.len() as u32,
            made => began.elapsed() / made,
        };
        bar.set_message(format!("{}  {} left", planned.cell.name, duration(each * left)));
        // The bar is drawn between runs alone, never within a window.
        bar.tick();
        let record = runner.run(planned)?;
        store.write_json(&format!("runs/{}.json", planned.id), &record)?;
        made += 1;
        bar.inc(1);
        tell_above(&bar, &line(&record));
    }
    bar.finish_and_clear();
    Ok(())
}

/// `b001 handshake.1.3.full.ecdsa-p256.go  server 61.2 us, client 113.0 us`.
fn line(record: &StackRun) -> String {
    let cell = &record.run.cell;
    let values = cell.scenario.compared().iter().filter_map(|metric| {
        let value = record.value(*metric)?;
        Some(format!("{} {value:.1} {}", metric.title(), metric.unit()))
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let wrong = if record.validity.is_valid() { String::new() } else { format!("  {}", record.validity) };
    format!("b{:03} {cell}  {values}{wrong}", record.run.block)
}
