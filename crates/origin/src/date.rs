//! The `Date` field (RFC 9110 section 6.6.1), updated once per second.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The current date as 29 bytes of text.
pub(crate) struct Date {
    text: String,
    until: Instant,
}

impl Date {
    pub(crate) fn new(now: Instant) -> Self {
        Self { text: String::new(), until: now }
    }

    /// The text at `now`, the loop's time.
    pub(crate) fn at(&mut self, now: Instant) -> &[u8] {
        if now >= self.until {
            let wall = SystemTime::now();
            let fraction = wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
            self.text = httpdate::fmt_http_date(wall);
            self.until = now + Duration::from_nanos(1_000_000_000 - u64::from(fraction));
        }
        self.text.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_that_of_the_second_and_changes_with_it() {
        let now = Instant::now();
        let mut date = Date::new(now);
        let first = date.at(now).to_vec();
        let parsed = httpdate::parse_http_date(std::str::from_utf8(&first).unwrap()).unwrap();
        assert!(SystemTime::now().duration_since(parsed).unwrap() < Duration::from_secs(5));
        let until = date.until;
        assert!(until > now && until <= now + Duration::from_secs(1));
        date.text.clear();
        assert_eq!(date.at(until - Duration::from_nanos(1)), b"", "kept until the second is over");
        assert_eq!(date.at(until).len(), 29);
    }
}
