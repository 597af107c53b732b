//! The advice: findings, and the data that supports them.

use crate::fact::Facts;
use crate::finding::Finding;
use crate::product::Product;
use crate::split::Split;
use serde::Serialize;
use weir_probe::Report;
use weir_profile::Profile;

/// Findings, and the data that supports them.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// Schema version: 1.
    pub schema: u32,
    /// Version of the program.
    pub weir: &'static str,
    /// The subject of the advice.
    pub subject: String,
    /// The product in whose terms changes are named.
    pub product: Product,
    /// The findings, largest gain first; empty if no change is worthwhile.
    pub findings: Vec<Finding>,
    /// The missing measurements, each with the next step.
    pub notes: Vec<String>,
    /// The load under which the profile was taken.
    pub profiled: Option<Profiled>,
    /// The division of the profile's CPU time.
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
    /// The service's existing load.
    OwnLoad,
    /// This program's load, with a new connection and a full handshake for each request.
    NewConnections,
    /// This program's load, on keep-alive connections in cleartext.
    KeptConnections,
}

impl Profiled {
    /// The beginning of `.. of its CPU time is ..`.
    pub(crate) fn load(self) -> &'static str {
        match self {
            Self::OwnLoad => "under its own load",
            Self::KeptConnections => "under load on kept connections",
            Self::NewConnections => "with a full handshake per request",
        }
    }

    /// The end of `of the CPU time ..`.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::OwnLoad => "under its own load",
            Self::KeptConnections => "under load on kept connections, as this command sampled it",
            Self::NewConnections => "with a full handshake per request, as this command sampled it",
        }
    }
}
