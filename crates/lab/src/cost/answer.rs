//! The cost report of a service: observations, findings and text.

use super::cleartext::Cleartext;
use super::findings::Findings;
use super::rounds::Phase;
use serde::Serialize;
use weir_probe::Report;

/// The cost report: observations, findings and text.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// Schema version: 1.
    pub schema: u32,
    /// Version of the program.
    pub weir: &'static str,
    /// The service over TLS.
    pub url: String,
    /// The cleartext service it was compared with.
    pub cleartext: Cleartext,
    /// The findings.
    pub findings: Findings,
    /// The summary for people.
    pub lines: [String; 5],
    /// Caveats to the summary.
    pub notes: Vec<String>,
    /// The probe's report.
    pub probe: Report,
    /// Every load, by its case and round.
    pub phases: Vec<Phase>,
}

impl Cost {
    /// The cases with invalid loads, each with its reason.
    pub fn invalid(&self) -> Vec<String> {
        self.phases.iter().filter_map(Phase::invalid).collect()
    }
}
