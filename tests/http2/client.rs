//! An HTTP/2 client that sends any frames and header blocks, valid or not, and collects what it receives by stream.

use super::fields::{Field, block, request};
use crate::common::{Ending, Stream};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use weir_http2::frame::{self, FrameHeader, HEADER_BYTES, Kind, flag};
use weir_http2::hpack::Decoder;
use weir_http2::{ErrorCode, Head, Limits, Section};

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One connection.
pub(super) struct Client {
    pub stream: Stream,
    /// Bytes to send with the next flush.
    pub out: Vec<u8>,
    input: Vec<u8>,
    decoder: Decoder,
    /// A header block that CONTINUATION continues, and whether its stream ends.
    partial: Option<(Vec<u8>, bool)>,
    /// Whether to acknowledge SETTINGS and PING frames.
    pub acknowledges: bool,
    /// Whether the gateway's SETTINGS have arrived, and are acknowledged.
    has_settings: bool,
    /// Whether to return DATA bytes to both windows.
    pub credits: bool,
    streams: BTreeMap<u32, Received>,
    /// The GOAWAY frames: last stream and code.
    pub go_aways: Vec<(u32, ErrorCode)>,
    /// Payloads of acknowledged PING frames.
    pub pongs: Vec<[u8; 8]>,
    /// PING frames that [`Client::acknowledges`] left without acknowledgement.
    pub pings: Vec<[u8; 8]>,
    /// The sum of all increments, of the connection and by stream.
    pub updates: BTreeMap<u32, u64>,
    pub ending: Option<Ending>,
}

/// The progress of [`Client::upload`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Upload {
    pub body: usize,
    /// Bytes that count for the window.
    pub flow: usize,
    /// Padding of each frame.
    pub padding: u8,
}

/// The state of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    /// The lines of interim responses.
    pub interim: Vec<String>,
    /// The lines of the final head, with `:status` first.
    pub head: String,
    pub body: Vec<u8>,
    /// The lines of the trailers.
    pub trailers: String,
    /// DATA frames.
    pub frames: usize,
    /// Whether END_STREAM was received.
    pub ended: bool,
    /// The code of RST_STREAM.
    pub reset: Option<ErrorCode>,
}

impl Client {
    /// A cleartext connection by prior knowledge, with the preface and empty SETTINGS staged.
    pub(super) fn connect(address: SocketAddr) -> Self {
        Self::begun(Stream::connect(address, None).unwrap())
    }

    /// As [`Client::connect`], with these settings.
    pub(super) fn with_settings(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        Self::over(Stream::connect(address, None).unwrap(), settings)
    }

    /// A connection that speaks HTTP/2, with the preface and empty SETTINGS staged.
    pub(super) fn begun(stream: Stream) -> Self {
        Self::over(stream, &[])
    }

    fn over(stream: Stream, settings: &[(u16, u32)]) -> Self {
        let mut client = Self::silent(stream);
        client.out.extend_from_slice(PREFACE);
        frame::write_settings(settings.iter().copied(), &mut client.out);
        client
    }

    /// A connection without any bytes of ours.
    pub(super) fn silent(stream: Stream) -> Self {
        Self {
            stream,
            out: Vec::new(),
            input: Vec::new(),
            decoder: Decoder::new(4096),
            partial: None,
            acknowledges: true,
            has_settings: false,
            credits: true,
            streams: BTreeMap::new(),
            go_aways: Vec::new(),
            pongs: Vec::new(),
            pings: Vec::new(),
            updates: BTreeMap::new(),
            ending: None,
        }
    }

    /// Stages a frame.
    pub(super) fn frame(&mut self, kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> &mut Self {
        frame::write(kind, flags, stream, payload, &mut self.out);
        self
    }

    /// Stages a request or trailers in one HEADERS frame.
    pub(super) fn headers(&mut self, stream: u32, fields: &[Field<'_>], end: bool) -> &mut Self {
        let end = if end { flag::END_STREAM } else { 0 };
        self.frame(Kind::Headers, flag::END_HEADERS | end, stream, &block(fields))
    }

    /// Stages a GET without a body.
    pub(super) fn get(&mut self, stream: u32, path: &str) -> &mut Self {
        self.headers(stream, &request("GET", path), true)
    }

    /// Stages a POST with a body to follow.
    pub(super) fn post(&mut self, stream: u32, path: &str) -> &mut Self {
        self.headers(stream, &request("POST", path), false)
    }

    /// Stages DATA in frames of at most 16 KiB.
    pub(super) fn data(&mut self, stream: u32, data: &[u8], end: bool) -> &mut Self {
        let mut pieces = data.chunks(16 * 1024).peekable();
        if data.is_empty() {
            frame::write_data(stream, b"", end, &mut self.out);
        }
        while let Some(piece) = pieces.next() {
            frame::write_data(stream, piece, end && pieces.peek().is_none(), &mut self.out);
        }
        self
    }

    pub(super) fn reset(&mut self, stream: u32, code: ErrorCode) -> &mut Self {
        frame::write_rst_stream(stream, code, &mut self.out);
        self
    }

    pub(super) fn window_update(&mut self, stream: u32, increment: u32) -> &mut Self {
        frame::write_window_update(stream, increment, &mut self.out);
        self
    }

    pub(super) fn ping(&mut self, payload: [u8; 8]) -> &mut Self {
        frame::write_ping(payload, false, &mut self.out);
        self
    }

    /// Sends all staged bytes. They are lost if the gateway has closed the connection.
    pub(super) fn flush(&mut self) -> &mut Self {
        let out = std::mem::take(&mut self.out);
        // Bytes received before the close are still readable.
        let _ = self.stream.send(&out);
        self
    }

    /// Sends the remaining body with END_STREAM, as far as the stream's window allows.
    pub(super) fn upload(&mut self, stream: u32, body: &[u8], sent: &mut Upload) -> &mut Self {
        self.upload_some(stream, body, sent);
        while sent.body < body.len() {
            let before = self.window(stream);
            self.read_until(|client| client.window(stream) != before);
            self.upload_some(stream, body, sent);
        }
        self
    }

    /// The total number of bytes that a stream may have carried. Until the gateway's SETTINGS have arrived, the default
    /// applies (RFC 9113 section 6.5.2).
    fn window(&self, stream: u32) -> usize {
        let initial = if self.has_settings { 64 * 1024 } else { 65_535 };
        initial + self.updates.get(&stream).copied().unwrap_or_default() as usize
    }

    /// Sends as much of the remaining body as the stream's window allows now.
    pub(super) fn upload_some(&mut self, stream: u32, body: &[u8], sent: &mut Upload) -> &mut Self {
        let overhead = if sent.padding > 0 { 1 + usize::from(sent.padding) } else { 0 };
        let window = self.window(stream);
        let rest = |sent: &Upload| {
            let room = (window - sent.flow).saturating_sub(overhead);
            room.min(body.len() - sent.body).min(if sent.padding > 0 { 1000 } else { 16_000 })
        };
        while rest(sent) > 0 {
            let data = &body[sent.body..sent.body + rest(sent)];
            sent.body += data.len();
            sent.flow += data.len() + overhead;
            let end = if sent.body == body.len() { flag::END_STREAM } else { 0 };
            match sent.padding {
                0 => self.frame(Kind::Data, end, stream, data),
                padding => {
                    let padded = [&[padding], data, &vec![0; padding.into()]].concat();
                    self.frame(Kind::Data, end | flag::PADDED, stream, &padded)
                }
            };
        }
        self.flush()
    }

    /// Whether all staged bytes were sent.
    pub(super) fn try_flush(&mut self) -> bool {
        let out = std::mem::take(&mut self.out);
        self.stream.send(&out).is_ok()
    }

    /// Sends all staged bytes, and reads until `is_done` or the end of the connection.
    pub(super) fn read_until(&mut self, mut is_done: impl FnMut(&Self) -> bool) -> &mut Self {
        self.flush();
        while !is_done(self) && self.ending.is_none() {
            if self.take_frame() {
                self.flush();
                continue;
            }
            let mut bytes = Vec::new();
            self.ending = self.stream.receive(&mut bytes);
            self.input.extend_from_slice(&bytes);
        }
        self
    }

    /// Reads until a stream has ended; returns its received parts.
    pub(super) fn response(&mut self, stream: u32) -> Received {
        self.read_until(|client| client.get_stream(stream).is_over());
        self.get_stream(stream)
    }

    /// Reads until a PING of this client is acknowledged: by then the gateway has processed all frames before it.
    pub(super) fn sync(&mut self) -> &mut Self {
        let before = self.pongs.len();
        self.ping(*b"all done");
        self.read_until(|client| client.pongs.len() > before)
    }

    /// Reads to the end of the connection; returns the last GOAWAY.
    pub(super) fn end(&mut self) -> Option<(u32, ErrorCode)> {
        self.read_until(|_| false);
        self.stream.finish_tcp();
        self.go_aways.last().copied()
    }

    /// The received parts of a stream so far.
    pub(super) fn get_stream(&self, stream: u32) -> Received {
        self.streams.get(&stream).cloned().unwrap_or_default()
    }

    /// The streams on which anything was received.
    pub(super) fn streams(&self) -> impl Iterator<Item = (u32, &Received)> {
        self.streams.iter().map(|(stream, received)| (*stream, received))
    }

    /// Processes a whole frame; returns whether there was one.
    fn take_frame(&mut self) -> bool {
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
            Kind::Headers | Kind::Continuation => {
                assert_eq!(header.kind == Kind::Continuation, self.partial.is_some(), "{header:?}");
                let (mut block, end) = self.partial.take().unwrap_or((Vec::new(), end));
                block.extend_from_slice(payload);
                match header.has(flag::END_HEADERS) {
                    true => self.on_head(header.stream, &block, end),
                    false => self.partial = Some((block, end)),
                }
            }
            _ if self.partial.is_some() => panic!("within a header block: {header:?}"),
            Kind::Data => {
                let stream = self.open(header.stream);
                assert!(!stream.head.is_empty(), "DATA before a head");
                stream.body.extend_from_slice(payload);
                stream.frames += 1;
                stream.ended = end;
                if self.credits && !payload.is_empty() {
                    self.window_update(0, header.length);
                    if !end {
                        self.window_update(header.stream, header.length);
                    }
                }
            }
            Kind::RstStream => self.open_or_ended(header.stream).reset = Some(ErrorCode(number(payload))),
            Kind::GoAway => {
                self.go_aways.push((number(payload) & 0x7fff_ffff, ErrorCode(number(&payload[4..]))));
            }
            Kind::WindowUpdate => {
                *self.updates.entry(header.stream).or_default() += u64::from(number(payload));
            }
            Kind::Settings if !header.has(flag::ACK) && self.acknowledges => {
                self.has_settings = true;
                frame::write_settings_ack(&mut self.out);
            }
            Kind::Settings => {}
            Kind::Ping if header.has(flag::ACK) => self.pongs.push(payload.try_into().unwrap()),
            Kind::Ping if self.acknowledges => {
                frame::write_ping(payload.try_into().unwrap(), true, &mut self.out);
            }
            Kind::Ping => self.pings.push(payload.try_into().unwrap()),
            _ => panic!("{header:?}"),
        }
    }

    fn on_head(&mut self, id: u32, block: &[u8], end: bool) {
        let section = match self.get_stream(id).head.is_empty() {
            true => Section::Response,
            false => Section::Trailers,
        };
        let (mut head, limits) = (Head::new(), Limits { head_bytes: 1 << 20, fields: 1000 });
        self.decoder.decode(block, section, &limits, &mut head).unwrap().unwrap();
        let lines = String::from_utf8(head.bytes).unwrap();
        let stream = self.open(id);
        match section {
            Section::Response if head.status < 200 => {
                assert!(!end);
                stream.interim.push(lines);
            }
            Section::Response => stream.head = lines,
            _ => {
                assert!(end, "trailers that do not end the stream");
                stream.trailers = lines;
            }
        }
        stream.ended = end;
    }

    /// A stream that may still receive a part of a response.
    fn open(&mut self, stream: u32) -> &mut Received {
        let received = self.open_or_ended(stream);
        assert!(!received.ended, "a frame on stream {stream} after END_STREAM");
        received
    }

    fn open_or_ended(&mut self, stream: u32) -> &mut Received {
        assert!(stream % 2 == 1, "{stream}");
        let received = self.streams.entry(stream).or_default();
        assert_eq!(received.reset, None, "a frame on stream {stream} after RST_STREAM");
        received
    }
}

impl Received {
    /// Whether nothing can follow. A reset may still follow a complete response.
    pub(super) fn is_over(&self) -> bool {
        self.ended || self.reset.is_some()
    }

    /// The final status; 0 without a head.
    pub(super) fn status(&self) -> u16 {
        let line = self.head.lines().next().and_then(|line| line.strip_prefix(":status: "));
        line.map_or(0, |status| status.parse().unwrap())
    }

    /// The value of a field in the head; empty if absent.
    pub(super) fn field(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(field, _)| *field == name).map(|(_, value)| value).next().unwrap_or_default()
    }

    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

fn number(payload: &[u8]) -> u32 {
    u32::from_be_bytes(*payload.first_chunk().unwrap())
}
