//! Instants as text, without an allocation per line.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;

/// Formats instants. It formats date and time once per second, and adds only the milliseconds to each line.
#[derive(Clone, Debug, Default)]
pub(in crate::observe) struct Clock {
    second: Option<u64>,
    /// The instant up to the second, such as `2026-11-25T04:28:12.`.
    text: String,
}

impl Clock {
    /// Appends the instant in UTC, with milliseconds (RFC 3339).
    pub(in crate::observe) fn write(&mut self, at: SystemTime, out: &mut Vec<u8>) {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        if self.second != Some(since.as_secs()) {
            self.second = Some(since.as_secs());
            self.text = up_to_second(UNIX_EPOCH + Duration::from_secs(since.as_secs()));
        }
        out.extend_from_slice(self.text.as_bytes());
        let digit = |n: u32| b'0' + (n % 10) as u8;
        let ms = since.subsec_millis();
        out.extend_from_slice(&[digit(ms / 100), digit(ms / 10), digit(ms), b'Z']);
    }
}

fn up_to_second(at: SystemTime) -> String {
    let at = OffsetDateTime::from(at);
    let ((year, month, day), (hour, minute, second)) = (at.to_calendar_date(), at.to_hms());
    format!("{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.", u8::from(month))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_in_utc() {
        let mut clock = Clock::default();
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (7, "1970-01-01T00:00:00.007Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_782_399_120, "2000-02-28T23:59:59.120Z"),
            (1_767_225_599_000, "2025-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            let mut out = Vec::new();
            clock.write(UNIX_EPOCH + Duration::from_millis(ms), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
