//! The rounds: each runs every case once, in alternating order, so that machine drift affects all cases alike.

use super::case::Case;
use super::question::{CostError, ROUNDS};
use serde::Serialize;
use std::time::Duration;
use weir_load::result::LoadResult;
use weir_load::{LoadError, Options, Schedule};

/// One case over the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// The case.
    pub case: Case,
    /// Whether its figures are evidence.
    pub outcome: Outcome,
    /// The results in the order of the rounds; fewer if a round was no evidence.
    pub rounds: Vec<LoadResult>,
}

/// Whether the figures of a case are evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All rounds were valid.
    Measured,
    /// The server did not resume every session: a finding about the server, not a failure.
    NotResumed {
        /// Connections that were to resume.
        tries: u64,
        /// Those without a ticket or session ID from the server.
        had_nothing: u64,
        /// Those that did resume.
        resumed: u64,
    },
    /// A round was no evidence; the case was dropped from the further rounds.
    Invalid {
        /// The round, counted from 1.
        round: u32,
        /// Why.
        why: String,
    },
}

impl Phase {
    /// The case and the reason, if it is invalid.
    pub(super) fn invalid(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Invalid { round, why } => {
                Some(format!("{}, round {round} of {ROUNDS}: {why}", self.case))
            }
            Outcome::Measured | Outcome::NotResumed { .. } => None,
        }
    }
}

/// Slows both keep-alive cases down to nearly one rate, if there are both: CPU per request falls as the rate rises, so
/// the faster one would look too cheap. One load at full speed determines the pause.
/// Errors: an interrupt. Other faults show up in the first round.
pub(super) fn pace(
    cases: &mut [(Case, Options)],
    measure: &mut impl FnMut(&Options) -> Result<LoadResult, LoadError>,
) -> Result<(), CostError> {
    if !cases.iter().any(|(case, _)| *case == Case::KeptCleartext) {
        return Ok(());
    }
    let Some((_, options)) = cases.iter().find(|(case, _)| *case == Case::KeptTls) else { return Ok(()) };
    let mean_us = match whole(measure(options)) {
        Ok(result) if judge(Case::KeptTls, &result, 1) == Outcome::Measured => result.response.mean_us,
        Err(CostError::Interrupted) => return Err(CostError::Interrupted),
        Ok(_) | Err(_) => return Ok(()),
    };
    let think = Duration::from_secs_f64(PAUSE * mean_us / 1e6).min(LONGEST_PAUSE);
    for (_, options) in cases.iter_mut().filter(|(case, _)| case.keeps()) {
        options.schedule = Schedule::Closed { think };
    }
    Ok(())
}

/// With a pause of ten response times, cleartext that responds in half the time gets 5 % more requests.
const PAUSE: f64 = 10.0;

/// A service that responds in milliseconds sets the rate itself, and pauses would leave few samples.
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// Measures the cases. `begin` receives each round before it begins, counted from 0, and the time left.
/// Errors: a load that cannot run in the first round, or an interrupt.
pub(super) fn run(
    cases: Vec<(Case, Options)>,
    mut measure: impl FnMut(&Options) -> Result<LoadResult, LoadError>,
    mut begin: impl FnMut(u32, Duration),
) -> Result<Vec<Phase>, CostError> {
    let open = |(case, options)| {
        let phase = Phase { case, outcome: Outcome::Measured, rounds: Vec::new() };
        (phase, options)
    };
    let mut phases: Vec<(Phase, Options)> = cases.into_iter().map(open).collect();
    for round in 0..ROUNDS {
        let open = || phases.iter().filter(|(phase, _)| phase.outcome == Outcome::Measured);
        if open().next().is_none() {
            break;
        }
        let each: Duration = open().map(|(_, options)| options.phases.warmup + options.phases.window).sum();
        begin(round, each * (ROUNDS - round));
        let mut order: Vec<&mut (Phase, Options)> = phases.iter_mut().collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for (phase, options) in order {
            if phase.outcome == Outcome::Measured {
                phase.add(round, options, &mut measure)?;
            }
        }
    }
    Ok(phases.into_iter().map(|(phase, _)| phase).collect())
}

impl Phase {
    fn add(
        &mut self,
        round: u32,
        options: &mut Options,
        measure: &mut impl FnMut(&Options) -> Result<LoadResult, LoadError>,
    ) -> Result<(), CostError> {
        let mut result = whole(measure(options));
        if let Ok(first) = &result
            && round == 0
            && ran_out(first)
        {
            options.policy.resume = HALF;
            result = whole(measure(options));
        }
        match result {
            Ok(result) => {
                self.outcome = judge(self.case, &result, round + 1);
                self.rounds.push(result);
            }
            Err(CostError::Load(error)) if round > 0 => {
                self.outcome = Outcome::Invalid { round: round + 1, why: error.to_string() };
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// The result, if it covers the whole window.
pub(super) fn whole(result: Result<LoadResult, LoadError>) -> Result<LoadResult, CostError> {
    match result {
        Err(LoadError::NoWindow) => Err(CostError::Interrupted),
        Ok(result) if result.partial => Err(CostError::Interrupted),
        other => Ok(other?),
    }
}

/// The share of the connections that resume, in percent, if a resumed session brings no new ticket (as in Node): each
/// full handshake brings at least one.
const HALF: f64 = 50.0;

/// Whether the server resumed every session it was offered, but there were too few sessions.
fn ran_out(result: &LoadResult) -> bool {
    let handshakes = &result.handshakes;
    handshakes.had_nothing > 0
        && handshakes.offered > 0
        && handshakes.declined == 0
        && result.errors.is_empty()
}

fn judge(case: Case, result: &LoadResult, round: u32) -> Outcome {
    let handshakes = &result.handshakes;
    let tries = handshakes.offered + handshakes.had_nothing;
    let resumed: u64 = handshakes.resumed.values().sum();
    let responses_are_correct = result.requests > 0 && result.errors.is_empty();
    if case == Case::NewResumed && responses_are_correct && resumed < tries {
        return Outcome::NotResumed { tries, had_nothing: handshakes.had_nothing, resumed };
    }
    match why_not(case, result) {
        None => Outcome::Measured,
        Some(why) => Outcome::Invalid { round, why },
    }
}

/// Why a result is no evidence for its case.
fn why_not(case: Case, result: &LoadResult) -> Option<String> {
    if result.validity != "valid" {
        return Some(reason(result));
    }
    let new = result.connections_opened_in_window;
    if case.keeps() && new * LEAST_KEPT_FOR > result.requests {
        return Some(format!(
            "the server closes connections early: {new} new ones for {} requests; enable keep-alive",
            result.requests,
        ));
    }
    if result.response.p50_us.is_none() {
        let seconds =
            result.window_s * f64::from(ROUNDS) * MEDIAN_NEEDS / result.response.count.max(1) as f64;
        return Some(format!(
            "{} responses are too few for a median; measure longer with -d {:.0}s",
            result.response.count,
            (seconds * 1.5).ceil(),
        ));
    }
    None
}

/// Connections closed after fewer requests are not keep-alive: handshakes would dominate the cost of a request.
const LEAST_KEPT_FOR: u64 = 100;

/// Minimum number of samples for a median.
const MEDIAN_NEEDS: f64 = 20.0;

/// Why a result is invalid, with an example of the first error.
pub(super) fn reason(result: &LoadResult) -> String {
    let reason = result.invalid().unwrap_or("valid");
    let example = result.errors.keys().find_map(|class| result.error_examples.get(class));
    example.map_or_else(|| reason.to_owned(), |example| format!("{reason}: {example}"))
}
