//! The cost of a request by category: CPU per request of the measured runs, times the shares of the profiles.

use crate::findings::results::Results;
use crate::planning::cell::Cell;
use crate::report::answer::capital;
use crate::report::shown::Shown;
use crate::store::profiles::CellProfile;
use serde_json::{Value as Json, json};
use weir_profile::{Category, Difference, Profile, Stacks, flame};
use weir_report::model::{Part, Split, SplitBar};
use weir_report::text::{columns, flow};

/// The categories that a sentence names.
const NAMED: usize = 3;

/// The sentences of a place; the report lists the rest.
const MOST: usize = 3;

/// A profiled cell with its cost.
struct Costed<'a> {
    cell: &'a Cell,
    own: &'a CellProfile,
    stacks: &'a Stacks,
    profile: &'a Profile,
    cost_us: f64,
    unit: &'static str,
}

/// The profiled cells of each place: those that differ in their subject only.
fn places<I: Shown>(results: &Results<I>) -> Vec<(String, Vec<Costed<'_>>)> {
    let mut places: Vec<(String, Vec<Costed<'_>>)> = Vec::new();
    for own in &results.profiles {
        let found = results.summary.cell(&own.cell).and_then(I::cost);
        let (Some((cost_us, unit)), Some((stacks, profile))) = (found, &own.sampled) else { continue };
        let costed = Costed { cell: &own.cell, own, stacks, profile, cost_us, unit };
        let place = I::circumstances(&results.plan, &own.cell, None);
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, cells)) => cells.push(costed),
            None => places.push((place, vec![costed])),
        }
    }
    places
}

/// The splits of all places, for the page.
pub(crate) fn splits<I: Shown>(results: &Results<I>) -> Vec<Split> {
    let split = |(title, cells): (String, Vec<Costed<'_>>)| {
        let base = baseline(results, &cells);
        Split {
            differences: differences(results, &cells),
            unit: cells.first().map_or("request", |first| first.unit),
            bars: cells.iter().map(|one| bar(one, base)).collect(),
            title,
        }
    };
    places(results).into_iter().map(split).collect()
}

/// The differences between the baseline and the others, by place.
pub(crate) fn sentences<I: Shown>(results: &Results<I>) -> Vec<String> {
    let of_place = |(place, cells): (String, Vec<Costed<'_>>)| {
        let mut differences = differences(results, &cells);
        let more = differences.len().saturating_sub(MOST);
        differences.truncate(MOST);
        if more > 0 {
            differences.push(format!("{more} more differences by category in the report."));
        }
        let words = (!differences.is_empty()).then(|| differences.join(" "))?;
        Some(match place.as_str() {
            "" => words,
            place => format!("{}: {words}", capital(place)),
        })
    };
    places(results).into_iter().filter_map(of_place).collect()
}

/// A table for each place.
pub(crate) fn tables<I: Shown>(text: &mut String, results: &Results<I>) {
    for (place, cells) in places(results) {
        text.push_str("\nCPU by category");
        flow(text, &format!(", {place}, in us per {}:", cells[0].unit), 0, 2);
        for one in &cells {
            let mut lines = vec![[
                format!("  {}", one.cell.name),
                format!("{:.1}", one.cost_us),
                String::new(),
                format!("{} samples", one.profile.samples),
            ]];
            lines.extend(parts(one).map(|part| {
                let (low, high) = part.interval;
                [
                    format!("    {}", part.name),
                    format!("{:.2}", part.value),
                    format!("[{low:.2}, {high:.2}]"),
                    format!("{:.1} %", 100.0 * part.value / one.cost_us),
                ]
            }));
            columns(text, &lines);
        }
    }
}

/// The profiles for `summary.json`.
pub(crate) fn json<I: Shown>(results: &Results<I>) -> Json {
    let one = |own: &CellProfile| {
        let cost = results.summary.cell(&own.cell).and_then(I::cost);
        json!({
            "cell": own.cell.to_string(),
            "cost_us": cost.map(|(cost, _)| cost),
            "unit": cost.map(|(_, unit)| unit),
            "about": own.about,
            "profile": own.sampled.as_ref().map(|(_, profile)| profile),
        })
    };
    results.profiles.iter().map(one).collect()
}

fn bar(one: &Costed<'_>, base: Option<&Costed<'_>>) -> SplitBar {
    let overhead = one.own.about.cost_us.map(|cost| {
        format!(
            "While it was sampled, CPU per {} was {cost:.1} us, {:.2} times that of the runs.",
            one.unit,
            cost / one.cost_us
        )
    });
    SplitBar {
        name: one.cell.name.clone(),
        total: one.cost_us,
        samples: one.profile.samples,
        parts: parts(one).collect(),
        flame: flame::graph(&one.cell.to_string(), one.stacks).unwrap_or_default(),
        against: base.filter(|base| base.cell.name != one.cell.name).and_then(|base| {
            let title = format!("{} against {}", one.cell.name, base.cell.name);
            Some((base.cell.name.clone(), flame::difference(&title, base.stacks, one.stacks).ok()?))
        }),
        notes: one.own.about.notes.iter().cloned().chain(overhead).collect(),
    }
}

/// The parts of a cost, in the order of categories.
fn parts<'a>(one: &'a Costed<'_>) -> impl Iterator<Item = Part> + 'a {
    one.profile.categories.iter().filter(|found| found.own.samples > 0).map(|found| Part {
        name: found.category.words(),
        place: Category::ALL.iter().position(|category| *category == found.category).unwrap_or_default(),
        value: found.own.share * one.cost_us,
        interval: (found.own.low * one.cost_us, found.own.high * one.cost_us),
    })
}

fn baseline<'a, 'b, I: Shown>(results: &Results<I>, cells: &'a [Costed<'b>]) -> Option<&'a Costed<'b>> {
    let name = results.plan.baseline.as_deref()?;
    cells.iter().find(|one| one.cell.name == name)
}

/// `nginx uses 10.4 us more per request than weir: record encryption 6.1 [5.8, 6.4], kernel TCP 2.0 [1.8, 2.2], ..`.
fn differences<I: Shown>(results: &Results<I>, cells: &[Costed<'_>]) -> Vec<String> {
    let Some(base) = baseline(results, cells) else { return Vec::new() };
    let others = cells.iter().filter(|one| one.cell.name != base.cell.name);
    others.map(|other| difference(base, other)).collect()
}

fn difference(base: &Costed<'_>, other: &Costed<'_>) -> String {
    let [less, more] = if base.cost_us <= other.cost_us { [base, other] } else { [other, base] };
    let difference = Difference::new(less.profile, more.profile, [less.cost_us, more.cost_us]);
    let clear = difference.changes.iter().filter(|one| one.low > 0.0 || one.high < 0.0).take(NAMED);
    let parts: Vec<String> = clear
        .map(|one| format!("{} {:+.1} [{:+.1}, {:+.1}]", one.category.words(), one.change, one.low, one.high))
        .collect();
    let sum = more.cost_us - less.cost_us;
    let (more, less, unit) = (&more.cell.name, &less.cell.name, base.unit);
    match parts.is_empty() {
        true => format!(
            "{more} uses {sum:.1} us more per {unit} than {less}; no category differs beyond sampling."
        ),
        false => format!("{more} uses {sum:.1} us more per {unit} than {less}: {}.", parts.join(", ")),
    }
}
