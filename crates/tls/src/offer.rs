//! Completes the versions, suites and groups that an operator has not set.

use crate::{Group, Suite, Version};

/// The parameters that one side offers or accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The versions; [`Offer::complete`] fills an empty list.
    pub versions: Vec<Version>,
    /// The suites; [`Offer::complete`] fills an empty list.
    pub suites: Vec<Suite>,
    /// The groups; [`Offer::complete`] fills an empty list.
    pub groups: Vec<Group>,
}

impl Offer {
    /// Fills each empty list with the default values that fit the other lists: each suite belongs to one version, and
    /// each group fits certain versions.
    #[must_use]
    pub fn complete(self) -> Self {
        let versions = match (self.versions.is_empty(), self.suites.is_empty()) {
            (false, _) => self.versions,
            (true, true) => Version::ALL.to_vec(),
            (true, false) => self.suites.iter().map(|suite| suite.version()).collect(),
        };
        let suites = match self.suites.is_empty() {
            true => Suite::ALL.into_iter().filter(|suite| versions.contains(&suite.version())).collect(),
            false => self.suites,
        };
        let groups = match self.groups.is_empty() {
            true => {
                let fits = |group: &Group| versions.iter().any(|version| group.fits(*version));
                Group::DEFAULT.into_iter().filter(fits).collect()
            }
            false => self.groups,
        };
        Self { versions, suites, groups }
    }
}
