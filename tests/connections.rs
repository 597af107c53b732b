//! How connections on both sides are kept, shared, ended and given up.

mod common;

use common::{Case, DEADLINE, MODES, Peer, Switch, pattern, poll_until, until_still};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use weir_http1::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Answers each request with its own target.
fn echo_target(peer: &mut Peer) {
    while let Some(request) = peer.request() {
        let target = request.head.split(' ').nth(1).unwrap();
        peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{target}", target.len()));
    }
}

#[test]
fn clients_one_after_the_other_share_an_upstream_connection() {
    for mode in MODES {
        let case = Case::answering(mode, OK);
        for _ in 0..5 {
            assert_eq!(case.client().ask(GET).text(), "ok", "{mode:?}");
        }
        assert_eq!((case.upstream.connections(), case.upstream.requests().len()), (1, 5), "{mode:?}");
        case.stop();
    }
}

#[test]
fn the_upstream_connection_that_was_used_last_is_used_first() {
    // Three requests at once make three connections; then one request at a time uses only the one that came back last.
    for mode in MODES {
        let gates = [Switch::default(), Switch::default(), Switch::default()];
        let script_gates = gates.clone();
        let case = Case::new(mode, &[], move |peer| {
            if peer.request().is_some() {
                script_gates[peer.index].wait();
                peer.answer(OK);
            }
            peer.serve(OK);
        });
        let mut clients: Vec<_> = (0..3).map(|_| case.client()).collect();
        for (count, client) in clients.iter_mut().enumerate() {
            client.send(GET);
            case.upstream.wait_for_requests(count + 1);
        }
        for index in [2, 0, 1] {
            gates[index].throw();
            assert_eq!(clients[index].answer(Method::Get).status, 200, "{mode:?}");
        }
        for _ in 0..3 {
            assert_eq!(clients[0].ask(GET).status, 200, "{mode:?}");
            assert_eq!(case.upstream.requests().last().unwrap().connection, 1, "{mode:?}");
        }
        drop(clients);
        case.stop();
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    for mode in MODES {
        let case = Case::new(mode, &[], echo_target);
        let mut client = case.client();
        let requests: String = (0..200).map(|n| format!("GET /{n} HTTP/1.1\r\nHost: h\r\n\r\n")).collect();
        client.send(&requests);
        for n in 0..200 {
            assert_eq!(client.answer(Method::Get).text(), format!("/{n}"), "{mode:?}");
        }
        assert_eq!(case.upstream.connections(), 1, "{mode:?}");
        drop(client);
        case.stop();
    }
}

#[test]
fn pipelined_requests_with_bodies_are_taken_apart_wherever_they_are_split() {
    for mode in MODES {
        let case = Case::new(mode, &[], |peer| {
            while let Some(request) = peer.request() {
                peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request.body.len()));
                peer.answer(&request.body);
            }
        });
        let mut requests = Vec::new();
        for n in 0..30usize {
            let body = pattern(n * 7);
            match n % 3 {
                0 => requests.extend_from_slice(b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"),
                1 => {
                    requests.extend(
                        format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", n * 7).bytes(),
                    );
                    requests.extend(body);
                }
                _ => {
                    requests.extend(
                        format!(
                            "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
                            n * 7
                        )
                        .bytes(),
                    );
                    requests.extend(body);
                    requests.extend(b"\r\n0\r\n\r\n");
                }
            }
        }
        for piece in [requests.len(), 1000, 37, 3] {
            let mut client = case.client();
            for piece in requests.chunks(piece) {
                client.send(piece);
            }
            for n in 0..30usize {
                let (method, body) =
                    if n % 3 == 0 { (Method::Head, vec![]) } else { (Method::Put, pattern(n * 7)) };
                assert_eq!(client.answer(method).body, body, "{mode:?} {piece} {n}");
            }
        }
        case.stop();
    }
}

#[test]
fn a_client_that_pipelines_without_end_and_reads_nothing_is_stopped() {
    let case = Case::new(MODES[0], &[], |peer| {
        let body = pattern(50_000);
        while peer.request().is_some() {
            peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()));
            peer.answer(&body);
        }
    });
    let mut client = case.client();
    let total = 3000;
    let tcp = client.stream.tcp().try_clone().unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let sender = std::thread::spawn(move || {
        let mut stream = common::Stream::over(tcp, None).unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: h\r\nX-Long: {}\r\n\r\n", "x".repeat(7000));
        for _ in 0..total {
            stream.send(request.as_bytes()).unwrap();
            count.fetch_add(1, Ordering::SeqCst);
        }
        // Dropping it closes only its own handle of the socket.
    });
    let last = until_still(&sent);
    assert!(last < total, "all {last} requests were taken from a client that reads nothing");
    assert!(case.weir.memory_kib("VmHWM") < 64 << 10);
    for n in 0..total {
        assert_eq!(client.answer(Method::Get).body.len(), 50_000, "{n}");
    }
    sender.join().unwrap();
    drop(client);
    case.stop();
}

#[test]
fn a_pooled_connection_that_the_upstream_ends_is_not_used_again() {
    for mode in MODES {
        for cleanly in [true, false] {
            let case = Case::new(mode, &[], move |peer| {
                peer.request();
                peer.answer(OK);
                match cleanly {
                    true => peer.stream.finish(),
                    false => peer.stream.finish_tcp(),
                }
                peer.read_to_end();
            });
            let mut client = case.client();
            for round in 0..3 {
                assert_eq!(client.ask(GET).status, 200, "{mode:?}");
                // The gateway closes its side when it has seen the end of the other.
                case.upstream.wait_for_ending(round);
            }
            assert_eq!(case.upstream.connections(), 3, "{mode:?}");
            drop(client);
            case.stop();
        }
    }
}

#[test]
fn stray_bytes_on_a_pooled_connection_close_it() {
    for mode in MODES {
        let go_on = Switch::default();
        let gate = go_on.clone();
        let case = Case::new(mode, &[], move |peer| {
            peer.request();
            peer.answer(OK);
            if peer.index == 0 {
                gate.wait();
                peer.answer("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
                peer.read_to_end();
            }
            peer.serve(OK);
        });
        let mut client = case.client();
        assert_eq!(client.ask(GET).text(), "ok", "{mode:?}");
        go_on.throw();
        case.upstream.wait_for_ending(0);
        assert_eq!(client.ask(GET).text(), "ok", "{mode:?}");
        assert_eq!(case.upstream.connections(), 2, "{mode:?}");
        drop(client);
        case.stop();
    }
}

#[test]
fn bytes_behind_an_answer_keep_its_connection_out_of_the_pool() {
    for mode in MODES {
        let case = Case::new(mode, &[], |peer| {
            peer.request();
            peer.answer(format!("{OK}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"));
            peer.read_to_end();
        });
        let mut client = case.client();
        for _ in 0..3 {
            assert_eq!(client.ask(GET).text(), "ok", "{mode:?}");
        }
        assert_eq!(case.upstream.connections(), 3, "{mode:?}");
        drop(client);
        case.stop();
    }
}

#[test]
fn a_body_to_a_request_that_has_none_reaches_no_other_request() {
    // An upstream that answers HEAD, or with 304, as if it were GET: its body must not become the next answer.
    for (request, answer) in [
        ("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", OK),
        (GET, "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok"),
        (GET, "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok"),
    ] {
        for mode in MODES {
            let case = Case::new(mode, &[], move |peer| {
                peer.request();
                peer.answer(answer);
                peer.read_to_end();
            });
            let mut client = case.client();
            for _ in 0..2 {
                let answer = client.ask(request);
                assert_eq!(
                    (answer.body.len(), answer.fields("via")),
                    (0, vec!["1.1 weir"]),
                    "{mode:?} {request:?}"
                );
            }
            assert_eq!(case.upstream.connections(), 2, "{mode:?} {request:?}");
            drop(client);
            case.stop();
        }
    }
}

#[test]
fn a_client_that_says_close_gets_its_answer_and_the_end() {
    for mode in MODES {
        let case = Case::answering(mode, OK);
        for request in [
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: x, Close\r\n\r\nGET /never HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET / HTTP/1.0\r\nHost: h\r\n\r\n",
        ] {
            let mut client = case.client();
            let answer = client.ask(request);
            assert_eq!((answer.text(), answer.says_close()), ("ok", true), "{mode:?} {request:?}");
            client.expect_end();
        }
        // The upstream's connection is none of the client's business.
        assert_eq!((case.upstream.connections(), case.upstream.requests().len()), (1, 3), "{mode:?}");
        case.stop();
    }
}

#[test]
fn an_upstream_that_says_close_ends_only_its_own_connection() {
    for mode in MODES {
        for answer in [
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        ] {
            let case = Case::new(mode, &[], move |peer| {
                peer.request();
                peer.answer(answer);
                peer.read_to_end();
            });
            let mut client = case.client();
            for round in 0..3 {
                let got = client.ask(GET);
                assert_eq!((got.text(), got.says_close()), ("ok", false), "{mode:?} {answer:?}");
                case.upstream.wait_for_ending(round);
            }
            assert_eq!(case.upstream.connections(), 3, "{mode:?}");
            drop(client);
            case.stop();
        }
    }
}

#[test]
fn a_client_of_http_1_0_keeps_its_connection_if_it_asks_to() {
    for mode in MODES {
        let case = Case::answering(mode, OK);
        let mut client = case.client();
        for _ in 0..3 {
            let answer = client.ask("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
            assert_eq!((answer.text(), answer.fields("connection")), ("ok", vec!["keep-alive"]), "{mode:?}");
        }
        drop(client);
        case.stop();
    }
}

#[test]
fn a_half_closed_client_still_gets_its_answer() {
    for mode in MODES {
        let go_on = Switch::default();
        let gate = go_on.clone();
        let case = Case::new(mode, &[], move |peer| {
            peer.request();
            gate.wait();
            peer.answer(OK);
            peer.read_to_end();
        });
        let mut client = case.client();
        client.send(GET);
        client.stream.finish_tcp();
        case.upstream.wait_for_requests(1);
        go_on.throw();
        let answer = client.answer(Method::Get);
        assert_eq!(answer.text(), "ok", "{mode:?}");
        client.expect_end();
        case.stop();
    }
}

#[test]
fn a_close_notify_behind_a_request_does_not_cost_its_answer() {
    for mode in MODES.into_iter().filter(|mode| mode.client_tls) {
        let body = "x".repeat(100_000);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let case = Case::new(mode, &[], move |peer| peer.serve(&answer));
        let mut stream = case.connect().unwrap();
        stream.send(GET.as_bytes()).unwrap();
        // The session reads nothing after its own close_notify, so what comes is counted undecrypted.
        stream.finish();
        let mut received = 0;
        let mut bytes = vec![0; 1 << 16];
        loop {
            match stream.tcp().read(&mut bytes).unwrap() {
                0 => break,
                some => received += some,
            }
        }
        assert!(received > body.len(), "{mode:?}: {received} bytes of an answer of {}", body.len());
        let ended = case.stop();
        assert!(ended.stdout.contains("ended early: none"), "{mode:?}: {}", ended.stdout);
    }
}

#[test]
fn all_requests_that_came_before_a_half_close_are_answered() {
    // The end of the client's stream had the requests behind the first one forgotten.
    for mode in MODES {
        let case = Case::new(mode, &[], echo_target);
        let mut client = case.client();
        client.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\nGET /3 HTTP/1.1\r\nHost: h\r\n\r\n");
        client.stream.finish_tcp();
        for n in 1..=3 {
            assert_eq!(client.answer(Method::Get).text(), format!("/{n}"), "{mode:?}");
        }
        client.expect_end();
        case.stop();
    }
}

#[test]
fn a_client_that_goes_within_its_body_takes_the_upstream_connection_along() {
    for mode in MODES {
        for how in ["fin", "reset"] {
            let case = Case::new(mode, &[], |peer| {
                if peer.index == 0 {
                    peer.request();
                } else {
                    peer.serve(OK);
                }
            });
            let mut client = case.client();
            client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf");
            poll_until(DEADLINE, "half a body", || case.upstream.received(0).ends_with(b"\r\n\r\nhalf"));
            match how {
                "fin" => client.stream.finish(),
                _ => client.stream.reset(),
            }
            case.upstream.wait_for_ending(0);
            case.weir.wait_for_stderr(&["client_closed", "PUT /"]);
            assert_eq!(case.client().ask(GET).text(), "ok", "{mode:?}");
            assert_eq!(case.upstream.connections(), 2, "{mode:?}");
            case.stop();
        }
    }
}

#[test]
fn a_client_that_goes_while_it_waits_takes_the_upstream_connection_along() {
    for mode in MODES {
        let case = Case::new(mode, &[], |peer| {
            peer.request();
            peer.read_to_end();
        });
        let mut client = case.client();
        client.send(GET);
        case.upstream.wait_for_requests(1);
        client.stream.reset();
        case.upstream.wait_for_ending(0);
        case.weir.wait_for_stderr(&["client_closed", "GET /"]);
        case.stop();
    }
}

#[test]
fn an_early_refusal_reaches_a_client_that_is_still_sending() {
    const REFUSAL: &str = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig";
    for mode in MODES {
        let case = Case::new(mode, &[], |peer| {
            peer.head();
            peer.answer(REFUSAL);
            // It reads on for a while, as a careful server does.
            peer.read_to_end();
        });
        let mut client = case.client();
        client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n");
        client.send(pattern(100_000));
        let answer = client.answer(Method::Put);
        assert_eq!((answer.status, answer.text(), answer.says_close()), (413, "big", true), "{mode:?}");
        client.expect_end();
        case.upstream.wait_for_ending(0);
        drop(client);
        case.stop();
    }
}

#[test]
fn the_answer_of_an_upstream_that_closes_on_an_upload_is_not_lost() {
    // The upstream answers and closes with the rest of the body unread, which resets the connection. The gateway had
    // more to write, met the failing write first and told the client of a lost upstream, with the answer unread.
    const REFUSAL: &str = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig";
    for mode in MODES.into_iter().filter(|mode| !mode.client_tls) {
        let go_on = Switch::default();
        let gate = go_on.clone();
        let case = Case::new(mode, &[], move |peer| {
            peer.head();
            gate.wait();
            peer.answer(REFUSAL);
            peer.stream.finish_tcp();
        });
        let mut client = case.client();
        client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n");
        let sent = Arc::new(AtomicUsize::new(0));
        let (count, tcp) = (Arc::clone(&sent), client.stream.tcp().try_clone().unwrap());
        let sender = std::thread::spawn(move || {
            let mut stream = common::Stream::over(tcp, None).unwrap();
            // Until the gateway has had enough.
            while stream.send(&[b'x'; 1 << 16]).is_ok() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        until_still(&sent);
        go_on.throw();
        let answer = client.answer(Method::Put);
        assert_eq!((answer.status, answer.text()), (413, "big"), "{mode:?}: {}", case.weir.stderr());
        sender.join().unwrap();
        drop(client);
        case.stop();
    }
}

#[test]
fn an_early_success_ends_with_the_answer() {
    for mode in MODES {
        let case = Case::new(mode, &[], |peer| {
            peer.head();
            peer.answer(OK);
            peer.read_to_end();
        });
        let mut client = case.client();
        client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf");
        assert_eq!(client.answer(Method::Put).text(), "ok", "{mode:?}");
        client.expect_end();
        case.upstream.wait_for_ending(0);
        case.stop();
    }
}

#[test]
fn the_upstreams_tls_sessions_are_resumed() {
    for mode in MODES.into_iter().filter(|mode| mode.upstream_tls) {
        let case = Case::new(mode, &[], |peer| {
            peer.request();
            peer.answer("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
            peer.read_to_end();
        });
        let mut client = case.client();
        for _ in 0..5 {
            assert_eq!(client.ask(GET).text(), "ok", "{mode:?}");
        }
        drop(client);
        let stdout = case.stop().stdout;
        let upstream = stdout.split("upstream connections").nth(1).unwrap();
        assert!(upstream.contains("1 full") && upstream.contains("4 "), "{mode:?}: {stdout}");
    }
}

#[test]
fn an_empty_line_between_requests_is_let_pass() {
    let case = Case::answering(MODES[0], OK);
    let mut client = case.client();
    client.send(format!("{GET}\r\n{GET}"));
    assert_eq!(client.answer(Method::Get).text(), "ok");
    assert_eq!(client.answer(Method::Get).text(), "ok");
    assert!(!client.stream.has_news_within(Duration::from_millis(50)));
    assert_eq!(case.upstream.requests().len(), 2);
    drop(client);
    case.stop();
}

#[test]
fn a_connection_that_says_nothing_costs_nobody_an_error() {
    for mode in MODES {
        let case = Case::answering(mode, OK);
        for _ in 0..20 {
            drop(case.client());
            drop(std::net::TcpStream::connect(case.weir.address()).unwrap());
        }
        assert_eq!(case.client().ask(GET).text(), "ok", "{mode:?}");
        let ended = case.stop();
        assert!(ended.stdout.contains("ended early: none"), "{mode:?}: {}", ended.stdout);
    }
}
