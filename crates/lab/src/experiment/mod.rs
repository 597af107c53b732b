//! The experiment file: what is measured, on what, and how long. Strict: an unknown key or value is an error that
//! names the file, the line and what is allowed.

mod case;
mod factors;
mod load_table;

pub use case::Case;
pub use factors::{CertificateKind, Group, Load, Mode, Side, Suite, Tls, TlsVersion};

use crate::error::{ConfigError, LabError};
use crate::options::RunOptions;
pub(crate) use load_table::LoadWords;
use load_table::Wrong;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The suffix of the second target of the A/A pair.
pub const AGAIN: &str = "-again";

/// An experiment as it will be run: the file, with `--set`, `--blocks` and `--quick` applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name, which becomes part of the results' directory: letters, digits, `-`, `_`.
    pub name: String,
    /// What it asks, in a sentence or two.
    pub description: String,
    /// The targets, by the names of their folders.
    pub targets: Vec<String>,
    /// The targets' folder; relative to the experiment file's folder. Default: the `targets` beside that folder.
    #[serde(default = "default_targets_directory")]
    pub targets_directory: PathBuf,
    /// What the others are compared with: the first of these that is present.
    pub baseline: Vec<String>,
    /// The target that is run twice in every block; the comparison with itself is the noise floor.
    pub aa: Option<String>,
    /// Client side, then upstream side. A target runs those that it supports.
    pub modes: Vec<Mode>,
    /// How requests arrive.
    pub loads: Vec<Load>,
    /// Connections held open.
    pub connections: Vec<u32>,
    /// Body bytes of an answer; where `[load]` names a file of `requests`, that says what is asked for.
    pub bytes: Vec<u64>,
    /// Milliseconds of load before the measured window.
    pub warmup_ms: u64,
    /// Milliseconds of the measured window.
    pub window_ms: u64,
    /// Milliseconds of the window of a calibration run.
    pub calibration_ms: u64,
    /// Calibration runs of each target and mode, of which the best counts: a disturbance can only lower it.
    #[serde(default = "default_calibration_runs")]
    pub calibration_runs: u32,
    /// The equal rate is this share of the slowest target's maximum in a mode.
    #[serde(default = "default_rate_share")]
    pub rate_share: f64,
    /// One equal rate in requests per second for all modes, in place of calibration.
    pub rate: Option<f64>,
    /// Blocks: every cell runs once in each. Give this or `minutes`.
    pub blocks: Option<u32>,
    /// As many whole blocks as fit. Give this or `blocks`.
    pub minutes: Option<f64>,
    /// Seed of the order.
    pub seed: u64,
    /// Two targets within this ratio of each other are called equivalent: 0.03 is 3 %.
    #[serde(default = "default_margin")]
    pub margin: f64,
    /// TLS, pinned.
    pub tls: Tls,
    /// Which cores each process may use.
    pub cores: CoreSets,
    /// Further flags of `weir load`, for every run; the paths in it are absolute.
    #[serde(default, deserialize_with = "load_table::deserialize")]
    pub load: toml::Table,
}

/// Core numbers as the system counts them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreSets {
    /// The target under test.
    pub gateway: Vec<usize>,
    /// The test server.
    pub origin: Vec<usize>,
    /// The load engine.
    pub load: Vec<usize>,
}

fn default_targets_directory() -> PathBuf {
    PathBuf::from("../targets")
}

fn default_calibration_runs() -> u32 {
    2
}

fn default_rate_share() -> f64 {
    0.5
}

fn default_margin() -> f64 {
    0.03
}

impl Experiment {
    /// Reads the file that `options` names and applies the options to it. Returns the text as given, too.
    pub fn load(options: &RunOptions) -> Result<(Self, String), LabError> {
        let text = std::fs::read_to_string(&options.file)
            .map_err(|error| ConfigError::new(options.file.display(), format!("cannot be read: {error}")))?;
        let experiment = Self::parse(&options.file, &text, options)?;
        Ok((experiment, text))
    }

    fn parse(file: &Path, text: &str, options: &RunOptions) -> Result<Self, ConfigError> {
        let source = file.display();
        let mut experiment: Self =
            toml::from_str(text).map_err(|error| ConfigError::toml(&source, text, &error))?;
        if !options.set.is_empty() {
            experiment = with_settings(text, options)?;
        }
        let absolute = std::path::absolute(file)
            .map_err(|error| ConfigError::new(&source, format!("its folder cannot be found: {error}")))?;
        load_table::resolve_files(&mut experiment.load, absolute.parent().unwrap_or(Path::new("/")));
        if options.quick {
            experiment.blocks = Some(2);
            experiment.minutes = None;
            experiment.warmup_ms = experiment.warmup_ms.min(100);
            experiment.window_ms = experiment.window_ms.min(100);
            experiment.calibration_ms = experiment.calibration_ms.min(100);
            experiment.calibration_runs = 1;
        }
        if let Some(blocks) = options.blocks {
            experiment.blocks = Some(blocks);
            experiment.minutes = None;
        }
        experiment.check(|key, message| match options.set.iter().find(|(set, _)| set == key) {
            Some((_, value)) => ConfigError::new(format!("--set {key}={value}"), message),
            None => ConfigError::key(&source, text, key, message),
        })?;
        Ok(experiment)
    }

    fn check(&self, wrong: impl Fn(&str, String) -> ConfigError) -> Result<(), ConfigError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || !self.name.chars().all(plain) {
            return Err(wrong("name", format!("`{}`: allowed are letters, digits, `-` and `_`", self.name)));
        }
        one_or_more(&self.targets, "targets", &wrong)?;
        one_or_more(&self.baseline, "baseline", &wrong)?;
        one_or_more(&self.modes, "modes", &wrong)?;
        one_or_more(&self.loads, "loads", &wrong)?;
        one_or_more(&self.connections, "connections", &wrong)?;
        one_or_more(&self.bytes, "bytes", &wrong)?;
        for name in &self.targets {
            if name.is_empty() || !name.chars().all(plain) || name.ends_with(AGAIN) {
                let allowed = format!("letters, digits, `-` and `_`, not ending in `{AGAIN}`");
                return Err(wrong("targets", format!("`{name}`: allowed are {allowed}")));
            }
        }
        let known = |name: &String| self.targets.contains(name);
        if let Some(name) = self.baseline.iter().find(|name| !known(name)) {
            return Err(wrong("baseline", unknown_target(name, &self.targets)));
        }
        if let Some(name) = self.aa.as_ref().filter(|name| !known(name)) {
            return Err(wrong("aa", unknown_target(name, &self.targets)));
        }
        in_range(self.connections.iter().map(|n| u64::from(*n)), 1..=50_000, "connections", &wrong)?;
        in_range(self.bytes.iter().copied(), 0..=1_000_000_000, "bytes", &wrong)?;
        in_range([self.warmup_ms], 0..=3_600_000, "warmup_ms", &wrong)?;
        in_range([self.window_ms], 20..=3_600_000, "window_ms", &wrong)?;
        in_range([self.calibration_ms], 20..=3_600_000, "calibration_ms", &wrong)?;
        in_range([u64::from(self.calibration_runs)], 1..=100, "calibration_runs", &wrong)?;
        in_range([u64::from(self.tls.tickets)], 0..=8, "tls.tickets", &wrong)?;
        let (suite, version) = (self.tls.suite, self.tls.version);
        if suite.version() != version {
            let (suite, has, asked) = (suite.name(), suite.version().name(), version.name());
            return Err(wrong(
                "tls.suite",
                format!("`{suite}` is of TLS {has}; allowed are those of TLS {asked}"),
            ));
        }
        if !(0.01..=0.95).contains(&self.rate_share) {
            return Err(wrong("rate_share", format!("{}: allowed is 0.01 to 0.95", self.rate_share)));
        }
        if !(0.001..=0.5).contains(&self.margin) {
            return Err(wrong("margin", format!("{}: allowed is 0.001 to 0.5", self.margin)));
        }
        if let Some(rate) = self.rate.filter(|rate| !(1.0..=10_000_000.0).contains(rate)) {
            return Err(wrong("rate", format!("{rate}: allowed is 1 to 10000000")));
        }
        match (self.blocks, self.minutes) {
            (Some(blocks), None) => in_range([u64::from(blocks)], 1..=10_000, "blocks", &wrong)?,
            (None, Some(minutes)) if minutes > 0.0 && minutes <= 10_000.0 => {}
            (None, Some(minutes)) => {
                return Err(wrong("minutes", format!("{minutes}: allowed is more than 0, up to 10000")));
            }
            (Some(_), Some(_)) => {
                return Err(wrong("minutes", "given beside `blocks`: allowed is one of them".into()));
            }
            (None, None) => return Err(wrong("blocks", "missing: give `blocks` or `minutes`".into())),
        }
        for (key, cores) in [
            ("cores.gateway", &self.cores.gateway),
            ("cores.origin", &self.cores.origin),
            ("cores.load", &self.cores.load),
        ] {
            one_or_more(cores, key, &wrong)?;
            in_range(cores.iter().map(|core| *core as u64), 0..=1023, key, &wrong)?;
        }
        self.check_load().map_err(|Wrong { key, message }| wrong(&key, message))
    }

    fn check_load(&self) -> Result<(), Wrong> {
        load_table::check_loops(&self.load, &self.loads)?;
        for mode in &self.modes {
            for load in &self.loads {
                self.load_options(*mode, *load)?;
            }
        }
        Ok(())
    }

    /// The `[load]` table as words.
    pub(crate) fn load_words(&self) -> Result<LoadWords, Wrong> {
        LoadWords::new(&self.load)
    }

    /// What the load engine is told in a mode, but for what only a run knows: where, how long, at which rate.
    pub(crate) fn load_options(&self, mode: Mode, load: Load) -> Result<weir_load::Options, Wrong> {
        let bytes = self.bytes.first().copied().unwrap_or_default();
        let mut own = vec![self.load_url(mode, 1, bytes)];
        if load == Load::EqualRate {
            own.push("--rate=1000".into());
        }
        load_table::options(&self.load, &own, load)
    }

    /// The load engine's URL. Where a file tells the requests, it tells their paths.
    pub(crate) fn load_url(&self, mode: Mode, port: u16, bytes: u64) -> String {
        let path = if self.load.contains_key("requests") { String::new() } else { format!("/bytes/{bytes}") };
        format!("{}://127.0.0.1:{port}{path}", mode.client().scheme())
    }

    /// What a client does in a mode.
    pub(crate) fn case(&self, mode: Mode) -> Result<Case, ConfigError> {
        let load = self.loads.first().copied().unwrap_or(Load::Saturated);
        Ok(Case::of(&self.load_options(mode, load)?.policy, mode.client()))
    }

    /// Where the targets' folders are.
    pub fn targets_directory(&self, file: &Path) -> PathBuf {
        file.parent().unwrap_or(Path::new(".")).join(&self.targets_directory)
    }
}

/// The file read again with the values of `--set` in place of its own.
fn with_settings(text: &str, options: &RunOptions) -> Result<Experiment, ConfigError> {
    let mut table: toml::Table =
        toml::from_str(text).map_err(|error| ConfigError::toml(options.file.display(), text, &error))?;
    // May be absent, and be given by `--set` alone.
    table.entry("load").or_insert_with(|| toml::Value::Table(toml::Table::new()));
    for (key, value) in &options.set {
        let source = format!("--set {key}={value}");
        set(&mut table, key, parse_value(value)).map_err(|message| ConfigError::new(&source, message))?;
        // One at a time, so that a wrong value is blamed on the option that brought it.
        if let Err(error) = table.clone().try_into::<Experiment>() {
            return Err(ConfigError::new(source, error.message().replace('\n', ": ")));
        }
    }
    table.try_into().map_err(|error| ConfigError::toml(options.file.display(), "", &error))
}

fn set(table: &mut toml::Table, key: &str, value: toml::Value) -> Result<(), String> {
    match key.split_once('.') {
        None => {
            // The one pair of keys that exclude each other: setting one takes the other's place.
            match key {
                "blocks" => table.remove("minutes"),
                "minutes" => table.remove("blocks"),
                _ => None,
            };
            table.insert(key.to_owned(), value);
            Ok(())
        }
        Some((first, rest)) => match table.get_mut(first) {
            Some(toml::Value::Table(inner)) => set(inner, rest, value),
            _ => Err(format!("`{first}` is not a table of the experiment")),
        },
    }
}

/// A value as TOML writes it, or a bare word as a string.
fn parse_value(text: &str) -> toml::Value {
    toml::from_str::<toml::Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

fn unknown_target(name: &str, targets: &[String]) -> String {
    format!("`{name}` is not among the targets: allowed are {}", targets.join(", "))
}

fn one_or_more<T: PartialEq>(
    values: &[T],
    key: &str,
    wrong: &impl Fn(&str, String) -> ConfigError,
) -> Result<(), ConfigError> {
    if values.is_empty() {
        return Err(wrong(key, "empty: at least one value is needed".into()));
    }
    if values.iter().enumerate().any(|(index, value)| values[..index].contains(value)) {
        return Err(wrong(key, "a value is given twice".into()));
    }
    Ok(())
}

fn in_range(
    values: impl IntoIterator<Item = u64>,
    range: std::ops::RangeInclusive<u64>,
    key: &str,
    wrong: &impl Fn(&str, String) -> ConfigError,
) -> Result<(), ConfigError> {
    match values.into_iter().find(|value| !range.contains(value)) {
        Some(value) => Err(wrong(key, format!("{value}: allowed is {} to {}", range.start(), range.end()))),
        None => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const TEXT: &str = r#"name = "small"
description = "Two targets, one mode."
targets = ["direct", "fast", "slow"]
baseline = ["slow"]
aa = "fast"
modes = ["h1c", "h1c-h1c", "h1-h1c"]
loads = ["equal-rate", "saturated"]
connections = [8]
bytes = [100]
warmup_ms = 10
window_ms = 50
calibration_ms = 20
calibration_runs = 1
blocks = 6
seed = 42

[tls]
version = "1.3"
suite = "aes128-gcm-sha256"
group = "x25519"
certificate = "ecdsa-p256"
tickets = 2

[cores]
gateway = [0]
origin = [1]
load = [1]
"#;

    pub(crate) fn parse(text: &str, options: &RunOptions) -> Result<Experiment, String> {
        Experiment::parse(Path::new("e.toml"), text, options).map_err(|error| error.to_string())
    }

    fn refused(from: &str, to: &str) -> String {
        assert!(TEXT.contains(from));
        parse(&TEXT.replacen(from, to, 1), &RunOptions::default()).expect_err("is refused")
    }

    #[test]
    fn the_text_is_read() {
        let experiment = parse(TEXT, &RunOptions::default()).expect("parses");
        assert_eq!(experiment.modes, [Mode::H1c, Mode::H1cH1c, Mode::H1H1c]);
        assert_eq!((experiment.rate_share, experiment.margin), (0.5, 0.03));
    }

    #[test]
    fn an_unknown_key_names_file_line_and_what_is_allowed() {
        let message = refused("seed = 42", "sead = 42");
        assert!(message.starts_with("e.toml:15: unknown field `sead`, expected one of `name`"), "{message}");
        let message = refused("tickets = 2", "tickets = 2\nticket = 3");
        assert!(
            message.starts_with("e.toml:23: unknown field `ticket`, expected one of `version`"),
            "{message}"
        );
    }

    #[test]
    fn an_unknown_value_names_what_is_allowed() {
        let message = refused("h1-h1c", "h3-h1c");
        assert!(
            message.starts_with("e.toml:6: unknown variant `h3-h1c`, expected one of `h1c`"),
            "{message}"
        );
        assert!(refused("\"x25519\"", "\"x448\"").contains("e.toml:20: unknown variant `x448`"));
        assert!(refused("window_ms = 50", "window_ms = \"long\"").starts_with("e.toml:11: invalid type"));
    }

    #[test]
    fn values_out_of_range_name_their_line() {
        assert_eq!(
            refused("window_ms = 50", "window_ms = 5"),
            "e.toml:11: window_ms: 5: allowed is 20 to 3600000"
        );
        assert_eq!(refused("blocks = 6", "blocks = 0"), "e.toml:14: blocks: 0: allowed is 1 to 10000");
        assert_eq!(
            refused("baseline = [\"slow\"]", "baseline = [\"slaw\"]"),
            "e.toml:4: baseline: `slaw` is not among the targets: allowed are direct, fast, slow"
        );
        assert_eq!(
            refused("\"aes128-gcm-sha256\"", "\"ecdhe-ecdsa-aes128-gcm-sha256\""),
            "e.toml:19: tls.suite: `ecdhe-ecdsa-aes128-gcm-sha256` is of TLS 1.2; allowed are those of TLS 1.3"
        );
        assert_eq!(refused("blocks = 6\n", ""), "e.toml: blocks: missing: give `blocks` or `minutes`");
        assert!(refused("bytes = [100]", "bytes = []").contains("e.toml:9: bytes: empty"));
        assert!(
            refused("gateway = [0]", "gateway = [0, 0]")
                .contains("e.toml:25: cores.gateway: a value is given twice")
        );
    }

    #[test]
    fn broken_toml_names_its_line() {
        let message = refused("seed = 42", "seed = = 42");
        assert!(message.starts_with("e.toml:15: "), "{message}");
    }

    #[test]
    fn settings_of_the_command_line_replace_those_of_the_file() {
        let set = |pairs: &[(&str, &str)]| RunOptions {
            set: pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            ..RunOptions::default()
        };
        let options =
            set(&[("window_ms", "300"), ("tls.group", "p-256"), ("bytes", "[1, 2]"), ("minutes", "2")]);
        let experiment = parse(TEXT, &options).expect("parses");
        assert_eq!((experiment.window_ms, experiment.tls.group), (300, Group::P256));
        assert_eq!((experiment.bytes, experiment.blocks, experiment.minutes), (vec![1, 2], None, Some(2.0)));

        let old = set(&[("tls.version", "\"1.2\""), ("tls.suite", "ecdhe-ecdsa-aes256-gcm-sha384")]);
        let old = parse(TEXT, &old).expect("TLS 1.2 is a factor as well").tls;
        assert_eq!(
            (old.version, old.suite.openssl_12()),
            (TlsVersion::V1_2, "ECDHE-ECDSA-AES256-GCM-SHA384")
        );

        let wrong =
            |key, value| parse(TEXT, &set(&[("window_ms", "300"), (key, value)])).expect_err("is refused");
        assert!(wrong("windows_ms", "3").starts_with("--set windows_ms=3: unknown field `windows_ms`"));
        assert!(wrong("modes", "[\"h9\"]").starts_with("--set modes=[\"h9\"]: unknown variant"));
        assert_eq!(wrong("rate_share", "7"), "--set rate_share=7: 7: allowed is 0.01 to 0.95");
        assert_eq!(wrong("tsl.group", "x"), "--set tsl.group=x: `tsl` is not a table of the experiment");
    }

    #[test]
    fn quick_and_blocks() {
        let options = RunOptions { quick: true, ..RunOptions::default() };
        assert_eq!(parse(TEXT, &options).expect("parses").blocks, Some(2));
        let options = RunOptions { quick: true, blocks: Some(3), ..RunOptions::default() };
        assert_eq!(parse(TEXT, &options).expect("parses").blocks, Some(3));
    }
}
