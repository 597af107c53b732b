//! HTTP/2 servers: their frames, the exchanges of their streams, and the streams' output at the end of a turn.

use super::Worker;
use super::settle::watch_upstream;
use crate::deadlines::ServerWait;
use crate::downstream::MAX_PENDING;
use crate::exchange::{Event as Happened, Exchange};
use crate::h2::{self, H2};
use crate::keys::{ExchangeId, UpstreamId};
use crate::limits::Kind;
use crate::observe::Context;
use crate::proxy::Next;
use crate::reason::Reason;
use crate::upstream::{Intake, Upstream};
use std::io;
use std::sync::Arc;
use weir_http2::{ConnectionError, ErrorCode, Event, StreamNo};
use weir_reactor::Net;
use weir_tls::TlsError;
use weir_transport::Fault;

impl<N: Net> Worker<N> {
    /// Processes the frames in `input[at..]`, and holds the remaining bytes. `ended`: the server's stream has ended.
    pub(super) fn take_server_frames(
        &mut self,
        id: UpstreamId,
        input: &mut [u8],
        mut at: usize,
        ended: bool,
    ) {
        let mut heads = 0;
        let now = self.core.net.now();
        if let Some(upstream) = self.upstreams.get_mut(id)
            && let Some(h2) = &mut upstream.h2
        {
            h2.elapse(now);
            upstream.moved = true;
        }
        loop {
            // The previous frame may have ended the connection.
            let Some(h2) = self.upstreams.get_mut(id).and_then(|upstream| upstream.h2.as_mut()) else {
                return;
            };
            let step = match h2.connection.feed(&mut input[at..], &mut self.core.streamed) {
                Ok(step) => step,
                Err(error) => return self.fail_multiplexed(id, error),
            };
            let before = at;
            at += step.consumed;
            let Some(event) = step.event else { break };
            heads += u64::from(matches!(event, Event::Head { .. }));
            self.take_server_event(id, event, input, before);
        }
        self.core.counters.upstream_http2_reads += u64::from(heads > 0);
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        upstream.held.extend_from_slice(&input[at..]);
        if ended {
            self.end_multiplexed(id, |_| Happened::UpstreamEnded { partial: false });
        }
    }

    /// Handles an event of a server's connection. `from`: the position in `input` to which the event's ranges are
    /// relative.
    fn take_server_event(&mut self, id: UpstreamId, event: Event, input: &mut [u8], from: usize) {
        match event {
            Event::Head { stream, end } => self.take_stream_head(id, stream, end),
            Event::Data { stream, range, flow, end } => {
                if let Some(exchange) = self.exchange_on(id, stream) {
                    let input = &mut input[..from + range.end];
                    let next =
                        self.flow(exchange).map(|mut to| to.take_stream_data(input, from + range.start, end));
                    self.take_next(id, exchange, next);
                } else if end {
                    self.server_has_ended(id, stream);
                }
                self.owe(id, stream, flow);
            }
            Event::Trailers { stream } => {
                let trailers = h2::trailer_lines(&self.core.streamed);
                if let Some(exchange) = self.exchange_on(id, stream) {
                    let next = self.flow(exchange).map(|mut to| to.take_stream_trailers(&trailers));
                    self.take_next(id, exchange, next);
                } else {
                    self.server_has_ended(id, stream);
                }
            }
            Event::Reset { stream, code } => {
                if let Some(exchange) = self.exchange_on(id, stream) {
                    match code {
                        ErrorCode::REFUSED_STREAM => {
                            self.on(exchange, Happened::Unprocessed(Reason::UpstreamReset(code)));
                        }
                        ErrorCode::CANCEL if self.is_late(exchange) => {
                            self.end_exchange(exchange, Reason::ExchangeTimeout);
                        }
                        _ => self.on(exchange, Happened::UpstreamReset(code)),
                    }
                } else {
                    self.server_has_ended(id, stream);
                }
            }
            Event::Failed { stream, error } => {
                if let Some(exchange) = self.exchange_on(id, stream) {
                    self.end_exchange(exchange, Reason::BadUpstreamStream(error));
                } else {
                    self.server_has_ended(id, stream);
                }
            }
            Event::Room { stream: Some(stream) } => {
                if let Some(h2) = self.h2_to(id) {
                    h2.touch(stream);
                }
            }
            // Nothing to do now: the end of the turn sends output that waits for room.
            Event::Room { stream: None } => {}
            Event::Settings => {
                self.note_settings(id);
                self.admit_awaiting(id);
            }
            Event::GoAway { last, code: _ } => {
                self.retire_multiplexed(id);
                let above = self.h2_to(id).map(|h2| h2.exchanges_above(last)).unwrap_or_default();
                for exchange in above {
                    self.on(exchange, Happened::Unprocessed(Reason::UpstreamGoAway));
                }
            }
            Event::Pong => {
                if let Some(upstream) = self.upstreams.get_mut(id)
                    && upstream.intake == Intake::Doubtful
                {
                    upstream.intake = Intake::Open;
                    let server = upstream.server;
                    self.note_room(server);
                }
            }
            // Nothing to do: `Rejected` concerns requests, and a server sends none. `Pause` slows down floods of
            // frames, which are expected only from clients.
            Event::Rejected { .. } | Event::Pause => {}
        }
    }

    /// Processes the response head that was decoded last, interim or final.
    fn take_stream_head(&mut self, id: UpstreamId, no: StreamNo, end: bool) {
        let Some(exchange) = self.exchange_on(id, no) else { return };
        let core = &mut self.core;
        h2::adopt_response(&mut core.streamed, end, &mut core.response);
        let bytes = std::mem::take(&mut core.streamed.bytes);
        let mut next = self.flow(exchange).map(|mut to| to.take_stream_head(&bytes, end));
        if let Some(Next::AskAnother { status, .. }) = next
            && !self.ask_another(exchange, status)
        {
            next = self.flow(exchange).map(|mut to| to.take_stream_head(&bytes, end));
        }
        self.core.streamed.bytes = bytes;
        self.take_next(id, exchange, next);
    }

    /// Carries out the next action after a piece of a response.
    fn take_next(&mut self, from: UpstreamId, id: ExchangeId, next: Option<Next>) {
        match next {
            None => self.broken(id, "a response without its connections"),
            Some(Next::Wait | Next::AskAnother { .. }) => {}
            Some(Next::Complete(completed)) => self.complete(from, id, completed),
            Some(Next::On(event)) => self.on(id, event),
            Some(Next::End(reason)) => self.end_exchange(id, reason),
            Some(Next::Switch { .. }) => self.end_exchange(id, Reason::UpstreamSwitched),
            Some(Next::LoseClient(fault)) => {
                if let Some(client) = self.exchanges.get(id).map(|exchange| exchange.client) {
                    self.lose_client(client, fault);
                }
            }
        }
    }

    /// Whether an exchange's total timeout has expired, at present rather than at the turn's start: a gRPC server
    /// enforces it, too, and may reset the call before the gateway's timer fires.
    fn is_late(&self, id: ExchangeId) -> bool {
        let end = self.exchanges.get(id).and_then(Exchange::total);
        end.is_some_and(|(end, _)| end <= self.core.net.now() + self.core.net.spent())
    }

    /// Ends a stream without an exchange, which its server has closed or reset.
    fn server_has_ended(&mut self, id: UpstreamId, no: StreamNo) {
        if let Some(h2) = self.h2_to(id) {
            h2.abort(no, ErrorCode::CANCEL);
            if let Some(server) = self.upstreams.get(id).map(|upstream| upstream.server) {
                self.note_room(server);
            }
        }
    }

    /// The server's connection was established, or its handshake has ended.
    pub(super) fn connection_moved(&mut self, id: UpstreamId) {
        let Some(upstream) = self.upstreams.get(id) else { return };
        let is_open = upstream.transport.is_open();
        let now = self.core.net.now();
        for exchange in self.exchanges_on(id) {
            let Some(mut flow) = self.flow(exchange) else { continue };
            flow.exchange.moved = true;
            flow.exchange.server_moved = true;
            flow.touch_client();
            match is_open {
                true => {
                    flow.exchange.times.connected = Some(now);
                    flow.opened();
                }
                // The TCP connection is established, and a handshake follows.
                false => flow.exchange.times.reached = Some(now),
            }
        }
    }

    /// The connection has failed: passes the fault to each of its exchanges, which may make another attempt.
    pub(super) fn lose_streams(&mut self, id: UpstreamId, fault: &Fault) {
        let is_open = self.upstreams.get(id).is_some_and(|upstream| upstream.transport.is_open());
        self.end_multiplexed(id, |_| match (is_open, fault) {
            (false, Fault::Connect(error)) => {
                Happened::NotConnected(Reason::UpstreamConnect(Fault::Connect(same(error))))
            }
            (
                false,
                Fault::Tls(TlsError::NoApplicationProtocol | TlsError::PeerAlert(NO_APPLICATION_PROTOCOL)),
            ) => Happened::NotConnected(Reason::NotHttp2),
            (false, Fault::Tls(error)) => {
                Happened::NotConnected(Reason::UpstreamTls(Fault::Tls(error.clone())))
            }
            (_, Fault::Tls(error)) => {
                Happened::UpstreamFailed { fault: Fault::Tls(error.clone()), partial: false }
            }
            (_, Fault::Connect(error) | Fault::Socket(error)) => {
                Happened::UpstreamFailed { fault: Fault::Socket(same(error)), partial: false }
            }
        });
    }

    /// Ends a connection without further output. `event`: the event for each exchange.
    fn end_multiplexed(&mut self, id: UpstreamId, event: impl Fn(ExchangeId) -> Happened) {
        self.retire_multiplexed(id);
        // Once its exchanges are over, the connection looks idle. It leaves its server's list first, so that no other
        // code closes it before this function does.
        self.forget_multiplexed(id);
        // The further attempts of the exchanges may need the slot.
        if let Some(slot) = self.upstreams.get_mut(id).and_then(|upstream| upstream.slot.take()) {
            let slots = Arc::clone(slot.slots());
            drop(slot);
            self.offer_room(&slots);
        }
        self.end_awaiting(id, |exchange| match event(exchange) {
            Happened::NotConnected(reason) | Happened::Unprocessed(reason) => reason,
            _ => Reason::UpstreamClosed,
        });
        for exchange in self.exchanges_on(id) {
            self.on(exchange, event(exchange));
        }
        self.drop_upstream(id);
    }

    /// The server violated a rule of the connection: closes the connection with GOAWAY.
    fn fail_multiplexed(&mut self, id: UpstreamId, error: ConnectionError) {
        // An HTTP/2 server begins with SETTINGS: without them, the peer speaks another protocol.
        let is_http2 = self.h2_to(id).is_some_and(|h2| h2.connection.has_peer_settings());
        self.retire_multiplexed(id);
        self.forget_multiplexed(id);
        let exchanges = self.exchanges_on(id);
        let has_none = self.upstreams.get(id).is_some_and(Upstream::has_no_streams);
        self.end_awaiting(id, |_| match is_http2 {
            true => Reason::BadUpstreamHttp2(error),
            false => Reason::NotHttp2,
        });
        if has_none {
            self.core.note_end(&Reason::BadUpstreamHttp2(error), Context::default());
        }
        for exchange in exchanges {
            match is_http2 {
                true => self.end_exchange(exchange, Reason::BadUpstreamHttp2(error)),
                false => self.on(exchange, Happened::NotConnected(Reason::NotHttp2)),
            }
        }
        if let Some(h2) = self.h2_to(id) {
            h2.connection.fail(error);
        }
        self.finish_multiplexed(id);
    }

    /// Closes a connection without streams, with GOAWAY.
    pub(super) fn finish_multiplexed(&mut self, id: UpstreamId) {
        if let Some(upstream) = self.upstreams.get_mut(id) {
            if let Some(h2) = &mut upstream.h2 {
                h2.connection.close();
                h2.connection.settle(upstream.transport.stage(&mut self.core.wire));
            }
            // Best effort: the connection closes either way.
            let _ = upstream.transport.finish(&mut self.core.wire);
        }
        self.drop_upstream(id);
    }

    /// A request on a stream has timed out: sends a PING. Requests use other connections until the server has responded
    /// to the PING.
    pub(super) fn doubt_connection_of(&mut self, id: ExchangeId) {
        let Some(upstream_id) = self.exchanges.get(id).and_then(Exchange::upstream) else {
            return;
        };
        let Some(upstream) = self.upstreams.get_mut(upstream_id) else { return };
        if upstream.intake != Intake::Open {
            return;
        }
        upstream.intake = Intake::Doubtful;
        let server = upstream.server;
        if let Some(h2) = &mut upstream.h2 {
            h2.connection.ping();
        }
        self.touch_upstream(upstream_id);
        self.note_room(server);
    }

    pub(super) fn streams_due(&mut self, id: UpstreamId, why: ServerWait) {
        match why {
            ServerWait::Pooled => self.finish_multiplexed(id),
            ServerWait::Pong => {
                self.retire_multiplexed(id);
                self.forget_multiplexed(id);
                for exchange in self.exchanges_on(id) {
                    self.end_exchange(exchange, Reason::UpstreamTimeout);
                }
                self.drop_upstream(id);
            }
            ServerWait::Connect
            | ServerWait::Handshake
            | ServerWait::Response
            | ServerWait::Body
            | ServerWait::Mirror => {
                self.end_multiplexed(id, |_| {
                    Happened::NotConnected(why.reason().unwrap_or(Reason::UpstreamTimeout))
                });
            }
        }
    }

    /// Ends a turn for a connection: sends the output of its streams, and closes the connection if it is idle and not
    /// needed.
    #[inline(never)]
    pub(super) fn settle_server_streams(&mut self, id: UpstreamId) {
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        let Some(h2) = &mut upstream.h2 else { return };
        h2.flush(&mut upstream.transport, &mut self.core.wire);
        let touched = h2.take_touched();
        for no in &touched {
            self.settle_server_stream(id, *no);
        }
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        let Some(h2) = &mut upstream.h2 else { return };
        h2.give_back_touched(touched);
        let server = self.servers.get(upstream.server);
        let may_stay = server.is_some_and(|server| {
            upstream.intake != Intake::Closed
                && server.may_have_more_idle(server.multiplexed.len().saturating_sub(1))
                && !upstream.life.is_used_up(&server.config.pool, self.core.net.now())
        });
        if h2.is_idle() && upstream.awaiting.is_empty() && (!may_stay || upstream.ended) {
            return self.finish_multiplexed(id);
        }
        h2.connection.settle(upstream.transport.stage(&mut self.core.wire));
        h2.count(Kind::Upstream, self.core.net.now(), &mut self.core.counters);
        self.core.counters.upstream_http2_writes += u64::from(upstream.transport.staged() > 0);
        if upstream.transport.commit(&mut self.core.wire).is_err() {
            // The server may have responded before it closed the connection: exchanges continue until the worker has
            // read the remaining frames.
            upstream.intake = Intake::Closed;
        }
        // The connection may now have room for output that it rejected before.
        if h2.flush(&mut upstream.transport, &mut self.core.wire) {
            upstream.touch(id, &mut self.core.touched.upstreams);
        }
        let blocked = upstream.transport.pending() >= 2 * MAX_PENDING;
        if let Err(error) = watch_upstream(id, upstream, None, blocked, &mut self.core) {
            self.lose_streams(id, &Fault::Socket(error));
        }
    }

    /// Settles one stream: restarts its exchange's timeouts if bytes have moved, and returns the server's credit if the
    /// client has room.
    fn settle_server_stream(&mut self, id: UpstreamId, no: StreamNo) {
        let Some(stream) = self.h2_to(id).and_then(|h2| h2.get_mut(no)) else { return };
        let (moved, is_owed) = (std::mem::take(&mut stream.moved), stream.owed > 0);
        let Some(exchange_id) = stream.exchange else { return };
        if moved && let Some(exchange) = self.exchanges.get_mut(exchange_id) {
            (exchange.moved, exchange.server_moved) = (true, true);
            let leg = exchange.leg();
            self.touch_leg(leg);
        }
        if is_owed {
            self.pay_unless_blocked(id, no, exchange_id);
        }
    }

    fn exchange_on(&self, id: UpstreamId, no: StreamNo) -> Option<ExchangeId> {
        self.upstreams.get(id)?.h2.as_ref()?.get(no)?.exchange
    }

    fn exchanges_on(&self, id: UpstreamId) -> Vec<ExchangeId> {
        let h2 = self.upstreams.get(id).and_then(|upstream| upstream.h2.as_ref());
        h2.map(|h2| h2.exchanges().collect()).unwrap_or_default()
    }

    pub(super) fn h2_to(&mut self, id: UpstreamId) -> Option<&mut H2> {
        self.upstreams.get_mut(id)?.h2.as_deref_mut()
    }
}

/// The alert of a server that selects none of the offered protocols (RFC 7301 section 3.2).
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// A copy of an error, for another exchange.
fn same(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}
