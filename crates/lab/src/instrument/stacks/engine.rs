//! `engine.toml`: what an engine is, how it is built and run, and what it can do. `docs/ENGINES.md` has the words.

use super::key::{self, KEYS, Key};
use crate::cache;
use crate::cell::Levels;
use crate::error::{ConfigError, LabError};
use crate::experiment::Level;
use crate::found::Folders;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// A TLS stack in one version, as its folder describes it.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    /// The folder's name.
    pub(crate) name: String,
    /// Where its sources are.
    pub(crate) directory: PathBuf,
    pub(crate) description: Description,
}

/// The file's keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    /// The family, by which charts group.
    pub(crate) stack: String,
    /// Of the TLS library, as the runner must report it.
    pub(crate) version: String,
    /// What does the arithmetic, with its version.
    pub(crate) crypto: String,
    /// What the runner is written in.
    pub(crate) language: String,
    /// What is to be known of it.
    #[serde(default)]
    pub(crate) about: String,
    /// Programs that the build calls.
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    pub(crate) build: Vec<String>,
    pub(crate) run: Vec<String>,
    /// The first is the default.
    #[serde(default)]
    pub(crate) allocators: Vec<Level>,
    /// The first is the default.
    #[serde(default)]
    pub(crate) compilers: Vec<Level>,
    pub(crate) abilities: Abilities,
}

/// What an engine can do, by the keys of scenarios.
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
    /// The resumptions whose shared state can be timed.
    pub(crate) locks: Vec<Level>,
    /// Those of them whose lock many threads may hold at once, as readers.
    pub(crate) shared_locks: Vec<Level>,
    /// How many tickets it can send after a resumed TLS 1.3 handshake; left out: as after a full one.
    pub(crate) resumed_tickets: Vec<Level>,
    pub(crate) masks: Vec<Level>,
}

/// The name of the description in an engine's folder.
const FILE: &str = "engine.toml";

impl Engine {
    /// Reads the engine of such a name.
    /// Errors: an unknown name, with the names that there are; a description that cannot be read, or with unknown keys
    /// or values.
    pub(crate) fn read(folders: &Folders, name: &str) -> Result<Self, LabError> {
        let directory = folders.folder(name)?.join(name);
        let file = directory.join(FILE);
        let text = fs::read_to_string(&file).map_err(LabError::file(&file, "cannot be read"))?;
        let description = Description::read(&file, &text)?;
        let absolute = std::path::absolute(&directory).unwrap_or(directory);
        Ok(Self { name: name.to_owned(), directory: absolute, description })
    }

    /// How it is built for a scenario. What its description has first is how it is built without a word.
    pub(crate) fn variant(&self, scenario: &Levels) -> Variant {
        let Description { compilers, allocators, .. } = &self.description;
        let chosen = |key: &str, levels: &[Level]| {
            let level = scenario.get(key).filter(|level| levels.first() != Some(*level));
            level.cloned().unwrap_or_else(|| Level::new(Variant::PLAIN))
        };
        Variant { compiler: chosen("compiler", compilers), allocator: chosen("allocator", allocators) }
    }

    /// Where a variant of it is built: below `$WEIR_ENGINES`, else the user's cache, so that checkouts share it.
    pub(crate) fn target(&self, variant: &Variant) -> PathBuf {
        cache::directory("engines", "WEIR_ENGINES", &self.name)
            .join(format!("{}-{}", variant.compiler, variant.allocator))
    }

    /// Words of its description with its own folders in place of `{engine}` and `{target}`.
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

    /// What it lists of a key, where not every engine can do all.
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

    /// Whether it can do such a level; what is arranged by default is always there.
    fn is_able(&self, key: &Key, level: &Level) -> bool {
        !key.is_told && key.is_default(level)
            || self.levels(key.name).is_none_or(|levels| levels.contains(level))
    }

    /// What it lacks for a scenario.
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

    /// Whether many threads may hold the lock at once that is timed: then no bound follows from the time inside.
    pub(crate) fn is_shared(&self, scenario: &Levels) -> bool {
        let is_timed = scenario.get("locks").is_some();
        is_timed && scenario.get("resumption").is_some_and(|how| self.abilities.shared_locks.contains(how))
    }
}

/// In which way an engine is built.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Variant {
    pub(crate) compiler: Level,
    pub(crate) allocator: Level,
}

impl Variant {
    /// What the engine's description says first.
    pub(crate) const PLAIN: &'static str = "default";

    /// Of which all is what the description says first.
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
    fn what_two_keys_say_together_is_an_ability_too() {
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
            error.contains("engine.toml: shared_locks: `all`: expected none, id, ticket, psk"),
            "{error}"
        );
    }
}
