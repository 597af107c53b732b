//! Which cells of two results may be put beside each other, and why others may not.

use crate::cell::Cell;
use crate::doctor::Hardware;
use crate::error::ConfigError;
use crate::experiment::Level;
use crate::instrument::{RunOf, Shown};
use crate::machine::Machine;
use crate::results::Results;
use crate::summary::by_cell;
use std::collections::BTreeMap;
use std::path::Path;

/// Two results and what they are called.
pub(crate) struct Between<'a, I: Shown> {
    pub(crate) names: [&'a str; 2],
    pub(crate) results: [&'a Results<I>; 2],
}

impl<I: Shown> Copy for Between<'_, I> {}

impl<I: Shown> Clone for Between<'_, I> {
    fn clone(&self) -> Self {
        *self
    }
}

/// A cell that both have, with its runs.
pub(crate) struct Pair<'a, I: Shown> {
    pub(crate) cell: &'a Cell,
    pub(crate) runs: [Vec<&'a RunOf<I>>; 2],
}

/// The cells of two results, by their stable names.
pub(crate) struct Matched<'a, I: Shown> {
    pub(crate) both: Vec<Pair<'a, I>>,
    pub(crate) only_a: Vec<String>,
    pub(crate) only_b: Vec<String>,
}

/// The cells with their runs, without the second of the A/A pair: it says once more what the first says.
pub(crate) fn cells<I: Shown>(results: &Results<I>) -> Vec<(&Cell, Vec<&RunOf<I>>)> {
    let mut cells = by_cell(&results.plan, &results.runs);
    cells.retain(|(cell, _)| !cell.is_again());
    cells
}

impl<'a, I: Shown> Matched<'a, I> {
    pub(crate) fn new(a: &'a Results<I>, b: &'a Results<I>) -> Self {
        let of_b = cells(b).into_iter().map(|(cell, runs)| (cell.to_string(), (cell, runs)));
        let mut of_b: BTreeMap<String, (&Cell, Vec<&RunOf<I>>)> = of_b.collect();
        let (mut both, mut only_a) = (Vec::new(), Vec::new());
        for (cell, runs) in cells(a) {
            match of_b.remove(&cell.id) {
                Some((cell, others)) => both.push(Pair { cell, runs: [runs, others] }),
                None => only_a.push(cell.to_string()),
            }
        }
        Self { both, only_a, only_b: of_b.into_keys().collect() }
    }
}

/// Refuses one directory that is given twice.
pub(crate) fn check_different(directories: &[&Path]) -> Result<(), ConfigError> {
    // One that is not there is told of by whoever reads it.
    let real: Vec<_> = directories.iter().map(|directory| directory.canonicalize().ok()).collect();
    for (index, directory) in directories.iter().enumerate() {
        if real[index].is_some() && real[..index].contains(&real[index]) {
            let message = "this directory is given twice: expected two results";
            return Err(ConfigError::new(directory.display(), message));
        }
    }
    Ok(())
}

impl<I: Shown> Between<'_, I> {
    /// Refuses results of different experiments or machines.
    pub(crate) fn check_plan(&self) -> Result<(), ConfigError> {
        let [a, b] = self.results.map(|results| &results.plan.experiment);
        self.same("experiment", &a.name, &b.name)?;
        // Which subjects were there is no part of the plan.
        let factors = [a, b].map(|experiment| {
            let factors = experiment.factors.iter().filter(|factor| factor.key != I::SUBJECT);
            let names = |levels: Vec<Level>| levels.iter().map(Level::as_str).collect::<Vec<_>>().join(", ");
            factors.map(|factor| (factor.key.clone(), names(factor.names()))).collect::<BTreeMap<_, _>>()
        });
        let keys = factors.each_ref().map(|factors| factors.keys().cloned().collect::<Vec<_>>().join(", "));
        self.same("factors", &keys[0], &keys[1])?;
        for (key, levels) in &factors[0] {
            self.same(&format!("factor {key}"), levels, &factors[1][key])?;
        }
        let [first, second] = self.results.map(|results| &results.machine);
        self.same("processor", &first.hardware.cpu, &second.hardware.cpu)?;
        self.same("cores", &placed(first), &placed(second))?;
        self.same("network", &first.network, &second.network)
    }

    /// Refuses cells of one name that are run under different conditions.
    pub(crate) fn check_cells(&self, matched: &Matched<'_, I>) -> Result<(), ConfigError> {
        if matched.both.is_empty() {
            return Err(self.refuse("they have no cell in common"));
        }
        for pair in &matched.both {
            let [a, b] = self.results.map(|results| I::conditions(&results.plan, pair.cell));
            let (a, b) = (a?, b?);
            for key in a.keys().chain(b.keys()) {
                let values = [&a, &b].map(|leaves| leaves.get(key).map_or("not given", String::as_str));
                self.same_value(key, values)?;
            }
        }
        Ok(())
    }

    /// What differs between the machines and their programs and does not forbid a comparison.
    pub(crate) fn differences(&self) -> Vec<String> {
        let [a, b] = self.results.map(|results| &results.machine.hardware);
        let governor = |hardware: &Hardware| hardware.governor.clone().unwrap_or_else(|| "unknown".into());
        let pairs = [
            ("kernel", a.kernel.clone(), b.kernel.clone()),
            ("memory", format!("{} KiB", a.memory_kib), format!("{} KiB", b.memory_kib)),
            ("governor", governor(a), governor(b)),
        ];
        let [first, second] = self.names;
        let differ = pairs.into_iter().filter(|(_, left, right)| left != right);
        let differ =
            differ.map(|(what, left, right)| format!("{what}: {left} in {first}, {right} in {second}"));
        differ
            .chain(I::differences(self.results, self.names).into_iter().chain(self.other_programs()))
            .collect()
    }

    /// Whether both tell the hash of such a source, and it is another one.
    pub(super) fn is_other_source(&self, name: &str) -> bool {
        self.hashes([name.to_owned(), name.to_owned()]).is_some_and(|[before, after]| before != after)
    }

    /// What the runs were made of and is another in the second result.
    fn other_programs(&self) -> Vec<String> {
        let own = self.is_other_source(Machine::THIS_PROGRAM);
        let own = own.then(|| "another build of this program: load engine and origin differ".to_owned());
        let others = self.results[0].machine.versions.keys().filter(|name| self.is_other_source(name));
        own.into_iter()
            .chain(others.map(|name| format!("another build, description or template of {name}")))
            .collect()
    }

    /// A file is what is in it, wherever it lies; where a result does not tell that, it is its path.
    fn same_value(&self, key: &str, [left, right]: [&str; 2]) -> Result<(), ConfigError> {
        let [first, second] = self.names;
        match self.hashes([left, right].map(|value| format!("{key}={value}"))) {
            Some([before, after]) if before == after => Ok(()),
            Some(_) => Err(self.refuse(&format!(
                "{key}: the contents of `{left}` in {first} and of `{right}` in {second} differ; expected one plan"
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
                .refuse(&format!("{what}: `{left}` in {first}, `{right}` in {second}; expected one plan"))),
        }
    }

    fn refuse(&self, why: &str) -> ConfigError {
        let [a, b] = self.results.map(|results| results.directory.display().to_string());
        ConfigError::new(format!("{a} and {b}"), why)
    }
}

/// The cores of each part.
fn placed(machine: &Machine) -> String {
    match &machine.placement {
        Some(placement) => format!("{:?}", placement.cores),
        None => format!("{:?}", machine.cores),
    }
}

/// The CPU of a request depends on the rate: from 5 000 to 27 000 per second that of nginx fell from 37 to 20 us, which is
/// 2 % for such a difference. Beyond it two rates are not one.
const RATE_TOLERANCE: f64 = 0.05;

/// Why values at such offered rates cannot be put beside each other. In a closed loop none is offered.
pub(crate) fn rates_differ(names: [&str; 2], rates: [Option<f64>; 2]) -> Option<String> {
    let [Some(left), Some(right)] = rates else { return None };
    let differ = (left / right - 1.0).abs() > RATE_TOLERANCE;
    let [first, second] = names;
    differ.then(|| {
        format!(
            "offered were {left:.0}/s in {first} and {right:.0}/s in {second}; give the experiment a `rate`"
        )
    })
}
