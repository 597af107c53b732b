//! Upstream connections: shared and resumed, but not reused after a fault.

use super::scripts::{GET, OK};
use crate::common::{Case, MODES, Switch};
use weir_http::Method;

#[test]
fn successive_clients_share_an_upstream_connection() {
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
fn the_upstream_connection_used_last_is_reused_first() {
    // Three concurrent requests open three connections; then sequential requests use only the one returned last.
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
fn a_pooled_connection_closed_by_the_upstream_is_not_reused() {
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
                // The gateway closes its side when it sees the upstream's close.
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
fn bytes_after_a_response_keep_its_connection_out_of_the_pool() {
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
fn an_unexpected_response_body_reaches_no_other_request() {
    // An upstream that sends a body with a response to HEAD or with a 304: the body must not become the next response.
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
                assert_eq!(answer.body.len(), 0, "{mode:?} {request:?}");
            }
            assert_eq!(case.upstream.connections(), 2, "{mode:?} {request:?}");
            drop(client);
            case.stop();
        }
    }
}

/// Regression test: if a response ended exactly at the end of the read buffer, the bytes after it stayed in the socket
/// and became the response to the next request on that connection, even for another client.
#[test]
fn bytes_behind_a_response_that_fills_a_read_reach_no_other_request() {
    const READS: [usize; 2] = [64 << 10, 128 << 10];
    for mode in MODES {
        for length in READS {
            let head = |body: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {body}\r\n\r\n");
            // Both lengths have the same number of digits.
            let body = length - head(length).len();
            let answer =
                head(body) + &"x".repeat(body) + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
            assert_eq!(answer.len() - length, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison".len());
            let case = Case::new(mode, &[], move |peer| {
                if peer.index == 0 {
                    peer.request();
                    peer.answer(&answer);
                    peer.read_to_end();
                } else {
                    peer.serve(OK);
                }
            });
            assert_eq!(case.client().ask(GET).body.len(), body, "{mode:?}");
            assert_eq!(case.client().ask(GET).text(), "ok", "{mode:?} {length}");
            case.weir.wait_for_stderr(&["upstream_stray_bytes", "bytes belong to no request"]);
            case.stop();
        }
    }
}

/// A server that sends the announced body late would corrupt the next response.
#[test]
fn a_connection_whose_response_announces_an_absent_body_is_closed() {
    for (request, answer, connections) in [
        ("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 3),
        ("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 3),
        (GET, "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 3),
        (GET, "HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", 3),
        ("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", 1),
        (GET, "HTTP/1.1 304 Not Modified\r\n\r\n", 1),
        (GET, "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", 1),
    ] {
        for mode in MODES {
            let case = Case::answering(mode, answer);
            let mut client = case.client();
            for _ in 0..3 {
                client.ask(request);
            }
            assert_eq!(case.upstream.connections(), connections, "{mode:?} {request:?} {answer:?}");
            drop(client);
            case.stop();
        }
    }
}

/// Regression test: NTLM and Negotiate authenticate a connection, so a second client got responses for the first one's
/// identity.
#[test]
fn a_connection_that_a_client_authenticated_serves_no_other_client() {
    let asks = |field: &str| format!("GET / HTTP/1.1\r\nHost: h\r\n{field}\r\n\r\n");
    let answers = |field: &str| format!("HTTP/1.1 401 Unauthorized\r\n{field}\r\nContent-Length: 0\r\n\r\n");
    let cases = [
        (asks("Authorization: NTLM TlRMTVNTUAAB"), OK.to_owned(), 2),
        (asks("proxy-authorization: negotiate YII"), OK.to_owned(), 2),
        (GET.to_owned(), answers("WWW-Authenticate: Negotiate"), 2),
        (GET.to_owned(), answers("WWW-Authenticate: Basic realm=\"x\", NTLM"), 2),
        (GET.to_owned(), answers("Proxy-Authenticate: ntlm abc"), 2),
        (asks("Authorization: Basic TlRMTQ=="), OK.to_owned(), 1),
        (GET.to_owned(), answers("WWW-Authenticate: Bearer realm=\"NTLM\""), 1),
    ];
    for (request, answer, connections) in cases {
        for mode in MODES {
            let own = answer.clone();
            let case = Case::new(mode, &[], move |peer| peer.serve(&own));
            for _ in 0..2 {
                case.client().ask(&request);
            }
            assert_eq!(case.upstream.connections(), connections, "{mode:?} {request:?} {answer:?}");
            case.stop();
        }
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
