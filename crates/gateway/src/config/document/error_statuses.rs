//! Statuses of error responses, as sets and in words.

use std::fmt;
use std::ops::RangeInclusive;

/// Error statuses, 400 to 599.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorStatuses([u64; 4]);

impl ErrorStatuses {
    pub(super) const ALL: RangeInclusive<u16> = 400..=599;

    fn place(status: u16) -> Option<(usize, u64)> {
        let bit = usize::from(status.checked_sub(*Self::ALL.start())?);
        (status <= *Self::ALL.end()).then_some((bit / 64, 1 << (bit % 64)))
    }

    /// Whether `status` is in the set.
    pub(crate) fn contains(self, status: u16) -> bool {
        Self::place(status).is_some_and(|(word, bit)| self.0[word] & bit != 0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }

    pub(super) fn insert(&mut self, statuses: RangeInclusive<u16>) {
        for (word, bit) in statuses.filter_map(Self::place) {
            self.0[word] |= bit;
        }
    }
}

impl From<RangeInclusive<u16>> for ErrorStatuses {
    /// The error statuses in the range.
    fn from(range: RangeInclusive<u16>) -> Self {
        let mut statuses = Self::default();
        statuses.insert(range);
        statuses
    }
}

impl fmt::Display for ErrorStatuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut separator, mut next) = ("", *Self::ALL.start());
        while let Some(first) = (next..=*Self::ALL.end()).find(|status| self.contains(*status)) {
            let last = (first..=*Self::ALL.end()).take_while(|status| self.contains(*status)).last();
            let last = last.unwrap_or(first);
            match (first, last) {
                (first, last) if first == last => write!(f, "{separator}{first}")?,
                (first, last) => write!(f, "{separator}{first}-{last}")?,
            }
            (separator, next) = (" ", last + 1);
        }
        Ok(())
    }
}

/// The spelling of statuses, for error messages.
pub(super) const STATUSES: &str = "a status such as \"503\", \"502-504\" or \"5xx\"";

/// Parses a status, a range or a class of statuses.
pub(super) fn statuses(text: &str) -> Option<RangeInclusive<u16>> {
    match text {
        "4xx" => return Some(400..=499),
        "5xx" => return Some(500..=599),
        _ => {}
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    let is_within = |status| ErrorStatuses::ALL.contains(&status);
    (is_within(first) && is_within(last) && first <= last).then_some(first..=last)
}
