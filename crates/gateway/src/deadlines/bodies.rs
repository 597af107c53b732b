//! The minimum rate and the total time of bodies that take longer than one turn.

use super::Wait;
use super::rate_meter::RateMeter;
use crate::config::document::Timeouts;
use crate::config::{MinRate, MinRates};
use crate::plan::Plan;
use crate::reason::Reason;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A limit that holds regardless of the current wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    BodyRate,
    BodyTotal,
    /// The minimum rate at which the client reads the response.
    ResponseRate,
    ResponseTotal,
    ExchangeTotal,
}

impl Limit {
    /// The reason for ending the connection or exchange at the limit.
    pub(crate) fn reason(self) -> Reason {
        match self {
            Self::BodyRate => Reason::BodyTooSlow,
            Self::BodyTotal => Reason::BodyOverdue,
            Self::ResponseRate => Reason::ClientTooSlow,
            Self::ResponseTotal => Reason::ResponseOverdue,
            Self::ExchangeTotal => Reason::ExchangeTimeout,
        }
    }
}

/// The limits on bodies in transit, in either direction. A message that completes within one turn needs no limits. The
/// exchange stores the limits; after its end, the connection stores them while bytes of the response are pending.
#[derive(Debug, Default)]
pub(crate) struct BodyDeadlines {
    /// The configuration, and the route in it (`None`: the general settings), that applies to a response whose last
    /// bytes are pending after its exchange.
    pub limits_of: Option<(Rc<Plan>, Option<usize>)>,
    /// The deadline of the connection's current wait. The timer is set to the nearest of all deadlines.
    pub waits: Option<(Instant, Wait)>,
    body: Direction,
    response: Direction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyProgress {
    /// No body is in transit.
    Over,
    /// The body's request waits for a connection to a server.
    Held,
    /// The bytes moved so far, and whether the gateway waits for the client rather than for the server.
    Moving { bytes: u64, awaits_client: bool },
}

#[derive(Debug, Default)]
struct Direction {
    meter: Option<RateMeter>,
    until: Option<Instant>,
}

impl BodyDeadlines {
    /// Whether any limit applies to bodies with this progress.
    pub(crate) fn is_needed(
        body: BodyProgress,
        response: BodyProgress,
        rates: MinRates,
        timeouts: &Timeouts,
    ) -> bool {
        let needs = |way, rate: Option<MinRate>, total: Option<Duration>| match way {
            BodyProgress::Over | BodyProgress::Held => false,
            BodyProgress::Moving { awaits_client, .. } => {
                total.is_some() || (awaits_client && rate.is_some())
            }
        };
        needs(body, rates.request, timeouts.body) || needs(response, rates.response, timeouts.response_body)
    }

    /// Updates the limits with the progress of both bodies. Returns the nearest deadline and its limit; moving bytes
    /// extend the deadline of a minimum rate.
    pub(crate) fn update(
        &mut self,
        now: Instant,
        (body, response): (BodyProgress, BodyProgress),
        rates: MinRates,
        timeouts: &Timeouts,
    ) -> Option<(Instant, Limit)> {
        let body = self.body.update(now, body, rates.request, timeouts.body);
        let response = self.response.update(now, response, rates.response, timeouts.response_body);
        let all = [
            (body.0, Limit::BodyRate),
            (body.1, Limit::BodyTotal),
            (response.0, Limit::ResponseRate),
            (response.1, Limit::ResponseTotal),
        ];
        all.into_iter().filter_map(|(at, why)| Some((at?, why))).min_by_key(|(at, _)| *at)
    }

    /// Adapts the limits to the next request: only those on the response continue, since the client may still be
    /// reading the previous response.
    pub(crate) fn for_next_request(mut self: Box<Self>) -> Box<Self> {
        (self.body, self.waits, self.limits_of) = (Direction::default(), None, None);
        self
    }

    /// Restarts the total time for the next response. The rate continues, as the client may still be reading the
    /// previous response.
    pub(crate) fn response_begins(&mut self) {
        self.response.until = None;
    }
}

impl Direction {
    fn update(
        &mut self,
        now: Instant,
        way: BodyProgress,
        rate: Option<MinRate>,
        total: Option<Duration>,
    ) -> (Option<Instant>, Option<Instant>) {
        match way {
            BodyProgress::Over => {
                *self = Self::default();
                (None, None)
            }
            BodyProgress::Held => {
                if let Some(meter) = &mut self.meter {
                    meter.rest(now);
                }
                (None, None)
            }
            BodyProgress::Moving { bytes, awaits_client } => {
                self.until = self.until.or(total.map(|total| now + total));
                self.meter = match (self.meter, rate) {
                    (Some(meter), Some(rate)) if meter.is_of(rate) => Some(meter),
                    (_, rate) => rate.map(|rate| RateMeter::new(rate, bytes)),
                };
                let slow = self.meter.as_mut().and_then(|meter| meter.update(now, bytes, awaits_client));
                (slow, self.until)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn moving(bytes: u64, awaits_client: bool) -> BodyProgress {
        BodyProgress::Moving { bytes, awaits_client }
    }

    /// 100 bytes/s, with windows of 10 s for requests and 20 s for responses; total times of 30 s and 40 s.
    fn terms() -> (MinRates, Timeouts) {
        let rate =
            |window| Some(MinRate { per_second: NonZeroU64::new(100).unwrap(), window: seconds(window) });
        let timeouts =
            Timeouts { body: Some(seconds(30)), response_body: Some(seconds(40)), ..Timeouts::default() };
        (MinRates { request: rate(10), response: rate(20) }, timeouts)
    }

    #[test]
    fn the_nearest_end_counts() {
        let (rates, timeouts) = terms();
        let start = Instant::now();
        // Each row contains the time in seconds, the progress of request body and response, and the nearest deadline.
        let table = [
            (0, moving(0, true), BodyProgress::Over, Some((10, Limit::BodyRate))),
            (5, moving(0, false), BodyProgress::Over, Some((30, Limit::BodyTotal))),
            (6, BodyProgress::Held, BodyProgress::Over, None),
            (25, moving(0, true), BodyProgress::Over, Some((30, Limit::BodyRate))),
            (25, moving(900, true), BodyProgress::Over, Some((30, Limit::BodyTotal))),
            (26, BodyProgress::Over, moving(7, false), Some((66, Limit::ResponseTotal))),
            (40, BodyProgress::Over, moving(7, true), Some((60, Limit::ResponseRate))),
            (59, BodyProgress::Over, moving(1007, true), Some((66, Limit::ResponseTotal))),
            (60, moving(5, true), moving(1007, true), Some((66, Limit::ResponseTotal))),
            (61, BodyProgress::Over, BodyProgress::Over, None),
        ];
        let mut body_deadlines = BodyDeadlines::default();
        for (at, body, response, expected) in table {
            let end = body_deadlines.update(start + seconds(at), (body, response), rates, &timeouts);
            assert_eq!(end.map(|(end, why)| ((end - start).as_secs(), why)), expected, "at {at}");
        }
    }

    #[test]
    fn what_begins_has_all_its_time() {
        let (rates, timeouts) = terms();
        let start = Instant::now();
        let mut body_deadlines = BodyDeadlines::default();
        let both = (moving(0, false), moving(0, false));
        assert_eq!(
            body_deadlines.update(start, both, rates, &timeouts),
            Some((start + seconds(30), Limit::BodyTotal))
        );
        let later = start + seconds(20);
        let mut body_deadlines = Box::new(body_deadlines).for_next_request();
        assert_eq!(
            body_deadlines.update(later, both, rates, &timeouts),
            Some((start + seconds(40), Limit::ResponseTotal))
        );
        body_deadlines.response_begins();
        assert_eq!(
            body_deadlines.update(later, both, rates, &timeouts),
            Some((later + seconds(30), Limit::BodyTotal))
        );
    }

    #[test]
    fn without_limits_there_is_none() {
        let (rates, timeouts) = terms();
        let none = MinRates { request: None, response: None };
        let no_totals = Timeouts::default();
        let (over, waited, flowing) = (BodyProgress::Over, moving(0, true), moving(0, false));
        for (body, response, rates, timeouts, expected) in [
            (waited, waited, none, no_totals, false),
            (over, over, rates, timeouts, false),
            (BodyProgress::Held, over, rates, timeouts, false),
            (over, flowing, rates, no_totals, false),
            (over, waited, rates, no_totals, true),
            (waited, over, rates, no_totals, true),
            (over, flowing, none, timeouts, true),
        ] {
            assert_eq!(
                BodyDeadlines::is_needed(body, response, rates, &timeouts),
                expected,
                "{body:?} {response:?}"
            );
        }
    }
}
