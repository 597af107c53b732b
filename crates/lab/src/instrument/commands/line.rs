//! The command lines of `constants.commands`, in which `{key}` is a placeholder for the level of a factor.

use crate::base::error::ConfigError;
use crate::base::files::on_path;
use crate::experiment::{Blame, Experiment, Level, get, leaves};
use crate::planning::cell::Levels;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use toml::Value;
use weir_report::markup::command_line;

/// Milliseconds after which a command is killed.
const TIMEOUT: &str = "timeout_ms";

/// The accepted forms of a command.
const WORDS: &str = "words separated by spaces, such as \"gzip -k -9 big.txt\", or a list of words";

/// The commands of an experiment, and their working directory.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub(super) lines: BTreeMap<String, Line>,
    pub(super) absent: BTreeMap<String, String>,
    pub(super) folder: PathBuf,
}

/// A command: its program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line(Vec<String>);

impl Line {
    /// Splits a string at its spaces; a list is used as is.
    fn read(value: &Value) -> Option<Self> {
        let words: Option<Vec<String>> = match value {
            Value::String(text) => Some(text.split_whitespace().map(str::to_owned).collect()),
            Value::Array(words) => words.iter().map(|word| word.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        words.filter(|words| !words.is_empty()).map(Self)
    }

    /// The program.
    pub(super) fn program(&self) -> &str {
        &self.0[0]
    }

    /// The program's file, from the directory or the PATH.
    pub(super) fn file(&self, folder: &Path) -> Option<PathBuf> {
        match self.program().contains('/') {
            true => Some(folder.join(self.program())).filter(|file| file.is_file()),
            false => on_path(self.program(), std::env::var_os("PATH").as_deref()),
        }
    }

    /// The program and its arguments, with a cell's levels for the placeholders.
    pub(super) fn words(&self, levels: &Levels) -> Vec<String> {
        let put = |word: String, (key, level): (&str, &Level)| word.replace(&slot(key), level.as_str());
        self.0.iter().map(|word| levels.iter().fold(word.clone(), put)).collect()
    }
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&command_line(&self.0))
    }
}

fn slot(key: &str) -> String {
    format!("{{{key}}}")
}

/// The commands by their names, in the file's order.
pub(super) fn all(experiment: &Experiment) -> Vec<(String, Line)> {
    let line = |name: &str| get(&experiment.constants, &format!("commands.{name}")).and_then(Line::read);
    experiment.subjects().into_iter().filter_map(|name| line(&name).map(|line| (name, line))).collect()
}

/// Milliseconds after which a command is killed; ten minutes by default.
pub(super) fn timeout_ms(experiment: &Experiment) -> u64 {
    let given = experiment.constants.get(TIMEOUT).and_then(Value::as_integer);
    given.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(600_000)
}

/// Checks that every command has its words, and that every constant and every factor in `keys` has an effect.
pub(super) fn check(
    experiment: &Experiment,
    keys: Vec<String>,
    wrong: &Blame<'_>,
) -> Result<(), ConfigError> {
    let commands: Vec<String> = experiment.subjects().iter().map(|name| format!("commands.{name}")).collect();
    for key in &commands {
        let value = get(&experiment.constants, key);
        if value.and_then(Line::read).is_none() {
            let found = value.map_or_else(|| "missing".into(), |value| format!("invalid value `{value}`"));
            return Err(wrong(key, format!("{found}: expected {WORDS}")));
        }
    }
    for (key, value) in leaves(&experiment.constants) {
        let is_time = value.as_integer().is_some_and(|ms| (1..=86_400_000).contains(&ms));
        if key == TIMEOUT && !is_time {
            return Err(wrong(&key, format!("invalid value `{value}`: expected 1 to 86400000")));
        }
        if key != TIMEOUT && !commands.contains(&key) {
            let allowed = commands.join(", ");
            return Err(wrong(&key, format!("unknown key: expected one of {allowed}, {TIMEOUT}")));
        }
    }
    let words: Vec<String> = all(experiment).into_iter().flat_map(|(_, line)| line.0).collect();
    match keys.iter().find(|key| !words.iter().any(|word| word.contains(&slot(key)))) {
        Some(key) => Err(wrong(key, format!("no command contains {}, so no level has an effect", slot(key)))),
        None => Ok(()),
    }
}
