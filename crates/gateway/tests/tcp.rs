//! Listeners with `tcp`: a worker relays bytes between clients and servers of a protocol other than HTTP, over the
//! kernel's sockets.

use serde_json::Value;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use weir_gateway::Config;
use weir_gateway::harness::{Bound, LeakCheck, Role, WorkerHarness};
use weir_reactor::stop::Stop;
use weir_reactor::{Listener, Reactor};
use weir_tls::issue::{KeyKind, issue};
use weir_tls::{ClientSettings, PeerName, Roots, ServerSettings};

/// The timeout of each wait in these tests.
const DEADLINE: Duration = Duration::from_secs(60);

const PROXY: &str = "PROXY TCP4 192.0.2.7 198.51.100.1 4711 5432\r\n";

/// A gateway with one worker, which runs in its own thread and has a TCP listener.
struct Gateway {
    address: SocketAddr,
    /// The address of another listener. A connection to it ends the worker's wait for events.
    wake: SocketAddr,
    is_over: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    thread: JoinHandle<LeakCheck>,
}

/// The lines on stderr and of the access log.
#[derive(Debug, Default)]
struct Seen {
    errors: Vec<String>,
    requests: Vec<Value>,
}

/// TLS settings that the tests pass directly instead of in files.
#[derive(Default)]
struct Tls {
    server: Option<weir_tls::Server>,
    client: Option<(weir_tls::Client, PeerName)>,
}

impl Gateway {
    /// A gateway whose listener and service have these further keys.
    fn new(listener: &str, service: &str) -> Self {
        Self::with_tls(listener, service, Tls::default())
    }

    fn with_tls(listener: &str, service: &str, tls: Tls) -> Self {
        let text = format!(
            "[listener.db]\nbind = '127.0.0.1:0'\ntcp.service = 'db'\n{listener}\n[service.db]\n{service}\n\
             [listener.wake]\nbind = '127.0.0.1:0'\n"
        );
        let config: Config = toml::from_str(&text).unwrap();
        let bound = Bound::new(Role::Gateway, &config, tls.server, tls.client).unwrap();
        let (is_over, seen) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Seen>>::default());
        let (ends, all_seen) = (Arc::clone(&is_over), Arc::clone(&seen));
        let (listening, addresses) = channel();
        let thread = thread::spawn(move || {
            let bind = || Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), 1).unwrap().remove(0);
            let listeners = vec![bind(), bind()];
            let addresses: Vec<_> = listeners.iter().map(|listener| listener.address().tcp()).collect();
            listening.send(addresses).unwrap();
            let mut worker =
                WorkerHarness::new(Reactor::new().unwrap(), bound, listeners).unwrap().logging_requests();
            let mut is_stopping = false;
            while !worker.is_drained() {
                worker.turn().unwrap();
                let mut seen = all_seen.lock().unwrap();
                seen.errors.extend(worker.lines());
                seen.requests.extend(
                    worker.requests().iter().map(|line| serde_json::from_str::<Value>(line).unwrap()),
                );
                drop(seen);
                if ends.load(Ordering::SeqCst) && !is_stopping {
                    worker.stop(Stop::Drain);
                    is_stopping = true;
                }
            }
            worker.leak_check()
        });
        let addresses: Vec<_> = addresses.recv().unwrap().into_iter().map(Option::unwrap).collect();
        Self { address: addresses[0], wake: addresses[1], is_over, seen, thread }
    }

    fn connect(&self) -> TcpStream {
        patient(TcpStream::connect(self.address).unwrap())
    }

    /// Waits until the access log has `count` lines, and returns them. Panics if there are more.
    fn requests(&self, count: usize) -> Vec<Value> {
        let found = || Some(self.seen.lock().unwrap().requests.clone()).filter(|found| found.len() >= count);
        let found = wait_for("lines in the access log", found);
        assert_eq!(found.len(), count, "{found:?}");
        found
    }

    /// Waits for a line on stderr that contains all of these parts, and returns the first.
    fn error(&self, parts: &[&str]) -> String {
        wait_for(&format!("a line with {parts:?}"), || {
            let seen = self.seen.lock().unwrap();
            seen.errors.iter().find(|line| parts.iter().all(|part| line.contains(part))).cloned()
        })
    }

    /// Asks the worker to drain, and opens a connection to wake it.
    fn drain(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.wake));
    }

    /// Stops the worker, and checks that it has released all resources.
    fn stop(self) {
        self.drain();
        let left = self.thread.join().unwrap();
        assert_eq!(left, LeakCheck::default());
    }
}

fn wait_for<T>(what: &str, found: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "there are no {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// Starts a server that serves each connection in its own thread, and returns the address.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(patient(stream.unwrap())));
        }
    });
    address
}

/// Starts a server that greets each client and then echoes everything that the client sends.
fn echo() -> SocketAddr {
    server(|mut stream| {
        stream.write_all(b"220 ready\r\n").unwrap();
        let mut all = Vec::new();
        if stream.read_to_end(&mut all).is_ok() {
            stream.write_all(&all).unwrap();
        }
    })
}

/// An address at which no process listens.
fn nowhere() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn servers(addresses: &[SocketAddr]) -> String {
    let servers: Vec<_> = addresses.iter().map(|address| format!("'tcp://{address}'")).collect();
    format!("servers = [{}]\n", servers.join(", "))
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

/// Sends `bytes`, closes the sending side, and returns all received bytes.
fn exchange(mut client: TcpStream, bytes: &[u8]) -> Vec<u8> {
    // Sends in another thread: a sender that does not read could block, since both directions fill their buffers.
    let mut sender = client.try_clone().unwrap();
    let bytes = bytes.to_vec();
    let sending = thread::spawn(move || {
        sender.write_all(&bytes).unwrap();
        sender.shutdown(Shutdown::Write).unwrap();
    });
    let mut all = Vec::new();
    client.read_to_end(&mut all).unwrap();
    sending.join().unwrap();
    all
}

#[track_caller]
fn expect_reset(mut client: TcpStream) {
    let mut all = Vec::new();
    let error = client.read_to_end(&mut all).expect_err("a reset");
    assert_eq!((error.kind(), all.len()), (ErrorKind::ConnectionReset, 0));
}

#[test]
fn bytes_pass_both_ways_until_both_sides_have_ended() {
    let (server, length) = (echo(), 3_000_000);
    let gateway = Gateway::new("", &servers(&[server]));
    let bytes = pattern(length);
    let all = exchange(gateway.connect(), &bytes);
    assert!(all == [b"220 ready\r\n", &bytes[..]].concat(), "{} bytes", all.len());
    let line = &gateway.requests(1)[0];
    for (field, value) in [
        ("protocol", Value::from("TCP")),
        ("listener", "db".into()),
        ("service", "db".into()),
        ("server", server.to_string().into()),
        ("client", "127.0.0.1".into()),
        ("received", length.into()),
        ("sent", (length + 11).into()),
        ("retries", 0.into()),
        ("status", 0.into()),
        ("reason", Value::Null),
        ("method", Value::Null),
    ] {
        assert_eq!(line[field], value, "{field} in {line}");
    }
    assert!(line["connect_ms"].is_number() && line["total_ms"].is_number(), "{line}");
    assert_eq!(gateway.seen.lock().unwrap().errors, [""; 0]);
    gateway.stop();
}

#[test]
fn a_client_that_is_silent_hears_its_server() {
    let gateway = Gateway::new("", &servers(&[echo()]));
    let mut greeting = [0; 11];
    gateway.connect().read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"220 ready\r\n");
    gateway.stop();
}

#[test]
fn a_connection_that_a_server_refuses_goes_to_another() {
    let (refusing, there) = ([nowhere(), nowhere()], echo());
    let gateway = Gateway::new("", &servers(&[refusing[0], refusing[1], there]));
    for _ in 0..6 {
        assert_eq!(exchange(gateway.connect(), b"hello"), b"220 ready\r\nhello");
    }
    let lines = gateway.requests(6);
    assert!(lines.iter().all(|line| line["server"] == there.to_string() && line["reason"].is_null()));
    assert_eq!(lines[0]["retries"], 2, "{lines:?}");
    // A retry does not count the client's bytes again.
    assert!(lines.iter().all(|line| line["received"] == 5), "{lines:?}");
    gateway.stop();
}

#[test]
fn a_server_that_accepts_no_connections_is_ejected() {
    let (refusing, there) = (nowhere(), echo());
    let gateway =
        Gateway::new("", &format!("{}eject = {{ failures = 2, for = '1h' }}", servers(&[refusing, there])));
    for _ in 0..12 {
        assert_eq!(exchange(gateway.connect(), b"hello"), b"220 ready\r\nhello");
    }
    gateway.error(&["db: tcp://", &refusing.to_string(), "keeps failing"]);
    let retries: u64 = gateway.requests(12).iter().map(|line| line["retries"].as_u64().unwrap()).sum();
    assert_eq!(retries, 2);
    gateway.stop();
}

#[test]
fn a_connection_without_a_server_is_reset() {
    let gateway = Gateway::new("", &servers(&[nowhere(), nowhere()]));
    expect_reset(gateway.connect());
    let line = &gateway.requests(1)[0];
    assert_eq!((&line["reason"], &line["retries"]), (&"upstream_connect".into(), &1.into()), "{line}");
    let error = gateway.error(&["weir: 502 upstream_connect", "service=\"db\"", "server=\"127.0.0.1:"]);
    assert!(error.contains("Connection refused") && !error.contains("request="), "{error}");
    gateway.stop();
}

#[test]
fn connections_beyond_those_of_the_servers_are_reset() {
    let gateway = Gateway::new("", &format!("{}max_connections = 1", servers(&[echo()])));
    let mut first = gateway.connect();
    let mut greeting = [0; 11];
    first.read_exact(&mut greeting).unwrap();
    expect_reset(gateway.connect());
    assert_eq!(gateway.requests(1)[0]["reason"], "queue_full");
    assert_eq!(exchange(first, b"a"), b"a");
    gateway.requests(2);
    assert_eq!(exchange(gateway.connect(), b"b"), b"220 ready\r\nb");
    gateway.stop();
}

#[test]
fn the_client_is_named_by_both_proxy_headers() {
    let server = server(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all).unwrap();
    });
    let service = format!("{}proxy_protocol = 'v1'", servers(&[server]));
    let gateway = Gateway::new("proxy_protocol = '127.0.0.1'\nallow = '192.0.2.7'", &service);
    let received = exchange(gateway.connect(), format!("{PROXY}hello").as_bytes());
    assert_eq!(String::from_utf8_lossy(&received), format!("{PROXY}hello"));
    let line = &gateway.requests(1)[0];
    assert_eq!((&line["client"], &line["received"]), (&"192.0.2.7".into(), &5.into()), "{line}");
    // Regression test: the log contained the first bytes of another protocol, which may be a password.
    let mut stranger = gateway.connect();
    stranger.write_all(b"AUTH secret\r\n").unwrap();
    let error = gateway.error(&["bad_proxy_header"]);
    assert!(!error.contains("secret"), "{error}");
    let denied = gateway.connect();
    (&denied).write_all(PROXY.replace("192.0.2.7", "192.0.2.8").as_bytes()).unwrap();
    gateway.error(&["client_denied", "client=192.0.2.8:4711"]);
    gateway.stop();
}

#[test]
fn a_silent_connection_ends_after_its_own_timeout() {
    let gateway = Gateway::new("tcp.idle = '50ms'", &servers(&[server(|stream| wait_for_end(&stream))]));
    expect_reset(gateway.connect());
    assert_eq!(gateway.requests(1)[0]["reason"], "tunnel_idle");
    gateway.error(&["tunnel_idle", "service=\"db\"", "server=\"127.0.0.1:"]);
    gateway.stop();
}

#[test]
fn a_drain_ends_silent_connections() {
    let gateway = Gateway::new("", &servers(&[server(|stream| wait_for_end(&stream))]));
    let client = gateway.connect();
    (&client).write_all(b"hello").unwrap();
    gateway.stop();
    expect_reset(client);
}

#[test]
fn a_side_that_is_cut_off_resets_the_other() {
    let gateway = Gateway::new(
        "",
        &servers(&[server(|mut stream| {
            // Closing with unread bytes makes the kernel send a reset.
            stream.read_exact(&mut [0]).unwrap();
        })]),
    );
    let client = gateway.connect();
    (&client).write_all(b"hello").unwrap();
    expect_reset(client);
    assert_eq!(gateway.requests(1)[0]["reason"], "upstream_truncated");
    gateway.stop();
}

/// The first gateway originates TLS to the second, which terminates it; the client and the server use cleartext.
#[test]
fn tls_is_originated_and_terminated() {
    let issued = issue(&["db.example"], KeyKind::EcdsaP256).unwrap();
    let server = weir_tls::Server::new(&ServerSettings::new(issued.identity())).unwrap();
    let settings = ClientSettings { roots: Roots::DangerouslyNone, ..ClientSettings::default() };
    let client = (weir_tls::Client::new(&settings).unwrap(), "db.example".parse().unwrap());
    let bytes = pattern(300_000);
    for announced in [false, true] {
        let [from, to] =
            if announced { ["proxy_protocol = 'v2'", "proxy_protocol = '127.0.0.1'"] } else { [""; 2] };
        let tls = Tls { server: Some(server.clone()), ..Tls::default() };
        let second = Gateway::with_tls(to, &servers(&[echo()]), tls);
        let tls = Tls { client: Some(client.clone()), ..Tls::default() };
        let first = Gateway::with_tls("", &format!("{}{from}", servers(&[nowhere(), second.address])), tls);
        for _ in 0..2 {
            let all = exchange(first.connect(), &bytes);
            assert!(all == [b"220 ready\r\n", &bytes[..]].concat(), "{} bytes", all.len());
        }
        for line in second.requests(2) {
            assert_eq!((&line["received"], &line["reason"]), (&300_000.into(), &Value::Null), "{line}");
            assert!(line["tls_version"].is_string() && line["protocol"] == "TCP", "{line}");
        }
        for line in first.requests(2) {
            assert!(line["tls_ms"].is_number() && line["tls_version"].is_null(), "{line}");
        }
        // For a client without TLS, the gateway opens no connection to the server, and sends no HTTP response.
        if !announced {
            let mut plain = second.connect();
            plain.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
            let mut all = Vec::new();
            let _ = plain.read_to_end(&mut all);
            assert!(!all.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&all));
            second.error(&["not_tls"]);
        }
        first.stop();
        second.stop();
    }
}

/// Waits until the other side has closed.
fn wait_for_end(mut stream: &TcpStream) {
    let _ = stream.read_to_end(&mut Vec::new());
}
