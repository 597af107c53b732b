//! A case: the unit that a client repeats, and that costs and rates refer to.

use super::Side;
use serde::Deserialize;
use std::fmt;
use weir_load::Policy;
use weir_load::result::Cost;

/// The unit that a client repeats.
///
/// A run with one request or none per TLS connection measures its handshakes: they cost far more than the
/// request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Case {
    Request,
    HandshakeFull,
    HandshakeResumed,
    /// A handshake that resumes a session on this many of a thousand connections, and is full on the others.
    HandshakeMixed(u16),
}

impl Case {
    /// The case of a connection policy on this client side.
    pub(crate) fn of(policy: &Policy, client: Side) -> Self {
        if !client.is_tls() || !policy.per_connection.is_single() {
            return Self::Request;
        }
        match policy.resume {
            0.0 => Self::HandshakeFull,
            100.0 => Self::HandshakeResumed,
            percent => Self::HandshakeMixed((percent * 10.0).round() as u16),
        }
    }

    /// Whether it counts handshakes.
    pub(crate) fn is_handshake(self) -> bool {
        self != Self::Request
    }

    /// The unit: `request` or `handshake`.
    pub(crate) fn unit(self) -> &'static str {
        if self.is_handshake() { "handshake" } else { "request" }
    }

    /// CPU microseconds per unit.
    pub(crate) fn cpu_us(self, cost: &Cost) -> Option<f64> {
        if self.is_handshake() { cost.cpu_us_per_handshake } else { cost.cpu_us_per_request }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request => formatter.pad("request"),
            Self::HandshakeFull => formatter.pad("handshake-full"),
            Self::HandshakeResumed => formatter.pad(RESUMED),
            Self::HandshakeMixed(mille) => formatter.pad(&format!("{RESUMED}-{}", f64::from(*mille) / 10.0)),
        }
    }
}

const RESUMED: &str = "handshake-resumed";

impl TryFrom<String> for Case {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let percent = || text.strip_prefix(RESUMED)?.strip_prefix('-')?.parse::<f64>().ok();
        match text.as_str() {
            "request" => Ok(Self::Request),
            "handshake-full" => Ok(Self::HandshakeFull),
            RESUMED => Ok(Self::HandshakeResumed),
            _ => match percent().filter(|percent| (0.0..=100.0).contains(percent)) {
                Some(percent) => Ok(Self::HandshakeMixed((percent * 10.0).round() as u16)),
                None => Err(format!("unknown case `{text}`")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_load::PerConnection;

    #[test]
    fn a_case_follows_from_policy_and_side_and_its_name_is_read_back() {
        let once = PerConnection::Requests { least: 1, most: 1 };
        let several = PerConnection::Requests { least: 1, most: 5 };
        for (per_connection, resume, client, name) in [
            (PerConnection::Unlimited, 0.0, Side::H1, "request"),
            (several, 50.0, Side::H1, "request"),
            (once, 0.0, Side::H1c, "request"),
            (once, 0.0, Side::H1, "handshake-full"),
            (PerConnection::Handshake, 0.0, Side::H1, "handshake-full"),
            (PerConnection::Handshake, 100.0, Side::H1, "handshake-resumed"),
            (once, 30.0, Side::H1, "handshake-resumed-30"),
            (once, 12.5, Side::H1, "handshake-resumed-12.5"),
        ] {
            let case = Case::of(&Policy { per_connection, resume, ..Policy::default() }, client);
            assert_eq!(case.to_string(), name);
            assert_eq!(Case::try_from(name.to_owned()), Ok(case));
            assert_eq!(case.is_handshake(), name != "request");
        }
        for name in ["", "handshake", "handshake-resumed-", "handshake-resumed-101", "handshake-resumed-x"] {
            assert!(Case::try_from(name.to_owned()).is_err(), "{name}");
        }
    }
}
