//! Findings in words, the same for all instruments: on a terminal, within 100 columns, and in the report.

use crate::experiment::Layout;
use crate::findings::claims::{self, Finding};
use crate::findings::comparison::Comparison;
use crate::findings::results::Results;
use crate::findings::summary::{CellSummary, Summary};
use crate::planning::cell::Cell;
use crate::planning::plan::Plan;
use crate::report::answer::sentences;
use crate::report::shown::Shown;
use crate::report::split;
use crate::stats::{BLOCKS_FOR_INTERVAL, BLOCKS_FOR_VERDICT, ErrorRate, Weight};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use weir_load::plural;
use weir_report::text::{WIDTH, flow, wrap};

/// With more pairs than this the label would be a paragraph.
const MOST_RATIOS: usize = 6;

/// The report lists the figures of a claim about more cells.
const MOST_CELLS: usize = 3;

/// `weir plan` lists the reasons if more cells than this are skipped.
const MOST_DROPPED: usize = 3;

/// The first line of a quick run's results.
pub(crate) const QUICK: &str =
    "QUICK (--quick): a subset of the cells, fewer blocks and shorter windows than the experiment's own.";

/// Labels, tables, one line for each comparison, claims.
pub(crate) fn render<I: Shown>(results: &Results<I>) -> String {
    let Results { plan, summary, .. } = results;
    let mut text = String::new();
    if plan.experiment.quick {
        wrap(&mut text, QUICK);
    }
    for label in labels::<I>(plan, summary) {
        wrap(&mut text, &label);
    }
    I::tables(&mut text, results);
    comparisons(&mut text, results);
    split::tables(&mut text, results);
    claims(&mut text, &summary.claims, &called::<I>(plan));
    invalid(&mut text, summary);
    text
}

/// A line for each comparison.
pub(crate) fn comparisons<I: Shown>(text: &mut String, Results { plan, summary, .. }: &Results<I>) {
    let mut heading = None;
    for one in &summary.comparisons {
        let own = one.heading();
        if heading.as_ref() != Some(&own) {
            let _ = writeln!(text, "\n{own}:");
            heading = Some(own);
        }
        let row = I::row(plan, &one.cell, one.factor.as_deref());
        wrap(text, &format!("  {row}: {}", one.line(plan.experiment.margin)));
    }
}

/// The terminal's output at the end of a run: sentences, their caveats, the tables that fit.
pub(crate) fn brief<I: Shown>(results: &Results<I>, report: &Path) -> String {
    let Results { plan, summary, .. } = results;
    let mut text = String::new();
    if plan.experiment.quick {
        wrap(&mut text, QUICK);
    }
    for sentence in sentences(results).into_iter().chain(split::sentences(results)) {
        flow(&mut text, &sentence, 0, 2);
    }
    let mut limits = String::new();
    let floors = brief_floor(&summary.comparisons).into_iter().collect();
    for label in labels_with::<I>(plan, summary, floors).into_iter().chain(left_out(summary)) {
        wrap(&mut limits, &label);
    }
    let limits = limited(&limits, LINES / 2);
    let last = format!("Report: {}\n", report.display());
    let whole = format!("Report, with all tables: {}\n", report.display());
    let mut tables = String::new();
    I::tables(&mut tables, results);
    // A blank line precedes the caveats.
    let taken: usize = [&text, &limits, &last].map(|part| part.lines().count()).iter().sum();
    let room = LINES.saturating_sub(taken + 1);
    // A table that does not fit is in the report.
    let (tables, last) = match tables.lines().count() <= room {
        true => (tables, last),
        false => (paragraphs_within(&tables, room), whole),
    };
    if !text.is_empty() && !tables.is_empty() && !tables.starts_with('\n') {
        text.push('\n');
    }
    text + &tables + "\n" + &limits + &last
}

/// A terminal's worth of lines.
const LINES: usize = 30;

/// The first lines, and the number of the others.
fn limited(text: &str, most: usize) -> String {
    let all = text.lines().count();
    if all <= most {
        return text.to_owned();
    }
    let mut few: String = text.lines().take(most - 1).map(|line| format!("{line}\n")).collect();
    let _ = writeln!(few, "and {} in the report.", plural((all - most + 1) as u64, "more line"));
    few
}

/// The leading paragraphs that fit.
fn paragraphs_within(text: &str, lines: usize) -> String {
    let mut room = lines;
    let fits = |paragraph: &&str| {
        let needed = paragraph.lines().count() + 1;
        let fits = needed <= room;
        room = room.saturating_sub(needed);
        fits
    };
    text.trim().split("\n\n").take_while(fits).map(|paragraph| format!("\n{paragraph}\n")).collect()
}

/// Claims and invalid runs, counted; the report lists them.
fn left_out(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    let (claims, unrun) = claims::shown(&summary.claims);
    if !claims.is_empty() {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for claim in claims {
            *counts.entry(claim.verdict.to_string()).or_default() += 1;
        }
        let counts: Vec<String> =
            counts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
        lines.push(format!("Claims: {}.", counts.join(", ")));
    }
    lines.extend(unrun);
    let invalid: u32 = summary.cells.iter().map(|cell| cell.invalid_runs).sum();
    let runs: u32 = summary.cells.iter().map(CellSummary::runs).sum();
    if invalid > 0 {
        lines.push(format!("{invalid} of {} invalid and left out.", plural(runs.into(), "run")));
    }
    lines
}

/// The labels to read before any number.
pub(crate) fn labels<I: Shown>(plan: &Plan, summary: &Summary) -> Vec<String> {
    // Sorted by family and metric.
    let pairs: Vec<&Comparison> = summary.comparisons.iter().filter(|one| one.aa).collect();
    let same = |left: &&Comparison, right: &&Comparison| left.heading() == right.heading();
    labels_with::<I>(plan, summary, pairs.chunk_by(same).filter_map(noise_floor::<I>).collect())
}

fn labels_with<I: Shown>(plan: &Plan, summary: &Summary, floors: Vec<String>) -> Vec<String> {
    let mut labels = I::warnings(summary);
    labels.push(weight(plan, summary));
    labels.extend(summary.foreign.label());
    labels.push(I::setting(summary));
    labels.extend(duets(plan));
    labels.extend(floors);
    if plan.baseline.is_none() && (!plan.experiment.baseline.is_empty() || plan.experiment.compare.is_empty())
    {
        labels.push(no_baseline(&plan.experiment.baseline, &plan.absent));
    }
    labels.extend(pair(plan));
    labels.extend(plan.absent.iter().map(|(name, why)| format!("{name}: absent: {why}.")));
    labels.extend(dropped(&plan.dropped));
    labels.extend(extended(&plan.extended, plan.blocks.len()));
    labels.extend(summary.notes.iter().cloned());
    labels
}

/// A cell's title by its name.
pub(crate) fn called<I: Shown>(plan: &Plan) -> impl Fn(&str) -> String {
    let titles: BTreeMap<String, String> =
        plan.cells.iter().map(|cell| (cell.to_string(), I::title(cell))).collect();
    move |cell| titles.get(cell).cloned().unwrap_or_else(|| cell.to_owned())
}

/// Why nothing is compared with a baseline: the fate of each candidate.
pub(crate) fn no_baseline(candidates: &[String], absent: &BTreeMap<String, String>) -> String {
    let what = |name: &String| match absent.contains_key(name.split('+').next().unwrap_or_default()) {
        true => format!("{name} is absent"),
        false => format!("no cell of {name} is run"),
    };
    let each: Vec<String> = candidates.iter().map(what).collect();
    let why = if each.is_empty() { "the experiment names none".into() } else { each.join("; ") };
    format!("No baseline and no ratios to one: {why}.")
}

/// The fate of an A/A pair that is not run as the experiment defines it.
pub(crate) fn pair(plan: &Plan) -> Option<String> {
    let aa = plan.experiment.aa.as_ref()?;
    if plan.cells.iter().any(Cell::is_again) {
        return plan.is_pair_kept.then(|| {
            format!(
                "The A/A pair of {aa} runs beside the cells of --only: it measures the noise floor. --only name=.. \
                 leaves it out."
            )
        });
    }
    let why = match plan.absent.contains_key(aa) {
        true => format!("{aa}, which would be run twice, is absent"),
        false => format!("the A/A pair of {aa} is not run"),
    };
    Some(format!("No noise floor: {why}. A difference may be noise."))
}

/// The cells that are skipped though their subject is present.
fn dropped(lines: &[String]) -> Vec<String> {
    if lines.len() <= MOST_DROPPED {
        return lines.iter().map(|line| format!("Not run: {line}.")).collect();
    }
    let some = lines[..MOST_DROPPED].join("; ");
    vec![format!("Not run, {} in all: {some}; see `weir plan` for all.", lines.len())]
}

/// The weight of the comparisons, by their number of blocks.
fn weight(plan: &Plan, summary: &Summary) -> String {
    let (valid, planned) = (summary.blocks(), plan.blocks.len());
    let (least, most) = (*valid.start(), *valid.end());
    let valid = if least == most { most.to_string() } else { format!("{least} to {most}") };
    let blocks = format!("{valid} valid of {}", plural(planned as u64, "planned block"));
    // With enough planned, more blocks do not help.
    let more = if planned < BLOCKS_FOR_VERDICT { " (--blocks 12)" } else { "" };
    match summary.weight {
        Weight::Verdict if (least as usize) < BLOCKS_FOR_VERDICT => {
            format!("Verdict: {blocks}; comparisons of fewer than {BLOCKS_FOR_VERDICT} are marked.")
        }
        Weight::Verdict => format!("Verdict: {blocks}."),
        Weight::Indication => format!(
            "Indication: {blocks}, not adjusted for the number of comparisons. A verdict needs {BLOCKS_FOR_VERDICT} or \
             more{more}."
        ),
        Weight::None => format!("{blocks}: no interval and no verdict below {BLOCKS_FOR_INTERVAL}{more}."),
    }
}

/// Why blocks that were added after a first result lower the error rate.
fn extended(before: &[u32], blocks: usize) -> Option<String> {
    let first = before.first()?;
    let times = match before.len() {
        1 => "once".to_owned(),
        many => format!("{many} times"),
    };
    Some(format!(
        "Extended {times}, from {first} to {blocks} blocks, after the result could be read. Repeated looks find more \
         by chance: intervals and verdicts use an error rate of {:.3} instead of {}.",
        ErrorRate::of_looks(1 + before.len()).get(),
        ErrorRate::default().get(),
    ))
}

/// The caveat of duets.
fn duets(plan: &Plan) -> Option<String> {
    (plan.experiment.layout == Layout::Duet).then(|| {
        let others = match plan.experiment.alone_blocks {
            0 => "nothing else was measured".to_owned(),
            blocks => {
                format!("rates and times come from {} of runs alone", plural(blocks.into(), "block"))
            }
        };
        format!("CPU is compared in duets, two subjects at a time on the same cores; {others}.")
    })
}

/// The largest noise floor of the experiment's main metrics.
fn brief_floor(comparisons: &[Comparison]) -> Option<String> {
    let pairs = || comparisons.iter().filter(|one| one.aa && one.is_main);
    let first = pairs().next()?;
    let known: Option<Vec<f64>> = pairs().map(|pair| pair.ratio.reach()).collect();
    let floor = known.and_then(|known| known.into_iter().reduce(f64::max));
    let floor = floor.map_or_else(|| "unknown".into(), |floor| format!("{:.1} %", floor.exp_m1() * 100.0));
    Some(format!("Noise floor ({} against itself, {}): {floor}.", first.baseline, first.metric))
}

/// The noise floor by the A/A pairs of one metric and family.
fn noise_floor<I: Shown>(pairs: &[&Comparison]) -> Option<String> {
    let first = pairs.first()?;
    let ratios: Vec<String> =
        pairs.iter().map(|pair| format!("{} {}", I::short(&pair.cell), pair.ratio.text())).collect();
    let listed = ratios.join(", ");
    let each = match ratios.len() {
        1 => format!("; {listed}"),
        few if few <= MOST_RATIOS && listed.len() <= WIDTH => format!("; {listed}"),
        many => format!(" over {many} pairs"),
    };
    let known: Vec<f64> = pairs.iter().filter_map(|pair| pair.ratio.reach()).collect();
    let floor = match known.iter().copied().reduce(f64::max) {
        Some(floor) => format!("{:.1} %", floor.exp_m1() * 100.0),
        None => "unknown".into(),
    };
    let missing = match pairs.len() - known.len() {
        0 => String::new(),
        some => format!(" Unknown for {some} of {}: no difference is reported there.", pairs.len()),
    };
    Some(format!(
        "Noise floor (A/A, {} against itself, {}): {floor}{each}.{missing}",
        first.baseline,
        first.heading()
    ))
}

/// The verdict of each claim: the local figure beside those of the source and the original. `called` returns a title
/// by a cell's name.
fn claims(text: &mut String, findings: &[Finding], called: &dyn Fn(&str) -> String) {
    if findings.is_empty() {
        return;
    }
    let (shown, unrun) = claims::shown(findings);
    text.push_str("\nClaims:\n");
    if let Some(unrun) = unrun {
        flow(text, &unrun, 2, 6);
    }
    for claim in shown {
        flow(text, &format!("{} ({}): {}", claim.id, claim.source, claim.says), 2, 6);
        flow(text, &format!("{}: {}", claim.verdict_text(), claim.why), 6, 10);
        if claim.cells.len() <= MOST_CELLS {
            for one in &claim.cells {
                flow(text, &format!("measured {}: {}", one.value_text(), called(&one.cell)), 6, 10);
            }
        }
        let texts = [("expected", claim.asked_text()), ("reported", claim.figures_text())];
        for (what, words) in texts.iter().filter(|(_, words)| !words.is_empty()) {
            flow(text, &format!("{what}: {words}"), 6, 10);
        }
    }
}

fn invalid(text: &mut String, summary: &Summary) {
    let invalid: u32 = summary.cells.iter().map(|cell| cell.invalid_runs).sum();
    if invalid == 0 {
        return;
    }
    let _ = writeln!(text, "\n{}, kept and not averaged:", plural(invalid.into(), "invalid run"));
    for found in summary.cells.iter().filter(|found| found.invalid_runs > 0) {
        let why =
            if found.validity.is_valid() { "see the report".into() } else { found.validity.to_string() };
        let total = plural(found.runs().into(), "run");
        wrap(text, &format!("  {}: {} of {total}: {why}", found.cell, found.invalid_runs));
    }
}
