//! The loops over a fake stack: what they count, and which errors end a run.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use weir_engine::{
    Connection, End, Error, Facts, Kind, Operate, Outcome, Primitive, Resumption, Session, Stack, Version,
    notes, run,
};

const CONNECTION: &str =
    "version 1.3\nsuite aes128-gcm\ngroup x25519\ncertificate ecdsa-p256\nchain c\nkey k\nca a\n";

#[test]
fn facts_are_one_line_and_done_another() {
    let lines = report(&Fake::default(), "do facts\n");
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["tls"], "fake 1.0");
    assert_eq!(lines[0]["allocator"], "system");
    assert_eq!(lines[1]["type"], "done");
}

#[test]
fn every_handshake_has_a_sample_and_an_outcome_on_both_sides() {
    let text =
        format!("do handshake\n{CONNECTION}resumption none\ntickets 2\nthreads 2\nwarmup 3\ncount 1500\n");
    let lines = report(&Fake::default(), &text);
    assert_eq!(lines.last().expect("has lines")["type"], "done");
    for side in ["client", "server"] {
        let negotiated = of(&lines, "negotiated", side);
        assert_eq!(negotiated.len(), 1);
        let keys = ["version", "kind", "suite", "group", "signature"].map(|key| negotiated[0][key].as_str());
        let signature = Some("ecdsa_secp256r1_sha256");
        assert_eq!(keys, [Some("1.3"), Some("full"), Some("aes128-gcm"), Some("x25519"), signature]);
        assert_eq!(negotiated[0]["count"], 3000);

        let samples = of(&lines, "samples", side);
        let lengths: Vec<usize> =
            samples.iter().map(|line| line["ns"].as_array().map_or(0, Vec::len)).collect();
        assert_eq!(lengths, [1000, 500, 1000, 500]);
        let span = of(&lines, "span", side);
        assert_eq!((span[0]["name"].as_str(), span[0]["count"].as_u64()), (Some("session"), Some(3000)));
    }
    let threads: Vec<&Value> = lines.iter().filter(|line| line["type"] == "thread").collect();
    assert_eq!(threads.len(), 2);
    assert!(threads.iter().all(|line| line["units"] == 1500 && line["wall_ns"].as_u64() > Some(0)));
}

#[test]
fn a_resumed_handshake_uses_the_previous_session() {
    let text = format!("do handshake\n{CONNECTION}resumption psk\ntickets 1\ncount 5\nlocks time\n");
    let lines = report(&Fake::default(), &text);
    let negotiated = of(&lines, "negotiated", "client");
    assert_eq!((negotiated.len(), negotiated[0]["kind"].as_str()), (1, Some("resumed")));
    assert_eq!((negotiated[0]["signature"].as_str(), negotiated[0]["count"].as_u64()), (None, Some(5)));
    let lock = lines.iter().find(|line| line["type"] == "lock").expect("has a lock");
    assert_eq!((lock["name"].as_str(), lock["operations"].as_u64()), (Some("ticket-keys"), Some(5)));
}

#[test]
fn an_empty_store_is_an_error() {
    let text = format!("do handshake\n{CONNECTION}resumption psk\ntickets 1\ncount 5\n");
    ends_with(&Fake { forgets: true, ..Fake::default() }, &text, "stack", "full");
}

#[test]
fn another_number_of_tickets_is_an_error() {
    let text = format!("do handshake\n{CONNECTION}resumption none\ntickets 2\ncount 5\n");
    ends_with(&Fake { stingy: true, ..Fake::default() }, &text, "stack", "1 were sent and read, 2");
}

#[test]
fn a_cold_configuration_is_created_for_each_handshake() {
    let fake = Fake::default();
    let text =
        format!("do handshake\n{CONNECTION}resumption none\ntickets 0\nconfig cold\nwarmup 2\ncount 5\n");
    report(&fake, &text);
    assert_eq!(fake.servers.load(Ordering::Relaxed), 1 + 2 + 5);
}

#[test]
fn transfers_count_bytes_and_compare_them() {
    let text = format!("do transfer\n{CONNECTION}record 512\nwrite 1000\nbytes 2500\ncount 4\n");
    let lines = report(&Fake::default(), &text);
    for side in ["client", "server"] {
        assert_eq!(of(&lines, "moved", side)[0]["bytes"], 10_000);
        assert_eq!(of(&lines, "samples", side)[0]["ns"].as_array().map(Vec::len), Some(4));
        assert_eq!(of(&lines, "negotiated", side)[0]["count"], 1);
    }
    ends_with(&Fake { garbles: true, ..Fake::default() }, &text, "stack", "not the same");
}

#[test]
fn memory_holds_pairs() {
    let lines = report(&Fake::default(), &format!("do memory\n{CONNECTION}sessions 10\n"));
    assert_eq!(of(&lines, "negotiated", "server")[0]["count"], 5);
    let memory = lines.iter().find(|line| line["type"] == "memory").expect("has memory");
    assert_eq!(memory["sessions"], 10);
    assert!(memory["after_kib"].as_u64() >= memory["before_kib"].as_u64());
}

#[test]
fn primitives_are_timed_in_batches() {
    let lines = report(&Fake::default(), "do primitive\noperation x25519\ncount 100000\n");
    let samples = of(&lines, "samples", "operation");
    assert!(!samples.is_empty() && samples[0]["ns"].as_array().is_some_and(|ns| ns.len() < 100_000));
    assert!(lines.iter().any(|line| line["type"] == "thread" && line["units"] == 100_000));
    ends_with(&Fake::default(), "do primitive\noperation p256\ncount 1\n", "scenario", "x25519");
}

#[test]
fn invalid_scenarios_are_rejected() {
    for text in [&b"do nothing\n"[..], b"\xff", b""] {
        let mut output = Vec::new();
        assert!(!run(&Fake::default(), text, &mut output).expect("is written"));
        let line: Value = serde_json::from_slice(&output).expect("is one line");
        assert_eq!((line["type"].as_str(), line["fault"].as_str()), (Some("error"), Some("scenario")));
    }
}

fn report(fake: &Fake, text: &str) -> Vec<Value> {
    let mut output = Vec::new();
    run(fake, text.as_bytes(), &mut output).expect("is written");
    let lines = str::from_utf8(&output).expect("is text").lines();
    lines.map(|line| serde_json::from_str(line).expect("is JSON")).collect()
}

fn of<'a>(lines: &'a [Value], kind: &str, side: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind && line["side"] == side).collect()
}

fn ends_with(fake: &Fake, text: &str, fault: &str, word: &str) {
    let lines = report(fake, text);
    let last = lines.last().expect("has lines");
    assert_eq!((last["type"].as_str(), last["fault"].as_str()), (Some("error"), Some(fault)), "{last}");
    assert!(last["message"].as_str().is_some_and(|message| message.contains(word)), "{last}");
}

/// A stack with one-byte hellos and unencrypted records.
#[derive(Default)]
struct Fake {
    forgets: bool,
    stingy: bool,
    garbles: bool,
    servers: AtomicUsize,
}

impl Stack for Fake {
    type Client = FakeClient;
    type Server = FakeServer;

    fn facts(&self) -> Facts {
        let [stack, tls, crypto, compiler] = ["fake", "fake 1.0", "none 0", "none"].map(str::to_owned);
        Facts { stack, tls, crypto, compiler, features: Vec::new() }
    }

    fn client(&self, connection: &Connection) -> Result<FakeClient, Error> {
        Ok(FakeClient {
            store: Rc::new(Cell::new(0)),
            keeps: connection.resumption != Resumption::None && !self.forgets,
            outcome: outcome(connection),
        })
    }

    fn server(&self, connection: &Connection) -> Result<FakeServer, Error> {
        self.servers.fetch_add(1, Ordering::Relaxed);
        let tickets = if self.stingy { 1 } else { connection.tickets };
        Ok(FakeServer {
            tickets,
            locks: connection.locks,
            garbles: self.garbles,
            outcome: outcome(connection),
        })
    }

    fn operation(&self, primitive: &Primitive) -> Result<Box<dyn Operate>, Error> {
        match primitive.operation {
            weir_engine::Operation::X25519 => Ok(Box::new(Nothing)),
            _ => Err(Error::scenario("operation: expected `x25519`")),
        }
    }
}

fn outcome(connection: &Connection) -> Outcome {
    assert_eq!(connection.version, Version::Tls13);
    Outcome {
        version: connection.version.code(),
        kind: Kind::Full,
        suite: connection.suite_code(),
        group: Some(connection.group.code()),
        signature: Some(connection.certificate.signature()),
    }
}

struct Nothing;

impl Operate for Nothing {
    fn run(&mut self) -> Result<(), Error> {
        std::hint::black_box(());
        Ok(())
    }
}

struct FakeClient {
    store: Rc<Cell<u32>>,
    keeps: bool,
    outcome: Outcome,
}

struct FakeServer {
    tickets: u32,
    locks: bool,
    garbles: bool,
    outcome: Outcome,
}

const FULL: u8 = 1;
const RESUME: u8 = 2;
const HELLO: u8 = 3;
const FINISHED: u8 = 4;
const TICKET: u8 = 5;

impl End for FakeClient {
    type Session = FakeSession;

    fn session(&self) -> Result<FakeSession, Error> {
        let resumes = self.store.get() > 0;
        self.store.set(self.store.get().saturating_sub(1));
        let store = self.keeps.then(|| self.store.clone());
        let hello = if resumes { RESUME } else { FULL };
        let outcome = resumed(self.outcome, resumes);
        Ok(FakeSession {
            outgoing: vec![hello],
            over: false,
            store,
            tickets: 0,
            locks: false,
            garbles: false,
            outcome,
        })
    }
}

impl End for FakeServer {
    type Session = FakeSession;

    fn session(&self) -> Result<FakeSession, Error> {
        let FakeServer { tickets, locks, garbles, outcome } = *self;
        Ok(FakeSession { outgoing: Vec::new(), over: false, store: None, tickets, locks, garbles, outcome })
    }
}

struct FakeSession {
    outgoing: Vec<u8>,
    over: bool,
    store: Option<Rc<Cell<u32>>>,
    tickets: u32,
    locks: bool,
    garbles: bool,
    outcome: Outcome,
}

fn resumed(outcome: Outcome, resumes: bool) -> Outcome {
    if resumes { Outcome { kind: Kind::Resumed, signature: None, ..outcome } } else { outcome }
}

impl Session for FakeSession {
    fn receive(&mut self, input: &[u8]) -> Result<(), Error> {
        for byte in input {
            match *byte {
                FULL => self.outgoing.push(HELLO),
                RESUME => {
                    self.outcome = resumed(self.outcome, true);
                    if self.locks {
                        notes::held(notes::Lock::TicketKeys, || ());
                    }
                    self.outgoing.push(HELLO);
                }
                HELLO => {
                    self.over = true;
                    self.outgoing.push(FINISHED);
                }
                FINISHED => {
                    self.over = true;
                    self.outgoing.extend((0..self.tickets).map(|_| TICKET));
                }
                TICKET => {
                    notes::ticket();
                    if let Some(store) = &self.store {
                        store.set(store.get() + 1);
                    }
                }
                _ => return Err(Error::stack("receive", "a strange byte")),
            }
        }
        Ok(())
    }

    fn send(&mut self, output: &mut Vec<u8>) -> Result<(), Error> {
        output.append(&mut self.outgoing);
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        self.over.then_some(self.outcome)
    }

    fn write(&mut self, plain: &[u8], output: &mut Vec<u8>) -> Result<(), Error> {
        for fragment in plain.chunks(512) {
            output.extend_from_slice(&[23, 3, 3, (fragment.len() >> 8) as u8, fragment.len() as u8]);
            output.extend_from_slice(fragment);
        }
        if let (true, Some(byte)) = (self.garbles, output.last_mut()) {
            *byte ^= 1;
        }
        Ok(())
    }

    fn read(&mut self, mut input: &[u8], plain: &mut [u8]) -> Result<usize, Error> {
        let mut read = 0;
        while let [_, _, _, high, low, rest @ ..] = input {
            let (fragment, next) = rest.split_at(usize::from(*high) << 8 | usize::from(*low));
            plain[read..read + fragment.len()].copy_from_slice(fragment);
            (read, input) = (read + fragment.len(), next);
        }
        Ok(read)
    }
}
