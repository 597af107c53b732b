//! Sending responses: heads, bodies and trailers, with the streams in any order.

use super::H2Origin;
use super::behaviour::Fault;
use super::faults::Failed;
use super::stream::{Phase, Stream};
use crate::h2::padding::pad;
use crate::ledger::Ledger;
use crate::world::World;
use weir_http2::Part;

impl H2Origin {
    /// Sends what is due, for the streams in random order.
    pub(super) fn respond(&mut self, world: &mut World, ledger: &mut Ledger) {
        for at in (1..self.streams.len()).rev() {
            let with = world.below(at as u64 + 1) as usize;
            self.streams.swap(at, with);
        }
        let mut at = 0;
        while at < self.streams.len() && !self.is_ending() {
            if !self.streams[at].is_due(world.now) {
                at += 1;
                continue;
            }
            let mut stream = self.streams.remove(at);
            if self.begin(&mut stream, world, ledger) {
                // A GOAWAY may have dropped other streams.
                at = at.min(self.streams.len());
                self.streams.insert(at, stream);
                at += 1;
            }
        }
        self.send_bodies(world, ledger);
        self.release_ended();
    }

    /// Starts a response or executes its fault; returns whether the stream remains open.
    fn begin(&mut self, stream: &mut Stream, world: &mut World, ledger: &mut Ledger) -> bool {
        if let Some(fault) = stream.fault {
            ledger.note(|| format!("origin {} answers #{} badly: {fault:?}", self.peer.link, stream.id));
            match self.fail(stream, fault, world, ledger) {
                Failed::Responds => {}
                Failed::Silent => {
                    stream.phase = Phase::Silent;
                    return true;
                }
                Failed::Gone => return false,
            }
        }
        self.begin_response(stream, world, ledger);
        true
    }

    fn begin_response(&mut self, stream: &mut Stream, world: &mut World, ledger: &mut Ledger) {
        let link = self.peer.link;
        self.processed = self.processed.max(stream.no.get());
        if self.site.interim && world.below(5) == 0 {
            self.interim(stream, 103, ledger);
        }
        if let Some(arrival) = ledger.arrival(stream.id, stream.attempt) {
            arrival.error = stream.error;
            arrival.is_early = !stream.is_whole && stream.switch.is_none();
        }
        if let Some(error) = stream.error {
            ledger.note(|| format!("origin {link} answers #{} with {error:?}", stream.id));
        }
        stream.body = stream.whole_body();
        if self.behaviour.pads && stream.body.len() < MOST_PADDED {
            stream.paddings = world.below(20) as u32;
        }
        let end = stream.is_bodiless();
        let numbered = self.site.errors > 0;
        let sent = self.connection.head(
            stream.no,
            Part::Head { end },
            |to| stream.write_head(numbered, to),
            &mut self.out,
        );
        debug_assert!(sent.is_ok(), "a stream without a response");
        stream.note_begin(self.said + self.out.len(), ledger);
        stream.phase = if end { Phase::Ended } else { Phase::Body };
        if stream.fault == Some(Fault::BadHead) {
            stream.phase = Phase::Silent;
        }
    }

    /// Sends more of the bodies once the network has taken the earlier frames.
    fn send_bodies(&mut self, world: &mut World, ledger: &mut Ledger) {
        if !self.peer.is_flushed() {
            return;
        }
        let mut streams = std::mem::take(&mut self.streams);
        for stream in streams.iter_mut().filter(|stream| stream.may_send()) {
            if !self.is_ending() && !self.aborts {
                self.send_body(stream, world, ledger);
            }
        }
        self.streams = streams;
    }

    fn send_body(&mut self, stream: &mut Stream, world: &mut World, ledger: &mut Ledger) {
        if let Some(fault) = stream.fault
            && (stream.sent == stream.body.len() || world.below(3) == 0)
        {
            return self.break_off(stream, fault, ledger);
        }
        let rest = &stream.body[stream.sent..];
        let most = match self.behaviour.trickles && !rest.is_empty() {
            true => 1 + world.below(rest.len().min(2000) as u64) as usize,
            false => world.piece(rest.len()),
        };
        let with_trailers = stream.ends_with_trailers();
        let end = most == rest.len() && !with_trailers && stream.fault.is_none() && stream.may_end();
        self.settle();
        let mut frames = Vec::new();
        let Ok(taken) = self.connection.data(stream.no, &rest[..most], end, &mut frames) else {
            stream.phase = Phase::Silent;
            return;
        };
        let is_padded = stream.paddings > 0 && !frames.is_empty();
        stream.paddings -= u32::from(is_padded);
        let padding = if is_padded { world.below(256) as u8 } else { 0 };
        let added = if is_padded { pad(&mut frames, padding) } else { 0 };
        self.out.append(&mut frames);
        self.wire.sends(stream.no.get(), taken + added);
        stream.sent += taken;
        world.moves += u64::from(taken > 0);
        if taken < most || stream.sent < stream.body.len() || stream.fault.is_some() || !stream.may_end() {
            return;
        }
        stream.phase = Phase::Ended;
        if with_trailers {
            let write = |to: &mut weir_http2::hpack::Encoder<'_>| stream.write_trailers(to);
            let trailers = self.connection.head(stream.no, Part::Trailers, write, &mut self.out);
            debug_assert!(trailers.is_ok(), "a body that was just sent");
        }
    }

    /// Removes streams that have ended in both directions, or whose response is complete if the origin does not need
    /// the rest of the request.
    pub(super) fn release_ended(&mut self) {
        let patience = self.behaviour.trickles;
        let is_over = |stream: &mut Stream| stream.is_over() || (stream.phase == Phase::Ended && !patience);
        for stream in self.streams.extract_if(.., is_over) {
            // An incomplete request is reset with NO_ERROR.
            self.connection.release(stream.no);
        }
    }
}

/// The maximum length of a body to pad. Padding uses window that the protocol state does not count, so the whole body
/// must fit into the initial window.
const MOST_PADDED: usize = 40_000;
