//! The cost of TLS for a service: a probe, then short loads over new, resumed and keep-alive connections, with TLS and
//! in cleartext, in rounds of alternating order.
//!
//! It measures one running server process on the machine in its present state, so it is an estimate: verdicts need the
//! fresh processes and blocks of an experiment. [`Cost`] holds all data behind the five lines.

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

/// Measures the cost of TLS. `measure` runs one load ([`weir_load::run`]); `progress` receives the next step, never
/// while a load runs.
///
/// # Errors
/// Invalid options, or an unreachable server. An invalid load is a finding, not an error.
pub fn cost(
    question: &Question,
    measure: impl FnMut(&Options) -> Result<LoadResult, LoadError>,
    mut progress: impl FnMut(&str),
) -> Result<Cost, CostError> {
    if !question.url.endpoint.tls {
        return Err(CostError::NotTls { url: question.url.to_string() });
    }
    if let Some(plain) = question.plain.as_ref().filter(|plain| plain.endpoint.tls) {
        return Err(CostError::NotPlain { url: plain.to_string() });
    }
    progress(&format!("probing {}", question.url.endpoint));
    let probe = weir_probe::probe(&probe_options(question))?;
    answer(question, probe, measure, progress)
}

/// Everything after the probe.
fn answer(
    question: &Question,
    probe: Report,
    mut measure: impl FnMut(&Options) -> Result<LoadResult, LoadError>,
    mut progress: impl FnMut(&str),
) -> Result<Cost, CostError> {
    let cleartext = Cleartext::find(question, &mut measure)?;
    let mut cases: Vec<(Case, Options)> = Case::ALL
        .into_iter()
        .filter_map(|case| Some((case, case.options(question, cleartext.target(), &probe)?)))
        .collect();
    rounds::pace(&mut cases, &mut measure)?;
    let begin = |round: u32, left: Duration| {
        progress(&format!("round {} of {ROUNDS}, {:.0} s left", round + 1, left.as_secs_f64().ceil()));
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

/// Attempts for each kind of resumption. Few, as the loads measure resumption with requests.
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
