//! HTTP/2 clients: their frames, the exchanges of their streams, and the streams' output at the end of a turn.

use super::Worker;
use super::stream_credit::Data;
use crate::deadlines::Wait;
use crate::downstream::Phase;
use crate::exchange::{Leg, Stage};
use crate::grpc;
use crate::h2::{self, DeferredRequest, H2};
use crate::keys::{ClientId, ExchangeId};
use crate::limits::Kind;
use crate::reason::Reason;
use weir_http2::{ErrorCode, Event, PREFACE, StreamNo};
use weir_reactor::Net;

/// The maximum number of requests that one connection begins in a turn. Each may dial a server while other clients
/// wait, and even a few requests per read make the cost of a read negligible.
const REQUESTS_PER_TURN: usize = 16;

/// The maximum number of events, such as small DATA frames, that a connection's turn processes. A turn also ends with
/// [`Event::Pause`]; then the connection's next turn comes a millisecond later.
const EVENTS_PER_TURN: usize = 128;

/// The weight of [`Event::Room`] in [`EVENTS_PER_TURN`]: the stream whose window has room again sends output, and reads
/// more of its response.
const EVENTS_OF_ROOM: usize = 8;

/// The maximum number of requests that a turn receives from a connection whose requests are deferred, instead of
/// [`REQUESTS_PER_TURN`]. A turn begins at most [`BEGUN_PER_TURN`] of them, or all when part of a request body arrives.
const DEFERRED_PER_TURN: usize = 8;
const BEGUN_PER_TURN: usize = 4;

impl<N: Net> Worker<N> {
    /// Switches a cleartext connection to HTTP/2 if its first bytes are the HTTP/2 preface, or waits for the rest of
    /// the preface. Returns `false` for other bytes, or if the connection cannot use HTTP/2.
    #[cold]
    pub(super) fn may_be_h2(&mut self, id: ClientId, input: &[u8]) -> bool {
        let Some(client) = self.clients.get_mut(id) else { return false };
        let is_allowed = client.frontend.http2 && client.frontend.tls.is_none() && !client.has_sent();
        let length = input.len().min(PREFACE.len());
        if !is_allowed || input[..length] != PREFACE[..length] {
            return false;
        }
        if length < PREFACE.len() {
            client.phase = Phase::Head { started: true };
        } else {
            client.begin_h2();
            self.core.counters.http2_connections += 1;
            self.core.resumable.push(id);
        }
        true
    }

    /// Processes the frames in `input[at..]`, up to the limits of a turn, and holds the remaining bytes. `ended`: the
    /// client's stream has ended.
    pub(super) fn take_frames(&mut self, id: ClientId, input: &mut [u8], mut at: usize, ended: bool) {
        let (from, mut requests, mut events) = (at, 0, 0);
        let now = self.core.net.now();
        let Some(h2) = self.h2_of(id) else { return };
        h2.elapse(now);
        h2.is_postponed = false;
        let most = if h2.defers() { DEFERRED_PER_TURN } else { REQUESTS_PER_TURN };
        let mut floods = false;
        let is_at_limit = loop {
            // The previous frame may have ended the connection.
            let Some(client) = self.clients.get_mut(id) else { return };
            let (Phase::Streams, Some(h2)) = (client.phase, &mut client.h2) else { return };
            let step = match h2.connection.feed(&mut input[at..], &mut self.core.streamed) {
                Ok(step) => step,
                Err(error) => {
                    h2.connection.fail(error);
                    return self.end_streams(id, &Reason::BadHttp2(error));
                }
            };
            let before = at;
            at += step.consumed;
            let Some(event) = step.event else { break false };
            requests += usize::from(matches!(event, Event::Head { .. }));
            events += if matches!(event, Event::Room { .. }) { EVENTS_OF_ROOM } else { 1 };
            floods = event == Event::Pause;
            self.take_event(id, event, input, before);
            if requests == most || events >= EVENTS_PER_TURN || floods {
                break true;
            }
        };
        self.core.counters.http2_requests += requests as u64;
        self.core.counters.http2_reads += u64::from(requests > 0);
        let is_partial = is_at_limit && at < input.len();
        // Deferred requests begin after the last frame of the input, since the remaining frames may reset their
        // streams, or once many are deferred.
        if !is_partial || self.h2_of(id).is_some_and(|h2| h2.deferred() >= REQUESTS_PER_TURN) {
            self.begin_deferred(id, BEGUN_PER_TURN);
        }
        let Some(client) = self.clients.get_mut(id) else { return };
        if at > from {
            // The timeout for a partial frame starts with the frame's first byte, so complete frames end the old wait.
            client.stop_waiting_for(Wait::Head);
        }
        client.held.extend_from_slice(&input[at..]);
        if let Some(h2) = &mut client.h2
            && (is_partial || h2.has_deferred() || (h2.is_slowed() && at > from && !ended))
        {
            h2.is_postponed = true;
            match floods || h2.is_slowed() {
                true => self.core.slowed.add(id, now),
                false => self.core.postponed.push(id),
            }
        } else if ended {
            self.end_streams(id, &Reason::ClientClosed);
        }
    }

    /// Handles an event of a client's connection. `from`: the position in `input` to which the event's ranges are
    /// relative.
    fn take_event(&mut self, id: ClientId, event: Event, input: &mut [u8], from: usize) {
        match event {
            Event::Head { stream, end } => self.begin_stream(id, stream, end),
            Event::Data { stream, range, flow, end } => {
                self.begin_deferred(id, usize::MAX);
                let range = from + range.start..from + range.end;
                self.take_data(id, stream, input, &Data { range, flow, end });
            }
            Event::Trailers { stream } => {
                let trailers = h2::trailer_lines(&self.core.streamed);
                self.begin_deferred(id, usize::MAX);
                let Some(h2) = self.h2_of(id) else { return };
                let no = stream;
                let Some(stream) = h2.get_mut(no) else { return };
                (stream.trailers, stream.ended) = (trailers.into(), true);
                match stream.exchange {
                    Some(_) => self.pass_held(Leg { client: id, stream: Some(no) }),
                    None => h2.peer_has_ended(no),
                }
            }
            Event::Reset { stream, .. } => self.stream_failed(id, stream, Reason::ClientReset),
            Event::Failed { stream, error } => self.stream_failed(id, stream, Reason::BadStream(error)),
            Event::Rejected { error, .. } => self.note_end_of_client(id, &Reason::BadStream(error)),
            Event::Room { stream: Some(stream) } => {
                if let Some(h2) = self.h2_of(id) {
                    h2.touch(stream);
                }
            }
            // Nothing to do now: the end of the turn sends output that waits for room.
            Event::Room { stream: None } | Event::Settings => {}
            // Nothing to do: after a GOAWAY, the client closes the connection once it has received its responses.
            Event::GoAway { .. } | Event::Pong => {}
            Event::Pause => {}
        }
    }

    /// Begins or defers the request whose head was decoded last.
    fn begin_stream(&mut self, id: ClientId, no: StreamNo, end: bool) {
        let Some(client) = self.clients.get_mut(id) else { return };
        // The request may complete by the end of the turn, and the idle timeout then starts again.
        client.stop_waiting_for(Wait::Idle);
        let Some(h2) = &mut client.h2 else { return };
        let core = &mut self.core;
        if h2.defers() {
            return h2.defer(DeferredRequest { no, ended: end, head: core.streamed.clone() });
        }
        h2::adopt(&mut core.streamed, end, &mut core.request);
        h2.begin(no, end, grpc::is_call(&core.request, &core.streamed.bytes));
        let bytes = std::mem::take(&mut core.streamed.bytes);
        self.begin(Leg { client: id, stream: Some(no) }, &bytes, None);
        self.core.streamed.bytes = bytes;
    }

    /// Begins up to `most` of a connection's deferred requests.
    #[inline]
    fn begin_deferred(&mut self, id: ClientId, most: usize) {
        if self.h2_of(id).is_some_and(|h2| h2.has_deferred()) {
            self.begin_some_deferred(id, most);
        }
    }

    #[cold]
    fn begin_some_deferred(&mut self, id: ClientId, most: usize) {
        for _ in 0..most {
            // A deferred request may have ended the connection.
            let Some(DeferredRequest { no, ended, mut head }) = self.h2_of(id).and_then(H2::take_deferred)
            else {
                return;
            };
            let core = &mut self.core;
            h2::adopt(&mut head, ended, &mut core.request);
            let is_grpc = grpc::is_call(&core.request, &head.bytes);
            if self.h2_of(id).is_some_and(|h2| h2.begin_deferred(no, is_grpc)) {
                self.begin(Leg { client: id, stream: Some(no) }, &head.bytes, None);
            }
        }
    }

    /// The client has sent all of a request's body, and the exchange has taken it. Returns `false` if the exchange has
    /// not used `trailers`: it had buffered the body, or must wait for a connection first.
    pub(super) fn end_request_body(&mut self, id: ExchangeId, trailers: &[u8]) -> bool {
        let Some(exchange) = self.exchanges.present_mut(id) else { return true };
        if let Stage::Holding(held) = &mut exchange.stage {
            match held.decoder.end_of_input() {
                Ok(()) => self.send_held(id),
                Err(error) => self.end_exchange(id, Reason::BadRequestBody(error)),
            }
            return false;
        }
        if exchange.attempt.is_none() {
            return false;
        }
        let Some(flow) = self.flow(id) else {
            self.broken(id, "a request without its connections");
            return true;
        };
        match flow.end_body(trailers) {
            Ok(true) => self.settle_copy(id),
            Ok(false) => {}
            Err(reason) => self.end_exchange(id, reason),
        }
        true
    }

    /// The client reset a stream, or violated a rule on it: ends its exchange, or drops its deferred request.
    fn stream_failed(&mut self, id: ClientId, no: StreamNo, reason: Reason) {
        match self.exchange_of(Leg { client: id, stream: Some(no) }) {
            Some(exchange) => self.lose_exchange(exchange, &reason),
            None => {
                let Some(h2) = self.h2_of(id) else { return };
                let was_deferred = h2.forget_deferred(no);
                h2.abort(no, ErrorCode::CANCEL);
                if was_deferred {
                    self.note_end_of_client(id, &reason);
                }
            }
        }
        self.touch_client(id);
    }

    /// Ends an HTTP/2 connection early, with GOAWAY. Its exchanges end without a response, except at the end of a
    /// drain.
    pub(super) fn end_streams(&mut self, id: ClientId, reason: &Reason) {
        let Some(h2) = self.h2_of(id) else { return };
        let exchanges: Vec<_> = h2.exchanges().collect();
        if exchanges.is_empty() && !matches!(reason, Reason::ClientClosed) {
            self.note_end_of_client(id, reason);
        }
        for exchange in exchanges {
            match reason {
                // The client still reads, so it gets a response.
                Reason::DrainTimeout => self.end_exchange(exchange, Reason::DrainTimeout),
                _ => self.lose_exchange(exchange, reason),
            }
        }
        self.close(id);
    }

    #[cold]
    pub(super) fn take_exchanges(&mut self, id: ClientId) {
        let exchanges: Vec<_> = self.h2_of(id).map(|h2| h2.exchanges().collect()).unwrap_or_default();
        for exchange in exchanges {
            self.take_exchange(exchange);
        }
    }

    /// The client has read some of its responses: continues the responses that had filled its buffers.
    pub(super) fn responses_moved(&mut self, id: ClientId) {
        let Some(h2) = self.h2_of(id) else { return };
        h2.touch_all();
        let exchanges: Vec<_> = h2.exchanges().collect();
        for exchange in exchanges {
            let Some(no) = self.exchanges.get(exchange).and_then(|exchange| exchange.stream) else {
                continue;
            };
            let Some(client) = self.clients.get_mut(id) else { return };
            let has_unsent = client.transport.pending() > 0;
            // The client may be reading bytes of any stream, and opens windows after it has read them. So a stream that
            // waits for its turn counts as moving. A stream stalls only if it waits for nothing but its own window.
            let has_moved = has_unsent || !client.h2.as_mut().is_some_and(|h2| h2.waits_for_window(no));
            self.client_has_read(exchange, has_moved);
        }
    }

    /// Ends a turn for a client: sends the output of its streams, and closes the connection once its drain is complete.
    #[inline(never)]
    pub(super) fn settle_streams(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let Some(h2) = &mut client.h2 else { return };
        h2.flush(&mut client.transport, &mut self.core.wire);
        let touched = h2.take_touched();
        for no in &touched {
            self.settle_stream(Leg { client: id, stream: Some(*no) });
        }
        let Some(client) = self.clients.get_mut(id) else { return };
        let (Phase::Streams, Some(h2)) = (client.phase, &mut client.h2) else { return };
        h2.settled(touched);
        let drains = client.drain.is_on();
        if drains {
            h2.connection.go_away();
        }
        let is_drained = drains && h2.connection.is_drained();
        h2.connection.settle(client.transport.stage(&mut self.core.wire));
        self.core.counters.http2_window_waits += h2.take_window_waits();
        h2.count(Kind::Client, self.core.net.now(), &mut self.core.counters);
        self.core.counters.http2_writes += u64::from(client.transport.staged() > 0);
        if let Err(fault) = client.transport.commit(&mut self.core.wire) {
            return self.lose_client(id, fault);
        }
        if is_drained {
            return self.close(id);
        }
        // The connection may now have room for output that it rejected before.
        let has_sent = h2.flush(&mut client.transport, &mut self.core.wire);
        client.moved |= h2.take_last_output_moved();
        if has_sent {
            client.touch(id, &mut self.core.touched.clients);
        }
    }

    /// Updates the deadlines of exchanges whose streams this turn has touched.
    #[inline(never)]
    pub(super) fn time_streams(&mut self, id: ClientId) {
        let Some(touched) = self.h2_of(id).map(H2::take_settled) else { return };
        for no in &touched {
            self.time_stream(Leg { client: id, stream: Some(*no) });
        }
        if let Some(h2) = self.h2_of(id) {
            h2.give_back_touched(touched);
        }
    }

    /// Continues one stream's exchange: its response if the client has read, and its request if the stream holds input.
    fn settle_stream(&mut self, leg: Leg) {
        let Some(stream) = leg.stream.and_then(|no| self.h2_of(leg.client)?.get_mut(no)) else { return };
        let moved = std::mem::take(&mut stream.moved);
        let has_input = !stream.held.is_empty() || stream.ended;
        let Some(id) = stream.exchange else { return };
        if moved {
            self.client_has_read(id, true);
        }
        if has_input && self.exchanges.get(id).is_some_and(|exchange| !exchange.request.is_done()) {
            self.pass_held(leg);
        }
    }

    fn time_stream(&mut self, leg: Leg) {
        let Some(id) = self.exchange_of(leg) else { return };
        let pending = self.clients.get(leg.client).is_some_and(|client| client.pending(leg.stream) > 0);
        if self.exchanges.get(id).is_some_and(|exchange| exchange.is_timed(pending)) {
            self.time_exchange(id);
        }
    }

    pub(super) fn exchange_of(&self, leg: Leg) -> Option<ExchangeId> {
        let client = self.clients.get(leg.client)?;
        match leg.stream {
            None => client.exchange(),
            Some(no) => client.h2.as_ref()?.get(no)?.exchange,
        }
    }

    /// The streams of a client; `None` unless it speaks HTTP/2.
    pub(super) fn h2_of(&mut self, id: ClientId) -> Option<&mut H2> {
        self.clients.get_mut(id)?.h2.as_deref_mut()
    }

    pub(super) fn resume_leg(&mut self, leg: Leg) {
        match leg.stream {
            None => self.resume_client(leg.client),
            Some(_) => self.pass_held(leg),
        }
    }
}
