//! Destinations and sources of connections, request mixes, and errors before the run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use weir_load::result::LoadResult;
use weir_load::{
    Close, Expect, Options, PerConnection, RequestOptions, Schedule, Sources, requests_of, run, sha256,
};
use weir_origin::{Handle, Origin, Settings, Totals};

fn options(url: &str) -> Options {
    let mut options = Options::new(url.parse().unwrap());
    options.connections = 4;
    options.phases.window = Duration::from_millis(200);
    options.phases.warmup = Duration::from_millis(20);
    options
}

fn good(options: &Options) -> LoadResult {
    let result = run(options, &std::sync::mpsc::channel().1, |_| {}).unwrap();
    assert_eq!(result.errors, [].into(), "{:?}", result.error_examples);
    assert!(result.requests > 0);
    result
}

/// The error message of a run, and whether it is a usage error.
fn failure(options: &Options) -> (String, bool) {
    let error = run(options, &std::sync::mpsc::channel().1, |_| {}).unwrap_err();
    (error.to_string(), error.is_usage())
}

/// The test server, listening on the given address.
struct Server {
    urls: Vec<String>,
    ca: std::path::PathBuf,
    handle: Handle,
    thread: JoinHandle<Totals>,
}

impl Server {
    fn start(listen: &[&str]) -> Self {
        let listen = listen.iter().map(|url| url.parse().unwrap()).collect();
        let settings = Settings { listen, workers: Some(1), ..Settings::default() };
        let origin = Origin::bind(&settings).unwrap();
        let urls = origin.endpoints().map(ToString::to_string).collect();
        let (ca, handle) = (origin.ca_file().unwrap_or_default(), origin.handle());
        Self { urls, ca, handle, thread: thread::spawn(move || origin.run().unwrap()) }
    }

    fn port(&self) -> u16 {
        self.urls[0].rsplit(':').next().unwrap().parse().unwrap()
    }

    fn stop(self) -> Totals {
        self.handle.drain();
        self.thread.join().unwrap()
    }
}

/// Responds to each request of one connection with `abc`, and reports the request lines.
fn respond(mut stream: impl Read + Write, mut report: impl FnMut(&str)) {
    let (mut buffer, mut head) = ([0; 4096], String::new());
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        head.push_str(&String::from_utf8_lossy(&buffer[..length]));
        if head.ends_with("\r\n\r\n") {
            report(head.lines().next().unwrap_or_default());
            head.clear();
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc").is_err() {
                return;
            }
        }
    }
}

/// The server's record: request lines with counts, and peers.
#[derive(Default)]
struct Seen {
    lines: BTreeMap<String, u64>,
    sources: BTreeSet<IpAddr>,
}

/// A server of `abc` with a thread per connection; it runs until the process exits.
fn responding() -> (String, Arc<Mutex<Seen>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::<Mutex<Seen>>::default();
    let all = seen.clone();
    thread::spawn(move || {
        while let Ok((stream, from)) = listener.accept() {
            all.lock().unwrap().sources.insert(from.ip());
            let all = all.clone();
            let report = move |line: &str| *all.lock().unwrap().lines.entry(line.into()).or_default() += 1;
            thread::spawn(move || respond(stream, report));
        }
    });
    (url, seen)
}

#[test]
fn connections_over_ipv6() {
    if TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: no IPv6 loopback");
        return;
    }
    let server = Server::start(&["http://[::1]:0"]);
    let mut options = options(&format!("{}/bytes/10", server.urls[0]));
    good(&options);
    options.route.sources = vec!["::1".parse().unwrap()];
    let result = good(&options);
    assert!(server.stop().requests > result.answered_in_all);
}

#[test]
fn connections_to_a_unix_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("server.sock");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            thread::spawn(move || respond(stream, |_| {}));
        }
    });
    let mut options = options("http://made.up.invalid/");
    options.route.unix = Some(path);
    options.requests[0].expect.length = Some(3);
    good(&options);
    options.policy.close = Close::Reset;
    options.schedule = Schedule::constant(100.0, options.phases.window);
    good(&options);
    options.route.unix = Some(directory.path().join("missing.sock"));
    let (words, usage) = failure(&options);
    assert!(words.contains("/missing.sock): cannot connect: No such file") && !usage, "{words}");
}

#[test]
fn a_made_up_host_uses_the_given_address() {
    let server = Server::start(&["https://127.0.0.1:0"]);
    let port = server.port();
    let mut options = options(&format!("https://localhost:{port}/"));
    options.tls.ca = Some(server.ca.clone());
    options.route.connect_to = Some(("127.0.0.1".into(), port));
    good(&options);

    options.route.connect_to = None;
    options.route.resolve = vec![format!("localhost:{port}:127.0.0.1").parse().unwrap()];
    good(&options);

    options.endpoint.host = "made.up.invalid".into();
    options.route.resolve = vec![format!("made.up.invalid:{port}:127.0.0.1").parse().unwrap()];
    let (words, _) = failure(&options);
    assert!(words.contains(&format!("https://made.up.invalid:{port} (127.0.0.1:{port}): ")), "{words}");
    assert!(words.contains("--cacert"), "the certificate has another name: {words}");
    options.tls.insecure = true;
    good(&options);
    server.stop();
}

/// The resolver's first address refuses connections, as with `localhost` and a server that listens on IPv4 only.
#[test]
fn the_next_address_is_tried_when_the_first_refuses() {
    let server = Server::start(&["http://127.0.0.1:0"]);
    let port = server.port();
    let mut options = options(&format!("http://a.invalid:{port}/"));
    let entry = |address: &str| format!("a.invalid:{port}:{address}").parse().unwrap();
    options.route.resolve = vec![entry("127.0.0.9"), entry("127.0.0.1")];
    good(&options);
    server.stop();
}

#[test]
fn connections_use_all_sources() {
    let (url, seen) = responding();
    let mut options = options(&url);
    options.workers = 2;
    let sources: Sources = "127.0.0.5,127.0.0.7-127.0.0.9".parse().unwrap();
    options.route.sources = sources.0.clone();
    let result = good(&options);
    assert_eq!(result.connections_opened, 4);
    assert_eq!(seen.lock().unwrap().sources, sources.0.into_iter().collect());

    options.route.sources = vec!["192.0.2.1".parse().unwrap()];
    let (words, usage) = failure(&options);
    assert!(words.starts_with("--source: invalid value `192.0.2.1`") && usage, "{words}");
}

#[test]
fn several_requests_are_sent_by_weight() {
    let (url, seen) = responding();
    let urls = [format!("{url}/a").parse().unwrap(), format!("{url}/b").parse().unwrap()];
    let mut options = options(&url);
    (options.endpoint, options.requests) = requests_of(&urls, &[3, 1]).unwrap();
    let result = good(&options);
    let seen = seen.lock().unwrap();
    let count = |path: &str| seen.lines[&format!("GET {path} HTTP/1.1")];
    let (a, b) = (count("/a"), count("/b"));
    assert_eq!(a + b, result.answered_in_all);
    assert!(a.abs_diff(3 * b) <= 3, "{a} {b}");
}

#[test]
fn each_request_has_its_own_expectation() {
    let server = Server::start(&["http://127.0.0.1:0"]);
    let mut options = options(&server.urls[0]);
    let nothing = Expect { status: Some(404), ..Expect::default() };
    options.requests = vec![
        RequestOptions::new("/bytes/7".into()),
        RequestOptions { expect: nothing, ..RequestOptions::new("/nothing".into()) },
        RequestOptions { method: Some("HEAD".into()), ..RequestOptions::new("/bytes/9".into()) },
    ];
    good(&options);
    options.requests[1].expect.status = None;
    let result = run(&options, &std::sync::mpsc::channel().1, |_| {}).unwrap();
    assert_eq!(result.error_examples["status"], "status 404");
    assert!(result.requests > 0 && result.errors.len() == 1, "{:?}", result.errors);
    server.stop();
}

#[test]
fn the_hash_of_each_body_is_checked() {
    let server = Server::start(&["http://127.0.0.1:0"]);
    let mut options = options(&format!("{}/echo", server.urls[0]));
    options.requests[0].body = Some(b"abc".to_vec());
    let abc = sha256("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad").unwrap();
    options.requests[0].expect.sha256 = Some(abc);
    good(&options);
    options.requests[0].body = Some(b"abd".to_vec());
    let result = run(&options, &std::sync::mpsc::channel().1, |_| {}).unwrap();
    assert!(result.requests == 0 && result.errors["digest"] > 0, "{:?}", result.errors);
    // A chunked body is hashed after decoding.
    let get = RequestOptions::new("/bytes/100000?chunked=1".into());
    options.requests = vec![get, RequestOptions::new("/bytes/100000".into())];
    let hash = sha256_of_bytes(&server.urls[0]);
    for request in &mut options.requests {
        request.expect.sha256 = Some(hash);
    }
    good(&options);
    server.stop();
}

/// The hash of the test server's 100000 bytes, computed independently.
fn sha256_of_bytes(url: &str) -> [u8; 32] {
    let mut stream = std::net::TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    stream.write_all(b"GET /bytes/100000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let body = &answer[answer.len() - 100_000..];
    aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, body).as_ref().try_into().unwrap()
}

#[test]
fn a_redirect_is_a_response() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = options(&format!("http://{}/", listener.local_addr().unwrap()));
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let answer = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n";
                while stream.read(&mut [0; 1024]).is_ok_and(|length| length > 0) {
                    let _ = stream.write_all(answer);
                }
            });
        }
    });
    let result = run(&options, &std::sync::mpsc::channel().1, |_| {}).unwrap();
    assert_eq!((result.requests, result.error_examples["status"].as_str()), (0, "status 302"));
    options.requests[0].expect.status = Some(302);
    good(&options);
}

#[test]
fn an_unreachable_server_fails_before_the_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for scheme in ["http", "https"] {
        let mut options = options(&format!("{scheme}://{address}/"));
        options.tls.insecure = true;
        let (words, usage) = failure(&options);
        assert_eq!(
            words,
            format!(
                "{scheme}://{address}: connection refused; \
                 start the server, or correct the host and port"
            )
        );
        assert!(!usage);
    }
    let (words, _) = failure(&options("http://made.up.invalid/"));
    assert!(words.starts_with("http://made.up.invalid: cannot resolve host `made.up.invalid`"), "{words}");
}

#[test]
fn a_server_without_tls_fails_before_the_run() {
    let server = Server::start(&["http://127.0.0.1:0"]);
    let mut plain = options(&server.urls[0].replace("http:", "https:"));
    plain.tls.insecure = true;
    let (words, usage) = failure(&plain);
    assert!(words.contains("the server speaks plain HTTP, not TLS; use http://"), "{words}");
    assert!(!usage);
    assert_eq!(server.stop().answers, 0, "no request was sent");

    // Another protocol, a close, and silence.
    type Serve = fn(std::net::TcpStream) -> Option<std::net::TcpStream>;
    let table: [(Serve, &str); 3] = [
        (
            |mut stream| {
                stream.write_all(b"220 mail ESMTP\r\n").unwrap();
                Some(stream)
            },
            "the server does not speak TLS;",
        ),
        (
            |mut stream| {
                let _ = stream.read(&mut [0; 4096]);
                None
            },
            "the server closed the connection during the TLS handshake",
        ),
        (Some, "no TLS handshake within 1s"),
    ];
    for (serve, why) in table {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut options = options(&format!("https://{}/", listener.local_addr().unwrap()));
        options.timeout = Duration::from_millis(500);
        options.tls.insecure = true;
        let server = thread::spawn(move || serve(listener.accept().unwrap().0));
        let (words, _) = failure(&options);
        assert!(words.contains(why), "{words}");
        drop(server.join().unwrap());
    }
}

#[test]
fn an_untrusted_certificate_fails_before_the_run() {
    let server = Server::start(&["https://127.0.0.1:0"]);
    let other = Server::start(&["https://127.0.0.1:0"]);
    let mut options = options(&format!("{}/", server.urls[0]));
    options.tls.ca = Some(other.ca.clone());
    let (words, usage) = failure(&options);
    assert!(words.contains("certificate is not trusted") && !usage, "{words}");
    assert!(words.ends_with("trust its CA with --cacert FILE, or skip verification with -k"), "{words}");
    options.tls.ca = Some(server.ca.clone());
    good(&options);
    other.stop();
    server.stop();
}

/// A cleartext request to a TLS port: the response is a TLS alert, or a cleartext error.
#[test]
fn tls_behind_an_http_url_is_reported_by_the_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = options(&format!("http://{}/", listener.local_addr().unwrap()));
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                if stream.read(&mut [0; 1024]).is_ok_and(|length| length > 0) {
                    let _ = stream.write_all(&[21, 3, 1, 0, 2, 2, 70]);
                }
            });
        }
    });
    let result = run(&options, &std::sync::mpsc::channel().1, |_| {}).unwrap();
    let words = &result.error_examples["malformed"];
    assert!(words.contains("got a TLS record instead of a response; use https://"), "{words}");
}

#[test]
fn a_plan_that_needs_more_ports_than_exist_is_rejected() {
    let (url, _) = responding();
    let mut options = options(&url);
    options.connections = 70_000;
    let (words, usage) = failure(&options);
    assert!(words.starts_with("-c: invalid value `70000`: expected at most ") && usage, "{words}");
    assert!(words.contains("use --source 127.0.0.1-127.0.0."), "{words}");
    options.connections = 4;
    options.policy.per_connection = PerConnection::Requests { least: 1, most: 1 };
    good(&options);
}
