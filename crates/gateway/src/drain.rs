//! The states of drains. `worker/leaving_clients.rs` drains clients whose listener a reload has removed or changed,
//! `worker/control.rs` a whole worker before its exit.

use crate::config::document::Timeouts;
use std::time::{Duration, Instant};

/// The state of a worker's drain. The state only moves to later variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Drain {
    /// The worker accepts connections.
    #[default]
    No,
    /// Another process has replaced this one and accepts connections. Idle connections close; exchanges and tunnels may
    /// continue until `until`.
    Replaced { until: Instant },
    /// The process is stopping. Idle connections close, and tunnels without traffic close, too.
    Stopping { until: Instant },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Another process has replaced this one.
    Replaced,
    /// The process received a signal to stop: SIGTERM or SIGINT.
    Stopped,
    /// The process received a second signal to stop.
    Killed,
}

impl Drain {
    /// The state after `why` at `now`; `None` if the state does not change. A new deadline is never later than the old
    /// one.
    pub(crate) fn next(self, why: Why, now: Instant, timeouts: &Timeouts) -> Option<Self> {
        let soon = now + timeouts.drain;
        match (self, why) {
            (Self::No, Why::Replaced) => Some(Self::Replaced { until: now + timeouts.upgrade_drain }),
            (Self::No, Why::Stopped) => Some(Self::Stopping { until: soon }),
            (Self::Replaced { until }, Why::Stopped) => Some(Self::Stopping { until: soon.min(until) }),
            (_, Why::Killed) => Some(Self::Stopping { until: now }),
            (Self::Replaced { .. }, Why::Replaced)
            | (Self::Stopping { .. }, Why::Replaced | Why::Stopped) => None,
        }
    }

    /// Whether a drain is in progress.
    pub(crate) fn is_on(self) -> bool {
        self != Self::No
    }

    /// The time at which the worker aborts all remaining connections.
    pub(crate) fn until(self) -> Option<Instant> {
        match self {
            Self::No => None,
            Self::Replaced { until } | Self::Stopping { until } => Some(until),
        }
    }

    /// The drain state of each client's connection while the worker is in this state.
    pub(crate) fn of_client(self) -> ClientDrain {
        match self {
            Self::No => ClientDrain::No,
            Self::Replaced { .. } => ClientDrain::Leaving,
            Self::Stopping { .. } => ClientDrain::Stopping,
        }
    }
}

/// The drain of one client's connection. The state only moves to later variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClientDrain {
    #[default]
    No,
    /// The connection's listener was removed or now admits other clients, or another process has replaced this one. The
    /// connection closes after a response, or when it is idle.
    Leaving,
    /// As [`Self::Leaving`], and a tunnel without traffic closes, too: the process is stopping.
    Stopping,
}

impl ClientDrain {
    /// Whether the connection must close after a response.
    #[inline]
    pub(crate) fn is_on(self) -> bool {
        self != Self::No
    }

    /// The idle timeout of the connection. `usual` applies without a drain; a draining connection has less time.
    #[inline]
    pub(crate) fn idle(self, usual: Duration, timeouts: &Timeouts) -> Duration {
        match self {
            Self::No => usual,
            Self::Leaving | Self::Stopping => timeouts.drain_idle,
        }
    }

    /// The idle timeout of a tunnel. `usual` is the configured one; it is shorter only while the process is stopping.
    #[inline]
    pub(crate) fn silent(self, usual: Duration, timeouts: &Timeouts) -> Duration {
        match self {
            Self::No | Self::Leaving => usual,
            Self::Stopping => timeouts.drain_idle,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_gets_shorter_and_never_longer() {
        let now = Instant::now();
        let timeouts = Timeouts {
            drain: Duration::from_secs(30),
            upgrade_drain: Duration::from_secs(3600),
            ..Timeouts::default()
        };
        let at = |seconds: u64| now + Duration::from_secs(seconds);
        let [replaced, stopping] = [|until| Drain::Replaced { until }, |until| Drain::Stopping { until }]
            as [fn(Instant) -> Drain; 2];
        for (before, why, after) in [
            (Drain::No, Why::Replaced, Some(replaced(at(3600)))),
            (Drain::No, Why::Stopped, Some(stopping(at(30)))),
            (Drain::No, Why::Killed, Some(stopping(at(0)))),
            (replaced(at(3000)), Why::Replaced, None),
            (replaced(at(3000)), Why::Stopped, Some(stopping(at(30)))),
            (replaced(at(7)), Why::Stopped, Some(stopping(at(7)))),
            (replaced(at(3000)), Why::Killed, Some(stopping(at(0)))),
            (stopping(at(20)), Why::Replaced, None),
            (stopping(at(20)), Why::Stopped, None),
            (stopping(at(20)), Why::Killed, Some(stopping(at(0)))),
        ] {
            assert_eq!(before.next(why, now, &timeouts), after, "{before:?} {why:?}");
        }
    }

    #[test]
    fn silent_tunnels_outlive_an_upgrade_and_idle_connections_do_not() {
        let (until, usual) = (Instant::now(), Duration::from_secs(75));
        let timeouts = Timeouts::default();
        for (drain, idle, silent) in [
            (Drain::No, usual, usual),
            (Drain::Replaced { until }, timeouts.drain_idle, usual),
            (Drain::Stopping { until }, timeouts.drain_idle, timeouts.drain_idle),
        ] {
            let client = drain.of_client();
            let kept = (client.idle(usual, &timeouts), client.silent(usual, &timeouts));
            assert_eq!(kept, (idle, silent), "{drain:?}");
            assert_eq!(client.is_on(), drain.is_on());
        }
    }
}
