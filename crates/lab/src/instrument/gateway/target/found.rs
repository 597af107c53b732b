//! The targets of an experiment, as found on this machine.

use super::Target;
use std::collections::BTreeMap;

/// The targets of an experiment, as found on this machine.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// Those that can run.
    pub present: BTreeMap<String, Target>,
    /// Those that cannot.
    pub absent: BTreeMap<String, Absent>,
}

/// A target that cannot run here.
#[derive(Clone, Debug)]
pub struct Absent {
    /// As it is described.
    pub target: Target,
    /// Why it cannot run.
    pub why: String,
}

impl Targets {
    /// Each of them, whether or not it can run here.
    pub fn all(&self) -> impl Iterator<Item = &Target> {
        self.present.values().chain(self.absent.values().map(|absent| &absent.target))
    }
}
