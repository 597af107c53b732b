//! The minimum rate and the total time of bodies that take longer than a turn.

use super::Wait;
use super::rate_meter::RateMeter;
use crate::config::document::Timeouts;
use crate::config::{MinRate, MinRates};
use crate::plan::Plan;
use crate::reason::Reason;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Cause a client's timer is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It is waited for.
    Waited(Wait),
    /// It must not become slower, or take longer in all.
    Slow(Slow),
}

/// What can be too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slow {
    /// The body of its request.
    BodyRate,
    /// Likewise, in all.
    BodyTotal,
    /// Its reading of the response.
    ResponseRate,
    /// The response, in all.
    ResponseTotal,
}

impl Slow {
    /// Cause its connection or exchange ends then.
    pub(crate) fn reason(self) -> Reason {
        match self {
            Self::BodyRate => Reason::BodyTooSlow,
            Self::BodyTotal => Reason::BodyOverdue,
            Self::ResponseRate => Reason::ClientTooSlow,
            Self::ResponseTotal => Reason::ResponseOverdue,
        }
    }
}

/// What a client is held to while a body is on its way in either direction. There is none for messages that come and go in
/// one piece.
#[derive(Debug, Default)]
pub(crate) struct BodyDeadlines {
    /// The configuration that holds while the client has no exchange, and the route in it (`None`: the general settings): before
    /// an exchange begins, and when the last bytes of its response wait.
    pub held_to: Option<(Rc<Plan>, Option<usize>)>,
    /// What the client is waited for besides: the timer has the nearest of all.
    pub waits: Option<(Instant, Wait)>,
    body: Direction,
    response: Direction,
}

/// How far a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyProgress {
    /// None is on its way.
    Over,
    /// Its request waits for a connection to a server.
    Held,
    /// So many bytes have moved; whether it is the client that is waited for.
    Moving { bytes: u64, is_waited_for: bool },
}

/// One direction.
#[derive(Debug, Default)]
struct Direction {
    meter: Option<RateMeter>,
    /// The end of the time that it may take in all.
    until: Option<Instant>,
}

impl BodyDeadlines {
    /// Whether bodies this far need one.
    pub(crate) fn is_needed(
        body: BodyProgress,
        response: BodyProgress,
        rates: MinRates,
        timeouts: &Timeouts,
    ) -> bool {
        let needs = |way, rate: Option<MinRate>, total: Option<Duration>| match way {
            BodyProgress::Over | BodyProgress::Held => false,
            BodyProgress::Moving { is_waited_for, .. } => {
                total.is_some() || (is_waited_for && rate.is_some())
            }
        };
        needs(body, rates.request, timeouts.body) || needs(response, rates.response, timeouts.answer)
    }

    /// Goes on with bodies this far. Returns when the client's time will be over unless bytes move, and why.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        (body, response): (BodyProgress, BodyProgress),
        rates: MinRates,
        timeouts: &Timeouts,
    ) -> Option<(Instant, Slow)> {
        let body = self.body.look(now, body, rates.request, timeouts.body);
        let response = self.response.look(now, response, rates.response, timeouts.answer);
        let all = [
            (body.0, Slow::BodyRate),
            (body.1, Slow::BodyTotal),
            (response.0, Slow::ResponseRate),
            (response.1, Slow::ResponseTotal),
        ];
        all.into_iter().filter_map(|(at, why)| Some((at?, why))).min_by_key(|(at, _)| *at)
    }

    /// Another request begins.
    pub(crate) fn request_begins(&mut self) {
        self.body = Direction::default();
    }

    /// Another response begins, perhaps behind one that the client has not taken yet.
    pub(crate) fn response_begins(&mut self) {
        self.response.until = None;
    }
}

impl Direction {
    /// When the client will have been too slow, and when the whole time will be over.
    fn look(
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
            BodyProgress::Moving { bytes, is_waited_for } => {
                self.until = self.until.or(total.map(|total| now + total));
                self.meter = match (self.meter, rate) {
                    (Some(meter), Some(rate)) if meter.is_of(rate) => Some(meter),
                    (_, rate) => rate.map(|rate| RateMeter::new(rate, bytes)),
                };
                let slow = self.meter.as_mut().and_then(|meter| meter.look(now, bytes, is_waited_for));
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

    fn moving(bytes: u64, is_waited_for: bool) -> BodyProgress {
        BodyProgress::Moving { bytes, is_waited_for }
    }

    /// 100 bytes/s with windows of 10 s up, 20 s down; 30 s and 40 s in all.
    fn terms() -> (MinRates, Timeouts) {
        let rate =
            |window| Some(MinRate { per_second: NonZeroU64::new(100).unwrap(), window: seconds(window) });
        let timeouts = Timeouts { body: Some(seconds(30)), answer: Some(seconds(40)), ..Timeouts::default() };
        (MinRates { request: rate(10), response: rate(20) }, timeouts)
    }

    #[test]
    fn the_nearest_end_counts() {
        let (rates, timeouts) = terms();
        let start = Instant::now();
        // Seconds, the body, the response, and the nearest end.
        let table = [
            (0, moving(0, true), BodyProgress::Over, Some((10, Slow::BodyRate))),
            (5, moving(0, false), BodyProgress::Over, Some((30, Slow::BodyTotal))),
            (6, BodyProgress::Held, BodyProgress::Over, None),
            (25, moving(0, true), BodyProgress::Over, Some((30, Slow::BodyRate))),
            (25, moving(900, true), BodyProgress::Over, Some((30, Slow::BodyTotal))),
            (26, BodyProgress::Over, moving(7, false), Some((66, Slow::ResponseTotal))),
            (40, BodyProgress::Over, moving(7, true), Some((60, Slow::ResponseRate))),
            (59, BodyProgress::Over, moving(1007, true), Some((66, Slow::ResponseTotal))),
            (60, moving(5, true), moving(1007, true), Some((66, Slow::ResponseTotal))),
            (61, BodyProgress::Over, BodyProgress::Over, None),
        ];
        let mut body_deadlines = BodyDeadlines::default();
        for (at, body, response, expected) in table {
            let end = body_deadlines.look(start + seconds(at), (body, response), rates, &timeouts);
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
            body_deadlines.look(start, both, rates, &timeouts),
            Some((start + seconds(30), Slow::BodyTotal))
        );
        let later = start + seconds(20);
        body_deadlines.request_begins();
        assert_eq!(
            body_deadlines.look(later, both, rates, &timeouts),
            Some((start + seconds(40), Slow::ResponseTotal))
        );
        body_deadlines.response_begins();
        assert_eq!(
            body_deadlines.look(later, both, rates, &timeouts),
            Some((later + seconds(30), Slow::BodyTotal))
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
