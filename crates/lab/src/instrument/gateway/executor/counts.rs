//! The test server's counters, as it serves them at `/stats`.

use crate::instrument::gateway::run::UpstreamHandshakes;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// The time allowed to the test server for a response.
const PATIENCE: Duration = Duration::from_secs(5);

/// Totals since its start.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct Counts {
    /// Connections accepted, the query's own included.
    pub(super) connections: u64,
    /// Requests, the query's own included.
    #[serde(default)]
    requests: u64,
    /// Those of them by HTTP/2, if the server counts them.
    requests_http2: Option<u64>,
    #[serde(default)]
    handshakes_full: u64,
    /// All resumptions, where they are not told apart.
    #[serde(default)]
    resumed: u64,
    #[serde(default)]
    resumed_12_id: u64,
    #[serde(default)]
    resumed_12_ticket: u64,
    #[serde(default)]
    resumed_13_psk: u64,
    /// Handshakes by what was negotiated, if the server counts them.
    #[serde(default)]
    negotiated: BTreeMap<String, u64>,
}

impl Counts {
    /// Queries the server at this address.
    pub(super) fn query(address: &str) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"GET /stats HTTP/1.1\r\nHost: origin\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Self::parse(&answer).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "its response has no number of connections")
        })
    }

    /// The body of a response. A chunked one of a few hundred bytes is one chunk.
    fn parse(answer: &str) -> Option<Self> {
        let (_head, body) = answer.split_once("\r\n\r\n")?;
        let object = body.get(body.find('{')?..=body.rfind('}')?)?;
        serde_json::from_str(object).ok()
    }

    fn all_resumed(&self) -> u64 {
        self.resumed + self.resumed_12_id + self.resumed_12_ticket + self.resumed_13_psk
    }

    /// The requests by HTTP/1.1 since an earlier query, but for this query's own; `None` if the server does not tell
    /// them apart.
    pub(super) fn http1_since(&self, before: &Self) -> Option<u64> {
        let http1 = |counts: &Self| Some(counts.requests.saturating_sub(counts.requests_http2?));
        Some(http1(self)?.saturating_sub(http1(before)? + 1))
    }

    /// The handshakes since an earlier query.
    pub(super) fn handshakes_since(&self, before: &Self) -> UpstreamHandshakes {
        let since = |(name, count): (&String, &u64)| {
            let more = count.saturating_sub(before.negotiated.get(name).copied().unwrap_or_default());
            (more > 0).then(|| (name.clone(), more))
        };
        UpstreamHandshakes {
            full: self.handshakes_full.saturating_sub(before.handshakes_full),
            resumed: self.all_resumed().saturating_sub(before.all_resumed()),
            negotiated: self.negotiated.iter().filter_map(since).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_in_the_body() {
        let answer = |body: &str| format!("HTTP/1.1 200 OK\r\nServer: weir-origin\r\n\r\n{body}");
        let connections = |answer: &str| Counts::parse(answer).map(|counts| counts.connections);
        assert_eq!(connections(&answer("{\"requests\":7,\"connections\":3}")), Some(3));
        assert_eq!(connections(&answer("1f\r\n{\"requests\":7,\"connections\":3}\r\n0\r\n\r\n")), Some(3));
        assert_eq!(connections(&answer("{\"requests\":7}")), None);
        assert_eq!(connections("HTTP/1.1 200 OK\r\n"), None);
    }

    #[test]
    fn requests_by_http1_are_those_of_the_target_alone() {
        let counts = |requests, http2| Counts { requests, requests_http2: http2, ..Counts::default() };
        let before = counts(1, Some(0));
        assert_eq!(counts(502, Some(500)).http1_since(&before), Some(0), "each query is one itself");
        assert_eq!(counts(502, Some(493)).http1_since(&before), Some(7));
        assert_eq!(counts(502, None).http1_since(&before), None);
    }

    #[test]
    fn handshakes_are_those_since_the_earlier_query() {
        let counts = |full, ticket, psk, named: &[(&str, u64)]| Counts {
            handshakes_full: full,
            resumed_12_ticket: ticket,
            resumed_13_psk: psk,
            negotiated: named.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            ..Counts::default()
        };
        let (before, after) = (counts(1, 1, 0, &[("a", 2)]), counts(5, 2, 3, &[("a", 2), ("b", 7)]));
        let since = after.handshakes_since(&before);
        assert_eq!((since.full, since.resumed), (4, 4));
        assert_eq!(since.negotiated.into_iter().collect::<Vec<_>>(), [("b".to_owned(), 7)]);
    }
}
