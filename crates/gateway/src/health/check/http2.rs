//! A check by HTTP/2: one request on a separate connection.

use super::{Outcome, grpc};
use crate::config::document::Health;
use weir_http2::{Closed, Config, Connection, ConnectionError, Event, Head, Part, Role, Scheme, StreamNo};
use weir_transport::{Fault, Transport, Wire};

#[derive(Debug)]
pub(super) struct Request {
    /// The received bytes that are not processed yet.
    pub input: Vec<u8>,
    connection: Connection,
    stream: StreamNo,
    head: Head,
    /// Bytes to send once the connection is open.
    out: Vec<u8>,
    awaits: Awaits,
}

/// The part of the response that decides the check.
#[derive(Debug)]
enum Awaits {
    Head,
    /// A gRPC status and a message.
    Grpc(grpc::Response),
}

impl Request {
    /// A GET request. Errors: the connection accepts no request.
    pub(super) fn get(scheme: Scheme, host: &str, path: &str) -> Result<Self, Closed> {
        let request = Message { scheme, host, method: "GET", path, fields: &[], body: &[] };
        Self::new(&request, Awaits::Head)
    }

    /// A call of grpc.health.v1.Health/Check about a service. Errors: as [`Request::get`].
    pub(super) fn grpc(scheme: Scheme, host: &str, service: &str) -> Result<Self, Closed> {
        let body = &grpc::request(service);
        let request = Message { scheme, host, method: "POST", path: grpc::PATH, fields: &grpc::FIELDS, body };
        Self::new(&request, Awaits::Grpc(grpc::Response::default()))
    }

    fn new(request: &Message<'_>, awaits: Awaits) -> Result<Self, Closed> {
        let Message { scheme, host, method, path, fields, body } = *request;
        let mut connection = Connection::new(Role::Client, Config::default());
        let mut out = Vec::new();
        let stream = connection.open(false).ok_or(Closed)?;
        let part = Part::Head { end: body.is_empty() };
        let write = |to: &mut weir_http2::hpack::Encoder<'_>| {
            to.request(method.as_bytes(), scheme, host.as_bytes(), path.as_bytes());
            to.field(b"user-agent", b"weir");
            for (name, value) in fields {
                to.field(name.as_bytes(), value.as_bytes());
            }
        };
        connection.head(stream, part, write, &mut out)?;
        if !body.is_empty() {
            // The body is shorter than the initial windows.
            connection.data(stream, body, true, &mut out)?;
        }
        Ok(Self { input: Vec::new(), connection, stream, head: Head::new(), out, awaits })
    }

    /// Sends the request, and pending frames of the connection. Errors: the connection failed.
    pub(super) fn send(&mut self, transport: &mut Transport, wire: &mut Wire) -> Result<(), Fault> {
        self.connection.settle(&mut self.out);
        match std::mem::take(&mut self.out) {
            bytes if bytes.is_empty() => Ok(()),
            bytes => transport.send(&bytes, wire),
        }
    }

    /// Closes the connection after a result, with GOAWAY, and RST_STREAM if the response is incomplete.
    pub(super) fn close(&mut self, transport: &mut Transport, wire: &mut Wire) {
        self.connection.release(self.stream);
        self.connection.close();
        // The result is known, so a failure here does not matter.
        let _ = self.send(transport, wire).and_then(|()| transport.finish(wire));
    }

    /// Processes the received bytes up to a result. `ended`: no more bytes follow.
    pub(super) fn outcome(&mut self, health: &Health, ended: bool) -> Option<Outcome> {
        loop {
            let step = match self.connection.feed(&mut self.input, &mut self.head) {
                Ok(step) => step,
                Err(error) => return Some(self.violated(error)),
            };
            let is_last = step.event.is_none();
            let outcome = step.event.and_then(|event| self.on(&event, health));
            self.input.drain(..step.consumed);
            if outcome.is_some() {
                return outcome;
            }
            if is_last {
                return ended.then(Outcome::closed);
            }
        }
    }

    fn violated(&mut self, error: ConnectionError) -> Outcome {
        self.connection.fail(error);
        Outcome::Failed(match self.input.starts_with(b"HTTP/1.") {
            true => "the server responds by HTTP/1.1, not by HTTP/2".to_owned(),
            false => error.to_string(),
        })
    }

    fn on(&mut self, event: &Event, health: &Health) -> Option<Outcome> {
        let failed = |why: String| Some(Outcome::Failed(why));
        match event {
            Event::Head { .. } if self.head.status < 200 => None,
            Event::Head { end, .. } => match &mut self.awaits {
                Awaits::Head => Some(Outcome::of_status(health, self.head.status)),
                Awaits::Grpc(response) => response.head(&self.head, *end).map(Outcome::from),
            },
            Event::Data { range, end, flow, .. } => {
                let outcome = match &mut self.awaits {
                    Awaits::Head => None,
                    Awaits::Grpc(response) => response.data(&self.input[range.clone()], *end),
                };
                self.connection.credit(self.stream, *flow);
                outcome.map(Outcome::from)
            }
            Event::Trailers { .. } => match &self.awaits {
                Awaits::Head => None,
                Awaits::Grpc(response) => Some(response.trailers(&self.head).into()),
            },
            Event::Reset { code, .. } => failed(format!("the server reset the request: {}", code.name())),
            Event::Failed { error, .. } | Event::Rejected { error, .. } => failed(error.to_string()),
            Event::GoAway { last, code } if *last < self.stream.get() => {
                failed(format!("the server refused the request with GOAWAY: {}", code.name()))
            }
            Event::GoAway { .. } | Event::Room { .. } | Event::Settings | Event::Pong | Event::Pause => None,
        }
    }
}

#[derive(Clone, Copy)]
struct Message<'a> {
    scheme: Scheme,
    host: &'a str,
    method: &'static str,
    path: &'a str,
    fields: &'a [(&'static str, &'static str)],
    body: &'a [u8],
}
