//! The versions of HTTP of a run: one for all connections, or both by weight.

use super::HttpVersion;
use crate::result::ByVersion;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The versions of HTTP that the connections speak; each connection speaks one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersions {
    /// One for all connections.
    One(HttpVersion),
    /// Both, by the weight of their connections: 1 to 1000000 each.
    Both(ByVersion<u32>),
}

/// Valid weights.
const WEIGHTS: RangeInclusive<u32> = 1..=1_000_000;

const EXPECTED: &str = "expected 1.1, 2, or the weights of both, 1 to 1000000, such as 1.1=3,2=1";

impl HttpVersions {
    /// Whether connections speak this version.
    pub fn speak(self, version: HttpVersion) -> bool {
        match self {
            Self::One(one) => one == version,
            Self::Both(_) => true,
        }
    }

    /// The number of versions, 1 or 2.
    pub fn count(self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Both(_) => 2,
        }
    }

    /// Divides `all` connections: by weight to the nearest whole number, half a connection to HTTP/1.1.
    pub(crate) fn divide(self, all: u32) -> ByVersion<u32> {
        match self {
            Self::One(HttpVersion::Http1) => ByVersion { http1: all, http2: 0 },
            Self::One(HttpVersion::Http2) => ByVersion { http1: 0, http2: all },
            Self::Both(weights) => {
                let ByVersion { http1: weight, http2: other } = weights.map(u64::from);
                let sum = (weight + other).max(1);
                let http1 = ((u64::from(all) * weight + sum / 2) / sum) as u32;
                ByVersion { http1, http2: all - http1 }
            }
        }
    }
}

impl From<HttpVersion> for HttpVersions {
    fn from(version: HttpVersion) -> Self {
        Self::One(version)
    }
}

impl fmt::Display for HttpVersions {
    /// As in `--http`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(version) => formatter.write_str(version.word()),
            Self::Both(ByVersion { http1, http2 }) => write!(formatter, "1.1={http1},2={http2}"),
        }
    }
}

impl FromStr for HttpVersions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(version) = HttpVersion::of_word(text) {
            return Ok(Self::One(version));
        }
        let weights: Option<Vec<_>> = text.split(',').map(weight).collect();
        match weights.as_deref() {
            Some(
                [(HttpVersion::Http1, http1), (HttpVersion::Http2, http2)]
                | [(HttpVersion::Http2, http2), (HttpVersion::Http1, http1)],
            ) => Ok(Self::Both(ByVersion { http1: *http1, http2: *http2 })),
            _ => Err(EXPECTED.to_string()),
        }
    }
}

/// A version and its weight.
fn weight(text: &str) -> Option<(HttpVersion, u32)> {
    let (word, weight) = text.split_once('=')?;
    let weight = weight.parse().ok().filter(|weight| WEIGHTS.contains(weight))?;
    Some((HttpVersion::of_word(word)?, weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_weights() {
        let both = |http1, http2| HttpVersions::Both(ByVersion { http1, http2 });
        for (text, versions, shown) in [
            ("1.1", HttpVersion::Http1.into(), "1.1"),
            ("1", HttpVersion::Http1.into(), "1.1"),
            ("2", HttpVersion::Http2.into(), "2"),
            ("1.1=3,2=1", both(3, 1), "1.1=3,2=1"),
            ("2=1,1=3", both(3, 1), "1.1=3,2=1"),
            ("1=1000000,2=1000000", both(1_000_000, 1_000_000), "1.1=1000000,2=1000000"),
        ] {
            assert_eq!(text.parse(), Ok(versions), "{text}");
            assert_eq!(versions.to_string(), shown);
        }
        for text in [
            "",
            "3",
            "1.0",
            "1,2",
            "1.1=3",
            "2=1",
            "1=3,1.1=1",
            "2=1,2=1",
            "1=0,2=1",
            "1=1000001,2=1",
            "1=3,2=",
            "1=3,=1",
            "1=3,2=1,",
            "1=3,2=1,2=1",
            "1=3 2=1",
            "1=-1,2=1",
            "1=1.5,2=1",
            "1=3,3=1",
        ] {
            assert_eq!(text.parse::<HttpVersions>(), Err(EXPECTED.to_string()), "{text}");
        }
    }

    #[test]
    fn connections_by_weight() {
        for (weights, all, http1, http2) in [
            ("1=3,2=1", 4, 3, 1),
            ("1=3,2=1", 64, 48, 16),
            ("1=1,2=3", 64, 16, 48),
            ("1=1,2=1", 5, 3, 2),
            ("1=2,2=1", 64, 43, 21),
            ("1=1,2=2", 64, 21, 43),
            ("1=1000,2=1", 64, 64, 0),
            ("1=1,2=1000", 64, 0, 64),
            ("1=1000000,2=1000000", 1_000_000, 500_000, 500_000),
        ] {
            let versions: HttpVersions = weights.parse().unwrap();
            assert_eq!(versions.divide(all), ByVersion { http1, http2 }, "{all} by {weights}");
        }
        // Invalid weights divide, too: the check reports the version without a connection.
        for (http1, http2, expected) in [(0, 0, 0), (0, 1, 0), (1, 0, 9), (u32::MAX, u32::MAX, 5)] {
            assert_eq!(HttpVersions::Both(ByVersion { http1, http2 }).divide(9).http1, expected);
        }
        assert_eq!(HttpVersions::from(HttpVersion::Http1).divide(7), ByVersion { http1: 7, http2: 0 });
        assert_eq!(HttpVersions::from(HttpVersion::Http2).divide(7), ByVersion { http1: 0, http2: 7 });
    }

    #[test]
    fn no_connection_is_lost_and_none_is_more_than_half_off() {
        for all in 2..200 {
            for (http1, http2) in (1..12).flat_map(|one| (1..12).map(move |two| (one, two))) {
                let divided = HttpVersions::Both(ByVersion { http1, http2 }).divide(all);
                assert_eq!(divided.http1 + divided.http2, all);
                let exact = f64::from(all * http1) / f64::from(http1 + http2);
                assert!((f64::from(divided.http1) - exact).abs() <= 0.5, "{all} by {http1}:{http2}");
            }
        }
    }
}
