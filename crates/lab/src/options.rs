//! What the command line asks of `run` and `plan`.

use crate::error::{ConfigError, LabError};
use crate::experiment::{AGAIN, Experiment, Level, OWN, canonical, is_setting, parse_value};
use crate::plan::Cell;
use std::path::{Path, PathBuf};
use toml::Value;

/// The options of `weir run` and `weir plan`.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The experiment; empty to go on with the one that is stored in [`Self::continue_dir`].
    pub file: PathBuf,
    /// Where the results go; by default `out/NAME-YYYYMMDD-HHMMSS` (UTC).
    pub out: Option<PathBuf>,
    /// So many blocks, whatever the experiment says.
    pub blocks: Option<u32>,
    /// A smoke run of half a minute: two blocks and tiny windows.
    pub quick: bool,
    /// Only the cells with these factors; values of one key are alternatives.
    pub only: Vec<(String, String)>,
    /// Keys of the experiment with other values, as TOML; `tls.group` reaches into a table.
    pub set: Vec<(String, String)>,
    /// Go on with the experiment in this directory: with what is left of it, and with more blocks where [`Self::blocks`]
    /// is more than it has.
    pub continue_dir: Option<PathBuf>,
    /// A target that does not work is no reason to end the experiment.
    pub allow_invalid: bool,
    /// Of TLS stacks: count instructions as well, whatever the experiment says.
    pub instructions: bool,
}

impl RunOptions {
    /// The result whose own experiment is gone on with, since no file names one.
    pub fn stored(&self) -> Option<&Path> {
        self.continue_dir.as_deref().filter(|_| self.file.as_os_str().is_empty())
    }

    /// Reads `k=v,k=v` of `--only`.
    pub fn parse_pairs(option: &str, text: &str) -> Result<Vec<(String, String)>, ConfigError> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for part in text.split(',') {
            match pairs.last_mut() {
                // A level that is a list has commas of its own.
                Some((_, value)) if !part.contains('=') && !value.is_empty() && !part.trim().is_empty() => {
                    value.push(',');
                    value.push_str(part.trim());
                }
                _ => pairs.push(Self::parse_pair(option, part)?),
            }
        }
        Ok(pairs)
    }

    /// Reads `k=v` of `--set`.
    pub fn parse_pair(option: &str, text: &str) -> Result<(String, String), ConfigError> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
                Ok((key.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(ConfigError::new(format!("{option} {text}"), "allowed is key=value")),
        }
    }

    /// Refuses to run without a target or an engine that the command line names: what is measured without it is not what was
    /// asked.
    pub(crate) fn check_named<'a>(
        &self,
        keys: &[&str],
        why_absent: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<(), LabError> {
        let absent = |(name, option): (String, &'static str)| {
            // Settings, and what tells the second of an A/A pair, stand behind the folder's name.
            let folder = name.split('+').next().unwrap_or(&name).trim_end_matches(AGAIN);
            let why = why_absent(folder)?.to_owned();
            Some(LabError::Absent { target: folder.to_owned(), why, option })
        };
        let named = keys.iter().flat_map(|key| self.named(key));
        named.into_iter().find_map(absent).map_or(Ok(()), Err)
    }

    /// What the command line asks for by name under a key, and the option that does.
    fn named(&self, key: &str) -> Vec<(String, &'static str)> {
        let names = |value: &str| -> Vec<String> {
            match parse_value(value) {
                Value::Array(names) => {
                    names.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect()
                }
                name => name.as_str().map(str::to_owned).into_iter().collect(),
            }
        };
        let of = |pairs: &[(String, String)], option: &'static str| -> Vec<(String, &'static str)> {
            let values = pairs.iter().filter(|(other, _)| other == key).map(|(_, value)| value);
            values.flat_map(|value| names(value)).map(|name| (name, option)).collect()
        };
        [of(&self.set, "--set"), of(&self.only, "--only")].concat()
    }

    /// The options that change what a run of a cell is, as they are written.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let quick = self.quick.then(|| "--quick".to_owned());
        let instructions = self.instructions.then(|| "--instructions".to_owned());
        let set = self.set.iter().flat_map(|(key, value)| ["--set".to_owned(), format!("{key}={value}")]);
        quick.into_iter().chain(instructions).chain(set).collect()
    }

    /// Whether each level that `--only` names is one of the experiment's, whose cells these are.
    pub(crate) fn check_only(&self, cells: &[Cell], experiment: &Experiment) -> Result<(), ConfigError> {
        for (key, value) in &self.only {
            let known = known_levels(key, cells, experiment);
            if known.is_empty() {
                return Err(unknown_key("--only", experiment, key, value));
            }
            if !known.contains(&Level::new(value)) {
                let known = known.iter().map(Level::as_str).collect::<Vec<_>>().join(", ");
                let message = format!("`{value}`: allowed are {known}");
                return Err(ConfigError::new(format!("--only {key}={value}"), message));
            }
        }
        Ok(())
    }

    /// Whether `--only` lets the cell pass.
    pub(crate) fn selects(&self, cell: &Cell, experiment: &Experiment) -> Result<bool, ConfigError> {
        select("--only", &self.only, cell, experiment)
    }
}

/// Whether a cell has such levels; values of one key are alternatives. `option` is the one that gave them.
pub(crate) fn select(
    option: &str,
    pairs: &[(String, String)],
    cell: &Cell,
    experiment: &Experiment,
) -> Result<bool, ConfigError> {
    for (key, _) in pairs {
        let mut any = false;
        for (_, value) in pairs.iter().filter(|(other, _)| other == key) {
            any |= matches(option, cell, experiment, key, value)?;
        }
        if !any {
            return Ok(false);
        }
    }
    Ok(true)
}

fn matches(
    option: &str,
    cell: &Cell,
    experiment: &Experiment,
    key: &str,
    value: &str,
) -> Result<bool, ConfigError> {
    match (key, canonical(key)) {
        ("case", _) => return Ok(cell.case.to_string() == value),
        ("load", _) => return Ok(cell.load.to_string() == value),
        ("name", _) => return Ok(cell.name == value),
        ("target", _) => return Ok(cell.name == value || cell.target == value),
        _ => {}
    }
    let key = canonical(key);
    let levels = experiment.levels(key);
    if levels.is_empty() {
        return Err(unknown_key(option, experiment, key, value));
    }
    let wanted = Level::new(value);
    Ok(match cell.level(key) {
        Some(level) => level == wanted,
        // A target without such a setting is what it is.
        None if is_setting(key) => true,
        None => levels.contains(&wanted),
    })
}

/// The levels that a key can have in such cells.
fn known_levels(key: &str, cells: &[Cell], experiment: &Experiment) -> Vec<Level> {
    let names = || cells.iter().map(|cell| Level::new(&cell.name));
    let mut known = match key {
        "case" => cells.iter().map(|cell| Level::new(cell.case)).collect(),
        "name" => names().collect(),
        "target" => experiment.levels(key).into_iter().chain(names()).collect(),
        "load" => experiment.levels("load_model"),
        key => experiment.levels(canonical(key)),
    };
    known.sort();
    known.dedup();
    known
}

fn unknown_key(option: &str, experiment: &Experiment, key: &str, value: &str) -> ConfigError {
    let further = experiment.factors.iter().map(|factor| factor.key.as_str());
    let further = further.filter(|key| !OWN.contains(key));
    let allowed: Vec<&str> = OWN.into_iter().chain(["name", "case"]).chain(further).collect();
    let message = format!("unknown key `{key}`: allowed keys are {}", allowed.join(", "));
    ConfigError::new(format!("{option} {key}={value}"), message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Case, Load, Mode};
    use crate::plan::{Absent, Plan};

    fn options(only: &str) -> RunOptions {
        RunOptions { only: RunOptions::parse_pairs("--only", only).expect("parses"), ..RunOptions::default() }
    }

    #[test]
    fn only_selects_by_factor() {
        let cell = Cell {
            name: "fast-again".into(),
            target: "fast".into(),
            case: Case::Request,
            mode: Mode::H1H1c,
            connections: 8,
            bytes: 100,
            load: Load::Saturated,
            factors: [("delay_ms".to_owned(), Level::new(30))].into(),
        };
        let mut experiment = crate::testing::experiment();
        experiment.set_factor("delay_ms", vec![0.into(), 30.into()]);
        experiment.set_factor("settings.pool", vec![5.into(), 7.into()]);
        for (only, selected) in [
            ("mode=h1-h1c", true),
            ("mode=h1-h1c,target=fast", true),
            ("mode=h1-h1c,target=slow", false),
            ("target=slow,target=fast", true),
            ("case=request", true),
            ("case=handshake-full", false),
            ("load=equal-rate", false),
            ("bytes=100,connections=8,load=saturated", true),
            ("size=100,users=8,load_model=saturated,delay_ms=30", true),
            ("delay_ms=0", false),
            ("settings.pool=5", true),
            ("settings.pool=7,mode=h1-h1c", true),
            ("warmup_ms=10", true),
            ("warmup_ms=11", false),
            ("name=fast", false),
            ("name=fast-again", true),
        ] {
            assert_eq!(options(only).selects(&cell, &experiment).expect("known keys"), selected, "{only}");
        }
        let error = options("targets=fast").selects(&cell, &experiment).expect_err("is refused").to_string();
        assert!(error.contains("unknown key `targets`: allowed keys are target, mode"), "{error}");
    }

    /// A slip in a level ended as if there were nothing to run, without the level or what there is.
    #[test]
    fn a_level_that_there_is_not_names_those_that_there_are() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut targets = crate::testing::targets(directory.path());
        let slow = targets.present.remove("slow").expect("is here");
        let why = "no-such-program is not on the PATH".to_owned();
        targets.absent.insert("slow".into(), Absent { target: slow, why });
        let said = |only: &str| {
            let mut experiment = crate::testing::experiment();
            experiment.set_factor("connections", vec![8.into(), 64.into()]);
            let planned = Plan::new(experiment, &targets, &options(only));
            planned.map(|plan| plan.cells.len()).map_err(|error| (error.exit_code(), error.to_string()))
        };
        for (only, message) in [
            ("users=77", "--only users=77: `77`: allowed are 8, 64"),
            ("target=fst", "--only target=fst: `fst`: allowed are direct, fast, fast-again, slow"),
            ("name=direct,name=fst", "--only name=fst: `fst`: allowed are direct, fast, fast-again, slow"),
            ("case=handshake", "--only case=handshake: `handshake`: allowed are request"),
            ("load=full", "--only load=full: `full`: allowed are equal-rate, saturated"),
            ("mode=h1c,warmup_ms=11", "--only warmup_ms=11: `11`: allowed are 10"),
        ] {
            assert_eq!(said(only), Err((2, message.to_owned())), "{only}");
        }
        assert_eq!(said("target=direct,users=8,target=slow"), Ok(2));
        let nothing = "nothing to run: --only leaves no cell of a present target".to_owned();
        assert_eq!(said("target=slow"), Err((1, nothing)));
    }

    #[test]
    fn pairs_need_a_key_and_a_value() {
        let error = RunOptions::parse_pairs("--only", "x,mode=h1").expect_err("is refused");
        assert_eq!(error.to_string(), "--only x: allowed is key=value");
        let lists = RunOptions::parse_pairs("--only", "cores.gateway=0,1,mode=h1").expect("is read");
        assert_eq!(lists[0], ("cores.gateway".to_owned(), "0,1".to_owned()));
        assert!(RunOptions::parse_pair("--set", "=3").is_err());
    }
}
