//! The machine of a result.

use crate::doctor::{Finding, Hardware};
use crate::planning::placement::Placement;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The machine, the programs and their placement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The hardware.
    #[serde(flatten)]
    pub hardware: Hardware,
    /// Allowed cores.
    pub cores: Vec<usize>,
    /// The network.
    pub network: String,
    /// Versions of the targets that ran, by name.
    pub versions: BTreeMap<String, String>,
    /// Titles of the targets, by name.
    pub titles: BTreeMap<String, String>,
    /// The directory of each target or engine, by name.
    pub folders: BTreeMap<String, String>,
    /// A description of each target, by name.
    pub about: BTreeMap<String, String>,
    /// The cores of each part.
    pub placement: Option<Placement>,
    /// The start of the experiment, in seconds since 1970.
    pub started_unix: u64,
    /// SHA-256 of this program ([`Self::THIS_PROGRAM`]), of each target's directory and installed files, by its name,
    /// and of each file given to the load engine, by `load.FLAG=PATH`.
    pub sources: BTreeMap<String, String>,
    /// Disturbances that `weir doctor` found before the first run.
    pub doctor: Vec<Finding>,
}

impl Machine {
    /// This program's key in the sources.
    pub const THIS_PROGRAM: &str = "this program";

    /// Reads this machine in no time; [`crate::doctor::examine`] takes longer and is left to the caller.
    pub fn read(allowed: &[usize]) -> Self {
        Self {
            hardware: Hardware::read(),
            cores: allowed.to_vec(),
            started_unix: super::now(),
            ..Self::default()
        }
    }
}
