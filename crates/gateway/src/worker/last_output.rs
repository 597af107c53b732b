//! Clients that still read the last output of streams whose exchanges are over.

use super::Worker;
use super::timers::{last_limit_of, progress};
use crate::deadlines::Limit;
use crate::h2::H2;
use crate::keys::ClientId;
use crate::reason::Reason;
use std::time::Instant;
use weir_http2::{ErrorCode, StreamNo};
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// The first instant at which one of a client's streams without an exchange exceeds a limit, and that limit.
    #[cold]
    pub(super) fn last_output_limit(&mut self, id: ClientId) -> Option<(Instant, Limit)> {
        let nearest =
            self.last_output_limits(id).into_iter().map(|(_, limit)| limit).min_by_key(|(at, _)| *at);
        if let Some(client) = self.clients.get_mut(id) {
            // `body_deadlines` stores the deadline of the client's current wait while its timer is set to the limit.
            match nearest {
                Some(_) => _ = client.body_deadlines.get_or_insert_default(),
                None => client.body_deadlines = None,
            }
        }
        nearest
    }

    /// Resets the streams without an exchange that have exceeded a limit.
    #[cold]
    pub(super) fn end_slow_streams(&mut self, id: ClientId) {
        let now = self.core.net.now();
        for (no, (at, limit)) in self.last_output_limits(id) {
            if let Some(h2) = self.h2_of(id).filter(|_| at <= now) {
                h2.abort(no, ErrorCode::CANCEL);
                self.note_end_of_client(id, &limit.reason());
            }
        }
    }

    /// Resets the streams whose last output the client does not read; returns `false` if there is no such stream.
    pub(super) fn abort_last_output(&mut self, id: ClientId) -> bool {
        let aborted = self.h2_of(id).map_or(0, H2::abort_last_output);
        for _ in 0..aborted {
            self.note_end_of_client(id, &Reason::ClientStalled);
        }
        aborted > 0
    }

    /// The nearest limit of each stream without an exchange.
    fn last_output_limits(&mut self, id: ClientId) -> Vec<(StreamNo, (Instant, Limit))> {
        let now = self.core.net.now();
        let Some(client) = self.clients.present_mut(id) else { return Vec::new() };
        let streams = client.h2.as_ref().map(|h2| h2.with_last_output()).unwrap_or_default();
        let limit = |no| {
            let response = progress(client, Some(no), false);
            let deadlines = client.h2.as_mut()?.deadlines_of(no);
            Some((no, last_limit_of(deadlines, now, response, &self.core.plan)?))
        };
        streams.into_iter().filter_map(limit).collect()
    }
}
