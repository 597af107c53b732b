//! The figures of one case, round by round.

use super::case::Case;
use super::rounds::{Outcome, Phase};
use super::spread::Spread;
use serde::Serialize;
use weir_load::result::LoadResult;

/// The figures of one case.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Median response time; of a new connection, from connecting to the last byte of the response.
    pub time_us: Option<Spread>,
    /// Median handshake time, from the connected socket on.
    pub handshake_us: Option<Spread>,
    /// The server's CPU per request; of a new connection, the CPU of the whole connection.
    pub cpu_us: Option<Spread>,
    #[serde(skip)]
    pub(super) rounds: Rounds,
}

/// One value per round, or no values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rounds {
    pub(super) time_us: Vec<f64>,
    pub(super) handshake_us: Vec<f64>,
    pub(super) cpu_us: Vec<f64>,
}

impl Figures {
    /// The figures of a case; `None` if its loads were invalid.
    pub(super) fn of(phase: &Phase) -> Option<Self> {
        if phase.outcome != Outcome::Measured {
            return None;
        }
        let handshake = |result: &LoadResult| match phase.case {
            Case::NewFull => result.handshake.get("full")?.p50_us,
            Case::NewResumed => {
                let (_, resumed) = result.handshake.iter().find(|(kind, _)| *kind != "full")?;
                resumed.p50_us
            }
            Case::NewCleartext | Case::KeptCleartext | Case::KeptTls => None,
        };
        Some(Self::new(Rounds {
            time_us: all(phase, |result| result.response.p50_us),
            handshake_us: all(phase, handshake),
            cpu_us: if is_served_by_others(phase) { Vec::new() } else { all(phase, cpu_us) },
        }))
    }

    fn new(rounds: Rounds) -> Self {
        Self {
            time_us: Spread::of(&rounds.time_us),
            handshake_us: Spread::of(&rounds.handshake_us),
            cpu_us: Spread::of(&rounds.cpu_us),
            rounds,
        }
    }

    /// The figures of the resumed handshakes in a mixture, with the known cost of the full ones subtracted.
    pub(super) fn without_full(self, phase: &Phase, full: Option<&Self>) -> Self {
        let full = full.map_or(&[][..], |full| &full.rounds.cpu_us);
        let share = |result: &LoadResult| {
            let handshakes = &result.handshakes;
            Some(handshakes.resumed_in_window as f64 / handshakes.in_window as f64)
        };
        let mixed = self.rounds.cpu_us.iter().zip(full).zip(all(phase, share));
        let cpu_us = mixed.map(|((mixed, full), share)| (mixed - (1.0 - share) * full) / share).collect();
        Self::new(Rounds { time_us: Vec::new(), cpu_us, ..self.rounds })
    }
}

/// A value for each round; empty if a round has none.
pub(super) fn all(phase: &Phase, value: impl Fn(&LoadResult) -> Option<f64>) -> Vec<f64> {
    phase.rounds.iter().map(value).collect::<Option<_>>().unwrap_or_default()
}

/// CPU per request of all accounted processes together.
fn cpu_us(result: &LoadResult) -> Option<f64> {
    let of_each: Option<Vec<f64>> =
        result.servers.iter().map(|server| server.cost.cpu_us_per_request).collect();
    of_each.filter(|each| !each.is_empty()).map(|each| each.iter().sum())
}

/// Whether the accounted processes used so little CPU that another one must have served the requests.
pub(super) fn is_served_by_others(phase: &Phase) -> bool {
    let used = Spread::of(&all(phase, cpu_us));
    phase.outcome == Outcome::Measured && used.is_some_and(|used| used.median < LEAST_CPU_US)
}

/// Less than the system calls to receive a request and send a response take.
const LEAST_CPU_US: f64 = 1.0;
