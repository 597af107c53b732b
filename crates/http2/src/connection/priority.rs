//! Priorities of requests (RFC 9218, sections 5, 7 and 8).

use super::event::StreamNo;
use super::{Connection, ConnectionError};
use crate::frame::FrameError;
use crate::settings::MAX_WINDOW;
use crate::{Abuse, Head, Priority};
use weir_http::FieldName;

/// The maximum number of stored priorities of streams that are not open yet. Clients send their PRIORITY_UPDATE frames
/// just before the requests.
const EARLY: usize = 16;

impl Connection {
    /// The priority of a stream: the client's, or the default without
    /// [`Config::priorities`](super::Config::priorities), with the changes of
    /// [`update_priority`](Self::update_priority). The default for a stream that the owner has released.
    #[must_use]
    pub fn priority(&mut self, stream: StreamNo) -> Priority {
        self.streams.get(stream.0).map(|stream| stream.priority).unwrap_or_default()
    }

    /// Applies the `priority` field of a response: its parameters replace those of the client (RFC 9218, section 8).
    pub fn update_priority(&mut self, stream: StreamNo, value: &[u8]) {
        if let Some(stream) = self.streams.get(stream.0) {
            stream.priority = stream.priority.updated(value);
        }
    }

    /// Handles a PRIORITY_UPDATE frame; `on` is the stream ID in its header, which must be 0.
    pub(super) fn priority_update(&mut self, on: u32, payload: &[u8]) -> Result<(), ConnectionError> {
        self.spend(Abuse::NoEffect)?;
        if on != 0 {
            return Err(FrameError::StreamGiven.into());
        }
        let (id, value) = payload.split_first_chunk().ok_or(FrameError::BadLength)?;
        let id = u32::from_be_bytes(*id) & MAX_WINDOW;
        if id == 0 {
            return Err(FrameError::StreamMissing.into());
        }
        if id.is_multiple_of(2) {
            // Even IDs are for pushed streams, and the server never pushes.
            return Err(ConnectionError::IdleStream);
        }
        let priority = Priority::default().updated(value);
        if let Some(stream) = self.streams.get(id) {
            stream.priority = priority;
        } else if self.is_idle(id) {
            self.early.retain(|(early, _)| *early != id);
            if self.early.len() < EARLY {
                self.early.push((id, priority));
            }
        }
        Ok(())
    }

    /// The priority of a new stream: from a PRIORITY_UPDATE frame before its request, or else from the request's
    /// fields.
    pub(super) fn first_priority(&mut self, id: u32, head: &Head) -> Priority {
        let early = self.early.iter().find(|(early, _)| *early == id).map(|(_, priority)| *priority);
        // No stream with a lower number can be opened later.
        self.early.retain(|(early, _)| *early > id);
        early.unwrap_or_else(|| {
            let fields = head.fields.iter().filter(|field| matches!(field.known, FieldName::Other));
            let values = fields.filter(|field| field.name.of(&head.bytes) == b"priority");
            values.fold(Priority::default(), |priority, field| priority.updated(field.value.of(&head.bytes)))
        })
    }
}
