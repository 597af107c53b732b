//! Rules for connections.

use super::{GET, OK, ask, cleartext};
use crate::common::{Case, Client, DEADLINE, Ending, MODES, Peer, Switch, Upstream, Weir, poll_until};
use std::io::Read as _;
use std::net::{Shutdown, TcpStream};
use weir_http::Method;

#[test]
fn rule_07_a_stale_pooled_connection_is_noticed_before_it_is_used() {
    // The server announces how long it keeps connections, and no further request arrives: the gateway closes first.
    let case = cleartext(&[], |peer| {
        peer.serve("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=1\r\n\r\nok");
    });
    assert_eq!(ask(&case, GET).status, 200);
    assert_eq!(case.upstream.wait_for_ending(0), Ending::Clean);
    case.stop();
    // The server closes, with a FIN or after stray bytes: the next request uses another connection, whatever its
    // method.
    for last in ["", "HTTP/1.1 408 Request Timeout\r\n\r\n"] {
        let (close, closed) = (Switch::default(), Switch::default());
        let (gate, is_closed) = (close.clone(), closed.clone());
        let case = cleartext(&[], move |peer| {
            if peer.index > 0 {
                return peer.serve(OK);
            }
            peer.request();
            peer.answer(OK);
            gate.wait();
            peer.answer(last);
            peer.stream.finish();
            is_closed.throw();
            peer.read_to_end();
        });
        let mut client = case.client();
        assert_eq!(client.ask(GET).status, 200);
        close.throw();
        closed.wait();
        assert_eq!(client.ask("POST /once HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n").status, 200);
        assert_eq!(case.upstream.requests().len(), 2, "each once");
        drop(client);
        let ended = case.stop();
        assert!(!ended.stdout.contains("retries"), "{}", ended.stdout);
    }
}

#[test]
fn rule_08_a_request_is_sent_again_only_if_it_cannot_have_been_carried_out_twice() {
    for (method, body, begun, requests) in [
        ("GET", 0, "", 2),
        ("PUT", 100, "", 2),
        // This method is not idempotent.
        ("POST", 0, "", 1),
        ("PATCH", 100, "", 1),
        // The buffer no longer contains the whole request.
        ("PUT", 100_000, "", 1),
        // A byte of the response has arrived.
        ("GET", 0, "H", 1),
    ] {
        let case = cleartext(&[], move |peer| {
            peer.request();
            peer.answer(OK);
            if peer.index > 0 {
                return peer.serve(OK);
            }
            peer.request();
            peer.answer(begun);
            peer.stream.finish();
            peer.read_to_end();
        });
        let mut client = case.client();
        assert_eq!(client.ask(GET).status, 200);
        let request = format!(
            "{method} /again HTTP/1.1\r\nHost: h\r\nContent-Length: {body}\r\n\r\n{}",
            "x".repeat(body)
        );
        let answer = client.ask(request);
        assert_eq!(
            answer.status,
            if requests == 2 { 200 } else { 502 },
            "{method} {body} {begun}: {}",
            answer.text()
        );
        let again = case.upstream.requests().iter().filter(|request| request.head.contains("/again")).count();
        assert_eq!(again, requests, "{method} {body} {begun:?}");
        drop(client);
        case.stop();
    }
}

#[test]
fn rule_09_a_connection_with_bytes_beyond_its_answer_is_closed_and_counted() {
    let case = cleartext(&[], |peer| {
        while let Some(request) = peer.request() {
            let excess = if request.head.contains("/more") {
                "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
            } else {
                ""
            };
            peer.answer(format!("{OK}{excess}"));
        }
    });
    let mut client = case.client();
    assert_eq!(client.ask("GET /more HTTP/1.1\r\nHost: h\r\n\r\n").text(), "ok");
    for _ in 0..3 {
        assert_eq!(client.ask(GET).text(), "ok");
    }
    assert_eq!(case.upstream.connections(), 2);
    drop(client);
    let ended = case.stop();
    assert!(ended.stdout.contains("1 upstream_stray_bytes"), "{}", ended.stdout);
}

#[test]
fn rule_11_a_byte_now_and_then_extends_no_deadline_of_hello_handshake_or_head() {
    let case = Case::new(MODES[1], &["--head-timeout", "1"], |peer| peer.serve(OK));
    // Neither the ClientHello nor the head ever completes; the peer sends until the gateway closes the connection.
    let trickle = |stream: &mut TcpStream| {
        let mut writer = stream.try_clone().unwrap();
        let feeding = std::thread::spawn(move || {
            let mut bytes = [0x16, 3, 1, 0x3f, 0xff, 1].into_iter().chain(std::iter::repeat(0));
            while std::io::Write::write_all(&mut writer, &[bytes.next().unwrap()]).is_ok() {
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        });
        // An alert may arrive, then the end of the connection, clean or not.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        let _ = stream.shutdown(Shutdown::Both);
        feeding.join().unwrap();
    };
    trickle(&mut TcpStream::connect(case.weir.address()).unwrap());
    case.weir.wait_for_stderr(&["handshake_timeout"]);
    case.stop();
    let case = cleartext(&["--head-timeout", "1"], |peer| peer.serve(OK));
    let mut client = case.client();
    client.send("GET / HTTP/1.1\r\nHost: h\r\n");
    let answer = loop {
        // Sends a field line from time to time until a response arrives.
        if client.stream.has_news_within(std::time::Duration::from_millis(100)) {
            break client.answer(Method::Get);
        }
        client.send("X-A: b\r\n");
    };
    assert!(answer.status == 408 && answer.text().contains("head_timeout"), "{}", answer.text());
    for (flags, request, status) in [
        (
            &["--max-head", "1000"][..],
            format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "x".repeat(1000)),
            431,
        ),
        (&[], format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "X: y\r\n".repeat(101)), 431),
        (&[], format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(40_000)), 414),
    ] {
        let case = cleartext(flags, |peer| peer.serve(OK));
        assert_eq!(ask(&case, &request).status, status, "{request:.60}");
        case.stop();
    }
    drop(client);
    case.stop();
}

#[test]
fn rule_25_a_close_never_overtakes_an_answer() {
    // More than the socket's buffers hold, for a client that starts reading only after the gateway has sent everything.
    const LENGTH: usize = 3_000_000;
    let case = cleartext(&[], |peer| {
        peer.request();
        let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {LENGTH}\r\n\r\n");
        peer.answer([head.as_bytes(), &crate::common::pattern(LENGTH)].concat());
        peer.stream.finish();
        peer.read_to_end();
    });
    let mut client = case.client();
    // Bytes that the gateway will not read are in its buffer when it closes: a reset would discard the response.
    client.send(format!("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n{}", "x".repeat(1000)));
    case.upstream.wait_for_requests(1);
    case.weir.terminate();
    let answer = client.answer(Method::Get);
    assert!(answer.complete && answer.body == crate::common::pattern(LENGTH));
    client.expect_end();
    case.stop();
}

#[test]
fn rule_28_an_idle_tunnel_ends_and_a_half_closed_one_goes_on() {
    const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let switch = Switch::default();
    let last = switch.clone();
    let upstream = Upstream::start(None, move |peer: &mut Peer| {
        peer.head();
        peer.answer("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        if peer.read_to_end() == Ending::Clean {
            last.wait();
            peer.answer("the last word");
        }
    });
    let weir = Weir::configured(
        &format!(
            "workers = 1
            [listener.web]
            bind = '127.0.0.1:0'
            [admin]
            bind = '127.0.0.1:0'
            [service.app]
            servers = 'http://{}'
            [[route]]
            path = '/idle'
            service = 'app'
            timeouts.tunnel = '300ms'
            [[route]]
            service = 'app'
            timeouts.tunnel = '1h'",
            upstream.address
        ),
        1,
    );
    let open = |path: &str| {
        let mut client = Client::connect(weir.address(), None);
        client.send(UPGRADE.replacen('/', path, 1));
        assert_eq!(client.answer(Method::Get).status, 101);
        client
    };
    let tunnels = || crate::gateway::metric(&weir, "weir_tunnels");
    let mut half = open("/half");
    half.stream.finish();
    open("/idle").read_to_end();
    weir.wait_for_stderr(&["tunnel_idle"]);
    // The other tunnel is counted separately while it lasts.
    poll_until(DEADLINE, "the idle tunnel is gone", || tunnels() == 1);
    switch.throw();
    assert_eq!(half.read_to_end(), (b"the last word".to_vec(), Ending::Clean));
    poll_until(DEADLINE, "both tunnels are gone", || tunnels() == 0);
}

#[test]
fn rule_30_a_proxy_header_is_expected_always_or_never_and_from_its_proxies_alone() {
    let upstream = Upstream::start(None, |peer: &mut Peer| peer.serve(OK));
    let config = |networks: &str| {
        format!(
            "workers = 1
            [listener.web]
            bind = '127.0.0.1:0'
            {networks}
            [service.app]
            servers = 'http://{}'
            [[route]]
            service = 'app'
            [timeouts]
            handshake = '1s'",
            upstream.address
        )
    };
    let header = "PROXY TCP4 192.0.2.7 192.0.2.1 4000 80\r\n";
    let expecting = Weir::configured(&config("proxy_protocol = '127.0.0.0/8'"), 1);
    assert_eq!(Client::connect(expecting.address(), None).ask(format!("{header}{GET}")).status, 200);
    assert_eq!(upstream.requests().last().unwrap().fields("x-forwarded-for"), ["192.0.2.7"]);
    for (bytes, reason) in [(GET, "bad_proxy_header"), ("PROXY TCP4 192.0.2", "handshake_timeout")] {
        let mut client = Client::connect(expecting.address(), None);
        client.send(bytes);
        let (answer, _) = client.read_to_end();
        assert!(answer.is_empty(), "{bytes}");
        expecting.wait_for_stderr(&[reason]);
    }
    let strangers = Weir::configured(&config("proxy_protocol = '10.0.0.0/8'"), 1);
    let mut client = Client::connect(strangers.address(), None);
    let _ = client.stream.send(format!("{header}{GET}").as_bytes());
    assert!(client.read_to_end().0.is_empty());
    strangers.wait_for_stderr(&["untrusted_proxy"]);
    let never = Weir::configured(&config(""), 1);
    let answer = Client::connect(never.address(), None).ask(format!("{header}{GET}"));
    assert_eq!(answer.status, 400);
    assert_eq!(upstream.requests().len(), 1);
}
