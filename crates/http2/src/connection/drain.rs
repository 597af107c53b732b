//! GOAWAY: a drain in two steps, and the end after an error (RFC 9113, section 6.8).

use super::{Connection, ConnectionError, Role};
use crate::settings::MAX_WINDOW;
use crate::{ErrorCode, frame};

/// The GOAWAY frames that this side has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drain {
    No,
    /// The first GOAWAY was sent, with a PING whose acknowledgement shows that the peer has read it. Since then, `late`
    /// requests have arrived.
    Announced {
        late: u32,
    },
    /// The GOAWAY with the last stream was sent; streams above it are ignored.
    Final(u32),
}

/// The payloads of our own PING frames.
pub(super) const DRAIN_PING: [u8; 8] = *b"\0\0\0drain";
pub(super) const OWNER_PING: [u8; 8] = *b"\0\0\0alive";

/// The greatest stream ID: the last stream of the first GOAWAY.
const ANY_STREAM: u32 = MAX_WINDOW;

/// The number of requests after the first GOAWAY at which the second GOAWAY is sent without the peer's acknowledgement.
/// Fewer requests than this are in transit, and a peer that continues to send cannot hold the connection open.
const MAX_LATE: u32 = 1000;

/// Whether the peer opened the stream after our last GOAWAY.
pub(super) fn is_beyond(drain: Drain, id: u32) -> bool {
    matches!(drain, Drain::Final(last) if id > last)
}

impl Connection {
    /// Begins to drain the connection. A server announces the close with GOAWAY(2^31-1), accepts requests in transit
    /// for one round trip, and then ignores later ones. A client opens no more streams. The owner closes the connection
    /// when it [is drained](Self::is_drained), or after a timeout.
    pub fn go_away(&mut self) {
        if self.drain != Drain::No {
            return;
        }
        if self.role == Role::Client {
            self.finish_drain();
        } else {
            self.drain = Drain::Announced { late: 0 };
            frame::write_go_away(ANY_STREAM, ErrorCode::NO_ERROR, &mut self.control);
            frame::write_ping(DRAIN_PING, false, &mut self.control);
        }
    }

    /// Counts a request that arrived after the first GOAWAY.
    #[cold]
    pub(super) fn note_late_request(&mut self, late: u32) {
        self.drain = Drain::Announced { late: late + 1 };
        if late + 1 >= MAX_LATE {
            self.finish_drain();
        }
    }

    /// Queues the GOAWAY that reports the peer's violation. The owner then sends the output of [`settle`](Self::settle)
    /// and closes the connection, which ends all streams.
    pub fn fail(&mut self, error: ConnectionError) {
        self.drain = Drain::Final(self.last_peer);
        frame::write_go_away(self.last_peer, error.code(), &mut self.control);
    }

    /// Queues the GOAWAY that ends a connection without streams, unless the last one was sent already: it names the
    /// last stream, so the peer may send later requests elsewhere. The owner then sends the output of
    /// [`settle`](Self::settle) and closes the connection.
    pub fn close(&mut self) {
        if !matches!(self.drain, Drain::Final(_)) {
            self.finish_drain();
        }
    }

    /// Whether [`go_away`](Self::go_away) is complete and no stream remains.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        matches!(self.drain, Drain::Final(_)) && self.streams.len() == 0
    }

    /// Sends a PING; its acknowledgement is [`Event::Pong`](super::Event::Pong). Only for a connection that may be
    /// dead: servers close connections that ping often.
    pub fn ping(&mut self) {
        frame::write_ping(OWNER_PING, false, &mut self.control);
    }

    /// Sends the GOAWAY with the last stream.
    pub(super) fn finish_drain(&mut self) {
        self.drain = Drain::Final(self.last_peer);
        frame::write_go_away(self.last_peer, ErrorCode::NO_ERROR, &mut self.control);
    }
}
