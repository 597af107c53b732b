//! What a comparison of two results says on standard output.

use super::change::Change;
use super::findings::Across;
use super::matching::Between;
use super::program;
use crate::instrument::Shown;
use crate::progress::duration;
use std::fmt::Write as _;
use std::time::Duration;
use weir_load::plural;
use weir_report::text::{short, wrap};

/// `is_told`: the results, or the command line, tell what has changed.
pub(super) fn labels<I: Shown>(between: Between<'_, I>, changes: &[Change], is_told: bool) -> Vec<String> {
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
    let changed = match is_told {
        true => format!("Changed: {}.", of(false)),
        false => format!(
            "No {subject} is known to differ: each is taken for changed. --changed {} tells which did.",
            subject.to_uppercase()
        ),
    };
    let drift = match of(true) {
        none if none.is_empty() => {
            format!("No unchanged {subject} was measured in both: nothing shows the drift.")
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

/// What two results of different times can show, and what they cannot.
fn apart<I: Shown>(between: Between<'_, I>) -> String {
    let [a, b] = between.results.map(|results| results.machine.started_unix);
    let time = duration(Duration::from_secs(a.abs_diff(b)));
    let (subject, sessions) = (I::SUBJECT, I::SESSIONS);
    format!(
        "Measured {time} apart: whatever else changed on the machine meanwhile is in each ratio B/A, and more blocks do not \
         take it out. Unchanged {subject}s show how much that is. {sessions}{}Both versions as two {subject}s of one \
         experiment decide it.",
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
