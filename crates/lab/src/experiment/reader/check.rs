//! Checks of experiments beyond the syntax of their keys.

use crate::base::error::ConfigError;
use crate::doctor::FEATURES;
use crate::experiment::metric::Metric;
use crate::experiment::{
    AGAIN, Blame, Claim, Experiment, Grammar, Layout, Level, Levels, SUBJECTS, Stop, is_of_subjects,
};
use crate::stats::MOST_BLOCKS;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Checks the cells of claims, comparisons and `leave_out`.
pub(super) fn claims<I: Grammar>(experiment: &Experiment, wrong: &Blame<'_>) -> Result<(), ConfigError> {
    for (index, claim) in experiment.claims.iter().enumerate() {
        check_claim::<I>(experiment, claim, &format!("claims.{index}"), wrong)?;
    }
    left_out::<I>(experiment, &experiment.leave_out, "leave_out", wrong)?;
    for (index, compare) in experiment.compare.iter().enumerate() {
        let selector = Levels::from_iter([(compare.factor.clone(), compare.baseline.clone())]);
        let place = format!("compare.{index}");
        let known = keys::<I>(experiment);
        if !known.contains(&compare.factor) {
            return Err(wrong(&place, no_factor(&compare.factor, &known)));
        }
        check_selector::<I>(experiment, &selector, &place, wrong)?;
        check_selector::<I>(experiment, &compare.cell, &format!("{place}.cell"), wrong)?;
    }
    Ok(())
}

/// Checks the entries of a `leave_out` against the experiment's factors.
pub(super) fn left_out<I: Grammar>(
    experiment: &Experiment,
    entries: &[Levels],
    key: &str,
    wrong: &Blame<'_>,
) -> Result<(), ConfigError> {
    for (index, levels) in entries.iter().enumerate() {
        let place = format!("{key}.{index}");
        if let Some((key, _)) = levels.iter().find(|(key, _)| is_of_subjects(key)) {
            let message = format!("invalid key `{key}`: expected a factor other than the {}s'", I::SUBJECT);
            return Err(wrong(&place, message));
        }
        check_selector::<I>(experiment, levels, &place, wrong)?;
    }
    Ok(())
}

/// Checks everything that `--quick` can change.
pub(super) fn all_but_claims<I: Grammar>(
    experiment: &Experiment,
    wrong: &Blame<'_>,
) -> Result<(), ConfigError> {
    check_names::<I>(experiment, wrong)?;
    check_numbers::<I>(experiment, wrong)?;
    I::check(experiment, wrong)
}

fn check_names<I: Grammar>(experiment: &Experiment, wrong: &Blame<'_>) -> Result<(), ConfigError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name = &experiment.name;
    if name.is_empty() || !name.chars().all(plain) {
        let message = format!("invalid value `{name}`: expected letters, digits, `-`, `_` and `.`");
        return Err(wrong("name", message));
    }
    let subjects = experiment.subjects();
    if subjects.is_empty() {
        return Err(wrong(I::SUBJECT, format!("missing; add `{}` to the factors", I::SUBJECT)));
    }
    for name in &subjects {
        if name.is_empty() || !name.chars().all(plain) || name.ends_with(AGAIN) {
            let allowed = format!("letters, digits, `-`, `_` and `.`, not ending in `{AGAIN}`");
            return Err(wrong(I::SUBJECT, format!("invalid value `{name}`: expected {allowed}")));
        }
    }
    let unknown =
        |name: &str| format!("unknown {} `{name}`: expected one of {}", I::SUBJECT, subjects.join(", "));
    if let Some(name) = experiment.baseline.iter().find(|name| !experiment.has_subject(name)) {
        return Err(wrong("baseline", unknown(name)));
    }
    match experiment.aa.as_ref().filter(|name| !subjects.contains(name)) {
        Some(name) => Err(wrong("aa", unknown(name))),
        None => Ok(()),
    }
}

fn check_numbers<I: Grammar>(experiment: &Experiment, wrong: &Blame<'_>) -> Result<(), ConfigError> {
    let Experiment { calibration_runs, rate_share, margin, stop, layout, alone_blocks, .. } = *experiment;
    match layout {
        Layout::Blocks if alone_blocks > 0 => {
            let message = format!(
                "invalid value `{alone_blocks}`: expected 0 without `layout = \"duet\"`, as each cell runs alone"
            );
            return Err(wrong("alone_blocks", message));
        }
        Layout::Duet if experiment.baseline.is_empty() && experiment.compare.is_empty() => {
            let message =
                "invalid value `duet`: nothing to compare; set `baseline` or `[[compare]]`, or use `blocks`";
            return Err(wrong("layout", message.into()));
        }
        _ => in_range("alone_blocks", alone_blocks, 0..=MOST_BLOCKS, wrong)?,
    }
    in_range("calibration_runs", calibration_runs, 1..=100, wrong)?;
    in_range("repeats", experiment.repeats, 0.0..=2.0, wrong)?;
    in_range("rate_share", rate_share, 0.01..=0.95, wrong)?;
    in_range("margin", margin, 0.001..=0.5, wrong)?;
    match stop {
        Stop::Blocks(blocks) => in_range("blocks", blocks, 1..=MOST_BLOCKS, wrong),
        Stop::Minutes(minutes) if minutes > 0.0 && minutes <= 10_000.0 => Ok(()),
        Stop::Minutes(minutes) => {
            Err(wrong("minutes", format!("invalid value `{minutes}`: expected more than 0, up to 10000")))
        }
        Stop::Precision(rule) => {
            if !I::METRICS.contains(&rule.metric) {
                let message =
                    format!("invalid value `{}`: expected a metric of {}s", rule.metric, I::SUBJECT);
                return Err(wrong("precision.metric", message));
            }
            if experiment.baseline.is_empty() && experiment.compare.is_empty() {
                let message = "nothing to compare; set `baseline` or `[[compare]]`";
                return Err(wrong("precision", message.into()));
            }
            in_range("precision.width", rule.width, 0.001..=1.0, wrong)?;
            in_range("precision.least", rule.least, 5..=MOST_BLOCKS, wrong)?;
            in_range("precision.most", rule.most, rule.least..=MOST_BLOCKS, wrong)
        }
    }
}

fn in_range<T: PartialOrd + Display>(
    key: &str,
    value: T,
    range: RangeInclusive<T>,
    wrong: &Blame<'_>,
) -> Result<(), ConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(wrong(key, format!("invalid value `{value}`: expected {} to {}", range.start(), range.end())))
}

fn check_claim<I: Grammar>(
    experiment: &Experiment,
    claim: &Claim,
    place: &str,
    wrong: &Blame<'_>,
) -> Result<(), ConfigError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let id = &claim.id;
    if id.is_empty() || !id.chars().all(plain) {
        return Err(wrong(place, format!("id: invalid value `{id}`: expected letters, digits, `-` and `.`")));
    }
    if experiment.claims.iter().filter(|other| other.id == *id).count() > 1 {
        return Err(wrong(place, format!("id: duplicate value `{id}`")));
    }
    let asked = [claim.metric.is_some(), !claim.share_of.is_empty(), claim.not_testable.is_some()];
    let is_one = asked.iter().filter(|is_given| **is_given).count() == 1;
    if !is_one || claim.expect.is_some() == claim.not_testable.is_some() {
        let message =
            "expected `metric` with `expect`, `share_of` with `expect`, or `not_testable` with the reason";
        return Err(wrong(place, message.into()));
    }
    if let Some(unknown) = claim.cpu.iter().find(|feature| !FEATURES.contains(&feature.as_str())) {
        let message = format!("cpu: unknown feature `{unknown}`; expected some of {}", FEATURES.join(", "));
        return Err(wrong(place, message));
    }
    if !claim.share_of.is_empty() && claim.against.is_some() {
        return Err(wrong(
            place,
            "`share_of` is a share of the cell's own CPU time; remove `against`".into(),
        ));
    }
    if let Some(metric) = claim.metric.filter(|metric| !I::METRICS.contains(metric)) {
        let known: Vec<String> = I::METRICS.iter().map(|metric| metric.key()).collect();
        let message = format!(
            "metric: invalid value `{}`: expected a metric of {}s: {}",
            metric.key(),
            I::SUBJECT,
            known.join(", ")
        );
        return Err(wrong(place, message));
    }
    check_selector::<I>(experiment, &claim.cell, &format!("{place}.cell"), wrong)?;
    let place = format!("{place}.against");
    match &claim.against {
        Some(_) if claim.metric == Some(Metric::ErrorRatio) => {
            let message = "`error_ratio` is 0 in a good cell, so its ratio is undefined; remove `against`";
            Err(wrong(&place, message.into()))
        }
        Some(against) if against.is_empty() => {
            Err(wrong(&place, "empty: expected at least one level".into()))
        }
        Some(against) => check_selector::<I>(experiment, against, &place, wrong),
        None => Ok(()),
    }
}

/// Checks that each key is a factor or constant of the experiment, with a known level.
fn check_selector<I: Grammar>(
    experiment: &Experiment,
    selector: &Levels,
    place: &str,
    wrong: &Blame<'_>,
) -> Result<(), ConfigError> {
    for (key, level) in selector.iter() {
        let levels = match SUBJECTS.contains(&key) {
            true => experiment.levels(key),
            false => I::levels(experiment, key),
        };
        if levels.is_empty() {
            return Err(wrong(place, no_factor(key, &keys::<I>(experiment))));
        }
        if !levels.contains(level) {
            let levels: Vec<&str> = levels.iter().map(Level::as_str).collect();
            let levels = levels.join(", ");
            return Err(wrong(place, format!("{key}: invalid value `{level}`: expected one of {levels}")));
        }
    }
    Ok(())
}

/// The keys that distinguish cells.
fn keys<I: Grammar>(experiment: &Experiment) -> Vec<String> {
    [I::SUBJECT.to_owned()].into_iter().chain(I::keys(experiment)).collect()
}

fn no_factor(key: &str, known: &[String]) -> String {
    format!("unknown factor `{key}`: expected one of {}", known.join(", "))
}
