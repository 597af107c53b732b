//! The comparison of two results as text.

use super::change::Change;
use super::findings::Across;
use super::matching::Between;
use crate::base::duration::duration;
use crate::report::shown::Shown;
use std::fmt::Write as _;
use std::time::Duration;
use weir_load::plural;
use weir_report::text::{short, wrap};

/// `is_known`: the results or the command line show which programs have changed.
pub(super) fn labels<I: Shown>(between: Between<'_, I>, changes: &[Change], is_known: bool) -> Vec<String> {
    let subject = I::SUBJECT;
    let mut labels = vec![apart::<I>(between)];
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
    let changed = match is_known {
        true => format!("Changed: {}.", of(false)),
        false => format!(
            "No {subject} is known to differ, so each counts as changed; name the changed one with --changed {}.",
            subject.to_uppercase()
        ),
    };
    let drift = match of(true) {
        none if none.is_empty() => {
            format!("No unchanged {subject} was measured in both, so the drift is unknown.")
        }
        unchanged => format!("Unchanged, showing the drift: {unchanged}."),
    };
    labels.push(format!("{changed} {drift}"));
    labels.extend(between.differences().into_iter().map(|difference| format!("Differs: {difference}.")));
    let weakest = changes.iter().map(|one| one.blocks_a.min(one.blocks_b)).max().unwrap_or(0);
    let weight = crate::stats::Weight::of(weakest as usize);
    let weakest = plural(weakest.into(), "block");
    match weight {
        crate::stats::Weight::Verdict => {}
        crate::stats::Weight::Indication => {
            labels.push(format!("Indication: {weakest}. A verdict needs 10 or more in both (--blocks 12)."));
        }
        crate::stats::Weight::None => {
            labels.push(format!("{weakest}: no interval and no verdict below 5 (--blocks 12)."));
        }
    }
    labels
}

/// The limits of comparing two results of different times.
fn apart<I: Shown>(between: Between<'_, I>) -> String {
    let [a, b] = between.results.map(|results| results.machine.started_unix);
    let time = duration(Duration::from_secs(a.abs_diff(b)));
    let (subject, sessions) = (I::SUBJECT, I::SESSIONS);
    format!(
        "Measured {time} apart: any other change of the machine in between is in each ratio B/A, and more blocks do \
         not remove it. Unchanged {subject}s show how large it is. {sessions}{}For a verdict free of drift, run both \
         versions as two {subject}s of one experiment.",
        if sessions.is_empty() { "" } else { " " }
    )
}

impl Across {
    /// Labels and one line for each change, at most 100 columns wide.
    pub fn text(&self) -> String {
        render(self)
    }
}

fn render(across: &Across) -> String {
    let mut text = String::new();
    let (apart, others) = across.labels.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
    wrap(&mut text, apart);
    for line in across.sides().iter().chain(others) {
        wrap(&mut text, line);
    }
    // Sorted by family.
    for family in across.changes.chunk_by(|left, right| left.heading() == right.heading()) {
        let metric = family[0].metric;
        let _ = writeln!(text, "\n{}, B/A:", family[0].heading());
        let mut place = None;
        for one in family {
            if place.replace(&one.place) != Some(&one.place) {
                wrap(&mut text, &format!("  {}", one.place));
            }
            let role = if one.unchanged { " (unchanged)" } else { "" };
            let [a, b] = [one.a, one.b].map(|value| value.map_or_else(|| "-".into(), short));
            let line = format!(
                "    {}{role}: {a} -> {b} {}, {} {}",
                one.subject(),
                metric.unit(),
                one.ratio.text(),
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
