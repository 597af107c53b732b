//! Faults: how an origin fails before or within a response.

use super::behaviour::Fault;
use super::stream::{Phase, Stream};
use super::{H2Origin, State};
use crate::ledger::Ledger;
use crate::world::World;
use std::time::Duration;
use weir_http2::ErrorCode;
use weir_http2::frame::{self, Kind};

/// The effect of a fault before the response.
pub(super) enum Failed {
    /// The response starts despite the fault.
    Responds,
    /// The stream remains open without further frames.
    Silent,
    /// The stream is closed or removed.
    Gone,
}

impl H2Origin {
    /// Executes the part of a fault that precedes the response.
    pub(super) fn fail(
        &mut self,
        stream: &mut Stream,
        fault: Fault,
        world: &mut World,
        ledger: &mut Ledger,
    ) -> Failed {
        match fault {
            Fault::Reset(code) => {
                self.processed = self.processed.max(stream.no.get());
                self.reset(stream, code)
            }
            Fault::Refuse => {
                stream.note_unprocessed(ledger);
                self.reset(stream, ErrorCode::REFUSED_STREAM)
            }
            Fault::GoAway | Fault::GoAwayAndClose => {
                if !self.cut(stream, world, ledger) {
                    stream.fault = None;
                    return Failed::Responds;
                }
                if fault == Fault::GoAwayAndClose {
                    self.close();
                }
                Failed::Gone
            }
            Fault::End => {
                self.close();
                Failed::Silent
            }
            Fault::Abort => {
                self.aborts = true;
                Failed::Silent
            }
            Fault::BadFrame => {
                self.has_broken_rules = true;
                self.settle();
                frame::write(Kind::PushPromise, 0, stream.no.get(), &[0, 0, 0, 2], &mut self.out);
                Failed::Silent
            }
            Fault::Mute => {
                self.wake = world.now + Duration::from_secs(1000);
                Failed::Silent
            }
            Fault::Silence | Fault::Stall => Failed::Silent,
            Fault::ResetWithin(_) | Fault::EndWithin | Fault::AbortWithin | Fault::BadHead | Fault::Short => {
                Failed::Responds
            }
        }
    }

    fn reset(&mut self, stream: &Stream, code: ErrorCode) -> Failed {
        self.connection.reset(stream.no, code);
        self.connection.release(stream.no);
        Failed::Gone
    }

    /// Sends a GOAWAY with a last stream below this one. Returns false, without sending, if a later stream was
    /// processed or a GOAWAY does not fit the connection's state.
    fn cut(&mut self, stream: &Stream, world: &mut World, ledger: &mut Ledger) -> bool {
        let last = self.processed;
        // The last stream never grows, and the protocol state sends the second GOAWAY of a drain on its own.
        let is_possible = matches!(self.state, State::Open | State::Cut(_));
        if last > stream.no.get() || !is_possible {
            return false;
        }
        // The origin may or may not accept streams between the last processed one and this one.
        let last = last.max(stream.no.get().saturating_sub(1 + 2 * world.below(4) as u32));
        let code = if world.below(3) == 0 { ErrorCode::ENHANCE_YOUR_CALM } else { ErrorCode::NO_ERROR };
        ledger.note(|| format!("origin {} sends GOAWAY({last}): {}", self.peer.link, code.name()));
        self.settle();
        frame::write_go_away(last, code, &mut self.out);
        self.state = State::Cut(last);
        stream.note_unprocessed(ledger);
        for dropped in self.streams.extract_if(.., |stream| stream.no.get() > last) {
            dropped.note_unprocessed(ledger);
        }
        true
    }

    /// Breaks off a response within its body.
    pub(super) fn break_off(&mut self, stream: &mut Stream, fault: Fault, ledger: &mut Ledger) {
        ledger.note(|| format!("origin {} breaks #{} off: {fault:?}", self.peer.link, stream.id));
        stream.phase = Phase::Silent;
        match fault {
            Fault::ResetWithin(code) => {
                self.connection.reset(stream.no, code);
                stream.phase = Phase::Gone;
            }
            Fault::EndWithin => self.close(),
            Fault::AbortWithin => self.aborts = true,
            _ => {
                let ended = self.connection.data(stream.no, &[], true, &mut self.out);
                debug_assert!(ended.is_ok(), "a body that has begun");
                stream.phase = Phase::Ended;
            }
        }
    }
}
