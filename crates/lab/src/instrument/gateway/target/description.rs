//! `target.toml`: what it says, and what must hold in it before anything is rendered.

use super::Stop;
use super::setting::Setting;
use crate::error::ConfigError;
use crate::instrument::gateway::{Mode, Side};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The file's name in a target's folder.
pub(super) const FILE: &str = "target.toml";

/// The file, read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    pub(super) title: String,
    pub(super) about: String,
    pub(super) modes: Vec<Mode>,
    /// How many session tickets it can send; any number where it is not given.
    pub(super) tickets: Option<Vec<u8>>,
    #[serde(default)]
    pub(super) requires: OneOrMore,
    pub(super) absent: Option<String>,
    pub(super) version: Option<VersionCommand>,
    pub(super) templates: Option<PathBuf>,
    #[serde(default)]
    pub(super) files: Vec<String>,
    #[serde(default)]
    pub(super) start: Vec<String>,
    #[serde(default)]
    pub(super) client_side: BySide,
    #[serde(default)]
    pub(super) upstream_side: BySide,
    pub(super) ready: Option<Ready>,
    pub(super) stop: Option<Stop>,
    pub(super) install: Option<Install>,
    pub(super) check: Option<Check>,
    #[serde(default)]
    pub(super) settings: BTreeMap<String, Setting>,
    pub(super) gc: Option<Gc>,
}

/// How a target tells its version.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VersionCommand {
    pub(super) command: Vec<String>,
    pub(super) after: OneOrMore,
}

/// Words that a side of the mode adds to the start command.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BySide {
    #[serde(default)]
    h1c: Vec<String>,
    #[serde(default)]
    h1: Vec<String>,
}

impl BySide {
    pub(super) fn of(&self, side: Side) -> &[String] {
        match side {
            Side::H1c => &self.h1c,
            Side::H1 => &self.h1,
        }
    }
}

/// When a target may be sent load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ready {
    pub(super) connect: String,
    pub(super) timeout_ms: u64,
    pub(super) overhead_ms: Option<u32>,
}

/// The script that builds or fetches what `requires` names.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Install {
    pub(super) script: PathBuf,
    pub(super) takes: String,
}

/// The target's own check of its configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Check {
    pub(super) command: Vec<String>,
}

/// Where a JVM writes what its collector does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Gc {
    pub(super) log: String,
}

/// A text, or a list of them. Not an untagged enum: that would lose the line of an error.
#[derive(Clone, Debug, Default)]
pub(super) struct OneOrMore(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = OneOrMore;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string or a list of strings")
            }

            fn visit_str<E>(self, text: &str) -> Result<OneOrMore, E> {
                Ok(OneOrMore(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMore, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element()? {
                    texts.push(text);
                }
                Ok(OneOrMore(texts))
            }
        }
        deserializer.deserialize_any(Texts)
    }
}

impl Description {
    /// Reads the description of the target `name` in `directory`.
    ///
    /// # Errors
    /// What cannot be read or must not be so, with file, line, key and what is allowed. `taken` says whether a
    /// placeholder has a value of its own already, and so cannot be a setting's name.
    pub(super) fn read(
        directory: &Path,
        name: &str,
        taken: impl Fn(&str) -> bool,
    ) -> Result<Self, ConfigError> {
        let path = directory.join(name).join(FILE);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| ConfigError::new(path.display(), format!("target `{name}`: {error}")))?;
        let description: Self =
            toml::from_str(&text).map_err(|error| ConfigError::toml(path.display(), &text, &error))?;
        match description.fault(taken) {
            None => Ok(description),
            Some((key, message)) => Err(ConfigError::key(path.display(), &text, &key, message)),
        }
    }

    /// What is wrong, and in which key.
    fn fault(&self, taken: impl Fn(&str) -> bool) -> Option<(String, String)> {
        let fault = |key: &str, message: String| Some((key.to_owned(), message));
        if self.modes.is_empty() {
            return fault("modes", "empty: at least one is needed".into());
        }
        if self.tickets.as_ref().is_some_and(Vec::is_empty) {
            return fault("tickets", "empty: at least one number is needed".into());
        }
        let process = !self.start.is_empty();
        if process != self.ready.is_some() {
            return fault("start", "`start` and `[ready]` come together or not at all".into());
        }
        match self.modes.iter().find(|mode| mode.upstream().is_some() != process) {
            Some(mode) if process => {
                return fault("modes", format!("`{mode}` has no gateway, but `start` is given"));
            }
            Some(mode) => return fault("modes", format!("`{mode}` needs a gateway, but `start` is missing")),
            None => {}
        }
        let empty = [
            ("version.command", self.version.as_ref().is_some_and(|version| version.command.is_empty())),
            ("check.command", self.check.as_ref().is_some_and(|check| check.command.is_empty())),
        ];
        if let Some((key, _)) = empty.into_iter().find(|(_, empty)| *empty) {
            return fault(key, "empty: a program is needed".into());
        }
        if self.version.as_ref().is_some_and(|version| version.after.0.is_empty()) {
            return fault("version.after", "empty: at least one text is needed".into());
        }
        self.settings.iter().find_map(|(name, setting)| {
            let key = format!("settings.{name}");
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(plain) {
                return Some((key, "allowed in a name are letters, digits and `_`".into()));
            }
            if taken(name) {
                let message = format!("`{{{{{name}}}}}` is a value of the run: another name is needed");
                return Some((key, message));
            }
            setting.fault().map(|(part, message)| (format!("{key}.{part}"), message))
        })
    }
}
