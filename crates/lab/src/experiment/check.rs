//! What an experiment must keep to, beyond the form of its keys.

use super::factor::{self, OWN};
use super::load_table::{self, Wrong};
use super::{AGAIN, Case, Claim, Conditions, Experiment, Level, Load, Mode, Selector, Side, Stop};
use crate::error::{ConfigError, said};
use crate::metric::Metric;
use crate::stats::MOST_BLOCKS;
use std::fmt::Display;
use std::ops::RangeInclusive;
use toml::{Table, Value};

/// More cells than this are a slip of the pen.
const MOST_COMBINATIONS: usize = 20_000;

/// Makes an error about a key, wherever it stands.
pub(crate) trait Blame: Fn(&str, String) -> ConfigError {}
impl<F: Fn(&str, String) -> ConfigError> Blame for F {}

/// What claims and comparisons name, and what is left out.
pub(super) fn claims(experiment: &Experiment, wrong: &impl Blame) -> Result<(), ConfigError> {
    experiment.claims.iter().try_for_each(|claim| check_claim(experiment, claim, wrong))?;
    for (index, levels) in experiment.leave_out.iter().enumerate() {
        let place = format!("leave_out.{index}");
        if let Some((key, _)) = levels.iter().find(|(key, _)| factor::is_of_targets(key)) {
            let message = format!("`{key}` is of targets: allowed are other factors");
            return Err(wrong(&place, message));
        }
        check_selector(experiment, levels, &place, wrong)?;
    }
    for (index, compare) in experiment.compare.iter().enumerate() {
        let selector = Selector::from_iter([(compare.factor.clone(), compare.baseline.clone())]);
        let place = format!("compare.{index}");
        if compare.factor == "load_model" {
            let message = "`load_model`: what two loads come to is not compared: allowed is another factor";
            return Err(wrong(&place, message.into()));
        }
        if !experiment.factors.iter().any(|factor| factor.key == compare.factor) {
            let known: Vec<&str> = experiment.factors.iter().map(|factor| factor.key.as_str()).collect();
            let message = format!("`{}` is no factor: allowed are {}", compare.factor, known.join(", "));
            return Err(wrong(&place, message));
        }
        check_selector(experiment, &selector, &place, wrong)?;
        check_selector(experiment, &compare.cell, &format!("{place}.cell"), wrong)?;
    }
    Ok(())
}

/// What `--quick` can change.
pub(super) fn all_but_claims(experiment: &Experiment, wrong: &impl Blame) -> Result<(), ConfigError> {
    check_names(experiment, wrong)?;
    check_numbers(experiment, wrong)?;
    for key in OWN {
        if experiment.levels(key).is_empty() {
            let message = format!("missing: give `{key}` among the factors or the constants");
            return Err(wrong(key, message));
        }
    }
    for (key, value) in factor::leaves(&experiment.constants) {
        check_leaf(&key, value, wrong)?;
    }
    for factor in &experiment.factors {
        factor.levels.iter().try_for_each(|level| check_leaf(&factor.key, level, wrong))?;
    }
    check_combinations(experiment, wrong)
}

fn check_names(experiment: &Experiment, wrong: &impl Blame) -> Result<(), ConfigError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name = &experiment.name;
    if name.is_empty() || !name.chars().all(plain) {
        return Err(wrong("name", format!("`{name}`: allowed are letters, digits, `-` and `_`")));
    }
    let targets = experiment.targets();
    for name in &targets {
        if name.is_empty() || !name.chars().all(plain) || name.ends_with(AGAIN) {
            let allowed = format!("letters, digits, `-` and `_`, not ending in `{AGAIN}`");
            return Err(wrong("target", format!("`{name}`: allowed are {allowed}")));
        }
    }
    let unknown =
        |name: &str| format!("`{name}` is not among the targets: allowed are {}", targets.join(", "));
    if let Some(name) = experiment.baseline.iter().find(|name| !experiment.has_target(name)) {
        return Err(wrong("baseline", unknown(name)));
    }
    match experiment.aa.as_ref().filter(|name| !targets.contains(name)) {
        Some(name) => Err(wrong("aa", unknown(name))),
        None => Ok(()),
    }
}

fn check_numbers(experiment: &Experiment, wrong: &impl Blame) -> Result<(), ConfigError> {
    let Experiment { calibration_runs, rate_share, margin, stop, .. } = *experiment;
    in_range("calibration_runs", calibration_runs, 1..=100, wrong)?;
    in_range("rate_share", rate_share, 0.01..=0.95, wrong)?;
    in_range("margin", margin, 0.001..=0.5, wrong)?;
    match stop {
        Stop::Blocks(blocks) => in_range("blocks", blocks, 1..=MOST_BLOCKS, wrong),
        Stop::Minutes(minutes) if minutes > 0.0 && minutes <= 10_000.0 => Ok(()),
        Stop::Minutes(minutes) => {
            Err(wrong("minutes", format!("{minutes}: allowed is more than 0, up to 10000")))
        }
        Stop::Precision(rule) => {
            let metrics = experiment.loads().into_iter().flat_map(|load| {
                [Case::Request, Case::HandshakeFull]
                    .into_iter()
                    .flat_map(move |case| Metric::of_load(load, case))
            });
            if !metrics.into_iter().any(|metric| metric == rule.metric) {
                let message = format!("`{}` is not compared under this load", rule.metric);
                return Err(wrong("precision.metric", message));
            }
            if experiment.baseline.is_empty() && experiment.compare.is_empty() {
                return Err(wrong(
                    "precision",
                    "nothing is compared: give `baseline` or `[[compare]]`".into(),
                ));
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
    wrong: &impl Blame,
) -> Result<(), ConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(wrong(key, format!("{value}: allowed is {} to {}", range.start(), range.end())))
}

/// Whether a key takes such a value, amid others that are right.
pub(super) fn takes(key: &str, value: &Value) -> bool {
    check_leaf(key, value, &|key: &str, message| ConfigError::new(key, message)).is_ok()
}

fn check_leaf(key: &str, value: &Value, wrong: &impl Blame) -> Result<(), ConfigError> {
    if key == "target" {
        return match value.is_str() {
            true => Ok(()),
            false => Err(wrong(key, format!("`{value}`: allowed is a folder's name"))),
        };
    }
    if key == "load" {
        return Err(wrong(
            key,
            "is a table, with flags of `weir load`; whether it is `equal-rate` or `saturated` is said by \
             `load_model`"
                .into(),
        ));
    }
    let mut table = Table::from_iter([
        ("mode".to_owned(), Value::from("h1c")),
        ("load_model".to_owned(), Value::from("saturated")),
        ("connections".to_owned(), Value::from(1)),
        ("bytes".to_owned(), Value::from(0)),
        ("warmup_ms".to_owned(), Value::from(0)),
        ("window_ms".to_owned(), Value::from(1000)),
    ]);
    factor::insert(&mut table, key, value.clone());
    let read: Result<Conditions, _> = table.try_into();
    read.map(drop).map_err(|error| wrong(key, said(&error)))
}

/// All values together, in every combination of the factors' levels.
fn check_combinations(experiment: &Experiment, wrong: &impl Blame) -> Result<(), ConfigError> {
    let levels = experiment.factors.iter().map(|factor| factor.levels.len());
    let number = levels.fold(1_usize, usize::saturating_mul);
    if number > MOST_COMBINATIONS {
        let message = format!("{number} combinations of levels: allowed are {MOST_COMBINATIONS}");
        return Err(wrong("factors", message));
    }
    check_effect(experiment, wrong)?;
    check_loops(experiment).map_err(|Wrong { key, message }| wrong(&key, message))?;
    let combinations = experiment.combinations();
    if combinations.is_empty() {
        return Err(wrong("leave_out", "leaves no combination of levels: allowed are fewer".into()));
    }
    let mut right = 0;
    let mut refused = None;
    for combination in combinations {
        let conditions = experiment.with(combination.iter().copied());
        let conditions = conditions.map_err(|error| wrong("constants", said(&error)))?;
        match conditions.check() {
            Ok(()) => right += 1,
            Err(error) => {
                refused.get_or_insert((error, combination));
            }
        }
    }
    let Some((Wrong { key, message }, combination)) = refused else { return Ok(()) };
    // Where others pass, it is the combination that is impossible.
    let varied = combination.iter().filter(|(key, _)| experiment.levels(key).len() > 1);
    let words: Vec<String> = varied.map(|(key, value)| format!("{key}={}", Level::of(value))).collect();
    let cell = if right > 0 { format!(" (with {})", words.join(", ")) } else { String::new() };
    Err(wrong(&key, format!("{message}{cell}")))
}

/// Factors that would change nothing in some of the cells that they make.
fn check_effect(experiment: &Experiment, wrong: &impl Blame) -> Result<(), ConfigError> {
    let varied = experiment.factors.iter().filter(|factor| factor.levels.len() > 1);
    for factor in varied {
        if factor.key == "rate" && experiment.loads().contains(&Load::Saturated) {
            let message = "as a factor it is for `equal-rate` alone: leave `saturated` out of `load_model`";
            return Err(wrong("rate", message.into()));
        }
        let is_cleartext = |mode: &Mode| mode.client() == Side::H1c && mode.origin() == Side::H1c;
        if factor.key.starts_with("tls.")
            && let Some(mode) = experiment.modes().into_iter().find(is_cleartext)
        {
            let message = format!("varies nothing in mode `{mode}`: allowed are modes with TLS");
            return Err(wrong(&factor.key, message));
        }
    }
    Ok(())
}

fn check_loops(experiment: &Experiment) -> Result<(), Wrong> {
    let constant = experiment.constants.get("load").and_then(Value::as_table);
    let constant = constant.into_iter().flat_map(Table::keys).map(String::as_str);
    let varied = experiment.factors.iter().filter_map(|factor| factor.key.strip_prefix("load."));
    load_table::check_loops(&constant.chain(varied).collect::<Vec<_>>(), &experiment.loads())
}

fn check_claim(experiment: &Experiment, claim: &Claim, wrong: &impl Blame) -> Result<(), ConfigError> {
    let place = experiment.claims.iter().position(|other| other.id == claim.id).unwrap_or(0);
    let place = format!("claims.{place}");
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let id = &claim.id;
    if id.is_empty() || !id.chars().all(plain) {
        return Err(wrong(&place, format!("id: `{id}`: allowed are letters, digits and `-`")));
    }
    if experiment.claims.iter().filter(|other| other.id == *id).count() > 1 {
        return Err(wrong(&place, format!("id: `{id}` is given twice")));
    }
    let is_tested = claim.metric.is_some() && claim.expect.is_some();
    if is_tested == claim.not_testable.is_some() {
        let message = "allowed is `metric` with `expect`, or `not_testable` with the reason";
        return Err(wrong(&place, message.into()));
    }
    if let Some(metric) = claim.metric.filter(|metric| !metric.is_of_gateways()) {
        let message = format!("metric: `{}` is of TLS stacks in memory, and of no gateway", metric.key());
        return Err(wrong(&place, message));
    }
    check_selector(experiment, &claim.cell, &format!("{place}.cell"), wrong)?;
    if claim.metric == Some(Metric::ErrorRatio) && claim.against.is_some() {
        let message =
            "`error_ratio` is 0 in a good cell, and has no ratio: allowed is a claim without `against`";
        return Err(wrong(&format!("{place}.against"), message.into()));
    }
    match &claim.against {
        Some(against) if against.is_empty() => {
            Err(wrong(&format!("{place}.against"), "empty: at least one level is needed".into()))
        }
        Some(against) => check_selector(experiment, against, &format!("{place}.against"), wrong),
        None => Ok(()),
    }
}

/// Each key is a factor or a constant of the experiment, and each level one of its.
fn check_selector(
    experiment: &Experiment,
    selector: &Selector,
    place: &str,
    wrong: &impl Blame,
) -> Result<(), ConfigError> {
    for (key, level) in selector.iter() {
        let levels = experiment.levels(key);
        if levels.is_empty() {
            let known: Vec<&str> = experiment.factors.iter().map(|factor| factor.key.as_str()).collect();
            return Err(wrong(place, format!("`{key}` is no factor: allowed are {}", known.join(", "))));
        }
        if !levels.contains(level) {
            let levels: Vec<String> = levels.iter().map(Level::to_string).collect();
            return Err(wrong(place, format!("{key}: `{level}`: allowed are {}", levels.join(", "))));
        }
    }
    Ok(())
}
