//! The events that can end an exchange early, and the step that follows each.

use super::{Exchange, ResponseHalf};
use crate::reason::Reason;
use weir_http2::ErrorCode;
use weir_transport::Fault;

/// An event that can end an exchange before its response is complete.
#[derive(Debug)]
pub(crate) enum Event {
    /// The upstream's connection could not be established, or its handshake failed: no byte of the request was sent.
    NotConnected(Reason),
    /// The upstream's connection failed. `partial`: the gateway had received part of a response head.
    UpstreamFailed { fault: Fault, partial: bool },
    /// The upstream's stream ended. `partial`: the gateway had received part of a response head.
    UpstreamEnded { partial: bool },
    /// The server reset the request's stream.
    UpstreamReset(ErrorCode),
    /// The server did not process the request: it refused the stream, or began to close the connection before it.
    Unprocessed(Reason),
    /// The client ended its stream. `pipelined`: the gateway holds further requests of the client. `waits`: the client
    /// still reads the response.
    ClientEnded { pipelined: bool, waits: bool },
}

/// The worker's action after an event.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing: the exchange continues.
    Wait,
    /// Sends the request again, on another connection or stream.
    Retry,
    /// Sends the request again, on any connection: the server has not processed it.
    SendElsewhere(Reason),
    /// Sends the request to another server.
    FailOver(Reason),
    End(Reason),
}

impl Exchange {
    /// Applies an event, and decides the next step.
    pub(crate) fn on(&mut self, event: Event) -> Step {
        match (event, &self.response) {
            (Event::NotConnected(reason), ResponseHalf::Awaiting) if self.others > 0 => {
                self.others -= 1;
                Step::FailOver(reason)
            }
            (Event::NotConnected(reason), _) => Step::End(reason),
            (Event::UpstreamFailed { fault: fault @ Fault::Connect(_), .. }, _) => {
                Step::End(Reason::UpstreamConnect(fault))
            }
            (Event::UpstreamFailed { fault: fault @ Fault::Tls(_), .. }, _) => {
                Step::End(Reason::UpstreamTls(fault))
            }
            (
                Event::UpstreamFailed { fault: Fault::Socket(_), partial: false }
                | Event::UpstreamEnded { partial: false },
                ResponseHalf::Awaiting,
            ) if self.can_retry() => Step::Retry,
            (
                Event::UpstreamFailed { fault: Fault::Socket(_), partial: false }
                | Event::UpstreamEnded { partial: false },
                ResponseHalf::Awaiting,
            ) => Step::End(Reason::UpstreamClosed),
            (Event::UpstreamFailed { .. } | Event::UpstreamEnded { .. }, _) => {
                Step::End(Reason::UpstreamTruncated)
            }
            (Event::UpstreamReset(code), _) => Step::End(Reason::UpstreamReset(code)),
            (Event::Unprocessed(reason), ResponseHalf::Awaiting) if self.can_go_elsewhere() => {
                Step::SendElsewhere(reason)
            }
            (Event::Unprocessed(reason), _) => Step::End(reason),
            (Event::ClientEnded { pipelined, waits: true }, _) if self.request.is_done() => {
                self.persistent &= pipelined;
                Step::Wait
            }
            (Event::ClientEnded { .. }, _) => Step::End(Reason::ClientClosed),
        }
    }
}
