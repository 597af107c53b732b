//! What differs between the cells of an experiment: only that need be said of each.

use super::levels::Place;
use crate::cell::{Cell, Levels};
use crate::experiment::Level;
use crate::plan::Plan;
use std::collections::{BTreeMap, BTreeSet};
use weir_load::plural;

/// What differs between the cells of an experiment.
pub(crate) struct Vary {
    pub(crate) users: bool,
    pub(crate) bytes: bool,
    pub(crate) case: bool,
    /// The keys of the further factors that have more than one level.
    pub(crate) factors: BTreeSet<String>,
}

impl Vary {
    pub(crate) fn of(plan: &Plan) -> Self {
        let vary =
            |differs: fn(&Cell, &Cell) -> bool| plan.cells.windows(2).any(|pair| differs(&pair[0], &pair[1]));
        let mut levels: BTreeMap<&str, BTreeSet<&Level>> = BTreeMap::new();
        for (key, level) in plan.cells.iter().flat_map(Place::conditions) {
            levels.entry(key).or_default().insert(level);
        }
        let several = levels.into_iter().filter(|(_, levels)| levels.len() > 1);
        Self {
            users: vary(|left, right| left.connections() != right.connections()),
            bytes: vary(|left, right| left.bytes() != right.bytes()),
            case: vary(|left, right| left.case() != right.case()),
            factors: several.map(|(key, _)| key.to_owned()).collect(),
        }
    }

    /// The factors that all cells share.
    pub(crate) fn constants(&self, plan: &Plan) -> String {
        let Some(cell) = plan.cells.first() else { return String::new() };
        let users = (!self.users).then(|| plural(cell.connections().into(), "connection"));
        let case = (!self.case && cell.case().is_handshake()).then(|| cell.case().to_string());
        let bytes = (!self.bytes).then(|| plural(cell.bytes(), "byte"));
        let same = cell.conditions().filter(|(key, _)| !self.factors.contains(*key));
        let further = same.map(|(key, level)| format!("{key} {level}"));
        users.into_iter().chain(case).chain(bytes).chain(further).collect::<Vec<_>>().join(", ")
    }

    /// The factors of a place that differ from other places', but for mode, users, load and the one that is compared.
    pub(crate) fn conditions(&self, place: &Levels, compared: Option<&str>) -> String {
        let case = self.case.then(|| place.case().to_string());
        let bytes = (self.bytes && compared != Some("bytes")).then(|| plural(place.bytes(), "byte"));
        let differ = |key: &str| self.factors.contains(key) && compared != Some(key);
        let further = place.conditions().filter(|(key, _)| differ(key));
        let further = further.map(|(key, level)| format!("{key} {level}"));
        case.into_iter().chain(bytes).chain(further).collect::<Vec<_>>().join(", ")
    }

    /// The name of a row: all that differs but the load, and the factor that is compared.
    pub(crate) fn row(&self, place: &Levels, compared: Option<&str>) -> String {
        let mode = (compared != Some("mode")).then(|| place.mode().to_string());
        let users = self.users && compared != Some("connections");
        let users = users.then(|| plural(place.connections().into(), "connection"));
        let conditions = Some(self.conditions(place, compared)).filter(|words| !words.is_empty());
        mode.into_iter().chain(users).chain(conditions).collect::<Vec<_>>().join(", ")
    }
}
