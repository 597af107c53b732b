//! The network section of an experiment (`[net]`).

use serde::{Deserialize, Serialize};

/// Maximum round trip: a queue in memory holds everything in transit.
const MOST_RTT_MS: f64 = 2_000.0;
/// Beyond this, TCP hardly makes progress and a run measures its retransmission timeouts.
const MOST_LOSS_PERCENT: f64 = 20.0;
/// Every IPv4 host accepts packets of this size (RFC 791); below, TCP has no room.
const LEAST_MTU: u16 = 576;
/// Jumbo frames.
const MOST_MTU: u16 = 9_000;
const DEFAULT_MTU: u16 = 1_500;

/// `[net]`: each key is also a factor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// What connects the processes.
    pub kind: Kind,
    /// Added round-trip time in milliseconds, as shown by `ping`: half in each direction. 0 to 2000.
    pub rtt_ms: f64,
    /// Independent packet loss in each direction, in percent. 0 to 20.
    pub loss_percent: f64,
    /// The MTU in bytes, 576 to 9000; only for `veth` (default 1500).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
    /// The side with round-trip time and loss.
    pub between: Between,
}

/// What connects the processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The host's loopback interface.
    #[default]
    Loopback,
    /// A network namespace each for load engine, gateway and origin, connected by veth pairs.
    Veth,
}

/// Where round-trip time and loss apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Between {
    /// Between load engine and gateway.
    #[default]
    Client,
    /// Between gateway and origin.
    Upstream,
    /// On both sides: a proxied request has the round trip twice.
    Both,
}

/// A value out of range, or incompatible with another.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("net.{key}: {message}")]
pub struct Unfit {
    /// The key in `[net]`.
    pub key: &'static str,
    /// The value and what was expected.
    pub message: String,
}

impl Network {
    /// Checks each value and their combination.
    ///
    /// # Errors
    /// The first invalid key, with what was expected.
    pub fn check(&self) -> Result<(), Unfit> {
        let unfit = |key, message: String| Err(Unfit { key, message });
        let (rtt, loss) = (("rtt_ms", self.rtt_ms), ("loss_percent", self.loss_percent));
        for ((key, value), most) in [(rtt, MOST_RTT_MS), (loss, MOST_LOSS_PERCENT)] {
            if !(0.0..=most).contains(&value) {
                return unfit(key, format!("invalid value {value}: expected 0 to {most}"));
            }
        }
        if let Some(mtu) = self.mtu.filter(|mtu| !(LEAST_MTU..=MOST_MTU).contains(mtu)) {
            return unfit("mtu", format!("invalid value {mtu}: expected {LEAST_MTU} to {MOST_MTU}"));
        }
        if self.kind == Kind::Loopback {
            let mtu = ("mtu", self.mtu.map_or(0.0, f64::from));
            if let Some((key, value)) = [mtu, rtt, loss].into_iter().find(|(_, value)| *value > 0.0) {
                return unfit(
                    key,
                    format!(
                        "invalid value {value}: expected none with net.kind = \"loopback\"; use \"veth\""
                    ),
                );
            }
        }
        Ok(())
    }

    /// Whether there is delay or loss.
    pub fn is_emulated(&self) -> bool {
        self.rtt_ms > 0.0 || self.loss_percent > 0.0
    }

    /// The MTU between the namespaces, in bytes.
    pub(crate) fn mtu_bytes(&self) -> u16 {
        self.mtu.unwrap_or(DEFAULT_MTU)
    }
}

impl Between {
    pub(crate) fn client(self) -> bool {
        self != Self::Upstream
    }

    pub(crate) fn upstream(self) -> bool {
        self != Self::Client
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Network, String> {
        let network: Network =
            toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())?;
        network.check().map_err(|unfit| unfit.to_string())?;
        Ok(network)
    }

    #[test]
    fn nothing_said_is_loopback() {
        assert_eq!(read("").expect("good"), Network::default());
        assert_eq!(Network::default().kind, Kind::Loopback);
    }

    #[test]
    fn all_keys_are_read() {
        let text = "kind = 'veth'\nrtt_ms = 0.5\nloss_percent = 1\nmtu = 9000\nbetween = 'both'";
        let expected = Network {
            kind: Kind::Veth,
            rtt_ms: 0.5,
            loss_percent: 1.0,
            mtu: Some(9000),
            between: Between::Both,
        };
        assert_eq!(read(text), Ok(expected));
    }

    #[test]
    fn what_cannot_be_names_the_key_and_what_can() {
        for (text, expected) in [
            ("kind = 'tun'", "expected `loopback` or `veth`"),
            ("delay_ms = 1", "unknown field `delay_ms`"),
            ("kind = 'veth'\nrtt_ms = -1", "net.rtt_ms: invalid value -1: expected 0 to 2000"),
            ("kind = 'veth'\nrtt_ms = nan", "net.rtt_ms: invalid value NaN: expected 0 to 2000"),
            ("kind = 'veth'\nloss_percent = 21", "net.loss_percent: invalid value 21: expected 0 to 20"),
            ("kind = 'veth'\nmtu = 575", "net.mtu: invalid value 575: expected 576 to 9000"),
            (
                "mtu = 1500",
                "net.mtu: invalid value 1500: expected none with net.kind = \"loopback\"; use \"veth\"",
            ),
            (
                "rtt_ms = 1",
                "net.rtt_ms: invalid value 1: expected none with net.kind = \"loopback\"; use \"veth\"",
            ),
            ("loss_percent = 1", "net.loss_percent: invalid value 1: expected none with"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
