//! The slow return of a server after an ejection, failed checks, a drain or a weight of 0 (*slow start* in nginx,
//! HAProxy and Envoy). `server.rs` and `ejection.rs` begin it, and `balance.rs` uses the share.

use std::time::Duration;

/// A server's share of the requests, `elapsed` after its slow return began: grows linearly from a tenth of `full` to
/// `full` over `slow_return`. `None` once the slow return is over.
pub(super) fn growing_share(full: u64, elapsed: Duration, slow_return: Duration) -> Option<u64> {
    if elapsed >= slow_return {
        return None;
    }
    let tenth = full / 10;
    let grown = u128::from(full - tenth) * elapsed.as_micros() / slow_return.as_micros().max(1);
    Some(tenth + grown as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_grows_from_a_tenth() {
        let share =
            |full, elapsed, of| growing_share(full, Duration::from_secs(elapsed), Duration::from_secs(of));
        assert_eq!([0, 50, 99, 100].map(|at| share(200, at, 100)), [Some(20), Some(110), Some(198), None]);
        assert_eq!(share(0, 1, 100), Some(0));
        assert_eq!(share(200, 0, 0), None, "no slow return");
        assert_eq!(share(u64::MAX, 1, 2), Some(u64::MAX / 10 + (u64::MAX - u64::MAX / 10) / 2));
    }
}
