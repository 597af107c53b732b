//! The engine against the test server, both in this process, on loopback.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use weir_load::result::LoadResult;
use weir_load::{Expect, Options, PerConnection, Schedule, run};
use weir_origin::{Handle, Origin, Settings, Totals};

/// Connections and handshakes of each run's trial.
const TRIAL: u64 = 1;

/// A running test server with a cleartext and a TLS listener.
struct Server {
    handle: Handle,
    ca: std::path::PathBuf,
    http: String,
    https: String,
    thread: JoinHandle<Totals>,
}

impl Server {
    fn start(workers: usize) -> Self {
        let listen = ["http://127.0.0.1:0", "https://127.0.0.1:0"].map(|url| url.parse().unwrap());
        let settings = Settings { listen: listen.to_vec(), workers: Some(workers), ..Settings::default() };
        let origin = Origin::bind(&settings).unwrap();
        let urls: Vec<String> = origin.endpoints().map(ToString::to_string).collect();
        let ca = origin.ca_file().unwrap();
        let handle = origin.handle();
        let thread = thread::spawn(move || origin.run().unwrap());
        Self { handle, ca, http: urls[0].clone(), https: urls[1].clone(), thread }
    }

    fn stop(self) -> Totals {
        self.handle.drain();
        self.thread.join().unwrap()
    }
}

fn options(url: &str) -> Options {
    let mut options = Options::new(url.parse().unwrap());
    options.connections = 8;
    options.phases.window = Duration::from_millis(300);
    options.phases.warmup = Duration::from_millis(50);
    options
}

fn load(options: &Options) -> LoadResult {
    run(options, &mpsc::channel().1, |_| {}).unwrap()
}

/// A new connection after `number` requests.
fn requests(number: u64) -> PerConnection {
    PerConnection::Requests { least: number, most: number }
}

/// Asserts the properties of every valid run.
fn assert_good(result: &LoadResult) {
    assert_eq!(result.errors, [].into(), "{:?}", result.error_examples);
    assert!(result.requests > 0 && result.error_ratio == 0.0);
    assert!(result.engine.cost.cpu_us > 0.0);
}

#[test]
fn both_sides_count_the_same_in_a_closed_loop() {
    let server = Server::start(2);
    let mut options = options(&format!("{}/bytes/1000", server.http));
    options.workers = 2;
    let result = load(&options);
    assert_good(&result);
    let totals = server.stop();
    assert_eq!((totals.requests, totals.answers), (result.answered_in_all, result.answered_in_all));
    assert_eq!((totals.connections, result.connections_opened), (8 + TRIAL, 8));
    assert_eq!(totals.bytes_sent, 1000 * result.answered_in_all);
    assert!(result.requests < result.answered_in_all, "the warm-up is cut off");
    assert!(result.bytes_received > 1000 * result.requests && result.response.count > 0);
    assert_eq!(result.response, result.service);
    assert_eq!(result.handshakes.full, 0);
}

#[test]
fn both_sides_count_the_same_handshakes() {
    let server = Server::start(1);
    let mut options = options(&format!("{}/bytes/100?chunked=1", server.https));
    options.tls.ca = Some(server.ca.clone());
    options.tls.versions = Some(vec!["1.3".parse().unwrap()]);
    options.tls.groups = vec!["x25519".parse().unwrap()];
    let kept = load(&options);
    assert_good(&kept);
    assert_eq!((kept.handshakes.full, kept.connections_opened), (8, 8));

    options.policy.per_connection = requests(1);
    let new = load(&options);
    assert_good(&new);
    assert!(new.handshakes.full >= new.answered_in_all && new.handshakes.in_window > 0);
    assert_eq!(new.handshakes.resumed, [].into(), "nothing was offered");
    let negotiated = "1.3 aes128-gcm-sha256 x25519 ecdsa-p256-sha256 full chain=1/";
    let shown: Vec<String> = new.handshakes.negotiated.iter().map(ToString::to_string).collect();
    assert!(matches!(&shown[..], [only] if only.starts_with(negotiated)), "{shown:?}");

    options.policy.resume = 100.0;
    let resumed = load(&options);
    assert_good(&resumed);
    assert!(resumed.handshakes.resumed["resume-1.3-psk"] > resumed.handshakes.full);

    let totals = server.stop();
    let all = |f: fn(&LoadResult) -> u64| [&kept, &new, &resumed].map(f).iter().sum::<u64>();
    assert_eq!(totals.requests, all(|r| r.answered_in_all));
    assert_eq!(totals.handshakes_full, all(|r| r.handshakes.full + TRIAL));
    assert_eq!(totals.handshakes_resumed(), all(|r| r.handshakes.resumed.values().sum()));
}

/// Regression test: a gateway dials its upstream at the first request of each connection. In a short run those
/// handshakes fell into the window, or the window had no responses at all.
#[test]
fn every_keep_alive_connection_has_a_request_before_the_warm_up() {
    let server = Server::start(1);
    let mut options = options(&format!("{}/?delay_ms=20", server.http));
    options.phases.warmup = Duration::ZERO;
    options.phases.window = Duration::from_millis(10);
    options.schedule = Schedule::constant(1.0, options.phases.window);
    let result = load(&options);
    // The one arrival of the schedule may or may not get its response.
    assert!((8..=9).contains(&result.answered_in_all), "{} answered", result.answered_in_all);
    assert!(server.stop().answers >= 8);
}

#[test]
fn a_connection_closes_after_its_requests() {
    let server = Server::start(1);
    let mut options = options(&format!("{}/", server.http));
    options.policy.per_connection = requests(10);
    let result = load(&options);
    assert_good(&result);
    let totals = server.stop();
    assert_eq!(totals.requests, result.answered_in_all);
    let least = result.answered_in_all.div_ceil(10);
    assert!((least..=least + 8).contains(&totals.connections), "{} {least}", totals.connections);
}

#[test]
fn a_server_delay_is_in_every_latency() {
    let server = Server::start(1);
    let result = load(&options(&format!("{}/bytes/10?delay_ms=20", server.http)));
    assert_good(&result);
    assert!(result.response.p50_us.unwrap() >= 20_000.0, "{:?}", result.response);
    assert!(result.response.mean_us >= 20_000.0);
    server.stop();
}

/// One connection, and a server that takes 50 ms for each response, at 100 requests per second: measuring from the
/// first byte written would report 50 ms.
#[test]
fn the_wait_for_a_free_connection_counts() {
    let server = Server::start(1);
    let mut options = options(&format!("{}/?delay_ms=50", server.http));
    options.connections = 1;
    options.phases.window = Duration::from_millis(600);
    options.schedule = Schedule::constant(100.0, options.phases.window);
    let result = load(&options);
    assert!(result.response.max_us >= 200_000.0, "{:?}", result.response);
    assert!(result.service.mean_us >= 50_000.0 && result.service.mean_us < result.response.mean_us);
    assert!(result.unsent.count > 0);
    assert!(result.validity.starts_with("invalid: pacer (sent "), "{}", result.validity);
    server.stop();
}

#[test]
fn planned_arrivals_are_sent_or_counted_as_unsent() {
    let server = Server::start(1);
    for (workers, rate) in [(1, 500.0), (3, 1000.0)] {
        let mut options = options(&format!("{}/bytes/10", server.http));
        options.workers = workers;
        options.schedule = Schedule::constant(rate, options.phases.window);
        let result = load(&options);
        let pacer = result.pacer.as_ref().unwrap();
        // The window is 300 ms of a constant schedule, and may start between two arrivals.
        let expected = (rate * 0.3) as u64;
        assert!((expected - 1..=expected + 1).contains(&pacer.planned), "{pacer:?}");
        assert_eq!(pacer.planned, pacer.sent + result.unsent.count);
        assert_eq!(result.errors, [].into());
        assert_eq!(result.response.count, pacer.sent, "each sent request got a response");
    }
    server.stop();
}

#[test]
fn a_new_connection_for_each_arrival() {
    let server = Server::start(1);
    let mut options = options(&format!("{}/", server.http));
    options.schedule = Schedule::constant(300.0, options.phases.window);
    options.policy.per_connection = requests(1);
    let result = load(&options);
    assert_eq!(result.errors, [].into(), "{:?}", result.error_examples);
    let totals = server.stop();
    assert_eq!(totals.requests, result.answered_in_all);
    assert_eq!(totals.connections, totals.requests + TRIAL);
    assert_eq!(result.connections_opened, totals.requests);
}

/// A relay to `server` that stops listening when its first connection, the trial, starts its handshake.
fn gone_after_the_trial(server: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut upstream = TcpStream::connect(server.trim_start_matches("https://")).unwrap();
    thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        drop(listener);
        let (mut from, mut to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut from, &mut to));
        std::io::copy(&mut upstream, &mut client)
    });
    address
}

#[test]
fn a_refusing_port_yields_no_speed_and_no_reconnect_storm() {
    let server = Server::start(1);
    for per_connection in [PerConnection::Unlimited, requests(1)] {
        let mut options = options(&format!("https://{}/", gone_after_the_trial(&server.https)));
        options.tls.insecure = true;
        options.policy.per_connection = per_connection;
        let result = load(&options);
        assert_eq!((result.requests, result.response.count), (0, 0));
        // Backing off for 10, 20, 40, .. ms, a connection makes fewer than nine attempts in 350 ms.
        assert!((1..=8 * 9).contains(&result.errors["connect_refused"]), "{:?}", result.errors);
        assert_eq!(result.error_ratio, 1.0);
        assert!(result.validity.starts_with("invalid: errors"), "{}", result.validity);
        assert_eq!(
            result.errors.get("missing_connections").copied(),
            (!per_connection.is_single()).then_some(8)
        );
    }
    server.stop();
}

#[test]
fn wrong_responses_are_errors() {
    let server = Server::start(1);
    let status = load(&options(&format!("{}/nothing", server.http)));
    assert_eq!((status.requests, status.response.count), (0, 0));
    assert!(status.errors["status"] > 0);
    assert_eq!(status.error_examples["status"], "status 404");

    let mut expected = options(&format!("{}/nothing", server.http));
    expected.requests[0].expect = Expect { status: Some(404), ..Expect::default() };
    assert_good(&load(&expected));

    let mut length = options(&format!("{}/bytes/10", server.http));
    length.requests[0].expect.length = Some(11);
    let length = load(&length);
    assert!(length.requests == 0 && length.errors["length"] > 0);
    server.stop();
}

#[test]
fn skipping_verification_needs_no_ca() {
    let server = Server::start(1);
    let mut options = options(&format!("{}/", server.https));
    options.tls.insecure = true;
    assert_good(&load(&options));
    server.stop();
}

#[test]
fn bodies_are_sent_whole() {
    let server = Server::start(1);
    let body: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
    for url in [&server.http, &server.https] {
        let mut options = options(&format!("{url}/echo"));
        options.tls.insecure = true;
        options.connections = 2;
        options.requests[0].body = Some(body.clone());
        options.requests[0].expect.length = Some(body.len() as u64);
        let result = load(&options);
        assert_good(&result);
        assert!(result.bytes_sent >= body.len() as u64);
    }
    server.stop();
}

#[test]
fn a_response_to_head_has_no_body_despite_its_content_length() {
    let server = Server::start(1);
    let mut options = options(&format!("{}/bytes/5000", server.http));
    options.requests[0].method = Some("HEAD".into());
    assert_good(&load(&options));
    server.stop();
}

/// A server that sends fixed bytes once on each connection, then closes it.
fn fixed(response: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        // Runs until the process exits.
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 1024];
            if std::io::Read::read(&mut stream, &mut request).is_ok_and(|length| length > 0) {
                let _ = stream.write_all(response);
            }
        }
    });
    address
}

#[test]
fn broken_responses_have_their_classes() {
    for (answer, class) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"[..], "closed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy", "malformed"),
        (b"nonsense\r\n\r\n", "malformed"),
        (b"", "closed"),
    ] {
        let mut options = options(&format!("http://{}/", fixed(answer)));
        options.connections = 1;
        let result = load(&options);
        assert_eq!(result.requests, 0);
        // A socket that is closed with unread bytes in it resets.
        let count = result.errors.get(class).or(result.errors.get("reset"));
        assert!(count.is_some(), "{class}: {:?} {:?}", result.errors, result.error_examples);
    }
}

#[test]
fn a_body_delimited_by_the_close_is_complete() {
    let mut options = options(&format!("http://{}/", fixed(b"HTTP/1.1 200 OK\r\n\r\nto the end")));
    options.connections = 1;
    options.requests[0].expect.length = Some(10);
    let result = load(&options);
    assert_eq!(result.errors, [].into(), "{:?}", result.error_examples);
    assert!(result.requests > 0 && result.connections_opened >= result.requests);
}

/// A server that accepts and never responds.
#[test]
fn silence_is_a_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = options(&format!("http://{}/", listener.local_addr().unwrap()));
    options.timeout = Duration::from_millis(100);
    let result = load(&options);
    assert!(result.requests == 0 && result.errors["timeout"] >= 8, "{:?}", result.errors);
}

#[test]
fn invalid_options_are_rejected_before_anything_is_sent() {
    let mut options = options("http://127.0.0.1:1/");
    options.cores = Some("1000".parse().unwrap());
    let error = run(&options, &mpsc::channel().1, |_| {}).unwrap_err();
    assert!(error.is_usage() && error.to_string().starts_with("--cores: invalid value `1000`"), "{error}");
    options.cores = None;
    options.endpoint = "https://127.0.0.1:1".parse().unwrap();
    options.tls.ca = Some("/no/such/file.pem".into());
    let error = run(&options, &mpsc::channel().1, |_| {}).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("/no/such/file.pem"), "{error}");
}
