//! The time for `Date` fields (RFC 9110 section 6.6.1).

use httpdate::HttpDate;
use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The `Date` field line, formatted at most once per second.
#[derive(Debug)]
pub(crate) struct Date {
    line: [u8; LINE.len()],
    /// The start of the next second; `None` before the first use.
    until: Option<Instant>,
}

impl Date {
    pub(crate) fn new() -> Self {
        Self { line: *LINE, until: None }
    }

    /// The line for a response in the turn at `now`.
    #[inline]
    pub(crate) fn line(&mut self, now: Instant) -> &[u8] {
        if self.until.is_none_or(|until| now >= until) {
            self.write(now, SystemTime::now());
        }
        &self.line
    }

    #[cold]
    fn write(&mut self, now: Instant, time: SystemTime) {
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut value = &mut self.line[NAME..];
        // All dates up to `LAST` have the same length.
        let written = write!(value, "{}", HttpDate::from(UNIX_EPOCH + since_epoch.min(LAST)));
        debug_assert!(written.is_ok(), "a date is longer than others");
        self.until =
            Some(now + Duration::from_secs(1) - Duration::from_nanos(since_epoch.subsec_nanos().into()));
    }
}

const LINE: &[u8; 37] = b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";

/// The number of bytes before the value.
const NAME: usize = b"Date: ".len();

/// The last second of the year 9999: the format has four digits for the year.
const LAST: Duration = Duration::from_secs(253_402_300_799);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_written_anew_when_the_second_is_over() {
        let (mut date, start) = (Date::new(), Instant::now());
        let at = |ms| UNIX_EPOCH + Duration::from_millis(ms);
        date.write(start, at(784_111_777_400));
        assert_eq!(date.line, *b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
        assert_eq!(date.until, Some(start + Duration::from_millis(600)));
        assert_eq!(date.line(start + Duration::from_millis(599)), b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
        let now = date.line(start + Duration::from_millis(600)).to_vec();
        let now = std::str::from_utf8(&now).unwrap().trim_start_matches("Date: ").trim();
        let age = SystemTime::now().duration_since(httpdate::parse_http_date(now).unwrap()).unwrap();
        assert!(age < Duration::from_secs(60), "{now}");
    }

    #[test]
    fn no_clock_is_too_wrong() {
        let mut date = Date::new();
        for (seconds, written) in
            [(0, "Thu, 01 Jan 1970 00:00:00 GMT"), (1_000_000_000_000, "Fri, 31 Dec 9999 23:59:59 GMT")]
        {
            date.write(Instant::now(), UNIX_EPOCH + Duration::from_secs(seconds));
            assert_eq!(date.line, *format!("Date: {written}\r\n").as_bytes());
        }
    }
}
