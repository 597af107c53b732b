//! A connection under test, and the frames of its peer.

use crate::heads::block;
use weir_http2::frame::*;
use weir_http2::hpack::Decoder;
use weir_http2::*;

/// A connection whose owner credits and releases only at a test's command.
pub(crate) struct Tested {
    pub(crate) connection: Connection,
    pub(crate) head: Head,
    /// Decodes the heads that the connection writes.
    decoder: Decoder,
    section: Section,
}

impl Tested {
    /// A connection before the prefaces.
    pub(crate) fn fresh(role: Role, config: Config) -> Self {
        let section = match role {
            Role::Server => Section::Response,
            Role::Client => Section::Request { extended_connect: false },
        };
        let connection = Connection::new(role, config);
        Self { connection, head: Head::new(), decoder: Decoder::new(0), section }
    }

    /// A connection after the prefaces of both sides.
    pub(crate) fn new(role: Role, config: Config) -> Self {
        let mut tested = Self::fresh(role, config);
        let preface = if role == Role::Server { &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..] } else { b"" };
        let mut input = preface.to_vec();
        write_settings([].into_iter(), &mut input);
        write_settings_ack(&mut input);
        assert_eq!(tested.feed(&input), Ok(vec!["settings".to_owned()]));
        let out = tested.settle();
        assert_eq!(out.last().map(String::as_str), Some("settings ack"));
        tested
    }

    pub(crate) fn server() -> Self {
        Self::new(Role::Server, Config::default())
    }

    pub(crate) fn client() -> Self {
        Self::new(Role::Client, Config::default())
    }

    /// Feeds all bytes; returns the events.
    pub(crate) fn feed(&mut self, input: &[u8]) -> Result<Vec<String>, ConnectionError> {
        let mut input = input.to_vec();
        let (mut at, mut events) = (0, Vec::new());
        loop {
            let step = self.connection.feed(&mut input[at..], &mut self.head)?;
            let Some(event) = step.event else { return Ok(events) };
            events.push(describe(&event, &self.head, &input[at..]));
            at += step.consumed;
        }
    }

    /// As [`Tested::feed`], for valid input.
    pub(crate) fn events(&mut self, input: &[u8]) -> Vec<String> {
        self.feed(input).unwrap()
    }

    /// The control frames that the connection sends at the end of a turn.
    pub(crate) fn settle(&mut self) -> Vec<String> {
        let mut out = Vec::new();
        self.connection.settle(&mut out);
        self.written(&out)
    }

    /// The frames in the connection's output.
    pub(crate) fn written(&mut self, mut out: &[u8]) -> Vec<String> {
        if let Some(rest) = out.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") {
            out = rest;
        }
        let mut frames = Vec::new();
        while let Some((bytes, rest)) = out.split_first_chunk() {
            let header = FrameHeader::parse(bytes);
            header.check(16_384).unwrap();
            let (payload, rest) = rest.split_at(header.length as usize);
            frames.push(self.frame(header, payload));
            out = rest;
        }
        frames
    }

    fn frame(&mut self, header: FrameHeader, payload: &[u8]) -> String {
        let id = header.stream;
        let end = if header.has(flag::END_STREAM) { " end" } else { "" };
        match Frame::parse(header, payload).unwrap() {
            Frame::Headers { .. } | Frame::Continuation if !header.has(flag::END_HEADERS) => {
                format!("fragment {id} {}", payload.len())
            }
            Frame::Continuation => format!("last fragment {id} {}", payload.len()),
            Frame::Headers { .. } => {
                let mut head = Head::new();
                let _verdict = self.decoder.decode(payload, self.section, &Limits::default(), &mut head);
                format!("headers {id}{end}: {}", String::from_utf8_lossy(&head.bytes).replace("\r\n", ";"))
            }
            Frame::Data { data } => format!("data {id} {}{end}", data.len()),
            Frame::RstStream(code) => format!("rst {id} {}", code.name()),
            Frame::Settings(parameters) => {
                let parameters = Frame::parameters(parameters).map(|(id, value)| format!(" {id}={value}"));
                format!("settings{}", parameters.collect::<String>())
            }
            Frame::SettingsAck => "settings ack".into(),
            Frame::Ping(_) => "ping".into(),
            Frame::Pong(payload) => format!("pong {}", payload.escape_ascii()),
            Frame::GoAway { last, code, .. } => format!("goaway {last} {}", code.name()),
            Frame::WindowUpdate(increment) => format!("window {id} +{increment}"),
            other => panic!("never sent: {other:?}"),
        }
    }
}

fn describe(event: &Event, head: &Head, input: &[u8]) -> String {
    let end = |end: &bool| if *end { " end" } else { "" };
    match event {
        Event::Head { stream, end: is_end } if head.status == 0 => {
            let text = |span: weir_http::Span| String::from_utf8_lossy(span.of(&head.bytes)).into_owned();
            let target = text(if head.path.is_empty() { head.host.unwrap() } else { head.path });
            format!("head {}{}: {} {target}", stream.get(), end(is_end), text(head.method_span))
        }
        Event::Head { stream, end: is_end } => {
            format!("head {}{}: {}", stream.get(), end(is_end), head.status)
        }
        Event::Data { stream, range, flow, end: is_end } => {
            let data = String::from_utf8_lossy(&input[range.clone()]);
            let data = if data.len() > 20 { format!("{} bytes", data.len()) } else { data.into_owned() };
            format!("data {} '{data}' {flow}{}", stream.get(), end(is_end))
        }
        Event::Trailers { stream } => {
            format!("trailers {}: {}", stream.get(), String::from_utf8_lossy(&head.bytes).trim_end())
        }
        Event::Reset { stream, code } => format!("reset {} {}", stream.get(), code.name()),
        Event::Failed { stream, error } => format!("failed {} {error:?}", stream.get()),
        Event::Rejected { stream, error } => format!("rejected {} {error:?}", stream.get()),
        Event::Room { stream } => format!("room {:?}", stream.map(StreamNo::get)),
        Event::Settings => "settings".into(),
        Event::GoAway { last, code } => format!("goaway {last} {}", code.name()),
        Event::Pong => "pong".into(),
        Event::Pause => "pause".into(),
    }
}

/// A HEADERS frame with these fields, one per line.
pub(crate) fn headers(stream: u32, flags: u8, lines: &str) -> Vec<u8> {
    frame(Kind::Headers, flags | flag::END_HEADERS, stream, &block(lines))
}

pub(crate) const GET: &str = ":method: GET\n:scheme: https\n:path: /a\n:authority: a\n";
pub(crate) const POST: &str = ":method: POST\n:scheme: https\n:path: /p\n:authority: a\n";

pub(crate) fn get(stream: u32) -> Vec<u8> {
    headers(stream, flag::END_STREAM, GET)
}

pub(crate) fn post(stream: u32) -> Vec<u8> {
    headers(stream, 0, POST)
}

pub(crate) fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write(kind, flags, stream, payload, &mut out);
    out
}

pub(crate) fn data(stream: u32, data: &[u8]) -> Vec<u8> {
    frame(Kind::Data, 0, stream, data)
}

pub(crate) fn data_end(stream: u32, data: &[u8]) -> Vec<u8> {
    frame(Kind::Data, flag::END_STREAM, stream, data)
}

pub(crate) fn rst(stream: u32, code: ErrorCode) -> Vec<u8> {
    frame(Kind::RstStream, 0, stream, &code.0.to_be_bytes())
}

pub(crate) fn window(stream: u32, increment: u32) -> Vec<u8> {
    frame(Kind::WindowUpdate, 0, stream, &increment.to_be_bytes())
}

pub(crate) fn priority_update(stream: u32, value: &str) -> Vec<u8> {
    frame(Kind::PRIORITY_UPDATE, 0, 0, &[&stream.to_be_bytes(), value.as_bytes()].concat())
}

pub(crate) fn settings(parameters: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    write_settings(parameters.iter().copied(), &mut out);
    out
}
