//! The places of cells in words, and the differences between them: only those are shown.

use super::Load;
use super::levels::{Place, listed};
use crate::experiment::Level;
use crate::planning::cell::Levels;
use crate::planning::plan::Plan;
use std::collections::{BTreeMap, BTreeSet};
use weir_load::plural;

/// The places of a plan without their load, in the experiment's order of modes.
pub(super) fn places(plan: &Plan) -> Vec<Levels> {
    let mut places = Vec::new();
    for mode in plan.experiment.modes() {
        for cell in plan.cells.iter().filter(|cell| cell.mode() == mode) {
            let place = cell.place().at(Load::Saturated);
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    places
}

/// The load's parameters in words; the mode is shown elsewhere.
pub(super) fn words(place: &Levels) -> String {
    let connections = connections(place);
    let first = match place.case().is_handshake() {
        false => connections,
        true => format!("{}, {connections} at once", place.case()),
    };
    listed([first, bytes(place)].into_iter().chain(conditions(place)))
}

/// `64 connections`; with several streams on each, `64 users on 4 connections`.
fn connections(place: &impl Place) -> String {
    let (users, streams) = (u64::from(place.connections()), u64::from(place.streams()));
    let connections = plural(users / streams.max(1), "connection");
    if streams > 1 { format!("{} on {connections}", plural(users, "user")) } else { connections }
}

/// The further levels but for the target's settings; streams are in [`connections`].
fn conditions(place: &impl Place) -> impl Iterator<Item = String> {
    place.conditions().filter(|(key, _)| *key != "streams").map(further)
}

fn bytes(place: &impl Place) -> String {
    plural(place.bytes(), "byte")
}

fn further((key, level): (&str, &Level)) -> String {
    match key {
        "streams" if level.number() == Some(1.0) => "1 stream each".into(),
        "streams" => format!("{level} streams each"),
        _ => format!("{key} {level}"),
    }
}

/// The keys in which the cells of an experiment differ.
pub(super) struct Vary(BTreeSet<String>);

impl Vary {
    pub(super) fn of(plan: &Plan) -> Self {
        let mut levels: BTreeMap<&str, BTreeSet<&Level>> = BTreeMap::new();
        for (key, level) in plan.cells.iter().flat_map(|cell| cell.levels.iter()) {
            levels.entry(key).or_default().insert(level);
        }
        let several = levels.into_iter().filter(|(_, levels)| levels.len() > 1);
        Self(several.map(|(key, _)| key.to_owned()).collect())
    }

    /// Whether cells differ in this key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains(key)
    }

    /// The factors that all cells share.
    pub(super) fn constants(&self, plan: &Plan) -> String {
        let Some(cell) = plan.cells.first() else { return String::new() };
        let users = (!self.has("connections")).then(|| connections(cell));
        let case = (!self.has("case") && cell.case().is_handshake()).then(|| cell.case().to_string());
        let bytes = (!self.has("bytes")).then(|| bytes(cell));
        let same = cell.conditions().filter(|(key, _)| !self.has(key)).map(further);
        listed(users.into_iter().chain(case).chain(bytes).chain(same))
    }

    /// The factors of a place that differ between places, but for mode, users, load and the compared one.
    pub(super) fn conditions(&self, place: &Levels, compared: Option<&str>) -> Vec<String> {
        let differs = |key: &str| self.has(key) && compared != Some(key);
        let case = differs("case").then(|| place.case().to_string());
        let bytes = differs("bytes").then(|| bytes(place));
        let others = place.conditions().filter(|(key, _)| differs(key)).map(further);
        case.into_iter().chain(bytes).chain(others).collect()
    }

    /// The name of a row: all that differs but the load and the compared factor.
    pub(super) fn row(&self, place: &Levels, compared: Option<&str>) -> String {
        let mode = (compared != Some("mode")).then(|| place.mode().to_string());
        listed(mode.into_iter().chain(self.others(place, compared)))
    }

    /// All that differs but mode and load, and the compared factor.
    pub(super) fn others(&self, place: &Levels, compared: Option<&str>) -> Vec<String> {
        let users = (self.has("connections") && compared != Some("connections")).then(|| connections(place));
        users.into_iter().chain(self.conditions(place, compared)).collect()
    }
}
