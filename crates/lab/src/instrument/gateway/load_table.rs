//! The `[load]` table: flags of `weir load` beyond the experiment's other keys. Its keys are the long
//! names of `weir load`'s flags (with `_` for `-` too), and are looked up in the definition of those flags, so that
//! an experiment can use every feature of `weir load`.

use super::Load;
use super::levels::listed;
use crate::base::error::{ConfigError, LabError};
use crate::base::hash;
use crate::experiment::{Experiment, leaves};
use crate::planning::planned_run::Stage;
use clap::{Arg, ArgAction, Args as _, Command};
use std::collections::BTreeMap;
use std::path::Path;
use toml::{Table, Value};
use weir_load::{LoadArgs, Options};

/// Flags that the lab sets, and their source.
const SET_ELSEWHERE: [(&[&str], &str); 16] = [
    (&["url", "urls"], "`mode`, `request`, `bytes` and the target"),
    (&["weights"], "the file of `requests`, where each has its own"),
    (&["resolve", "connect-to", "unix-socket"], "the target: load goes nowhere else"),
    (&["connections"], "`connections`"),
    (&["http", "streams"], "`mode` and `streams`"),
    (&["duration"], "`window_ms`"),
    (&["warmup"], "`warmup_ms`"),
    (&["chunked"], "`framing`"),
    (&["error-budget"], "`error_budget`"),
    (&["workers", "cores"], "`cores.load`"),
    (&["rate"], "`load_model`, with `rate` or `rate_share`"),
    (&["tls", "suite", "group"], "`tls.version`, `tls.suite`, `tls.group`"),
    (&["cacert"], "`tls.certificate`, which the lab issues"),
    (&["pid", "cgroup", "cpu-command"], "the lab, which accounts the processes that it starts"),
    (&["rendezvous"], "`layout`"),
    (&["json", "csv", "assert"], "the lab, which stores each result in `runs/`"),
];

/// Flags for one kind of loop only: the runs of the other go without them, and so does calibration, which
/// measures a target's maximum.
const ONE_LOOP: [(&str, Load); 2] = [("arrivals", Load::EqualRate), ("think", Load::Saturated)];

/// The flag whose file is written, not read.
const WRITTEN: &str = "key-log";

/// The table as arguments of a run.
pub(crate) fn words(table: &Table, load: Load, stage: Stage) -> Result<Vec<String>, ConfigError> {
    let flags = flags();
    let mut words = Vec::new();
    for (key, value) in table {
        let found = flag_words(&flags, key, value).map_err(|message| wrong(key, message))?;
        let only = only_loop(key);
        if only.is_none_or(|only| load == only && stage != Stage::Calibration) {
            words.extend(found);
        }
    }
    Ok(words)
}

/// The value of a key. The path of a flag's file is made absolute, relative to the experiment's directory.
pub(crate) fn placed(key: &str, value: &Value, folder: &Path) -> Value {
    match key.strip_prefix("load.").and_then(|flag| file(flag, value)) {
        Some(file) => folder.join(file).display().to_string().into(),
        None => value.clone(),
    }
}

impl Experiment {
    /// SHA-256 of each file that the load engine reads, by `load.FLAG=PATH`: in another checkout the same file has
    /// another path, and the same path may hold another file.
    /// Errors: when one cannot be read.
    pub(crate) fn load_files(&self) -> Result<BTreeMap<String, String>, LabError> {
        let constants = leaves(&self.constants).into_iter();
        let levels =
            self.factors.iter().flat_map(|one| one.levels.iter().map(|level| (one.key.clone(), level)));
        let mut hashes = BTreeMap::new();
        for (key, value) in constants.chain(levels) {
            let flag = key.strip_prefix("load.").filter(|flag| flag_name(flag) != WRITTEN);
            if let Some(path) = flag.and_then(|flag| file(flag, value)) {
                hashes.insert(format!("{key}={path}"), hash::contents(Path::new(path))?);
            }
        }
        Ok(hashes)
    }
}

/// Checks the load engine's arguments: the lab's own, valid by themselves, then the table's flags.
pub(crate) fn options(table: &Table, own: &[String], load: Load) -> Result<Options, ConfigError> {
    let read = |table: &Table| {
        let words = words(table, load, Stage::Block(1))?;
        let words = own.iter().chain(&words).map(String::as_str);
        let read = LoadArgs::from_words(words).map_err(|error| ConfigError::new("load", one_line(&error)))?;
        read.options().map_err(|error| ConfigError::new("load", error.to_string()))
    };
    let error = match read(table) {
        Err(error) if error.source == "load" => error,
        settled => return settled,
    };
    // To blame is a key that the error names and without which the rest is valid, or else one half of a conflict.
    let named = |key: &&String| mentions(&error.message, &flag_name(key));
    let alone = |key: &&String| {
        let rest = table.iter().filter(|(other, _)| other != key);
        read(&rest.map(|(key, value)| (key.clone(), value.clone())).collect()).is_ok()
    };
    let keys = || table.keys();
    match keys().filter(named).find(alone).or_else(|| keys().find(alone)).or_else(|| keys().find(named)) {
        Some(key) => Err(wrong(key, format!("{} ({})", error.message, help(key)))),
        None => Err(error),
    }
}

/// Rejects flags for a loop that the experiment does not have.
pub(crate) fn check_loops(experiment: &Experiment) -> Result<(), ConfigError> {
    let constants = leaves(&experiment.constants);
    let constants = constants.iter().map(|(key, _)| key.as_str());
    let keys = constants.chain(experiment.factors.iter().map(|factor| factor.key.as_str()));
    for flag in keys.filter_map(|key| key.strip_prefix("load.")) {
        if let Some(only) = only_loop(flag).filter(|only| !experiment.loads().contains(only)) {
            return Err(wrong(flag, format!("requires `{only}` in `load_model`")));
        }
    }
    Ok(())
}

pub(crate) fn wrong(flag: &str, message: impl Into<String>) -> ConfigError {
    ConfigError::new(format_args!("load.{flag}"), message)
}

fn flags() -> Command {
    LoadArgs::augment_args(Command::new("weir load"))
}

fn flag_name(key: &str) -> String {
    key.replace('_', "-")
}

fn flag<'a>(flags: &'a Command, key: &str) -> Option<&'a Arg> {
    let name = flag_name(key);
    flags.get_arguments().find(|flag| flag.get_long() == Some(&name))
}

fn flag_words(flags: &Command, key: &str, value: &Value) -> Result<Vec<String>, String> {
    let name = flag_name(key);
    if let Some((_, by)) = set_elsewhere(&name) {
        return Err(format!("reserved: it is set by {by}"));
    }
    let Some(flag) = flag(flags, key) else {
        let all = flags.get_arguments().filter_map(Arg::get_long);
        let allowed = listed(all.filter(|name| set_elsewhere(name).is_none()));
        return Err(format!("unknown flag of `weir load`: expected one of {allowed}"));
    };
    if !flag.get_action().takes_values() {
        return match value {
            Value::Boolean(true) => Ok(vec![format!("--{name}")]),
            Value::Boolean(false) => Ok(Vec::new()),
            other => Err(format!("`{other}`: expected true or false")),
        };
    }
    let names = flag.get_value_names().unwrap_or_default().join(" ");
    let text = |value: &Value| match value {
        Value::String(text) if text == "-" && is_named(flag, "-") => {
            Err("`-`: a run has no standard input: expected a file or a size".to_owned())
        }
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        other => Err(format!("`{other}`: expected a string or a number: {names}")),
    };
    let texts = match value {
        Value::Array(items) if items.is_empty() => return Err("empty: expected at least one value".into()),
        Value::Array(items) => items.iter().map(text).collect::<Result<Vec<_>, _>>()?,
        single => vec![text(single)?],
    };
    let delimiter = flag.get_value_delimiter().or_else(|| is_named(flag, "LIST").then_some(','));
    match (delimiter, flag.get_action()) {
        (Some(delimiter), _) => Ok(vec![format!("--{name}={}", texts.join(&delimiter.to_string()))]),
        (None, ArgAction::Append) => Ok(texts.iter().map(|text| format!("--{name}={text}")).collect()),
        (None, _) if texts.len() == 1 => Ok(vec![format!("--{name}={}", texts[0])]),
        (None, _) => Err(format!("a list: expected one value: {names}")),
    }
}

fn help(key: &str) -> String {
    let help = flag(&flags(), key).and_then(|flag| flag.get_help().map(ToString::to_string));
    format!("--{}: {}", flag_name(key), help.unwrap_or_default())
}

/// What a flag is about, where that decides about its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlagKind {
    /// TLS between load engine and target.
    Tls,
    /// How sessions are resumed.
    Resumption,
    /// Requests and their responses.
    Requests,
}

/// What a flag is about; `None` if it always has an effect.
pub(crate) fn flag_kind(key: &str) -> Option<FlagKind> {
    let flags = flags();
    let heading = flag(&flags, key)?.get_help_heading();
    match (heading, flag_name(key).as_str()) {
        (_, "resume-by") => Some(FlagKind::Resumption),
        (Some("TLS"), _) => Some(FlagKind::Tls),
        // A handshake, too, may take too long.
        (Some("Requests"), name) if name != "timeout" => Some(FlagKind::Requests),
        _ => None,
    }
}

/// The only kind of loop that a flag is for, if any.
fn only_loop(flag: &str) -> Option<Load> {
    let name = flag_name(flag);
    ONE_LOOP.into_iter().find(|(only, _)| *only == name).map(|(_, load)| load)
}

fn set_elsewhere(flag: &str) -> Option<&'static (&'static [&'static str], &'static str)> {
    SET_ELSEWHERE.iter().find(|(flags, _)| flags.contains(&flag))
}

/// Whether a flag takes such a value, by its value name in the help, as in `FILE|SIZE|-`.
fn is_named(flag: &Arg, name: &str) -> bool {
    flag.get_value_names().unwrap_or_default().iter().any(|names| names.split('|').any(|one| one == name))
}

/// The file named by a flag's value, if any.
fn file<'a>(key: &str, value: &'a Value) -> Option<&'a str> {
    let flags = flags();
    let (flag, text) = flag(&flags, key).zip(value.as_str())?;
    let is_size = is_named(flag, "SIZE") && weir_load::size(text).is_some();
    (is_named(flag, "FILE") && text != "-" && !is_size).then_some(text)
}

/// clap's error without its heading, its usage and its advice.
fn one_line(error: &str) -> String {
    let end = ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|end| error.find(end)).min();
    let words = error[..end.unwrap_or(error.len())].trim_start_matches("error: ");
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn mentions(message: &str, flag: &str) -> bool {
    let of_a_flag = |c: char| c.is_ascii_alphanumeric() || c == '-';
    message.split(|c: char| !of_a_flag(c)).any(|word| word.strip_prefix("--") == Some(flag))
}

#[cfg(test)]
mod tests;
