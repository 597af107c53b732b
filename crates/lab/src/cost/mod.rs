//! What TLS costs a service: a probe, then short loads over new, resumed and kept connections, with TLS and in
//! cleartext, in rounds whose order alternates.
//!
//! It answers for one running process of the server on a machine as it is just now, so it is an estimate: verdicts need
//! fresh processes and blocks, which experiments have. [`Cost`] holds everything that the five lines rest on.

mod answer;
mod case;
mod cleartext;
mod figures;
mod findings;
mod question;
mod rounds;
mod spread;
#[cfg(test)]
mod tests;
mod text;

pub use answer::Cost;
pub use case::Case;
pub use cleartext::Cleartext;
pub use figures::Figures;
pub use findings::{Findings, Negotiated, Resumption, Tenth};
pub use question::{CostError, Question, ROUNDS};
pub use rounds::{Outcome, Phase};
pub use spread::Spread;

use std::time::Duration;
use weir_load::result::LoadResult;
use weir_load::{LoadError, Options};
use weir_probe::{Report, Sni};

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
