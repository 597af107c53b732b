//! The current wait of a client connection, which follows from its state.

use super::{Client, Phase};
use crate::deadlines::{Cause, Wait};
use weir_reactor::Socket;

impl<S: Socket> Client<S> {
    /// The event that the connection's timer waits for now, if any. An exchange has its own timer.
    pub(crate) fn wait(&self) -> Option<Wait> {
        let pending = self.transport.pending() > 0;
        match self.phase {
            Phase::Closing if pending => Some(Wait::Response),
            Phase::Closing => Some(Wait::Linger),
            Phase::Preface(_) => Some(Wait::Handshake),
            _ if !self.transport.is_open() => Some(Wait::Handshake),
            Phase::Head { started: true } => Some(Wait::Head),
            // The client is still reading the last response.
            Phase::Head { started: false } if pending => Some(Wait::Response),
            Phase::Head { started: false } => Some(Wait::Idle),
            Phase::Exchange(_) => None,
            Phase::Streams => match &self.h2 {
                // The wait concerns the streams' output, so input does not extend its deadline.
                Some(h2) if h2.has_last_output() => Some(Wait::Response),
                // A frame is incomplete. It blocks all streams, so its timeout is short.
                _ if !self.held.is_empty() => Some(Wait::Head),
                Some(h2) if !h2.is_idle() => None,
                _ if pending => Some(Wait::Response),
                _ => Some(Wait::Idle),
            },
            Phase::Tunnel(_) => Some(Wait::Tunnel),
        }
    }

    /// Clears the deadline if it belongs to `wait`. Input that ends one wait does not extend the deadline of another.
    pub(crate) fn stop_waiting_for(&mut self, wait: Wait) {
        if self.timer.pending().is_some_and(|(_, why)| why == Cause::Waited(wait)) {
            self.timer.clear();
        }
    }
}
