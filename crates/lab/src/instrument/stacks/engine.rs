//! `engine.toml`: the description of an engine, its build, its runner and its abilities; see `docs/ENGINES.md`.

use super::key::{self, KEYS, Key};
use crate::base::cache;
use crate::base::error::{ConfigError, LabError};
use crate::experiment::Level;
use crate::found::Folders;
use crate::planning::cell::Levels;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// A TLS stack in one version, as described in its directory.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    /// The name of its directory.
    pub(crate) name: String,
    /// The directory of its sources.
    pub(crate) directory: PathBuf,
    pub(crate) description: Description,
}

/// The file's keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    /// The family, by which charts group.
    pub(crate) stack: String,
    /// The version of the TLS library, as the runner must report it.
    pub(crate) version: String,
    /// The crypto backend with its version.
    pub(crate) crypto: String,
    /// The language of the runner.
    pub(crate) language: String,
    /// Notes on the engine.
    #[serde(default)]
    pub(crate) about: String,
    /// Programs that the build needs.
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    pub(crate) build: Vec<String>,
    pub(crate) run: Vec<String>,
    /// Further files and directories of its sources, relative to its own directory.
    #[serde(default)]
    pub(crate) sources: Vec<PathBuf>,
    /// Arguments after the program in a run that is profiled.
    #[serde(default)]
    pub(crate) profiled: Vec<String>,
    /// The first is the default.
    #[serde(default)]
    pub(crate) allocators: Vec<Level>,
    /// The first is the default.
    #[serde(default)]
    pub(crate) compilers: Vec<Level>,
    pub(crate) abilities: Abilities,
}

/// The abilities of an engine, by the keys of scenarios.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Abilities {
    #[serde(rename = "do")]
    pub(crate) tasks: Vec<Level>,
    pub(crate) versions: Vec<Level>,
    pub(crate) resumptions: Vec<Level>,
    pub(crate) certificates: Vec<Level>,
    pub(crate) groups: Vec<Level>,
    pub(crate) suites: Vec<Level>,
    pub(crate) tickets: Vec<Level>,
    pub(crate) operations: Vec<Level>,
    /// The resumptions whose locks can be timed.
    pub(crate) locks: Vec<Level>,
    /// Those with a lock that many threads can hold at once, as readers.
    pub(crate) shared_locks: Vec<Level>,
    /// The numbers of tickets it can send after a resumed TLS 1.3 handshake; by default as after a full one.
    pub(crate) resumed_tickets: Vec<Level>,
    pub(crate) masks: Vec<Level>,
}

/// The name of the description in an engine's directory.
const FILE: &str = "engine.toml";

impl Engine {
    /// Reads the engine of this name.
    /// Errors: an unknown name, with the known ones; an unreadable description; unknown keys or values.
    pub(crate) fn read(folders: &Folders, name: &str) -> Result<Self, LabError> {
        let directory = folders.folder(name)?.join(name);
        let file = directory.join(FILE);
        let text = fs::read_to_string(&file).map_err(LabError::file(&file, "cannot read"))?;
        let description = Description::read(&file, &text)?;
        let absolute = std::path::absolute(&directory).unwrap_or(directory);
        Ok(Self { name: name.to_owned(), directory: absolute, description })
    }

    /// The variant to build for a scenario; the first compiler and allocator of its description are the defaults.
    pub(crate) fn variant(&self, scenario: &Levels) -> Variant {
        let Description { compilers, allocators, .. } = &self.description;
        let chosen = |key: &str, levels: &[Level]| {
            let level = scenario.get(key).filter(|level| levels.first() != Some(*level));
            level.cloned().unwrap_or_else(|| Level::new(Variant::PLAIN))
        };
        Variant { compiler: chosen("compiler", compilers), allocator: chosen("allocator", allocators) }
    }

    /// The build directory of a variant: below `$WEIR_ENGINES`, else in the user's cache, so that checkouts share it.
    pub(crate) fn target(&self, variant: &Variant) -> PathBuf {
        cache::directory("engines", "WEIR_ENGINES", &self.name)
            .join(format!("{}-{}", variant.compiler, variant.allocator))
    }

    /// Words of its description with `{engine}` and `{target}` replaced by its directories.
    pub(crate) fn words(&self, words: &[String], target: &Path) -> Vec<String> {
        let place = |word: &String| {
            let engine = self.directory.display().to_string();
            word.replace("{engine}", &engine).replace("{target}", &target.display().to_string())
        };
        words.iter().map(place).collect()
    }
}

impl Description {
    fn read(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let read: Self =
            toml::from_str(text).map_err(|error| ConfigError::toml(file.display(), text, &error))?;
        for (key, words) in [("build", &read.build), ("run", &read.run)] {
            let why = "empty: expected a program and its arguments";
            words.first().ok_or_else(|| ConfigError::key(file.display(), text, key, why))?;
        }
        let Abilities { tasks, locks, shared_locks, resumed_tickets, .. } = &read.abilities;
        if tasks.is_empty() {
            let error = ConfigError::key(file.display(), text, "abilities", "");
            return Err(ConfigError { message: "missing field `do`".into(), ..error });
        }
        let able = KEYS.iter().filter_map(|key| Some((key.name, key.name, read.levels(key.name)?)));
        let together = [
            ("locks", "resumption", &locks[..]),
            ("shared_locks", "resumption", shared_locks),
            ("resumed_tickets", "tickets", resumed_tickets),
        ];
        for (name, key, levels) in able.chain(together) {
            let wrong = |why| ConfigError::new(file.display(), format!("{name}: {why}"));
            let check = |level| key::find(key).map_or(Ok(()), |key| key.check(level));
            levels.iter().try_for_each(check).map_err(wrong)?;
        }
        Ok(read)
    }

    /// The levels of a key that it lists; `None` for keys that every engine supports.
    fn levels(&self, key: &str) -> Option<&[Level]> {
        let abilities = &self.abilities;
        Some(match key {
            "do" => &abilities.tasks,
            "operation" => &abilities.operations,
            "version" => &abilities.versions,
            "resumption" => &abilities.resumptions,
            "certificate" => &abilities.certificates,
            "group" => &abilities.groups,
            "suite" => &abilities.suites,
            "tickets" => &abilities.tickets,
            "mask" => &abilities.masks,
            "compiler" => &self.compilers,
            "allocator" => &self.allocators,
            _ => return None,
        })
    }

    /// Whether it supports a level; the lab's own defaults are always supported.
    fn is_able(&self, key: &Key, level: &Level) -> bool {
        !key.is_for_runner && key.is_default(level)
            || self.levels(key.name).is_none_or(|levels| levels.contains(level))
    }

    /// The first ability that it lacks for a scenario.
    pub(crate) fn lacks(&self, scenario: &Levels) -> Option<String> {
        let unable = |(key, level): (&Key, &Level)| {
            (!self.is_able(key, level)).then(|| format!("{}={level} is not among its abilities", key.name))
        };
        let together = || {
            let Abilities { locks, resumed_tickets, .. } = &self.abilities;
            let resumption = scenario.get("resumption")?;
            let tickets = scenario.get("tickets")?;
            if scenario.get("locks").is_some() && !locks.contains(resumption) {
                return Some(format!("locks with resumption={resumption} is not among its abilities"));
            }
            let is_counted = resumption.as_str() == "psk" && !resumed_tickets.is_empty();
            (is_counted && !resumed_tickets.contains(tickets))
                .then(|| format!("tickets={tickets} after a resumption is not among its abilities"))
        };
        scenario.in_order().find_map(unable).or_else(together)
    }

    /// Whether many threads can hold the timed lock at once, so that its time sets no bound.
    pub(crate) fn is_shared(&self, scenario: &Levels) -> bool {
        let is_timed = scenario.get("locks").is_some();
        is_timed && scenario.get("resumption").is_some_and(|how| self.abilities.shared_locks.contains(how))
    }
}

/// The way in which an engine is built.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Variant {
    pub(crate) compiler: Level,
    pub(crate) allocator: Level,
}

impl Variant {
    /// The engine's default.
    pub(crate) const PLAIN: &'static str = "default";

    /// The variant with all defaults.
    pub(crate) fn plain() -> Self {
        Self { compiler: Level::new(Self::PLAIN), allocator: Level::new(Self::PLAIN) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "stack = 's'\nversion = '1'\ncrypto = 's'\nlanguage = 'c'\nbuild = ['true']\nrun = ['true']\n\
        [abilities]\ndo = ['handshake']\nversions = ['1.2', '1.3']\nresumptions = ['none', 'id', 'ticket', 'psk']\n\
        tickets = [0, 1, 2]\nlocks = ['id', 'psk']\nshared_locks = ['psk']\nresumed_tickets = [1]\n";

    fn scenario(levels: &[(&str, &str)]) -> Levels {
        levels.iter().map(|(key, level)| ((*key).to_owned(), Level::new(level))).collect()
    }

    #[test]
    fn abilities_may_depend_on_two_keys() {
        let engine = Description::read(Path::new("engine.toml"), TEXT).expect("is read");
        for (resumption, tickets, locks, lacks) in [
            ("none", "2", false, None),
            ("psk", "1", false, None),
            ("psk", "2", false, Some("tickets=2 after a resumption is not among its abilities")),
            ("psk", "1", true, None),
            ("id", "0", true, None),
            ("ticket", "1", true, Some("locks with resumption=ticket is not among its abilities")),
        ] {
            let mut levels = vec![("do", "handshake"), ("resumption", resumption), ("tickets", tickets)];
            levels.extend(locks.then_some(("locks", "time")));
            let asked = scenario(&levels);
            assert_eq!(engine.lacks(&asked).as_deref(), lacks, "{asked:?}");
            assert_eq!(engine.is_shared(&asked), locks && resumption == "psk", "{asked:?}");
        }
        let wrong = TEXT.replace("shared_locks = ['psk']", "shared_locks = ['all']");
        let error = Description::read(Path::new("engine.toml"), &wrong).expect_err("is refused").to_string();
        assert!(
            error.contains(
                "engine.toml: shared_locks: invalid value `all`: expected one of none, id, ticket, psk"
            ),
            "{error}"
        );
    }
}
