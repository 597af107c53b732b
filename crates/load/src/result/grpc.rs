//! The figures of gRPC.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The figures of gRPC calls within the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GrpcFigures {
    /// Messages given to connections, also of calls that failed.
    pub messages_sent: u64,
    /// `messages_sent` over the window's seconds.
    pub messages_sent_per_second: f64,
    /// Complete messages received, also of calls that failed.
    pub messages_received: u64,
    /// `messages_received` over the window's seconds.
    pub messages_received_per_second: f64,
    /// Statuses received, by name; `UNKNOWN` counts undefined and invalid ones, too.
    pub statuses: BTreeMap<String, u64>,
}
