//! What a check gives: how something is, whether that is well, and what to do.

use crate::system::System;
use serde::{Deserialize, Serialize};

/// One thing that may disturb, and what can be done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its name, the same in every version.
    pub id: String,
    /// How it is here; `unknown` where the system does not tell.
    pub value: String,
    /// Whether that is well.
    pub level: Level,
    /// What to do, or to know; empty where all is well.
    pub advice: String,
    /// The command that mends it, where there is one. It is never run from here.
    pub mend: Option<String>,
    /// Why it matters.
    pub why: String,
}

/// How much a finding weighs; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Results are not to be trusted like this.
    Bad,
    /// To be known when results are read.
    Note,
    /// As it should be.
    Good,
}

/// Looks at what stands in files.
pub(crate) type Check = fn(&System) -> Finding;

/// What is examined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    id: &'static str,
    why: &'static str,
}

/// How something is that the system does not tell.
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
        self.note(UNKNOWN, "The system does not tell.")
    }

    /// What is good needs no advice.
    pub(crate) fn found(self, level: Level, value: impl Into<String>, advice: &str) -> Finding {
        let (id, why) = (self.id.to_owned(), self.why.to_owned());
        // A cgroup may have any name, and a terminal would follow what is in it.
        let value = value.into().chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        let advice = if level == Level::Good { String::new() } else { advice.to_owned() };
        Finding { id, value, level, advice, mend: None, why }
    }
}

impl Finding {
    /// With the command that mends it, unless it is good.
    pub(crate) fn mend(self, command: &str) -> Self {
        Self { mend: (self.level != Level::Good).then(|| command.to_owned()), ..self }
    }
}
