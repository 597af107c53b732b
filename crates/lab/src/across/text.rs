//! What a comparison of two results says on standard output.

use super::matching::Between;
use super::{Across, Change, program};
use crate::table::wrap;
use std::fmt::Write as _;

/// `is_told`: the results, or the command line, tell which target has changed.
pub(super) fn labels(between: Between<'_>, changes: &[Change], is_told: bool) -> Vec<String> {
    let mut labels = vec![
        "The two results share no block: each ratio B/A has in it whatever else changed between the sessions. Nightly runs \
         of one program differ by 5 % from one day to the next, and by 28 % in one of ten."
            .to_owned(),
    ];
    let of = |unchanged: bool| {
        let mut names: Vec<String> = Vec::new();
        for one in changes.iter().filter(|one| one.unchanged == unchanged) {
            let subject = one.subject();
            if !names.contains(&subject) {
                names.push(subject);
            }
        }
        names.join(", ")
    };
    let changed = match is_told {
        true => format!("Changed: {}.", of(false)),
        false => "No target is known to differ: each gateway is taken for changed. --changed TARGET tells which did."
            .into(),
    };
    let drift = match of(true) {
        none if none.is_empty() => {
            "No unchanged target was measured in both: nothing shows the drift.".into()
        }
        unchanged => format!("Unchanged, they show the drift: {unchanged}."),
    };
    labels.push(format!("{changed} {drift}"));
    let untold = program::untold(between);
    if !untold.is_empty() {
        labels.push(format!(
            "Versions alone tell what is unchanged: no hashes of builds and templates are stored in {}.",
            untold.join(" and ")
        ));
    }
    labels.extend(between.differences().into_iter().map(|difference| format!("Differs: {difference}.")));
    let weakest = changes.iter().map(|one| one.blocks_a.min(one.blocks_b)).max().unwrap_or(0);
    match crate::stats::Weight::of(weakest as usize) {
        crate::stats::Weight::Verdict => {}
        crate::stats::Weight::Indication => labels
            .push(format!("Indication: {weakest} blocks. A verdict needs 10 or more in both (--blocks 12).")),
        crate::stats::Weight::None => {
            labels.push(format!("{weakest} blocks: no interval and no verdict below 5 (--blocks 12)."));
        }
    }
    labels
}

pub(super) fn render(across: &Across) -> String {
    let mut text = String::new();
    for side in across.sides() {
        wrap(&mut text, &side);
    }
    for label in &across.labels {
        wrap(&mut text, label);
    }
    for (load, metric) in across.families() {
        let _ = writeln!(text, "\n{metric}, {load}, B/A:");
        let mut group = None;
        for one in across.changes.iter().filter(|one| (one.load, one.metric) == (load, metric)) {
            if group.replace(&one.group) != Some(&one.group) {
                wrap(&mut text, &format!("  {}, {}", one.mode, one.group));
            }
            let role = if one.unchanged { " (unchanged)" } else { "" };
            let [a, b] = [one.a, one.b].map(|value| value.map_or_else(|| "-".into(), crate::table::short));
            let line = format!(
                "    {}{role}: {a} -> {b} {}, {} {}",
                one.subject(),
                metric.unit(),
                one.ratio_text(),
                one.verdict_text(across.margin)
            );
            wrap(&mut text, &line);
        }
    }
    for (name, cells) in [("A", &across.only_a), ("B", &across.only_b)] {
        if !cells.is_empty() {
            text.push('\n');
            wrap(&mut text, &format!("Only in {name}: {}.", cells.join(", ")));
        }
    }
    text
}
