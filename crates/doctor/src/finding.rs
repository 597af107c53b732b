//! The result of a check: a value, a level, and advice.

use crate::system::System;
use serde::{Deserialize, Serialize};

/// A possible disturbance, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its stable name.
    pub id: String,
    /// Its value; `unknown` if unavailable.
    pub value: String,
    /// How bad it is.
    pub level: Level,
    /// What to do or know; empty if good.
    pub advice: String,
    /// The command that fixes it, if any. Never run by the doctor.
    pub fix: Option<String>,
    /// Why it matters.
    pub why: String,
}

/// The level of a finding; worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Results cannot be trusted.
    Bad,
    /// Keep it in mind when reading results.
    Note,
    /// As it should be.
    Good,
}

/// A check of settings in files.
pub(crate) type Check = fn(&System) -> Finding;

/// The subject of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    id: &'static str,
    why: &'static str,
}

/// The value of something unavailable.
pub(crate) const UNKNOWN: &str = "unknown";

impl Subject {
    pub(crate) const fn new(id: &'static str, why: &'static str) -> Self {
        Self { id, why }
    }

    pub(crate) fn good(self, value: impl Into<String>) -> Finding {
        self.found(Level::Good, value, "")
    }

    pub(crate) fn note(self, value: impl Into<String>, advice: &str) -> Finding {
        self.found(Level::Note, value, advice)
    }

    pub(crate) fn bad(self, value: impl Into<String>, advice: &str) -> Finding {
        self.found(Level::Bad, value, advice)
    }

    pub(crate) fn unknown(self) -> Finding {
        self.note(UNKNOWN, "Not available on this system.")
    }

    /// Good findings have no advice.
    pub(crate) fn found(self, level: Level, value: impl Into<String>, advice: &str) -> Finding {
        let (id, why) = (self.id.to_owned(), self.why.to_owned());
        // A cgroup name may contain terminal escape codes.
        let value = value.into().chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        let advice = if level == Level::Good { String::new() } else { advice.to_owned() };
        Finding { id, value, level, advice, fix: None, why }
    }
}

impl Finding {
    /// Adds the command that fixes it, unless it is good.
    pub(crate) fn fix(self, command: &str) -> Self {
        Self { fix: (self.level != Level::Good).then(|| command.to_owned()), ..self }
    }
}
