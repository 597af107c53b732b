//! The settings and limits that an owner chooses for a connection.

use crate::budget::Budgets;
use crate::{Limits, Settings};

/// Settings and limits of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Our settings, which apply to the peer once it has acknowledged them. `enable_push` has no effect: a client never
    /// allows push. `max_concurrent_streams` also limits the streams that a client [opens](Connection::open).
    pub settings: Settings,
    /// Limits on a field section. `settings.max_header_list_size` should announce `head_bytes`.
    pub limits: Limits,
    /// The maximum size of a field block in bytes. The owner must be able to [hold](Connection::most_held) a whole
    /// block.
    pub block_bytes: usize,
    /// The maximum number of CONTINUATION frames of a field block.
    pub continuations: usize,
    /// Limits on the peer's frames that cost more to receive than to send.
    pub budgets: Budgets,
    /// For a server: whether to take the priorities of requests from their `priority` field and from PRIORITY_UPDATE
    /// frames (RFC 9218). If false, the field and the frames have no effect.
    pub priorities: bool,
}

impl Default for Config {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            settings: Settings {
                enable_push: false,
                max_concurrent_streams: Some(100),
                initial_window_size: 64 * 1024,
                max_header_list_size: Some(limits.head_bytes as u32),
                no_rfc7540_priorities: true,
                ..Settings::default()
            },
            limits,
            block_bytes: limits.head_bytes,
            continuations: 8,
            budgets: Budgets::default(),
            priorities: false,
        }
    }
}
