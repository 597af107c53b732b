//! The ends of tunnels in a run, counted by case.

use crate::ledger::{Entry, Outcome};
use crate::message::Answer;

/// The numbers of requests for a switch of protocols that arrived at an origin, by the HTTP version of the client and
/// of the origin: 0 is HTTP/1.1, 1 is HTTP/2. Requests in [`Tunnels::unsupported`] did not arrive at an origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tunnels {
    /// All bytes arrived in both directions.
    pub complete: [[usize; 2]; 2],
    /// The origin refused the switch.
    pub refused: [[usize; 2]; 2],
    /// The client gave up, or lost the connection.
    pub cut: [[usize; 2]; 2],
    /// The gateway rejected the request with 501, by the version of the client.
    pub unsupported: [usize; 2],
}

impl Tunnels {
    /// Counts the tunnels among all requests.
    pub(crate) fn of(entries: &[Entry]) -> Self {
        let mut tunnels = Self::default();
        for entry in entries {
            let Some(switch) = entry.ask.switch else { continue };
            let client = usize::from(switch.is_on_stream);
            if entry.outcome == Some(Outcome::Refused(501)) {
                tunnels.unsupported[client] += 1;
            }
            let Some(arrival) = entry.arrivals.last() else { continue };
            let server = usize::from(arrival.stream.is_some());
            let counts = match entry.outcome {
                Some(Outcome::Answered) if arrival.error.is_some() => continue,
                Some(Outcome::Answered) if entry.ask.answer == Answer::Switch => &mut tunnels.complete,
                Some(Outcome::Answered) => &mut tunnels.refused,
                Some(Outcome::Lost | Outcome::Forgone) => &mut tunnels.cut,
                Some(Outcome::Refused(_)) | None => continue,
            };
            counts[client][server] += 1;
        }
        tunnels
    }

    /// The sum of this and `other`.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let sum = |a: [usize; 2], b: [usize; 2]| [a[0] + b[0], a[1] + b[1]];
        let sums = |a: [[usize; 2]; 2], b: [[usize; 2]; 2]| [sum(a[0], b[0]), sum(a[1], b[1])];
        Self {
            complete: sums(self.complete, other.complete),
            refused: sums(self.refused, other.refused),
            cut: sums(self.cut, other.cut),
            unsupported: sum(self.unsupported, other.unsupported),
        }
    }
}
