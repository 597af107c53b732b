//! The command line of `run` and `plan`.

use crate::base::error::{ConfigError, LabError};
use crate::experiment::AGAIN;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The options of `weir run` and `weir plan`.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The experiment; empty to resume the one stored in [`Self::continue_dir`].
    pub file: PathBuf,
    /// The results directory; by default `out/NAME-YYYYMMDD-HHMMSS` (UTC).
    pub out: Option<PathBuf>,
    /// The number of blocks, overriding the experiment.
    pub blocks: Option<u32>,
    /// A smoke run of half a minute: two blocks and tiny windows.
    pub quick: bool,
    /// Run only the cells with these factors; values of one key are alternatives.
    pub only: Vec<(String, String)>,
    /// Whether a subject that `only` names may be absent.
    pub may_be_absent: bool,
    /// Keys of the experiment with other values, as TOML; `tls.group` reaches into a table.
    pub set: Vec<(String, String)>,
    /// Whether [`Self::set`] is another run's, of which some keys may have no effect in this one.
    pub is_inherited: bool,
    /// Resume the experiment in this directory: finish it, and extend it if [`Self::blocks`] is more than it has.
    pub continue_dir: Option<PathBuf>,
    /// Continue despite a broken target.
    pub allow_invalid: bool,
    /// Whether to install absent subjects that have an install script, overriding the experiment.
    pub install: Option<bool>,
    /// Sample each cell's subject in a run of its own after the blocks.
    pub profile: bool,
    /// For TLS stacks: count instructions as well, overriding the experiment.
    pub instructions: bool,
}

impl RunOptions {
    /// The result to resume with its stored experiment, if no file is named.
    pub fn stored(&self) -> Option<&Path> {
        self.continue_dir.as_deref().filter(|_| self.file.as_os_str().is_empty())
    }

    /// Parses `k=v,k=v` of `--only`.
    pub fn parse_pairs(option: &str, text: &str) -> Result<Vec<(String, String)>, ConfigError> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for part in text.split(',') {
            match pairs.last_mut() {
                // A level that is a list contains commas.
                Some((_, value)) if !part.contains('=') && !value.is_empty() && !part.trim().is_empty() => {
                    value.push(',');
                    value.push_str(part.trim());
                }
                _ => pairs.push(Self::parse_pair(option, part)?),
            }
        }
        Ok(pairs)
    }

    /// Parses `k=v` of `--set`.
    pub fn parse_pair(option: &str, text: &str) -> Result<(String, String), ConfigError> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
                Ok((key.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(ConfigError::new(format!("{option} {text}"), "expected key=value")),
        }
    }

    /// Fails if a target or an engine named on the command line is absent: a measurement without it is not the
    /// requested one.
    pub(crate) fn check_named<'a>(
        &self,
        keys: &[&str],
        why_absent: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<(), LabError> {
        let absent = |(name, option): (String, &'static str)| {
            // Settings, and the suffix of an A/A pair's second, follow the directory's name.
            let folder = name.split('+').next().unwrap_or(&name).trim_end_matches(AGAIN);
            let why = why_absent(folder)?.to_owned();
            Some(LabError::Absent { target: folder.to_owned(), why, option })
        };
        if self.may_be_absent {
            return Ok(());
        }
        let named = keys.iter().flat_map(|key| self.named(key));
        named.into_iter().find_map(absent).map_or(Ok(()), Err)
    }

    /// The names under a key on the command line, with their option.
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

    /// The options that change the runs of a cell, as given.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let quick = self.quick.then(|| "--quick".to_owned());
        let instructions = self.instructions.then(|| "--instructions".to_owned());
        let set = self.set.iter().flat_map(|(key, value)| ["--set".to_owned(), format!("{key}={value}")]);
        quick.into_iter().chain(instructions).chain(set).collect()
    }
}

/// A value in TOML, or a bare word as a string.
pub(crate) fn parse_value(text: &str) -> Value {
    toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}
