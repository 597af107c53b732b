//! Clients and servers that disconnect, or servers that respond, before the exchange is complete.

use super::scripts::{GET, OK};
use crate::common::{self, Case, DEADLINE, Ending, MODES, Switch, pattern, poll_until, until_still};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_http::Method;

#[test]
fn a_client_that_disconnects_within_its_body_closes_the_upstream_connection() {
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
            // A FIN would look like the end of a complete request.
            assert_eq!(case.upstream.wait_for_ending(0), Ending::Reset, "{mode:?} {how}");
            case.weir.wait_for_stderr(&["client_closed", "PUT /"]);
            assert_eq!(case.client().ask(GET).text(), "ok", "{mode:?}");
            assert_eq!(case.upstream.connections(), 2, "{mode:?}");
            case.stop();
        }
    }
}

#[test]
fn a_client_that_disconnects_while_waiting_closes_the_upstream_connection() {
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
fn an_early_rejection_reaches_a_client_that_is_still_sending() {
    const REFUSAL: &str = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig";
    for mode in MODES {
        let case = Case::new(mode, &[], |peer| {
            peer.head();
            peer.answer(REFUSAL);
            // Keep reading for a while, as well-behaved servers do.
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
fn the_response_of_an_upstream_that_closes_during_an_upload_is_not_lost() {
    // Regression test: the upstream responds and closes with a part of the body unread, which resets the connection.
    // The gateway's next write failed, and it reported a lost upstream to the client without reading the response.
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
            // Blocks when the gateway stops reading.
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
fn an_early_success_closes_after_the_response() {
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
