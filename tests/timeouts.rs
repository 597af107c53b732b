//! The effect of each deadline, and its message. The gateway gets short deadlines; the tests check events and their
//! order, never how soon they occur.

use crate::common::{self, Case, Certificates, DEADLINE, Ending, MODES, Peer, pattern, poll_until};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/// A time for deadlines that must expire.
const SOON: &str = "0.3";

/// Reads one request, sends no response, and waits for the close.
fn silent(peer: &mut Peer) {
    peer.request();
    peer.read_to_end();
}

/// Sends `bytes` one at a time until a response or a close arrives.
fn dribble_until(client: &mut common::Client, bytes: &mut impl Iterator<Item = u8>) {
    poll_until(DEADLINE, "a response or a close while bytes dribble in", || {
        if client.stream.has_news_within(Duration::from_millis(20)) {
            return true;
        }
        // The other side may have closed the connection; then its last bytes show why.
        bytes.next().is_none_or(|byte| client.stream.send(&[byte]).is_err())
    });
}

#[test]
fn an_incomplete_head_is_408() {
    for mode in MODES {
        let case = Case::new(mode, &["--head-timeout", SOON], |peer| peer.serve(OK));
        let mut client = case.client();
        client.send("GET / HTTP/1.1\r\nHost:");
        let answer = client.answer(Method::Get);
        assert_eq!((answer.status, answer.says_close()), (408, true), "{mode:?}");
        assert!(answer.text().contains("head_timeout"), "{mode:?}");
        client.expect_end();
        case.weir.wait_for_stderr(&["408", "head_timeout"]);
        assert_eq!(case.upstream.connections(), 0, "{mode:?}");
        case.stop();
    }
}

#[test]
fn slow_bytes_do_not_extend_the_deadline_of_a_head() {
    for mode in MODES {
        let case = Case::new(mode, &["--head-timeout", SOON], |peer| peer.serve(OK));
        let mut client = case.client();
        client.send("GET / HTTP/1.1\r\nX: ");
        dribble_until(&mut client, &mut std::iter::repeat(b'x'));
        assert_eq!(client.answer(Method::Get).status, 408, "{mode:?}");
        drop(client);
        case.stop();
    }
}

#[test]
fn the_second_head_of_a_connection_has_its_own_deadline() {
    let case = Case::new(MODES[0], &["--head-timeout", SOON], |peer| peer.serve(OK));
    let mut client = case.client();
    client.send(format!("{GET}GET / HT"));
    assert_eq!(client.answer(Method::Get).status, 200);
    assert_eq!(client.answer(Method::Get).status, 408);
    client.expect_end();
    case.stop();
}

#[test]
fn an_idle_connection_is_closed_without_a_response() {
    for mode in MODES {
        let case = Case::new(mode, &["--idle-timeout", SOON], |peer| peer.serve(OK));
        let mut fresh = case.client();
        fresh.expect_end();
        let mut used = case.client();
        assert_eq!(used.ask(GET).status, 200, "{mode:?}");
        used.expect_end();
        drop((fresh, used));
        let ended = case.stop();
        assert!(ended.stdout.contains("ended early: none"), "{mode:?}: {}", ended.stdout);
    }
}

#[test]
fn an_idle_pooled_connection_is_closed_cleanly() {
    for mode in MODES {
        let case = Case::new(mode, &["--pool-timeout", SOON], |peer| peer.serve(OK));
        let mut client = case.client();
        assert_eq!(client.ask(GET).status, 200, "{mode:?}");
        assert_eq!(case.upstream.wait_for_ending(0), Ending::Clean, "{mode:?}");
        assert_eq!(client.ask(GET).status, 200, "{mode:?}: over a new connection");
        drop(client);
        case.stop();
    }
}

#[test]
fn an_incomplete_handshake_is_aborted() {
    for mode in MODES.into_iter().filter(|mode| mode.client_tls) {
        let case = Case::new(mode, &["--head-timeout", SOON], |peer| peer.serve(OK));
        // No bytes, or only the first bytes of a record.
        for beginning in [&b""[..], &[22, 3, 1]] {
            let tcp = TcpStream::connect(case.weir.address()).unwrap();
            let mut stream = common::Stream::over(tcp, None).unwrap();
            stream.send(beginning).unwrap();
            let ending = stream.receive(&mut Vec::new());
            assert_eq!(ending, Some(Ending::Reset), "{mode:?}: nothing is left in TIME-WAIT");
        }
        case.weir.wait_for_stderr(&["handshake_timeout"]);
        assert_eq!(case.client().ask(GET).status, 200, "{mode:?}");
        case.stop();
    }
}

#[test]
fn a_silent_upstream_is_504() {
    for mode in MODES {
        let case = Case::new(mode, &["--response-timeout", SOON], silent);
        let mut client = case.client();
        let answer = client.ask(GET);
        assert_eq!((answer.status, answer.says_close()), (504, false), "{mode:?}");
        assert!(answer.text().contains("upstream_timeout"), "{mode:?}");
        case.weir.wait_for_stderr(&["504", "upstream_timeout", "GET /"]);
        case.upstream.wait_for_ending(0);
        case.stop();
    }
}

#[test]
fn interim_responses_do_not_extend_the_deadline_of_the_response() {
    for mode in MODES {
        let case = Case::new(mode, &["--response-timeout", SOON], |peer| {
            peer.request();
            // The maximum number, which takes longer than the deadline. After these, the gateway would find the
            // connection closed.
            for _ in 0..8 {
                if !peer.answer("HTTP/1.1 102 Processing\r\n\r\n")
                    || peer.stream.has_news_within(Duration::from_millis(100))
                {
                    break;
                }
            }
        });
        let mut client = case.client();
        client.send(GET);
        let answer = loop {
            let answer = client.answer(Method::Get);
            if answer.status != 102 {
                break answer;
            }
        };
        assert_eq!(answer.status, 504, "{mode:?}");
        drop(client);
        case.stop();
    }
}

#[test]
fn pipelined_requests_do_not_extend_the_deadline_of_the_response() {
    // Regression test: each read from the client restarted the upstream's deadline, although none of its bytes were for
    // the upstream.
    for mode in MODES {
        let case = Case::new(mode, &["--response-timeout", SOON], silent);
        let mut client = case.client();
        client.send(format!("{GET}GET / HTTP/1.1\r\nX: "));
        dribble_until(&mut client, &mut std::iter::repeat(b'x'));
        assert_eq!(client.answer(Method::Get).status, 504, "{mode:?}");
        drop(client);
        case.stop();
    }
}

#[test]
fn a_stalled_body_is_408_however_short_the_upstreams_timeout() {
    // Regression test: the deadline of the response started with the request's first byte instead of its last one, so a
    // client that paused within its body got an upstream timeout.
    for mode in MODES {
        let flags = ["--response-timeout", "0.1", "--stall-timeout", "0.6"];
        let case = Case::new(mode, &flags, silent);
        let mut client = case.client();
        client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf");
        let answer = client.answer(Method::Put);
        assert_eq!(answer.status, 408, "{mode:?} {}", answer.text());
        assert!(answer.text().contains("body_timeout"), "{mode:?}");
        client.expect_end();
        case.upstream.wait_for_ending(0);
        case.stop();
    }
}

#[test]
fn a_body_that_the_upstream_does_not_read_is_its_fault() {
    for mode in MODES.into_iter().filter(|mode| !mode.client_tls) {
        let case = Case::new(mode, &["--stall-timeout", SOON], |peer| {
            peer.head();
            // The peer neither reads nor responds until the gateway gives up.
            poll_until(DEADLINE, "the gateway to give up", || is_hung_up(peer.stream.tcp()));
        });
        let mut client = case.client();
        client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n");
        let tcp = client.stream.tcp().try_clone().unwrap();
        let sender = std::thread::spawn(move || {
            let mut stream = common::Stream::over(tcp, None).unwrap();
            // Sends until the gateway stops reading.
            while stream.send(&[b'x'; 1 << 16]).is_ok() {}
        });
        let answer = client.answer(Method::Put);
        assert_eq!((answer.status, answer.says_close()), (504, true), "{mode:?}: {}", answer.text());
        case.weir.wait_for_stderr(&["504 upstream_timeout", "PUT /"]);
        sender.join().unwrap();
        drop(client);
        case.stop();
    }
}

/// Whether the other side has reset or closed the connection.
fn is_hung_up(tcp: &TcpStream) -> bool {
    let mut fds = [rustix::event::PollFd::new(tcp, rustix::event::PollFlags::RDHUP)];
    rustix::event::poll(&mut fds, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
    !fds[0].revents().is_empty()
}

#[test]
fn an_upload_leaves_no_deadline_behind() {
    // Regression test: the deadline for a body's progress stayed armed after the body, and ended a working exchange.
    for mode in MODES {
        let flags = ["--stall-timeout", SOON, "--response-timeout", "20"];
        let (go_on, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let case = Case::new(mode, &flags, move |peer| {
            while peer.request().is_some() {
                gate.lock().unwrap().recv().unwrap();
                peer.answer(OK);
            }
        });
        let mut client = case.client();
        client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\nhalf");
        poll_until(DEADLINE, "half a body", || case.upstream.received(0).ends_with(b"half"));
        client.send("half");
        case.upstream.wait_for_requests(1);
        // Another client's body stalls after this one: by the time it times out, this one's deadline would have passed
        // as well.
        let mut other = case.client();
        other.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\nhalf");
        assert_eq!(other.answer(Method::Put).status, 408, "{mode:?}");
        go_on.send(()).unwrap();
        match client.next_answer(Method::Put) {
            Ok(answer) => assert_eq!(answer.text(), "ok", "{mode:?}"),
            Err(ending) => panic!("{mode:?} {ending:?}: {}", case.weir.stderr()),
        }
        drop((client, other));
        case.stop();
    }
}

#[test]
fn an_upstream_that_stalls_within_its_response_is_aborted() {
    for mode in MODES {
        for old in [false, true] {
            let case = Case::new(mode, &["--stall-timeout", SOON], |peer| {
                peer.request();
                peer.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
                peer.read_to_end();
            });
            let mut client = case.client();
            client.send(if old { "GET / HTTP/1.0\r\n\r\n" } else { GET });
            let answer = client.answer(Method::Get);
            assert_eq!((answer.body.as_slice(), answer.complete), (&b"hello"[..], false), "{mode:?} {old}");
            case.weir.wait_for_stderr(&["upstream_stalled", "GET /"]);
            case.upstream.wait_for_ending(0);
            drop(client);
            case.stop();
        }
    }
}

/// Writes a body of this length until the gateway closes the connection.
fn pour(length: usize) -> impl Fn(&mut Peer) + Send + Sync + 'static {
    move |peer| {
        peer.request();
        peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"));
        let piece = pattern(1 << 16);
        for _ in 0..length / piece.len() {
            if !peer.answer(&piece) {
                return;
            }
        }
    }
}

#[test]
fn a_client_that_stops_reading_is_aborted() {
    for mode in MODES {
        let case = Case::new(mode, &["--stall-timeout", SOON], pour(1 << 30));
        let mut client = case.client();
        client.send(GET);
        case.weir.wait_for_stderr(&["client_stalled", "GET /"]);
        let answer = client.answer(Method::Get);
        assert!(!answer.complete, "{mode:?}");
        assert!(!mode.client_tls || answer.ending != Some(Ending::Clean), "{mode:?}: a close_notify");
        drop(client);
        case.stop();
    }
}

#[test]
fn an_upstream_that_accepts_no_connections_is_504() {
    // A listener with a full queue drops connection attempts, so the connection is never established.
    let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let mut filling = Vec::new();
    while let Ok(tcp) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        filling.push(tcp);
        assert!(filling.len() < 64, "the queue never fills");
    }
    for mode in MODES {
        let certificates = Certificates::new();
        let weir = common::serve(mode, &certificates, address, &["--connect-timeout", SOON]);
        let session = mode.client_tls.then(|| certificates.session());
        let mut client = common::Client::connect(weir.address(), session);
        let answer = client.ask(GET);
        assert_eq!((answer.status, answer.says_close()), (504, false), "{mode:?}");
        assert!(answer.text().contains("upstream_connect_timeout"), "{mode:?}");
        drop(client);
        assert_eq!(weir.stop().code, Some(0), "{mode:?}");
    }
}

#[test]
fn an_upstream_that_does_not_complete_the_handshake_is_504() {
    for mode in MODES.into_iter().filter(|mode| mode.upstream_tls) {
        // The server accepts the connection and sends nothing.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let certificates = Certificates::new();
        let address = listener.local_addr().unwrap();
        let weir = common::serve(mode, &certificates, address, &["--connect-timeout", SOON]);
        let session = mode.client_tls.then(|| certificates.session());
        let mut client = common::Client::connect(weir.address(), session);
        let answer = client.ask(GET);
        assert_eq!(answer.status, 504, "{mode:?}");
        assert!(answer.text().contains("upstream_handshake_timeout"), "{mode:?}");
        drop(client);
        assert_eq!(weir.stop().code, Some(0), "{mode:?}");
    }
}

#[test]
fn an_upload_after_a_slow_connect_is_not_blamed_on_the_client() {
    // Once the upstream connection is established, the gateway waits for the client: the body's deadline applies, not
    // the connection's.
    for mode in MODES {
        let flags = ["--connect-timeout", SOON, "--response-timeout", SOON];
        let case = Case::new(mode, &flags, |peer| peer.serve(OK));
        let mut client = case.client();
        client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\nhalf");
        poll_until(DEADLINE, "half a body", || case.upstream.received(0).ends_with(b"half"));
        // Wait longer than both deadlines: anything that arrives within that time is an error.
        assert!(
            !client.stream.has_news_within(Duration::from_millis(700)),
            "{mode:?}: {}",
            case.weir.stderr()
        );
        client.send("half");
        assert_eq!(client.answer(Method::Put).text(), "ok", "{mode:?}");
        drop(client);
        case.stop();
    }
}
