//! How much of a turn goes to what delays warm requests: new connections, and what is due.

use std::time::Duration;

/// How many of them a turn may do that has taken `spent` with everything else: one, as warm requests wait for them twice (for the
/// request, then for its answer); and as many as fit into a quarter of that time. A turn that takes long anyway, with a hundred
/// large answers say, would otherwise keep newcomers out.
#[must_use]
pub(crate) fn share(spent: Duration) -> usize {
    let fit = spent.as_nanos() / (4 * EACH.as_nanos());
    usize::try_from(fit).map_or(MOST, |fit| fit.clamp(1, MOST))
}

/// An accept takes some 20 microseconds, and 60 if another connection is closed for it; what is due is often a connection to be
/// closed, too.
const EACH: Duration = Duration::from_micros(60);

/// Some milliseconds: `spent` may contain a time in which the process did not run.
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
