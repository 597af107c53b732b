//! Runs without faults: loops, bodies and windows, TLS.

use super::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use weir_load::{Expect, RequestOptions, Schedule, sha256};
use weir_tls::issue::{Authority, KeyKind};
use weir_tls::{Acceptor, ServerSettings};

#[test]
fn both_sides_count_the_same_in_a_closed_loop() {
    let server = Server::start(Script::Respond, usual());
    let mut options = options(&server.url("http", "/bytes/1000"));
    options.workers = 2;
    let result = load(&options);
    let totals = server.stop();
    assert_good(&result);
    assert_eq!(result.validity, "valid");
    assert_eq!(totals.answers, result.answered_in_all);
    assert_eq!((totals.connections, result.connections_opened), (4 + TRIAL, 4));
    assert!(totals.peak <= 8, "{totals:?}");
    assert!(result.requests < result.answered_in_all, "the warm-up is cut off");
    assert!(result.bytes_received > 1000 * result.requests);
    let figures = figures(&result);
    assert_eq!((figures.refused, figures.retried, figures.stream_wait.count), (0, 0, 0));
    let settings: Vec<_> =
        figures.settings.iter().map(|one| (one.count, one.max_concurrent_streams)).collect();
    assert_eq!(settings, [(4, Some(100))]);
    assert_eq!((result.asked.http.as_str(), result.asked.streams, &result.warnings[..]), ("2", 8, &[][..]));
}

/// The engine obeys the server's limit: requests wait for a stream.
#[test]
fn a_limit_below_the_streams_is_obeyed_and_reported() {
    let limit = Settings { max_concurrent_streams: Some(2), ..Settings::default() };
    let server = Server::start(Script::Respond, config(limit));
    let result = load(&options(&server.url("http", "/bytes/10")));
    let totals = server.stop();
    assert_good(&result);
    assert_eq!((totals.peak, totals.answers), (2, result.answered_in_all));
    assert!(figures(&result).stream_wait.count > 0);
    let warned = result.warnings.iter().any(|warning| warning.contains("allows 2 streams per connection"));
    assert!(warned, "{:?}", result.warnings);
}

#[test]
fn an_open_loop_counts_from_the_planned_instant() {
    let server = Server::start(Script::Respond, usual());
    let mut options = options(&server.url("http", "/bytes/20000"));
    // A stream for each arrival: none waits, however late the responses are.
    options.streams = 100;
    options.schedule = Schedule::constant(200.0, options.phases.window);
    let result = load(&options);
    let pacer = result.pacer.clone().unwrap();
    assert_good(&result);
    assert_eq!((pacer.planned, pacer.sent, result.response.count), (100, 100, 100));

    // More than one stream can carry from the window's start on: a response takes tens of round trips.
    options.phases.warmup = Duration::ZERO;
    options.phases.window = Duration::from_secs(1);
    (options.connections, options.streams, options.stream_window) = (1, 1, 1000);
    options.schedule = Schedule::constant(5000.0, options.phases.window);
    let result = load(&options);
    server.stop();
    assert!(result.unsent.count > 0 && figures(&result).stream_wait.count > 0);
    assert!(result.response.mean_us > result.service.mean_us, "the wait counts");
}

#[test]
fn think_time_separates_requests() {
    let server = Server::start(Script::Respond, usual());
    let mut options = options(&server.url("http", "/bytes/10"));
    options.schedule = Schedule::Closed { think: Duration::from_secs(60) };
    options.phases.warmup = Duration::ZERO;
    let result = load(&options);
    let totals = server.stop();
    // The first uses, and the users whose first request is due within the window.
    assert!((32..=64).contains(&totals.answers), "{totals:?}");
    assert_eq!(result.errors, [].into());
}

/// Both directions wait for windows many times.
#[test]
fn bodies_pass_small_windows() {
    let server =
        Server::start(Script::Respond, config(Settings { initial_window_size: 100, ..Settings::default() }));
    let mut options = options(&server.url("http", "/echo"));
    (options.connections, options.stream_window) = (1, 1000);
    let digest = "f0e4c2f76c58916ec258f246851bea091d14d4247a2fc3e18694461b1816e13b";
    let request = &mut options.requests[0];
    request.body = Some(b"0123456789".repeat(300));
    request.expect = Expect { length: Some(3000), ..Expect::default() };
    let mut hashed = RequestOptions { path: "/hash".into(), body: Some(b"asdf".to_vec()), ..request.clone() };
    hashed.expect = Expect { sha256: Some(sha256(digest).unwrap()), ..Expect::default() };
    options.requests.push(hashed);
    let result = load(&options);
    let totals = server.stop();
    assert_good(&result);
    assert_eq!(totals.answers, result.answered_in_all);
    assert!(figures(&result).window_wait.count > 0, "{:?}", figures(&result));
}

#[test]
fn a_response_to_head_has_no_body() {
    let server = Server::start(Script::Respond, usual());
    let mut options = options(&server.url("http", "/bytes/10"));
    options.requests[0].method = Some("HEAD".into());
    let result = load(&options);
    assert_eq!(server.stop().answers, result.answered_in_all);
    assert_good(&result);
}

fn acceptor(authority: &Authority, alpn: &[&str]) -> Acceptor {
    let issued = authority.issue(&["127.0.0.1"], KeyKind::EcdsaP256).unwrap();
    let mut settings = ServerSettings::new(issued.identity());
    settings.alpn = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    weir_tls::Server::new(&settings).unwrap().core()
}

#[test]
fn over_tls_the_protocol_is_agreed_by_alpn() {
    let authority = Authority::new().unwrap();
    for (alpn, is_agreed) in [(&["http/1.1", "h2"][..], true), (&[], false), (&["http/1.1"], false)] {
        let server = Server::with(Script::Respond, usual(), Some(acceptor(&authority, alpn)));
        let mut options = options(&server.url("https", "/bytes/100"));
        options.tls.insecure = true;
        let outcome = run(&options, &mpsc::channel().1, |_| {});
        let totals = server.stop();
        if !is_agreed {
            let error = outcome.unwrap_err().to_string();
            assert!(error.contains("the server did not agree on h2 by ALPN; enable HTTP/2"), "{error}");
            continue;
        }
        let result = outcome.unwrap();
        assert_good(&result);
        assert_eq!(totals.answers, result.answered_in_all);
        assert_eq!((result.handshakes.full, result.asked.alpn), (4, vec!["h2".to_string()]));
        assert!(result.handshakes.negotiated.iter().all(|one| one.alpn.as_deref() == Some("h2")));
    }
}

#[test]
fn a_server_without_http2_is_named_before_the_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let plain = options(&format!("http://{}", listener.local_addr().unwrap()));
    let server = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        // Without unread bytes the close sends no RST; the client may have closed first.
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let error = run(&plain, &mpsc::channel().1, |_| {}).unwrap_err().to_string();
    server.join().unwrap();
    assert!(error.contains("responded with HTTP/1.1 to the preface of HTTP/2; use --http 1.1"), "{error}");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut silent = options(&format!("http://{}", listener.local_addr().unwrap()));
    silent.timeout = Duration::from_millis(1);
    let error = run(&silent, &mpsc::channel().1, |_| {}).unwrap_err().to_string();
    assert!(error.contains("no SETTINGS of HTTP/2 within 1s; enable HTTP/2"), "{error}");
}
