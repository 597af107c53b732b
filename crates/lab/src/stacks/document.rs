//! The experiment file of stacks: which engines, which scenarios, what is compared and what is claimed. Strict: an
//! unknown key or value is an error that names the file, the line and what is allowed.

use super::cell::Scenario;
use super::key::{self, KEYS, Task};
use crate::error::{ConfigError, LabError};
use crate::experiment::{AGAIN, Claim, Compare, Level, Order, Selector};
use crate::found::{ExperimentFile, Folders};
use crate::metric::Metric;
use crate::options::RunOptions;
use crate::stats::MOST_BLOCKS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use toml::{Table, Value};

/// What the file's `instrument` says.
pub(crate) const INSTRUMENT: &str = "stacks";

/// An experiment with TLS stacks as it will be run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StacksExperiment {
    /// Its name: letters, digits, `-`, `_`.
    pub(crate) name: String,
    /// [`INSTRUMENT`].
    instrument: String,
    /// What it asks.
    pub(crate) question: String,
    /// What its author makes of the results, by paragraph.
    pub(crate) analysis: Option<String>,
    /// The engines' folder, relative to the file's.
    #[serde(default = "engines_directory")]
    pub(crate) engines_directory: PathBuf,
    /// What is measured.
    pub(crate) engines: Vec<String>,
    /// What the others are compared with: the first of these that is present.
    #[serde(default)]
    pub(crate) baseline: Vec<String>,
    /// The engine that is run twice in every block.
    pub(crate) aa: Option<String>,
    /// Levels that all scenarios have which do not say otherwise.
    #[serde(default)]
    pub(crate) constants: Table,
    /// Families of scenarios: each is every combination of its levels.
    pub(crate) scenarios: Vec<Table>,
    /// How many blocks.
    pub(crate) blocks: u32,
    /// In which order a block runs its cells.
    #[serde(default)]
    pub(crate) order: Order,
    /// Seed of the order.
    pub(crate) seed: u64,
    /// Two engines within this ratio of each other are called equivalent.
    #[serde(default = "margin")]
    pub(crate) margin: f64,
    /// Comparisons beside those of the engines.
    #[serde(default)]
    pub(crate) compare: Vec<Compare>,
    /// Statements to check.
    #[serde(default)]
    pub(crate) claims: Vec<Claim>,
    /// Whether instructions are counted as well, after the blocks. `--quick` leaves them out.
    #[serde(default)]
    pub(crate) instructions: bool,
    /// What `--quick` cuts it down to.
    #[serde(default)]
    quick: Quick,
}

/// What `--quick` makes of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Quick {
    blocks: Option<u32>,
    engines: Option<Vec<String>>,
    /// Constants with other values.
    #[serde(default)]
    set: Table,
    /// The levels that are left of some keys; a scenario without any of them is left out.
    #[serde(default)]
    only: Table,
}

fn engines_directory() -> PathBuf {
    PathBuf::from("../engines")
}

fn margin() -> f64 {
    0.03
}

/// More cells than this are a slip of the pen.
const MOST_CELLS: usize = 5000;

impl StacksExperiment {
    /// Reads the file that `options` names, and applies them. Returns the text as given, too.
    ///
    /// # Errors
    /// What is unknown, missing, contradictory or without effect, with its place and what is allowed.
    pub(crate) fn load(options: &RunOptions) -> Result<(Self, String), LabError> {
        let text =
            fs::read_to_string(&options.file).map_err(LabError::file(&options.file, "cannot be read"))?;
        Ok((Self::parse(&text, options)?, text))
    }

    fn parse(text: &str, options: &RunOptions) -> Result<Self, ConfigError> {
        let file = options.file.display();
        let mut read: Self = toml::from_str(text).map_err(|error| ConfigError::toml(&file, text, &error))?;
        let wrong = |key: &str, message: String| ConfigError::key(&file, text, key, message);
        if read.instrument != INSTRUMENT {
            let message =
                format!("`{}`: allowed is {INSTRUMENT}; others are run with `weir run`", read.instrument);
            return Err(wrong("instrument", message));
        }
        read.check(&wrong)?;
        if options.quick {
            read.cut(&wrong)?;
        }
        read.instructions |= options.instructions;
        for (key, value) in &options.set {
            read.set(key, value)
                .map_err(|message| ConfigError::new(format!("--set {key}={value}"), message))?;
        }
        read.blocks = options.blocks.unwrap_or(read.blocks);
        read.scenarios_of(&wrong)?;
        Ok(read)
    }

    /// Where its engines are: in its `engines_directory`, where one stands, beside the program, or built in.
    ///
    /// # Errors
    /// An `engines_directory` that is not there.
    pub(crate) fn folders(&self, file: &ExperimentFile) -> Result<Folders, ConfigError> {
        let folders = Folders::engines(None).of_experiment(file, &self.engines_directory);
        folders
            .map_err(|message| ConfigError::new(file.path.display(), format!("engines_directory: {message}")))
    }

    /// Every scenario, each once, in the file's order.
    pub(crate) fn scenarios(&self) -> Vec<Scenario> {
        // It was checked when it was read.
        self.scenarios_of(&|key: &str, message| ConfigError::new(key, message)).unwrap_or_default()
    }

    fn scenarios_of(
        &self,
        wrong: &impl Fn(&str, String) -> ConfigError,
    ) -> Result<Vec<Scenario>, ConfigError> {
        let mut all = Vec::new();
        for (index, family) in self.scenarios.iter().enumerate() {
            let place = format!("scenarios.{index}");
            let levels = self.levels(family).map_err(|message| wrong(&place, message))?;
            for scenario in combinations(&levels) {
                impossible(&scenario).map_or(Ok(()), |why| Err(wrong(&place, why)))?;
                if !all.contains(&scenario) {
                    all.push(scenario);
                }
            }
        }
        match all.len() * self.engines.len() {
            0..=MOST_CELLS => Ok(all),
            many => Err(wrong("scenarios", format!("{many} cells: allowed are {MOST_CELLS}"))),
        }
    }

    /// The levels of each key that a family's task has.
    fn levels(&self, family: &Table) -> Result<Vec<(&'static str, Vec<Level>)>, String> {
        let word = family.get("do").and_then(Value::as_str).unwrap_or_default();
        let task = Task::of(word)
            .ok_or_else(|| format!("do: `{word}`: allowed is one of {}", key::TASKS.join(", ")))?;
        for name in family.keys() {
            let known = KEYS.iter().filter(|key| key.tasks.contains(&task)).map(|key| key.name);
            if !known.clone().any(|known| known == name) {
                let known = known.collect::<Vec<_>>().join(", ");
                return Err(format!("{name}: not a key of `{word}`: allowed are {known}"));
            }
        }
        let mut levels = Vec::new();
        for key in KEYS.iter().filter(|key| key.tasks.contains(&task)) {
            let given = family.get(key.name).or_else(|| self.constants.get(key.name)).map(listed);
            let given = given.or_else(|| key.default.map(|default| vec![Level::new(default)]));
            let Some(given) = given else {
                match key.name {
                    // Time inside locks is only taken where it is asked for; tickets follow from the handshake.
                    "locks" | "tickets" => continue,
                    name => return Err(format!("{name}: missing: `{word}` needs it")),
                }
            };
            if given.is_empty() {
                return Err(format!("{}: empty: at least one level is needed", key.name));
            }
            for level in &given {
                key.check(level).map_err(|why| format!("{}: {why}", key.name))?;
            }
            levels.push((key.name, given));
        }
        Ok(levels)
    }

    fn check(&self, wrong: &impl Fn(&str, String) -> ConfigError) -> Result<(), ConfigError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = |name: &str| !name.is_empty() && name.chars().all(plain);
        if !is_name(&self.name) {
            return Err(wrong(
                "name",
                format!("`{}`: allowed are letters, digits, `-`, `_` and `.`", self.name),
            ));
        }
        if let Some(name) = self.engines.iter().find(|name| !is_name(name) || name.ends_with(AGAIN)) {
            return Err(wrong(
                "engines",
                format!("`{name}`: allowed is the name of a folder with an engine"),
            ));
        }
        let unknown = |name: &str| {
            format!("`{name}` is not among the engines: allowed are {}", self.engines.join(", "))
        };
        if let Some(name) = self.baseline.iter().find(|name| !self.engines.contains(name)) {
            return Err(wrong("baseline", unknown(name)));
        }
        if let Some(name) = self.aa.iter().find(|name| !self.engines.contains(name)) {
            return Err(wrong("aa", unknown(name)));
        }
        if !(1..=MOST_BLOCKS).contains(&self.blocks) {
            return Err(wrong("blocks", format!("{}: allowed is 1 to {MOST_BLOCKS}", self.blocks)));
        }
        if !(0.001..=0.5).contains(&self.margin) {
            return Err(wrong("margin", format!("{}: allowed is 0.001 to 0.5", self.margin)));
        }
        for (key, value) in &self.constants {
            let known = key::find(key).ok_or_else(|| wrong(&format!("constants.{key}"), unknown_key()))?;
            known.check(&Level::of(value)).map_err(|why| wrong(&format!("constants.{key}"), why))?;
        }
        let scenarios = self.scenarios_of(wrong)?;
        for (index, claim) in self.claims.iter().enumerate() {
            let place = format!("claims.{index}");
            self.check_claim(claim, &scenarios).map_err(|why| wrong(&place, why))?;
        }
        for (index, compare) in self.compare.iter().enumerate() {
            let wanted = Selector::from_iter([(compare.factor.clone(), compare.baseline.clone())]);
            let checked = self
                .check_levels(&wanted, &scenarios)
                .and_then(|()| self.check_levels(&compare.cell, &scenarios));
            checked.map_err(|why| wrong(&format!("compare.{index}"), why))?;
        }
        Ok(())
    }

    fn check_claim(&self, claim: &Claim, scenarios: &[Scenario]) -> Result<(), String> {
        if self.claims.iter().filter(|other| other.id == claim.id).count() > 1 {
            return Err(format!("id: `{}` is given twice", claim.id));
        }
        if (claim.metric.is_some() && claim.expect.is_some()) == claim.not_testable.is_some() {
            return Err("allowed is `metric` with `expect`, or `not_testable` with the reason".into());
        }
        if let Some(metric) = claim.metric.filter(|metric| !Metric::OF_STACKS.contains(metric)) {
            let known = Metric::OF_STACKS.map(Metric::key).join(", ");
            return Err(format!(
                "metric: `{}` is not measured of a TLS stack: allowed are {known}",
                metric.key()
            ));
        }
        self.check_levels(&claim.cell, scenarios)?;
        claim.against.as_ref().map_or(Ok(()), |against| self.check_levels(against, scenarios))
    }

    /// Whether each level is one of some cell.
    fn check_levels(&self, selector: &Selector, scenarios: &[Scenario]) -> Result<(), String> {
        for (key, level) in selector.iter() {
            let mut known: Vec<Level> = match key.as_str() {
                "engine" => self.engines.iter().map(Level::new).collect(),
                key => scenarios.iter().filter_map(|scenario| scenario.get(key).cloned()).collect(),
            };
            known.sort();
            known.dedup();
            if known.is_empty() {
                return Err(format!("{key}: {}", unknown_key()));
            }
            if !known.contains(level) {
                let known = known.iter().map(Level::as_str).collect::<Vec<_>>().join(", ");
                return Err(format!("{key}: `{level}`: allowed are {known}"));
            }
        }
        Ok(())
    }

    fn cut(&mut self, wrong: &impl Fn(&str, String) -> ConfigError) -> Result<(), ConfigError> {
        let Quick { blocks, engines, set, only } = self.quick.clone();
        self.blocks = blocks.unwrap_or(2);
        self.instructions = false;
        if let Some(engines) = engines {
            if let Some(name) = engines.iter().find(|name| !self.engines.contains(name)) {
                return Err(wrong("quick.engines", format!("`{name}` is not among the engines")));
            }
            self.engines.retain(|name| engines.contains(name));
            self.baseline.retain(|name| engines.contains(name));
            self.aa = self.aa.take().filter(|name| engines.contains(name));
        }
        for (key, value) in &set {
            self.set_value(key, value).map_err(|why| wrong(&format!("quick.set.{key}"), why))?;
        }
        for (key, value) in &only {
            key::find(key).ok_or_else(|| wrong(&format!("quick.only.{key}"), unknown_key()))?;
            self.keep(key, &listed(value));
        }
        Ok(())
    }

    /// Keeps some levels of a key; families that have it and none of them go.
    fn keep(&mut self, key: &str, wanted: &[Level]) {
        for family in &mut self.scenarios {
            let Some(value) = family.get_mut(key) else { continue };
            let left: Vec<Value> = match value {
                Value::Array(levels) => levels.clone(),
                ref one => vec![Value::clone(one)],
            };
            let left: Vec<Value> =
                left.into_iter().filter(|level| wanted.contains(&Level::of(level))).collect();
            *value = match (key, left.as_slice()) {
                // It is one word in each family.
                ("do", [one]) => one.clone(),
                _ => Value::Array(left),
            };
        }
        let is_left = |family: &Table| {
            family.get(key).is_none_or(|value| value.as_array().is_none_or(|left| !left.is_empty()))
        };
        self.scenarios.retain(is_left);
    }

    fn set(&mut self, key: &str, text: &str) -> Result<(), String> {
        self.set_value(key, &Value::from(text))
    }

    /// Gives a key one level in all scenarios.
    fn set_value(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let key = key::find(name).ok_or_else(unknown_key)?;
        key.check(&Level::of(value))?;
        for family in &mut self.scenarios {
            family.remove(name);
        }
        self.constants.insert(name.to_owned(), value.clone());
        Ok(())
    }
}

fn unknown_key() -> String {
    format!("no such key: allowed are {}", KEYS.iter().map(|key| key.name).collect::<Vec<_>>().join(", "))
}

/// The levels of a value: a list has several.
fn listed(value: &Value) -> Vec<Level> {
    match value {
        Value::Array(levels) => levels.iter().map(Level::of).collect(),
        one => vec![Level::of(one)],
    }
}

/// All combinations: the first key varies slowest. What a combination has no use for is left out of it.
fn combinations(levels: &[(&'static str, Vec<Level>)]) -> Vec<Scenario> {
    let mut all = vec![BTreeMap::new()];
    for (key, levels) in levels {
        all = all
            .into_iter()
            .flat_map(|head: BTreeMap<String, Level>| {
                levels.iter().map(move |level| {
                    let mut one = head.clone();
                    one.insert((*key).to_owned(), level.clone());
                    one
                })
            })
            .collect();
    }
    for one in &mut all {
        // Only what seals and opens has a length.
        if one.get("operation").is_some_and(|operation| !is_aead(operation.as_str())) {
            one.remove("record");
        }
        if let Some(version) = one.get("version").filter(|_| one.contains_key("resumption")) {
            let usual = usual_tickets(version.as_str(), one["resumption"].as_str());
            one.entry("tickets".to_owned()).or_insert_with(|| Level::new(usual));
        }
    }
    all.into_iter().map(Scenario::new).collect()
}

/// How many tickets a server sends where an experiment does not say: as few as the handshake needs in TLS 1.2, and what
/// OpenSSL and rustls send in TLS 1.3.
pub(super) fn usual_tickets(version: &str, resumption: &str) -> u32 {
    match (version, resumption) {
        ("1.2", "ticket") => 1,
        ("1.2", _) => 0,
        _ => 2,
    }
}

fn is_aead(operation: &str) -> bool {
    operation.ends_with("-seal") || operation.ends_with("-open")
}

/// Why a scenario contradicts itself.
fn impossible(scenario: &Scenario) -> Option<String> {
    let [version, resumption, group, tickets] =
        ["version", "resumption", "group", "tickets"].map(|key| scenario.word(key));
    let contradiction = match (version, resumption) {
        (_, "none") if scenario.get("locks").is_some() => {
            "locks with resumption=none: nothing that is shared is used".into()
        }
        ("1.3", "id" | "ticket") => format!("resumption={resumption}: TLS 1.3 resumes by `psk`"),
        ("1.2", "psk") => "resumption=psk: TLS 1.2 resumes by `id` or `ticket`".into(),
        ("1.2", "id") if tickets != "0" => {
            format!("resumption=id with tickets={tickets}: a client that has a ticket resumes by that")
        }
        ("1.2", "ticket") if tickets != "1" => {
            format!("resumption=ticket with tickets={tickets}: allowed is 1")
        }
        ("1.2", "none") if !matches!(tickets, "0" | "1") => {
            format!("tickets={tickets}: TLS 1.2 sends 1 at most")
        }
        ("1.3", "psk") if tickets == "0" => "resumption=psk with tickets=0: nothing to resume from".into(),
        ("1.2", _) if group == "x25519mlkem768" => "group=x25519mlkem768: it is for TLS 1.3".into(),
        _ => return None,
    };
    Some(contradiction)
}
