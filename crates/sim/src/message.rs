//! What clients ask for, and how everybody can tell whose bytes are whose.

use crate::world::World;
use weir_http1::Method;

/// One request, and the answer that is wanted for it.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// Its number, in its target and in a field.
    pub(crate) id: usize,
    /// Its method.
    pub(crate) method: Method,
    /// HTTP/1.0.
    pub(crate) is_old: bool,
    /// The connection closes after it.
    pub(crate) closes: bool,
    /// Its body, if it has one.
    pub(crate) body: Option<BodyOf>,
    /// The answer's body.
    pub(crate) answer: Answer,
    /// The protocol it asks for.
    pub(crate) switch: Option<Switch>,
    /// What its path begins with.
    pub(crate) below: &'static str,
}

/// What passes once a protocol is switched. Each side says all of it, and ends its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    /// Bytes from the client.
    pub(crate) up: usize,
    /// Bytes from the origin.
    pub(crate) down: usize,
}

/// A body's length and framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyOf {
    /// Bytes.
    pub(crate) length: usize,
    /// Chunked, or with its length.
    pub(crate) chunked: bool,
}

/// What an origin answers in good order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 200 with this many bytes.
    Length(usize),
    /// The same, chunked.
    Chunked(usize),
    /// The same, until the connection closes.
    UntilClose(usize),
    /// 204.
    NoContent,
    /// 304 with the length of what it stands for.
    NotModified,
    /// 101.
    Switch,
}

/// An error as an origin's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Its status.
    pub(crate) status: u16,
    /// Its body, with the framing.
    pub(crate) answer: Answer,
}

impl Failure {
    /// An error by chance.
    pub(crate) fn by_chance(world: &mut World) -> Self {
        let status = [503, 503, 503, 502, 504, 500][world.below(6) as usize];
        let length = length(world);
        let answer = match world.below(6) {
            0 => Answer::UntilClose(length),
            1..=2 => Answer::Chunked(length),
            3 => Answer::Length(0),
            _ => Answer::Length(length),
        };
        Self { status, answer }
    }
}

impl Ask {
    /// A request by chance. `plain`: of the kind that nobody can have trouble with.
    pub(crate) fn by_chance(id: usize, plain: bool, world: &mut World) -> Self {
        let method = match world.below(10) {
            0 => Method::Head,
            1..=2 => Method::Post,
            3 => Method::Put,
            4 => Method::Delete,
            5 => Method::Patch,
            _ => Method::Get,
        };
        let has_body = matches!(method, Method::Post | Method::Put | Method::Patch);
        let is_old = !plain && world.below(12) == 0;
        let length = length(world);
        let body = has_body.then(|| BodyOf { length, chunked: !is_old && world.below(2) == 0 });
        let length = self::length(world);
        let answer = match world.below(12) {
            0..=2 => Answer::Chunked(length),
            3 if !plain => Answer::UntilClose(length),
            4 => Answer::NoContent,
            5 => Answer::NotModified,
            _ => Answer::Length(length),
        };
        Self {
            id,
            method,
            is_old,
            closes: !plain && world.below(15) == 0,
            body,
            answer,
            switch: None,
            below: "",
        }
    }

    /// A request for another protocol by chance, which the origin grants or not.
    pub(crate) fn switch(world: &mut World) -> Self {
        let switch = Switch { up: length(world), down: length(world) };
        let answer = if world.below(4) == 0 { Answer::Length(length(world)) } else { Answer::Switch };
        Self { answer, switch: Some(switch), ..Self::plain(0, false) }
    }

    /// `GET` of this many bytes; `closes`: the connection ends after it.
    pub(crate) fn plain(bytes: usize, closes: bool) -> Self {
        let answer = Answer::Length(bytes);
        Self {
            id: 0,
            method: Method::Get,
            is_old: false,
            closes,
            body: None,
            answer,
            switch: None,
            below: "",
        }
    }

    /// The request's bytes.
    pub(crate) fn bytes(&self, world: &mut World) -> Vec<u8> {
        let method = name(self.method);
        let version = if self.is_old { "1.0" } else { "1.1" };
        let (below, id) = (self.below, self.id);
        let mut out = format!("{method} {below}/{id} HTTP/{version}\r\nHost: {HOST}\r\n").into_bytes();
        let mut field = |name: &str, value: String| {
            out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        };
        field("X-Id", self.id.to_string());
        field("X-Answer", self.answer.text());
        field("X-Body", self.body.map_or(0, |body| body.length).to_string());
        if let Some(switch) = self.switch {
            field("X-Switch", switch.text());
            field("Upgrade", PROTOCOL.into());
            field("Connection", "upgrade".into());
        }
        match (self.closes, self.is_old) {
            (true, _) => field("Connection", "close".into()),
            (false, true) => field("Connection", "keep-alive".into()),
            (false, false) => {}
        }
        match self.body {
            Some(BodyOf { chunked: true, .. }) => field("Transfer-Encoding", "chunked".into()),
            Some(BodyOf { length, chunked: false }) => field("Content-Length", length.to_string()),
            None => {}
        }
        out.extend_from_slice(b"\r\n");
        if let Some(body) = self.body {
            write_body(&pattern(self.id, body.length), body.chunked, world, &mut out);
        }
        out
    }

    /// The answer's body as the client must get it; `None` where the status forbids one or the method asks for none.
    pub(crate) fn answer_body(&self) -> Vec<u8> {
        self.body_of(self.answer, self.id ^ ANSWER)
    }

    /// The body of an origin's error for this attempt of the request, from 0.
    pub(crate) fn error_body(&self, failure: Failure, attempt: usize) -> Vec<u8> {
        self.body_of(failure.answer, error(self.id, attempt))
    }

    fn body_of(&self, answer: Answer, id: usize) -> Vec<u8> {
        match answer {
            _ if self.method == Method::Head => Vec::new(),
            Answer::Length(length) | Answer::Chunked(length) | Answer::UntilClose(length) => {
                pattern(id, length)
            }
            Answer::NoContent | Answer::NotModified | Answer::Switch => Vec::new(),
        }
    }
}

impl Switch {
    fn text(self) -> String {
        format!("{} {}", self.up, self.down)
    }

    /// Reads what [`Ask::bytes`] wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (up, down) = text.split_once(' ')?;
        Some(Self { up: up.parse().ok()?, down: down.parse().ok()? })
    }
}

impl Answer {
    /// Its status.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::Length(_) | Self::Chunked(_) | Self::UntilClose(_) => 200,
            Self::NoContent => 204,
            Self::NotModified => 304,
            Self::Switch => 101,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Length(length) => format!("length {length}"),
            Self::Chunked(length) => format!("chunked {length}"),
            Self::UntilClose(length) => format!("close {length}"),
            Self::NoContent => "none 0".into(),
            Self::NotModified => "same 0".into(),
            Self::Switch => "switch 0".into(),
        }
    }

    /// Reads what [`Ask::bytes`] wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, length) = text.split_once(' ')?;
        let length = length.parse().ok()?;
        Some(match kind {
            "length" => Self::Length(length),
            "chunked" => Self::Chunked(length),
            "close" => Self::UntilClose(length),
            "none" => Self::NoContent,
            "same" => Self::NotModified,
            "switch" => Self::Switch,
            _ => return None,
        })
    }
}

/// Appends a body, in chunks of any size if it is chunked.
pub(crate) fn write_body(body: &[u8], chunked: bool, world: &mut World, out: &mut Vec<u8>) {
    if !chunked {
        out.extend_from_slice(body);
        return;
    }
    let mut rest = body;
    while !rest.is_empty() {
        let size = 1 + world.below(rest.len() as u64) as usize;
        out.extend_from_slice(format!("{size:x}\r\n").as_bytes());
        out.extend_from_slice(&rest[..size]);
        out.extend_from_slice(b"\r\n");
        rest = &rest[size..];
    }
    out.extend_from_slice(b"0\r\n\r\n");
}

/// The bytes of a body: no two are alike, and no part of one fits another place.
pub(crate) fn pattern(id: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251 + id * 31 + id / 7) as u8).collect()
}

/// As in a request line.
pub(crate) fn name(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
        Method::Patch => "PATCH",
        Method::Options => "OPTIONS",
        Method::Trace => "TRACE",
        Method::Connect | Method::Other => "OTHER",
    }
}

fn length(world: &mut World) -> usize {
    match world.below(6) {
        0 => 0,
        1 => 1 + world.below(10) as usize,
        2 => 8 * 1024 + world.below(200_000) as usize,
        _ => world.below(3000) as usize,
    }
}

/// The host that everybody asks.
pub(crate) const HOST: &str = "sim";

/// The pattern of the body of an error is another one for each attempt.
pub(crate) fn error(id: usize, attempt: usize) -> usize {
    (id ^ ERROR) + attempt * 101
}

/// Tells bodies of errors from those of other responses.
const ERROR: usize = 0x0aaa;

/// The field with the number of the attempt that an origin responds to, from 0.
pub(crate) const ATTEMPT: &str = "X-Attempt";

/// The field by which an answer to a copy is known.
pub(crate) const COPY: &str = "X-Copy";

/// The other protocol.
pub(crate) const PROTOCOL: &str = "sim";

/// Answers' bodies are others than requests'.
pub(crate) const ANSWER: usize = 0x55;
