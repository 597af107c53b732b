//! Orderly closes of a connection: announced, half-closed, or unused.

use super::scripts::{GET, OK};
use crate::common::{Case, MODES};

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
