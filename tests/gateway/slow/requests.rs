//! Slow request bodies.

use super::{
    GET, STRICT, configuration, counting, expect_length, gateway, in_two_parts, let_a_window_pass, trickle,
};
use crate::common::{
    Client, DEADLINE, Ending, Peer, Stream, Switch, Upstream, Weir, most_in_flight, pattern, poll_until,
    until_still,
};
use crate::gateway::metric;
use std::io::Read;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_http::Method;

const LENGTH: &str = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n";
const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nf4240\r\n";

#[test]
fn a_body_that_trickles_is_ended_and_its_server_freed() {
    let general = format!("[min_rate]\n{STRICT}");
    for (route, rest, is_buffered) in [
        ("", general.as_str(), false),
        ("min_rate = { request = '1MiB', window = '300ms' }", "", false),
        ("min_rate = { request = 1048576 }", "[min_rate]\nrequest = 0\nwindow = '300ms'", false),
        ("request_buffer = '64KiB'\nmin_rate = { request = '1MiB', window = '300ms' }", "", true),
    ] {
        for head in [LENGTH, CHUNKED] {
            let upstream = counting();
            let weir = gateway(&upstream, route, rest);
            let mut client = Client::connect(weir.address(), None);
            client.send(head);
            trickle(&mut client, &mut std::iter::repeat(b'x'));
            let answer = client.answer(Method::Post);
            assert_eq!((answer.status, answer.says_close()), (408, true), "{route}: {}", answer.text());
            assert!(answer.text().contains("body_too_slow"), "{route}: {}", answer.text());
            weir.wait_for_stderr(&["408 body_too_slow"]);
            assert_eq!(metric(&weir, "weir_ended_early_total{reason=\"body_too_slow\"}"), 1);
            match is_buffered {
                true => assert_eq!(upstream.connections(), 0),
                false => assert_eq!(upstream.wait_for_ending(0), Ending::Reset, "it must not look complete"),
            }
        }
    }
}

/// The rate requires 2 MiB per window; the body has ten bytes.
#[test]
fn a_short_body_is_bound_and_one_that_comes_within_the_window_is_not() {
    let upstream = counting();
    let weir = gateway(&upstream, "", "[min_rate]\nrequest = '1MiB'\nwindow = '2s'");
    let mut slow = Client::connect(weir.address(), None);
    slow.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n123");
    assert_eq!(slow.answer(Method::Post).status, 408);
    let mut quick = Client::connect(weir.address(), None);
    for _ in 0..3 {
        let before = upstream.received_bytes();
        quick.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n123");
        poll_until(DEADLINE, "its first part is passed on", || upstream.received_bytes() > before);
        quick.send("4567890");
        expect_length(&mut quick, 10);
    }
}

/// WSGI servers use a thread per connection. Without a minimum rate, the honest client would hang.
#[test]
fn slow_uploads_do_not_hold_the_threads_of_a_wsgi_server() {
    const THREADS: usize = 3;
    const SLOW: usize = 8;
    let listener = Arc::new(TcpListener::bind("127.0.0.1:0").unwrap());
    let address = listener.local_addr().unwrap();
    let busy = Arc::new(AtomicUsize::new(0));
    for _ in 0..THREADS {
        let (listener, busy) = (Arc::clone(&listener), Arc::clone(&busy));
        std::thread::spawn(move || {
            while let Ok((mut tcp, _)) = listener.accept() {
                busy.fetch_add(1, Ordering::SeqCst);
                let (mut request, mut some) = (Vec::new(), [0; 4096]);
                while let Ok(read @ 1..) = tcp.read(&mut some) {
                    request.extend_from_slice(&some[..read]);
                    if request.ends_with(b"\r\n\r\nhonest") {
                        let answer = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
                        let _ = std::io::Write::write_all(&mut tcp, answer.as_bytes());
                        break;
                    }
                }
                busy.fetch_sub(1, Ordering::SeqCst);
            }
        });
    }
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{address}'\n[[route]]\nservice = 'app'\n\
         [min_rate]\nrequest = '1KiB'\nwindow = '500ms'\n"
    );
    let weir = Weir::configured(&config, 1);
    let mut slow: Vec<_> = (0..SLOW).map(|_| Client::connect(weir.address(), None)).collect();
    for client in &mut slow {
        client.send(LENGTH);
    }
    poll_until(DEADLINE, "all threads are busy", || busy.load(Ordering::SeqCst) == THREADS);
    let gateway = weir.address();
    let honest = std::thread::spawn(move || {
        let mut client = Client::connect(gateway, None);
        client.ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nhonest").status
    });
    poll_until(DEADLINE, "the honest request is answered", || {
        for client in &mut slow {
            // Some are already closed.
            let _ = client.stream.send(b"x");
        }
        honest.is_finished()
    });
    assert_eq!(honest.join().unwrap(), 200);
    poll_until(DEADLINE, "all others are ended", || {
        weir.stderr().matches("408 body_too_slow").count() == SLOW
    });
}

#[test]
fn a_route_lets_uploads_trickle() {
    let upstream = counting();
    let weir = gateway(&upstream, "min_rate.request = 0", &format!("[min_rate]\n{STRICT}"));
    let mut client = Client::connect(weir.address(), None);
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n1");
    for byte in ["2", "3"] {
        let_a_window_pass(&weir);
        client.send(byte);
    }
    expect_length(&mut client, 3);
}

#[test]
fn a_server_that_takes_nothing_is_not_the_clients_fault() {
    let body = 2 * most_in_flight();
    let switch = Switch::default();
    let reads = switch.clone();
    let upstream = Upstream::start(None, move |peer: &mut Peer| {
        reads.wait();
        let length = peer.request().map_or(0, |request| request.body.len()).to_string();
        peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{length}", length.len()));
        peer.read_to_end();
    });
    let weir = gateway(&upstream, "", &format!("[min_rate]\n{STRICT}"));
    let mut client = Client::connect(weir.address(), None);
    let mut sending = Stream::over(client.stream.tcp().try_clone().unwrap(), None).unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let so_far = Arc::clone(&sent);
    let sender = std::thread::spawn(move || {
        sending
            .send(format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {body}\r\n\r\n").as_bytes())
            .unwrap();
        for _ in 0..body >> 16 {
            sending.send(&[b'x'; 1 << 16]).unwrap();
            so_far.fetch_add(1 << 16, Ordering::SeqCst);
        }
    });
    assert!(until_still(&sent) < body, "the server's reluctance reaches the client");
    let_a_window_pass(&weir);
    switch.throw();
    expect_length(&mut client, body);
    sender.join().unwrap();
}

#[test]
fn a_client_that_waits_to_be_told_is_not_slow_and_one_that_was_told_is() {
    let switch = Switch::default();
    let upstream = in_two_parts(&switch, "", "HTTP/1.1 100 Continue\r\n\r\n");
    let rest = format!("timeouts.body = '250ms'\n[min_rate]\n{STRICT}");
    let weir = gateway(&upstream, &rest, "");
    let mut client = Client::connect(weir.address(), None);
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    let_a_window_pass(&weir);
    switch.throw();
    assert_eq!(client.answer(Method::Post).status, 100);
    let answer = client.answer(Method::Post);
    assert!(answer.status == 408 && answer.text().contains("body_overdue"), "{}", answer.text());
    // After its 100 (Continue) the client must meet the minimum rate.
    let weir = gateway(&upstream, "", &format!("[min_rate]\n{STRICT}"));
    let mut client = Client::connect(weir.address(), None);
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.answer(Method::Post).status, 100);
    let answer = client.answer(Method::Post);
    assert!(answer.status == 408 && answer.text().contains("body_too_slow"), "{}", answer.text());
}

/// The client sends no more of its body, and the gateway does not require it.
#[test]
fn a_client_whose_request_was_refused_need_not_send_its_body() {
    let switch = Switch::default();
    let upstream =
        in_two_parts(&switch, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\r\nno", " no");
    let weir = gateway(&upstream, "timeouts.body = '250ms'", &format!("[min_rate]\n{STRICT}"));
    let mut client = Client::connect(weir.address(), None);
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n1");
    poll_until(DEADLINE, "the request is there", || upstream.received_bytes() > 0);
    let_a_window_pass(&weir);
    switch.throw();
    let answer = client.answer(Method::Post);
    assert_eq!((answer.status, answer.text()), (413, "no no"));
}

#[test]
fn the_time_in_the_queue_is_not_the_clients() {
    let switch = Switch::default();
    let held = switch.clone();
    let upstream = Upstream::start(None, move |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            held.wait();
            let body = request.body.len().to_string();
            peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        }
    });
    let config = configuration(&upstream, "request_buffer = '16KiB'", &format!("[min_rate]\n{STRICT}"));
    let weir = Weir::configured(&config.replace("[service.app]", "[service.app]\nmax_connections = 1"), 1);
    let mut first = Client::connect(weir.address(), None);
    first.send(GET);
    upstream.wait_for_requests(1);
    let mut second = Client::connect(weir.address(), None);
    second.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 16385\r\n\r\n");
    second.send(pattern(16384));
    poll_until(DEADLINE, "it waits", || metric(&weir, "weir_waiting_requests") == 1);
    let_a_window_pass(&weir);
    switch.throw();
    assert_eq!(first.answer(Method::Get).status, 200);
    // Waiting in the queue does not use up the client's window.
    second.send("x");
    expect_length(&mut second, 16385);
}

#[test]
fn a_body_has_a_time_in_all_and_leaves_no_deadline_behind() {
    for (route, rest) in [
        ("timeouts.body = '1s'", ""),
        ("", "[timeouts]\nbody = '1s'"),
        ("timeouts.body = '1s'\nrequest_buffer = '64KiB'", "[timeouts]\nbody = '1h'"),
    ] {
        let switch = Switch::default();
        let gate = switch.clone();
        let upstream = Upstream::start(None, move |peer: &mut Peer| {
            while let Some(request) = peer.request() {
                gate.wait();
                let body = request.body.len().to_string();
                peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
            }
        });
        let weir = gateway(&upstream, route, rest);
        let mut quick = Client::connect(weir.address(), None);
        quick.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n");
        quick.send("123");
        upstream.wait_for_requests(1);
        let mut client = Client::connect(weir.address(), None);
        client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
        trickle(&mut client, &mut std::iter::repeat(b'x'));
        let answer = client.answer(Method::Post);
        assert!(answer.status == 408 && answer.text().contains("body_overdue"), "{route}: {}", answer.text());
        switch.throw();
        expect_length(&mut quick, 3);
        // The next request on the connection has a new deadline.
        quick.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n1");
        quick.send("23");
        expect_length(&mut quick, 3);
    }
}

#[test]
fn a_slow_body_is_ended_in_a_drain_too() {
    let upstream = counting();
    let weir = gateway(&upstream, "", &format!("[min_rate]\n{STRICT}[timeouts]\ndrain = '1h'"));
    let mut client = Client::connect(weir.address(), None);
    client.send(LENGTH);
    poll_until(DEADLINE, "it is passed on", || upstream.connections() == 1);
    weir.terminate();
    trickle(&mut client, &mut std::iter::repeat(b'x'));
    assert_eq!(client.answer(Method::Post).status, 408);
    drop(client);
    let ended = weir.wait();
    assert!(ended.code == Some(0) && ended.stderr.contains("body_too_slow"), "{}", ended.stderr);
}
