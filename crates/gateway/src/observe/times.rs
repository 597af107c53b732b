//! The times of an exchange's steps, by the event loop's clock.

use std::fmt;
use std::time::Instant;

/// The instant of each step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The client's connection was accepted.
    pub accepted: Instant,
    /// The request's head was complete.
    pub head: Instant,
    /// The latest attempt got its upstream connection, new or reused.
    pub attempt: Instant,
    /// The upstream's TCP connection was established; set only if a TLS handshake follows.
    pub reached: Option<Instant>,
    /// The upstream connection was ready, with its handshake complete.
    pub connected: Option<Instant>,
    /// The request's last byte was forwarded.
    pub sent: Option<Instant>,
    /// The first byte of the response arrived.
    pub first_byte: Option<Instant>,
    /// The last byte of the response arrived.
    pub last_byte: Option<Instant>,
}

impl Times {
    pub(crate) fn new(accepted: Instant, head: Instant, now: Instant) -> Self {
        Self {
            accepted,
            head,
            attempt: now,
            reached: None,
            connected: None,
            sent: None,
            first_byte: None,
            last_byte: None,
        }
    }

    /// The steps for a log line, in milliseconds since the accept.
    pub(crate) fn until(self, end: Instant) -> impl fmt::Display {
        Until { times: self, end }
    }
}

struct Until {
    times: Times,
    end: Instant,
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Times { accepted, head, attempt, connected, sent, first_byte, last_byte, .. } = self.times;
        let steps = [
            ("head", Some(head)),
            ("attempt", Some(attempt)),
            ("connected", connected),
            ("sent", sent),
            ("first_byte", first_byte),
            ("last_byte", last_byte),
            ("end", Some(self.end)),
        ];
        let mut between = "";
        for (name, at) in steps {
            let Some(at) = at else { continue };
            let ms = at.saturating_duration_since(accepted).as_secs_f64() * 1000.0;
            write!(f, "{between}{name}={ms:.1}")?;
            between = " ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn steps_that_did_not_happen_are_left_out() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut times = Times::new(start, after(2), after(2));
        times.sent = Some(after(3));
        assert_eq!(times.until(after(60_003)).to_string(), "head=2.0 attempt=2.0 sent=3.0 end=60003.0");
    }
}
