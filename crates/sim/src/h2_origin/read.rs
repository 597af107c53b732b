//! Reading requests: checks each event of the connection and assigns it to a stream.

use super::behaviour::Fault;
use super::stream::{Phase, Stream};
use super::{Credit, H2Origin, State};
use crate::Invariant;
use crate::h2::wire::INITIAL_WINDOW;
use crate::ledger::{Arrival, Ledger, OnStream};
use crate::message::{Answer, Failure, TRAILER, pattern};
use crate::request::{self, Received};
use crate::world::World;
use std::time::Duration;
use weir_http::Method;
use weir_http2::{ErrorCode, Event, Part, StreamNo};

impl H2Origin {
    /// Processes all received bytes.
    pub(super) fn read(&mut self, world: &mut World, ledger: &mut Ledger) {
        let mut input = std::mem::take(&mut self.peer.input);
        // Parsing joins the fragments of heads in place, so keep a copy.
        let raw = input.clone();
        let mut at = 0;
        while !self.is_ending() {
            let step = self.connection.feed(&mut input[at..], &mut self.head);
            let consumed = step.as_ref().map_or(0, |step| step.consumed);
            let mut wrong = Vec::new();
            self.wire.receives(&raw[at..at + consumed], &mut wrong);
            for (invariant, what) in wrong {
                ledger.violation(invariant, format!("origin {}: {what}", self.peer.link));
            }
            let from = at;
            at += consumed;
            match step.map(|step| step.event) {
                Ok(Some(event)) => self.event(event, &input[from..], world, ledger),
                Ok(None) => break,
                Err(error) => {
                    let what = format!("origin {} got bad frames: {error}", self.peer.link);
                    ledger.violation(Invariant::Messages, what);
                    self.connection.fail(error);
                    self.close();
                }
            }
        }
        input.drain(..at);
        self.peer.input = input;
        if self.behaviour.has_narrow_connection {
            self.owe_connection(world);
        }
    }

    /// Schedules connection credit for all uncredited DATA, that of reset streams included. An origin that hoards first
    /// waits for half a window.
    fn owe_connection(&mut self, world: &mut World) {
        let owed = self.wire.received() - self.credited;
        if owed == 0 || (self.behaviour.hoards && owed < u64::from(INITIAL_WINDOW) / 2) {
            return;
        }
        self.credited += owed;
        let at = self.credit_at(world);
        self.credits.push(Credit { at, stream: 0, bytes: owed as u32 });
    }

    /// The instant of credit for bytes received now.
    fn credit_at(&self, world: &mut World) -> Duration {
        let delay = self.behaviour.lateness.map_or(0, |most| world.below(most));
        world.now + Duration::from_millis(delay)
    }

    /// Processes an event, whose ranges refer to `input`.
    fn event(&mut self, event: Event, input: &[u8], world: &mut World, ledger: &mut Ledger) {
        let link = self.peer.link;
        match event {
            Event::Head { stream, end } => self.head(stream, end, world, ledger),
            Event::Data { stream, range, flow, end } => {
                self.data(stream, &input[range], flow, world, ledger);
                if end {
                    self.request_ends(stream, false, ledger);
                }
            }
            Event::Trailers { stream } => {
                let value = self.field(TRAILER);
                if let Some(stream) = self.streams.iter().find(|known| known.no == stream)
                    && value != stream.id.to_string()
                {
                    let what = format!("the trailers of #{} arrived as {value:?}", stream.id);
                    ledger.violation(Invariant::Bytes, what);
                }
                self.request_ends(stream, true, ledger);
            }
            Event::Reset { stream, code } => {
                self.connection.release(stream);
                for stream in self.streams.extract_if(.., |known| known.no == stream) {
                    ledger.note(|| format!("origin {link} sees #{} reset: {}", stream.id, code.name()));
                    if let Some(switch) = stream.switch {
                        switch.is_own(stream.id, &stream.got, ledger);
                    }
                }
            }
            Event::Failed { stream, error } | Event::Rejected { stream, error } => {
                let what = format!("origin {link} got a bad request on stream {}: {error}", stream.get());
                ledger.violation(Invariant::Messages, what);
                self.streams.retain(|known| known.no != stream);
            }
            Event::GoAway { code, .. } => {
                ledger.note(|| format!("origin {link} gets GOAWAY: {}", code.name()));
                if code != ErrorCode::NO_ERROR && !self.has_broken_rules {
                    let what = format!("origin {link} got GOAWAY without a fault: {}", code.name());
                    ledger.violation(Invariant::Messages, what);
                }
            }
            // Nothing to do: each poll sends as much of the bodies as the windows allow.
            Event::Room { .. } | Event::Settings | Event::Pong | Event::Pause => {}
        }
    }

    /// The value of a field in the last received head; empty if absent.
    fn field(&self, name: &str) -> String {
        let of = |span: weir_http::Span| String::from_utf8_lossy(span.of(&self.head.bytes)).into_owned();
        let mut fields = self.head.fields.iter();
        let found = fields.find(|field| of(field.name).eq_ignore_ascii_case(name));
        found.map(|field| of(field.value)).unwrap_or_default()
    }

    fn head(&mut self, no: StreamNo, end: bool, world: &mut World, ledger: &mut Ledger) {
        // A GOAWAY in transit tells the gateway that this request is not processed.
        if matches!(self.state, State::Cut(last) if no.get() > last) {
            return;
        }
        self.count(no, ledger);
        let open = self.streams.len() + 1;
        if self.limit().is_some_and(|most| open > most as usize) && self.behaviour.refuses {
            // Either the gateway does not know the limit yet, or it violates the limit, which `count` has reported.
            self.connection.reset(no, ErrorCode::REFUSED_STREAM);
            self.connection.release(no);
            return ledger.note(|| format!("origin {} refuses stream {}", self.peer.link, no.get()));
        }
        let link = self.peer.link;
        let target = String::from_utf8_lossy(self.head.path.of(&self.head.bytes)).into_owned();
        let field = |name: &str| self.field(name);
        let protocol = self.head.protocol.map(|protocol| protocol.of(&self.head.bytes));
        let protocol = String::from_utf8_lossy(protocol.unwrap_or_default()).into_owned();
        let method = self.method(no, ledger);
        let received = Received { method, target: &target, protocol: &protocol, field: &field };
        let Some(begun) = request::begin(link, false, false, &received, ledger) else {
            return self.close();
        };
        let (id, is_over_tls) = (begun.id, self.peer.is_over_tls());
        let arrival = Arrival {
            link,
            is_reused: self.requests > 0,
            read: (!is_over_tls).then(|| world.links[link].up.read),
            got: world.links[link].down.read,
            version: begun.version,
            error: None,
            is_early: false,
            stream: Some(OnStream::default()),
        };
        ledger.arrives(id, arrival, self.site.repeats, world);
        self.requests += 1;
        let attempt = ledger.entries.get(id).map_or(0, |entry| entry.arrivals.len().saturating_sub(1));
        let mut stream = Stream::new(no, method, begun, attempt);
        stream.has_trailers = !self.field(TRAILER).is_empty();
        self.choose_response(&mut stream, world, ledger);
        if self.head.expect_continue && !end && world.below(4) > 0 {
            self.interim(&stream, 100, ledger);
        }
        self.streams.push(stream);
        if end {
            self.request_ends(no, false, ledger);
        }
    }

    /// The method of the last received head. A request for a tunnel has the method of the HTTP/1.1 upgrade; the gateway
    /// may send such a request only once it knows that the origin allows tunnels.
    fn method(&self, no: StreamNo, ledger: &mut Ledger) -> Method {
        if self.head.protocol.is_none() {
            return self.head.method;
        }
        if self.takes_tunnels_from.is_none_or(|settings| self.wire.acknowledged() < settings) {
            let (link, no) = (self.peer.link, no.get());
            let what =
                format!("origin {link} got a tunnel on stream {no}, and has not said that it takes any");
            ledger.violation(Invariant::Messages, what);
        }
        match self.head.method {
            Method::Connect => Method::Get,
            other => other,
        }
    }

    /// Checks the number of streams, including a new one, against the limits that the gateway knows.
    fn count(&mut self, no: StreamNo, ledger: &mut Ledger) {
        let (link, open) = (self.peer.link, self.streams.len() + 1);
        let known = self.limits.iter().take(self.wire.acknowledged()).next_back().copied().flatten();
        if known.is_some_and(|most| open > most as usize) {
            let what =
                format!("stream {} of origin {link} is one of {open}: {known:?} are allowed", no.get());
            ledger.violation(Invariant::Streams, what);
        }
        if open > self.site.most_streams {
            let most = self.site.most_streams;
            let what = format!("origin {link} has {open} streams, and the service allows {most}");
            ledger.violation(Invariant::Streams, what);
        }
    }

    /// Draws the response to a request (the correct one, an error or a fault) and its time.
    fn choose_response(&mut self, stream: &mut Stream, world: &mut World, ledger: &mut Ledger) {
        let site = self.site;
        if site.errors > 0 && world.below(1000) < site.errors {
            let error = Failure::by_chance(world);
            (stream.error, stream.answer) = (Some(error), error.answer);
        }
        stream.fault = (world.below(1000) < site.badness).then(|| Fault::by_chance(world));
        // Without a length, the gateway cannot detect a short body.
        let has_length = matches!(stream.answer, Answer::Length(length) if length > 0);
        stream.fault = stream.fault.filter(|fault| *fault != Fault::Short || has_length);
        if stream.fault == Some(Fault::Stall) {
            ledger.note(|| format!("origin {} gives #{} no credit: Stall", self.peer.link, stream.id));
        }
        let has_body = stream.length > 0;
        stream.is_early = has_body && self.behaviour.hastens && world.below(3) == 0;
        // A fault may also precede the end of the request.
        stream.is_early |= has_body && stream.fault.is_some() && world.below(2) == 0;
        stream.is_early |= stream.switch.is_some();
        let delay = self.behaviour.dawdles.map_or(0, |most| world.below(most));
        stream.phase = Phase::Due(world.now + Duration::from_millis(delay));
    }

    /// Sends an interim response.
    pub(super) fn interim(&mut self, stream: &Stream, status: u16, ledger: &mut Ledger) {
        let write = |to: &mut weir_http2::hpack::Encoder<'_>| {
            to.status(status);
            if status == 103 {
                to.field(b"link", b"</x>");
            }
        };
        let sent = self.connection.head(stream.no, Part::Interim, write, &mut self.out);
        debug_assert!(sent.is_ok(), "a stream without a response");
        stream.note_begin(self.said + self.out.len(), ledger);
    }

    /// Receives a part of a body; credit for it is due now or later.
    fn data(&mut self, no: StreamNo, data: &[u8], flow: u32, world: &mut World, ledger: &mut Ledger) {
        let at = self.credit_at(world);
        let (hoards, window) = (self.behaviour.hoards, self.behaviour.window);
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.no == no) else { return };
        stream.got.extend_from_slice(data);
        stream.owed += flow;
        if let Some(arrival) = ledger.arrival(stream.id, stream.attempt)
            && let Some(on) = &mut arrival.stream
        {
            on.body = stream.got.len();
        }
        if stream.fault != Some(Fault::Stall) && (!hoards || stream.owed >= window / 2) {
            let bytes = std::mem::take(&mut stream.owed);
            self.credits.push(Credit { at, stream: no.get(), bytes });
        }
    }

    /// Handles the end of a request.
    fn request_ends(&mut self, no: StreamNo, got_trailers: bool, ledger: &mut Ledger) {
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.no == no) else { return };
        stream.is_whole = true;
        if let Some(switch) = stream.switch {
            switch.ends_at_origin(stream.id, &stream.got, true, ledger);
            return self.release_ended();
        }
        let (id, got, wanted) = (stream.id, &stream.got, stream.length);
        if *got != pattern(id, wanted) {
            let what = format!("an origin got {} bytes as the body of #{id}, not its {wanted}", got.len());
            ledger.violation(Invariant::Bytes, what);
        }
        let sends_trailers = ledger
            .entries
            .get(id)
            .is_some_and(|entry| entry.ask.has_trailers && entry.ask.body.is_some_and(|body| body.chunked));
        if got_trailers != sends_trailers {
            let what = format!("#{id} arrived with trailers: {got_trailers}, not {sends_trailers}");
            ledger.violation(Invariant::Bytes, what);
        }
        self.release_ended();
    }
}
