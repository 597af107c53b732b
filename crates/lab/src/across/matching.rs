//! Which cells of two results may be put beside each other, and why others may not.

use super::program;
use crate::error::ConfigError;
use crate::experiment::{Level, Load};
use crate::machine::Machine;
use crate::plan::Cell;
use crate::results::Results;
use crate::run::RunRecord;
use crate::summary::by_cell;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Two results and what they are called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between<'a> {
    pub(crate) names: [&'a str; 2],
    pub(crate) results: [&'a Results; 2],
}

/// A cell that both have, with its runs.
#[derive(Clone, Debug)]
pub(crate) struct Pair<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) runs: [Vec<&'a RunRecord>; 2],
}

/// The cells of two results, by their stable names.
#[derive(Clone, Debug)]
pub(crate) struct Matched<'a> {
    pub(crate) both: Vec<Pair<'a>>,
    pub(crate) only_a: Vec<String>,
    pub(crate) only_b: Vec<String>,
}

impl<'a> Matched<'a> {
    /// The second of an A/A pair is left out: it says once more what the first says.
    pub(crate) fn new(a: &'a Results, b: &'a Results) -> Self {
        let mut of_b: BTreeMap<String, (&Cell, Vec<&RunRecord>)> = cells(b).collect();
        let (mut both, mut only_a) = (Vec::new(), Vec::new());
        for (name, (_, runs)) in cells(a) {
            match of_b.remove(&name) {
                Some((cell, others)) => both.push(Pair { cell, runs: [runs, others] }),
                None => only_a.push(name),
            }
        }
        Self { both, only_a, only_b: of_b.into_keys().collect() }
    }
}

fn cells(results: &Results) -> impl Iterator<Item = (String, (&Cell, Vec<&RunRecord>))> {
    let cells = by_cell(&results.plan, &results.records).into_iter();
    // The settings of a target are in its name, and their order there is the file's: the cell's own name is stable.
    cells.filter(|(cell, _)| !cell.is_again()).map(|(cell, runs)| (cell.to_string(), (cell, runs)))
}

/// Refuses one directory that is given twice.
pub(crate) fn check_different(directories: &[&Path]) -> Result<(), ConfigError> {
    // One that is not there is told of by whoever reads it.
    let real: Vec<_> = directories.iter().map(|directory| directory.canonicalize().ok()).collect();
    for (index, directory) in directories.iter().enumerate() {
        if real[index].is_some() && real[..index].contains(&real[index]) {
            let message = "this directory is given twice: allowed are different results";
            return Err(ConfigError::new(directory.display(), message));
        }
    }
    Ok(())
}

impl Between<'_> {
    /// Refuses results of different experiments or machines.
    pub(crate) fn check_plan(&self) -> Result<(), ConfigError> {
        let [a, b] = self.results.map(|results| &results.plan.experiment);
        self.same("experiment", &a.name, &b.name)?;
        let factors = self.results.map(factors);
        let keys = factors.each_ref().map(|factors| factors.keys().cloned().collect::<Vec<_>>().join(", "));
        self.same("factors", &keys[0], &keys[1])?;
        for (key, levels) in &factors[0] {
            self.same(&format!("factor {key}"), levels, &factors[1][key])?;
        }
        let machines = self.results.map(|results| &results.machine);
        let [a, b] = machines.map(placed);
        self.same("processor", &machines[0].cpu, &machines[1].cpu)?;
        self.same("cores", &a, &b)?;
        self.same("network", &machines[0].network, &machines[1].network)
    }

    /// Refuses cells of one name that are run under different conditions.
    pub(crate) fn check_cells(&self, matched: &Matched<'_>) -> Result<(), ConfigError> {
        if matched.both.is_empty() {
            return Err(self.refuse("they have no cell in common"));
        }
        for pair in &matched.both {
            let of = |results: &crate::results::Results| {
                let conditions = results.plan.experiment.conditions(pair.cell)?;
                let mut leaves = BTreeMap::new();
                let value = serde_json::to_value(&conditions).unwrap_or_default();
                flatten(String::new(), &value, &mut leaves);
                Ok::<_, ConfigError>(leaves)
            };
            let [a, b] = [of(self.results[0])?, of(self.results[1])?];
            for key in a.keys().chain(b.keys()) {
                let values = [&a, &b].map(|leaves| leaves.get(key).map_or("not given", String::as_str));
                self.same_value(key, values)?;
            }
        }
        Ok(())
    }

    /// What differs between the machines and their programs and does not forbid a comparison.
    pub(crate) fn differences(&self) -> Vec<String> {
        let [a, b] = self.results.map(|results| &results.machine);
        let governor = |machine: &Machine| machine.governor.clone().unwrap_or_else(|| "not told".into());
        let pairs = [
            ("kernel", a.kernel.clone(), b.kernel.clone()),
            ("memory", format!("{} KiB", a.memory_kib), format!("{} KiB", b.memory_kib)),
            ("governor", governor(a), governor(b)),
        ];
        let [first, second] = self.names;
        let differ = pairs.into_iter().filter(|(_, left, right)| left != right);
        let differ =
            differ.map(|(what, left, right)| format!("{what}: {left} in {first}, {right} in {second}"));
        differ.chain(program::differences(*self)).collect()
    }

    /// Whether both tell the hash of such a source, and it is another one.
    pub(super) fn is_other_source(&self, name: &str) -> bool {
        self.hashes([name.to_owned(), name.to_owned()]).is_some_and(|[before, after]| before != after)
    }

    /// A file is what is in it, wherever it lies; where a result does not tell that, it is its path.
    fn same_value(&self, key: &str, [left, right]: [&str; 2]) -> Result<(), ConfigError> {
        let [first, second] = self.names;
        match self.hashes([left, right].map(|value| format!("{key}={value}"))) {
            Some([before, after]) if before == after => Ok(()),
            Some(_) => Err(self.refuse(&format!(
                "{key}: the contents of `{left}` in {first} and of `{right}` in {second} differ; allowed is one plan"
            ))),
            None => self.same(key, left, right),
        }
    }

    /// The hashes of a source of each, where both tell one.
    fn hashes(&self, names: [String; 2]) -> Option<[&String; 2]> {
        let [a, b] = self.results.map(|results| &results.machine.sources);
        Some([a.get(&names[0])?, b.get(&names[1])?])
    }

    fn same(&self, what: &str, left: &str, right: &str) -> Result<(), ConfigError> {
        let [first, second] = self.names;
        match left == right {
            true => Ok(()),
            false => Err(self
                .refuse(&format!("{what}: `{left}` in {first}, `{right}` in {second}; allowed is one plan"))),
        }
    }

    fn refuse(&self, why: &str) -> ConfigError {
        let [a, b] = self.results.map(|results| results.directory.display().to_string());
        ConfigError::new(format!("{a} and {b}"), why)
    }
}

/// The levels of each factor but the target: which targets were there is no part of the plan.
fn factors(results: &Results) -> BTreeMap<String, String> {
    let factors = results.plan.experiment.factors.iter().filter(|factor| factor.key != "target");
    let names = |levels: Vec<Level>| levels.iter().map(Level::as_str).collect::<Vec<_>>().join(", ");
    factors.map(|factor| (factor.key.clone(), names(factor.names()))).collect()
}

/// The cores of each part.
fn placed(machine: &Machine) -> String {
    match &machine.placement {
        Some(placement) => format!("{:?}", placement.cores),
        None => format!("{:?}", machine.cores),
    }
}

fn flatten(key: String, value: &Value, leaves: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(inner) => {
            for (name, value) in inner {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                flatten(key, value, leaves);
            }
        }
        Value::String(text) => drop(leaves.insert(key, text.clone())),
        other => drop(leaves.insert(key, other.to_string())),
    }
}

/// The CPU of a request depends on the rate: from 5 000 to 27 000 per second that of nginx fell from 37 to 20 us, which is
/// 2 % for such a difference. Beyond it two rates are not one.
const RATE_TOLERANCE: f64 = 0.05;

/// Why values at such offered rates cannot be put beside each other.
pub(crate) fn rates_differ(load: Load, names: [&str; 2], rates: [Option<f64>; 2]) -> Option<String> {
    let [Some(left), Some(right)] = rates else { return None };
    let differ = load == Load::EqualRate && (left / right - 1.0).abs() > RATE_TOLERANCE;
    let [first, second] = names;
    differ.then(|| {
        format!(
            "offered were {left:.0}/s in {first} and {right:.0}/s in {second}; give the experiment a `rate`"
        )
    })
}
