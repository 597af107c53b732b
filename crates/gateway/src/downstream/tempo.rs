//! Bodies that take longer than a turn: how fast they must move, and how long they may take in all.

use super::Patience;
use super::pace::Pace;
use crate::config::document::Timeouts;
use crate::config::{MinRate, MinRates};
use crate::plan::Plan;
use crate::reason::Reason;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Why a client's timer is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It is waited for.
    Waited(Patience),
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
    /// Its reading of the answer.
    AnswerRate,
    /// The answer, in all.
    AnswerTotal,
}

impl Slow {
    /// Why its connection or exchange ends then.
    pub(crate) fn reason(self) -> Reason {
        match self {
            Self::BodyRate => Reason::BodyTooSlow,
            Self::BodyTotal => Reason::BodyOverdue,
            Self::AnswerRate => Reason::ClientTooSlow,
            Self::AnswerTotal => Reason::AnswerOverdue,
        }
    }
}

/// What a client is held to while a body is on its way in either direction. There is none for messages that come and go in
/// one piece.
#[derive(Debug, Default)]
pub(crate) struct Tempo {
    /// The configuration that holds while the client has no exchange, and the route in it (`None`: the general settings): before
    /// an exchange begins, and when the last bytes of its answer wait.
    pub held_to: Option<(Rc<Plan>, Option<usize>)>,
    /// What the client is waited for besides: the timer has the nearest of all.
    pub waits: Option<(Instant, Patience)>,
    body: Course,
    answer: Course,
}

/// How far a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// None is on its way.
    Over,
    /// Its request waits for a connection to a server.
    Held,
    /// So many bytes have moved; whether it is the client that is waited for.
    Moving { bytes: u64, is_waited_for: bool },
}

/// One direction.
#[derive(Debug, Default)]
struct Course {
    pace: Option<Pace>,
    /// The end of the time that it may take in all.
    until: Option<Instant>,
}

impl Tempo {
    /// Whether bodies this far need one.
    pub(crate) fn is_needed(body: Way, answer: Way, rates: MinRates, timeouts: &Timeouts) -> bool {
        let needs = |way, rate: Option<MinRate>, total: Option<Duration>| match way {
            Way::Over | Way::Held => false,
            Way::Moving { is_waited_for, .. } => total.is_some() || (is_waited_for && rate.is_some()),
        };
        needs(body, rates.request, timeouts.body) || needs(answer, rates.answer, timeouts.answer)
    }

    /// Goes on with bodies this far. Returns when the client's time will be over unless bytes move, and why.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        (body, answer): (Way, Way),
        rates: MinRates,
        timeouts: &Timeouts,
    ) -> Option<(Instant, Slow)> {
        let body = self.body.look(now, body, rates.request, timeouts.body);
        let answer = self.answer.look(now, answer, rates.answer, timeouts.answer);
        let all = [
            (body.0, Slow::BodyRate),
            (body.1, Slow::BodyTotal),
            (answer.0, Slow::AnswerRate),
            (answer.1, Slow::AnswerTotal),
        ];
        all.into_iter().filter_map(|(at, why)| Some((at?, why))).min_by_key(|(at, _)| *at)
    }

    /// Another request begins.
    pub(crate) fn request_begins(&mut self) {
        self.body = Course::default();
    }

    /// Another answer begins, perhaps behind one that the client has not taken yet.
    pub(crate) fn answer_begins(&mut self) {
        self.answer.until = None;
    }
}

impl Course {
    /// When the client will have been too slow, and when the whole time will be over.
    fn look(
        &mut self,
        now: Instant,
        way: Way,
        rate: Option<MinRate>,
        total: Option<Duration>,
    ) -> (Option<Instant>, Option<Instant>) {
        match way {
            Way::Over => {
                *self = Self::default();
                (None, None)
            }
            Way::Held => {
                if let Some(pace) = &mut self.pace {
                    pace.rest(now);
                }
                (None, None)
            }
            Way::Moving { bytes, is_waited_for } => {
                self.until = self.until.or(total.map(|total| now + total));
                self.pace = match (self.pace, rate) {
                    (Some(pace), Some(rate)) if pace.is_of(rate) => Some(pace),
                    (_, rate) => rate.map(|rate| Pace::new(rate, bytes)),
                };
                let slow = self.pace.as_mut().and_then(|pace| pace.look(now, bytes, is_waited_for));
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

    fn moving(bytes: u64, is_waited_for: bool) -> Way {
        Way::Moving { bytes, is_waited_for }
    }

    /// 100 bytes/s with windows of 10 s up, 20 s down; 30 s and 40 s in all.
    fn terms() -> (MinRates, Timeouts) {
        let rate =
            |window| Some(MinRate { per_second: NonZeroU64::new(100).unwrap(), window: seconds(window) });
        let timeouts = Timeouts { body: Some(seconds(30)), answer: Some(seconds(40)), ..Timeouts::default() };
        (MinRates { request: rate(10), answer: rate(20) }, timeouts)
    }

    #[test]
    fn the_nearest_end_counts() {
        let (rates, timeouts) = terms();
        let start = Instant::now();
        // Seconds, the body, the answer, and the nearest end.
        let table = [
            (0, moving(0, true), Way::Over, Some((10, Slow::BodyRate))),
            (5, moving(0, false), Way::Over, Some((30, Slow::BodyTotal))),
            (6, Way::Held, Way::Over, None),
            (25, moving(0, true), Way::Over, Some((30, Slow::BodyRate))),
            (25, moving(900, true), Way::Over, Some((30, Slow::BodyTotal))),
            (26, Way::Over, moving(7, false), Some((66, Slow::AnswerTotal))),
            (40, Way::Over, moving(7, true), Some((60, Slow::AnswerRate))),
            (59, Way::Over, moving(1007, true), Some((66, Slow::AnswerTotal))),
            (60, moving(5, true), moving(1007, true), Some((66, Slow::AnswerTotal))),
            (61, Way::Over, Way::Over, None),
        ];
        let mut tempo = Tempo::default();
        for (at, body, answer, expected) in table {
            let end = tempo.look(start + seconds(at), (body, answer), rates, &timeouts);
            assert_eq!(end.map(|(end, why)| ((end - start).as_secs(), why)), expected, "at {at}");
        }
    }

    #[test]
    fn what_begins_has_all_its_time() {
        let (rates, timeouts) = terms();
        let start = Instant::now();
        let mut tempo = Tempo::default();
        let both = (moving(0, false), moving(0, false));
        assert_eq!(tempo.look(start, both, rates, &timeouts), Some((start + seconds(30), Slow::BodyTotal)));
        let later = start + seconds(20);
        tempo.request_begins();
        assert_eq!(tempo.look(later, both, rates, &timeouts), Some((start + seconds(40), Slow::AnswerTotal)));
        tempo.answer_begins();
        assert_eq!(tempo.look(later, both, rates, &timeouts), Some((later + seconds(30), Slow::BodyTotal)));
    }

    #[test]
    fn without_limits_there_is_none() {
        let (rates, timeouts) = terms();
        let none = MinRates { request: None, answer: None };
        let no_totals = Timeouts::default();
        let (over, waited, flowing) = (Way::Over, moving(0, true), moving(0, false));
        for (body, answer, rates, timeouts, expected) in [
            (waited, waited, none, no_totals, false),
            (over, over, rates, timeouts, false),
            (Way::Held, over, rates, timeouts, false),
            (over, flowing, rates, no_totals, false),
            (over, waited, rates, no_totals, true),
            (waited, over, rates, no_totals, true),
            (over, flowing, none, timeouts, true),
        ] {
            assert_eq!(Tempo::is_needed(body, answer, rates, &timeouts), expected, "{body:?} {answer:?}");
        }
    }
}
