//! What an experiment says about its network (`[net]`).

use serde::{Deserialize, Serialize};

/// The longest round trip that makes sense: a queue of ours holds all that is on the way.
const MOST_RTT_MS: f64 = 2_000.0;
/// Beyond this TCP hardly moves, and a run would measure its time-outs.
const MOST_LOSS_PERCENT: f64 = 20.0;
/// Any IPv4 host takes packets of this size (RFC 791); below, TCP has no room to work.
const LEAST_MTU: u16 = 576;
/// Jumbo frames.
const MOST_MTU: u16 = 9_000;
const DEFAULT_MTU: u16 = 1_500;

/// `[net]`: each key is a factor too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// What joins the processes.
    pub kind: Kind,
    /// The round-trip time that is added, in milliseconds, as `ping` would show it: half of it on each way. 0 to 2000.
    pub rtt_ms: f64,
    /// Of 100 packets so many are lost, each by itself, on each way. 0 to 20.
    pub loss_percent: f64,
    /// The largest IP packet in bytes, 576 to 9000; only for `veth`, where 1500 is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
    /// The side on which round-trip time and loss lie.
    pub between: Between,
}

/// What joins the processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The machine's own loopback interface.
    #[default]
    Loopback,
    /// A network namespace for each of load engine, gateway and origin, joined by veth pairs.
    Veth,
}

/// Where the round-trip time and the loss lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Between {
    /// Between load engine and gateway.
    #[default]
    Client,
    /// Between gateway and origin.
    Upstream,
    /// On either side: a request that goes through has the round trip twice.
    Both,
}

/// A value that is out of range, or does not go with another.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("net.{key}: {message}")]
pub struct Unfit {
    /// The key in `[net]`.
    pub key: &'static str,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl Network {
    /// Whether the values can be had, each and together.
    ///
    /// # Errors
    /// The first key that cannot, with what is allowed.
    pub fn check(&self) -> Result<(), Unfit> {
        let unfit = |key, message: String| Err(Unfit { key, message });
        let (rtt, loss) = (("rtt_ms", self.rtt_ms), ("loss_percent", self.loss_percent));
        for ((key, value), most) in [(rtt, MOST_RTT_MS), (loss, MOST_LOSS_PERCENT)] {
            if !(0.0..=most).contains(&value) {
                return unfit(key, format!("{value}: allowed are 0 to {most}"));
            }
        }
        if let Some(mtu) = self.mtu.filter(|mtu| !(LEAST_MTU..=MOST_MTU).contains(mtu)) {
            return unfit("mtu", format!("{mtu}: allowed are {LEAST_MTU} to {MOST_MTU}"));
        }
        if self.kind == Kind::Loopback {
            let mtu = ("mtu", self.mtu.map_or(0.0, f64::from));
            if let Some((key, value)) = [mtu, rtt, loss].into_iter().find(|(_, value)| *value > 0.0) {
                return unfit(key, format!("{value}: loopback takes none; net.kind = \"veth\" does"));
            }
        }
        Ok(())
    }

    /// Whether there is anything to delay or to lose.
    pub fn is_emulated(&self) -> bool {
        self.rtt_ms > 0.0 || self.loss_percent > 0.0
    }

    /// The largest IP packet between the namespaces, in bytes.
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
            ("kind = 'veth'\nrtt_ms = -1", "net.rtt_ms: -1: allowed are 0 to 2000"),
            ("kind = 'veth'\nrtt_ms = nan", "net.rtt_ms: NaN: allowed are 0 to 2000"),
            ("kind = 'veth'\nloss_percent = 21", "net.loss_percent: 21: allowed are 0 to 20"),
            ("kind = 'veth'\nmtu = 575", "net.mtu: 575: allowed are 576 to 9000"),
            ("mtu = 1500", "net.mtu: 1500: loopback takes none; net.kind = \"veth\" does"),
            ("rtt_ms = 1", "net.rtt_ms: 1: loopback takes none; net.kind = \"veth\" does"),
            ("loss_percent = 1", "net.loss_percent: 1: loopback takes none"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
