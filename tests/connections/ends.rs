//! Orderly closes of a connection: announced, half-closed, or unused.

use super::scripts::{GET, OK, echo_target};
use crate::common::{Case, MODES, Switch};
use std::io::Read;
use weir_http1::Method;

#[test]
fn a_client_that_sends_close_gets_its_response_and_a_close() {
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
        // The client's close does not affect the upstream connection.
        assert_eq!((case.upstream.connections(), case.upstream.requests().len()), (1, 3), "{mode:?}");
        case.stop();
    }
}

#[test]
fn an_upstream_that_sends_close_closes_only_its_own_connection() {
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
fn an_http_1_0_client_keeps_its_connection_on_request() {
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
fn a_half_closed_client_still_gets_its_response() {
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
fn a_close_notify_after_a_request_does_not_lose_its_response() {
    for mode in MODES.into_iter().filter(|mode| mode.client_tls) {
        let body = "x".repeat(100_000);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let case = Case::new(mode, &[], move |peer| peer.serve(&answer));
        let mut stream = case.connect().unwrap();
        stream.send(GET.as_bytes()).unwrap();
        // The session reads nothing after its own close_notify, so count the encrypted bytes.
        stream.finish();
        let mut received = 0;
        let mut bytes = vec![0; 1 << 16];
        loop {
            match stream.tcp().read(&mut bytes).unwrap() {
                0 => break,
                some => received += some,
            }
        }
        assert!(received > body.len(), "{mode:?}: {received} bytes of a response of {}", body.len());
        let ended = case.stop();
        assert!(ended.stdout.contains("ended early: none"), "{mode:?}: {}", ended.stdout);
    }
}

#[test]
fn all_requests_before_a_half_close_get_responses() {
    // Regression test: the end of the client's stream dropped the requests after the first one.
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
fn a_connection_without_bytes_causes_no_error() {
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
