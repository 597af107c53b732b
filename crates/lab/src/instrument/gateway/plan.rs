//! From an experiment to its cells: targets with their settings, their modes, and the calibrated rates.

use super::levels::{Place as _, id, listed};
use super::run::Seen;
use super::target::{Target, Targets};
use super::{Case, Load, Mode};
use crate::base::error::{ConfigError, LabError};
use crate::experiment::{AGAIN, Experiment, Layout, Level};
use crate::planning::cell::{Cell, Levels};
use crate::planning::plan::{EqualRate, Plan};
use crate::planning::planned_run::Stage;
use crate::planning::subjects::{Candidate, Standing};
use crate::store::run::Run;
use std::collections::BTreeMap;
use toml::Value;

/// Each combination with each target in its modes, absent targets included, in the experiment's order.
pub(super) fn candidates(experiment: &Experiment, targets: &Targets) -> Result<Vec<Candidate>, ConfigError> {
    let combinations: Vec<Levels> = experiment
        .combinations()
        .iter()
        .map(|combination| levels(experiment, combination))
        .collect::<Result<_, _>>()?;
    let mut candidates = Vec::new();
    for subject in experiment.subjects() {
        let Some(target) = targets.all().find(|target| target.name == subject) else { continue };
        let is_present = targets.present.contains_key(&subject);
        let standing = if is_present { Standing::Present } else { Standing::Absent };
        let modes = &target.description.modes;
        for (name, settings) in measured(experiment, target) {
            let is_possible = |levels: &&Levels| {
                modes.contains(&levels.mode()) && has_streams(levels) && experiment.is_sent(target, levels)
            };
            for levels in combinations.iter().filter(is_possible) {
                let with = |levels: Levels, (key, level): &(&str, Level)| levels.with(key, level.clone());
                let levels = settings.iter().fold(levels.clone(), with);
                let (id, name, subject) = (id(&levels, &name), name.clone(), subject.clone());
                let cell = Cell { id, name, subject, levels };
                candidates.push(Candidate { cell, standing: standing.clone(), remark: None });
            }
        }
    }
    Ok(candidates)
}

/// Whether the cell's mode has as many streams per connection: HTTP/1.1 has one, whatever the other levels of the
/// factor.
fn has_streams(levels: &Levels) -> bool {
    levels.mode().client().is_http2() || levels.streams() == 1
}

/// The levels of a cell at this combination, including those that every cell has.
fn levels(experiment: &Experiment, combination: &[(&str, &Value)]) -> Result<Levels, ConfigError> {
    let conditions = experiment.under(combination)?;
    let case = Case::of(&conditions.load_options()?.policy, conditions.mode.client());
    let own = [
        ("case", Level::new(case)),
        ("mode", Level::new(conditions.mode)),
        ("load_model", Level::new(conditions.load_model)),
        ("connections", Level::new(conditions.connections)),
        ("bytes", Level::new(conditions.bytes)),
    ];
    // Given as a constant too: with HTTP/2, users say nothing about connections.
    let streams =
        (!experiment.levels("streams").is_empty()).then(|| ("streams", Level::new(conditions.streams)));
    let own = own.into_iter().chain(streams);
    let varied = combination.iter().map(|(key, value)| (*key, Level::of(value)));
    Ok(varied.chain(own).map(|(key, level)| (key.to_owned(), level)).collect())
}

/// The names of a target's cells: one for each of its settings, and the A/A target a second time right after the
/// first.
fn measured<'a>(experiment: &'a Experiment, target: &Target) -> Vec<(String, Vec<(&'a str, Level)>)> {
    let mut measured = Vec::new();
    for settings in experiment.settings_of(|key| target.description.settings.contains_key(key)) {
        let settings: Vec<(&str, Level)> =
            settings.into_iter().map(|(key, value)| (key, Level::of(value))).collect();
        let words =
            settings.iter().map(|(key, level)| format!("+{}={level}", key.trim_start_matches("settings.")));
        let name = format!("{}{}", target.name, words.collect::<String>());
        let again = measured.is_empty() && experiment.aa.as_ref() == Some(&target.name);
        measured.push((name.clone(), settings.clone()));
        measured.extend(again.then(|| (format!("{name}{AGAIN}"), settings)));
    }
    measured
}

/// What present targets cannot run: modes, and numbers of tickets.
pub(super) fn unsupported(experiment: &Experiment, targets: &Targets) -> Vec<String> {
    let tickets = targets.present.values().filter_map(|target| {
        let (unsent, sent) = (listed(experiment.unsent(target)), target.description.tickets.as_ref()?);
        let words =
            || format!("{} with {unsent} tickets in TLS 1.3: it sends only {}", target.name, listed(sent));
        (!unsent.is_empty()).then(words)
    });
    unsupported_modes(experiment, targets).into_iter().chain(tickets).collect()
}

/// The modes of the experiment that a target lacks while it has others of the kind: with a gateway or without.
fn unsupported_modes(experiment: &Experiment, targets: &Targets) -> Vec<String> {
    let is_of_gateway = |mode: &Mode| mode.upstream().is_some();
    let lacks = |target: &Target| {
        let has = &target.description.modes;
        let kind = has.iter().any(is_of_gateway);
        let wanted = experiment.modes().into_iter().filter(|mode| is_of_gateway(mode) == kind);
        let lacking = listed(wanted.filter(|mode| !has.contains(mode)));
        (!lacking.is_empty()).then(|| format!("{} in {lacking}: its modes are {}", target.name, listed(has)))
    };
    targets.present.values().filter_map(lacks).collect()
}

/// A saturated cell for each target that has an equal-rate cell without a given rate. The A/A target is calibrated
/// once.
pub(super) fn calibration(experiment: &Experiment, cells: &[Cell]) -> Result<Vec<Cell>, ConfigError> {
    let mut wanted = Vec::new();
    for cell in cells.iter().filter(|cell| cell.load() == Load::EqualRate) {
        if experiment.conditions(cell)?.rate.is_none() {
            let (name, levels) = (cell.first_name().to_owned(), cell.at(Load::Saturated));
            wanted.push(Cell { id: id(&levels, &name), name, levels, ..cell.clone() });
        }
    }
    wanted.sort();
    wanted.dedup();
    Ok(wanted)
}

/// The equal rate of each place: a share of the slowest target's maximum, in two significant digits.
///
/// A mode without a gateway takes the lowest rate of the modes with the same client side, if there is one, so that
/// their latencies compare.
pub(super) fn equal_rates(
    plan: &Plan,
    runs: &[Run<Seen>],
    needs_all: bool,
) -> Result<Vec<EqualRate>, LabError> {
    let mut maxima: BTreeMap<(Levels, &str), f64> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.run.stage == Stage::Calibration) {
        let Some(load) = run.seen.observation.load.as_ref().filter(|_| run.validity.is_valid()) else {
            continue;
        };
        let cell = &run.run.cell;
        let maximum = maxima.entry((cell.place().at(Load::EqualRate), &cell.name)).or_default();
        *maximum = maximum.max(load.requests_per_second);
    }
    let mut slowest: BTreeMap<Levels, (&str, f64)> = BTreeMap::new();
    for ((place, name), maximum) in maxima {
        let entry = slowest.entry(place).or_insert((name, maximum));
        if maximum < entry.1 {
            *entry = (name, maximum);
        }
    }
    let needs_rates = || plan.cells.iter().all(|cell| cell.load() == Load::EqualRate);
    if slowest.is_empty() && !plan.calibration.is_empty() && (needs_all || needs_rates()) {
        let reasons = runs.iter().find(|run| !run.validity.is_valid());
        let reason = reasons.map_or_else(String::new, |run| format!("; {}: {}", run.run.id, run.validity));
        return Err(LabError::Calibration(format!("no target gave a valid run{reason}")));
    }
    // The two of a duet share what one would have alone.
    let share = match plan.experiment.layout {
        Layout::Blocks => plan.experiment.rate_share,
        Layout::Duet => plan.experiment.rate_share / 2.0,
    };
    let rate = |(place, (slowest, maximum)): (Levels, (&str, f64))| EqualRate {
        place,
        requests_per_second: two_digits(share * maximum),
        slowest: slowest.to_owned(),
        slowest_maximum: maximum,
    };
    let mut rates: Vec<EqualRate> = slowest.into_iter().map(rate).collect();
    let with_gateway: Vec<EqualRate> =
        rates.iter().filter(|rate| rate.place.mode().upstream().is_some()).cloned().collect();
    for rate in rates.iter_mut().filter(|rate| rate.place.mode().upstream().is_none()) {
        let beside = with_gateway.iter().filter(|other| {
            other.place.mode().client() == rate.place.mode().client()
                && other.place.without("mode") == rate.place.without("mode")
        });
        if let Some(lowest) = beside.min_by(|a, b| a.requests_per_second.total_cmp(&b.requests_per_second))
            && lowest.requests_per_second < rate.requests_per_second
        {
            *rate = EqualRate { place: rate.place.clone(), ..lowest.clone() };
        }
    }
    Ok(rates)
}

/// The rate offered to a cell: the experiment's own, or the calibrated one.
pub(super) fn rate(plan: &Plan, cell: &Cell) -> Option<f64> {
    let given = || plan.experiment.conditions(cell).ok().and_then(|conditions| conditions.rate);
    match cell.load() {
        Load::Saturated => None,
        Load::EqualRate => given().or_else(|| plan.calibrated_rate(cell)),
    }
}

/// Whether calibration finds a cell's rate; otherwise it is given, or there is none.
pub(super) fn is_calibrated(plan: &Plan, cell: &Cell) -> bool {
    let is_given = || plan.experiment.conditions(cell).is_ok_and(|conditions| conditions.rate.is_some());
    cell.load() == Load::EqualRate && !is_given()
}

/// Rounds down to two significant digits.
pub(crate) fn two_digits(rate: f64) -> f64 {
    let unit = 10_f64.powf(rate.max(1.0).log10().floor() - 1.0).max(1.0);
    ((rate / unit).floor() * unit).max(1.0)
}

#[cfg(test)]
mod tests;
