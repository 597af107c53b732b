//! One worker's view of a server.

use super::Pool;
use crate::config::document::Eject;
use crate::config::{self, Override};
use crate::keys::UpstreamId;
use crate::limits::Slots;
use crate::observe::State;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_tls::{Connector, PeerName};

/// One server, with this worker's connections to it.
#[derive(Debug)]
pub(crate) struct Server {
    pub config: config::Server,
    /// The connection limit, shared by all workers; `None`: no limit.
    pub slots: Option<Arc<Slots>>,
    pub tls: Option<(Connector, PeerName)>,
    /// Its idle connections.
    pub pool: Pool,
    /// Its connections with streams.
    pub multiplexed: Vec<UpstreamId>,
    /// The number of streams that it allowed last on a connection.
    pub allowed_streams: Option<usize>,
    /// One of them takes another stream. Kept only if the server has a connection limit.
    pub has_free_stream: bool,
    /// Requests in flight, and tunnels.
    pub in_flight: usize,
    /// Responses by the first digit of their status; index 0 counts those without a status.
    pub responses: [u64; 6],
    /// Connections for listeners with `tcp`.
    connected: u64,
    /// The server's credit in the weighted round robin.
    pub turn: i64,
    /// Consecutive failures.
    failures: u32,
    /// The current window of failures, if the share of failures has a limit.
    window: Option<Window>,
    /// Consecutive ejections; a success after the slow return resets the number.
    ejections: u32,
    ejection: EjectionState,
    /// Its health checks fail.
    is_down: bool,
    /// The override set at run time.
    set: Override,
    /// Derived from `is_down`, `set` and `weight`.
    takes: Takes,
    /// The weight in force.
    weight: u32,
    /// The current maximum of idle connections.
    max_idle: usize,
}

/// The requests that a server gets while it is not ejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    All,
    /// Only those whose sticky cookie names the server: it is drained.
    Bound,
    /// None: the server is down, or its weight is 0.
    None,
}

/// A period over which the share of failures is computed; it starts with a failure.
#[derive(Clone, Copy, Debug)]
struct Window {
    since: Instant,
    /// The number of responses before its start.
    responses: u64,
    failures: u64,
    /// Failures that are not among the responses.
    uncounted: u64,
}

/// Whether [`Server::responses`] already counts the failure. It does not for a failure before a failover, in a tunnel
/// or of a mirrored request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Yes,
    No,
}

/// The state of a server's ejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EjectionState {
    Good,
    /// The server gets no requests until then.
    Ejected {
        until: Instant,
    },
    /// The server's share has been growing since then.
    Returning {
        since: Instant,
    },
}

impl Server {
    pub(crate) fn new(
        config: config::Server,
        slots: Option<Arc<Slots>>,
        tls: Option<(Connector, PeerName)>,
    ) -> Self {
        Self {
            weight: config.weight,
            max_idle: config.pool.max_idle as usize,
            config,
            slots,
            tls,
            pool: Pool::default(),
            multiplexed: Vec::new(),
            allowed_streams: None,
            has_free_stream: false,
            in_flight: 0,
            responses: [0; 6],
            connected: 0,
            turn: 0,
            failures: 0,
            window: None,
            ejections: 0,
            ejection: EjectionState::Good,
            is_down: false,
            set: Override::default(),
            takes: Takes::All,
        }
    }

    /// Records a change of the server's health.
    pub(crate) fn note_health(&mut self, up: bool) {
        self.is_down = !up;
        self.settle();
    }

    /// Applies an override. If it reopens the server, the share grows slowly, as after an ejection.
    pub(crate) fn apply_override(&mut self, set: Override, now: Instant) {
        let had_none = self.is_withheld();
        self.set = set;
        self.weight = set.weight.unwrap_or(self.config.weight);
        self.settle();
        if had_none && !self.is_withheld() && self.ejection == EjectionState::Good {
            self.ejection = EjectionState::Returning { since: now };
        }
    }

    fn settle(&mut self) {
        self.takes = match self.set {
            _ if self.is_down || self.weight == 0 => Takes::None,
            Override { is_drained: true, .. } => Takes::Bound,
            Override { is_drained: false, .. } => Takes::All,
        };
        self.max_idle = if self.is_open() { self.config.pool.max_idle as usize } else { 0 };
    }

    /// Whether an operator withholds requests, by a drain or a weight of 0.
    fn is_withheld(&self) -> bool {
        self.set.is_drained || self.weight == 0
    }

    /// Whether the server takes requests of all clients: it is neither down nor drained, and its weight is not 0.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.takes == Takes::All
    }

    /// Whether the pool has room for another idle connection.
    #[inline]
    pub(crate) fn has_place_in_pool(&self) -> bool {
        self.may_have_more_idle(self.pool.len())
    }

    /// Whether the server may have another idle connection besides `connections`.
    pub(crate) fn may_have_more_idle(&self, connections: usize) -> bool {
        connections < self.max_idle
    }

    /// Whether another worker waits for a connection to a server that this worker, `own`, has one to.
    pub(crate) fn is_wanted_elsewhere(&self, own: usize) -> bool {
        !self.multiplexed.is_empty()
            && self.slots.as_ref().is_some_and(|slots| slots.is_wanted_by_others(own))
    }

    /// Whether its health checks fail.
    pub(crate) fn is_down(&self) -> bool {
        self.is_down
    }

    /// The reported state: the first that applies of drained, off, down and ejected, else up.
    pub(crate) fn state(&mut self, now: Instant) -> State {
        match (self.set.is_drained, self.weight, self.is_down) {
            (true, _, _) => State::Drained,
            (false, 0, _) => State::Off,
            (false, _, true) => State::Down,
            (false, _, false) if self.is_ejected(now) => State::Ejected,
            (false, _, false) => State::Up,
        }
    }

    /// The weight in force.
    pub(crate) fn weight(&self) -> u32 {
        self.weight
    }

    /// Whether another request can have a connection, idle or new.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        let has_room = |slots: &Arc<Slots>| self.pool.len() > 0 || self.has_free_stream || slots.has_room();
        self.slots.as_ref().is_none_or(has_room)
    }

    /// Whether the server is open and not ejected.
    pub(crate) fn is_available(&mut self, now: Instant) -> bool {
        self.is_open() && !self.is_ejected(now)
    }

    /// Whether the server takes requests whose sticky cookie names it.
    pub(crate) fn is_available_to_bound(&mut self, now: Instant) -> bool {
        self.takes != Takes::None && !self.is_ejected(now)
    }

    /// Whether the server is ejected; ends an expired ejection.
    pub(crate) fn is_ejected(&mut self, now: Instant) -> bool {
        match self.ejection {
            EjectionState::Ejected { until } if now < until => true,
            EjectionState::Ejected { until } => {
                self.ejection = EjectionState::Returning { since: until };
                false
            }
            EjectionState::Good | EjectionState::Returning { .. } => false,
        }
    }

    /// The server's share of the requests: the weight in hundredths, less during a slow return.
    pub(crate) fn share(&mut self, now: Instant, slow_return: Duration) -> u64 {
        let full = u64::from(self.weight) * 100;
        let EjectionState::Returning { since } = self.ejection else { return full };
        let gone = now.saturating_duration_since(since);
        if gone >= slow_return {
            self.ejection = EjectionState::Good;
            return full;
        }
        let tenth = full / 10;
        let grown = (full - tenth) as u128 * gone.as_micros() / slow_return.as_micros().max(1);
        tenth + grown as u64
    }

    /// Counts a response.
    pub(crate) fn count(&mut self, status: u16) {
        self.responses[usize::from(status / 100).min(5)] += 1;
    }

    /// Records a success.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
        if self.ejection == EjectionState::Good {
            self.ejections = 0;
        }
    }

    /// Records a connection for a listener with `tcp`, whose only success is that the server accepted it.
    pub(crate) fn connected(&mut self) {
        self.connected += 1;
        self.succeeded();
    }

    /// Records a failure. Returns the ejection's duration if this failure ejects the server.
    pub(crate) fn failed(&mut self, now: Instant, eject: &Eject, counted: Counted) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        let fails_often =
            eject.percent.is_some_and(|most| self.note_share(now, eject, counted) >= most.into());
        // During a slow return, one failure is enough.
        let returning = matches!(self.ejection, EjectionState::Returning { .. });
        let is_out = matches!(self.ejection, EjectionState::Ejected { .. });
        let fails_in_row = eject.failures > 0 && (self.failures >= eject.failures || returning);
        if is_out || !(fails_in_row || fails_often) {
            return None;
        }
        let period = eject.period.saturating_mul(1 << self.ejections.min(16)).min(LONGEST.max(eject.period));
        self.ejections += 1;
        self.failures = 0;
        self.window = None;
        self.ejection = EjectionState::Ejected { until: now + period };
        Some(period)
    }

    /// Counts a failure in the window. Returns the share of failures in percent, or 0 below the minimum number of
    /// requests. Successes cost nothing extra, since [`Self::count`] counts all responses.
    fn note_share(&mut self, now: Instant, eject: &Eject, counted: Counted) -> u64 {
        let is_counted = counted == Counted::Yes;
        let responses = self.responses[1..].iter().sum::<u64>() + self.connected;
        let window =
            self.window.filter(|window| now.saturating_duration_since(window.since) < eject.window());
        let mut window = window.unwrap_or(Window {
            since: now,
            responses: responses.saturating_sub(is_counted.into()),
            failures: 0,
            uncounted: 0,
        });
        window.failures += 1;
        window.uncounted += u64::from(!is_counted);
        self.window = Some(window);
        let requests = responses.saturating_sub(window.responses) + window.uncounted;
        if requests < eject.min_requests().into() { 0 } else { window.failures * 100 / requests.max(1) }
    }
}

/// The maximum duration of an ejection, unless the first one is longer.
const LONGEST: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        let place: weir_transport::Place = "http://192.0.2.1".parse().unwrap();
        let config = config::Server {
            address: place.resolve().unwrap(),
            authority: place.authority(),
            place,
            name: None,
            weight: 2,
            backup: false,
            pool: config::document::Pool::default(),
            max_connections: None,
            announces: None,
            http2: false,
            id: 0,
        };
        Server::new(config, None, None)
    }

    #[test]
    fn a_server_that_fails_in_a_row_is_ejected_and_returns_slowly() {
        let seconds = Duration::from_secs;
        let eject = Eject { failures: 3, period: seconds(10), slow_return: seconds(100), ..Eject::default() };
        let (mut server, start) = (server(), Instant::now());
        for _ in 0..2 {
            assert_eq!(server.failed(start, &eject, Counted::No), None);
        }
        server.succeeded();
        for _ in 0..2 {
            assert_eq!(server.failed(start, &eject, Counted::No), None);
        }
        assert!(server.is_available(start));
        assert_eq!(server.failed(start, &eject, Counted::No), Some(seconds(10)));
        assert_eq!(server.failed(start, &eject, Counted::No), None, "requests of before end later");
        assert!(!server.is_available(start + seconds(9)));
        let back = start + seconds(10);
        assert!(server.is_available(back));
        let shares = [0, 50, 99, 100].map(|after| server.share(back + seconds(after), eject.slow_return));
        assert_eq!(shares, [20, 110, 198, 200]);
    }

    #[test]
    fn a_server_that_fails_often_is_ejected_though_never_in_a_row() {
        let seconds = Duration::from_secs;
        let eject = Eject { failures: 0, percent: Some(50), min_requests: Some(10), ..Eject::default() };
        let start = Instant::now();
        // The requests that fail, with a response or without one.
        for (counted, fails) in [(Counted::Yes, [1, 3, 5, 7, 9]), (Counted::No, [1, 3, 5, 7, 9])] {
            let mut server = server();
            let mut ejected = Vec::new();
            for request in 0..11 {
                let is_failure = fails.contains(&request) || request == 10;
                match is_failure {
                    true if counted == Counted::Yes => server.count(503),
                    true => server.count(0),
                    false => {
                        server.succeeded();
                        server.count(200);
                    }
                }
                if is_failure && server.failed(start + seconds(request), &eject, counted).is_some() {
                    ejected.push(request);
                }
            }
            // The window begins with the first failure, request 1, so its tenth request is number 10.
            assert_eq!(ejected, [10], "{counted:?}");
        }
        let mut server = server();
        for request in 0..100 {
            server.count(200);
            server.count(503);
            // Each window of ten seconds has four requests.
            assert_eq!(server.failed(start + seconds(request * 5), &eject, Counted::Yes), None);
        }
        let mut server = self::server();
        for request in 0..100 {
            let is_failure = request % 3 == 0;
            server.count(if is_failure { 503 } else { 200 });
            assert!(
                !is_failure || server.failed(start, &eject, Counted::Yes).is_none(),
                "a third is no half"
            );
        }
    }

    /// Connections for listeners with `tcp` have no responses.
    #[test]
    fn connections_count_for_the_share_of_failures() {
        let eject = Eject { failures: 0, percent: Some(50), min_requests: Some(10), ..Eject::default() };
        let (mut server, start) = (server(), Instant::now());
        for connection in 0..100 {
            match connection % 4 {
                0 => assert_eq!(server.failed(start, &eject, Counted::No), None, "a quarter is no half"),
                _ => server.connected(),
            }
        }
        let failed = (0..100).find(|_| server.failed(start, &eject, Counted::No).is_some());
        assert!(failed.is_some());
    }

    #[test]
    fn each_ejection_in_a_row_is_longer() {
        let seconds = Duration::from_secs;
        let eject = Eject { failures: 1, period: seconds(100), slow_return: seconds(10), ..Eject::default() };
        let (mut server, mut now) = (server(), Instant::now());
        let mut periods = Vec::new();
        for _ in 0..4 {
            let period = server.failed(now, &eject, Counted::No).unwrap();
            periods.push(period.as_secs());
            now += period;
            assert!(server.is_available(now));
        }
        assert_eq!(periods, [100, 200, 300, 300]);
        server.share(now + seconds(10), eject.slow_return);
        server.succeeded();
        assert_eq!(server.failed(now, &eject, Counted::No), Some(seconds(100)));
    }

    #[test]
    fn a_server_that_is_ready_again_returns_slowly_unless_it_is_out_for_another_reason() {
        let seconds = Duration::from_secs;
        let (mut server, start) = (server(), Instant::now());
        let drained = Override { is_drained: true, weight: None };
        server.apply_override(drained, start);
        assert!(
            !server.is_available(start) && server.is_available_to_bound(start) && !server.has_place_in_pool()
        );
        server.note_health(false);
        assert!(!server.is_available_to_bound(start));
        assert_eq!(server.state(start), State::Drained);
        server.apply_override(Override::default(), start);
        assert!(!server.is_open() && server.state(start) == State::Down);
        server.note_health(true);
        assert!(server.is_available(start) && server.has_place_in_pool());
        let shares = [0, 50, 100].map(|after| server.share(start + seconds(after), seconds(100)));
        assert_eq!(shares, [20, 110, 200]);
        server.apply_override(Override { weight: Some(7), ..Override::default() }, start);
        assert_eq!(server.share(start, seconds(100)), 700, "another weight holds at once");
    }
}
