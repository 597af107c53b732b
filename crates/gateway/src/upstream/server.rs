//! One worker's view of a server.

use super::ejection::{Counted, Ejection};
use super::{InFlight, Pool};
use crate::config::document::Eject;
use crate::config::{self, Override};
use crate::keys::UpstreamId;
use crate::limits::Slots;
use crate::observe::State;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_tls::{Connector, PeerName};

#[derive(Debug)]
pub(crate) struct Server {
    pub config: config::Server,
    /// The connection limit, shared by all workers; `None`: no limit.
    pub slots: Option<Arc<Slots>>,
    pub tls: Option<(Connector, PeerName)>,
    pub pool: Pool,
    pub multiplexed: Vec<UpstreamId>,
    /// The stream limit that the server sent last.
    pub allowed_streams: Option<usize>,
    /// Whether at least one connection can take another stream. Updated only if the server has a connection limit.
    pub has_free_stream: bool,
    pub in_flight: InFlight,
    /// Responses by the first digit of their status; index 0 counts those without a status.
    pub responses: [u64; 6],
    connected: u64,
    /// The server's credit in the weighted round robin.
    pub turn: i64,
    ejection: Ejection,
    is_down: bool,
    set: Override,
    /// Derived from `is_down`, `set` and `weight`.
    takes: Takes,
    /// The weight in force: that of `set`, else the configured one.
    weight: u32,
    /// The maximum of idle connections: the configured one, or 0 while the server is not open.
    max_idle: usize,
}

/// The requests that a server gets while it is not ejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    All,
    /// Only requests whose sticky cookie names the server: it is drained.
    Bound,
    /// None: the server is down, or its weight is 0.
    None,
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
            in_flight: InFlight::default(),
            responses: [0; 6],
            connected: 0,
            turn: 0,
            ejection: Ejection::default(),
            is_down: false,
            set: Override::default(),
            takes: Takes::All,
        }
    }

    /// Records a change of the server's health. A server that is down gets no requests.
    pub(crate) fn note_health(&mut self, up: bool, now: Instant) {
        self.is_down = !up;
        self.settle(now);
    }

    /// Applies an override.
    pub(crate) fn apply_override(&mut self, set: Override, now: Instant) {
        self.set = set;
        self.weight = set.weight.unwrap_or(self.config.weight);
        self.settle(now);
    }

    /// Derives what the server takes. A server that opens again returns slowly, whatever kept it closed.
    fn settle(&mut self, now: Instant) {
        let was_open = self.is_open();
        self.takes = match self.set {
            _ if self.is_down || self.weight == 0 => Takes::None,
            Override { is_drained: true, .. } => Takes::Bound,
            Override { is_drained: false, .. } => Takes::All,
        };
        self.max_idle = if self.is_open() { self.config.pool.max_idle as usize } else { 0 };
        if !was_open && self.is_open() {
            self.ejection.begin_return(now);
        }
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

    /// Whether the server may have another idle connection in addition to `connections`.
    pub(crate) fn may_have_more_idle(&self, connections: usize) -> bool {
        connections < self.max_idle
    }

    /// Whether this worker, `own`, has an HTTP/2 connection to the server while another worker waits for one.
    pub(crate) fn is_wanted_elsewhere(&self, own: usize) -> bool {
        !self.multiplexed.is_empty()
            && self.slots.as_ref().is_some_and(|slots| slots.is_wanted_by_others(own))
    }

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

    /// The weight in force: the override's, else the configured one.
    pub(crate) fn weight(&self) -> u32 {
        self.weight
    }

    /// Whether another request can get a connection: an idle or new one, or one with a free stream.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        let has_room = |slots: &Arc<Slots>| self.pool.len() > 0 || self.has_free_stream || slots.has_room();
        self.slots.as_ref().is_none_or(has_room)
    }

    pub(crate) fn is_available(&mut self, now: Instant) -> bool {
        self.is_open() && !self.is_ejected(now)
    }

    /// Whether the server takes requests whose sticky cookie names it.
    pub(crate) fn is_available_to_bound(&mut self, now: Instant) -> bool {
        self.takes != Takes::None && !self.is_ejected(now)
    }

    /// Whether the server is ejected; ends an expired ejection.
    pub(crate) fn is_ejected(&mut self, now: Instant) -> bool {
        self.ejection.is_ejected(now)
    }

    /// The server's share of the requests: the weight in hundredths, less during a slow return.
    pub(crate) fn share(&mut self, now: Instant, slow_return: Duration) -> u64 {
        self.ejection.share(u64::from(self.weight) * 100, now, slow_return)
    }

    /// Counts a response by its status; 0 for an exchange that ended without a response.
    pub(crate) fn count(&mut self, status: u16) {
        self.responses[usize::from(status / 100).min(5)] += 1;
    }

    pub(crate) fn succeeded(&mut self) {
        self.ejection.succeeded();
    }

    /// Records a connection for a listener with `tcp`. The connection counts as a success, since the server sends no
    /// HTTP responses.
    pub(crate) fn connected(&mut self) {
        self.connected += 1;
        self.succeeded();
    }

    /// Records a failure. Returns the ejection's duration if this failure ejects the server.
    pub(crate) fn failed(&mut self, now: Instant, eject: &Eject, counted: Counted) -> Option<Duration> {
        let responses = self.responses[1..].iter().sum::<u64>() + self.connected;
        self.ejection.failed(now, eject, counted, responses)
    }
}

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

    /// Connections for listeners with `tcp` count as requests in the share of failures, although they have no
    /// responses.
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
    fn a_server_that_is_ready_again_returns_slowly_unless_it_is_out_for_another_reason() {
        let seconds = Duration::from_secs;
        let (mut server, start) = (server(), Instant::now());
        let drained = Override { is_drained: true, weight: None };
        server.apply_override(drained, start);
        assert!(
            !server.is_available(start) && server.is_available_to_bound(start) && !server.has_place_in_pool()
        );
        server.note_health(false, start);
        assert!(!server.is_available_to_bound(start));
        assert_eq!(server.state(start), State::Drained);
        server.apply_override(Override::default(), start);
        assert!(!server.is_open() && server.state(start) == State::Down);
        server.note_health(true, start);
        assert!(server.is_available(start) && server.has_place_in_pool());
        let shares = [0, 50, 100].map(|after| server.share(start + seconds(after), seconds(100)));
        assert_eq!(shares, [20, 110, 200]);
        server.apply_override(Override { weight: Some(7), ..Override::default() }, start);
        assert_eq!(server.share(start, seconds(100)), 700, "another weight holds at once");
        // Passed checks of a server that is up change nothing.
        server.note_health(true, start);
        assert_eq!(server.share(start, seconds(100)), 700);
    }

    /// A return that began while the server was closed for another reason gave it its full share at once when it
    /// opened.
    #[test]
    fn a_slow_return_begins_when_the_last_reason_is_gone() {
        let seconds = Duration::from_secs;
        type Step = fn(&mut Server, Instant);
        let down: Step = |server, at| server.note_health(false, at);
        let up: Step = |server, at| server.note_health(true, at);
        let drain: Step = |server, at| server.apply_override(Override { is_drained: true, weight: None }, at);
        let turn_off: Step =
            |server, at| server.apply_override(Override { is_drained: false, weight: Some(0) }, at);
        let ready: Step = |server, at| server.apply_override(Override::default(), at);
        let cases: [(&str, &[Step]); 6] = [
            ("down", &[down, up]),
            ("drained", &[drain, ready]),
            ("a weight of 0", &[turn_off, ready]),
            ("drained, then down", &[drain, down, ready, up]),
            ("down and drained, up first", &[down, drain, up, ready]),
            ("down twice", &[down, up, down, up]),
        ];
        for (name, steps) in cases {
            let (mut server, mut now) = (server(), Instant::now());
            for step in steps {
                now += seconds(200);
                step(&mut server, now);
            }
            assert_eq!(server.share(now, seconds(100)), 20, "{name}");
            assert_eq!(server.share(now + seconds(100), seconds(100)), 200, "{name}");
        }
    }

    /// The end of a period that expired while the server was closed does not shorten its return; a period that has
    /// not expired holds.
    #[test]
    fn a_server_that_opens_after_an_ejection_returns_slowly_from_then_on() {
        let seconds = Duration::from_secs;
        let eject = Eject { failures: 1, period: seconds(10), ..Eject::default() };
        for (open_after, share) in [(5, None), (50, Some(20))] {
            let (mut server, start) = (server(), Instant::now());
            assert!(server.failed(start, &eject, Counted::No).is_some());
            server.note_health(false, start);
            let opened = start + seconds(open_after);
            server.note_health(true, opened);
            let available = server.is_available(opened);
            assert_eq!(available.then(|| server.share(opened, seconds(100))), share, "{open_after}");
        }
    }
}
