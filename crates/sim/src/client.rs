//! A client of the gateway: asks, checks every byte of every answer, and sometimes goes away.

use crate::ledger::{Entry, Ledger, Outcome};
use crate::message::{ANSWER, ATTEMPT, Ask, COPY, name, pattern};
use crate::peer::{End, Peer};
use crate::setting::VERSION;
use crate::world::World;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use weir_http1::{BodyDecoder, Framing, Limits, Method, Parse, ResponseHead};

/// One client with one connection.
#[derive(Debug)]
pub(crate) struct Client {
    peer: Peer,
    /// What it still wants.
    asks: VecDeque<Ask>,
    /// Numbers of the requests that wait for answers, in order.
    waiting: VecDeque<usize>,
    body: Option<Body>,
    switched: Option<Switched>,
    manners: Manners,
    way: Way,
    /// Bytes that it has said in the clear.
    said: usize,
    /// It does not read before this instant.
    pub(crate) wake: Duration,
    /// The connection ends after what was asked, by its own wish or the other's.
    told_close: bool,
    finished: bool,
    /// It has closed its connection.
    pub(crate) is_done: bool,
}

/// What a client is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    /// It does not wait for an answer before it asks again.
    pub(crate) pipelines: bool,
    /// It ends its stream behind the last request, and waits for the responses.
    pub(crate) half_closes: bool,
    /// It stops reading now and then.
    pub(crate) is_slow: bool,
    /// It goes away after it has been looked at this often.
    pub(crate) vanishes_after: Option<u64>,
    /// Its first request is none.
    pub(crate) talks_garbage: bool,
}

/// How a client comes to the gateway, and to an origin.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    /// Whose requests the gateway must say they are; `None`: it cannot.
    pub(crate) source: Option<SocketAddr>,
    /// The connection is passed on without being decrypted.
    pub(crate) is_passed: bool,
    /// Bytes before the first one of HTTP.
    pub(crate) preface: usize,
}

#[derive(Debug)]
struct Body {
    status: u16,
    is_own: bool,
    framing: Framing,
    decoder: BodyDecoder,
    bytes: Vec<u8>,
}

/// The protocol is another one.
#[derive(Debug)]
struct Switched {
    id: usize,
    got: Vec<u8>,
}

impl Client {
    /// A client that will ask all this.
    pub(crate) fn new(peer: Peer, asks: VecDeque<Ask>, manners: Manners, way: Way) -> Self {
        Self {
            peer,
            asks,
            waiting: VecDeque::new(),
            body: None,
            switched: None,
            manners,
            way,
            said: way.preface,
            wake: Duration::ZERO,
            told_close: false,
            finished: false,
            is_done: false,
        }
    }

    /// What it could not ask, for another connection.
    pub(crate) fn into_rest(self) -> VecDeque<Ask> {
        self.asks
    }

    /// Does what it can do now.
    pub(crate) fn poll(&mut self, world: &mut World, ledger: &mut Ledger) {
        if self.is_done {
            return;
        }
        let reads = world.now >= self.wake;
        if reads && self.manners.is_slow && world.below(20) == 0 {
            self.wake = world.now + Duration::from_millis(world.below(2000));
        }
        if reads && self.manners.is_slow && !self.waiting.is_empty() && world.below(300) == 0 {
            // Longer than a server may take for its answer, and shorter than anything that the client must keep to.
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
            let half_closes = self.manners.half_closes && !self.waits_for_switch(ledger);
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
        let most = if self.manners.pipelines { 4 } else { 1 };
        while self.waiting.len() < most && !self.told_close && !self.finished {
            if self.waits_for_switch(ledger) {
                break;
            }
            let Some(mut ask) = self.asks.pop_front() else { break };
            ask.id = ledger.entries.len();
            let mut bytes = ask.bytes(world);
            if std::mem::take(&mut self.manners.talks_garbage) {
                (ask.method, ask.body, ask.switch) = (Method::Get, None, None);
                bytes = b"GET\t/ HTTP/1.1\r\nHost: sim\r\n\r\n".to_vec();
            }
            ledger.note(|| format!("client {} asks #{} {}", self.peer.link, ask.id, name(ask.method)));
            self.peer.say(&bytes);
            self.waiting.push_back(ask.id);
            let (closes, link) = (ask.closes, self.peer.link);
            let Way { source, is_passed, .. } = self.way;
            let oldest = world.listeners[world.links[link].worker].version;
            let entry = Ledger::entry(ask, link, world.now);
            ledger.entries.push(Entry { from: self.said, oldest, source, is_passed, ..entry });
            self.said += bytes.len();
            self.told_close |= closes;
        }
        self.peer.poll(world, false);
    }

    /// Whether what comes next depends on an answer.
    fn waits_for_switch(&self, ledger: &Ledger) -> bool {
        let asks = |id: &usize| ledger.entries.get(*id).is_some_and(|entry| entry.ask.switch.is_some());
        self.waiting.back().is_some_and(asks)
    }

    /// The protocol is switched: says everything, and ends its stream.
    fn switch(&mut self, id: usize, ledger: &mut Ledger) {
        self.waiting.pop_front();
        self.switched = Some(Switched { id, got: Vec::new() });
        let Some(switch) = ledger.entries.get(id).and_then(|entry| entry.ask.switch) else {
            return ledger.violation(format!("#{id} got a protocol that it did not ask for"));
        };
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
                    return ledger
                        .violation(format!("client {link} got {bytes} bytes that it did not ask for"));
                };
                let mut head = ResponseHead::new();
                match head.parse(&self.peer.input, &Limits::default()) {
                    Ok(Parse::Partial) => return,
                    Err(error) => {
                        self.peer.input.clear();
                        return ledger.violation(format!("client {link} got a bad answer to #{id}: {error}"));
                    }
                    Ok(Parse::Complete(length)) => {
                        let bytes: Vec<u8> = self.peer.input.drain(..length).collect();
                        if head.status == 101 {
                            self.switch(id, ledger);
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
                    return ledger.violation(format!("client {link} got a bad body"));
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
        let Some(entry) = ledger.entries.get_mut(id) else { return };
        let method = entry.ask.method;
        let field = |name: &str| {
            let mut fields = head.fields.iter();
            let found = fields.find(|field| field.name.of(bytes).eq_ignore_ascii_case(name.as_bytes()));
            found.map(|field| String::from_utf8_lossy(field.value.of(bytes)).into_owned())
        };
        let named = field("x-id");
        entry.has_begun |= named.is_some();
        let (arrivals, attempt) = (entry.arrivals.len(), field(ATTEMPT).and_then(|text| text.parse().ok()));
        let is_replaced = attempt.is_some_and(|attempt: usize| attempt + 1 != arrivals);
        let wrong = match entry.arrivals.last() {
            _ if field(COPY).is_some() => Some(format!("#{id} got the answer to a copy")),
            _ if is_replaced => Some(format!("#{id} got the answer to attempt {attempt:?} of {arrivals}")),
            Some(arrival) if named.is_some() && !entry.is_passed => {
                field(VERSION).filter(|version| *version != arrival.version.to_string()).map(|version| {
                    format!("#{id} began by configuration {}, ended by {version}", arrival.version)
                })
            }
            _ => None,
        };
        if let Some(wrong) = wrong {
            ledger.violation(wrong);
        }
        if let Some(named) = &named
            && *named != id.to_string()
        {
            ledger.violation(format!("the answer to #{named} went to the client of #{id}"));
        }
        if named.is_none() && head.status < 400 {
            ledger.violation(format!("#{id} got {} from nobody", head.status));
        }
        let framing = head.framing(method);
        self.told_close |= !head.persistent || framing == Framing::UntilClose;
        self.body = Some(Body {
            status: head.status,
            is_own: named.is_some(),
            framing,
            decoder: BodyDecoder::new(framing, &Limits::default()),
            bytes: Vec::new(),
        });
    }

    fn complete(&mut self, ledger: &mut Ledger) {
        let (Some(body), Some(id)) = (self.body.take(), self.waiting.pop_front()) else { return };
        let Some(entry) = ledger.entries.get(id) else { return };
        if !body.is_own {
            return ledger.outcome(id, Outcome::Refused(body.status));
        }
        let ask = &entry.ask;
        let error = entry.arrivals.last().and_then(|arrival| arrival.error);
        let (status, wanted) = match error {
            Some(error) => (error.status, ask.error_body(error, entry.arrivals.len() - 1)),
            None => (ask.answer.status(), ask.answer_body()),
        };
        if body.status != status || body.bytes != wanted {
            let (wanted, got) = (wanted.len(), body.bytes.len());
            ledger.violation(format!("#{id} got {} with {got} bytes, not its {wanted}", body.status));
        }
        ledger.outcome(id, Outcome::Answered);
    }

    fn vanishes(&mut self, world: &mut World, ledger: &mut Ledger) -> bool {
        match &mut self.manners.vanishes_after {
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
            // The end of the connection is that of the body: it must be all of it.
            let _ = body.decoder.end_of_input();
            self.complete(ledger);
        }
        ledger.note(|| format!("client {} sees its connection end: {end:?}", self.peer.link));
        if let Some(Switched { id, got }) = self.switched.take() {
            let wanted = ledger.entries.get(id).and_then(|entry| entry.ask.switch).map_or(0, |it| it.down);
            let is_all = got == pattern(id ^ ANSWER, wanted);
            if end == End::Clean && !is_all {
                ledger.violation(format!("#{id} got {} bytes of another protocol, not {wanted}", got.len()));
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
