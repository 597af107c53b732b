//! A request and its response in each of the four modes, and the fields and facts that TLS adds.

use crate::common::{Answer, Case, Client, DEADLINE, MODES, Stream, Upstream, Weir, pattern};
use std::io::{Read, Write};
use std::net::TcpStream;
use weir_http::Method;
use weir_tls::{HandshakeKind, PeerName};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn a_request_gets_a_response_and_both_connections_are_kept() {
    for mode in MODES {
        let case = Case::answering(mode, OK);
        let mut client = case.client();
        for _ in 0..3 {
            let answer = client.ask(GET);
            assert_eq!(
                (answer.status, answer.text(), answer.says_close()),
                (200, "hello", false),
                "{mode:?}"
            );
        }
        drop(client);
        assert_eq!((case.upstream.connections(), case.upstream.requests().len()), (1, 3), "{mode:?}");
        let ended = case.stop();
        assert!(ended.stdout.contains("served 3 requests on 1 connections"), "{mode:?}: {}", ended.stdout);
    }
}

#[test]
fn many_clients_at_once_are_all_served() {
    // More handshakes than the budget of one turn, and more connections than one turn accepts.
    for mode in MODES {
        for workers in ["1", "2"] {
            let case = Case::new(mode, &["--workers", workers], |peer| peer.serve(OK));
            let mut streams: Vec<TcpStream> =
                (0..150).map(|_| TcpStream::connect(case.weir.address()).unwrap()).collect();
            std::thread::scope(|scope| {
                for streams in streams.chunks_mut(50) {
                    let case = &case;
                    scope.spawn(move || {
                        for tcp in streams {
                            let session = mode.client_tls.then(|| case.certificates.session());
                            let stream = Stream::over(tcp.try_clone().unwrap(), session).unwrap();
                            assert_eq!(Client { stream }.ask(GET).text(), "hello", "{mode:?}");
                        }
                    });
                }
            });
            drop(streams);
            let ended = case.stop();
            assert!(
                ended.stdout.contains("served 150 requests on 150 connections"),
                "{mode:?}: {}",
                ended.stdout
            );
        }
    }
}

#[test]
fn a_returning_client_resumes_on_any_worker() {
    for mode in MODES.into_iter().filter(|mode| mode.client_tls) {
        let case = Case::new(mode, &["--workers", "2"], |peer| peer.serve(OK));
        let connector = case.certificates.client().core();
        let name: PeerName = "127.0.0.1".parse().unwrap();
        for round in 0..20 {
            let mut client = Client::connect(case.weir.address(), Some(connector.connect(&name)));
            // The ticket arrives with the response at the latest.
            assert_eq!(client.ask(GET).text(), "hello", "{mode:?}");
            let full = client.stream.session().unwrap().facts().unwrap().kind == HandshakeKind::Full;
            assert_eq!(full, round == 0, "{mode:?} {round}");
        }
        let ended = case.stop();
        assert!(ended.stdout.contains("(handshakes: 1 full, 19 "), "{mode:?}: {}", ended.stdout);
    }
}

/// Runs the handshake manually; returns the connection, its session, and the client's last flight, which is not sent
/// yet.
fn handshake_but_the_last_flight(case: &Case) -> (TcpStream, weir_tls::Session, Vec<u8>) {
    let mut tcp = TcpStream::connect(case.weir.address()).unwrap();
    tcp.set_read_timeout(Some(DEADLINE)).unwrap();
    let (mut session, mut flight) = (case.certificates.session(), Vec::new());
    session.receive(&mut [], &mut Vec::new(), &mut flight).unwrap();
    tcp.write_all(&flight).unwrap();
    flight.clear();
    while session.is_handshaking() {
        let mut bytes = vec![0; 1 << 16];
        let read = tcp.read(&mut bytes).unwrap();
        assert!(read > 0);
        session.receive(&mut bytes[..read], &mut Vec::new(), &mut flight).unwrap();
    }
    (tcp, session, flight)
}

/// Reads the response to a GET over a connection with a manual handshake.
fn answer(mut tcp: TcpStream, session: &mut weir_tls::Session) -> Answer {
    let mut plain = Vec::new();
    while !plain.ends_with(b"hello") {
        let mut bytes = vec![0; 1 << 16];
        let read = tcp.read(&mut bytes).unwrap();
        assert!(read > 0, "{:?}", String::from_utf8_lossy(&plain));
        session.receive(&mut bytes[..read], &mut plain, &mut Vec::new()).unwrap();
    }
    let head = String::from_utf8(plain[..plain.len() - 5].to_vec()).unwrap();
    Answer { status: 200, head, body: b"hello".to_vec(), raw_body: vec![], ending: None, complete: true }
}

#[test]
fn a_request_in_one_segment_with_the_end_of_the_handshake_is_answered() {
    for mode in MODES.into_iter().filter(|mode| mode.client_tls) {
        // All in one write, and one byte per write.
        for piece in [usize::MAX, 1] {
            let case = Case::answering(mode, OK);
            let (mut tcp, mut session, mut bytes) = handshake_but_the_last_flight(&case);
            assert!(!bytes.is_empty());
            session.send(GET.as_bytes(), &mut bytes).unwrap();
            tcp.set_nodelay(true).unwrap();
            for piece in bytes.chunks(piece) {
                tcp.write_all(piece).unwrap();
            }
            let answer = answer(tcp, &mut session);
            assert!(answer.head.starts_with("HTTP/1.1 200 OK\r\n"), "{mode:?} {piece}: {}", answer.head);
            case.stop();
        }
    }
}

#[test]
fn the_end_of_the_handshake_a_request_and_a_close_notify_in_one_segment() {
    for mode in MODES.into_iter().filter(|mode| mode.client_tls) {
        let case = Case::answering(mode, OK);
        let (mut tcp, mut session, mut bytes) = handshake_but_the_last_flight(&case);
        session.send(GET.as_bytes(), &mut bytes).unwrap();
        session.close(&mut bytes);
        tcp.write_all(&bytes).unwrap();
        // A client that closes its side has given up, so nothing more arrives.
        tcp.read_to_end(&mut Vec::new()).unwrap();
        let ended = case.stop();
        assert!(ended.stdout.contains("ended early: 1 client_closed"), "{mode:?}: {}", ended.stdout);
    }
}

#[test]
fn either_version_of_tls_on_both_sides() {
    for mode in MODES.into_iter().filter(|mode| mode.client_tls || mode.upstream_tls) {
        for version in ["1.2", "1.3"] {
            let case = Case::new(mode, &["--tls", version], |peer| {
                while let Some(request) = peer.request() {
                    peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request.body.len()));
                    peer.answer(&request.body);
                }
            });
            let mut client = case.client();
            if let Some(session) = client.stream.session() {
                assert!(session.facts().unwrap().to_string().contains(version), "{mode:?} {version}");
            }
            let body = pattern(300_000);
            client.send(format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len()));
            client.send(&body);
            assert!(client.answer(Method::Put).body == body, "{mode:?} {version}");
            drop(client);
            case.stop();
        }
    }
}

#[test]
fn a_gateway_may_have_more_listeners_than_a_word_has_bits() {
    // Regression test: ready listeners were bits of one word, without room for the 65th.
    let upstream = Upstream::start(None, |peer| peer.serve(OK));
    let to = format!("http://{}", upstream.address);
    let mut args = vec!["serve", "--to", &to, "--workers", "1"];
    args.extend(["--listen", "http://127.0.0.1:0"].repeat(70));
    let weir = Weir::start(&args);
    for index in [0, 63, 64, 69] {
        let mut client = Client::connect(weir.address_of(index), None);
        assert_eq!(client.ask(GET).text(), "hello", "listener {index}");
    }
    assert_eq!(weir.stop().code, Some(0));
}
