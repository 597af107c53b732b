//! The share of a turn for work that delays requests on open connections: accepts and due timers.

use std::time::Duration;

/// The number of accepts or timers for a turn that has already taken `spent`: those that fit into a quarter of that
/// time, and at least one. A short turn handles only one, since each may delay a request twice: before the worker
/// processes the request, and before it processes the response. A long turn, such as one with a hundred large
/// responses, handles more, since one per turn would starve new connections.
#[must_use]
pub(crate) fn share(spent: Duration) -> usize {
    let fit = spent.as_nanos() / (4 * EACH.as_nanos());
    usize::try_from(fit).map_or(MOST, |fit| fit.clamp(1, MOST))
}

/// The assumed duration of one accept or one timer. An accept takes about 20 microseconds, or 60 if the worker closes
/// another connection to make room. A due timer often closes a connection, too.
const EACH: Duration = Duration::from_micros(60);

/// The maximum number in one turn, about 4 ms of work. `spent` alone is no limit, since it may include time during
/// which the process did not run.
const MOST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_takes_long_does_more_of_them_for_a_quarter_of_its_time() {
        let table = [(0, 1), (479, 1), (480, 2), (2_400, 10), (15_360, 64), (60_000_000, 64)];
        for (spent, expected) in table {
            assert_eq!(share(Duration::from_micros(spent)), expected, "{spent} us");
        }
        assert_eq!(share(Duration::MAX), MOST);
    }
}
