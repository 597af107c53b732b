//! An origin's connection: checks every request, and responds correctly or with a fault.

use crate::Invariant;
use crate::ledger::{Arrival, Ledger, Repeats};
use crate::message::{ANSWER, ATTEMPT, Answer, COPY, Failure, TRAILER, error, pattern, write_body};
use crate::peer::{End, Peer};
use crate::request::{self, Begun, Received};
use crate::switch::{ACCEPT, Order, Switch};
use crate::world::World;
use std::net::SocketAddr;
use std::time::Duration;
use weir_http::Method;
use weir_http1::{BodyDecoder, Limits, Parse, RequestHead};
use weir_preface::{Look, proxy};

/// One connection from the gateway.
#[derive(Debug)]
pub(crate) struct Origin {
    peer: Peer,
    site: Site,
    /// The client address in the PROXY header; outer `None`: no header received yet.
    announced: Option<Option<SocketAddr>>,
    /// Number of requests received.
    requests: usize,
    request: Option<Request>,
    switched: Option<Switched>,
    /// The origin does nothing before this instant.
    pub(crate) wake: Duration,
    /// The origin ends its stream, then closes.
    closing: bool,
    /// The origin closes after this instant if it is idle.
    idle_until: Option<Duration>,
    /// The origin has closed its connection.
    pub(crate) is_done: bool,
}

/// The origin's role and the gateway's settings that it checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    /// The origin receives mirrored copies.
    pub(crate) is_mirror: bool,
    /// The gateway sends the origin a PROXY header.
    pub(crate) is_announced: bool,
    /// The origin is the target of passthrough connections.
    pub(crate) is_passed: bool,
    /// The gateway's retry settings.
    pub(crate) repeats: Repeats,
    /// Error responses per thousand.
    pub(crate) errors: u64,
    /// Faulty responses per thousand.
    pub(crate) badness: u64,
    /// The origin sends 103 at random.
    pub(crate) interim: bool,
    /// The maximum number of concurrent requests on one HTTP/2 connection.
    pub(crate) most_streams: usize,
}

#[derive(Debug)]
struct Request {
    id: usize,
    method: Method,
    length: usize,
    answer: Answer,
    /// The error to send instead of the response.
    error: Option<Failure>,
    /// The error precedes the end of the body.
    is_early: bool,
    /// The number of earlier arrivals of this request: 0 for the first attempt.
    attempt: usize,
    is_answered: bool,
    switch: Option<Switch>,
    /// A chunked response ends with a trailer.
    has_trailers: bool,
    decoder: BodyDecoder,
    body: Vec<u8>,
}

/// An upgraded connection.
#[derive(Debug)]
struct Switched {
    id: usize,
    switch: Switch,
    got: Vec<u8>,
    /// The origin has ended its stream.
    has_ended: bool,
}

/// The fault of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Closes without a response.
    End,
    /// Resets without a response.
    Reset,
    /// Closes within the response.
    Truncated,
    /// Resets within the response.
    ResetWithin,
    /// Sends a malformed response.
    Garbage,
    /// Sends bytes after the response.
    Stray,
    /// Closes after the response without announcing it.
    EndAfter,
    /// Closes after the response, as announced.
    Announced,
    /// Never responds.
    Silence,
}

/// The faults to draw from. `EndAfter` is frequent, since its close can cross the next request.
const FAULTS: [Fault; 12] = [
    Fault::End,
    Fault::Reset,
    Fault::Truncated,
    Fault::ResetWithin,
    Fault::Garbage,
    Fault::Stray,
    Fault::EndAfter,
    Fault::EndAfter,
    Fault::EndAfter,
    Fault::EndAfter,
    Fault::Announced,
    Fault::Silence,
];

impl Request {
    /// Records an error response in the ledger. Nothing to do for other responses.
    fn note_error(&self, ledger: &mut Ledger, link: usize) {
        let Some(error) = self.error else { return };
        ledger.note(|| format!("origin {link} answers #{} with {error:?}", self.id));
        if let Some(arrival) = ledger.arrival(self.id, self.attempt) {
            arrival.error = self.error;
            arrival.is_early = self.is_answered;
        }
    }
}

impl Origin {
    /// An origin's side of a connection.
    pub(crate) fn new(peer: Peer, site: Site, world: &mut World) -> Self {
        let closes = site.badness > 0 && world.below(4) == 0;
        Self {
            peer,
            site,
            announced: None,
            requests: 0,
            request: None,
            switched: None,
            wake: Duration::ZERO,
            closing: false,
            idle_until: closes.then(|| world.now + Duration::from_millis(world.below(3000))),
            is_done: false,
        }
    }

    /// The instants at which the origin acts on its own.
    pub(crate) fn wakes(&self) -> impl Iterator<Item = Duration> {
        [Some(self.wake), self.idle_until].into_iter().flatten().filter(|_| !self.is_done)
    }

    /// Sends and receives as much as possible now.
    pub(crate) fn poll(&mut self, world: &mut World, ledger: &mut Ledger) {
        if self.is_done {
            return;
        }
        let reads = world.now >= self.wake;
        self.peer.poll(world, reads);
        if reads && !self.closing && self.switched.is_none() {
            self.read(world, ledger);
            self.peer.poll(world, false);
        }
        if self.switched.is_some() {
            return self.go_on(world, ledger);
        }
        let idle = self.request.is_none() && self.peer.is_flushed();
        if idle && self.idle_until.is_some_and(|until| until <= world.now) {
            ledger.note(|| format!("origin {} ends an idle connection", self.peer.link));
            self.idle_until = None;
            self.close();
        }
        let has_ended = self.closing && self.peer.is_flushed() && world.pipe(self.peer.link, true).is_ended();
        // A gateway that ended its stream may wait for responses, so send these first.
        let may_leave = |end| end != End::Clean || (reads && self.peer.is_flushed());
        if has_ended || self.peer.ended.is_some_and(may_leave) {
            self.leave(world);
        }
    }

    /// Resets the connection, since the server has an outage.
    pub(crate) fn goes_dark(&mut self, world: &mut World) {
        if !self.is_done {
            world.reset(self.peer.link, true);
            self.leave(world);
        }
    }

    pub(crate) fn link(&self) -> usize {
        self.peer.link
    }

    /// Sends a response before any request.
    pub(crate) fn speak_first(&mut self, world: &mut World) {
        world.calm(self.peer.link);
        self.peer.say(STRAY);
        self.peer.poll(world, false);
        // The bytes arrive before the gateway sees the connection established.
        world.arrive();
    }

    /// Runs an upgraded connection until both sides have sent everything.
    fn go_on(&mut self, world: &mut World, ledger: &mut Ledger) {
        let Some(Switched { id, switch, got, has_ended }) = &mut self.switched else { return };
        got.append(&mut self.peer.input);
        let Some(end) = self.peer.ended else { return };
        if !std::mem::replace(has_ended, true) {
            if switch.order == Order::Replies {
                self.peer.say(&switch.down(*id));
            }
            self.peer.finish();
            self.peer.poll(world, false);
        }
        // A connection may break; if it ends cleanly, all bytes must be present.
        if end == End::Clean {
            switch.ends_at_origin(*id, got, switch.is_on_stream, ledger);
        }
        if end != End::Clean || self.peer.is_flushed() {
            self.leave(world);
        }
    }

    fn close(&mut self) {
        self.closing = true;
        self.peer.finish();
    }

    fn leave(&mut self, world: &mut World) {
        world.close_peer(self.peer.link);
        self.is_done = true;
    }

    fn read(&mut self, world: &mut World, ledger: &mut Ledger) {
        loop {
            let Some(request) = &mut self.request else {
                if !self.is_introduced(ledger) || !self.begin(world, ledger) {
                    return;
                }
                continue;
            };
            if std::mem::take(&mut request.is_early) {
                self.answer_early(world, ledger);
                if self.closing {
                    return;
                }
                continue;
            }
            while !request.decoder.is_complete() {
                let step = match request.decoder.decode(&self.peer.input) {
                    Ok(step) => step,
                    Err(error) => {
                        let id = request.id;
                        self.close();
                        return ledger.violation(
                            Invariant::Messages,
                            format!("an origin got a bad body of #{id}: {error}"),
                        );
                    }
                };
                request.body.extend_from_slice(&self.peer.input[step.data]);
                self.peer.input.drain(..step.consumed);
                if step.consumed == 0 {
                    break;
                }
            }
            if !request.decoder.is_complete() {
                return;
            }
            if request.body != pattern(request.id, request.length) {
                let (id, got, wanted) = (request.id, request.body.len(), request.length);
                ledger.violation(
                    Invariant::Bytes,
                    format!("an origin got {got} bytes as the body of #{id}, not its {wanted}"),
                );
            }
            let Some(request) = self.request.take() else { return };
            if !request.is_answered {
                self.answer(&request, world, ledger);
            }
            if self.closing || self.is_done || self.switched.is_some() || world.now < self.wake {
                return;
            }
        }
    }

    /// Whether the PROXY header is complete, or none is expected.
    fn is_introduced(&mut self, ledger: &mut Ledger) -> bool {
        if !self.site.is_announced || self.announced.is_some() {
            return true;
        }
        match proxy::read(&self.peer.input) {
            Ok(Look::Partial) => false,
            Ok(Look::Complete(header)) => {
                self.peer.input.drain(..header.len);
                self.announced = Some(header.addresses.map(|addresses| addresses.source));
                true
            }
            Err(error) => {
                ledger.violation(
                    Invariant::Messages,
                    format!("origin {} got a bad PROXY header: {error}", self.peer.link),
                );
                self.close();
                false
            }
        }
    }

    /// Reads a request head; returns false if none is complete.
    fn begin(&mut self, world: &mut World, ledger: &mut Ledger) -> bool {
        let mut head = RequestHead::new();
        let link = self.peer.link;
        let length = match head.parse(&self.peer.input, &Limits::default()) {
            Ok(Parse::Complete(length)) => length,
            Ok(Parse::Partial) => return false,
            Err(error) => {
                self.close();
                ledger.violation(Invariant::Messages, format!("origin {link} got a bad request: {error}"));
                return false;
            }
        };
        let bytes: Vec<u8> = self.peer.input.drain(..length).collect();
        let field = |name: &str| {
            let found =
                head.fields.iter().find(|field| field.name.of(&bytes).eq_ignore_ascii_case(name.as_bytes()));
            found
                .map(|field| String::from_utf8_lossy(field.value.of(&bytes)).into_owned())
                .unwrap_or_default()
        };
        let target = String::from_utf8_lossy(head.target.of(&bytes)).into_owned();
        let protocol = head.upgrade.map(|upgrade| String::from_utf8_lossy(upgrade.of(&bytes)).into_owned());
        let protocol = protocol.unwrap_or_default();
        let received = Received { method: head.method, target: &target, protocol: &protocol, field: &field };
        let Site { is_mirror, is_passed, .. } = self.site;
        let Some(begun) = request::begin(link, is_mirror, is_passed, &received, ledger) else {
            self.close();
            return false;
        };
        let Begun { id, length, answer, switch, version } = begun;
        if let Some(announced) = self.announced {
            let entry = ledger.entries.get(id).filter(|entry| !entry.is_passed);
            let source = entry.and_then(|entry| entry.source);
            if source.is_some_and(|known| announced != Some(known)) {
                ledger.violation(
                    Invariant::Owner,
                    format!("#{id} is of {source:?}, and arrived on a connection of {announced:?}"),
                );
            }
            if self.requests > 0 {
                ledger.violation(
                    Invariant::Owner,
                    format!("#{id} came on a connection that was another client's"),
                );
            }
        }
        if !self.site.is_mirror {
            let read = (!self.peer.is_over_tls()).then(|| world.links[link].up.read);
            let got = world.links[link].down.read;
            let arrival = Arrival {
                link,
                is_reused: self.requests > 0,
                read,
                got,
                version,
                error: None,
                is_early: false,
                stream: None,
            };
            ledger.arrives(id, arrival, self.site.repeats, world);
        }
        self.requests += 1;
        let decoder = BodyDecoder::new(head.framing, &Limits::default());
        let method = head.method;
        let fails = self.site.errors > 0 && world.below(1000) < self.site.errors;
        let error = fails.then(|| Failure::by_chance(world));
        let is_early = fails && length > 0 && world.below(3) == 0;
        let attempt = ledger.entries.get(id).map_or(0, |entry| entry.arrivals.len().saturating_sub(1));
        let answer = error.map_or(answer, |error| error.answer);
        let request = Request {
            id,
            method,
            length,
            answer,
            error,
            is_early,
            is_answered: false,
            attempt,
            switch,
            has_trailers: !field(TRAILER).is_empty(),
            decoder,
            body: Vec::new(),
        };
        self.request = Some(request);
        // A client that waits for 100 eventually sends the body without it, too.
        if head.expect_continue && world.below(4) > 0 {
            self.peer.say(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        true
    }

    /// Sends the error response before the request body is complete.
    fn answer_early(&mut self, world: &mut World, ledger: &mut Ledger) {
        let Some(request) = &mut self.request else { return };
        request.is_answered = true;
        request.note_error(ledger, self.peer.link);
        let closes = world.below(3) == 0;
        let bytes = answer(request, closes, false, self.site.errors > 0, world);
        self.peer.say(&bytes);
        if closes || matches!(request.answer, Answer::UntilClose(_)) {
            self.close();
        }
    }

    /// Accepts the upgrade: sends all bytes and ends its stream, at once or after the client.
    fn switch(&mut self, id: usize, switch: Switch) {
        let proof = if switch.is_websocket() { format!("{ACCEPT}: {id}\r\n") } else { String::new() };
        let head = format!(
            "HTTP/1.1 101 Switching\r\nX-Id: {id}\r\nUpgrade: {}\r\nConnection: upgrade\r\n{proof}\r\n",
            switch.protocol
        );
        self.peer.say(head.as_bytes());
        if switch.order != Order::Replies {
            self.peer.say(&switch.down(id));
        }
        let has_ended = switch.order == Order::AtOnce;
        if has_ended {
            self.peer.finish();
        }
        self.switched = Some(Switched { id, switch, got: Vec::new(), has_ended });
    }

    fn answer(&mut self, request: &Request, world: &mut World, ledger: &mut Ledger) {
        let fault = (world.below(1000) < self.site.badness)
            .then(|| FAULTS[world.below(FAULTS.len() as u64) as usize]);
        // Passthrough hides HTTP from the gateway, so only a broken connection is a fault.
        let fault =
            fault.filter(|fault| !self.site.is_passed || !matches!(fault, Fault::Stray | Fault::Garbage));
        let fault = fault.filter(|fault| match request.answer {
            // Without a length, the body is all bytes up to the close, so the gateway cannot detect these faults.
            Answer::UntilClose(_) => !matches!(fault, Fault::Stray | Fault::Truncated),
            // An upgraded connection has no length, either.
            Answer::Switch => {
                matches!(
                    fault,
                    Fault::End | Fault::Reset | Fault::ResetWithin | Fault::Garbage | Fault::Silence
                )
            }
            _ => true,
        });
        if let Some(fault) = fault {
            ledger.note(|| format!("origin {} answers #{} badly: {fault:?}", self.peer.link, request.id));
        }
        if self.site.interim && world.below(5) == 0 {
            self.peer.say(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
        }
        self.wake = world.now + world.delay();
        if let (Answer::Switch, None, Some(switch)) = (request.answer, fault, request.switch) {
            return self.switch(request.id, switch);
        }
        let announced = fault == Some(Fault::Announced);
        let bytes = answer(request, announced, self.site.is_mirror, self.site.errors > 0, world);
        let has_answer = !matches!(fault, Some(Fault::End | Fault::Reset | Fault::Garbage | Fault::Silence));
        if has_answer {
            request.note_error(ledger, self.peer.link);
        }
        let middle = 1 + world.below(bytes.len() as u64 - 1) as usize;
        match fault {
            None => self.peer.say(&bytes),
            Some(Fault::End) => self.close(),
            Some(Fault::Reset) => {
                world.reset(self.peer.link, true);
                self.leave(world);
            }
            Some(Fault::Truncated) => {
                self.peer.say(&bytes[..middle]);
                self.close();
            }
            Some(Fault::ResetWithin) => {
                self.peer.say(&bytes[..middle]);
                self.peer.poll(world, false);
                world.reset(self.peer.link, true);
                self.leave(world);
            }
            Some(Fault::Garbage) => {
                self.peer.say(b"HTTQ/1.1 200 OK\r\n\r\n");
                self.close();
            }
            Some(Fault::Stray) => {
                // Later bytes would look like the next response, so stray bytes must arrive together with this one.
                world.calm(self.peer.link);
                self.peer.say(&bytes);
                self.peer.poll(world, false);
                self.peer.say(STRAY);
                self.peer.poll(world, false);
            }
            Some(Fault::EndAfter | Fault::Announced) => {
                self.peer.say(&bytes);
                self.close();
            }
            Some(Fault::Silence) => self.wake = world.now + Duration::from_secs(1000),
        }
        if matches!(request.answer, Answer::UntilClose(_)) && !self.closing && !self.is_done {
            self.close();
        }
    }
}

/// A response that belongs to no request.
const STRAY: &[u8] = b"HTTP/1.1 200 OK\r\nX-Id: 99999999\r\nContent-Length: 1\r\n\r\nx";

/// The bytes of a response.
fn answer(request: &Request, announced: bool, to_copy: bool, numbered: bool, world: &mut World) -> Vec<u8> {
    let status = request.error.map_or(request.answer.status(), |error| error.status);
    let mut out = format!("HTTP/1.1 {status} Fine\r\nX-Id: {}\r\n", request.id).into_bytes();
    if numbered {
        out.extend_from_slice(format!("{ATTEMPT}: {}\r\n", request.attempt).as_bytes());
    }
    if to_copy {
        out.extend_from_slice(format!("{COPY}: yes\r\n").as_bytes());
    }
    if announced {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    let (length, chunked) = match request.answer {
        Answer::Length(length) | Answer::Forbidden(length) => {
            out.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
            (length, false)
        }
        Answer::Chunked(length) => {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
            (length, true)
        }
        Answer::UntilClose(length) => (length, false),
        Answer::NoContent | Answer::NotModified | Answer::Switch => (0, false),
    };
    out.extend_from_slice(b"\r\n");
    let has_body = !matches!(request.answer, Answer::NoContent | Answer::NotModified | Answer::Switch);
    if has_body && request.method != Method::Head {
        let id = match request.error {
            Some(_) => error(request.id, request.attempt),
            None => request.id ^ ANSWER,
        };
        let trailers =
            if request.has_trailers { format!("{TRAILER}: {}\r\n", request.id) } else { String::new() };
        write_body(&pattern(id, length), chunked, &trailers, world, &mut out);
    }
    out
}
