//! The answer: findings, and all that they rest on.

use crate::fact::Facts;
use crate::finding::Finding;
use crate::product::Product;
use crate::split::Split;
use serde::Serialize;
use weir_probe::Report;
use weir_profile::Profile;

/// Findings, and all that they rest on.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// Schema version: 1.
    pub schema: u32,
    /// Version of the program.
    pub weir: &'static str,
    /// What was looked at.
    pub subject: String,
    /// In whose words changes are named.
    pub product: Product,
    /// Those with the largest gain first; empty if nothing is worth changing.
    pub findings: Vec<Finding>,
    /// What was not measured, and the next step.
    pub notes: Vec<String>,
    /// The load under which the profile was taken.
    pub profiled: Option<Profiled>,
    /// How the CPU time of the profile divides.
    pub split: Option<Split>,
    /// All facts.
    pub facts: Facts,
    /// The profile.
    pub profile: Option<Profile>,
    /// The probe's report.
    pub probe: Option<Report>,
}

/// The load under which a profile was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profiled {
    /// The load that the service has anyway.
    OwnLoad,
    /// This program's, with a new connection and a full handshake for each request.
    NewConnections,
    /// This program's, on kept connections in cleartext.
    KeptConnections,
}

impl Profiled {
    /// Before `.. of its CPU time is ..`.
    pub(crate) fn load(self) -> &'static str {
        match self {
            Self::OwnLoad => "under its own load",
            Self::KeptConnections => "under load on kept connections",
            Self::NewConnections => "with a full handshake per request",
        }
    }

    /// `of the CPU time ..`.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::OwnLoad => "under its own load",
            Self::KeptConnections => "under load on kept connections, as this command sampled it",
            Self::NewConnections => "with a full handshake per request, as this command sampled it",
        }
    }
}
