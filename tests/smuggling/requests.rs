//! Request cases: each passes through one gateway, to a plain server and to real ones.

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
    /// The case's listener, and the rules that it counts as accepted.
    listener: usize,
    accepted: Vec<String>,
    /// Whether a listener setting can accept the request.
    lifted: bool,
}

/// The gateway's rejection of a request.
struct Refused {
    /// `None`: the client gets no response, since it disconnects within its request.
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

    /// Whether the client disconnects within a request, of which the server may receive a part.
    fn breaks_off(&self) -> bool {
        self.refused.as_ref().is_some_and(|refused| refused.status.is_none())
    }

    /// The requests that the server receives, with decoded bodies.
    fn read_passed(&self) -> Vec<Read> {
        let read = messages::requests(&self.passed.concat());
        assert_eq!(read.len(), self.passed.len(), "{}", self.label);
        assert!(read.iter().all(|request| request.is_complete), "{}", self.label);
        read
    }

    /// Sends the case, and returns all bytes that the client receives.
    fn answers(&self, weir: &Weir, sent: Sent) -> Vec<u8> {
        let mut client = Client::connect(weir.address_of(self.listener), None);
        for piece in sent.pieces(&self.send) {
            // The gateway has already rejected the request; its response is readable.
            if client.stream.send(piece).is_err() {
                break;
            }
        }
        client.stream.finish_tcp();
        client.read_to_end().0
    }

    /// The last response is the gateway's own.
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

/// Responds to each request without checking it.
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

/// A lenient listener accepts only its listed violations.
#[test]
fn requests_to_a_lenient_listener() {
    through_a_plain_server(Sent::AtOnce, |tap| {
        let strict = Case::all(tap).into_iter().filter(|case| case.listener == 0 && !case.lifted);
        strict.map(|case| Case { listener: LENIENT, ..case }).collect()
    });
}

/// Segment boundaries do not change the reading of a request.
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

/// The server received exactly the case's bytes.
fn expect_bytes(case: &Case, tap: &Tap, then: Moment) {
    let received: Vec<u8> = tap.requests_since(then).into_iter().flat_map(|(_, bytes)| bytes).collect();
    let expected = case.passed.concat();
    assert_eq!(received.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{}", case.label);
}

/// Like [`expect_bytes`], but compares messages: chunk boundaries may differ, and an invalid request may have begun on
/// a connection that the gateway then closes.
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

/// A real server's parser finds no more requests than the gateway forwarded.
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
        // Some servers respond before they have read the body. A late response counts for the next case, which then
        // fails.
        let meant = case.passed.len() + usize::from(case.breaks_off());
        let is_canary = |request: &&Vec<u8>| request.starts_with(b"GET /canary ");
        let canaries = case.passed.iter().filter(is_canary).count();
        let answers = tap.answers_since(then);
        assert!(messages::final_responses(&answers) <= meant, "{}: {}", case.label, answers.escape_ascii());
        assert!(messages::count(&answers, CANARY) <= canaries, "{}: {}", case.label, answers.escape_ascii());
    });
    // The servers must report their reading of requests, or this test proves nothing.
    let answers = tap.answers_since(begin);
    assert!(messages::count(&answers, CANARY) > 20, "{}", answers.escape_ascii());
    assert_eq!(weir.stop().code, Some(0));
}

/// The field in which a server reports that it has read the hidden request.
const CANARY: &[u8] = b"X-Served: GET /canary";
