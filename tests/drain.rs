//! SIGTERM: the drain loses no request, accepts no new connection, and ends.

use crate::common::{self, Case, DEADLINE, MODES, Stream, Switch, poll_until};
use rustix::process::Signal;
use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The clients' counts during a drain.
#[derive(Default)]
struct Seen {
    /// Requests sent completely.
    sent: AtomicUsize,
    /// Responses received completely.
    answered: AtomicUsize,
    /// Requests sent without a response, with the error.
    lost: Mutex<Vec<String>>,
    /// Clients whose connection was refused: the listener has closed.
    refused: AtomicUsize,
}

/// One client in a closed loop, until its connection is refused. It does not retry.
fn load(case: &Case, seen: &Seen, requests_per_connection: usize) {
    loop {
        let mut client = match case.connect() {
            Ok(stream) => common::Client { stream },
            // An incomplete handshake carried no request.
            Err(error) => {
                if error.kind() == ErrorKind::ConnectionRefused {
                    seen.refused.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                continue;
            }
        };
        for number in 1..=requests_per_connection {
            if client.stream.send(GET.as_bytes()).is_err() {
                break;
            }
            seen.sent.fetch_add(1, Ordering::SeqCst);
            match client.next_answer(Method::Get) {
                Ok(answer) if answer.complete && answer.status == 200 => {
                    seen.answered.fetch_add(1, Ordering::SeqCst);
                    if answer.says_close() {
                        break;
                    }
                }
                other => {
                    seen.lost.lock().unwrap().push(format!("request {number} of a connection: {other:?}"));
                    break;
                }
            }
        }
    }
}

#[test]
fn a_drain_under_load_loses_nothing() {
    for mode in MODES {
        for (workers, requests_per_connection) in [("1", 1_000_000), ("2", 1_000_000), ("2", 5), ("1", 1)] {
            let case = Case::new(mode, &["--workers", workers], |peer| peer.serve(OK));
            let seen = Seen::default();
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| load(&case, &seen, requests_per_connection));
                }
                poll_until(DEADLINE, "load", || seen.answered.load(Ordering::SeqCst) > 200);
                case.weir.terminate();
            });
            let lost = seen.lost.lock().unwrap();
            let what =
                format!("{mode:?}, {workers} workers, {requests_per_connection} requests per connection");
            assert!(lost.is_empty(), "{what}: {} lost, {:?}", lost.len(), &lost[..lost.len().min(3)]);
            let (sent, answered) = (seen.sent.load(Ordering::SeqCst), seen.answered.load(Ordering::SeqCst));
            assert_eq!(seen.refused.load(Ordering::SeqCst), 8, "{what}: refused new connections");
            assert_eq!((sent, case.upstream.requests().len()), (answered, answered), "{what}");
            let upstream = case.upstream;
            let ended = case.weir.wait();
            assert_eq!(ended.code, Some(0), "{what}: {}", ended.stderr);
            assert!(
                ended.stdout.contains(&format!("served {answered} requests")),
                "{what}: {}",
                ended.stdout
            );
            assert!(ended.stdout.contains("ended early: none"), "{what}: {}", ended.stdout);
            drop(upstream);
        }
    }
}

#[test]
fn requests_in_flight_complete_with_close() {
    for mode in MODES {
        let (head, body) = (Switch::default(), Switch::default());
        let (head_gate, body_gate) = (head.clone(), body.clone());
        let case = Case::new(mode, &[], move |peer| {
            while let Some(request) = peer.request() {
                if request.head.starts_with("GET /body ") {
                    peer.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no");
                    body_gate.wait();
                    peer.answer("k");
                } else {
                    head_gate.wait();
                    peer.answer(OK);
                }
            }
        });
        // One client waits for its response, one for the rest of a response, one has sent half a request, and one is
        // idle.
        let mut waiting = case.client();
        waiting.send(GET);
        let mut within = case.client();
        within.send("GET /body HTTP/1.1\r\nHost: h\r\n\r\n");
        case.upstream.wait_for_requests(2);
        let mut begun = case.client();
        begun.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\nhalf");
        poll_until(DEADLINE, "half a request", || case.upstream.received(2).ends_with(b"half"));
        let mut idle = case.client();
        case.weir.terminate();
        // The idle connection closes without a response, and new ones are refused, while the others are served.
        idle.expect_end();
        poll_until(DEADLINE, "a refusal", || {
            TcpStream::connect(case.weir.address())
                .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        });
        head.throw();
        let answer = waiting.answer(Method::Get);
        assert_eq!((answer.text(), answer.says_close()), ("ok", true), "{mode:?}");
        waiting.expect_end();
        begun.send("half");
        let answer = begun.answer(Method::Put);
        assert_eq!((answer.text(), answer.says_close()), ("ok", true), "{mode:?}");
        begun.expect_end();
        body.throw();
        let answer = within.answer(Method::Get);
        assert_eq!((answer.text(), answer.complete), ("ok", true), "{mode:?}");
        within.expect_end();
        drop((waiting, begun, within, idle));
        let ended = case.weir.wait();
        assert_eq!(ended.code, Some(0), "{mode:?}");
        assert!(ended.stdout.contains("ended early: none"), "{mode:?}: {}", ended.stdout);
    }
}

#[test]
fn connections_in_the_accept_queue_are_still_served() {
    // Connections that were established before the signal and not yet accepted, with requests in cleartext modes: the
    // process is stopped meanwhile. Closing the listener would reset all of them.
    for mode in MODES {
        let case = Case::new(mode, &["--head-timeout", "30"], |peer| peer.serve(OK));
        case.weir.signal(Signal::STOP);
        let waiting: Vec<TcpStream> = (0..100)
            .map(|_| {
                let mut tcp = TcpStream::connect(case.weir.address()).unwrap();
                if !mode.client_tls {
                    tcp.write_all(GET.as_bytes()).unwrap();
                }
                tcp
            })
            .collect();
        case.weir.terminate();
        case.weir.signal(Signal::CONT);
        for (number, tcp) in waiting.into_iter().enumerate() {
            let session = mode.client_tls.then(|| case.certificates.session());
            let mut client = common::Client { stream: Stream::over(tcp, session).unwrap() };
            if mode.client_tls {
                client.send(GET);
            }
            let answer = client.next_answer(Method::Get);
            assert!(
                answer.is_ok_and(|answer| answer.text() == "ok"),
                "{mode:?}: connection {number} was lost"
            );
        }
        assert_eq!(case.upstream.requests().len(), 100, "{mode:?}");
        assert_eq!(case.weir.wait().code, Some(0), "{mode:?}");
    }
}

#[test]
fn the_last_pipelined_response_announces_the_close() {
    for mode in MODES {
        let go_on = Switch::default();
        let gate = go_on.clone();
        let case = Case::new(mode, &[], move |peer| {
            while peer.request().is_some() {
                gate.wait();
                peer.answer(OK);
            }
        });
        let mut client = case.client();
        client.send(GET.repeat(5));
        case.upstream.wait_for_requests(1);
        let idle = case.client();
        case.weir.terminate();
        // Once the idle connection closes, the signal has arrived.
        let mut idle = idle;
        idle.expect_end();
        go_on.throw();
        let answer = client.answer(Method::Get);
        assert!(answer.says_close(), "{mode:?}");
        client.expect_end();
        assert_eq!(case.upstream.requests().len(), 1, "{mode:?}");
        drop((client, idle));
        assert_eq!(case.weir.wait().code, Some(0), "{mode:?}");
    }
}

#[test]
fn a_second_signal_stops_at_once() {
    for mode in MODES {
        for old in [false, true] {
            let case = Case::new(mode, &[], |peer| {
                peer.request();
                peer.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n");
                peer.read_to_end();
            });
            let mut client = case.client();
            client.send(if old { "GET / HTTP/1.0\r\n\r\n" } else { GET });
            let mut idle = case.client();
            case.upstream.wait_for_requests(1);
            case.weir.terminate();
            idle.expect_end();
            case.weir.terminate();
            let ended = case.weir.wait();
            assert_eq!(ended.code, Some(0), "{mode:?}");
            assert!(ended.stdout.contains("1 drain_timeout"), "{mode:?}: {}", ended.stdout);
            if let Ok(answer) = client.next_answer(Method::Get) {
                assert!(!answer.complete, "{mode:?}: a truncated response must not look complete");
            }
        }
    }
}

#[test]
fn a_drain_times_out() {
    for mode in MODES {
        let case = Case::new(mode, &["--drain-timeout", "0.8"], |peer| {
            peer.request();
            peer.read_to_end();
        });
        let mut client = case.client();
        client.send(GET);
        case.upstream.wait_for_requests(1);
        case.weir.terminate();
        let ended = case.weir.wait();
        assert_eq!(ended.code, Some(0), "{mode:?}");
        assert!(ended.stderr.contains("503 drain_timeout"), "{mode:?}: {}", ended.stderr);
        let answer = client.answer(Method::Get);
        assert_eq!((answer.status, answer.says_close()), (503, true), "{mode:?}");
        assert!(answer.text().contains("drain_timeout"), "{mode:?}");
    }
}

#[test]
fn an_idle_gateway_exits_at_once_with_a_summary() {
    for mode in MODES {
        let case = Case::answering(mode, OK);
        assert_eq!(case.client().ask(GET).text(), "ok", "{mode:?}");
        let mut gone = case.client();
        gone.stream.finish();
        poll_until(DEADLINE, "the close", || gone.stream.has_news_within(Duration::from_millis(10)));
        drop(gone);
        let ended = case.stop();
        let handshakes = if mode.client_tls { "2 full" } else { "none" };
        let upstream = if mode.upstream_tls { "1 full" } else { "none" };
        assert!(
            ended.stdout.contains(&format!(
                "served 1 requests on 2 connections (handshakes: {handshakes}), 1 upstream connections (handshakes: \
                 {upstream}); ended early: none"
            )),
            "{mode:?}: {}",
            ended.stdout
        );
    }
}

#[test]
fn a_gateway_that_reports_listening_can_be_stopped() {
    // Regression test: the line was printed before the signal handlers were installed, so an immediate SIGTERM killed
    // the process. Many workers start slowly enough to show it.
    for mode in MODES {
        let case = Case::new(mode, &["--workers", "256"], |peer| peer.serve(OK));
        let ended = case.stop();
        assert!(ended.stdout.contains("served 0 requests"), "{mode:?}: {}", ended.stdout);
    }
}
