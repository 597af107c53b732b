//! What handshakes came to, and what they agreed on.

use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use weir_tls::Group;

/// Handshakes counted by what was negotiated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Handshakes {
    /// Full handshakes of the whole run, those primed among them.
    pub full: u64,
    /// Resumed handshakes of the whole run by kind (`resume-1.2-id`, `resume-1.2-ticket`, `resume-1.3-psk`).
    pub resumed: BTreeMap<String, u64>,
    /// Handshakes that needed a HelloRetryRequest.
    pub hello_retry: u64,
    /// Full handshakes that were made before the warm-up so that there were sessions to resume.
    pub primed: u64,
    /// Handshakes of connections that were to resume and offered a session.
    pub offered: u64,
    /// Those of them that the server made a full handshake of.
    pub declined: u64,
    /// Connections that were to resume and had no session: each was made by a full handshake, and the run is invalid.
    pub had_nothing: u64,
    /// Handshakes that were finished within the window.
    pub in_window: u64,
    /// Resumptions among them.
    pub resumed_in_window: u64,
    /// `in_window` over the window's seconds.
    pub per_second: f64,
    /// Tickets of TLS 1.3 that had come by a connection's first answer, over the whole run, by the kind of its handshake.
    #[serde(default)]
    pub tickets: BTreeMap<String, Tickets>,
    /// Each combination that was negotiated, over the whole run.
    pub negotiated: Vec<Negotiated>,
}

/// How many tickets a connection was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tickets {
    /// The fewest.
    pub least: u32,
    /// The most.
    pub most: u32,
}

/// What handshakes agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Negotiated {
    /// `1.2` or `1.3`.
    pub version: String,
    /// The cipher suite.
    pub suite: String,
    /// The key exchange's group; `None` where there was no key exchange.
    #[serde(default, deserialize_with = "group")]
    pub group: Option<String>,
    /// The server's signature scheme; `None` in a resumption.
    pub signature: Option<String>,
    /// `full`, `resume-1.2-id`, `resume-1.2-ticket` or `resume-1.3-psk`.
    pub kind: String,
    /// Whether a HelloRetryRequest came first.
    pub hello_retry: bool,
    /// The application protocol.
    pub alpn: Option<String>,
    /// Certificates that the server sent; `None` in a resumption.
    pub chain_certificates: Option<u32>,
    /// Their bytes in all.
    pub chain_bytes: Option<u32>,
    /// How many handshakes.
    pub count: u64,
}

impl fmt::Display for Negotiated {
    /// The order of [`weir_tls::Facts`].
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.version, self.suite)?;
        for word in [&self.group, &self.signature].into_iter().flatten() {
            write!(formatter, " {word}")?;
        }
        write!(formatter, " {}", self.kind)?;
        if self.hello_retry {
            formatter.write_str(" hello-retry")?;
        }
        if let Some(alpn) = &self.alpn {
            write!(formatter, " alpn={alpn}")?;
        }
        if let (Some(certificates), Some(bytes)) = (self.chain_certificates, self.chain_bytes) {
            write!(formatter, " chain={certificates}/{bytes}")?;
        }
        Ok(())
    }
}

/// A group by the name that it has today: older results say `p-256` where newer ones say `p256`.
fn group<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let group = Option::<String>::deserialize(deserializer)?;
    Ok(group.map(|name| Group::spelling(&name).to_owned()))
}
