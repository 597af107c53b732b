//! The flags of TLS: what may be negotiated, and who is believed.

use clap::Args;
use std::path::PathBuf;
use weir_tls::{Group, Roots, Suite, Version};

/// What a gateway on both of its sides and the test server may negotiate.
#[derive(Args, Debug)]
pub(crate) struct Parameters {
    /// TLS version, on each side: 1.2 or 1.3; can be given more than once [default: both]
    #[arg(long = "tls", value_name = "VERSION")]
    versions: Vec<Version>,
    /// TLS suite, on each side; can be given more than once, most preferred first [default: all]
    #[arg(long = "suite", value_name = "SUITE")]
    suites: Vec<Suite>,
    /// Key exchange group, on each side; can be given more than once, most preferred first
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<Group>,
}

impl Parameters {
    /// What is given, and for the rest all that fits to it: a suite belongs to one version.
    pub(crate) fn complete(&self) -> (Vec<Version>, Vec<Suite>, Vec<Group>) {
        let versions = match (self.versions.is_empty(), self.suites.is_empty()) {
            (false, _) => self.versions.clone(),
            (true, true) => Version::ALL.to_vec(),
            (true, false) => self.suites.iter().map(|suite| suite.version()).collect(),
        };
        let suites = match self.suites.is_empty() {
            true => Suite::ALL.into_iter().filter(|suite| versions.contains(&suite.version())).collect(),
            false => self.suites.clone(),
        };
        let groups = match self.groups.is_empty() {
            true => {
                let fits = |group: &Group| versions.iter().any(|version| group.fits(*version));
                Group::DEFAULT.into_iter().filter(fits).collect()
            }
            false => self.groups.clone(),
        };
        (versions, suites, groups)
    }
}

/// Whom a client believes: a file's authorities, or nobody is asked, or those of the system.
pub(crate) fn roots(file: Option<PathBuf>, is_insecure: bool) -> Roots {
    match file {
        Some(file) => Roots::File(file),
        None if is_insecure => Roots::DangerouslyNone,
        None => Roots::Native,
    }
}
