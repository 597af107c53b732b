//! Scenarios: a runner's task and its conditions, as levels of the task's keys.

use super::key::{self, HANDSHAKE, KEYS, Key, TASKS};
use crate::base::error::ConfigError;
use crate::experiment::{Blame, Experiment, Factor, Level, SUBJECTS, combinations};
use crate::planning::cell::Levels;
use std::collections::BTreeSet;
use toml::{Table, Value};

/// More cells than this are surely a mistake.
const MOST_CELLS: usize = 5000;

/// A cell's levels, read as a scenario.
impl Levels {
    /// Whether it makes full handshakes in one thread, with a warm configuration.
    pub(super) fn is_full_handshake(&self) -> bool {
        let plain = [("do", HANDSHAKE), ("resumption", "none"), ("config", "warm"), ("threads", "1")];
        plain.iter().all(|(key, level)| self.word(key) == *level)
    }

    /// Each key with its level, in the keys' order.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (&'static Key, &Level)> {
        KEYS.iter().filter_map(|key| Some((key, self.get(key.name)?)))
    }

    /// The runner's input, except the lines with the lab's files.
    pub(super) fn lines(&self) -> String {
        let passed = self.in_order().filter(|(key, _)| key.is_for_runner);
        passed.map(|(key, level)| format!("{} {level}\n", key.name)).collect()
    }

    /// The ID of the scenario: its levels other than defaults, with their keys unless the level is self-explanatory.
    pub(super) fn id(&self) -> String {
        let mut parts = Vec::new();
        for (key, level) in self.in_order().filter(|(key, _)| !matches!(key.name, "warmup" | "window_ms")) {
            let is_always = matches!(key.name, "do" | "operation" | "version" | "certificate" | "resumption");
            if key.is_default(level) && !is_always {
                continue;
            }
            parts.push(match (key.name, level.as_str()) {
                ("resumption", "none") => "full".to_owned(),
                ("resumption", how) => format!("resumed-{how}"),
                ("do" | "operation" | "version" | "certificate" | "group" | "suite", word) => word.to_owned(),
                (name, word) => format!("{name}={word}"),
            });
        }
        parts.join(".")
    }
}

/// The checks before any build.
pub(super) fn check(experiment: &Experiment, wrong: &Blame<'_>) -> Result<(), ConfigError> {
    for (key, value) in &experiment.constants {
        let place = format!("constants.{key}");
        let unknown = || wrong(&place, format!("unknown key: expected one of {}", key::names(KEYS)));
        let known = key::find(key).ok_or_else(unknown)?;
        known.check(&Level::of(value)).map_err(|why| wrong(&place, why))?;
    }
    if experiment.scenarios.is_empty() {
        return Err(wrong("scenarios", "missing; add at least one `[[scenarios]]`".into()));
    }
    scenarios_of(experiment, wrong).map(drop)
}

/// All distinct scenarios, in the file's order.
pub(super) fn scenarios(experiment: &Experiment) -> Vec<Levels> {
    // Errors were reported when the file was parsed.
    scenarios_of(experiment, &|key: &str, message| ConfigError::new(key, message)).unwrap_or_default()
}

fn scenarios_of(experiment: &Experiment, wrong: &Blame<'_>) -> Result<Vec<Levels>, ConfigError> {
    let mut all = Vec::new();
    for (index, family) in experiment.scenarios.iter().enumerate() {
        let place = format!("scenarios.{index}");
        let levels = levels(experiment, family).map_err(|message| wrong(&place, message))?;
        for levels in combinations(&levels) {
            let scenario =
                completed(levels.into_iter().map(|(key, level)| (key.to_owned(), level)).collect());
            impossible(&scenario).map_or(Ok(()), |why| Err(wrong(&place, why)))?;
            if !all.contains(&scenario) {
                all.push(scenario);
            }
        }
    }
    match all.len() * experiment.subjects().len() {
        0..=MOST_CELLS => Ok(all),
        many => Err(wrong("scenarios", format!("{many} cells: expected at most {MOST_CELLS}"))),
    }
}

/// The levels of each key of a family's task.
fn levels(experiment: &Experiment, family: &Table) -> Result<Vec<(&'static str, Vec<Level>)>, String> {
    let word = family.get("do").and_then(Value::as_str).unwrap_or_default();
    if !TASKS.contains(&word) {
        return Err(format!("do: invalid value `{word}`: expected one of {}", TASKS.join(", ")));
    }
    let known = || KEYS.iter().filter(|key| key.tasks.contains(&word));
    if let Some(name) = family.keys().find(|name| !known().any(|key| key.name == *name)) {
        return Err(format!("{name}: unknown key of `{word}`: expected one of {}", key::names(known())));
    }
    let mut levels = Vec::new();
    for key in known() {
        let varied = experiment.factors.iter().find(|factor| factor.key == key.name);
        let given = family.get(key.name).map(listed);
        let given = given.or_else(|| varied.map(Factor::names));
        let given = given.or_else(|| experiment.constants.get(key.name).map(listed));
        let given = given.or_else(|| key.default.map(|default| vec![Level::new(default)]));
        let Some(given) = given else {
            match key.name {
                // Locks are only timed on request; tickets follow from the handshake.
                "locks" | "tickets" => continue,
                name => return Err(format!("{name}: missing, but required by `{word}`")),
            }
        };
        if given.is_empty() {
            return Err(format!("{}: empty: expected at least one level", key.name));
        }
        for level in &given {
            key.check(level).map_err(|why| format!("{}: {why}", key.name))?;
        }
        levels.push((key.name, given));
    }
    Ok(levels)
}

/// The sorted levels of a key in all scenarios.
pub(super) fn levels_of(experiment: &Experiment, key: &str) -> Vec<Level> {
    if SUBJECTS.contains(&key) {
        return experiment.levels(key);
    }
    let known: BTreeSet<Level> =
        scenarios(experiment).iter().filter_map(|one| one.get(key).cloned()).collect();
    known.into_iter().collect()
}

/// Why a key has no effect: no scenario has it.
pub(super) fn ignored(experiment: &Experiment, key: &str) -> Option<String> {
    let is_subject = SUBJECTS.contains(&key) || key == "engines";
    let has = |key: &str| !levels_of(experiment, key).is_empty();
    let known = || key::names(KEYS.iter().filter(|key| has(key.name)));
    (!is_subject && !has(key))
        .then(|| format!("has no effect, as no scenario has it: expected one of {}", known()))
}

/// The levels of a value; a list has several.
fn listed(value: &Value) -> Vec<Level> {
    match value {
        Value::Array(levels) => levels.iter().map(Level::of).collect(),
        one => vec![Level::of(one)],
    }
}

/// The scenario, without `record` if nothing is sealed or opened, and with the usual number of tickets.
fn completed(scenario: Levels) -> Levels {
    let operation = scenario.word("operation");
    let is_aead = operation.ends_with("-seal") || operation.ends_with("-open");
    if !operation.is_empty() && !is_aead {
        return scenario.without("record");
    }
    match scenario.get("resumption") {
        Some(resumption) if scenario.get("tickets").is_none() => {
            let usual = usual_tickets(scenario.word("version"), resumption.as_str());
            scenario.with("tickets", Level::new(usual))
        }
        _ => scenario,
    }
}

/// The default number of tickets: in TLS 1.2 the minimum for the handshake, in TLS 1.3 that of OpenSSL and rustls.
pub(super) fn usual_tickets(version: &str, resumption: &str) -> u32 {
    match (version, resumption) {
        ("1.2", "ticket") => 1,
        ("1.2", _) => 0,
        _ => 2,
    }
}

/// Why a scenario contradicts itself.
fn impossible(scenario: &Levels) -> Option<String> {
    let [version, resumption, group, tickets] =
        ["version", "resumption", "group", "tickets"].map(|key| scenario.word(key));
    let contradiction = match (version, resumption) {
        (_, "none") if scenario.get("locks").is_some() => {
            "locks with resumption=none: a full handshake uses no shared state".into()
        }
        ("1.3", "id" | "ticket") => format!("resumption={resumption}: TLS 1.3 resumes by `psk`"),
        ("1.2", "psk") => "resumption=psk: TLS 1.2 resumes by `id` or `ticket`".into(),
        ("1.2", "id") if tickets != "0" => {
            format!("resumption=id with tickets={tickets}: a client with a ticket resumes by ticket")
        }
        ("1.2", "ticket") if tickets != "1" => {
            format!("resumption=ticket with tickets={tickets}: expected 1")
        }
        ("1.2", "none") if !matches!(tickets, "0" | "1") => {
            format!("tickets={tickets}: TLS 1.2 sends at most 1")
        }
        ("1.3", "psk") if tickets == "0" => "resumption=psk with tickets=0: nothing to resume from".into(),
        ("1.2", _) if group == "x25519mlkem768" => "group=x25519mlkem768: requires TLS 1.3".into(),
        _ => return None,
    };
    Some(contradiction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(levels: &[(&str, &str)]) -> Levels {
        levels.iter().map(|(key, level)| ((*key).to_owned(), Level::new(level))).collect()
    }

    #[test]
    fn an_id_has_the_distinguishing_levels() {
        let full = scenario(&[
            ("do", "handshake"),
            ("version", "1.3"),
            ("resumption", "none"),
            ("certificate", "rsa-2048"),
            ("group", "x25519"),
            ("tickets", "4"),
            ("threads", "1"),
            ("window_ms", "200"),
        ]);
        assert_eq!(full.id(), "handshake.1.3.full.rsa-2048.tickets=4");
    }

    #[test]
    fn the_runner_receives_only_its_own_keys() {
        let masked = scenario(&[("do", "primitive"), ("operation", "rsa-2048-sign"), ("mask", "no-ifma")]);
        assert_eq!(masked.lines(), "do primitive\noperation rsa-2048-sign\n");
    }
}
