//! Requests, responses and the byte patterns that identify them.

use crate::plan::Plan;
use crate::switch::Switch;
use crate::world::World;
use weir_http::Method;

/// One request and the response that it asks for.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// The request's ID, in its target and in a field.
    pub(crate) id: usize,
    pub(crate) method: Method,
    /// The request is HTTP/1.0.
    pub(crate) is_old: bool,
    /// The request closes the connection.
    pub(crate) closes: bool,
    pub(crate) body: Option<BodyOf>,
    /// The response that the origin should send.
    pub(crate) answer: Answer,
    /// The requested switch of protocols.
    pub(crate) switch: Option<Switch>,
    /// The request and the response have trailers if their form allows; only in HTTP/2.
    pub(crate) has_trailers: bool,
    /// The prefix of the request's path.
    pub(crate) below: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyOf {
    /// The length in bytes.
    pub(crate) length: usize,
    /// Whether the body is chunked; otherwise its head has a Content-Length.
    pub(crate) chunked: bool,
}

/// An origin's correct response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 200 with Content-Length.
    Length(usize),
    /// 200, chunked.
    Chunked(usize),
    /// 200, delimited by the end of the connection.
    UntilClose(usize),
    /// 204.
    NoContent,
    /// 304.
    NotModified,
    /// 403 with Content-Length.
    Forbidden(usize),
    /// 101, or 200 on a stream.
    Switch,
}

/// An error response of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    /// The error's body and framing.
    pub(crate) answer: Answer,
}

impl Failure {
    /// Creates a random error response.
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
    /// Creates a random request; with `plain`, one of HTTP/1.1 on a persistent connection, with a response of known
    /// length.
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
            has_trailers: false,
            below: "",
        }
    }

    /// A random request for a switch of protocols, which the origin may grant.
    pub(crate) fn switch(plan: &Plan, world: &mut World) -> Self {
        let (up, down) = (length(world), length(world));
        let switch = Switch::new(plan, up, down);
        let answer = match world.below(4) == 0 {
            // On a stream, any 2xx response opens a tunnel, so the refusal is an error.
            true if switch.is_websocket() => Answer::Forbidden(length(world)),
            true => Answer::Length(length(world)),
            false => Answer::Switch,
        };
        Self { answer, switch: Some(switch), ..Self::plain(0, false) }
    }

    /// A `GET` for this many bytes; `closes`: the request closes the connection.
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
            has_trailers: false,
            below: "",
        }
    }

    /// The request's bytes on the wire.
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
        for (name, value) in self.switch.iter().flat_map(|switch| switch.fields(id)) {
            field(name, value);
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
            write_body(&pattern(self.id, body.length), body.chunked, "", world, &mut out);
        }
        out
    }

    /// The body that the client must receive, or the bytes of a tunnel; empty if the method or the status forbids a
    /// body.
    pub(crate) fn answer_body(&self) -> Vec<u8> {
        self.body_of(self.answer, self.id ^ ANSWER)
    }

    /// The body of the error response to this attempt, counted from 0.
    pub(crate) fn error_body(&self, failure: Failure, attempt: usize) -> Vec<u8> {
        self.body_of(failure.answer, error(self.id, attempt))
    }

    fn body_of(&self, answer: Answer, id: usize) -> Vec<u8> {
        answer.body(self.method, self.switch, self.id, id)
    }

    /// The status of the origin's correct response, as its client gets it.
    pub(crate) fn status(&self) -> u16 {
        match (self.answer, self.switch) {
            (Answer::Switch, Some(switch)) if switch.is_on_stream => 200,
            (answer, _) => answer.status(),
        }
    }
}

impl Answer {
    /// The body of the response to the request `id`, with the pattern of `content`.
    pub(crate) fn body(self, method: Method, switch: Option<Switch>, id: usize, content: usize) -> Vec<u8> {
        match self {
            _ if method == Method::Head => Vec::new(),
            Self::Length(length)
            | Self::Chunked(length)
            | Self::UntilClose(length)
            | Self::Forbidden(length) => pattern(content, length),
            Self::Switch => switch.map(|switch| switch.down(id)).unwrap_or_default(),
            Self::NoContent | Self::NotModified => Vec::new(),
        }
    }

    /// The status of the response, in HTTP/1.1.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::Length(_) | Self::Chunked(_) | Self::UntilClose(_) => 200,
            Self::NoContent => 204,
            Self::NotModified => 304,
            Self::Forbidden(_) => 403,
            Self::Switch => 101,
        }
    }

    /// The value of the field that asks for this response.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Length(length) => format!("length {length}"),
            Self::Chunked(length) => format!("chunked {length}"),
            Self::UntilClose(length) => format!("close {length}"),
            Self::NoContent => "none 0".into(),
            Self::NotModified => "same 0".into(),
            Self::Forbidden(length) => format!("forbidden {length}"),
            Self::Switch => "switch 0".into(),
        }
    }

    /// Parses the value that [`Ask::bytes`] wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, length) = text.split_once(' ')?;
        let length = length.parse().ok()?;
        Some(match kind {
            "length" => Self::Length(length),
            "chunked" => Self::Chunked(length),
            "close" => Self::UntilClose(length),
            "none" => Self::NoContent,
            "same" => Self::NotModified,
            "forbidden" => Self::Forbidden(length),
            "switch" => Self::Switch,
            _ => return None,
        })
    }
}

/// Appends a body; if `chunked`, in random chunks, followed by these trailer lines.
pub(crate) fn write_body(body: &[u8], chunked: bool, trailers: &str, world: &mut World, out: &mut Vec<u8>) {
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
    out.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
}

/// The bytes of a body. They depend on the ID and the position, so that checks detect misplaced bytes.
pub(crate) fn pattern(id: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251 + id * 31 + id / 7) as u8).collect()
}

/// The method's name, as in a request line.
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

/// The host of all requests.
pub(crate) const HOST: &str = "sim";

/// The pattern ID of an error's body, different for each attempt.
pub(crate) fn error(id: usize, attempt: usize) -> usize {
    (id ^ ERROR) + attempt * 101
}

/// XORed with a request's ID, so that error bodies have other patterns than other responses.
const ERROR: usize = 0x0aaa;

/// The field with the number of the attempt, from 0, to which the response belongs.
pub(crate) const ATTEMPT: &str = "X-Attempt";

/// The field that marks a response to a mirrored copy.
pub(crate) const COPY: &str = "X-Copy";

/// The request field that asks for trailers; also the trailer of both messages, with the request's ID.
pub(crate) const TRAILER: &str = "X-End";

/// XORed with a request's ID, so that response bodies have other patterns than request bodies.
pub(crate) const ANSWER: usize = 0x55;
