//! The findings as sentences.

use crate::experiment::metric::Metric;
use crate::findings::comparison::Comparison;
use crate::findings::foreign::FOREIGN_MUCH;
use crate::findings::results::Results;
use crate::report::shown::Shown;
use crate::stats::verdict::{Ratio, Verdict};
use crate::stats::{BLOCKS_FOR_VERDICT, MOST_BLOCKS};
use crate::store::machine::Machine;
use std::collections::BTreeSet;
use weir_load::plural;

/// The places with a sentence; the report lists the rest.
const MOST: usize = 4;

/// The comparisons in the sentence of a place.
const MOST_OF_PLACE: usize = 5;

/// A sentence for each place, on the experiment's main metrics.
pub(crate) fn sentences<I: Shown>(results: &Results<I>) -> Vec<String> {
    let all: Vec<&Comparison> =
        results.summary.comparisons.iter().filter(|one| one.is_main && !one.aa).collect();
    let mut places: Vec<(String, Vec<&Comparison>)> = Vec::new();
    for one in all {
        let place = I::circumstances(&results.plan, &one.cell, one.factor.as_deref());
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, own)) => own.push(one),
            None => places.push((place, vec![one])),
        }
    }
    let mut speaker = Speaker { machine: &results.machine, introduced: BTreeSet::new() };
    let more = places.len().saturating_sub(MOST);
    let of_place = |(place, own): &(String, Vec<&Comparison>)| {
        let words = speaker.of_place(own, results);
        match place.as_str() {
            "" => capital(&words) + ".",
            place => format!("{}, {words}.", capital(place)),
        }
    };
    let mut sentences: Vec<String> = places.iter().take(MOST).map(of_place).collect();
    if more > 0 {
        sentences.push(format!("{} more in the report.", plural(more as u64, "place")));
    }
    sentences
}

/// Gives each version once.
struct Speaker<'a> {
    machine: &'a Machine,
    introduced: BTreeSet<String>,
}

impl Speaker<'_> {
    /// `Weir uses 0.59 [0.56, 0.62] times the CPU per request of nginx 1.28, 0.66 [0.63, 0.70] times HAProxy's`.
    fn of_place<I: Shown>(&mut self, comparisons: &[&Comparison], results: &Results<I>) -> String {
        let mut clauses: Vec<String> = Vec::new();
        let mut last: Option<(String, Metric)> = None;
        for one in comparisons.iter().take(MOST_OF_PLACE) {
            let [lower, higher] = ordered(one);
            let figures = oriented(&one.ratio);
            match one.ratio.verdict {
                Verdict::Different if last.as_ref() == Some(&(lower.clone(), one.metric)) => {
                    let clause = format!("{figures} times {}", genitive(&self.name(one, &higher)));
                    if let Some(sentence) = clauses.last_mut() {
                        sentence.push_str(", ");
                        sentence.push_str(&clause);
                    }
                }
                Verdict::Different => {
                    let [subject, object] = [&lower, &higher].map(|name| self.name(one, name));
                    clauses.push(compared(one.metric, &subject, &figures, &object));
                    last = Some((lower, one.metric));
                }
                Verdict::Equivalent => {
                    let [first, second] = [&one.target, &one.baseline].map(|name| self.name(one, name));
                    let margin = results.plan.experiment.margin * 100.0;
                    let text = one.ratio.text();
                    clauses.push(format!("{first} and {second} are equal within {margin} % ({text})"));
                    last = None;
                }
                Verdict::Undecided => {
                    let [first, second] = [&one.target, &one.baseline].map(|name| self.name(one, name));
                    let why = remedy(one, results);
                    clauses.push(format!("{first} vs {second} is undecided: {}; {why}", one.ratio.text()));
                    last = None;
                }
            }
        }
        match comparisons.len().saturating_sub(MOST_OF_PLACE) {
            0 => {}
            more => clauses.push(format!("{more} more in the report")),
        }
        clauses.join("; ")
    }

    /// One side of a comparison for the reader, with its version the first time.
    fn name(&mut self, one: &Comparison, name: &str) -> String {
        if one.factor.is_some() {
            return name.to_owned();
        }
        let subject = name.split('+').next().unwrap_or(name);
        let title = self.machine.titles.get(subject).filter(|_| subject == name);
        // A title that does not begin with the name could apply to several subjects.
        let title = title.filter(|title| title.to_lowercase().starts_with(&name.to_lowercase()));
        let shown = title.map_or(name, String::as_str);
        // A distribution's suffix follows a hyphen, a linked library a comma.
        let version = self.machine.versions.get(subject).and_then(|version| version.split([',', '-']).next());
        match version.filter(|version| !version.is_empty() && self.introduced.insert(name.to_owned())) {
            Some(version) => format!("{shown} {version}"),
            None => shown.to_owned(),
        }
    }
}

/// The two names, the one with the lower value first.
fn ordered(one: &Comparison) -> [String; 2] {
    let [target, baseline] = [one.target.clone(), one.baseline.clone()];
    match one.ratio.value {
        Some(ratio) if ratio > 1.0 => [baseline, target],
        _ => [target, baseline],
    }
}

/// The ratio of the lower value to the higher one: `0.59 [0.56, 0.62]`.
fn oriented(ratio: &Ratio) -> String {
    match ratio.value {
        Some(value) if value > 1.0 => {
            let inverse = |value: f64| 1.0 / value;
            let (low, high) = (ratio.high.map(inverse), ratio.low.map(inverse));
            Ratio { value: Some(inverse(value)), low, high, ..ratio.clone() }.text()
        }
        _ => ratio.text(),
    }
}

fn compared(metric: Metric, subject: &str, figures: &str, object: &str) -> String {
    match metric {
        Metric::CpuUsPerRequest => {
            format!("{subject} uses {figures} times the CPU per request of {object}")
        }
        Metric::CpuUsPerHandshake => {
            format!("{subject} uses {figures} times the CPU per handshake of {object}")
        }
        Metric::CpuUsPerMb => {
            format!("{subject} uses {figures} times the CPU per megabyte of {object}")
        }
        Metric::CpuUsPerOperation => {
            format!("{subject} uses {figures} times the CPU per operation of {object}")
        }
        Metric::ServerUsPerHandshake => {
            format!("{subject} takes {figures} times the server's time per handshake of {object}")
        }
        other => format!("{subject} has {figures} times {} {}", genitive(object), other.title()),
    }
}

fn genitive(name: &str) -> String {
    if name.ends_with('s') { format!("{name}'") } else { format!("{name}'s") }
}

pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// How to decide an undecided comparison.
fn remedy<I: Shown>(one: &Comparison, results: &Results<I>) -> String {
    let foreign = results.summary.foreign;
    if let Some(median) = foreign.median.filter(|median| *median > FOREIGN_MUCH) {
        return format!(
            "foreign load took {:.0} % of the cores; rerun when `weir doctor` finds the machine quiet",
            median * 100.0
        );
    }
    let note = one.ratio.note.as_deref();
    let planned = results.plan.blocks.len();
    match blocks_needed(&one.ratio, one.blocks, results.plan.experiment.margin, floor(one, results)) {
        _ if one.ratio.lacks_evidence && planned >= BLOCKS_FOR_VERDICT => {
            note.unwrap_or("too few valid runs").to_owned()
        }
        _ if planned < BLOCKS_FOR_VERDICT => {
            format!("--blocks {} would add evidence", BLOCKS_FOR_VERDICT + 2)
        }
        Some(blocks) => format!("--blocks {blocks} should decide it"),
        None => note.unwrap_or("no feasible number of blocks would decide it on this machine").to_owned(),
    }
}

/// The noise of the A/A pair of the same place, as a logarithm.
fn floor<I: Shown>(one: &Comparison, results: &Results<I>) -> f64 {
    let pairs = results.summary.comparisons.iter().filter(|pair| pair.aa && pair.metric == one.metric);
    let of_place = pairs.filter(|pair| pair.cell.place() == one.cell.place());
    of_place.filter_map(|pair| pair.ratio.reach()).fold(0.0, f64::max)
}

/// The blocks that decide a ratio which keeps its value: an interval narrows with the root of their number. `None` if
/// no feasible number does.
fn blocks_needed(ratio: &Ratio, blocks: u32, margin: f64, floor: f64) -> Option<u32> {
    let (low, high) = ratio.interval()?;
    let half = (high / low).ln() / 2.0;
    let off = ratio.value?.ln().abs();
    // To exclude 1 with some room, or to fit within the margin.
    let different = if off > floor { 0.8 * off } else { 0.0 };
    let equivalent = margin.ln_1p() - off;
    let wanted = different.max(equivalent);
    let needed = (f64::from(blocks) * (half / wanted).powi(2)).ceil();
    // The machine drifts over a longer time.
    (wanted > 0.0 && needed <= f64::from(MOST_BLOCKS) / 2.0).then_some((needed as u32).max(blocks + 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Estimate, Interval};

    fn ratio(value: f64, low: f64, high: f64) -> Ratio {
        let interval = Some(Interval { low, high, coverage: 0.95 });
        Ratio::of(Some(Estimate { value, interval, p_value: 0.01, blocks: 12 }), 12, None)
    }

    #[test]
    fn the_cheaper_one_is_spoken_of() {
        assert_eq!(oriented(&ratio(2.0, 1.6, 2.5)), "0.50 [0.40, 0.62]");
        assert_eq!(oriented(&ratio(0.5, 0.4, 0.625)), "0.50 [0.40, 0.62]");
    }

    #[test]
    fn the_needed_blocks_follow_from_the_width() {
        let blocks = |found: &Ratio, floor| blocks_needed(found, 12, 0.03, floor);
        // At this width it needs about four times the blocks to be within 3 %.
        assert_eq!(blocks(&ratio(1.0, 0.9417, 1.0619), 0.0), Some(50));
        // 4 % off and 5 % wide: to exclude 1.
        assert_eq!(blocks(&ratio(1.04, 0.99, 1.0925), 0.0), Some(30));
        // Outside the margin, but within the noise.
        assert_eq!(blocks(&ratio(1.04, 0.99, 1.0925), 0.05), None);
        assert_eq!(blocks(&ratio(1.0299, 0.9, 1.18), 0.05), None, "more than a machine stays the same for");
    }

    #[test]
    fn names_of_several_end_in_an_apostrophe() {
        assert_eq!([genitive("nginx"), genitive("rustls")], ["nginx's", "rustls'"]);
        assert_eq!([capital("with TLS"), capital("")], ["With TLS", ""]);
    }
}
