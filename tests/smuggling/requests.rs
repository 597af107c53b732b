//! What clients send: each case through one gateway, to a plain server and to real ones.

use super::data::{Entry, File};
use super::messages::{self, Read};
use super::tap::{Moment, Tap};
use super::{LENIENT, Reasons, Sent, counted, each, gateway_before, listener_for, names_reason, origins};
use crate::common::{Client, DEADLINE, Peer, Upstream, Weir, poll_until};
use crate::servers::Server;
use std::collections::BTreeSet;
use weir_http1::Rule;

/// A case of `requests.toml`.
struct Case {
    label: String,
    send: Vec<u8>,
    /// The requests that the server receives.
    passed: Vec<Vec<u8>>,
    refused: Option<Refused>,
    /// The listener that it is sent to, and what that counts as accepted.
    listener: usize,
    accepted: Vec<String>,
    /// A listener can accept it.
    lifted: bool,
}

/// How the gateway refuses a request.
struct Refused {
    /// `None`: the client gets no answer, since it went away within its request.
    status: Option<String>,
    reason: String,
}

impl Case {
    fn read(entry: &Entry<'_>) -> Self {
        entry.has_only(&["send", "passed", "refused", "accept", "counted", "lifted"]);
        let refused = entry.text("refused").map(|text| {
            let (status, reason) = text.split_once(' ').unwrap();
            Refused { status: (status != "-").then(|| status.to_owned()), reason: reason.to_owned() }
        });
        let case = Self {
            label: entry.label.clone(),
            send: entry.bytes("send").unwrap(),
            passed: entry.list("passed"),
            refused,
            listener: listener_for(entry.text("accept"), &Rule::OF_REQUESTS),
            accepted: counted(entry),
            lifted: entry.is("lifted"),
        };
        assert!(case.refused.is_some() || !case.passed.is_empty(), "{}: nothing is expected", case.label);
        case
    }

    fn all(upstream: &Tap) -> Vec<Self> {
        let address = upstream.address.to_string();
        let file = File::read("requests.toml", &[("upstream", &address)]);
        file.entries().map(|entry| Self::read(&entry)).collect()
    }

    /// Whether the client goes away within a request, of which the server may have seen the beginning.
    fn breaks_off(&self) -> bool {
        self.refused.as_ref().is_some_and(|refused| refused.status.is_none())
    }

    /// The requests that the server receives, their bodies decoded.
    fn read_passed(&self) -> Vec<Read> {
        let read = messages::requests(&self.passed.concat());
        assert_eq!(read.len(), self.passed.len(), "{}", self.label);
        assert!(read.iter().all(|request| request.is_complete), "{}", self.label);
        read
    }

    /// Sends the case, and returns what the client receives until its connection ends.
    fn answers(&self, weir: &Weir, sent: Sent) -> Vec<u8> {
        let mut client = Client::connect(weir.address_of(self.listener), None);
        for piece in sent.pieces(&self.send) {
            // The gateway has refused it already, and its answer is there to be read.
            if client.stream.send(piece).is_err() {
                break;
            }
        }
        client.stream.finish_tcp();
        client.read_to_end().0
    }

    /// The gateway's own answer is the last one.
    fn expect_refusal(&self, answers: &[u8]) {
        let Some(Refused { status: Some(status), reason }) = &self.refused else { return };
        let answers = String::from_utf8_lossy(answers);
        let last = &answers[answers.rfind("HTTP/1.1 ").unwrap_or_else(|| panic!("{}: none", self.label))..];
        assert!(last.starts_with(&format!("HTTP/1.1 {status} ")), "{}: {last}", self.label);
        assert!(last.contains("\r\nConnection: close\r\n"), "{}: {last}", self.label);
        assert!(names_reason(last, reason), "{}: {last}", self.label);
    }
}

fn label(case: &Case) -> &str {
    &case.label
}

/// Answers each request, without a look at it.
fn plain(peer: &mut Peer) {
    while let Some(request) = peer.request() {
        peer.answer(match request.head.starts_with("HEAD ") {
            true => "HTTP/1.1 200 OK\r\n\r\n",
            false => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        });
    }
}

#[test]
fn the_cases_are_many_and_distinct() {
    let upstream = Upstream::start(None, plain);
    let cases = Case::all(&Tap::before(upstream.address));
    let sent: BTreeSet<_> = cases.iter().map(|case| (&case.send, case.listener)).collect();
    assert_eq!(sent.len(), cases.len(), "the same bytes are sent twice");
    assert!(cases.len() >= 200, "{}", cases.len());
}

#[test]
fn requests_at_once() {
    through_a_plain_server(Sent::AtOnce, Case::all);
}

/// What a listener accepts is that, and nothing beside it.
#[test]
fn requests_to_a_lenient_listener() {
    through_a_plain_server(Sent::AtOnce, |tap| {
        let strict = Case::all(tap).into_iter().filter(|case| case.listener == 0 && !case.lifted);
        strict.map(|case| Case { listener: LENIENT, ..case }).collect()
    });
}

/// What a request is must not depend on how it was cut into segments.
#[test]
fn requests_in_pieces() {
    through_a_plain_server(Sent::InPieces, Case::all);
}

fn through_a_plain_server(sent: Sent, cases: fn(&Tap) -> Vec<Case>) {
    let upstream = Upstream::start(None, plain);
    let tap = Tap::before(upstream.address);
    let weir = gateway_before(tap.address);
    let mut reasons = Reasons::of(&weir);
    each(&cases(&tap), label, |case| {
        let then = tap.now();
        let answers = case.answers(&weir, sent);
        let refusals = usize::from(case.refused.is_some() && !case.breaks_off());
        let expected = case.passed.len() + refusals;
        assert_eq!(
            messages::final_responses(&answers),
            expected,
            "{}: {}",
            case.label,
            answers.escape_ascii()
        );
        case.expect_refusal(&answers);
        let reason = case.refused.as_ref().map(|refused| refused.reason.as_str());
        let counted: Vec<_> = case.accepted.iter().map(String::as_str).chain(reason).collect();
        reasons.expect(&counted, &case.label);
        tap.settle();
        match sent {
            Sent::AtOnce if !case.breaks_off() => expect_bytes(case, &tap, then),
            _ => expect_messages(case, &tap, then),
        }
    });
    let then = tap.now();
    assert_eq!(
        Client::connect(weir.address(), None).ask("GET /last HTTP/1.1\r\nHost: h\r\n\r\n").status,
        200
    );
    let [(_, last)] = &tap.requests_since(then)[..] else { panic!("one request") };
    assert!(last.starts_with(b"GET /last "), "{}", last.escape_ascii());
    assert_eq!(weir.stop().code, Some(0));
}

/// The server has received the requests of the case byte for byte, and nothing else.
fn expect_bytes(case: &Case, tap: &Tap, then: Moment) {
    let received: Vec<u8> = tap.requests_since(then).into_iter().flat_map(|(_, bytes)| bytes).collect();
    let expected = case.passed.concat();
    assert_eq!(received.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{}", case.label);
}

/// Likewise message by message: chunks may be cut otherwise, and a request that turned out to be invalid may have begun,
/// whose connection is closed.
fn expect_messages(case: &Case, tap: &Tap, then: Moment) {
    let expected = case.read_passed();
    poll_until(DEADLINE, &format!("{}: what has begun is cut off", case.label), || {
        let (mut complete, mut begun) = (Vec::new(), Vec::new());
        for (connection, bytes) in tap.requests_since(then) {
            for request in messages::requests(&bytes) {
                match request.is_complete {
                    true => complete.push(request),
                    false => begun.push(connection),
                }
            }
        }
        assert_eq!(complete, expected, "{}", case.label);
        assert!(begun.len() <= usize::from(case.refused.is_some()), "{}", case.label);
        begun.into_iter().all(|connection| tap.is_over(connection))
    });
}

#[test]
fn requests_to_nginx() {
    through_a_real_server(origins::nginx());
}

#[test]
fn requests_to_go() {
    through_a_real_server(origins::go());
}

#[test]
fn requests_to_node() {
    through_a_real_server(origins::node());
}

#[test]
fn requests_to_python() {
    through_a_real_server(origins::python());
}

#[test]
fn requests_to_h11() {
    through_a_real_server(origins::h11());
}

/// A server with a parser of its own reads no more requests than the gateway has meant.
fn through_a_real_server(server: Option<Server>) {
    let Some(server) = server else { return };
    let tap = Tap::before(server.address(false));
    let weir = gateway_before(tap.address);
    let begin = tap.now();
    each(&Case::all(&tap), label, |case| {
        let then = tap.now();
        let answers = case.answers(&weir, Sent::AtOnce);
        tap.settle();
        if case.breaks_off() {
            expect_messages(case, &tap, then);
        } else {
            case.expect_refusal(&answers);
            expect_bytes(case, &tap, then);
        }
        // Some servers answer before they have read the body. What is late counts for the next case, which it then fails.
        let meant = case.passed.len() + usize::from(case.breaks_off());
        let is_canary = |request: &&Vec<u8>| request.starts_with(b"GET /canary ");
        let canaries = case.passed.iter().filter(is_canary).count();
        let answers = tap.answers_since(then);
        assert!(messages::final_responses(&answers) <= meant, "{}: {}", case.label, answers.escape_ascii());
        assert!(messages::count(&answers, CANARY) <= canaries, "{}: {}", case.label, answers.escape_ascii());
    });
    // Else the server would not show what it reads.
    let answers = tap.answers_since(begin);
    assert!(messages::count(&answers, CANARY) > 20, "{}", answers.escape_ascii());
    assert_eq!(weir.stop().code, Some(0));
}

/// How a server shows that it has read the request that was hidden.
const CANARY: &[u8] = b"X-Served: GET /canary";
