//! An HTTP/2 server that responds to health checks as a test specifies.

use crate::common::{Ending, Peer};
use std::sync::{Arc, Mutex};
use weir_http2::{Config, Connection, ErrorCode, Event, Head, Part, Role, StreamNo};

/// A request as received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// The lines of the head, pseudo-fields first.
    pub head: String,
    pub body: Vec<u8>,
}

/// A response. Empty parts are not sent, and the last part ends the stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Response {
    /// Whether 103 precedes the head.
    pub interim: bool,
    pub status: u16,
    pub fields: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    pub trailers: Vec<(&'static str, String)>,
}

/// The requests and closes that a server has received.
#[derive(Clone, Default)]
pub(super) struct Record(Arc<Mutex<Received>>);

#[derive(Default)]
struct Received {
    requests: Vec<Request>,
    /// For each connection with a check, the code of GOAWAY and the kind of close.
    endings: Vec<(Option<ErrorCode>, Ending)>,
}

impl Record {
    pub(super) fn requests(&self) -> Vec<Request> {
        self.0.lock().unwrap().requests.clone()
    }

    pub(super) fn endings(&self) -> Vec<(Option<ErrorCode>, Ending)> {
        self.0.lock().unwrap().endings.clone()
    }
}

/// Serves a connection to its end.
pub(super) fn serve(peer: &mut Peer, record: &Record, respond: impl Fn(&Request) -> Response) {
    let mut connection = Connection::new(Role::Server, Config::default());
    let (mut input, mut head, mut out) = (Vec::new(), Head::new(), Vec::new());
    let (mut request, mut is_check, mut code) = (Request::default(), false, None);
    // Ignore a client that speaks another protocol.
    while let Ok(step) = connection.feed(&mut input, &mut head) {
        let done = match &step.event {
            Some(Event::Head { stream, end }) => {
                request =
                    Request { head: String::from_utf8(head.bytes.clone()).unwrap(), ..Request::default() };
                end.then_some(*stream)
            }
            Some(Event::Data { stream, range, flow, end }) => {
                request.body.extend_from_slice(&input[range.clone()]);
                connection.credit(*stream, *flow);
                end.then_some(*stream)
            }
            Some(Event::GoAway { code: found, .. }) => {
                code = Some(*found);
                None
            }
            _ => None,
        };
        let is_idle = step.event.is_none();
        input.drain(..step.consumed);
        if let Some(stream) = done {
            is_check = request.head.contains("user-agent: weir\r\n");
            record.0.lock().unwrap().requests.push(request.clone());
            write(&mut connection, stream, &respond(&request), &mut out);
        }
        connection.settle(&mut out);
        // A client that has closed does not read any further.
        let _ = peer.stream.send(&std::mem::take(&mut out));
        if is_idle && let Some(ending) = peer.stream.receive(&mut input) {
            if is_check {
                record.0.lock().unwrap().endings.push((code, ending));
            }
            return;
        }
    }
}

fn write(connection: &mut Connection, stream: StreamNo, response: &Response, out: &mut Vec<u8>) {
    let Response { interim, status, fields, body, trailers } = response;
    let mut head = |part, status: Option<u16>, fields: &[(&str, String)], out: &mut Vec<u8>| {
        let write = |to: &mut weir_http2::hpack::Encoder<'_>| {
            if let Some(status) = status {
                to.status(status);
            }
            for (name, value) in fields {
                to.field(name.as_bytes(), value.as_bytes());
            }
        };
        connection.head(stream, part, write, out).unwrap();
    };
    if *interim {
        head(Part::Interim, Some(103), &[], out);
    }
    let end = body.is_empty() && trailers.is_empty();
    head(Part::Head { end }, Some(*status), fields, out);
    if !body.is_empty() {
        let end = trailers.is_empty();
        assert_eq!(connection.data(stream, body, end, out).unwrap(), body.len());
    }
    if !trailers.is_empty() {
        let write = |to: &mut weir_http2::hpack::Encoder<'_>| {
            trailers.iter().for_each(|(name, value)| to.field(name.as_bytes(), value.as_bytes()));
        };
        connection.head(stream, Part::Trailers, write, out).unwrap();
    }
    connection.release(stream);
}
