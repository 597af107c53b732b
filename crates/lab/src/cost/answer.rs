//! Everything that was seen of a service, and what follows from it.

use super::cleartext::Cleartext;
use super::findings::Findings;
use super::rounds::Phase;
use serde::Serialize;
use weir_probe::Report;

/// Everything that was seen, and what follows from it.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// The layout of this: 1.
    pub schema: u32,
    /// Version of the program.
    pub weir: &'static str,
    /// The service over TLS.
    pub url: String,
    /// What it was compared with.
    pub cleartext: Cleartext,
    /// What was found.
    pub findings: Findings,
    /// The answer for people.
    pub lines: [String; 5],
    /// What is to be known beside the lines.
    pub notes: Vec<String>,
    /// What the probe saw.
    pub probe: Report,
    /// Every load, by its case and round.
    pub phases: Vec<Phase>,
}

impl Cost {
    /// The cases that were measured and are no evidence, each with its reason.
    pub fn invalid(&self) -> Vec<String> {
        self.phases.iter().filter_map(Phase::invalid).collect()
    }
}
