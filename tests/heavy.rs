//! Many connections, slow connections, and draining under load.

use crate::common::{
    self, Certificates, Client, Ended, MODES, Mode, Stream, Weir, origin, poll_until, serve,
};
use socket2::{Domain, Socket, Type};
use std::io::Read;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use weir_http::Method;
use weir_reactor::limits::raise_open_files;

const MIB: u64 = 1024;

#[test]
fn ten_thousand_idle_clients_while_requests_flow() {
    // An idle cleartext connection holds no buffer.
    idle_clients(MODES[0], 10_000, 2);
}

#[test]
fn a_thousand_idle_tls_clients_while_requests_flow() {
    // Most of it is the TLS library's state.
    idle_clients(MODES[3], 1000, 16);
}

/// Holds idle connections after one response each, meanwhile serves other clients, and then serves each of these again.
fn idle_clients(mode: Mode, wanted: usize, kib_each: u64) {
    // The gateway has the same limit as this process; both need some files for other purposes.
    let limit = raise_open_files().unwrap().unwrap_or(u64::MAX);
    let count = wanted.min(usize::try_from(limit.saturating_sub(500)).unwrap_or(wanted));
    if count < wanted {
        println!("only {count} connections of {wanted}: the limit of open files is {limit}");
    }
    let certificates = Certificates::new();
    let origin = origin(mode.upstream_tls, &certificates);
    let weir = serve(mode, &certificates, origin.address(), &["--idle-timeout", "600"]);
    let tls = certificates.client();
    let before = weir.memory_kib("VmRSS");
    let mut clients: Vec<Client> = (0..count)
        .map(|index| {
            // A source address has fewer ports than there are clients.
            let tcp = connect_from([127, 0, 0, 2 + (index % 4) as u8], weir.address());
            let session = mode.client_tls.then(|| tls.core().connect(&"127.0.0.1".parse().unwrap()));
            let mut client = Client { stream: Stream::over(tcp.into(), session).unwrap() };
            assert_eq!(client.ask(SMALL).status, 200);
            client
        })
        .collect();
    let held = weir.memory_kib("VmRSS") - before;
    println!("{}: {count} idle clients, RSS {before} KiB + {held} KiB", mode.name);
    assert!(held < 8 * MIB + kib_each * count as u64, "{held} KiB for {count} idle clients");

    let url = format!("{}/bytes/1000", weir.urls[0]);
    let flow = Weir::run(&["load", &url, "-k", "-c", "16", "-d", "1s", "--warmup", "100ms", "--json", "-"]);
    let flow = result(&flow);
    assert!(flow["requests"].as_u64().unwrap() > 0 && errors(&flow).is_empty(), "{flow}");

    for client in &mut clients {
        assert_eq!(client.ask(SMALL).text(), "0123456789");
    }
    drop(clients);
    let ended = weir.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("ended early: none"), "{}", ended.stdout);
}

#[test]
fn slow_readers_of_large_responses_need_little_memory() {
    slow_readers(MODES[0]);
}

#[test]
fn slow_readers_over_tls_need_little_memory() {
    slow_readers(MODES[3]);
}

/// A hundred clients read a kilobyte per second of a hundred megabytes each.
fn slow_readers(mode: Mode) {
    let certificates = Certificates::new();
    let origin = origin(mode.upstream_tls, &certificates);
    let weir = serve(mode, &certificates, origin.address(), &[]);
    let tls = certificates.client();
    let clients: Vec<Stream> = (0..100)
        .map(|_| {
            let session = mode.client_tls.then(|| tls.core().connect(&"127.0.0.1".parse().unwrap()));
            let mut stream = Stream::connect(weir.address(), session).unwrap();
            stream.send(b"GET /bytes/100000000 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            stream
        })
        .collect();
    let mut kilobyte = [0; 1024];
    let begin = Instant::now();
    for second in 1..=6 {
        for client in &clients {
            // From the socket: only the speed of reading matters, not the content.
            let read = client.tcp().read_exact(&mut kilobyte);
            read.unwrap_or_else(|error| panic!("{error} in second {second}: {}", weir.stderr()));
        }
        thread::sleep((begin + Duration::from_secs(second)).saturating_duration_since(Instant::now()));
    }
    let peak = weir.memory_kib("VmHWM");
    println!("{}: 100 slow readers, peak RSS {peak} KiB", mode.name);
    assert!(peak < 64 * MIB, "{peak} KiB");
    // The gateway closed none of them, and still serves another client.
    assert_eq!(weir.stderr(), "");
    let session = mode.client_tls.then(|| tls.core().connect(&"127.0.0.1".parse().unwrap()));
    let mut other = Client::connect(weir.address(), session);
    let answer = other.ask("GET /bytes/1000000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!((answer.status, answer.body.len()), (200, 1_000_000));
}

#[test]
fn a_drain_under_load_loses_nothing_h1c_h1c() {
    drain_under_load(MODES[0]);
}

#[test]
fn a_drain_under_load_loses_nothing_h1_h1() {
    drain_under_load(MODES[3]);
}

/// A lost request was sent completely and has no complete response. Clients do not retry. Half of the clients keep
/// their connection as long as the gateway allows, the others open one per request, and every fourth response is still
/// pending at the origin when the drain begins.
fn drain_under_load(mode: Mode) {
    for round in 0..5 {
        let certificates = Certificates::new();
        let origin = origin(mode.upstream_tls, &certificates);
        let weir = serve(mode, &certificates, origin.address(), &["--workers", "2"]);
        let tls = certificates.client();
        let (address, sent, answered) = (weir.address(), AtomicU64::new(0), AtomicU64::new(0));
        let connect = || {
            let session = mode.client_tls.then(|| tls.core().connect(&"127.0.0.1".parse().unwrap()));
            Stream::connect(address, session).ok().map(|stream| Client { stream })
        };
        let ended = thread::scope(|scope| {
            for number in 0..32 {
                let (connect, sent, answered) = (&connect, &sent, &answered);
                let request = if number % 4 == 0 { SLOW } else { SMALL };
                scope.spawn(move || {
                    while let Some(mut client) = connect() {
                        let mut goes_on = true;
                        while goes_on && client.stream.send(request.as_bytes()).is_ok() {
                            sent.fetch_add(1, Ordering::Relaxed);
                            let Ok(answer) = client.next_answer(Method::Get) else { break };
                            assert_eq!((answer.status, answer.complete), (200, true), "{}", answer.head);
                            answered.fetch_add(1, Ordering::Relaxed);
                            goes_on = number % 2 == 0 && !answer.says_close();
                        }
                    }
                });
            }
            poll_until(common::DEADLINE, "the load flows", || answered.load(Ordering::Relaxed) > 400);
            weir.stop()
        });
        let (sent, answered) = (sent.into_inner(), answered.into_inner());
        println!("{} round {round}: {sent} requests, {answered} responses", mode.name);
        assert_eq!((ended.code, sent - answered), (Some(0), 0), "lost requests: {}", ended.stderr);
        let counted = origin.stop().stdout;
        let expected = format!("served {answered} requests ({answered} answers complete, 0 refused)");
        assert!(counted.contains(&expected), "{counted}, expected {expected}");
    }
}

/// The same with Weir's own load engine, which reports a lost request as an error other than a refused connection.
#[test]
fn a_drain_under_weir_load_loses_nothing() {
    let mode = MODES[1];
    let certificates = Certificates::new();
    let origin = origin(mode.upstream_tls, &certificates);
    let weir = serve(mode, &certificates, origin.address(), &["--workers", "2"]);
    let url = format!("{}/bytes/1000", weir.urls[0]);
    let load = Weir::spawn(&["load", &url, "-k", "-c", "64", "-d", "2s", "--warmup", "0s", "--json", "-"]);
    let mut probe = Client::connect(origin.address(), None);
    let mut seen = 0;
    poll_until(common::DEADLINE, "the load flows", || {
        let stats = probe.ask("GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n");
        seen += 1;
        let stats: serde_json::Value = serde_json::from_str(stats.text()).unwrap();
        stats["answers"].as_u64().unwrap() > 1000
    });
    assert_eq!(weir.stop().code, Some(0));
    let load = load.wait();
    // Refused connections are no evidence.
    assert_eq!(load.code, Some(3), "{}", load.stderr);
    let load: serde_json::Value = serde_json::from_str(&load.stdout).unwrap();
    let lost: Vec<_> = errors(&load).into_iter().filter(|(class, _)| class != "connect_refused").collect();
    assert!(lost.is_empty(), "{lost:?} of {load}");
    let stats = probe.ask("GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let stats: serde_json::Value = serde_json::from_str(stats.text()).unwrap();
    assert_eq!(stats["answers"].as_u64().unwrap() - seen, load["answered_in_all"].as_u64().unwrap());
}

const SMALL: &str = "GET /bytes/10 HTTP/1.1\r\nHost: localhost\r\n\r\n";
const SLOW: &str = "GET /bytes/10?delay_ms=200 HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn connect_from(source: [u8; 4], to: SocketAddr) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((source, 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket
}

/// The result printed by `weir load --json -`.
fn result(ended: &Ended) -> serde_json::Value {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// The classes of errors that occurred.
fn errors(result: &serde_json::Value) -> Vec<(String, u64)> {
    let errors = result["errors"].as_object().unwrap().iter();
    errors.map(|(class, count)| (class.clone(), count.as_u64().unwrap())).filter(|(_, n)| *n > 0).collect()
}
