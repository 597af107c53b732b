//! Tests of the origin with a client that uses the same protocol library, without a gateway.

use super::behaviour::Fault;
use super::*;
use crate::ledger::Repeats;
use crate::message::{Answer, Ask, BodyOf, TRAILER, pattern};
use crate::world::Faults;
use std::collections::HashMap;
use weir_gateway::document::Retry;
use weir_http::Method;
use weir_http2::hpack::Encoder;
use weir_http2::{ErrorCode, Event, Part, Scheme, StreamNo};

/// The outcome of a request at the client.
#[derive(Debug, Default)]
struct Got {
    id: usize,
    status: u16,
    body: Vec<u8>,
    trailer: Option<String>,
    is_whole: bool,
    reset: Option<ErrorCode>,
    is_dropped: bool,
    /// The unsent part of the request.
    rest: Vec<u8>,
    is_sent: bool,
}

/// A client and an origin on one link.
struct Duel {
    world: World,
    ledger: Ledger,
    origin: H2Origin,
    client: Connection,
    head: Head,
    input: Vec<u8>,
    out: Vec<u8>,
    streams: HashMap<StreamNo, Got>,
    waiting: Vec<Ask>,
    is_over: bool,
}

impl Duel {
    fn new(seed: u64, plan: &Plan, asks: Vec<Ask>) -> Self {
        let faults = Faults { rough: plan.rough, tiny: true, refusals: 0, shortages: 0, corrupts: false };
        let mut world = World::new(seed, faults, 1);
        let link = world.dial(0, [198, 18, 0, 0]);
        let repeats = Repeats { retry: Retry::Never, after_errors: false };
        let site = Site {
            is_mirror: false,
            is_announced: false,
            is_passed: false,
            repeats,
            errors: plan.errors,
            badness: plan.bad_answers,
            interim: !plan.is_faultless(),
            most_streams: 100,
        };
        let origin = H2Origin::new(Peer::new(link, None), site, plan, &mut world);
        Self {
            world,
            ledger: Ledger::default(),
            origin,
            client: Connection::new(Role::Client, Config::default()),
            head: Head::new(),
            input: Vec::new(),
            out: Vec::new(),
            streams: HashMap::new(),
            waiting: asks,
            is_over: false,
        }
    }

    /// Runs until nothing more happens.
    fn run(&mut self) {
        for _ in 0..200_000 {
            let before = self.world.moves;
            self.world.arrive();
            self.origin.poll(&mut self.world, &mut self.ledger);
            self.client_turn();
            if self.world.moves != before {
                continue;
            }
            let now = self.world.now;
            let own = self.origin.wakes().into_iter().filter(|at| *at > now).min();
            let Some(next) = own.into_iter().chain(self.world.next_arrival()).min() else { return };
            if next > now + Duration::from_secs(500) {
                return;
            }
            self.world.now = next;
        }
        panic!("the origin and its client never come to rest");
    }

    fn client_turn(&mut self) {
        let link = self.origin.link();
        let pipe = self.world.pipe(link, true);
        let before = self.input.len();
        pipe.take(usize::MAX, false, &mut self.input);
        self.is_over |= pipe.is_ended() || self.world.links[link].peer_gone;
        self.world.moves += u64::from(self.input.len() > before);
        let mut at = 0;
        while let Ok(step) = self.client.feed(&mut self.input[at..], &mut self.head) {
            let from = at;
            at += step.consumed;
            let Some(event) = step.event else { break };
            self.event(event, from);
        }
        self.input.drain(..at);
        self.ask();
        self.upload();
        self.client.settle(&mut self.out);
        let sent = self.world.send(link, false, &self.out);
        self.out.drain(..sent);
    }

    fn ask(&mut self) {
        while !self.waiting.is_empty() {
            let is_head = self.waiting[0].method == Method::Head;
            let Some(no) = self.client.open(is_head) else { return };
            let mut ask = self.waiting.remove(0);
            ask.id = self.ledger.entries.len();
            let write = |to: &mut Encoder<'_>| {
                let method = crate::message::name(ask.method);
                to.request(method.as_bytes(), Scheme::Http, b"sim", format!("/{}", ask.id).as_bytes());
                let mut field = |name: &str, value: String| to.field(name.as_bytes(), value.as_bytes());
                field("x-id", ask.id.to_string());
                field("x-answer", ask.answer.text());
                field("x-body", ask.body.map_or(0, |body| body.length).to_string());
                if ask.has_trailers {
                    field(TRAILER, String::new() + "yes");
                }
            };
            let end = ask.body.is_none();
            self.client.head(no, Part::Head { end }, write, &mut self.out).unwrap();
            let rest = ask.body.map(|body| pattern(ask.id, body.length)).unwrap_or_default();
            self.streams.insert(no, Got { id: ask.id, rest, is_sent: end, ..Got::default() });
            let entry = Ledger::entry(ask, self.origin.link(), self.world.now);
            self.ledger.entries.push(entry);
        }
    }

    fn upload(&mut self) {
        for (no, got) in &mut self.streams {
            if got.is_sent {
                continue;
            }
            let ask = &self.ledger.entries[got.id].ask;
            let end = !ask.has_trailers;
            match self.client.data(*no, &got.rest, end, &mut self.out) {
                Err(_) => got.is_sent = true,
                Ok(taken) => {
                    self.world.moves += u64::from(taken > 0);
                    got.rest.drain(..taken);
                    got.is_sent = got.rest.is_empty();
                    if got.is_sent && ask.has_trailers {
                        let write = |to: &mut Encoder<'_>| {
                            to.field(TRAILER.as_bytes(), got.id.to_string().as_bytes());
                        };
                        self.client.head(*no, Part::Trailers, write, &mut self.out).unwrap();
                    }
                }
            }
        }
    }

    fn event(&mut self, event: Event, from: usize) {
        match event {
            Event::Head { stream, end } => {
                let status = self.head.status;
                let got = self.streams.get_mut(&stream).unwrap();
                if status >= 200 {
                    got.status = status;
                    self.ends(stream, end);
                }
            }
            Event::Data { stream, range, flow, end } => {
                let data = &self.input[from + range.start..from + range.end];
                self.streams.get_mut(&stream).unwrap().body.extend_from_slice(data);
                self.client.credit(stream, flow);
                self.ends(stream, end);
            }
            Event::Trailers { stream } => {
                let value = self.head.fields[0].value.of(&self.head.bytes);
                let value = String::from_utf8_lossy(value).into_owned();
                self.streams.get_mut(&stream).unwrap().trailer = Some(value);
                self.ends(stream, true);
            }
            Event::Reset { stream, code } => {
                let got = self.streams.get_mut(&stream).unwrap();
                got.reset = Some(code);
                got.is_sent = true;
                self.client.release(stream);
            }
            Event::Failed { stream, .. } => {
                self.streams.get_mut(&stream).unwrap().is_dropped = true;
                self.client.release(stream);
            }
            Event::GoAway { last, .. } => {
                for (no, got) in self.streams.iter_mut().filter(|(no, _)| no.get() > last) {
                    (got.is_dropped, got.is_sent) = (true, true);
                    self.client.release(*no);
                }
            }
            Event::Rejected { .. } => unreachable!("a client"),
            Event::Room { .. } | Event::Settings | Event::Pong | Event::Pause => {}
        }
    }

    fn ends(&mut self, no: StreamNo, end: bool) {
        if !end {
            return;
        }
        let got = self.streams.get_mut(&no).unwrap();
        got.is_whole = true;
        if got.is_sent {
            self.client.release(no);
        }
    }
}

fn asks(seed: u64, count: usize) -> Vec<Ask> {
    let faults = Faults { rough: true, tiny: false, refusals: 0, shortages: 0, corrupts: false };
    let mut world = World::new(seed, faults, 1);
    let ask = |_| {
        let mut ask = Ask { is_old: false, closes: false, ..Ask::by_chance(0, true, &mut world) };
        ask.has_trailers = world.below(2) == 0;
        ask.body = ask.body.map(|body| BodyOf { chunked: true, ..body });
        ask
    };
    (0..count).map(ask).collect()
}

#[test]
fn each_response_is_whole_on_every_network() {
    let mut trailers = 0;
    for seed in 0..60 {
        let plan = if seed % 2 == 0 { Plan::plain() } else { Plan::rough() };
        let mut duel = Duel::new(seed, &plan, asks(seed, 20));
        // A drain would leave requests that need another connection.
        duel.origin.behaviour.goes_away_after = None;
        duel.run();
        assert_eq!(duel.ledger.violations, Vec::<String>::new(), "seed {seed}");
        assert_eq!(duel.streams.len(), 20, "seed {seed}");
        for got in duel.streams.values() {
            let ask = &duel.ledger.entries[got.id].ask;
            assert!(got.is_whole, "seed {seed}: #{}", got.id);
            assert_eq!(got.status, ask.answer.status());
            assert!(got.body == ask.answer_body(), "seed {seed}: #{}", got.id);
            let may_end = ask.method != Method::Head && matches!(ask.answer, Answer::Chunked(_));
            let wanted = (ask.has_trailers && may_end).then(|| got.id.to_string());
            assert_eq!(got.trailer, wanted, "seed {seed}");
            trailers += usize::from(wanted.is_some());
        }
        let origin = &duel.origin;
        assert_eq!((origin.streams.len(), origin.connection.streams()), (0, 0), "seed {seed}");
    }
    assert!(trailers > 50, "{trailers}");
}

/// Even without a gateway in between, each request has exactly one outcome. Only an origin that is silent leaves it
/// open.
#[test]
fn faults_end_streams_as_they_say() {
    let (mut unprocessed, mut resets, mut ends) = (0, 0, 0);
    for seed in 0..300 {
        let plan = Plan { bad_answers: 300, ..Plan::rough() };
        let mut duel = Duel::new(seed, &plan, asks(seed, 20));
        duel.run();
        assert_eq!(duel.ledger.violations, Vec::<String>::new(), "seed {seed}");
        let trace = duel.ledger.trace.join("\n");
        let has_silence = ["Silence", "Stall", "Mute", "BadFrame"].iter().any(|fault| trace.contains(fault));
        for got in duel.streams.values() {
            let entry = &duel.ledger.entries[got.id];
            let has_outcome = got.is_whole || got.reset.is_some() || got.is_dropped;
            assert!(has_outcome || duel.is_over || has_silence, "seed {seed}: #{}\n{trace}", got.id);
            let arrival = entry.arrivals.first().and_then(|arrival| arrival.stream);
            if arrival.is_some_and(|on| on.is_unprocessed) {
                unprocessed += 1;
                assert_eq!((got.status, got.is_whole), (0, false), "seed {seed}");
            }
            if got.is_whole && got.reset.is_none() {
                assert!(got.body == entry.ask.answer_body(), "seed {seed}: #{}", got.id);
            }
        }
        resets += duel.streams.values().filter(|got| got.reset.is_some()).count();
        ends += usize::from(duel.is_over);
    }
    assert!(unprocessed > 50 && resets > 50 && ends > 50, "{unprocessed}, {resets}, {ends}");
}

/// The origin reports a client that ignores the limit of streams, or that exceeds a window.
#[test]
fn a_gateway_that_breaks_rules_is_noticed() {
    let mut noticed = 0;
    for seed in 0..20 {
        let mut duel = Duel::new(seed, &Plan::plain(), asks(seed, 30));
        duel.origin.behaviour.goes_away_after = None;
        duel.origin.limits = vec![Some(1)];
        duel.origin.site.most_streams = 1;
        duel.run();
        noticed += duel.ledger.violations.iter().filter(|what| what.contains("(Streams)")).count();
    }
    assert!(noticed > 20, "{noticed}");
    let mut duel = Duel::new(1, &Plan::plain(), asks(1, 1));
    let mut data = Vec::new();
    frame::write_data(1, &[0; 16_000], false, &mut data);
    let mut wrong = Vec::new();
    duel.run();
    (0..5).for_each(|_| duel.origin.wire.receives(&data, &mut wrong));
    assert!(wrong.iter().any(|(invariant, _)| *invariant == crate::Invariant::Windows), "{wrong:?}");
}

#[test]
fn a_response_that_is_cut_short_has_a_length() {
    let mut cut = 0;
    for seed in 0..900 {
        let mut duel = Duel::new(seed, &Plan { bad_answers: 500, ..Plan::plain() }, asks(seed, 10));
        duel.run();
        for stream in &duel.origin.streams {
            assert!(stream.fault != Some(Fault::Short) || matches!(stream.answer, Answer::Length(1..)));
        }
        cut += duel.streams.values().filter(|got| got.is_dropped && got.status == 200).count();
    }
    assert!(cut > 3, "{cut}");
}
