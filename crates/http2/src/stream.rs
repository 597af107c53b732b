//! The state of one stream (RFC 9113, section 5.1).

use crate::window::{ReceiveWindow, SendWindow};
use crate::{Priority, StreamError};

/// A stream, from its first HEADERS, or from [`open`](crate::Connection::open) on a client, until its owner releases
/// it.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) receive: Half,
    pub(crate) send: Half,
    /// The side that reset the stream, if any.
    pub(crate) reset: Reset,
    pub(crate) send_window: SendWindow,
    pub(crate) receive_window: ReceiveWindow,
    /// The DATA bytes of the announced `content-length` that the peer has not sent yet; `None` without an announced
    /// length.
    pub(crate) missing: Option<u64>,
    /// Whether the response has no body, regardless of its `content-length`: a response to HEAD, or with status 204 or
    /// 304.
    pub(crate) no_body: bool,
    /// Whether the request is a CONNECT, so that a 2xx response opens a tunnel.
    pub(crate) is_tunnel: bool,
    /// Whether a write of the owner has exhausted the stream's window: [`Event::Room`](crate::Event::Room) must follow.
    pub(crate) blocked: bool,
    pub(crate) priority: Priority,
}

/// One direction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    /// Before the final head.
    Head,
    /// Before END_STREAM.
    Body,
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reset {
    No,
    /// By us: frames that the peer sent before it received the reset are ignored (RFC 9113, section 5.4.2).
    ByUs,
    ByPeer,
}

impl Stream {
    pub(crate) fn new(receive: Half, send_window: u32, receive_window: u32) -> Self {
        Self {
            receive,
            send: Half::Head,
            reset: Reset::No,
            send_window: SendWindow::new(send_window),
            receive_window: ReceiveWindow::new(receive_window),
            missing: None,
            no_body: false,
            is_tunnel: false,
            blocked: false,
            priority: Priority::default(),
        }
    }

    /// Closes both halves, as RST_STREAM does.
    pub(crate) fn reset(&mut self, by: Reset) {
        self.receive = Half::Closed;
        self.send = Half::Closed;
        self.reset = by;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.receive == Half::Closed && self.send == Half::Closed
    }

    /// Counts DATA bytes against `content-length`, before any of them is forwarded (RFC 9113, section 8.1.1).
    pub(crate) fn count_body(&mut self, bytes: u32, end: bool) -> Result<(), StreamError> {
        if let Some(missing) = &mut self.missing {
            let too_long = if self.no_body { StreamError::BodyForbidden } else { StreamError::BodyTooLong };
            *missing = missing.checked_sub(bytes.into()).ok_or(too_long)?;
        }
        if end {
            self.end()?;
        }
        Ok(())
    }

    /// Ends the receiving half. Fails if the body is shorter than `content-length`.
    pub(crate) fn end(&mut self) -> Result<(), StreamError> {
        if self.missing.is_some_and(|missing| missing > 0) {
            return Err(StreamError::BodyTooShort);
        }
        self.receive = Half::Closed;
        Ok(())
    }
}
