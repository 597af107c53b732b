//! What the results were measured on.

use crate::doctor::{Finding, Hardware};
use crate::placement::Placement;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine, the programs and where they were placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// What it is made of.
    #[serde(flatten)]
    pub hardware: Hardware,
    /// Cores that the lab may use.
    pub cores: Vec<usize>,
    /// What the network was.
    pub network: String,
    /// Versions of the targets that ran, by name.
    pub versions: BTreeMap<String, String>,
    /// Titles of the targets, by name.
    pub titles: BTreeMap<String, String>,
    /// The folder that each target or engine was read from, by name; empty in older results.
    #[serde(default)]
    pub folders: BTreeMap<String, String>,
    /// What each target is, by name.
    pub about: BTreeMap<String, String>,
    /// Where each part ran.
    pub placement: Option<Placement>,
    /// The seconds since 1970 at which the experiment began.
    pub started_unix: u64,
    /// SHA-256 of this program ([`Self::THIS_PROGRAM`]), of each target's folder and what it has installed, by its name,
    /// and of each file that the load engine is given, by `load.FLAG=PATH`. Empty in older results.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    /// What disturbed, by `weir doctor`, before the first run; empty in older results.
    #[serde(default)]
    pub doctor: Vec<Finding>,
}

impl Machine {
    /// What this program is called among the sources.
    pub const THIS_PROGRAM: &str = "this program";

    /// Reads this machine, which takes no time: [`crate::doctor::examine`] does, and is left to the caller.
    pub fn read(allowed: &[usize]) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            hardware: Hardware::read(),
            cores: allowed.to_vec(),
            started_unix: now.map_or(0, |since| since.as_secs()),
            ..Self::default()
        }
    }
}
