//! The comparable cells of two results, and why others are not comparable.

use super::both;
use crate::base::error::ConfigError;
use crate::doctor::Hardware;
use crate::experiment::options::parse_value;
use crate::experiment::{Experiment, Level, get};
use crate::findings::results::Results;
use crate::findings::summary::by_cell;
use crate::planning::cell::Cell;
use crate::report::shown::Shown;
use crate::store::machine::Machine;
use crate::store::run::RunOf;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toml::Value;

/// Two results and their names.
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

/// A common cell, with its runs.
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

/// The cells with their runs, without the second of the A/A pair, which repeats the first.
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
                Some((cell, others)) => both.push(Pair { cell, runs: beside_the_same::<I>([runs, others]) }),
                None => only_a.push(cell.to_string()),
            }
        }
        Self { both, only_a, only_b: of_b.into_keys().collect() }
    }
}

/// Drops the duets with a cell that the other result lacks: a neighbour on the same cores moves the cost. Without a common
/// neighbour, all stay.
fn beside_the_same<'a, I: Shown>(runs: [Vec<&'a RunOf<I>>; 2]) -> [Vec<&'a RunOf<I>>; 2] {
    let neighbours = |runs: &[&'a RunOf<I>]| -> BTreeSet<&'a str> {
        runs.iter().filter_map(|run| run.run.beside.as_deref()).collect()
    };
    let [a, b] = runs.each_ref().map(|runs| neighbours(runs));
    let common: BTreeSet<&str> = a.intersection(&b).copied().collect();
    if common.is_empty() {
        return runs;
    }
    let is_common = |run: &&RunOf<I>| run.run.beside.as_deref().is_none_or(|beside| common.contains(beside));
    runs.map(|runs| runs.into_iter().filter(is_common).collect())
}

/// Rejects files, such as results of `weir load`.
pub(crate) fn check_directories(paths: &[&Path]) -> Result<(), ConfigError> {
    match paths.iter().find(|path| path.exists() && !path.is_dir()) {
        Some(file) => Err(ConfigError::new(file.display(), NO_DIRECTORY)),
        None => Ok(()),
    }
}

/// Two single runs have no interval, and at different times they differ by the machine's drift.
const NO_DIRECTORY: &str = "not a directory: expected a result of `weir run` or `weir stacks run`; two single runs of \
    `weir load` allow no verdict, so repeat both in one experiment: describe each version in targets/NAME/target.toml, \
    then `weir run quickstart --set 'target=[\"before\",\"after\"]' --set 'baseline=[\"before\"]' --set aa=before \
    --blocks 12`";

/// Rejects duplicate paths.
pub(crate) fn check_different(directories: &[&Path]) -> Result<(), ConfigError> {
    // Reading a missing path fails later, with a better message.
    let real: Vec<_> = directories.iter().map(|directory| directory.canonicalize().ok()).collect();
    for (index, directory) in directories.iter().enumerate() {
        if real[index].is_some() && real[..index].contains(&real[index]) {
            let message = "given twice; expected different results";
            return Err(ConfigError::new(directory.display(), message));
        }
    }
    Ok(())
}

impl<I: Shown> Between<'_, I> {
    /// Rejects results of different experiments or machines.
    pub(crate) fn check_plan(&self) -> Result<(), ConfigError> {
        let [a, b] = self.results.map(|results| &results.plan.experiment);
        self.same("experiment", &a.name, &b.name)?;
        // The subjects are not part of the plan.
        let factors = [a, b].map(|experiment| {
            let factors = experiment.factors.iter().filter(|factor| factor.key != I::SUBJECT);
            let names = |levels: Vec<Level>| levels.iter().map(Level::as_str).collect::<Vec<_>>().join(", ");
            factors.map(|factor| (factor.key.clone(), names(factor.names()))).collect::<BTreeMap<_, _>>()
        });
        let keys = factors.each_ref().map(|factors| factors.keys().cloned().collect::<Vec<_>>().join(", "));
        self.same("factors", &keys[0], &keys[1])?;
        for (key, levels) in &factors[0] {
            let both = [levels, &factors[1][key]];
            self.same(&format!("factor {key}"), both[0], both[1])
                .map_err(|error| self.with_commands(error, key, [a, b].map(|one| single(one, key))))?;
        }
        let [first, second] = self.results.map(|results| &results.machine);
        self.same("processor", &first.hardware.cpu, &second.hardware.cpu)?;
        self.same("cores", &placed(first), &placed(second))?;
        self.same("network", &first.network, &second.network)
    }

    /// Rejects cells of one name that ran under different conditions.
    pub(crate) fn check_cells(&self, matched: &Matched<'_, I>) -> Result<(), ConfigError> {
        if matched.both.is_empty() {
            let error = self.reject("no cell in common");
            return Err(match self.only_difference() {
                Some((key, values)) => self.with_commands(error, &key, values.map(Some)),
                None => error,
            });
        }
        for pair in &matched.both {
            let [a, b] = self.results.map(|results| I::conditions(&results.plan, pair.cell));
            let (a, b) = (a?, b?);
            for key in a.keys().chain(b.keys()) {
                let texts = [&a, &b].map(|leaves| leaves.get(key));
                self.same_value(key, texts.map(|text| text.map_or(both::NOT_GIVEN, String::as_str)))?;
            }
        }
        Ok(())
    }

    /// The differences of machine and programs that a comparison tolerates.
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

    /// Whether both store a hash of the source, and the hashes differ.
    pub(super) fn is_other_source(&self, name: &str) -> bool {
        self.hashes([name.to_owned(), name.to_owned()]).is_some_and(|[before, after]| before != after)
    }

    /// The programs whose build or source differs in the second result.
    fn other_programs(&self) -> Vec<String> {
        let own = self.is_other_source(Machine::THIS_PROGRAM);
        let own = own.then(|| "another build of this program: load engine and origin differ".to_owned());
        let others = self.results[0].machine.versions.keys().filter(|name| self.is_other_source(name));
        own.into_iter()
            .chain(others.map(|name| format!("another build, description or template of {name}")))
            .collect()
    }

    /// Compares files by content, wherever they are; without stored hashes, by path.
    fn same_value(&self, key: &str, [left, right]: [&str; 2]) -> Result<(), ConfigError> {
        let [first, second] = self.names;
        match self.hashes([left, right].map(|value| format!("{key}={value}"))) {
            Some([before, after]) if before == after => Ok(()),
            Some(_) => Err(self.reject(&format!(
                "{key}: the contents of `{left}` in {first} and of `{right}` in {second} differ; expected one plan"
            ))),
            None => self.same(key, left, right).map_err(|error| {
                let given = self.results.map(|results| single(&results.plan.experiment, key));
                // Of a value that is not given, the text is known.
                let is_word = given.iter().flatten().any(Value::is_str);
                let default = |text: &str| if is_word { Value::from(text) } else { parse_value(text) };
                let [a, b] = given;
                let values = [a.or_else(|| Some(default(left))), b.or_else(|| Some(default(right)))];
                self.with_commands(error, key, values)
            }),
        }
    }

    /// Adds how to compare two values of a key to the error that they differ, if each result has one value.
    fn with_commands(&self, error: ConfigError, key: &str, values: [Option<Value>; 2]) -> ConfigError {
        let [Some(left), Some(right)] = values else { return error };
        if PHASES.contains(&key) {
            return error;
        }
        let commands = both::commands(&self.results[0].plan, key, [left, right]);
        let message =
            format!("{}; to compare the two values, measure both in one result: {commands}", error.message);
        ConfigError { message, ..error }
    }

    /// The only key in which a cell of one result differs from one of the other with the same subject, and both levels.
    fn only_difference(&self) -> Option<(String, [Value; 2])> {
        let [a, b] = self.results.map(|results| cells(results));
        let factors = &self.results[0].plan.experiment.factors;
        let value = |key: &str, level: &Level| {
            let factor = factors.iter().find(|factor| factor.key == key)?;
            factor.levels.iter().find(|value| Level::of(value) == *level).cloned()
        };
        a.iter().find_map(|(left, _)| {
            b.iter().filter(|(right, _)| right.subject == left.subject).find_map(|(right, _)| {
                let other = |key: &str| right.levels.get(key);
                let mut differ = left.levels.iter().filter(|(key, level)| other(key) != Some(*level));
                let (Some((key, level)), None) = (differ.next(), differ.next()) else { return None };
                Some((key.to_owned(), [value(key, level)?, value(key, other(key)?)?]))
            })
        })
    }

    /// The hashes of a source in each, if both store one.
    fn hashes(&self, names: [String; 2]) -> Option<[&String; 2]> {
        let [a, b] = self.results.map(|results| &results.machine.sources);
        Some([a.get(&names[0])?, b.get(&names[1])?])
    }

    fn same(&self, what: &str, left: &str, right: &str) -> Result<(), ConfigError> {
        let [first, second] = self.names;
        match left == right {
            true => Ok(()),
            false => Err(self
                .reject(&format!("{what}: `{left}` in {first}, `{right}` in {second}; expected one plan"))),
        }
    }

    fn reject(&self, why: &str) -> ConfigError {
        let [a, b] = self.results.map(|results| results.directory.display().to_string());
        ConfigError::new(format!("{a} and {b}"), why)
    }
}

/// Keys about how long a run measures, and not what.
const PHASES: [&str; 4] = ["window_ms", "warmup_ms", "warmup", "calibration_ms"];

/// The value of a key that an experiment does not vary.
fn single(experiment: &Experiment, key: &str) -> Option<Value> {
    let factor = experiment.factors.iter().find(|factor| factor.key == key);
    match factor.map(|factor| factor.levels.as_slice()) {
        Some([one]) => Some(one.clone()),
        Some(_) => None,
        None => get(&experiment.constants, key).cloned(),
    }
}

/// The cores of each part.
fn placed(machine: &Machine) -> String {
    match &machine.placement {
        Some(placement) => format!("{:?}", placement.cores),
        None => format!("{:?}", machine.cores),
    }
}

/// CPU per request depends on the rate: from 5 000 to 27 000 per second, that of nginx fell from 37 to 20 us. A rate
/// difference of this size moves it by 2 %; a larger one makes runs incomparable.
const RATE_TOLERANCE: f64 = 0.05;

/// Why values at these offered rates are not comparable. A closed loop offers no rate.
pub(crate) fn rates_differ(names: [&str; 2], rates: [Option<f64>; 2]) -> Option<String> {
    let [Some(left), Some(right)] = rates else { return None };
    let differ = (left / right - 1.0).abs() > RATE_TOLERANCE;
    let [first, second] = names;
    differ.then(|| {
        format!(
            "the offered rates differ: {left:.0}/s in {first}, {right:.0}/s in {second}; set `rate` in the experiment"
        )
    })
}
