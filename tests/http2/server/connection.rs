//! One connection of a scripted server.

use super::{Request, Shared};
use crate::common::{Ending, Peer};
use crate::http2::client::PREFACE;
use crate::http2::fields::block;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use weir_http2::frame::{self, FrameHeader, HEADER_BYTES, Kind, flag};
use weir_http2::hpack::Decoder;
use weir_http2::{ErrorCode, Head, Limits, Section};

/// One connection, as seen by its script.
pub(in crate::http2) struct Connection<'a> {
    pub peer: &'a mut Peer,
    /// The number of this connection, from 0.
    pub index: usize,
    /// Bytes to send with the next flush.
    pub out: Vec<u8>,
    input: Vec<u8>,
    has_preface: bool,
    decoder: Decoder,
    /// A header block that CONTINUATION continues: its stream, its bytes, and whether the stream ends.
    partial: Option<(u32, Vec<u8>, bool)>,
    /// Whether to acknowledge SETTINGS and PING frames.
    pub acknowledges: bool,
    /// Whether to return DATA bytes to both windows.
    pub credits: bool,
    streams: BTreeMap<u32, Request>,
    /// Streams with a head that the script has not taken.
    heads: VecDeque<u32>,
    /// Complete requests that the script has not taken.
    complete: VecDeque<u32>,
    pub pings: usize,
    pub pongs: usize,
    /// Acknowledgements of SETTINGS.
    pub acknowledged: usize,
    /// The sum of all increments, of the connection and by stream.
    pub updates: BTreeMap<u32, u64>,
    pub ending: Option<Ending>,
    shared: Arc<Shared>,
}

impl<'a> Connection<'a> {
    pub(super) fn new(peer: &'a mut Peer, index: usize, shared: Arc<Shared>) -> Self {
        Self {
            peer,
            index,
            out: Vec::new(),
            input: Vec::new(),
            has_preface: false,
            decoder: Decoder::new(4096),
            partial: None,
            acknowledges: true,
            credits: true,
            streams: BTreeMap::new(),
            heads: VecDeque::new(),
            complete: VecDeque::new(),
            pings: 0,
            pongs: 0,
            acknowledged: 0,
            updates: BTreeMap::new(),
            ending: None,
            shared,
        }
    }

    /// Stages a frame.
    pub(in crate::http2) fn frame(
        &mut self,
        kind: Kind,
        flags: u8,
        stream: u32,
        payload: &[u8],
    ) -> &mut Self {
        frame::write(kind, flags, stream, payload, &mut self.out);
        self
    }

    /// Stages a head or trailers in one HEADERS frame.
    pub(in crate::http2) fn headers(&mut self, stream: u32, fields: &[(&str, &str)], end: bool) -> &mut Self {
        let end = if end { flag::END_STREAM } else { 0 };
        let bytes: Vec<_> = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        self.frame(Kind::Headers, flag::END_HEADERS | end, stream, &block(&bytes))
    }

    /// Stages DATA in frames of at most 16 KiB.
    pub(in crate::http2) fn data(&mut self, stream: u32, data: &[u8], end: bool) -> &mut Self {
        let mut pieces = data.chunks(16 * 1024).peekable();
        if data.is_empty() {
            frame::write_data(stream, b"", end, &mut self.out);
        }
        while let Some(piece) = pieces.next() {
            frame::write_data(stream, piece, end && pieces.peek().is_none(), &mut self.out);
        }
        self
    }

    /// Stages a complete response with status 200 and these fields and body.
    pub(in crate::http2) fn respond(
        &mut self,
        stream: u32,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> &mut Self {
        let fields = [&[(":status", "200")], fields].concat();
        self.headers(stream, &fields, false).data(stream, body, true)
    }

    /// Responds with status 200 and `ok`.
    pub(in crate::http2) fn ok(&mut self, request: &Request) {
        self.respond(request.stream, &[("content-length", "2")], b"ok").flush();
    }

    pub(in crate::http2) fn reset(&mut self, stream: u32, code: ErrorCode) -> &mut Self {
        frame::write_rst_stream(stream, code, &mut self.out);
        self
    }

    pub(in crate::http2) fn go_away(&mut self, last: u32, code: ErrorCode) -> &mut Self {
        frame::write_go_away(last, code, &mut self.out);
        self
    }

    pub(in crate::http2) fn settings(&mut self, settings: &[(u16, u32)]) -> &mut Self {
        frame::write_settings(settings.iter().copied(), &mut self.out);
        self
    }

    pub(in crate::http2) fn window_update(&mut self, stream: u32, increment: u32) -> &mut Self {
        frame::write_window_update(stream, increment, &mut self.out);
        self
    }

    /// Sends all staged bytes. They are lost if the gateway has closed the connection.
    pub(in crate::http2) fn flush(&mut self) -> &mut Self {
        let out = std::mem::take(&mut self.out);
        // Bytes received before the close are still readable.
        let _ = self.peer.stream.send(&out);
        self
    }

    /// Sends all staged bytes, and reads until `is_done` or the end of the connection.
    pub(in crate::http2) fn read_until(&mut self, mut is_done: impl FnMut(&Self) -> bool) -> &mut Self {
        self.flush();
        while !is_done(self) && self.ending.is_none() {
            if self.take_frame() {
                self.flush();
                continue;
            }
            let mut bytes = Vec::new();
            self.ending = self.peer.receive(&mut bytes);
            self.input.extend_from_slice(&bytes);
        }
        self
    }

    /// The next request whose head is complete; `None` at the end of the connection.
    pub(in crate::http2) fn head(&mut self) -> Option<Request> {
        self.read_until(|connection| !connection.heads.is_empty());
        let stream = self.heads.pop_front()?;
        Some(self.streams[&stream].clone())
    }

    /// The next complete request; `None` at the end of the connection.
    pub(in crate::http2) fn request(&mut self) -> Option<Request> {
        self.read_until(|connection| !connection.complete.is_empty());
        let stream = self.complete.pop_front()?;
        self.heads.retain(|known| *known != stream);
        Some(self.streams[&stream].clone())
    }

    /// The number of heads that the script has not taken.
    pub(in crate::http2) fn head_count(&self) -> usize {
        self.heads.len()
    }

    /// The received parts of a stream so far.
    pub(in crate::http2) fn get(&self, stream: u32) -> Request {
        self.streams.get(&stream).cloned().unwrap_or_default()
    }

    /// Takes the bytes of a body received since the last call.
    pub(in crate::http2) fn take_body(&mut self, stream: u32) -> Vec<u8> {
        self.streams.get_mut(&stream).map(|request| std::mem::take(&mut request.body)).unwrap_or_default()
    }

    /// Calls `respond` with every complete request until the gateway closes the connection.
    pub(in crate::http2) fn serve(&mut self, mut respond: impl FnMut(&mut Self, &Request)) {
        while let Some(request) = self.request() {
            respond(self, &request);
        }
    }

    /// Reads to the end of the connection.
    pub(in crate::http2) fn read_to_end(&mut self) {
        self.read_until(|_| false);
    }

    /// Reads until a PING is acknowledged: by then the gateway has processed all frames before it.
    pub(in crate::http2) fn sync(&mut self) -> &mut Self {
        let before = self.pongs;
        frame::write_ping(*b"all done", false, &mut self.out);
        self.read_until(|connection| connection.pongs > before)
    }

    /// Sends a body with END_STREAM, as far as the stream's window allows.
    pub(in crate::http2) fn send_body(&mut self, stream: u32, body: &[u8]) -> &mut Self {
        let mut sent = 0;
        self.send_some(stream, body, &mut sent, true);
        while sent < body.len() && self.ending.is_none() {
            let before = self.updates.get(&stream).copied();
            self.read_until(|connection| {
                let is_reset = connection.get(stream).reset.is_some();
                is_reset || connection.updates.get(&stream).copied() != before
            });
            if self.get(stream).reset.is_some() {
                break;
            }
            self.send_some(stream, body, &mut sent, true);
        }
        self
    }

    /// Sends as much of `body[sent..]` as the stream's window allows now; with `end`, sets END_STREAM on its last byte.
    pub(in crate::http2) fn send_some(
        &mut self,
        stream: u32,
        body: &[u8],
        sent: &mut usize,
        end: bool,
    ) -> &mut Self {
        // The window in the gateway's settings, plus all increments; the connection's window is practically unlimited.
        let window = 64 * 1024 + self.updates.get(&stream).copied().unwrap_or_default() as usize;
        while *sent < body.len() && window > *sent {
            let piece = &body[*sent..][..(body.len() - *sent).min(window - *sent).min(16_000)];
            *sent += piece.len();
            frame::write_data(stream, piece, end && *sent == body.len(), &mut self.out);
        }
        self.flush()
    }

    /// Processes a whole frame; returns whether there was one.
    fn take_frame(&mut self) -> bool {
        if !self.has_preface {
            if self.input.len() < PREFACE.len() {
                return false;
            }
            let preface: Vec<_> = self.input.drain(..PREFACE.len()).collect();
            assert_eq!(preface, PREFACE, "{:?}", String::from_utf8_lossy(&preface));
            self.has_preface = true;
        }
        let Some(header) = self.input.first_chunk::<HEADER_BYTES>().map(FrameHeader::parse) else {
            return false;
        };
        let length = HEADER_BYTES + header.length as usize;
        if self.input.len() < length {
            return false;
        }
        header.check(16 * 1024).unwrap_or_else(|error| panic!("{header:?}: {error}"));
        let frame: Vec<_> = self.input.drain(..length).collect();
        self.on(header, &frame[HEADER_BYTES..]);
        true
    }

    fn on(&mut self, header: FrameHeader, payload: &[u8]) {
        let end = header.has(flag::END_STREAM);
        match header.kind {
            Kind::Headers if self.partial.is_none() => self.on_block(header, payload.to_vec(), end),
            Kind::Continuation => {
                let (stream, mut block, end) = self.partial.take().expect("a header block");
                assert_eq!(stream, header.stream);
                block.extend_from_slice(payload);
                self.on_block(header, block, end);
            }
            _ if self.partial.is_some() => panic!("within a header block: {header:?}"),
            Kind::Data => {
                self.update(header.stream, |request| {
                    assert!(!request.ended, "{header:?} after END_STREAM");
                    request.body.extend_from_slice(payload);
                    request.frames += 1;
                    request.ended = end;
                });
                if self.credits && !payload.is_empty() {
                    self.window_update(0, header.length);
                    if !end {
                        self.window_update(header.stream, header.length);
                    }
                }
                if end {
                    self.complete.push_back(header.stream);
                }
            }
            Kind::RstStream => {
                self.update(header.stream, |request| request.reset = Some(ErrorCode(number(payload))));
            }
            Kind::GoAway => {
                let code = ErrorCode(number(&payload[4..]));
                self.shared.go_aways.lock().unwrap().push((self.index, code));
            }
            Kind::WindowUpdate => {
                *self.updates.entry(header.stream).or_default() += u64::from(number(payload));
            }
            Kind::Settings if header.has(flag::ACK) => self.acknowledged += 1,
            Kind::Settings if self.acknowledges => frame::write_settings_ack(&mut self.out),
            Kind::Settings => {}
            Kind::Ping if header.has(flag::ACK) => self.pongs += 1,
            Kind::Ping => {
                self.pings += 1;
                if self.acknowledges {
                    frame::write_ping(payload.try_into().unwrap(), true, &mut self.out);
                }
            }
            _ => panic!("{header:?}"),
        }
    }

    fn on_block(&mut self, header: FrameHeader, block: Vec<u8>, end: bool) {
        match header.has(flag::END_HEADERS) {
            true => self.on_head(header.stream, &block, end),
            false => self.partial = Some((header.stream, block, end)),
        }
    }

    /// A header block of a request or of trailers, which must be valid.
    fn on_head(&mut self, id: u32, block: &[u8], end: bool) {
        let is_trailers = self.streams.contains_key(&id);
        let section = match is_trailers {
            true => Section::Trailers,
            false => Section::Request { extended_connect: true },
        };
        let (mut head, limits) = (Head::new(), Limits { head_bytes: 1 << 20, fields: 1000 });
        self.decoder.decode(block, section, &limits, &mut head).unwrap().unwrap();
        let lines = String::from_utf8_lossy(&head.bytes).into_owned();
        if is_trailers {
            assert!(end, "trailers that do not end the stream");
            self.update(id, |request| (request.trailers, request.ended) = (lines.clone(), true));
        } else {
            let most = self.streams.last_key_value().map_or(0, |(most, _)| *most);
            assert!(id % 2 == 1 && id > most, "stream {id} after {most}");
            let connection = self.index;
            let request = Request { connection, stream: id, head: lines, ended: end, ..Request::default() };
            self.streams.insert(id, request.clone());
            self.shared.requests.lock().unwrap().insert((connection, id), request);
            self.heads.push_back(id);
        }
        if end {
            self.complete.push_back(id);
        }
    }

    /// Changes the record of a request, which must have begun and must not be reset.
    fn update(&mut self, stream: u32, change: impl Fn(&mut Request)) {
        let request =
            self.streams.get_mut(&stream).unwrap_or_else(|| panic!("a frame on idle stream {stream}"));
        assert_eq!(request.reset, None, "a frame on stream {stream} after RST_STREAM");
        change(request);
        self.shared.requests.lock().unwrap().get_mut(&(self.index, stream)).map(change);
    }
}

fn number(payload: &[u8]) -> u32 {
    u32::from_be_bytes(*payload.first_chunk().unwrap())
}
