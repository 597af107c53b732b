//! Faulty servers and closed connections: `weir load` counts each fault once, in its class, and closes connections as
//! `--close` specifies.

use crate::common::load::{Loaded, NO_EVIDENCE, OK, TRIAL, load, load_well, served, url, valid_or_late};
use crate::common::{self, Certificates, DEADLINE, Ending, Peer, Upstream, poll_until};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use weir_load::result::LoadResult;

/// One hundred requests, 5 ms apart, on sixteen connections: the server has enough time to act between two requests on
/// one connection.
const PLANNED: u64 = 100;
const CONNECTIONS: u64 = 16;
const FAULTS: u64 = PLANNED / 5;
const PACED: [&str; 8] = ["-c", "16", "--rate", "200", "-d", "500ms", "--warmup", "0s"];

/// A server that replaces a fifth of the responses by a fault, and counts the faults.
struct Faulty {
    upstream: Upstream,
    faults: Arc<AtomicU64>,
}

impl Faulty {
    /// `fault` acts instead of a response, and returns whether the connection stays open.
    fn start(tls: Option<&Certificates>, fault: impl Fn(&mut Peer) -> bool + Send + Sync + 'static) -> Self {
        let (faults, seen) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
        let counted = Arc::clone(&faults);
        let upstream = Upstream::start(tls.map(|tls| tls.server().core()), move |peer| {
            let mut first = (peer.index as u64) < CONNECTIONS + TRIAL;
            // The faults come early, so that the engine has time to replace lost connections.
            let is_faulty = |number: u64| number % 4 == 3 && number < 4 * FAULTS;
            while peer.request().is_some() {
                // Each of the first connections has one request before the run starts.
                if std::mem::take(&mut first) || !is_faulty(seen.fetch_add(1, Ordering::SeqCst)) {
                    peer.answer(OK);
                    continue;
                }
                counted.fetch_add(1, Ordering::SeqCst);
                if !fault(peer) {
                    return;
                }
            }
        });
        Self { upstream, faults }
    }

    /// Runs the load: `class` is counted once per fault, no other class is counted, and all other responses are
    /// correct.
    fn counted_as(&self, class: &str, flags: &[&str]) -> Loaded {
        let url = url(flags.contains(&"-k"), &self.upstream);
        let loaded = load(&[&[url.as_str()], &PACED[..], flags].concat());
        let result = &loaded.result;
        let faults = self.faults.load(Ordering::SeqCst);
        assert_eq!(faults, FAULTS, "the server's own count");
        let expected = BTreeMap::from([(class.to_owned(), faults)]);
        assert_eq!(result.errors, expected, "{:?}", result.error_examples);
        assert!(!result.error_examples[class].is_empty());
        // On a busy machine the last responses arrive after the window.
        assert_eq!((correct(result), result.unsent.count), (PLANNED - faults, 0));
        assert!(result.error_ratio >= 0.2, "{}", result.error_ratio);
        let expected = format!("{faults} {class}");
        assert!(
            result.validity.starts_with("invalid: ") && result.validity.contains(&expected),
            "{}",
            result.validity
        );
        assert_eq!(loaded.code, Some(NO_EVIDENCE));
        loaded
    }
}

#[test]
fn a_status_of_500_is_counted_as_status_and_the_connection_stays_open() {
    let server = Faulty::start(None, |peer| peer.answer("HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\noops"));
    let result = server.counted_as("status", &[]).result;
    assert!(result.error_examples["status"].contains("500"), "{:?}", result.error_examples);
    assert_eq!(
        (result.connections_opened, server.upstream.connections() as u64),
        (CONNECTIONS, CONNECTIONS + TRIAL)
    );
}

#[test]
fn a_body_of_unexpected_length_is_counted_as_length() {
    let server = Faulty::start(None, |peer| peer.answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nokk"));
    let result = server.counted_as("length", &["--expect-length", "2"]).result;
    assert_eq!(result.connections_opened, CONNECTIONS);
}

/// A path /bytes/N implies the expected length.
#[test]
fn the_length_in_the_path_is_expected() {
    let server = Upstream::start(None, |peer| peer.serve(OK));
    let url = format!("{}bytes/", url(false, &server));
    let valid = load_well(&[&[format!("{url}2").as_str()], &PACED[..]].concat());
    assert_eq!((correct(&valid), valid.errors.len()), (PLANNED, 0), "{:?}", valid.error_examples);
    let wrong = load(&[&[format!("{url}3").as_str()], &PACED[..]].concat());
    assert_eq!(wrong.code, Some(NO_EVIDENCE), "no correct response");
    let errors: Vec<&str> = wrong.result.errors.keys().map(String::as_str).collect();
    assert_eq!((wrong.result.requests, errors), (0, vec!["length"]));
}

#[test]
fn a_body_of_the_right_length_with_wrong_content_is_detected_by_its_hash() {
    let server = Faulty::start(None, |peer| peer.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nko"));
    // The SHA-256 of "ok".
    let hash = "2689367b205c16ce32ed4200942b8b8b1e262dfc70d9bc9fbc77c49699a4f1df";
    let result = server.counted_as("digest", &["--expect-sha256", hash]).result;
    assert_eq!(result.connections_opened, CONNECTIONS);
}

#[test]
fn a_reset_instead_of_a_response_is_counted_as_reset() {
    let server = Faulty::start(None, |peer| {
        // For TCP, connecting a socket to AF_UNSPEC resets its connection (connect(2)).
        rustix::net::connect_unspec(peer.stream.tcp()).unwrap();
        false
    });
    let result = server.counted_as("reset", &[]).result;
    assert_eq!(result.connections_opened, CONNECTIONS + FAULTS, "each lost connection is replaced");
}

#[test]
fn a_close_instead_of_a_response_is_counted_as_closed() {
    let server = Faulty::start(None, |_| false);
    server.counted_as("closed", &[]);
}

#[test]
fn a_response_truncated_in_its_head_is_counted_as_closed() {
    let server = Faulty::start(None, |peer| last(peer, "HTTP/1.1 200 OK\r\nContent-Le"));
    server.counted_as("closed", &[]);
}

#[test]
fn a_response_truncated_in_its_body_is_counted_as_closed() {
    let server = Faulty::start(None, |peer| last(peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"));
    server.counted_as("closed", &[]);
}

#[test]
fn a_response_truncated_in_its_chunks_is_counted_as_closed() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let server = Faulty::start(None, move |peer| last(peer, format!("{head}2\r\nok\r\n")));
    server.counted_as("closed", &[]);
}

/// RFC 9112 section 9.8: over TLS, a close without close_notify may be a truncation attack, so a body delimited by the
/// close is incomplete.
#[test]
fn a_body_delimited_by_the_close_is_complete_only_if_the_close_is_clean() {
    let certificates = Certificates::new();
    let until_close = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok";
    let clean = Faulty::start(Some(&certificates), move |peer| last(peer, until_close));
    let result = load_well(&[&[url(true, &clean.upstream).as_str(), "-k"], &PACED[..]].concat());
    assert_eq!((result.errors.len(), correct(&result)), (0, PLANNED), "{:?}", result.error_examples);
    let truncated = Faulty::start(Some(&certificates), move |peer| {
        peer.answer(until_close);
        shut(peer)
    });
    truncated.counted_as("closed", &["-k"]);
}

#[test]
fn bytes_other_than_http_are_counted_as_malformed() {
    let server = Faulty::start(None, |peer| last(peer, "220 mail.example ESMTP\r\n"));
    server.counted_as("malformed", &[]);
}

#[test]
fn bytes_after_a_response_are_counted_as_malformed() {
    let server = Faulty::start(None, |peer| peer.answer(format!("{OK}more")));
    let result = server.counted_as("malformed", &[]).result;
    assert_eq!(result.connections_opened, CONNECTIONS + FAULTS, "such a connection is not reused");
}

#[test]
fn a_broken_tls_record_is_counted_as_tls() {
    let server = Faulty::start(Some(&Certificates::new()), |peer| {
        use std::io::Write;
        peer.stream.tcp().write_all(b"\x17\x03\x03\x00\x20 thirty-two bytes of no record..").is_ok()
    });
    server.counted_as("tls", &["-k"]);
}

/// Requests without a response stay in the distribution: they took at least as long as the engine waited, so quantiles
/// among them are lower bounds.
#[test]
fn missing_responses_are_timeouts_and_censored() {
    let server = Faulty::start(None, |peer| {
        peer.read_to_end();
        false
    });
    let result = server.counted_as("timeout", &["--timeout", "300ms"]).result;
    let response = &result.response;
    assert_eq!((response.censored, response.count), (FAULTS, PLANNED));
    let from = response.censored_from_us.expect("the shortest censored time");
    // The histogram stores times with three digits.
    assert!(from >= 0.999 * 300_000.0, "{from}");
    // One request in five is censored, so the 90th percentile is as well.
    let p90 = response.p90_us.unwrap();
    assert!(p90 >= 0.999 * from && response.max_us >= from, "p90 {p90}, censored from {from}");
    let table = weir_load::table(&result);
    assert!(table.contains(">="), "the table marks lower bounds: {table}");
}

/// One request in five has no response. The number of the others that complete within the window, and so the share,
/// depends on the machine.
#[test]
fn an_error_budget_allows_a_share_of_requests_without_a_response() {
    for (budget, within) in [("90", true), ("15", false)] {
        let server = Faulty::start(None, |_| false);
        let url = url(false, &server.upstream);
        let result = load_well(&[&[url.as_str(), "--error-budget", budget], &PACED[..]].concat());
        assert_eq!(result.errors, counts("closed", FAULTS), "they still count: {:?}", result.error_examples);
        assert_eq!(result.asked.error_budget_percent.to_string(), budget);
        let table = weir_load::table(&result);
        assert!(table.contains(&format!("budget {budget} % without a response")), "{table}");
        if within {
            valid_or_late(&result);
        } else {
            let reason = "invalid: errors (20 closed; budget 15 % without a response)";
            assert!(result.validity.starts_with(reason), "{}", result.validity);
        }
    }
}

#[test]
fn no_error_budget_covers_a_wrong_response() {
    let server = Faulty::start(None, |peer| peer.answer("HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\noops"));
    server.counted_as("status", &["--error-budget", "100"]);
}

/// RFC 9112 section 9.5: a server may close an idle connection, which is no error.
#[test]
fn closing_an_idle_connection_is_no_error() {
    let server = Upstream::start(None, |peer| {
        for _ in 0..3 {
            if peer.request().is_none() {
                return;
            }
            peer.answer(OK);
        }
    });
    let result = load_well(&[&[url(false, &server).as_str()], &PACED[..]].concat());
    assert_eq!((result.errors.len(), correct(&result)), (0, PLANNED), "{:?}", result.error_examples);
    closes_after_three(&result, &server);
}

/// Regression test: a connection that closed before the run was replaced, but its user stayed as well, so a closed loop
/// had too many users.
#[test]
fn a_closed_loop_keeps_its_number_of_users_when_connections_close() {
    let server = Upstream::start(None, |peer| {
        if peer.request().is_some() {
            peer.answer(OK);
        }
    });
    let url = url(false, &server);
    let result = load(&[&url, "-c", "4", "--think", "50ms", "-d", "1s", "--warmup", "200ms"]).result;
    assert!(result.requests > 0 && result.errors.is_empty(), "{:?}", result.error_examples);
    // Each user thinks twenty times per second, and may be in its first pause when the window starts.
    assert!(result.requests <= 4 * 21, "{} requests from 4 users", result.requests);
}

#[test]
fn an_announced_close_is_no_error() {
    let server = Upstream::start(None, |peer| {
        for last in [false, false, true] {
            if peer.request().is_none() {
                return;
            }
            let close = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
            peer.answer(if last { close } else { OK });
        }
    });
    // A closed loop has no pause in which to notice a close, so only the announcement reveals it.
    let result = load_well(&[&url(false, &server), "-c", "4", "-d", "300ms", "--warmup", "100ms"]);
    assert_eq!(result.errors.len(), 0, "{:?}", result.error_examples);
    closes_after_three(&result, &server);
}

/// The server's counts of requests and connections match the engine's.
fn closes_after_three(result: &LoadResult, server: &Upstream) {
    let requests = server.requests().len() as u64;
    assert_eq!(result.connections_opened + TRIAL, server.connections() as u64);
    assert!(result.connections_opened >= requests / 3, "{} for {requests}", result.connections_opened);
    assert!(result.connections_opened_in_window > 0);
    assert!(result.answered_in_all <= requests && requests <= result.answered_in_all + CONNECTIONS);
}

/// A redirect is a response like any other: an error unless expected, and never followed.
#[test]
fn redirects_are_responses_and_are_not_followed() {
    let moved = "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n";
    let server = Upstream::start(None, move |peer| peer.serve(moved));
    let url = url(false, &server);
    let loaded = load(&[&[url.as_str()], &PACED[..]].concat());
    assert_eq!((loaded.code, loaded.result.errors), (Some(NO_EVIDENCE), counts("status", PLANNED)));
    let expected = load_well(&[&[url.as_str(), "--expect-status", "302"], &PACED[..]].concat());
    assert_eq!((expected.errors.len(), correct(&expected)), (0, PLANNED));
    assert!(server.requests().iter().all(|request| request.head.starts_with("GET / HTTP/1.1\r\n")));
}

/// A server disappears during a run: its responses until then are a result, and the errors after that are counted.
#[test]
fn a_server_that_disappears_causes_refused_connections() {
    let certificates = Certificates::new();
    let origin = common::origin(false, &certificates);
    let url = format!("{}/bytes/2", origin.urls[0]);
    let run = std::thread::spawn(move || load(&[&url, "-c", "4", "-d", "2s", "--warmup", "0s"]));
    // The first four are sent before the window.
    poll_until(DEADLINE, "requests in the window", || served(origin.address()) > 500);
    drop(origin);
    let Loaded { code, result, .. } = run.join().unwrap();
    assert_eq!(code, Some(NO_EVIDENCE), "some requests had no response");
    assert!(result.requests > 0 && result.errors.contains_key("connect_refused"), "{:?}", result.errors);
    // A connection that the server has not yet accepted may be reset before it is established.
    let known = ["connect_refused", "connect", "closed", "reset", "missing_connections"];
    assert!(result.errors.keys().all(|class| known.contains(&class.as_str())), "{:?}", result.errors);
    assert!(result.validity.starts_with("invalid: errors"), "{}", result.validity);
}

/// How the engine closes its connections, as seen by the server, in order.
fn endings(close: &str, tls: Option<&Certificates>) -> Vec<Ending> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&seen);
    let server = Upstream::start(tls.map(|tls| tls.server().core()), move |peer| {
        let mut requests = 0;
        while peer.request().is_some() {
            // Without `Connection: close`, so that the engine closes.
            peer.answer(OK);
            requests += 1;
        }
        if requests > 0 {
            all.lock().unwrap().push(peer.read_to_end());
        }
    });
    let url = url(tls.is_some(), &server);
    let flags = ["-k", "--requests-per-connection", "2", "--close", close];
    let result = load_well(&[&[url.as_str()], &PACED[..], &flags].concat());
    assert_eq!((result.errors.len(), result.asked.close.as_str()), (0, close), "{:?}", result.error_examples);
    let connections = result.connections_opened as usize;
    assert!(connections >= 50, "{connections} for 100 requests");
    poll_until(DEADLINE, "all connections are closed", || seen.lock().unwrap().len() == connections);
    std::mem::take(&mut seen.lock().unwrap())
}

#[test]
fn connections_are_closed_as_asked() {
    let certificates = Certificates::new();
    for (close, tls, expected) in [
        ("graceful", None, Ending::Clean),
        ("fin", None, Ending::Clean),
        ("rst", None, Ending::Reset),
        ("graceful", Some(&certificates), Ending::Clean),
        ("fin", Some(&certificates), Ending::Truncated),
        ("rst", Some(&certificates), Ending::Reset),
    ] {
        let endings = endings(close, tls);
        let other: Vec<_> = endings.iter().filter(|ending| **ending != expected).collect();
        assert!(other.is_empty(), "--close {close}, TLS {}: {other:?}, not {expected:?}", tls.is_some());
    }
}

/// The NSS key log format: for each secret of each connection a label, the client random and the secret, in
/// hexadecimal.
#[test]
fn the_key_log_has_the_secrets_of_every_connection() {
    let certificates = Certificates::new();
    let server = Upstream::start(Some(certificates.server().core()), |peer| peer.serve(OK));
    let folder = tempfile::tempdir().unwrap();
    let randoms = |version: &str, labels: &[&str]| {
        let file = folder.path().join(version);
        let (url, log) = (url(true, &server), file.to_str().unwrap());
        let flags = ["-k", "--tls", version, "--key-log", log];
        let result = load_well(&[&[url.as_str()], &PACED[..], &flags].concat());
        assert_eq!(result.handshakes.full, CONNECTIONS);
        let text = std::fs::read_to_string(&file).unwrap();
        let mut randoms: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in text.lines() {
            let words: Vec<_> = line.split(' ').collect();
            let [label, random, secret] = words[..] else { panic!("{line}") };
            let hexadecimal = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(hexadecimal(random) && random.len() == 64, "{line}");
            assert!(hexadecimal(secret) && secret.len() >= 64, "{line}");
            randoms.entry(random).or_default().push(label);
        }
        assert_eq!(randoms.len() as u64, CONNECTIONS + TRIAL, "one random for each connection");
        for found in randoms.values() {
            assert!(labels.iter().all(|label| found.contains(label)), "{found:?} for {version}");
        }
    };
    randoms("1.2", &["CLIENT_RANDOM"]);
    randoms(
        "1.3",
        &[
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            "SERVER_HANDSHAKE_TRAFFIC_SECRET",
            "CLIENT_TRAFFIC_SECRET_0",
            "SERVER_TRAFFIC_SECRET_0",
        ],
    );
}

/// Sends `bytes` and closes the connection.
fn last(peer: &mut Peer, bytes: impl AsRef<[u8]>) -> bool {
    peer.answer(bytes);
    false
}

/// Shuts the connection down, over TLS without close_notify; later writes fail.
fn shut(peer: &Peer) -> bool {
    let _ = peer.stream.tcp().shutdown(std::net::Shutdown::Both);
    false
}

/// Correct responses to planned requests; each of the first connections had one more.
fn correct(result: &LoadResult) -> u64 {
    result.answered_in_all - CONNECTIONS
}

fn counts(class: &str, count: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([(class.to_owned(), count)])
}
