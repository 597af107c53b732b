//! An HTTP/2 connection, of a client or to a server: its streams, and the transfer of bytes between streams and
//! exchanges. `worker/stream_credit.rs` decides when the peer gets credit for its DATA.

mod blocked;
mod deferred;
mod head;
mod last_output;
mod memory;
mod output;
mod priority;
mod settings;
mod stream;

pub(crate) use deferred::DeferredRequest;
pub(crate) use head::{adopt, adopt_response, trailer_lines};
pub(crate) use settings::client_config;
pub(crate) use stream::Stream;

use crate::keys::ExchangeId;
use crate::limits::Kind;
use crate::observe::Counters;
use blocked::BlockedStreams;
use last_output::LastOutput;
use settings::server_config;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_http1::Limits;
use weir_http2::{Config, Connection, ErrorCode, Role, StreamNo};

/// The protocol state of a connection, and its streams.
#[derive(Debug)]
pub(crate) struct H2 {
    pub connection: Connection,
    /// The streams, in the order of their IDs. A stream leaves the list when it is reset, or when its exchange is over
    /// and its output has been sent.
    streams: Vec<Stream>,
    /// The index of the stream whose turn to send is next.
    next: usize,
    /// Whether streams send in the order of their priorities (RFC 9218).
    by_priority: bool,
    waiting: usize,
    /// Streams whose exchanges may continue, or whose deadlines may have changed, in this turn.
    touched: Vec<StreamNo>,
    /// Touched streams whose deadlines change once the connection has sent its output.
    settled: Vec<StreamNo>,
    /// The number of body parts that had to wait for a window since the last count.
    window_waits: u64,
    blocked: BlockedStreams,
    /// Whether a stream without an exchange has sent output since [`Self::take_last_output_moved`].
    last_output_moved: bool,
    rare: Option<Box<Rare>>,
    /// Whether frames wait for a later turn. Meanwhile, the gateway does not read from the client.
    pub is_postponed: bool,
    /// The time up to which the budgets for abusive frames have been replenished.
    forgiven: Option<Instant>,
}

/// State that few connections need.
#[derive(Debug, Default)]
struct Rare {
    /// The limits on the output of streams whose exchanges are over.
    last_output: Vec<LastOutput>,
    /// Requests that begin once the frames received after them are processed, in order.
    deferred: VecDeque<DeferredRequest>,
}

impl H2 {
    /// A connection of a client before its first byte. All connections of a listener share its [`client_config`].
    pub(crate) fn of_client(config: &Arc<Config>) -> Self {
        Self::new(Role::Server, Arc::clone(config))
    }

    /// A connection to a server of a service with these limits, for at most `streams` requests at a time.
    pub(crate) fn to_server(limits: &Limits, streams: u32) -> Self {
        Self::new(Role::Client, server_config(limits, streams).into())
    }

    fn new(role: Role, config: Arc<Config>) -> Self {
        Self {
            streams: Vec::new(),
            next: 0,
            by_priority: config.priorities,
            connection: Connection::new(role, config),
            waiting: 0,
            touched: Vec::new(),
            settled: Vec::new(),
            window_waits: 0,
            blocked: BlockedStreams::default(),
            last_output_moved: false,
            rare: None,
            is_postponed: false,
            forgiven: None,
        }
    }

    /// Replenishes the budgets for the time since the last call: they limit the rate of frames, not their number in a
    /// connection's lifetime.
    #[inline]
    pub(crate) fn elapse(&mut self, now: Instant) {
        let since = self.forgiven.get_or_insert(now);
        let seconds = now.saturating_duration_since(*since).as_secs();
        if seconds > 0 {
            *since += Duration::from_secs(seconds);
            self.connection.elapse(u32::try_from(seconds).unwrap_or(u32::MAX));
        }
    }

    /// Returns and resets the number of body parts that had to wait for a window.
    pub(crate) fn take_window_waits(&mut self) -> u64 {
        std::mem::take(&mut self.window_waits)
    }

    /// Adds to `counters` the sizes of heads, and the time for which output has waited for windows, since the last
    /// call.
    pub(crate) fn count(&mut self, with: Kind, now: Instant, counters: &mut Counters) {
        counters.field_bytes(with, &mut self.connection);
        counters.window_wait(with, self.blocked.take_time(now));
    }

    /// Opens a stream to a server for the request of an exchange. `None` if the connection accepts no further stream
    /// now.
    pub(crate) fn open(&mut self, exchange: ExchangeId, is_head: bool) -> Option<StreamNo> {
        let no = self.connection.open(is_head)?;
        self.add(Stream { exchange: Some(exchange), ..Stream::new(no, false) });
        Some(no)
    }

    /// Adds the stream of a client's request. `ended`: the request has no body; `is_grpc`: the request is a gRPC call.
    pub(crate) fn begin(&mut self, no: StreamNo, ended: bool, is_grpc: bool) {
        self.add(Stream { is_grpc, ..Stream::new(no, ended) });
    }

    /// As [`Self::begin`], for a request that was deferred; returns `false` if its stream has ended.
    pub(crate) fn begin_deferred(&mut self, no: StreamNo, is_grpc: bool) -> bool {
        self.get_mut(no).map(|stream| stream.is_grpc = is_grpc).is_some()
    }

    fn add(&mut self, stream: Stream) {
        // Many connections never carry two streams at a time, and by default a list begins with room for four.
        if self.streams.capacity() == 0 {
            self.streams.reserve_exact(1);
        }
        self.streams.push(stream);
    }

    /// Links a stream to the exchange of its request.
    pub(crate) fn has_begun(&mut self, no: StreamNo, exchange: ExchangeId) {
        if let Some(stream) = self.get_mut(no) {
            stream.exchange = Some(exchange);
        }
        self.touch(no);
    }

    #[inline]
    pub(crate) fn get(&self, no: StreamNo) -> Option<&Stream> {
        self.streams.get(self.index(no)?)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, no: StreamNo) -> Option<&mut Stream> {
        let index = self.index(no)?;
        self.streams.get_mut(index)
    }

    #[inline]
    fn index(&self, no: StreamNo) -> Option<usize> {
        self.streams.binary_search_by_key(&no, |stream| stream.no).ok()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }

    /// Whether the server supports extended CONNECT (RFC 8441 section 3). `None`: its SETTINGS have not arrived.
    pub(crate) fn takes_tunnels(&self) -> Option<bool> {
        self.connection.has_peer_settings().then(|| self.connection.peer().enable_connect_protocol)
    }

    pub(crate) fn len(&self) -> usize {
        self.streams.len()
    }

    pub(crate) fn exchanges(&self) -> impl Iterator<Item = ExchangeId> {
        self.streams.iter().filter_map(|stream| stream.exchange)
    }

    /// Whether a stream has received bytes that no server's connection has taken.
    pub(crate) fn holds_input(&self) -> bool {
        self.streams.iter().any(|stream| !stream.held.is_empty())
    }

    /// The streams with input that no server's connection has taken.
    pub(crate) fn holding(&self) -> Vec<StreamNo> {
        let holding = self.streams.iter().filter(|stream| !stream.held.is_empty());
        holding.map(|stream| stream.no).collect()
    }

    /// The number of input bytes that no server's connection has taken.
    pub(crate) fn held(&self) -> usize {
        self.streams.iter().map(|stream| stream.held.len()).sum()
    }

    /// Records that a stream's exchange may continue, or that its deadline may have changed.
    #[inline]
    pub(crate) fn touch(&mut self, no: StreamNo) {
        if let Some(stream) = self.get_mut(no)
            && !std::mem::replace(&mut stream.touched, true)
        {
            self.touched.push(no);
        }
    }

    pub(crate) fn touch_all(&mut self) {
        for index in 0..self.streams.len() {
            self.touch(self.streams[index].no);
        }
    }

    /// The exchanges on streams above `last`.
    pub(crate) fn exchanges_above(&self, last: u32) -> Vec<ExchangeId> {
        let above = self.streams.iter().filter(|stream| stream.no.get() > last);
        above.filter_map(|stream| stream.exchange).collect()
    }

    /// Whether a stream has output, but its own window is exhausted. `false` if the output waits only for the
    /// connection: for its window, or for a turn to send.
    pub(crate) fn waits_for_window(&mut self, no: StreamNo) -> bool {
        let has_output = self.get(no).is_some_and(|stream| stream.pending() > 0);
        has_output && !self.connection.has_window(no)
    }

    pub(crate) fn take_touched(&mut self) -> Vec<StreamNo> {
        let touched = std::mem::take(&mut self.touched);
        for no in &touched {
            if let Some(stream) = self.get_mut(*no) {
                stream.touched = false;
            }
        }
        touched
    }

    /// Schedules the update of the deadlines of streams that were touched.
    pub(crate) fn settled(&mut self, touched: Vec<StreamNo>) {
        match self.settled.is_empty() {
            true => self.settled = touched,
            false => self.settled.extend(touched),
        }
    }

    /// Takes the streams whose deadlines are to be updated.
    pub(crate) fn take_settled(&mut self) -> Vec<StreamNo> {
        std::mem::take(&mut self.settled)
    }

    /// Takes back the storage of [`Self::take_touched`] or [`Self::take_settled`], for reuse.
    pub(crate) fn give_back_touched(&mut self, mut touched: Vec<StreamNo>) {
        if self.touched.is_empty() {
            touched.clear();
            self.touched = touched;
        }
    }

    /// The exchange of a stream is over. A stream with a complete response ends once its output has been sent; other
    /// streams are reset.
    pub(crate) fn exchange_is_over(&mut self, no: StreamNo, code: ErrorCode) {
        let Some(index) = self.index(no) else { return };
        let stream = &mut self.streams[index];
        stream.exchange = None;
        let held = stream.uncredited();
        (stream.held, stream.credited, stream.owed) = (Vec::new(), 0, 0);
        let is_whole = stream.is_whole();
        self.connection.credit(no, held);
        match is_whole {
            true => self.release_if_sent(index),
            false => self.abort(no, code),
        }
    }

    /// The response on a stream to a server is complete: releases the stream, and drops the remainder of an unfinished
    /// request. If only the server's END_STREAM is missing, the stream stays until END_STREAM arrives.
    pub(crate) fn response_is_over(&mut self, no: StreamNo) {
        let awaits_end = self.connection.awaits_end(no);
        match self.get_mut(no) {
            Some(stream) if awaits_end => stream.exchange = None,
            _ => self.abort(no, ErrorCode::CANCEL),
        }
    }

    /// The peer has ended a stream without an exchange: frees its slot if its output has been sent.
    pub(crate) fn peer_has_ended(&mut self, no: StreamNo) {
        if let Some(index) = self.index(no) {
            self.release_if_sent(index);
        }
    }

    /// Grants the credit for a stream's DATA that was withheld while the receiver had no room.
    pub(crate) fn pay(&mut self, no: StreamNo) {
        let Some(stream) = self.get_mut(no) else { return };
        let owed = std::mem::take(&mut stream.owed);
        self.connection.credit(no, owed);
    }

    /// Resets a stream with this code, and drops its output. Grants the peer credit for the stream's received bytes,
    /// which are dropped.
    pub(crate) fn abort(&mut self, no: StreamNo, code: ErrorCode) {
        let Some(index) = self.index(no) else { return };
        self.blocked.set(&mut self.streams[index].is_blocked, false);
        let stream = self.remove(index);
        self.waiting -= usize::from(stream.pending() > 0);
        self.connection.credit(no, stream.uncredited());
        self.connection.reset(no, code);
        self.connection.release(no);
    }

    /// Removes a stream from the list, and the limits on its remaining output.
    fn remove(&mut self, index: usize) -> Stream {
        let stream = self.streams.remove(index);
        if let Some(rare) = &mut self.rare {
            rare.last_output.retain(|last| last.no != stream.no);
        }
        stream
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_http2::{Abuse, ConnectionError, Head, frame};

    /// Regression test: a client that kept its connection alive with a PING every few seconds eventually lost it.
    #[test]
    fn budgets_bound_a_rate() {
        let mut h2 = H2::of_client(&client_config(&Limits::default(), false).into());
        let (start, mut head) = (Instant::now(), Head::new());
        let mut preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        frame::write_settings([].into_iter(), &mut preface);
        h2.connection.feed(&mut preface, &mut head).unwrap();
        let mut ping = Vec::new();
        frame::write_ping([0; 8], false, &mut ping);
        let mut ping = |at_ms: u64| {
            h2.elapse(start + Duration::from_millis(at_ms));
            h2.connection.feed(&mut ping, &mut head)
        };
        for n in 0..50_000 {
            assert!(ping(n * 10).is_ok(), "{n}");
        }
        let end = (0..50_000).find_map(|_| ping(500_000).err());
        assert_eq!(end, Some(ConnectionError::Abuse(Abuse::Ping)));
    }
}
