//! What TLS costs a service: a probe, then short loads over new, resumed and kept connections, with TLS and in
//! cleartext, in rounds whose order alternates.
//!
//! It answers for one running process of the server on a machine as it is just now, so it is an estimate: verdicts need
//! fresh processes and blocks, which experiments have. [`Cost`] holds everything that the five lines rest on.

mod case;
mod cleartext;
mod figures;
mod findings;
mod rounds;
mod spread;
#[cfg(test)]
mod tests;
mod text;

pub use case::Case;
pub use cleartext::Cleartext;
pub use figures::Figures;
pub use findings::{Findings, Negotiated, Resumption, Tenth};
pub use rounds::{Outcome, Phase};
pub use spread::Spread;

use serde::Serialize;
use std::time::Duration;
use weir_load::result::LoadResult;
use weir_load::{LoadError, Options, Server, Target};
use weir_probe::{ProbeError, Report, Sni};
use weir_tls::Roots;

/// Rounds in which every case is measured once.
pub const ROUNDS: u32 = 5;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Question {
    /// The service over TLS.
    pub url: Target,
    /// The same service in cleartext, if it is known.
    pub plain: Option<Target>,
    /// Whom to believe.
    pub roots: Roots,
    /// Processes of the service whose CPU is accounted.
    pub servers: Vec<Server>,
    /// Measured time of each case, all rounds together.
    pub window: Duration,
    /// Connections at once.
    pub connections: u32,
}

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

/// Why there is no answer at all.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// The URL of the service is in cleartext.
    #[error(
        "{url} is cleartext: give the https URL of the service, and this one beside it: \
         weir cost https://HOST:PORT/PATH --plain {url}"
    )]
    NotTls {
        /// The URL.
        url: String,
    },
    /// What it should be compared with is over TLS as well.
    #[error(
        "--plain: {url} is over TLS; allowed: the http URL at which the same service answers in cleartext"
    )]
    NotPlain {
        /// The URL.
        url: String,
    },
    /// The probe came to nothing.
    #[error("{error}{}", check(error))]
    Probe {
        /// Why.
        #[from]
        error: ProbeError,
    },
    /// A load could not run at all.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It was told to end before all rounds were made.
    #[error("interrupted before the {ROUNDS} rounds were made: nothing is said about a part of them")]
    Interrupted,
}

impl CostError {
    /// Whether what was asked for is at fault, not the system.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NotTls { .. } | Self::NotPlain { .. } => true,
            Self::Probe { error } => error.is_usage(),
            Self::Load(error) => error.is_usage(),
            Self::Interrupted => false,
        }
    }
}

/// What to check when the server is not there.
fn check(error: &ProbeError) -> &'static str {
    match error {
        ProbeError::Resolve { .. } => "; check the name",
        ProbeError::Connect { .. } => {
            "; check that the server runs, that host and port are right, and that it can be reached from here"
        }
        ProbeError::NotTls { .. } => "; check the port: give the one that speaks TLS",
        _ => "",
    }
}

/// Finds out what TLS costs. `measure` runs one load ([`weir_load::run`]); `tell` is told what comes next, never while
/// a load runs.
///
/// # Errors
/// When there is nothing to answer with: a wrong question, or a server that is not there. A load that was invalid is a
/// finding.
pub fn cost(
    question: &Question,
    measure: impl FnMut(&Options) -> Result<LoadResult, LoadError>,
    mut tell: impl FnMut(&str),
) -> Result<Cost, CostError> {
    if !question.url.endpoint.tls {
        return Err(CostError::NotTls { url: question.url.to_string() });
    }
    if let Some(plain) = question.plain.as_ref().filter(|plain| plain.endpoint.tls) {
        return Err(CostError::NotPlain { url: plain.to_string() });
    }
    tell(&format!("probing {}", question.url.endpoint));
    let probe = weir_probe::probe(&probe_options(question))?;
    answer(question, probe, measure, tell)
}

/// All but the probe.
fn answer(
    question: &Question,
    probe: Report,
    mut measure: impl FnMut(&Options) -> Result<LoadResult, LoadError>,
    mut tell: impl FnMut(&str),
) -> Result<Cost, CostError> {
    let cleartext = Cleartext::find(question, &mut measure)?;
    let mut cases: Vec<(Case, Options)> = Case::ALL
        .into_iter()
        .filter_map(|case| Some((case, case.options(question, cleartext.target(), &probe)?)))
        .collect();
    rounds::pace(&mut cases, &mut measure)?;
    let begin = |round: u32, left: Duration| {
        tell(&format!("round {} of {ROUNDS}, {:.0} s left", round + 1, left.as_secs_f64().ceil()));
    };
    let phases = rounds::run(cases, &mut measure, begin)?;
    let findings = Findings::new(question, &cleartext, &probe, &phases);
    Ok(Cost {
        schema: 1,
        weir: env!("CARGO_PKG_VERSION"),
        url: question.url.to_string(),
        cleartext,
        lines: text::lines(&findings),
        notes: text::notes(&findings),
        findings,
        probe,
        phases,
    })
}

impl Cost {
    /// The answer for people.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// The cases that were measured and are no evidence, each with its reason.
    pub fn invalid(&self) -> Vec<String> {
        self.phases.iter().filter_map(Phase::invalid).collect()
    }
}

/// Tries for each kind of resumption: whether it resumes is measured by the loads, with requests.
const TRIES: u32 = 5;

fn probe_options(question: &Question) -> weir_probe::Options {
    weir_probe::Options {
        server: question.url.endpoint.clone(),
        sni: Sni::Host,
        roots: question.roots.clone(),
        identity: None,
        tries: TRIES,
        timeout: Duration::from_secs(5),
    }
}
