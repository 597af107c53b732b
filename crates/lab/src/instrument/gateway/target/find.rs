//! The targets on this machine, and why others are absent.

use super::Target;
use super::description::Description;
use crate::base::cache;
use crate::base::error::{ConfigError, LabError};
use crate::base::files::on_path;
use crate::found::Folders;
use crate::instrument::gateway::levels::listed;
use crate::instrument::gateway::template::Values;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use toml::Table;

/// The values that a target adds to those of a run.
const OWN: [&str; 3] = ["client_side", "upstream_side", "installed"];

/// The targets of an experiment, as found on this machine.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    pub(crate) present: BTreeMap<String, Target>,
    pub(crate) absent: BTreeMap<String, Absent>,
}

/// A target that cannot run here.
#[derive(Clone, Debug)]
pub(crate) struct Absent {
    pub(crate) target: Target,
    pub(crate) why: String,
}

impl Targets {
    /// Each of them, present or absent.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Target> {
        self.present.values().chain(self.absent.values().map(|absent| &absent.target))
    }
}

/// Finds targets by their names. One whose program is missing is absent, which is no error; an unreadable description
/// or template is one, whether or not the program is present.
pub(crate) fn find(names: &[String], folders: &Folders, values: &Values) -> Result<Targets, LabError> {
    let mut targets = Targets::default();
    for name in names {
        let (target, absent) = look(&folders.folder(name)?, name, values)?;
        match absent {
            None => targets.present.insert(name.clone(), target).map(drop),
            Some(why) => targets.absent.insert(name.clone(), Absent { target, why }).map(drop),
        };
    }
    Ok(targets)
}

/// Loads one target, renders it for each of its modes, and reports why it is absent, if it is. `values` has every value
/// of a run.
pub(super) fn look(
    directory: &Path,
    name: &str,
    values: &Values,
) -> Result<(Target, Option<String>), LabError> {
    let description = Description::read(directory, name, |name| OWN.contains(&name) || values.has(name))?;
    let mut target = Target {
        name: name.to_owned(),
        title: description.title.clone(),
        version: String::new(),
        directory: directory.join(name),
        installed: cache::directory(
            "targets",
            "WEIR_TARGETS",
            description.installed.as_deref().unwrap_or(name),
        ),
        required: Vec::new(),
        description,
    };
    let values = target.with_settings(values, &Table::new())?;
    for &mode in &target.description.modes {
        target.prepare(mode, &values)?;
    }
    let missing = target.look_for_required(&values)?;
    let version = match missing.is_empty() {
        false => Err(listed(missing)),
        true if target.is_stale() => Err("was built from other sources".to_owned()),
        true => target.read_version(&values)?,
    };
    match version {
        Ok(version) => {
            target.version = version;
            Ok((target, None))
        }
        Err(why) => {
            // How to get it.
            let by = match (&target.description.installed, &target.description.install) {
                (Some(other), _) => Some(other.as_str()),
                (None, install) => install.as_ref().map(|_| name),
            };
            let script = by.map(|name| format!("install it with `weir targets install {name}`"));
            let package = target.description.package.as_deref().map(weir_doctor::how_to_get);
            let how = target.description.absent.clone().or(script).or(package);
            let why = [Some(why), how].into_iter().flatten().collect::<Vec<_>>().join("; ");
            Ok((target, Some(why)))
        }
    }
}

impl Target {
    /// Finds the files of `requires` and, if all are present, the program of the start command; returns
    /// the missing ones.
    fn look_for_required(&mut self, values: &Values) -> Result<Vec<String>, ConfigError> {
        let mut missing = Vec::new();
        for name in values.render_all(self.file().display(), &self.description.requires)? {
            match program(&name) {
                Ok(file) => self.required.push(file),
                Err(why) => missing.push(why),
            }
        }
        if let Some(first) = self.description.start.first().filter(|_| missing.is_empty()) {
            let name = values.render(self.file().display(), first)?;
            // The run's own files do not exist yet.
            let is_of_the_run = first.contains("{{dir}}") || (name.contains('/') && !name.starts_with('/'));
            missing.extend(program(&name).err().filter(|_| !is_of_the_run));
        }
        Ok(missing)
    }

    /// The outer error is an invalid description, the inner one says why the target is absent.
    fn read_version(&self, values: &Values) -> Result<Result<String, String>, ConfigError> {
        let Some(version) = &self.description.version else { return Ok(Ok(String::new())) };
        let words = values.render_all(self.file().display(), &version.command)?;
        let Some((program, arguments)) = words.split_first() else { return Ok(Ok(String::new())) };
        let output = match Command::new(program).args(arguments).output() {
            Ok(output) => output,
            Err(error) => return Ok(Err(format!("{program}: {error}"))),
        };
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        let words = words.join(" ");
        if !output.status.success() {
            return Ok(Err(format!("`{words}` failed: {}", printed.trim())));
        }
        let found = version.after.iter().enumerate().map(|(index, after)| {
            let word =
                word_after(&printed, after).ok_or_else(|| format!("`{words}` does not print `{after}`"))?;
            // The first is the target's own version; the others name their component.
            Ok(if index == 0 { word.to_owned() } else { format!("{} {word}", after.trim()) })
        });
        Ok(found.collect::<Result<Vec<String>, String>>().map(listed))
    }
}

/// The word that follows a text, without the punctuation that ends it.
fn word_after<'a>(printed: &'a str, after: &str) -> Option<&'a str> {
    let (_, rest) = printed.split_once(after)?;
    Some(rest.split_whitespace().next()?.trim_end_matches([')', ',', ';']))
}

/// The file of a program, by its path or by its name on the PATH.
fn program(name: &str) -> Result<PathBuf, String> {
    if name.contains('/') {
        let file = PathBuf::from(name);
        return if file.exists() { Ok(file) } else { Err(format!("{name} does not exist")) };
    }
    on_path(name, std::env::var_os("PATH").as_deref()).ok_or_else(|| format!("{name} is not on the PATH"))
}
