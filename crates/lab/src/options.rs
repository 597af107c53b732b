//! What the command line asks of `run` and `plan`.

use crate::error::{ConfigError, LabError};
use crate::experiment::AGAIN;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

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
    /// Whether absent subjects that install themselves are installed, whatever the experiment says.
    pub install: Option<bool>,
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
            _ => Err(ConfigError::new(format!("{option} {text}"), "expected key=value")),
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
}

/// A value as TOML writes it, or a bare word as a string.
pub(crate) fn parse_value(text: &str) -> Value {
    toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}
