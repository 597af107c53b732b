//! Invariants for any input. The fuzz targets call these functions, and so do the crate's tests, with the
//! committed corpus and with generated input.

use weir_http::{Authority, Field, FieldName, Method, is_token};
use weir_http2::frame::{Frame, FrameHeader, HEADER_BYTES, header_bytes};
use weir_http2::hpack::{Decoder, Encoder};
use weir_http2::{
    Config, Connection, ConnectionError, ErrorCode, Event, Head, Limits, Part, Role, Scheme, Section,
    StreamNo,
};

/// Limits that a fuzzer's inputs can reach.
const LIMITS: Limits = Limits { head_bytes: 2048, fields: 24 };

/// Checks consecutive frames: each parsed part is within the payload, and writing a parsed header yields the same
/// bytes.
pub fn frames(input: &[u8]) {
    let mut rest = input;
    while let Some((bytes, behind)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let header = FrameHeader::parse(bytes);
        let mut written = header_bytes(header.length as usize, header.kind, header.flags, header.stream);
        written[5] |= bytes[5] & 0x80;
        assert_eq!(&written, bytes);
        let Some((payload, behind)) = behind.split_at_checked(header.length as usize) else { return };
        rest = behind;
        if header.check(16_384).is_err() {
            continue;
        }
        match Frame::parse(header, payload) {
            Ok(
                Frame::Data { data: part }
                | Frame::Headers { fragment: part }
                | Frame::PushPromise { fragment: part, .. },
            ) => assert!(payload.get(part).is_some()),
            Ok(Frame::Settings(parameters)) => {
                assert_eq!(Frame::parameters(parameters).count() * 6, parameters.len());
            }
            Ok(Frame::WindowUpdate(increment)) => assert!((1..1 << 31).contains(&increment)),
            Ok(_) => {}
            Err(error) => assert!(!error.is_stream_error(0)),
        }
    }
}

/// Field blocks of one connection, each after its length in a byte; the first byte of the input selects their section.
/// Lines are valid, an accepted request is also exactly one request in HTTP/1.1, and encoding a head and decoding the
/// result yields the same head.
pub fn hpack(input: &[u8]) {
    let Some((kind, mut rest)) = input.split_first() else { return };
    let section = match kind % 4 {
        0 => Section::Request { extended_connect: false },
        1 => Section::Request { extended_connect: true },
        2 => Section::Response,
        _ => Section::Trailers,
    };
    let mut decoder = Decoder::new(512);
    let mut head = Head::new();
    while let Some((length, behind)) = rest.split_first() {
        let (block, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = behind;
        match decoder.decode(block, section, &LIMITS, &mut head) {
            Ok(Ok(())) => accepted(&head, section),
            Ok(Err(_)) => {}
            Err(_) => return,
        }
        assert!(decoder.table_size() <= 4096);
    }
}

fn accepted(head: &Head, section: Section) {
    let bytes = &head.bytes;
    assert!(
        head.fields.len() <= LIMITS.fields && bytes.ends_with(if bytes.is_empty() { b"" } else { b"\r\n" })
    );
    for field in &head.fields {
        let (name, value, line) = (field.name.of(bytes), field.value.of(bytes), field.line.of(bytes));
        assert!(is_token(name) && !name.iter().any(u8::is_ascii_uppercase));
        assert!(!value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t'));
        let separator: &[u8] = if value.is_empty() { b":" } else { b": " };
        assert_eq!(line, [name, separator, value, b"\r\n"].concat());
        assert_eq!(field.underscore, name.contains(&b'_'));
        assert_eq!(field.known, FieldName::of(name));
        assert!(!matches!(
            field.known,
            FieldName::Connection | FieldName::TransferEncoding | FieldName::Upgrade
        ));
    }
    assert!(head.fields.iter().filter(|field| field.name.of(bytes) == b"cookie").count() <= 1);
    match section {
        Section::Request { .. } => request(head),
        Section::Response => {
            assert!((100..1000).contains(&head.status) && head.status != 101);
            encoded_again(head, section, |to| to.status(head.status));
        }
        Section::Trailers => encoded_again(head, section, |_| {}),
    }
}

/// The head, written as the gateway writes it, is one request to the strict HTTP/1.1 parser.
fn request(head: &Head) {
    let bytes = &head.bytes;
    let (method, host) = (head.method_span.of(bytes), head.host.unwrap().of(bytes));
    assert!(Authority::parse(host).is_some());
    if head.protocol.is_some() {
        return;
    }
    let target = if head.method == Method::Connect { host } else { head.path.of(bytes) };
    let mut text = [method, b" ", target, b" HTTP/1.1\r\nHost: ", host, b"\r\n"].concat();
    let keep = |field: &Field| field.known != FieldName::Host && !field.hop_by_hop;
    weir_http1::copy_fields(bytes, &head.fields, keep, &mut text);
    text.extend_from_slice(b"\r\n");
    let mut parsed = weir_http1::RequestHead::new();
    let complete = weir_http1::Parse::Complete(text.len());
    assert_eq!(parsed.parse(&text, &weir_http1::Limits::default()), Ok(complete), "{}", text.escape_ascii());
    assert_eq!((parsed.method, parsed.method_span.of(&text)), (head.method, method));
    assert_eq!(parsed.host.map(|host| host.of(&text)), Some(host));
    let length = head.content_length.map_or(weir_http1::Framing::None, weir_http1::Framing::Length);
    assert_eq!((parsed.framing, parsed.expect_continue), (length, head.expect_continue));
    let ours = head
        .fields
        .iter()
        .filter(|field| keep(field))
        .map(|field| (field.name.of(bytes), field.value.of(bytes)));
    let theirs = parsed.fields[1..].iter().map(|field| (field.name.of(&text), field.value.of(&text)));
    assert!(ours.eq(theirs));
    if let Some(scheme) = head.scheme {
        let section = Section::Request { extended_connect: false };
        encoded_again(head, section, |to| to.request(method, scheme, host, head.path.of(bytes)));
    }
}

fn encoded_again(head: &Head, section: Section, pseudo: impl FnOnce(&mut Encoder<'_>)) {
    let mut block = Vec::new();
    let mut encoder = Encoder::new(&mut block);
    encoder.without_table();
    pseudo(&mut encoder);
    encoder.fields(&head.bytes, &head.fields, |_| true);
    let mut again = Head::new();
    assert_eq!(Decoder::new(0).decode(&block, section, &Limits::default(), &mut again), Ok(Ok(())));
    let of = |head: &Head| -> Vec<_> {
        let field =
            |field: &Field| (field.name.of(&head.bytes).to_vec(), field.value.of(&head.bytes).to_vec());
        head.fields.iter().map(field).collect()
    };
    assert_eq!(of(&again), of(head));
    assert_eq!((again.status, again.content_length), (head.status, head.content_length));
}

/// A connection of either role, after the peer's preface. Its events do not depend on how the input is split, its
/// memory stays within its bounds, its output consists of valid frames, and it credits every received byte.
pub fn connection(input: &[u8]) {
    let Some((role, input)) = input.split_first() else { return };
    let role = if role % 2 == 0 { Role::Server } else { Role::Client };
    let whole = Owner::run(role, input, usize::MAX);
    assert_eq!(Owner::run(role, input, 1), whole);
    assert_eq!(Owner::run(role, input, 7), whole);
}

/// The owner of a connection. It responds to each request with a small body, and credits all received bytes at the end.
struct Owner {
    connection: Connection,
    head: Head,
    out: Vec<u8>,
    seen: Vec<Seen>,
    flows: Vec<(StreamNo, u32)>,
}

/// An event, with the pieces of a body joined.
#[derive(Debug, PartialEq)]
enum Seen {
    Event(Event),
    Head(u32, bool, Vec<u8>),
    Body { stream: u32, bytes: Vec<u8>, end: bool },
    End(Result<(), ConnectionError>),
}

impl Owner {
    fn run(role: Role, input: &[u8], piece: usize) -> Vec<Seen> {
        let config = Config { limits: LIMITS, block_bytes: 4096, continuations: 3, ..Config::default() };
        let connection = Connection::new(role, config);
        let mut owner =
            Self { connection, head: Head::new(), out: Vec::new(), seen: Vec::new(), flows: Vec::new() };
        for _ in 0..if role == Role::Client { 3 } else { 0 } {
            let stream = owner.connection.open(false).unwrap();
            let head = |to: &mut Encoder<'_>| to.request(b"GET", Scheme::Http, b"a", b"/");
            owner.connection.head(stream, Part::Head { end: false }, head, &mut owner.out).unwrap();
            owner.send(stream);
        }
        let preface: &[u8] = if role == Role::Server { b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" } else { b"" };
        let settings = b"\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0";
        let input = [preface, settings, input].concat();
        let mut held = Vec::new();
        let mut end = Ok(());
        for piece in input.chunks(piece.min(input.len())) {
            held.extend_from_slice(piece);
            end = owner.feed(&mut held);
            if end.is_err() {
                break;
            }
            assert!(held.len() <= owner.connection.most_held());
        }
        owner.seen.push(Seen::End(end));
        owner.finish(end.err())
    }

    fn feed(&mut self, held: &mut Vec<u8>) -> Result<(), ConnectionError> {
        loop {
            let step = self.connection.feed(held, &mut self.head)?;
            let is_last = step.event.is_none();
            if let Some(event) = step.event {
                self.handle(event, held);
            }
            held.drain(..step.consumed);
            if is_last {
                return Ok(());
            }
        }
    }

    fn handle(&mut self, event: Event, input: &[u8]) {
        match event {
            Event::Data { stream, range, flow, end } => {
                self.flows.push((stream, flow));
                let piece = &input[range];
                match self.seen.last_mut() {
                    Some(Seen::Body { stream: same, bytes, end: is_end @ false })
                        if *same == stream.get() =>
                    {
                        bytes.extend_from_slice(piece);
                        *is_end = end;
                    }
                    _ => self.seen.push(Seen::Body { stream: stream.get(), bytes: piece.to_vec(), end }),
                }
                if end {
                    self.connection.release(stream);
                }
            }
            Event::Head { stream, end } => {
                self.seen.push(Seen::Head(stream.get(), end, self.head.bytes.clone()));
                let part = Part::Head { end: false };
                if self.connection.head(stream, part, |to| to.status(200), &mut self.out).is_ok() {
                    self.send(stream);
                }
                if end {
                    self.connection.release(stream);
                }
            }
            Event::Trailers { stream } | Event::Reset { stream, .. } | Event::Failed { stream, .. } => {
                self.connection.release(stream);
                self.seen.push(Seen::Event(event));
            }
            // The position of a pause depends on how the input is split.
            Event::Pause => {}
            event => self.seen.push(Seen::Event(event)),
        }
    }

    fn send(&mut self, stream: StreamNo) {
        let taken = self.connection.data(stream, &[b'x'; 100], true, &mut self.out).unwrap();
        assert!(taken <= 100);
    }

    fn finish(mut self, error: Option<ConnectionError>) -> Vec<Seen> {
        if let Some(error) = error {
            assert_ne!(error.code(), ErrorCode::NO_ERROR);
            self.connection.fail(error);
        }
        self.connection.settle(&mut self.out);
        let mut rest = self.out.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap_or(&self.out);
        while let Some((bytes, behind)) = rest.split_first_chunk() {
            let header = FrameHeader::parse(bytes);
            let (payload, behind) = behind.split_at(header.length as usize);
            assert_eq!(header.check(16_384), Ok(()));
            assert!(Frame::parse(header, payload).is_ok());
            rest = behind;
        }
        assert!(rest.is_empty());
        for (stream, flow) in self.flows {
            self.connection.credit(stream, flow);
        }
        // A DATA frame that ended the connection or is incomplete counts in full, so the owner cannot credit all of it.
        assert!(self.connection.held() <= 16_384);
        self.seen
    }
}
