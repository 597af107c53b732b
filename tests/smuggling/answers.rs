//! Response cases: each comes from a scripted server and passes through one gateway.

use super::data::{Entry, File};
use super::messages::{self, Read};
use super::{LENIENT, Reasons, Sent, counted, each, gateway_before, listener_for, names_reason};
use crate::common::{Client, Peer, Upstream, Weir};
use std::sync::{Arc, Mutex};
use weir_http::Method;
use weir_http1::Rule;

/// A case of `answers.toml`.
struct Case {
    label: String,
    ask: Vec<u8>,
    says: Vec<u8>,
    /// Whether the server then closes its side.
    ends: bool,
    /// The bytes of the response that the client receives.
    passed: Vec<u8>,
    outcome: Outcome,
    /// The reasons that the metrics count.
    reasons: Vec<String>,
    reused: bool,
    /// Whether the gateway closes the server's connection before more bytes can arrive.
    closed: bool,
    /// The listener, which selects the service.
    listener: usize,
    /// Whether a service setting can accept the response.
    lifted: bool,
    is_skipped: bool,
}

/// The end of the response for the client.
enum Outcome {
    Whole,
    /// The gateway generates a response with this status and reason.
    Refused(String, String),
    /// The response ends early.
    Cut,
}

impl Case {
    fn read(entry: &Entry<'_>) -> Self {
        entry.has_only(&[
            "says", "ends", "ask", "passed", "refused", "cut", "reason", "reused", "closed", "accept",
            "counted", "lifted",
        ]);
        let refused = entry.text("refused").map(|text| text.split_once(' ').unwrap());
        let cut = entry.list("cut");
        let mut reasons: Vec<_> = entry.text("reason").map(str::to_owned).into_iter().collect();
        reasons.extend(counted(entry));
        let (passed, outcome) = match (refused, &cut[..]) {
            (None, []) => (entry.bytes("passed").unwrap(), Outcome::Whole),
            (Some((status, reason)), []) => {
                reasons.push(reason.to_owned());
                let passed = entry.bytes("passed").unwrap_or_default();
                (passed, Outcome::Refused(status.to_owned(), reason.to_owned()))
            }
            (None, [cut, reason]) => {
                reasons.push(String::from_utf8(reason.clone()).unwrap());
                (cut.clone(), Outcome::Cut)
            }
            _ => panic!("{}: what is expected?", entry.label),
        };
        Self {
            label: entry.label.clone(),
            ask: entry.bytes("ask").unwrap_or_else(|| entry.named("get")),
            says: entry.bytes("says").unwrap(),
            ends: entry.is("ends"),
            passed,
            outcome,
            reasons,
            reused: entry.is("reused"),
            closed: entry.is("closed"),
            listener: listener_for(entry.text("accept"), &Rule::OF_RESPONSES),
            lifted: entry.is("lifted"),
            is_skipped: false,
        }
    }

    fn all() -> Vec<Self> {
        let parse = |target: &str| File::read("answers.toml", &[("target", target)]);
        let read = |(number, _)| Self::read(&parse(&format!("/{number}")).entries().nth(number).unwrap());
        parse("").entries().enumerate().map(read).collect()
    }

    fn method(&self) -> Method {
        Method::of(self.ask.split(|byte| *byte == b' ').next().unwrap())
    }

    /// Checks that the client received exactly the case's bytes.
    fn expect_bytes(&self, received: &[u8]) {
        let (shown, label) = (received.escape_ascii(), &self.label);
        match &self.outcome {
            Outcome::Whole => {
                assert_eq!(shown.to_string(), self.passed.escape_ascii().to_string(), "{label}");
            }
            Outcome::Refused(..) => {
                let own =
                    received.strip_prefix(&self.passed[..]).unwrap_or_else(|| panic!("{label}: {shown}"));
                assert!(self.is_refusal(own), "{label}: {shown}");
            }
            // A reset may discard bytes.
            Outcome::Cut => assert!(self.passed.starts_with(received), "{label}: {shown}"),
        }
    }

    /// Like [`Case::expect_bytes`], but compares messages: chunk boundaries may differ, and an invalid response may
    /// have begun.
    fn expect_messages(&self, received: &[u8]) {
        let (shown, label) = (received.escape_ascii(), &self.label);
        let read = |bytes: &[u8]| messages::responses(bytes, self.method());
        match &self.outcome {
            Outcome::Whole => assert_eq!(read(received), read(&self.passed), "{label}: {shown}"),
            Outcome::Refused(..) => {
                let own =
                    received.strip_prefix(&self.passed[..]).unwrap_or_else(|| panic!("{label}: {shown}"));
                assert!(self.is_refusal(own) || is_cut(&read(own)), "{label}: {shown}");
            }
            Outcome::Cut => assert!(is_cut(&read(received)), "{label}: {shown}"),
        }
    }

    fn is_refusal(&self, answer: &[u8]) -> bool {
        let Outcome::Refused(status, reason) = &self.outcome else { return false };
        let answer = String::from_utf8_lossy(answer);
        answer.starts_with(&format!("HTTP/1.1 {status} "))
            && answer.contains("\r\nConnection: close\r\n")
            && match self.method() {
                Method::Head => answer.ends_with("\r\n\r\n"),
                _ => names_reason(&answer, reason),
            }
    }
}

fn is_cut(answers: &[Read]) -> bool {
    answers.last().is_none_or(|last| !last.is_complete)
}

#[test]
fn there_are_many_answers() {
    assert!(Case::all().len() >= 40);
}

#[test]
fn answers_at_once() {
    from_a_scripted_server(Sent::AtOnce, Case::all());
}

/// A lenient service accepts only its listed violations.
#[test]
fn answers_of_a_lenient_service() {
    let mut cases = Case::all();
    for case in &mut cases {
        case.is_skipped = case.listener > 0 || case.lifted;
        case.listener = LENIENT;
    }
    // The case's number selects it.
    from_a_scripted_server(Sent::AtOnce, cases);
}

/// Segment boundaries do not change the reading of a response.
#[test]
fn answers_in_pieces() {
    from_a_scripted_server(Sent::InPieces, Case::all());
}

/// A request that shows whether the connection serves another request.
const PROBE: &str = "GET /probe HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

fn from_a_scripted_server(sent: Sent, cases: Vec<Case>) {
    let cases = Arc::new(cases);
    // The connection of each request.
    let asked = Arc::new(Mutex::new(Vec::<(String, usize)>::new()));
    let (script, log) = (Arc::clone(&cases), Arc::clone(&asked));
    let upstream = Upstream::start(None, move |peer| {
        while let Some((head, _)) = peer.head() {
            let target = head.split(' ').nth(1).unwrap().to_owned();
            log.lock().unwrap().push((target.clone(), peer.index));
            let Some(case) = target[1..].parse().ok().and_then(|number: usize| script.get(number)) else {
                peer.answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nprobe");
                continue;
            };
            say(peer, case, sent);
            if case.ends {
                peer.stream.finish_tcp();
                peer.read_to_end();
                return;
            }
        }
    });
    let weir = gateway_before(upstream.address);
    let mut reasons = Reasons::of(&weir);
    each(
        &cases,
        |case| &case.label,
        |case| {
            asked.lock().unwrap().clear();
            if case.is_skipped {
                return;
            }
            let received = undated(&asks(&weir, case.listener, &case.ask));
            match sent {
                Sent::AtOnce => case.expect_bytes(&received),
                Sent::InPieces => case.expect_messages(&received),
            }
            let counted: Vec<_> = case.reasons.iter().map(String::as_str).collect();
            match case.closed && sent == Sent::InPieces {
                false => reasons.expect(&counted, &case.label),
                true => reasons.allow(&counted, &case.label),
            }
            let probe = messages::responses(&asks(&weir, case.listener, PROBE.as_bytes()), Method::Get);
            assert!(matches!(&probe[..], [probe] if probe.body == b"probe"), "{}: {probe:?}", case.label);
            let asked = asked.lock().unwrap().clone();
            let [(target, of_case), (_, of_probe)] = &asked[..] else { panic!("{}: {asked:?}", case.label) };
            assert_ne!(target, "/probe", "{}", case.label);
            assert_eq!(of_case == of_probe, case.reused, "{}: reused", case.label);
        },
    );
    assert_eq!(weir.stop().code, Some(0));
}

fn say(peer: &mut Peer, case: &Case, sent: Sent) {
    for piece in sent.pieces(&case.says) {
        // The gateway may already have rejected the response.
        if !peer.answer(piece) {
            return;
        }
    }
}

/// Sends a request and returns all bytes received.
fn asks(weir: &Weir, listener: usize, request: &[u8]) -> Vec<u8> {
    let mut client = Client::connect(weir.address_of(listener), None);
    client.send(request);
    let (bytes, _) = client.read_to_end();
    client.stream.finish_tcp();
    bytes
}

/// The bytes without the `Date` fields that the gateway adds; the scripted responses have none.
fn undated(received: &[u8]) -> Vec<u8> {
    let lines = received.split_inclusive(|byte| *byte == b'\n');
    lines.filter(|line| !line.starts_with(b"Date: ")).flatten().copied().collect()
}
