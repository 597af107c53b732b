//! Slow responses.

use super::{GET, STRICT, gateway, in_two_parts, let_a_window_pass};
use crate::common::{Client, DEADLINE, Peer, Switch, Upstream, poll_until};
use crate::gateway::metric;
use std::io::Read;
use weir_http::Method;

/// More than the kernel's buffers hold.
const LARGE: usize = 32 << 20;

/// An upstream that responds with [`LARGE`] bytes; throws the switch when the gateway closes its connection.
fn pouring(given_up: &Switch) -> Upstream {
    let given_up = given_up.clone();
    Upstream::start(None, move |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            let length = if request.head.starts_with("GET /judged") { 0 } else { LARGE };
            peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"));
            if !peer.answer(vec![b'x'; length]) {
                given_up.throw();
                return;
            }
        }
    })
}

#[test]
fn a_client_that_reads_too_slowly_is_ended_and_its_server_freed() {
    let general = format!("[min_rate]\n{STRICT}");
    for (route, rest) in [
        ("", general.as_str()),
        ("min_rate = { response = '1MiB', window = '300ms' }", "[min_rate]\nresponse = 0"),
    ] {
        for reads in [false, true] {
            let given_up = Switch::default();
            let upstream = pouring(&given_up);
            let weir = gateway(&upstream, route, rest);
            let mut client = Client::connect(weir.address(), None);
            client.send(GET);
            let mut tcp = client.stream.tcp().try_clone().unwrap();
            poll_until(DEADLINE, "it is ended", || {
                if reads {
                    // Bytes remain available until the end.
                    let _ = tcp.read(&mut [0; 64]);
                }
                weir.stderr().contains("client_too_slow")
            });
            given_up.wait();
            assert_eq!(metric(&weir, "weir_ended_early_total{reason=\"client_too_slow\"}"), 1);
            let (rest, _) = client.read_to_end();
            assert!(rest.len() < LARGE);
        }
    }
}

/// This holds even if the server finished long ago and the exchange is complete.
#[test]
fn a_route_lets_clients_read_as_slowly_as_they_like() {
    for (route, is_done) in
        [("min_rate.response = 0", false), ("min_rate.response = 0\nresponse_buffer = '64MiB'", true)]
    {
        let upstream = pouring(&Switch::default());
        let weir = gateway(&upstream, route, &format!("[min_rate]\n{STRICT}"));
        let mut client = Client::connect(weir.address(), None);
        client.send(GET);
        match is_done {
            true => poll_until(DEADLINE, "the server is done", || {
                metric(&weir, "weir_server_idle_connections") == 1
            }),
            false => upstream.wait_for_requests(1),
        }
        let_a_window_pass(&weir);
        let answer = client.answer(Method::Get);
        assert!(answer.complete && answer.body.len() == LARGE, "{route}: {}", weir.stderr());
        assert_eq!(client.ask("GET /judged HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
    }
}

#[test]
fn what_a_client_leaves_of_a_complete_answer_is_bound_too() {
    for (route, rest, reason) in [
        ("min_rate = { response = '1MiB', window = '300ms' }", "", "client_too_slow"),
        ("", "[min_rate]\nresponse = '1MiB'\nwindow = '300ms'", "client_too_slow"),
        ("timeouts.response_body = '300ms'\nmin_rate.response = 0", "", "response_overdue"),
        ("", "[timeouts]\nresponse_body = '300ms'\n[min_rate]\nresponse = 0", "response_overdue"),
    ] {
        for close in ["", "Connection: close\r\n"] {
            let upstream = pouring(&Switch::default());
            let weir = gateway(&upstream, &format!("response_buffer = '64MiB'\n{route}"), rest);
            let mut client = Client::connect(weir.address(), None);
            client.send(format!("GET / HTTP/1.1\r\nHost: h\r\n{close}\r\n"));
            weir.wait_for_stderr(&[reason]);
            assert!(!client.answer(Method::Get).complete);
            let counted = |class| metric(&weir, &format!("weir_responses_total{{class=\"{class}\"}}"));
            assert_eq!(
                (counted("2xx"), counted("none")),
                (1, 0),
                "its request was answered, and is counted once"
            );
        }
    }
}

#[test]
fn a_server_that_has_nothing_to_send_is_not_the_clients_fault() {
    for (first, second) in [
        // A long poll, server-sent events.
        ("", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "one"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n", "2\r\nne\r\n0\r\n\r\n"),
        ("HTTP/1.1 103 Early Hints\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"),
    ] {
        let switch = Switch::default();
        let upstream = in_two_parts(&switch, first, second);
        let weir = gateway(&upstream, "", &format!("[min_rate]\n{STRICT}"));
        let mut client = Client::connect(weir.address(), None);
        client.send(GET);
        poll_until(DEADLINE, "the request is there", || upstream.received_bytes() > 0);
        let_a_window_pass(&weir);
        switch.throw();
        let mut answer = client.answer(Method::Get);
        if answer.status == 103 {
            answer = client.answer(Method::Get);
        }
        assert_eq!((answer.status, answer.text(), answer.complete), (200, "one", true));
    }
}

#[test]
fn a_tunnel_may_be_as_slow_as_it_likes() {
    let switch = Switch::default();
    let upstream = in_two_parts(
        &switch,
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n",
        "late",
    );
    let weir = gateway(
        &upstream,
        "timeouts = { body = '100ms', response_body = '100ms' }",
        &format!("[min_rate]\n{STRICT}"),
    );
    let mut client = Client::connect(weir.address(), None);
    client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n");
    assert_eq!(client.answer(Method::Get).status, 101);
    client.send("1");
    let_a_window_pass(&weir);
    client.send("2");
    switch.throw();
    let mut bytes = Vec::new();
    while bytes.len() < 4 {
        assert_eq!(client.stream.receive(&mut bytes), None);
    }
    assert_eq!(bytes, b"late");
    poll_until(DEADLINE, "both bytes are there", || upstream.received(0).ends_with(b"12"));
}

/// The server's trickle prevents every other deadline.
#[test]
fn an_answer_has_a_time_in_all_whoever_is_slow() {
    for (route, rest) in [
        ("timeouts.response_body = '300ms'", ""),
        ("", "[timeouts]\nresponse_body = '300ms'"),
        ("timeouts.response_body = '300ms'", "[timeouts]\nresponse_body = '1h'\n[min_rate]\nresponse = 0"),
    ] {
        let given_up = Switch::default();
        let gave = given_up.clone();
        let upstream = Upstream::start(None, move |peer: &mut Peer| {
            peer.request();
            peer.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            while peer.answer("1\r\nx\r\n") {
                std::thread::yield_now();
            }
            gave.throw();
        });
        let weir = gateway(&upstream, route, rest);
        let mut client = Client::connect(weir.address(), None);
        let answer = client.ask(GET);
        assert!(answer.status == 200 && !answer.complete);
        weir.wait_for_stderr(&["response_overdue", "GET /"]);
        given_up.wait();
        assert_eq!(metric(&weir, "weir_ended_early_total{reason=\"response_overdue\"}"), 1);
    }
}

/// Each response has its own deadline.
#[test]
fn each_answer_on_a_connection_has_all_its_time() {
    let switch = Switch::default();
    let gate = switch.clone();
    let upstream = Upstream::start(None, move |peer: &mut Peer| {
        while peer.request().is_some() {
            peer.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
            peer.answer("0\r\n\r\n");
            gate.wait();
        }
    });
    let weir = gateway(&upstream, "timeouts.response_body = '500ms'", &format!("[min_rate]\n{STRICT}"));
    let mut client = Client::connect(weir.address(), None);
    assert_eq!(client.ask(GET).status, 200);
    let_a_window_pass(&weir);
    switch.throw();
    assert!(client.ask(GET).complete);
    assert_eq!(metric(&weir, "weir_ended_early_total{reason=\"response_overdue\"}"), 0);
}
