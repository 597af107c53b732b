//! A target: a directory that describes how to start a gateway under test. The lab knows no gateway by name.

mod check;
mod description;
mod find;
mod install;
mod list;
mod sources;

pub(crate) use check::{Accepted, run_check};
pub use check::{Checks, check};
pub(super) use description::text;
#[cfg(test)]
pub(crate) use find::Absent;
pub use find::Targets;
pub(crate) use find::find;
pub use install::install;
pub(crate) use install::install_wanted;
pub use list::{List, list};

use crate::base::error::{ConfigError, LabError};
use crate::instrument::gateway::levels::listed;
use crate::instrument::gateway::ports::{MOST_SERVERS, Ports};
use crate::instrument::gateway::template::Values;
use crate::instrument::gateway::{Mode, Tls, sample_values};
use crate::running::host::this_program;
use description::{Description, FILE};
use std::path::PathBuf;
use toml::{Table, Value};

/// A target that can run on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) title: String,
    /// The output of its version command; empty without one.
    pub(crate) version: String,
    directory: PathBuf,
    /// Its install directory.
    installed: PathBuf,
    /// The present files among those it requires.
    required: Vec<PathBuf>,
    pub(super) description: Description,
}

/// The needs of a target for one run: files, command, ready check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// Names and contents of the files to write into the run's directory.
    pub(crate) files: Vec<(String, String)>,
    pub(crate) command: Vec<String>,
    /// Arguments after the program in a run that is profiled.
    pub(crate) profiled: Vec<String>,
    /// The target is ready when this address accepts a connection.
    pub(crate) ready: String,
    /// The timeout of that in milliseconds.
    pub(crate) ready_timeout_ms: u64,
    /// The target's own check of its files, program and arguments; `None` without one.
    pub(crate) check: Option<Vec<String>>,
    /// The log of its JVM's collector (unified logging, decorated with uptime); `None` if it is no JVM.
    pub(crate) gc_log: Option<PathBuf>,
}

impl Target {
    /// Its directory as an absolute path.
    pub(crate) fn folder(&self) -> PathBuf {
        std::path::absolute(&self.directory).unwrap_or_else(|_| self.directory.clone())
    }

    /// Whether an experiment may set `name` to `value`. The error names both and what was expected.
    pub(crate) fn check_setting(&self, name: &str, value: &Value) -> Result<(), String> {
        match self.description.settings.get(name) {
            Some(setting) => setting.check(value),
            None if self.description.settings.is_empty() => {
                Err(format!("unknown setting `{name}`: target `{}` has none", self.name))
            }
            None => {
                let allowed = listed(self.description.settings.keys());
                Err(format!("unknown setting `{name}` of target `{}`: expected one of {allowed}", self.name))
            }
        }
    }

    /// The values of a run, the constant ones, and those of settings without a value yet: `chosen`, or else
    /// the default. `{{name}}` in a string stands for a value of the run.
    pub(crate) fn with_settings(&self, run: &Values, chosen: &Table) -> Result<Values, ConfigError> {
        let run = run.clone().with("installed", self.installed.display());
        let mut values = run.clone();
        for (name, setting) in self.description.settings.iter().filter(|(name, _)| !run.has(name)) {
            let text = text(chosen.get(name).unwrap_or(&setting.default));
            let text = run.render(format!("{}: settings.{name}", self.file().display()), &text)?;
            values = values.with(name.clone(), text);
        }
        Ok(values)
    }

    /// The overhead of its runs beyond their phases in milliseconds, if its description declares one.
    pub(crate) fn overhead_ms(&self) -> Option<u64> {
        self.description.ready.as_ref()?.overhead_ms.map(u64::from)
    }

    /// Whether its listen address can be set, as a network of its own needs.
    pub(crate) fn listens_anywhere(&self) -> bool {
        self.description.ready.as_ref().is_none_or(|ready| ready.connect.contains("{{listen_address}}"))
    }

    /// Renders the needs of a run in `mode`; `None` if the target is no process. A setting without a value gets its
    /// default.
    pub(crate) fn prepare(&self, mode: Mode, values: &Values) -> Result<Option<Prepared>, LabError> {
        let description = &self.description;
        let (Some(ready), Some(upstream)) = (&description.ready, mode.upstream()) else {
            return Ok(None);
        };
        let values = self.with_settings(values, &Table::new())?;
        let values = values.with("client_side", mode.client()).with("upstream_side", upstream);
        let file = self.file();
        let source = file.display();
        let mut files = Vec::new();
        for name in values.render_all(&source, &description.files)? {
            let path = self.template(&name);
            let text = std::fs::read_to_string(&path)
                .map_err(|error| ConfigError::new(&source, format!("files: {}: {error}", path.display())))?;
            files.push((name, values.render(path.display(), &text)?));
        }
        let mut command = values.render_all(&source, &description.start)?;
        command.extend(values.render_all(&source, description.client_side.of(mode.client()))?);
        command.extend(values.render_all(&source, description.upstream_side.of(upstream))?);
        let check = description.check.as_ref().map(|check| values.render_all(&source, &check.command));
        let gc_log = description.gc.as_ref().map(|gc| values.render(&source, &gc.log).map(PathBuf::from));
        Ok(Some(Prepared {
            files,
            command,
            profiled: description.profiled.clone(),
            ready: values.render(&source, &ready.connect)?,
            ready_timeout_ms: ready.timeout_ms,
            check: check.transpose()?,
            gc_log: gc_log.transpose()?,
        }))
    }

    /// Whether it is configured for more than one server of the origin. Errors: an invalid template.
    pub(crate) fn spreads(&self, values: &Values) -> Result<bool, LabError> {
        let ports = Ports { origin: [1, 2, 3, 4], ..Ports::default() };
        for &mode in &self.description.modes {
            let of = |servers| self.prepare(mode, &values.clone().with_ports(&ports, servers));
            if of(1)? != of(MOST_SERVERS)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn file(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// A template of its own, or else the one of this name in the first shared directory that has it.
    fn template(&self, name: &str) -> PathBuf {
        let own = self.directory.join(name);
        if own.exists() {
            return own;
        }
        let mut shared =
            self.description.templates.iter().map(|shared| self.directory.join(shared).join(name));
        let found = shared.clone().find(|file| file.exists());
        // The error names the last one.
        found.or_else(|| shared.next_back()).unwrap_or(own)
    }
}

/// A value of every name, outside an experiment.
fn samples() -> Result<Values, LabError> {
    Ok(sample_values(&this_program()?, &Tls::default()))
}

#[cfg(test)]
mod tests;
