//! A client of the gateway: sends requests, checks every byte of every response, and sometimes disconnects early.

use crate::Invariant;
use crate::ledger::{Entry, Ledger, Outcome};
use crate::message::{Ask, name, pattern};
use crate::peer::{End, Peer};
use crate::response::{self, Begun};
use crate::switch::ACCEPT;
use crate::world::World;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use weir_http::Method;
use weir_http1::{BodyDecoder, Framing, Limits, Parse, ResponseHead};

/// One client on one connection.
#[derive(Debug)]
pub(crate) struct Client {
    peer: Peer,
    /// Requests not sent yet.
    asks: VecDeque<Ask>,
    /// IDs of the requests in flight, in order.
    waiting: VecDeque<usize>,
    body: Option<Body>,
    switched: Option<Switched>,
    behaviour: Behaviour,
    way: Way,
    /// The number of cleartext bytes sent so far.
    said: usize,
    /// The client does not read before this instant.
    pub(crate) wake: Duration,
    /// The client or the gateway has announced that it will close the connection.
    told_close: bool,
    finished: bool,
    /// The client has closed its connection.
    pub(crate) is_done: bool,
}

/// A client's behaviour, drawn when it connects. An action whose number is `None` never happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behaviour {
    /// Pipelines up to four requests.
    pub(crate) pipelines: bool,
    /// Ends its stream after the last request, and waits for the responses.
    pub(crate) half_closes: bool,
    /// Pauses reading at random.
    pub(crate) is_slow: bool,
    /// Disconnects after this many polls.
    pub(crate) disconnects_after: Option<u64>,
    /// Sends a malformed first request.
    pub(crate) is_malformed: bool,
}

/// A client's path to the gateway and to an origin.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    /// The client address that the gateway must report to origins; `None`: the gateway cannot know it.
    pub(crate) source: Option<SocketAddr>,
    /// The gateway passes the connection through without decrypting it.
    pub(crate) is_passed: bool,
    /// The length of the PROXY header, which precedes the cleartext.
    pub(crate) preface: usize,
}

#[derive(Debug)]
struct Body {
    begun: Begun,
    framing: Framing,
    decoder: BodyDecoder,
    bytes: Vec<u8>,
}

/// An upgraded connection, and the bytes received after the switch.
#[derive(Debug)]
struct Switched {
    id: usize,
    got: Vec<u8>,
}

impl Client {
    /// A client with these requests to send.
    pub(crate) fn new(peer: Peer, asks: VecDeque<Ask>, behaviour: Behaviour, way: Way) -> Self {
        Self {
            peer,
            asks,
            waiting: VecDeque::new(),
            body: None,
            switched: None,
            behaviour,
            way,
            said: way.preface,
            wake: Duration::ZERO,
            told_close: false,
            finished: false,
            is_done: false,
        }
    }

    /// The unsent requests, for another connection.
    pub(crate) fn into_rest(self) -> VecDeque<Ask> {
        self.asks
    }

    /// Sends and receives as much as possible now.
    pub(crate) fn poll(&mut self, world: &mut World, ledger: &mut Ledger) {
        if self.is_done {
            return;
        }
        let reads = world.now >= self.wake;
        if reads && self.behaviour.is_slow && world.below(20) == 0 {
            self.wake = world.now + Duration::from_millis(world.below(2000));
        }
        if reads && self.behaviour.is_slow && !self.waiting.is_empty() && world.below(300) == 0 {
            // A pause longer than the gateway's timeout for an origin's response, and shorter than its timeouts for
            // clients.
            self.wake = world.now + Duration::from_secs(61 + world.below(9));
        }
        self.peer.poll(world, reads);
        self.read(ledger);
        if self.vanishes(world, ledger) {
            return;
        }
        let speaks_on = self.switched.is_some() && !self.peer.is_flushed();
        if let Some(end) = self.peer.ended.filter(|end| *end != End::Clean || !speaks_on) {
            return self.ended(end, world, ledger);
        }
        if self.switched.is_some() {
            return self.peer.poll(world, false);
        }
        self.ask(world, ledger);
        if self.asks.is_empty() || self.told_close {
            let half_closes = self.behaviour.half_closes && !self.waits_for_switch(ledger);
            if (self.waiting.is_empty() || half_closes) && !self.finished {
                self.finished = true;
                self.peer.finish();
            }
            self.peer.poll(world, false);
            if self.waiting.is_empty()
                && self.peer.is_flushed()
                && world.pipe(self.peer.link, true).is_ended()
            {
                world.close_peer(self.peer.link);
                self.is_done = true;
            }
        }
    }

    fn ask(&mut self, world: &mut World, ledger: &mut Ledger) {
        let most = if self.behaviour.pipelines { 4 } else { 1 };
        while self.waiting.len() < most && !self.told_close && !self.finished {
            if self.waits_for_switch(ledger) {
                break;
            }
            let Some(mut ask) = self.asks.pop_front() else { break };
            ask.id = ledger.entries.len();
            if let Some(switch) = &mut ask.switch {
                switch.is_on_stream = false;
            }
            let mut bytes = ask.bytes(world);
            if std::mem::take(&mut self.behaviour.is_malformed) {
                (ask.method, ask.body, ask.switch) = (Method::Get, None, None);
                bytes = b"GET\t/ HTTP/1.1\r\nHost: sim\r\n\r\n".to_vec();
            }
            ledger.note(|| format!("client {} asks #{} {}", self.peer.link, ask.id, name(ask.method)));
            self.peer.say(&bytes);
            self.waiting.push_back(ask.id);
            let (closes, link) = (ask.closes, self.peer.link);
            let Way { source, is_passed, .. } = self.way;
            let oldest = world.oldest_configuration(link);
            let entry = Ledger::entry(ask, link, world.now);
            ledger.entries.push(Entry { from: self.said, oldest, source, is_passed, ..entry });
            self.said += bytes.len();
            self.told_close |= closes;
        }
        self.peer.poll(world, false);
    }

    /// Whether the last request asks for an upgrade, so that the next bytes depend on its response.
    fn waits_for_switch(&self, ledger: &Ledger) -> bool {
        let asks = |id: &usize| ledger.entries.get(*id).is_some_and(|entry| entry.ask.switch.is_some());
        self.waiting.back().is_some_and(asks)
    }

    /// Checks the response that grants the switch, then sends all bytes of the tunnel and ends the stream.
    fn switch(&mut self, id: usize, has_proof: bool, ledger: &mut Ledger) {
        self.waiting.pop_front();
        self.switched = Some(Switched { id, got: Vec::new() });
        let Some(switch) = ledger.entries.get(id).and_then(|entry| entry.ask.switch) else {
            return ledger
                .violation(Invariant::Messages, format!("#{id} got a protocol that it did not ask for"));
        };
        if switch.is_websocket() && !has_proof {
            ledger.violation(Invariant::Messages, format!("#{id} got 101 without {ACCEPT}"));
        }
        ledger.note(|| format!("client {} of #{id} speaks another protocol", self.peer.link));
        self.peer.say(&pattern(id, switch.up));
        self.peer.finish();
    }

    fn read(&mut self, ledger: &mut Ledger) {
        let link = self.peer.link;
        loop {
            if let Some(switched) = &mut self.switched {
                return switched.got.append(&mut self.peer.input);
            }
            let Some(body) = &mut self.body else {
                if self.peer.input.is_empty() {
                    return;
                }
                let Some(id) = self.waiting.front().copied() else {
                    let bytes = self.peer.input.len();
                    self.peer.input.clear();
                    return ledger.violation(
                        Invariant::Bytes,
                        format!("client {link} got {bytes} bytes that it did not ask for"),
                    );
                };
                let mut head = ResponseHead::new();
                match head.parse(&self.peer.input, &Limits::default()) {
                    Ok(Parse::Partial) => return,
                    Err(error) => {
                        self.peer.input.clear();
                        return ledger.violation(
                            Invariant::Messages,
                            format!("client {link} got a bad answer to #{id}: {error}"),
                        );
                    }
                    Ok(Parse::Complete(length)) => {
                        let bytes: Vec<u8> = self.peer.input.drain(..length).collect();
                        if head.status == 101 {
                            let has_proof = bytes
                                .windows(ACCEPT.len())
                                .any(|part| part.eq_ignore_ascii_case(ACCEPT.as_bytes()));
                            self.switch(id, has_proof, ledger);
                            continue;
                        }
                        if head.status < 200 {
                            continue;
                        }
                        self.begin(id, &head, &bytes, ledger);
                    }
                }
                continue;
            };
            while !body.decoder.is_complete() {
                let Ok(step) = body.decoder.decode(&self.peer.input) else {
                    return ledger.violation(Invariant::Messages, format!("client {link} got a bad body"));
                };
                body.bytes.extend_from_slice(&self.peer.input[step.data]);
                self.peer.input.drain(..step.consumed);
                if step.consumed == 0 {
                    break;
                }
            }
            if !body.decoder.is_complete() {
                return;
            }
            self.complete(ledger);
        }
    }

    fn begin(&mut self, id: usize, head: &ResponseHead, bytes: &[u8], ledger: &mut Ledger) {
        let Some(entry) = ledger.entries.get(id) else { return };
        let framing = head.framing(entry.ask.method);
        let field = |name: &str| {
            let mut fields = head.fields.iter();
            let found = fields.find(|field| field.name.of(bytes).eq_ignore_ascii_case(name.as_bytes()));
            found.map(|field| String::from_utf8_lossy(field.value.of(bytes)).into_owned())
        };
        let begun = response::begin(id, head.status, field, ledger);
        self.told_close |= !head.persistent || framing == Framing::UntilClose;
        let decoder = BodyDecoder::new(framing, &Limits::default());
        self.body = Some(Body { begun, framing, decoder, bytes: Vec::new() });
    }

    fn complete(&mut self, ledger: &mut Ledger) {
        let (Some(body), Some(id)) = (self.body.take(), self.waiting.pop_front()) else { return };
        response::complete(id, body.begun, &body.bytes, ledger);
    }

    fn vanishes(&mut self, world: &mut World, ledger: &mut Ledger) -> bool {
        match &mut self.behaviour.disconnects_after {
            None => return false,
            Some(0) => {}
            Some(polls) => {
                *polls -= 1;
                return false;
            }
        }
        ledger.note(|| format!("client {} vanishes", self.peer.link));
        if world.below(2) == 0 {
            world.reset(self.peer.link, true);
        }
        world.close_peer(self.peer.link);
        self.is_done = true;
        let switched = self.switched.take().map(|switched| switched.id);
        for id in switched.into_iter().chain(std::mem::take(&mut self.waiting)) {
            ledger.outcome(id, Outcome::Forgone);
        }
        true
    }

    fn ended(&mut self, end: End, world: &mut World, ledger: &mut Ledger) {
        if let Some(body) = &mut self.body
            && body.framing == Framing::UntilClose
            && end == End::Clean
        {
            // The end of the connection also ends this body, which must then be complete.
            let _ = body.decoder.end_of_input();
            self.complete(ledger);
        }
        ledger.note(|| format!("client {} sees its connection end: {end:?}", self.peer.link));
        if let Some(Switched { id, got }) = self.switched.take() {
            let wanted = ledger.entries.get(id).map(|entry| entry.ask.answer_body()).unwrap_or_default();
            let is_all = got == wanted;
            if end == End::Clean && !is_all {
                ledger.violation(
                    Invariant::Bytes,
                    format!("#{id} got {} bytes of another protocol, not {}", got.len(), wanted.len()),
                );
            }
            ledger.outcome(id, if is_all { Outcome::Answered } else { Outcome::Lost });
        }
        while let Some(id) = self.waiting.pop_front() {
            ledger.outcome(id, if self.told_close { Outcome::Forgone } else { Outcome::Lost });
        }
        world.close_peer(self.peer.link);
        self.is_done = true;
    }
}
