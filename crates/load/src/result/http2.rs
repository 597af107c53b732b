//! The figures of HTTP/2.

use super::Latency;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The figures of HTTP/2, within the window unless it says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Http2Figures {
    /// Requests sent per write to a socket: the engine's batch factor.
    pub requests_per_write: f64,
    /// Responses completed per read from a socket: depends on the server's batch factor.
    pub responses_per_read: f64,
    /// Bytes of HEADERS and CONTINUATION frames received per response, with frame headers.
    pub header_bytes_per_response: f64,
    /// Requests that the server did not process: RST_STREAM with `refused_stream`, or a stream above the last of GOAWAY.
    pub refused: u64,
    /// Refused requests that were sent again.
    pub retried: u64,
    /// RST_STREAM frames received, by code.
    pub resets: BTreeMap<String, u64>,
    /// GOAWAY frames received, by code.
    pub goaways: BTreeMap<String, u64>,
    /// The wait for a stream of requests planned within the window: from the planned instant, or a refusal, to the
    /// first byte. Requests that did not wait are not in it.
    pub stream_wait: Latency,
    /// How long request bodies waited for a flow-control window, their stream's or the connection's. Bodies that did not
    /// wait are not in it, nor those of which a part was never sent.
    #[serde(default)]
    pub window_wait: Latency,
    /// How long they waited for the socket, which had yet to take 256 KiB of the connection's output.
    #[serde(default)]
    pub wire_wait: Latency,
    /// The server's first settings on each connection of the whole run.
    pub settings: Vec<PeerSettings>,
}

/// Settings of the server (RFC 9113, section 6.5.2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerSettings {
    /// SETTINGS_MAX_CONCURRENT_STREAMS; `None` is no limit.
    pub max_concurrent_streams: Option<u32>,
    /// SETTINGS_INITIAL_WINDOW_SIZE: the window of request bodies, in bytes.
    pub initial_window_size: u32,
    /// SETTINGS_MAX_FRAME_SIZE.
    pub max_frame_size: u32,
    /// SETTINGS_HEADER_TABLE_SIZE.
    pub header_table_size: u32,
    /// SETTINGS_MAX_HEADER_LIST_SIZE; `None` is no limit.
    pub max_header_list_size: Option<u32>,
    /// Number of connections.
    pub count: u64,
}

impl Http2Figures {
    /// Warnings about a run with `streams` streams per connection.
    pub(crate) fn warnings(&self, streams: u32) -> Vec<String> {
        let mut warnings = Vec::new();
        let limits = self.settings.iter().filter_map(|settings| settings.max_concurrent_streams);
        if let Some(limit) = limits.min().filter(|limit| *limit < streams) {
            warnings.push(format!(
                "the server allows {limit} streams per connection, fewer than --streams {streams}: requests wait in \
                 the engine (stream wait); use more connections"
            ));
        }
        for (code, count) in self.goaways.iter().filter(|(code, _)| *code != "no_error") {
            warnings.push(format!("the server ended {count} connections with GOAWAY {code}"));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_below_the_streams_is_a_warning() {
        let settings = |limit| PeerSettings { max_concurrent_streams: limit, ..PeerSettings::default() };
        let mut figures = Http2Figures {
            settings: vec![settings(None), settings(Some(100)), settings(Some(128))],
            goaways: [("no_error".into(), 5)].into(),
            ..Http2Figures::default()
        };
        assert_eq!(figures.warnings(100), [""; 0]);
        assert!(
            figures.warnings(101)[0].contains("allows 100 streams per connection, fewer than --streams 101")
        );
        figures.goaways = [("enhance_your_calm".into(), 5)].into();
        assert_eq!(figures.warnings(1), ["the server ended 5 connections with GOAWAY enhance_your_calm"]);
    }
}
