//! A connection: frames in, events out; commands in, frames out.

mod body;
mod config;
mod control;
mod drain;
mod error;
mod event;
mod feed;
mod heads;
mod priority;
mod send;

pub use config::Config;
pub use error::{ConnectionError, StreamError};
pub use event::{Event, SILENT_FRAMES, Step, StreamNo};
pub use send::{Closed, DATA_BYTES, Part};

use crate::budget::{Abuse, Spent};
use crate::frame;
use crate::hpack::Decoder;
use crate::settings::MAX_WINDOW;
use crate::streams::Streams;
use crate::window::{ReceiveWindow, SendWindow};
use crate::{Priority, Settings};
use drain::Drain;
use feed::Input;
use std::sync::Arc;

/// The side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Receives requests.
    Server,
    /// Sends requests.
    Client,
}

/// Sizes of the field blocks of heads and trailers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldBytes {
    /// Bytes on the wire, without frame headers and padding.
    pub encoded: u64,
    /// Bytes of the same fields, pseudo-fields included, as lines of HTTP/1.1: name, value and 4 bytes each.
    pub decoded: u64,
}

impl FieldBytes {
    pub(crate) fn count(&mut self, encoded: usize, decoded: usize) {
        self.encoded += encoded as u64;
        self.decoded += decoded as u64;
    }
}

/// The protocol state of one HTTP/2 connection, in either role.
///
/// The owner passes received bytes to [`feed`](Self::feed) and handles one event at a time. It writes with
/// [`head`](Self::head) and [`data`](Self::data) into its own buffer, and calls [`settle`](Self::settle) once per turn.
/// Frames are written in the order of their causes: no RST_STREAM overtakes earlier frames, and no frame that depends
/// on the peer's new settings overtakes their acknowledgement. The connection never stops reading because of one
/// stream: a stream whose bytes are not [credited](Self::credit) stalls alone. The owner stops reading while the peer
/// does not accept its output.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    config: Arc<Config>,
    peer: Settings,
    input: Input,
    decoder: Decoder,
    streams: Streams,
    /// The highest stream that the peer opened.
    last_peer: u32,
    /// The next stream that we open.
    next_own: u32,
    send_window: SendWindow,
    receive_window: ReceiveWindow,
    /// The initial window of the peer's streams in the settings that the peer has acknowledged.
    initial_receive_window: u32,
    /// Whether a write of the owner has exhausted the connection's window: [`Event::Room`] must follow.
    blocked: bool,
    is_acknowledged: bool,
    has_peer_settings: bool,
    has_sent_head: bool,
    drain: Drain,
    /// Whether the peer sent GOAWAY.
    peer_drains: bool,
    /// Received bytes of HEADERS and CONTINUATION.
    block_bytes: u64,
    /// The sizes of received field blocks since the owner last took them.
    received: FieldBytes,
    sent: FieldBytes,
    spent: Spent,
    /// Control frames to be written before the next output.
    control: Vec<u8>,
    /// Priorities of streams that the client has not opened yet, in the order of the frames.
    early: Vec<(u32, Priority)>,
}

/// The client's connection preface (RFC 9113, section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

impl Connection {
    /// A connection whose first output is its preface: SETTINGS, and a WINDOW_UPDATE that opens the connection's window
    /// fully, so that only the windows of streams limit memory. Connections may share a configuration.
    #[must_use]
    pub fn new(role: Role, config: impl Into<Arc<Config>>) -> Self {
        let config = config.into();
        let mut settings = config.settings;
        let mut control = Vec::new();
        // A server may send only the value 0 (section 6.5.2), so it keeps the initial value, which `write` omits.
        settings.enable_push = role == Role::Server;
        if role == Role::Client {
            control.extend_from_slice(PREFACE);
        }
        settings.write(&mut control);
        let initial = Settings::default().initial_window_size;
        frame::write_window_update(0, MAX_WINDOW - initial, &mut control);
        Self {
            role,
            peer: Settings::default(),
            input: if role == Role::Server { Input::Preface } else { Input::Frame },
            decoder: Decoder::new(config.settings.header_table_size),
            config,
            streams: Streams::default(),
            last_peer: 0,
            next_own: 1,
            send_window: SendWindow::new(initial),
            receive_window: ReceiveWindow::new(MAX_WINDOW),
            initial_receive_window: initial,
            blocked: false,
            is_acknowledged: false,
            has_peer_settings: false,
            has_sent_head: false,
            drain: Drain::No,
            peer_drains: false,
            block_bytes: 0,
            received: FieldBytes::default(),
            sent: FieldBytes::default(),
            spent: Spent::default(),
            control,
            early: Vec::new(),
        }
    }

    /// The peer's settings.
    #[must_use]
    pub fn peer(&self) -> &Settings {
        &self.peer
    }

    /// Whether the peer's settings have arrived.
    #[must_use]
    pub fn has_peer_settings(&self) -> bool {
        self.has_peer_settings
    }

    /// Whether the peer has acknowledged our settings. The owner should close the connection if this takes too long
    /// (RFC 9113, section 6.5.3).
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        self.is_acknowledged
    }

    /// The number of streams that the owner has not released.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// The received bytes of HEADERS and CONTINUATION frames, including frame headers: the size of all heads and
    /// trailers on the wire.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Takes the sizes of the field blocks received, and of the field blocks sent, since the last call.
    pub fn take_field_bytes(&mut self) -> (FieldBytes, FieldBytes) {
        (std::mem::take(&mut self.received), std::mem::take(&mut self.sent))
    }

    /// The heap memory in bytes, without the configuration.
    #[must_use]
    pub fn memory(&self) -> usize {
        let early = self.early.capacity() * size_of::<(u32, Priority)>();
        self.streams.memory() + self.decoder.memory() + self.control.capacity() + early
    }

    /// The received DATA bytes, including padding, that the owner has not credited.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.receive_window.held().unsigned_abs()
    }

    /// The maximum number of bytes that [`feed`](Self::feed) leaves for the next call.
    #[must_use]
    pub fn most_held(&self) -> usize {
        let frame = Settings::default().max_frame_size as usize + frame::HEADER_BYTES;
        frame.max(self.config.block_bytes + (1 + self.config.continuations) * frame::HEADER_BYTES)
    }

    /// The number of streams that the peer has reset, or caused us to reset, minus those [forgiven](Self::elapse).
    #[must_use]
    #[inline]
    pub fn resets(&self) -> u32 {
        self.spent.of(Abuse::Reset) + self.spent.of(Abuse::ProvokedReset)
    }

    /// Forgives a tenth of each of the [`Budgets`](crate::Budgets) per second. The owner calls this before it feeds,
    /// with the seconds since the last call.
    pub fn elapse(&mut self, seconds: u32) {
        self.spent.elapse(seconds, &self.config.budgets);
    }

    #[inline]
    fn spend(&mut self, kind: Abuse) -> Result<(), Abuse> {
        self.spent.spend(kind, &self.config.budgets)
    }
}
