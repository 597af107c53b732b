//! A target: a folder that says how a gateway under test is started. The lab knows no gateway by name.

use crate::error::{ConfigError, LabError};
use crate::experiment::{Experiment, Mode, Side};
use crate::plan::Targets;
use crate::template::Values;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The description in `target.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    title: String,
    about: String,
    modes: Vec<Mode>,
    requires: Option<String>,
    version: Option<VersionCommand>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    start: Vec<String>,
    #[serde(default)]
    client_side: BySide,
    #[serde(default)]
    upstream_side: BySide,
    ready: Option<Ready>,
    stop: Option<Stop>,
}

/// How a target tells its version.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionCommand {
    command: Vec<String>,
    after: String,
}

/// Words that a side of the mode adds to the start command.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BySide {
    #[serde(default)]
    h1c: Vec<String>,
    #[serde(default)]
    h1: Vec<String>,
}

/// When a target may be sent load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ready {
    connect: String,
    timeout_ms: u64,
}

/// How a target is ended.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// The signal.
    pub signal: StopSignal,
    /// Milliseconds after which it is killed.
    pub timeout_ms: u64,
}

/// Signals that ask a process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// SIGTERM
    Term,
    /// SIGQUIT
    Quit,
    /// SIGINT
    Int,
    /// SIGUSR1
    Usr1,
}

/// A target that can run here.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its folder's name.
    pub name: String,
    /// For people.
    pub title: String,
    /// What it is and how it is set up, in a sentence or two.
    pub about: String,
    /// The modes that it supports.
    pub modes: Vec<Mode>,
    /// What its version command said; empty when it has none.
    pub version: String,
    directory: PathBuf,
    description: Description,
}

/// What a target needs for one run: files, command, ready check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Names and contents of the files to write into the run's directory.
    pub files: Vec<(String, String)>,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The address whose accepting a connection means ready.
    pub ready: String,
    /// Milliseconds that this may take.
    pub ready_timeout_ms: u64,
}

impl Target {
    /// Whether it is a process at all: `direct` is none.
    pub fn is_process(&self) -> bool {
        !self.description.start.is_empty()
    }

    /// How to end it.
    pub fn stop(&self) -> Stop {
        self.description.stop.unwrap_or(Stop { signal: StopSignal::Term, timeout_ms: 2000 })
    }

    /// Renders what a run in `mode` needs; `None` when the target is no process.
    pub fn prepare(&self, mode: Mode, values: &Values) -> Result<Option<Prepared>, LabError> {
        let (Some(ready), Some(upstream)) = (&self.description.ready, mode.upstream()) else {
            return Ok(None);
        };
        let values =
            values.clone().with("client_side", mode.client().name()).with("upstream_side", upstream.name());
        let description = self.directory.join("target.toml");
        let source = description.display();
        let mut files = Vec::new();
        for name in values.render_all(&source, &self.description.files)? {
            let path = self.directory.join(&name);
            let text = std::fs::read_to_string(&path)
                .map_err(|error| ConfigError::new(&source, format!("files: {}: {error}", path.display())))?;
            files.push((name, values.render(path.display(), &text)?));
        }
        let mut command = values.render_all(&source, &self.description.start)?;
        command.extend(values.render_all(&source, self.description.client_side.of(mode.client()))?);
        command.extend(values.render_all(&source, self.description.upstream_side.of(upstream))?);
        let connect = values.render(&source, &ready.connect)?;
        Ok(Some(Prepared { files, command, ready: connect, ready_timeout_ms: ready.timeout_ms }))
    }

    fn read(directory: &Path, name: &str) -> Result<Description, ConfigError> {
        let path = directory.join(name).join("target.toml");
        let text = std::fs::read_to_string(&path).map_err(|error| {
            let known = folders(directory).join(", ");
            ConfigError::new(path.display(), format!("target `{name}`: {error}; targets here are: {known}"))
        })?;
        let description: Description =
            toml::from_str(&text).map_err(|error| ConfigError::toml(path.display(), &text, &error))?;
        let wrong = |key, message: &str| ConfigError::key(path.display(), &text, key, message);
        if description.modes.is_empty() {
            return Err(wrong("modes", "empty: at least one is needed"));
        }
        let process = !description.start.is_empty();
        if process != description.ready.is_some() {
            return Err(wrong("start", "`start` and `[ready]` come together or not at all"));
        }
        match description.modes.iter().find(|mode| mode.upstream().is_some() != process) {
            Some(mode) if process => {
                Err(wrong("modes", &format!("`{mode}` has no gateway, but `start` is given")))
            }
            Some(mode) => Err(wrong("modes", &format!("`{mode}` needs a gateway, but `start` is missing"))),
            None => Ok(description),
        }
    }
}

impl BySide {
    fn of(&self, side: Side) -> &[String] {
        match side {
            Side::H1c => &self.h1c,
            Side::H1 => &self.h1,
        }
    }
}

/// Finds the targets of an experiment. One whose program is missing is absent, and that is no error; a description or a
/// template that cannot be read is one, whether or not the program is there.
pub fn find(experiment: &Experiment, directory: &Path, values: &Values) -> Result<Targets, LabError> {
    let mut targets = Targets::default();
    for name in &experiment.targets {
        let description = Target::read(directory, name)?;
        let mut target = Target {
            name: name.clone(),
            title: description.title.clone(),
            about: description.about.clone(),
            modes: description.modes.clone(),
            version: String::new(),
            directory: directory.join(name),
            description,
        };
        for &mode in &target.modes {
            target.prepare(mode, values)?;
        }
        match version(&target, values)? {
            Ok(version) => {
                target.version = version;
                targets.present.insert(name.clone(), target);
            }
            Err(why) => {
                targets.absent.insert(name.clone(), why);
            }
        }
    }
    Ok(targets)
}

/// The outer error is the description's fault, the inner one says why the target is absent.
fn version(target: &Target, values: &Values) -> Result<Result<String, String>, ConfigError> {
    if let Some(program) = &target.description.requires
        && on_path(program, std::env::var_os("PATH").as_deref()).is_none()
    {
        return Ok(Err(format!("{program} is not on the PATH")));
    }
    let Some(version) = &target.description.version else { return Ok(Ok(String::new())) };
    let source = target.directory.join("target.toml");
    let words = values.render_all(source.display(), &version.command)?;
    let Some((program, arguments)) = words.split_first() else {
        return Err(ConfigError::new(source.display(), "version.command: empty: a program is needed"));
    };
    let output = match Command::new(program).args(arguments).output() {
        Ok(output) => output,
        Err(error) => return Ok(Err(format!("{program}: {error}"))),
    };
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if !output.status.success() {
        return Ok(Err(format!("`{}` failed: {}", words.join(" "), said.trim())));
    }
    match said.split_once(&version.after).and_then(|(_, rest)| rest.split_whitespace().next()) {
        Some(word) => Ok(Ok(word.to_owned())),
        None => Ok(Err(format!("`{}` does not say `{}`", words.join(" "), version.after))),
    }
}

fn on_path(program: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path?).map(|directory| directory.join(program)).find(|file| file.is_file())
}

fn folders(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().join("target.toml").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// The titles of the targets that an experiment names, by name.
pub fn titles(targets: &Targets) -> BTreeMap<String, String> {
    targets.present.iter().map(|(name, target)| (name.clone(), target.title.clone())).collect()
}
