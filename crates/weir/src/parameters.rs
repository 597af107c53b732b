//! TLS flags: what may be negotiated, and which CAs are trusted.

use clap::Args;
use std::path::PathBuf;
use weir_tls::{Group, Roots, Suite, Version};

/// TLS parameters of the gateway (both sides) and the test server.
#[derive(Args, Debug)]
pub(crate) struct Parameters {
    /// TLS version on both sides: 1.2 or 1.3; may be repeated [default: both]
    #[arg(long = "tls", value_name = "VERSION")]
    versions: Vec<Version>,
    /// Cipher suite on both sides; may be repeated, most preferred first [default: all]
    #[arg(long = "suite", value_name = "SUITE")]
    suites: Vec<Suite>,
    /// Key exchange group on both sides; may be repeated, most preferred first
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<Group>,
}

impl Parameters {
    /// The flags given, and every compatible value for the others: a suite belongs to one version.
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

/// Which CAs a client trusts: those of a file, any certificate, or the system's.
pub(crate) fn roots(file: Option<PathBuf>, is_insecure: bool) -> Roots {
    match file {
        Some(file) => Roots::File(file),
        None if is_insecure => Roots::DangerouslyNone,
        None => Roots::Native,
    }
}
