//! One connection and its requests in flight.

mod receive;
mod send;

use super::Http2;
use super::balance::Rank;
use super::stream::Stream;
use crate::connection::Context;
use crate::setup::Setup;
use crate::worker::Policy;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use weir_http2::{Config, Limits, Role, Settings, StreamNo};
use weir_reactor::Timer;
use weir_transport::Transport;

pub(crate) struct Connection {
    pub(super) transport: Transport,
    pub(super) phase: Phase,
    /// Set while the phase waits for the server; the phase determines the effect of its expiry.
    pub(super) timer: Timer<()>,
    /// Its rank among those that take another stream.
    pub(super) rank: Option<Rank>,
    /// Whether it has output for the end of the turn.
    pub(super) is_dirty: bool,
    /// Responses so far.
    pub(super) answered: u64,
    /// Consecutive previous connections without a response.
    pub(super) failures: u32,
    pub(super) setup: Setup,
    http: weir_http2::Connection,
    /// Sorted by number, so the oldest is the first.
    streams: VecDeque<Stream>,
    /// Streams with body bytes to send and room in their windows, in turn.
    senders: VecDeque<StreamNo>,
    /// A partial frame.
    kept: Vec<u8>,
    /// Received bytes of heads, as far as counted.
    block_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Until the server's SETTINGS.
    Opening,
    Open,
    /// The server takes no further streams; those in flight may end.
    Draining,
    /// Without streams: lets the server close first, so that TIME_WAIT (RFC 9293 section 3.6.1) is on its side.
    Ending,
}

/// The settings of a connection with this policy. The engine measures servers, so no number of
/// frames is abuse.
pub(super) fn config(streams: u32, stream_window: u32) -> Config {
    let limits = Limits::default();
    let settings = Settings {
        max_concurrent_streams: Some(streams),
        initial_window_size: stream_window,
        max_header_list_size: Some(limits.head_bytes as u32),
        ..Settings::default()
    };
    let budgets = weir_http2::Budgets {
        resets: u32::MAX,
        provoked_resets: u32::MAX,
        empty_data: u32::MAX,
        settings: u32::MAX,
        pings: u32::MAX,
        no_effect: u32::MAX,
        window_updates: u32::MAX,
    };
    Config { settings, limits, budgets, ..Config::default() }
}

impl Connection {
    pub(super) fn new(transport: Transport, policy: &Policy, setup: Setup) -> Self {
        let config = config(policy.streams, policy.stream_window);
        Self {
            transport,
            phase: Phase::Opening,
            timer: Timer::default(),
            rank: None,
            is_dirty: false,
            answered: 0,
            failures: 0,
            setup,
            http: weir_http2::Connection::new(Role::Client, config),
            streams: VecDeque::new(),
            senders: VecDeque::new(),
            kept: Vec::new(),
            block_bytes: 0,
        }
    }

    /// The number of requests in flight; `None` if the connection takes no other request.
    pub(super) fn load(&self) -> Option<u32> {
        (self.phase == Phase::Open && self.http.has_slot()).then_some(self.streams.len() as u32)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }

    /// Takes all requests in flight.
    pub(super) fn take_streams(&mut self) -> VecDeque<Stream> {
        std::mem::take(&mut self.streams)
    }

    /// Gives up the oldest request if it was sent `timeout` ago. Call it again until it returns `false`.
    pub(super) fn expire(&mut self, timeout: Duration, context: &mut Context<'_, Http2>) -> bool {
        let Some(oldest) = self.streams.front() else { return false };
        if oldest.written + timeout > context.now {
            return false;
        }
        let no = oldest.no;
        if let Some(stream) = self.release(no) {
            stream.give_up(&mut context.recorder, context.now);
        }
        true
    }

    /// When the oldest request times out.
    pub(super) fn deadline(&self, timeout: Duration) -> Option<Instant> {
        self.streams.front().map(|oldest| oldest.written + timeout)
    }

    /// Gives up opening: its times are censored at now.
    pub(super) fn give_up_opening(&self, context: &mut Context<'_, Http2>) {
        self.setup.give_up(&self.transport, context);
    }

    /// Releases a stream, and resets it if it has not ended.
    fn release(&mut self, no: StreamNo) -> Option<Stream> {
        self.http.release(no);
        let at = self.position(no)?;
        self.streams.remove(at)
    }

    fn position(&self, no: StreamNo) -> Option<usize> {
        self.streams.binary_search_by_key(&no, |stream| stream.no).ok()
    }
}
