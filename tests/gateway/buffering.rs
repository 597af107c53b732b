//! Buffering of slow clients' messages, which frees the servers.

use super::{counting, gateway_to, metric};
use crate::common::{Client, DEADLINE, Peer, Upstream, pattern, poll_until};
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn a_request_reaches_a_server_when_its_body_is_here() {
    let upstream = counting();
    let body = pattern(50_000);
    for (setting, early) in
        [("", true), ("request_buffer = '64KiB'", false), ("request_buffer = '16KiB'", true)]
    {
        for chunked in [false, true] {
            let weir = gateway_to(&upstream, setting);
            let before = upstream.connections();
            let mut slow = Client::connect(weir.address(), None);
            let framing = if chunked { "Transfer-Encoding: chunked" } else { "Content-Length: 50000" };
            slow.send(format!("POST / HTTP/1.1\r\nHost: h\r\n{framing}\r\n\r\n"));
            if chunked {
                slow.send("c350\r\n");
            }
            slow.send(&body[..40_000]);
            if early {
                poll_until(DEADLINE, "it is passed on", || upstream.connections() == before + 1);
            }
            // The gateway serves in order of arrival, so it has read the first part by now.
            let mut quick = Client::connect(weir.address(), None);
            assert_eq!(quick.ask(GET).text(), "0");
            assert_eq!(upstream.connections(), before + 1 + usize::from(early), "{setting}");
            slow.send(&body[40_000..]);
            if chunked {
                slow.send("\r\n0\r\n\r\n");
            }
            // The next request follows immediately.
            slow.send(GET);
            assert_eq!(slow.answer(Method::Post).text(), "50000");
            assert_eq!(slow.answer(Method::Get).text(), "0");
            assert!(upstream.requests().iter().any(|request| request.body == body));
            upstream.requests().clear();
        }
    }
}

#[test]
fn a_client_that_waits_for_100_gets_it_from_the_gateway() {
    let upstream = counting();
    let weir = gateway_to(&upstream, "request_buffer = '64KiB'");
    let mut client = Client::connect(weir.address(), None);
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.answer(Method::Post).status, 100);
    assert_eq!(upstream.connections(), 0);
    client.send("ok");
    assert_eq!(client.answer(Method::Post).text(), "2");
    assert!(!upstream.requests()[0].head.to_ascii_lowercase().contains("expect"));
}

#[test]
fn a_body_that_goes_wrong_reaches_no_server() {
    let upstream = counting();
    let weir = gateway_to(&upstream, "request_buffer = '64KiB'\nmax_body = 10\n[timeouts]\nstall = '200ms'");
    let chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (body, status, reason) in [
        ("zz\r\n", 400, "bad_chunk_size"),
        ("b\r\nhello world\r\n", 413, "body_too_large"),
        ("5\r\nhel", 408, "body_timeout"),
    ] {
        let mut client = Client::connect(weir.address(), None);
        client.send(format!("{chunked}{body}"));
        let answer = client.answer(Method::Post);
        assert!(
            answer.status == status && answer.text().contains(reason),
            "{}: {}",
            answer.status,
            answer.text()
        );
    }
    let mut leaving = Client::connect(weir.address(), None);
    leaving.send(format!("{chunked}5\r\nhel"));
    leaving.stream.finish_tcp();
    weir.wait_for_stderr(&["client_closed"]);
    assert_eq!(upstream.connections(), 0);
    assert_eq!(weir.stop().code, Some(0));
}

#[test]
fn an_answer_for_a_slow_client_leaves_its_server_free() {
    const LENGTH: usize = 32 << 20;
    for (setting, connections) in [("", 2), ("response_buffer = '64MiB'", 1)] {
        let upstream = Upstream::start(None, |peer: &mut Peer| {
            while let Some(request) = peer.request() {
                let length = if request.head.contains("/large") { LENGTH } else { 0 };
                peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"));
                peer.answer(vec![b'x'; length]);
            }
        });
        let weir = gateway_to(&upstream, &format!("{setting}\n[admin]\nbind = '127.0.0.1:0'"));
        let mut slow = Client::connect(weir.address(), None);
        slow.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
        if connections == 1 {
            poll_until(DEADLINE, "the server is done", || metric(&weir, "weir_server_idle_connections") == 1);
        } else {
            upstream.wait_for_requests(1);
        }
        assert_eq!(Client::connect(weir.address(), None).ask(GET).status, 200);
        assert_eq!(upstream.connections(), connections, "{setting}");
        let answer = slow.answer(Method::Get);
        assert!(answer.complete && answer.body.len() == LENGTH);
    }
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    for key in ["request_buffer", "response_buffer"] {
        super::check::refused(
            &format!("[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\n{key} = 1000\n"),
            &format!("route.0.{key}: invalid value `1000`: expected 16384 to 268435456"),
        );
    }
}
