//! An observer of the frames on a connection, independent of the peer's protocol state: checks windows, settings and
//! GOAWAY. The peer is a client or an origin.

use crate::Invariant;
use std::collections::{HashMap, VecDeque};
use weir_http2::frame::{Frame, FrameHeader, HEADER_BYTES, Kind};
use weir_http2::{ErrorCode, PREFACE};

/// The traffic on a connection so far, as far as the checks need it.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    /// Bytes of the client's preface that precede the frames.
    preface: usize,
    /// Received bytes of an incomplete frame.
    partial: Vec<u8>,
    streams: HashMap<u32, Flow>,
    connection: Flow,
    /// The stream window size that the gateway has acknowledged, and the sizes that it has not acknowledged yet.
    size: u64,
    sizes: VecDeque<u64>,
    /// The number of SETTINGS frames that the gateway has acknowledged.
    acknowledged: usize,
    /// The last stream in the latest GOAWAY; `None` before the first one.
    last: Option<u32>,
}

/// Bytes of DATA on a stream or a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// DATA from the peer, and credit for it from the gateway.
    sent: u64,
    credit: u64,
    /// DATA from the gateway, and credit for it from the peer.
    received: u64,
    given: u64,
}

/// The maximum stream number: the last stream of the first GOAWAY in a drain.
pub(crate) const ANY_STREAM: u32 = (1 << 31) - 1;

/// The initial window of a connection, and of its streams.
pub(crate) const INITIAL_WINDOW: u32 = 65_535;

/// The identifiers of settings.
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(crate) const ENABLE_CONNECT_PROTOCOL: u16 = 8;

/// A violated invariant, and its details.
type Wrong = (Invariant, String);

impl Wire {
    pub(crate) fn new() -> Self {
        Self { size: INITIAL_WINDOW.into(), ..Self::default() }
    }

    /// An observer of a connection whose client is the gateway.
    pub(crate) fn of_client() -> Self {
        Self { preface: PREFACE.len(), ..Self::new() }
    }

    /// Records flow-controlled bytes that the peer sent.
    pub(crate) fn sends(&mut self, stream: u32, bytes: usize) {
        self.streams.entry(stream).or_default().sent += bytes as u64;
        self.connection.sent += bytes as u64;
    }

    /// Records credit that the peer gave to a stream, or to the connection (stream 0).
    pub(crate) fn gives(&mut self, stream: u32, bytes: u32) {
        let flow = if stream == 0 { &mut self.connection } else { self.streams.entry(stream).or_default() };
        flow.given += u64::from(bytes);
    }

    /// Records that the peer sent SETTINGS with another window size for streams.
    pub(crate) fn resizes(&mut self, size: u32) {
        self.sizes.push_back(size.into());
    }

    /// The flow-controlled bytes that the gateway sent on the connection.
    pub(crate) fn received(&self) -> u64 {
        self.connection.received
    }

    /// The number of SETTINGS frames that the gateway has acknowledged.
    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged
    }

    /// Checks the frames among received bytes, and reports violations in `wrong`.
    pub(crate) fn receives(&mut self, bytes: &[u8], wrong: &mut Vec<Wrong>) {
        let (preface, bytes) = bytes.split_at(bytes.len().min(self.preface));
        self.preface -= preface.len();
        self.partial.extend_from_slice(bytes);
        let partial = std::mem::take(&mut self.partial);
        let mut at = 0;
        while let Some(header) = partial[at..].first_chunk::<HEADER_BYTES>().map(FrameHeader::parse) {
            let end = at + HEADER_BYTES + header.length as usize;
            let Some(payload) = partial.get(at + HEADER_BYTES..end) else { break };
            // The peer's own protocol state reports malformed frames.
            if let Ok(frame) = Frame::parse(header, payload) {
                self.frame(header, &frame, wrong);
            }
            at = end;
        }
        self.partial = partial[at..].to_vec();
    }

    fn frame(&mut self, header: FrameHeader, frame: &Frame<'_>, wrong: &mut Vec<Wrong>) {
        let id = header.stream;
        let flow = if id == 0 { &mut self.connection } else { self.streams.entry(id).or_default() };
        match (header.kind, frame) {
            (Kind::Data, _) if header.length > 0 => {
                flow.received += u64::from(header.length);
                self.connection.received += u64::from(header.length);
                self.check_window(id, self.size, wrong);
                self.check_window(0, INITIAL_WINDOW.into(), wrong);
            }
            (_, Frame::WindowUpdate(increment)) => {
                flow.credit += u64::from(*increment);
                let extra = if id == 0 { u64::from(ANY_STREAM - INITIAL_WINDOW) } else { 0 };
                let Flow { sent, credit, .. } = *flow;
                if credit > sent + extra {
                    let what = format!("stream {id} got credit for {credit} bytes and had sent {sent}");
                    wrong.push((Invariant::Windows, what));
                }
            }
            (_, Frame::SettingsAck) => {
                self.acknowledged += 1;
                self.size = self.sizes.pop_front().unwrap_or(self.size);
            }
            _ => {}
        }
    }

    /// Checks that the gateway's bytes so far fit the window of a stream, or of the connection (0).
    fn check_window(&mut self, id: u32, size: u64, wrong: &mut Vec<Wrong>) {
        let flow = if id == 0 { self.connection } else { self.streams.get(&id).copied().unwrap_or_default() };
        let Flow { received, given, .. } = flow;
        if received > given + size {
            let what =
                format!("{received} bytes of DATA on stream {id}, with a window of {size} and {given}");
            wrong.push((Invariant::Windows, what));
        }
    }

    /// Records a GOAWAY; `waits` says whether the peer waits for a stream up to `last`.
    pub(crate) fn goes_away(&mut self, last: u32, code: ErrorCode, waits: bool, wrong: &mut Vec<Wrong>) {
        let before = self.last.replace(last);
        if before.is_some_and(|before| before < last) {
            wrong.push((Invariant::GoAway, format!("GOAWAY({last}) after GOAWAY({before:?})")));
        }
        if before.is_none() && last != ANY_STREAM && code == ErrorCode::NO_ERROR && waits {
            wrong.push((Invariant::GoAway, format!("GOAWAY({last}) without notice, and streams are open")));
        }
    }
}
