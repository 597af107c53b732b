//! `target.toml`: its keys, and the rules checked before anything is rendered.

use crate::base::error::{ConfigError, message_of};
use crate::instrument::gateway::levels::listed;
use crate::instrument::gateway::{Mode, Side};
use crate::running::process::Stop;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

pub(super) const FILE: &str = "target.toml";

/// The parsed file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) modes: Vec<Mode>,
    /// The numbers of session tickets that it can send; any number if missing.
    pub(crate) tickets: Option<Vec<u8>>,
    #[serde(default, deserialize_with = "one_or_more")]
    pub(crate) requires: Vec<String>,
    /// The package of the program, in distributions with a known package manager.
    pub(crate) package: Option<String>,
    pub(crate) absent: Option<String>,
    pub(crate) version: Option<VersionCommand>,
    /// The target whose installation it runs; its own if missing.
    pub(crate) installed: Option<String>,
    #[serde(default, deserialize_with = "one_or_more")]
    pub(crate) templates: Vec<String>,
    #[serde(default)]
    pub(crate) files: Vec<String>,
    #[serde(default)]
    pub(crate) start: Vec<String>,
    #[serde(default)]
    pub(crate) profiled: Vec<String>,
    #[serde(default)]
    pub(crate) client_side: BySide,
    #[serde(default)]
    pub(crate) upstream_side: BySide,
    pub(crate) ready: Option<Ready>,
    #[serde(default)]
    pub(crate) stop: Stop,
    pub(crate) install: Option<Install>,
    pub(crate) check: Option<Check>,
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, Setting>,
    pub(crate) gc: Option<Gc>,
}

/// How to find a target's version.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionCommand {
    pub(crate) command: Vec<String>,
    #[serde(deserialize_with = "one_or_more")]
    pub(crate) after: Vec<String>,
}

/// Additional arguments of the start command for a side of the mode.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BySide {
    h1c: Vec<String>,
    h1: Vec<String>,
    h2c: Vec<String>,
    h2: Vec<String>,
}

impl BySide {
    pub(crate) fn of(&self, side: Side) -> &[String] {
        match side {
            Side::H1c => &self.h1c,
            Side::H1 => &self.h1,
            Side::H2c => &self.h2c,
            Side::H2 => &self.h2,
        }
    }
}

/// When a target is ready for load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ready {
    pub(crate) connect: String,
    pub(crate) timeout_ms: u64,
    pub(crate) overhead_ms: Option<u32>,
}

/// The script that builds or fetches the files of `requires`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Install {
    pub(crate) script: PathBuf,
    pub(crate) takes: String,
}

/// The target's own check of its configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    pub(crate) command: Vec<String>,
}

/// The log of a JVM's collector.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gc {
    pub(crate) log: String,
}

/// The key of a shared description, whose keys a target's own replace.
const BASE: &str = "base";

/// A description on top of the shared one that it names, relative to its own directory.
fn with_base(path: &Path, text: &str, base: &Value, own: &Table) -> Result<Description, ConfigError> {
    let wrong = |message: String| ConfigError::key(path.display(), text, BASE, message);
    let name = base.as_str().ok_or_else(|| wrong(format!("`{base}`: expected the path of a file")))?;
    let shared = path.with_file_name(name);
    let read =
        std::fs::read_to_string(&shared).map_err(|error| wrong(format!("{}: {error}", shared.display())))?;
    let mut all: Table =
        toml::from_str(&read).map_err(|error| ConfigError::toml(shared.display(), &read, &error))?;
    all.extend(own.iter().filter(|(key, _)| *key != BASE).map(|(key, value)| (key.clone(), value.clone())));
    all.try_into().map_err(|error| ConfigError::new(path.display(), message_of(&error)))
}

/// A string, or a list of strings. Not an untagged enum: that would lose the line of an error.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(vec![text]),
        other => other.try_into().map_err(|error: toml::de::Error| {
            D::Error::custom(error.message().replace("a sequence", "a string or a list of strings"))
        }),
    }
}

impl Description {
    /// Parses the description of the target `name` in `directory`.
    /// Errors: an unreadable or invalid file, with line, key and what was expected. `taken` says whether a placeholder
    /// already has a value of its own, and so cannot be a setting's name.
    pub(super) fn read(
        directory: &Path,
        name: &str,
        taken: impl Fn(&str) -> bool,
    ) -> Result<Self, ConfigError> {
        let path = directory.join(name).join(FILE);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| ConfigError::new(path.display(), format!("target `{name}`: {error}")))?;
        let own: Table =
            toml::from_str(&text).map_err(|error| ConfigError::toml(path.display(), &text, &error))?;
        let description: Self = match own.get(BASE) {
            None => {
                toml::from_str(&text).map_err(|error| ConfigError::toml(path.display(), &text, &error))?
            }
            Some(base) => with_base(&path, &text, base, &own)?,
        };
        match description.fault(taken) {
            None => Ok(description),
            Some((key, message)) => Err(ConfigError::key(path.display(), &text, &key, message)),
        }
    }

    /// The first fault, and its key.
    fn fault(&self, taken: impl Fn(&str) -> bool) -> Option<(String, String)> {
        let fault = |key: &str, message: String| Some((key.to_owned(), message));
        let empty = [
            ("modes", Some(self.modes.is_empty()), "at least one"),
            ("tickets", self.tickets.as_ref().map(Vec::is_empty), "at least one number"),
            ("version.command", self.version.as_ref().map(|version| version.command.is_empty()), "a program"),
            (
                "version.after",
                self.version.as_ref().map(|version| version.after.is_empty()),
                "at least one string",
            ),
            ("check.command", self.check.as_ref().map(|check| check.command.is_empty()), "a program"),
        ];
        if let Some((key, _, needed)) = empty.into_iter().find(|(_, is_empty, _)| *is_empty == Some(true)) {
            return fault(key, format!("empty: expected {needed}"));
        }
        let process = !self.start.is_empty();
        if process != self.ready.is_some() {
            return fault("start", "`start` and `[ready]` require each other".into());
        }
        match self.modes.iter().find(|mode| mode.upstream().is_some() != process) {
            Some(mode) if process => {
                return fault("modes", format!("`{mode}` has no gateway, but `start` is set"));
            }
            Some(mode) => return fault("modes", format!("`{mode}` needs a gateway, but `start` is missing")),
            None => {}
        }
        self.settings.iter().find_map(|(name, setting)| {
            let key = format!("settings.{name}");
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(plain) {
                return Some((key, "invalid name: expected letters, digits and `_`".into()));
            }
            if taken(name) {
                let message = format!("`{{{{{name}}}}}` is a value of the run; choose another name");
                return Some((key, message));
            }
            setting.fault().map(|(part, message)| (format!("{key}.{part}"), message))
        })
    }
}

/// A setting of a target: a placeholder in its templates with a default and, optionally, a list of valid values.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setting {
    /// Its default: an integer or a string, in which `{{name}}` stands for a value of the run.
    pub(crate) default: Value,
    /// The valid values; empty: any of the default's type.
    #[serde(default)]
    pub(crate) values: Vec<Value>,
    pub(crate) about: String,
    /// The value that follows a rule of `weir advise`, by the rule.
    #[serde(default)]
    pub(crate) fixes: BTreeMap<String, Value>,
}

impl Setting {
    /// Whether an experiment may set this value. The error names it and what was expected.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        let fits = match self.values.as_slice() {
            // A number is fine if the default is a text about the run, such as "{{connections}}".
            [] => value.same_type(&self.default) || (value.is_integer() && self.default.is_str()),
            allowed => allowed.contains(value),
        };
        if fits { Ok(()) } else { Err(format!("`{value}`: expected {}", self.expected())) }
    }

    /// The valid values in words: `one of 50, 100` or `any integer`.
    pub(crate) fn expected(&self) -> String {
        match self.values.as_slice() {
            [] if self.default.is_str() => "any string or integer".into(),
            [] => format!("any {}", self.default.type_str()),
            values => format!("one of {}", listed(values)),
        }
    }

    /// The fault in the setting itself, and its key.
    fn fault(&self) -> Option<(&'static str, String)> {
        if !matches!(self.default, Value::Integer(_) | Value::String(_)) {
            let found = self.default.type_str();
            return Some((
                "default",
                format!("`{}` is a {found}: expected an integer or a string", self.default),
            ));
        }
        if let Some(other) = self.values.iter().find(|value| !value.same_type(&self.default)) {
            return Some((
                "values",
                format!("`{other}` is not of the default's type, {}", self.default.type_str()),
            ));
        }
        let invalid = |(key, value): (&'static str, &Value)| Some((key, self.check(value).err()?));
        let all = std::iter::once(("default", &self.default));
        all.chain(self.fixes.values().map(|value| ("fixes", value))).find_map(invalid)
    }
}

/// A setting's value as it stands in a template: a string without its quotes.
pub(in crate::instrument::gateway) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(text: &str) -> Setting {
        toml::from_str(&format!("about = 'A'\n{text}")).expect("is a setting")
    }

    #[test]
    fn a_list_of_values_is_closed() {
        let pool = setting("default = 100\nvalues = [50, 100]");
        assert_eq!(pool.check(&50.into()), Ok(()));
        assert_eq!(pool.check(&51.into()), Err("`51`: expected one of 50, 100".into()));
        assert_eq!(pool.check(&"50".into()), Err("`\"50\"`: expected one of 50, 100".into()));
    }

    #[test]
    fn without_a_list_the_type_counts() {
        let heap = setting("default = '1g'");
        assert_eq!(heap.check(&"512m".into()), Ok(()));
        assert_eq!(heap.check(&512.into()), Ok(()));
        assert_eq!(heap.check(&true.into()), Err("`true`: expected any string or integer".into()));
        assert_eq!(setting("default = 1").check(&1.5.into()), Err("`1.5`: expected any integer".into()));
    }

    #[test]
    fn a_default_that_is_not_allowed_is_a_fault() {
        let fault = |text| setting(text).fault();
        assert_eq!(fault("default = 1"), None);
        assert_eq!(fault("default = 'a'\nvalues = ['a', 'b']"), None);
        assert_eq!(
            fault("default = 3\nvalues = [1, 2]"),
            Some(("default", "`3`: expected one of 1, 2".into()))
        );
        assert_eq!(fault("default = true").map(|(key, _)| key), Some("default"));
        assert_eq!(fault("default = 1\nvalues = [1, 'x']").map(|(key, _)| key), Some("values"));
    }
}
