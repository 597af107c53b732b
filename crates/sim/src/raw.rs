//! One client and its origins, which send a fuzzer's bytes, and the rules that must hold for any bytes.

use crate::gateway::Gateway;
use crate::ledger::Ledger;
use crate::plan::Plan;
use crate::world::{Faults, World};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use weir_gateway::Timeouts;
use weir_gateway::harness::LeakCheck;
use weir_http1::{BodyDecoder, Limits, Parse, RequestHead, ResponseHead};
use weir_http2::PREFACE;
use weir_http2::frame::{Frame, FrameHeader, HEADER_BYTES, Kind};

/// Runs one connection by a script and panics if a rule is broken. Whatever the peers send, origins receive valid
/// requests, the client receives bytes that start as a valid response, no head is parsed more often than it has lines,
/// and no state remains once both peers have closed and all timeouts have passed.
///
/// The script's first byte contains flags: 1: connections start with a PROXY header; 2: the gateway buffers messages;
/// 4: one connection to the origin; 8: the gateway mirrors requests. Steps follow, one byte each, modulo 8:
/// - 0, 1: the client or the origin sends a number of bytes given by the next byte;
/// - 2, 3: the client or the origin ends its stream;
/// - 4: time passes, in tenths of a second given by the next byte;
/// - 5, 6: the client or the origin resets its connection;
/// - 7: the origin sends nothing until the gateway opens another connection.
///
/// After each step the gateway runs turns until nothing happens.
pub fn connection(script: &[u8]) {
    let [flags, steps @ ..] = script else { return };
    let is = |flag: u8| flags & flag != 0;
    let plan = Plan {
        announced: is(1),
        buffers: is(2),
        most_connections: is(4).then_some(1),
        mirrors: is(8),
        marks: false,
        ..Plan::plain()
    };
    let mut replay = Replay::new(&plan);
    let mut steps = steps.iter().copied().take(LONGEST);
    while let Some(step) = steps.next() {
        match step % 8 {
            0 => {
                let count = usize::from(steps.next().unwrap_or_default());
                replay.client_sends(&steps.by_ref().take(count).collect::<Vec<_>>());
            }
            1 => {
                let count = usize::from(steps.next().unwrap_or_default());
                replay.unsent.extend(steps.by_ref().take(count));
            }
            2 => replay.world.borrow_mut().end(replay.client, true),
            3 => replay.origin_ends(false),
            4 => replay.pass(Duration::from_millis(100) * u32::from(steps.next().unwrap_or_default())),
            5 => replay.world.borrow_mut().reset(replay.client, true),
            6 => replay.origin_ends(true),
            _ => replay.responding = None,
        }
        replay.settle();
    }
    replay.finish();
}

struct Replay {
    world: Rc<RefCell<World>>,
    gateway: Gateway,
    ledger: Ledger,
    client: usize,
    /// Bytes that the client received.
    got: Vec<u8>,
    /// The origin's links, with the bytes received on each.
    origins: Vec<(usize, Vec<u8>)>,
    /// The link on which the origin sends.
    responding: Option<usize>,
    /// Bytes that the origin has yet to send.
    unsent: Vec<u8>,
    sent: Sent,
    /// The client's first bytes, up to the length of the HTTP/2 preface.
    first: Vec<u8>,
}

/// Totals of the bytes that both peers sent.
#[derive(Clone, Copy, Default)]
struct Sent {
    bytes: u64,
    lines: u64,
}

impl Sent {
    fn note(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    }
}

impl Replay {
    fn new(plan: &Plan) -> Self {
        let faults = Faults { rough: false, tiny: false, refusals: 0, shortages: 0, corrupts: false };
        let world = Rc::new(RefCell::new(World::new(0, faults, 1)));
        let mut gateway = Gateway::new(&world, plan, Timeouts::default());
        let mut ledger = Ledger::default();
        gateway.turn(&mut ledger);
        let client = world.borrow_mut().connect().expect("the gateway listens");
        Self {
            world,
            gateway,
            ledger,
            client,
            got: Vec::new(),
            origins: Vec::new(),
            responding: None,
            unsent: Vec::new(),
            sent: Sent::default(),
            first: Vec::new(),
        }
    }

    fn client_sends(&mut self, bytes: &[u8]) {
        let mut world = self.world.borrow_mut();
        if !world.pipe(self.client, true).is_ended() {
            self.sent.note(bytes);
            self.first.extend_from_slice(&bytes[..bytes.len().min(PREFACE.len() - self.first.len())]);
            world.send(self.client, true, bytes);
        }
    }

    fn origin_ends(&mut self, resets: bool) {
        let Some(link) = self.responding.take() else { return };
        let mut world = self.world.borrow_mut();
        match resets {
            true => world.reset(link, true),
            false => world.end(link, true),
        }
    }

    /// Runs turns until nothing happens.
    fn settle(&mut self) {
        for _ in 0..MOST_TURNS {
            let before = self.world.borrow().moves;
            self.exchange();
            self.gateway.turn(&mut self.ledger);
            self.exchange();
            self.gateway.turn(&mut self.ledger);
            if self.world.borrow().moves == before {
                return;
            }
        }
        panic!("the gateway turns without an end");
    }

    /// Moves bytes between the peers and the gateway.
    fn exchange(&mut self) {
        let mut world = self.world.borrow_mut();
        for link in std::mem::take(&mut world.dialled) {
            self.origins.push((link, Vec::new()));
            self.responding = Some(link);
        }
        if let Some(link) = self.responding
            && !self.unsent.is_empty()
            && !world.links[link].gateway_gone
            && !world.pipe(link, true).is_ended()
        {
            let sent = world.send(link, true, &self.unsent);
            self.sent.note(&self.unsent[..sent]);
            self.unsent.drain(..sent);
        }
        world.arrive();
        take(&mut world, self.client, &mut self.got);
        for (link, got) in &mut self.origins {
            take(&mut world, *link, got);
        }
    }

    /// Advances the clock, and fires all timers that become due.
    fn pass(&mut self, time: Duration) {
        let end = self.world.borrow().now + time;
        for _ in 0..MOST_TURNS {
            let next = self.gateway.next().map_or(end, |next| next.min(end));
            let now = self.world.borrow().now;
            self.world.borrow_mut().now = next.max(now);
            self.settle();
            if next >= end {
                return;
            }
        }
        panic!("timers come without an end");
    }

    fn finish(mut self) {
        let links: Vec<_> =
            [self.client].into_iter().chain(self.origins.iter().map(|(link, _)| *link)).collect();
        for link in links {
            self.world.borrow_mut().end(link, true);
            self.settle();
        }
        self.pass(Duration::from_secs(4000));
        assert_eq!(self.ledger.violations, Vec::<String>::new());
        // The gateway parses a head when its first bytes arrive, when one of its lines ends, and at the end of the
        // stream. This bounds the wasted parsing.
        let (Sent { bytes, lines }, in_vain) = (self.sent, self.gateway.parsed_in_vain());
        let most = bytes * (2 * lines + 4);
        assert!(in_vain <= most, "{in_vain} bytes parsed in vain, of {bytes} in {lines} lines");
        assert_eq!(self.gateway.leak_check(), LeakCheck::default());
        assert_eq!(self.gateway.timers(), 0);
        assert!(
            self.world.borrow().links.iter().all(|link| link.gateway_gone),
            "a connection is left behind"
        );
        is_answer(&self.got, self.first == PREFACE);
        for (_, got) in &self.origins {
            are_requests(got);
        }
    }
}

/// Takes the bytes that arrived at a peer.
fn take(world: &mut World, link: usize, into: &mut Vec<u8>) {
    let before = into.len();
    world.pipe(link, false).take(usize::MAX, false, into);
    if into.len() > before {
        world.moves += 1;
    }
}

/// Checks that the client's bytes start as a response, or are the frames of an HTTP/2 server.
fn is_answer(got: &[u8], is_h2: bool) {
    if is_h2 {
        return are_frames(got);
    }
    let head = ResponseHead::new().parse(got, &Limits::default());
    assert!(got.is_empty() || head.is_ok(), "{head:?}: {}", got.escape_ascii());
}

/// Checks that the bytes are frames, of which the first one is SETTINGS and only the last one may be cut off.
fn are_frames(got: &[u8]) {
    let (mut rest, mut is_first) = (got, true);
    while let Some(header) = rest.first_chunk::<HEADER_BYTES>().map(FrameHeader::parse) {
        assert!(!is_first || header.kind == Kind::Settings, "{header:?}");
        is_first = false;
        let Some(payload) = rest.get(HEADER_BYTES..HEADER_BYTES + header.length as usize) else { return };
        let checked = header.check(1 << 14).and_then(|()| Frame::parse(header, payload));
        assert!(checked.is_ok(), "{checked:?}: {}", got.escape_ascii());
        rest = &rest[HEADER_BYTES + payload.len()..];
    }
}

/// Checks that an origin's bytes are complete requests, up to one that is cut off or an upgrade.
fn are_requests(got: &[u8]) {
    let mut rest = got;
    let limits = Limits::default();
    while !rest.is_empty() {
        let mut head = RequestHead::new();
        match head.parse(rest, &limits) {
            Ok(Parse::Complete(length)) => rest = &rest[length..],
            Ok(Parse::Partial) => return,
            Err(error) => panic!("{error}: {}", got.escape_ascii()),
        }
        if head.upgrade.is_some() {
            return;
        }
        let mut body = BodyDecoder::new(head.framing, &limits);
        while !body.is_complete() {
            let step = body.decode(rest).unwrap_or_else(|error| panic!("{error}: {}", got.escape_ascii()));
            rest = &rest[step.consumed..];
            if step.consumed == 0 {
                return;
            }
        }
    }
}

/// Limit of steps per script; longer scripts reach no new cases.
const LONGEST: usize = 16 * 1024;

/// Limit of turns per step.
const MOST_TURNS: usize = 10_000;
