//! The requests of `weir load`, their destinations and their sources, as seen by its server.

use crate::common::load::{OK, TRIAL, load, load_well, url};
use crate::common::{self, Certificates, Client, MODES, Message, Upstream, Weir, pattern};
use crate::servers;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex};
use weir_load::result::LoadResult;
use weir_tls::{Group, Identity, Server, ServerSettings};

/// Two hundred requests on four connections, after one additional request on each.
const PLANNED: usize = 200;
const PACED: [&str; 8] = ["-c", "4", "--rate", "400", "-d", "500ms", "--warmup", "0s"];

fn answering() -> Upstream {
    Upstream::start(None, |peer| peer.serve(OK))
}

/// A run without errors.
fn clean(args: &[&str]) -> LoadResult {
    let result = load_well(args);
    assert_eq!(result.errors, BTreeMap::new(), "{args:?}: {:?}", result.error_examples);
    result
}

/// The number of requests per path.
fn paths(server: &Upstream) -> BTreeMap<String, usize> {
    let mut paths = BTreeMap::new();
    for request in server.requests().iter() {
        let path = request.head.split(' ').nth(1).unwrap().to_owned();
        *paths.entry(path).or_default() += 1;
    }
    paths
}

#[test]
fn several_urls_are_requested_by_weight() {
    let server = answering();
    let [first, second] = ["a", "b?c=d"].map(|path| format!("{}{path}", url(false, &server)));
    let result = clean(&[&[first.as_str(), &second, "--weights", "3,1"], &PACED[..]].concat());
    assert_eq!((result.asked.mix, result.response.count), (2, PLANNED as u64));
    let paths = paths(&server);
    assert_eq!(paths.keys().collect::<Vec<_>>(), ["/a", "/b?c=d"]);
    assert_eq!(paths.values().sum::<usize>(), PLANNED + 4);
    assert!((135..=170).contains(&paths["/a"]), "three in four: {paths:?}");
}

/// Method, path, fields and body are sent as in the file, and each response is checked against its own line.
#[test]
fn a_file_of_requests_is_sent_unchanged() {
    let server = Upstream::start(None, |peer| {
        while let Some(request) = peer.request() {
            let put = request.head.starts_with("PUT ");
            peer.answer(if put { "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n" } else { OK });
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.jsonl");
    let lines = r#"{"path": "/read", "headers": {"X-One": "1"}, "weight": 2}
{"method": "PUT", "path": "/written", "body": "some text", "expect": {"status": 201, "length": 0}}
"#;
    fs::write(&file, lines).unwrap();
    let url = url(false, &server);
    let args = [&[url.as_str(), "--requests", file.to_str().unwrap()], &PACED[..]].concat();
    let result = clean(&args);
    assert_eq!((result.asked.mix, result.response.count), (2, PLANNED as u64));
    let paths = paths(&server);
    assert!((110..=160).contains(&paths["/read"]), "two in three: {paths:?}");
    for Message { head, body, .. } in server.requests().iter() {
        let lines: BTreeSet<_> = head.lines().collect();
        if head.starts_with("GET /read HTTP/1.1\r\n") {
            assert!(lines.contains("X-One: 1") && body.is_empty(), "{head}");
        } else {
            assert!(head.starts_with("PUT /written HTTP/1.1\r\n"), "{head}");
            assert!(lines.contains("Content-Length: 9") && body == b"some text", "{head}");
        }
    }
    fs::write(&file, lines.replace("201", "204")).unwrap();
    let wrong = load(&args).result.errors["status"];
    assert!((40..=90).contains(&wrong), "one in three does not match its line: {wrong}");
}

#[test]
fn a_chunked_body_is_sent_in_chunks_of_the_given_size() {
    let server = answering();
    let url = url(false, &server);
    let folder = tempfile::tempdir().unwrap();
    let (body, lines) = (folder.path().join("body"), folder.path().join("requests.jsonl"));
    fs::write(&body, "0123456789").unwrap();
    fs::write(&lines, r#"{"path": "/", "method": "PUT", "body": "0123456789", "chunked": "4"}"#).unwrap();
    for (method, flags) in [
        ("POST", &["--data", body.to_str().unwrap(), "--chunked=4"][..]),
        ("PUT", &["--requests", lines.to_str().unwrap()]),
    ] {
        clean(&[&[url.as_str()], &PACED[..], flags].concat());
        let requests = std::mem::take(&mut *server.requests());
        assert_eq!(requests.len(), PLANNED + 4, "{method}");
        for request in requests {
            assert!(request.head.starts_with(&format!("{method} / HTTP/1.1\r\n")), "{}", request.head);
            assert_eq!(request.fields("transfer-encoding"), ["chunked"]);
            assert_eq!(request.fields("content-length"), [""; 0]);
            assert_eq!(request.raw_body, b"4\r\n0123\r\n4\r\n4567\r\n2\r\n89\r\n0\r\n\r\n");
        }
    }
}

/// Lengths of the pattern, with their hashes from sha256sum.
const BODIES: [(usize, &str); 3] = [
    (0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    (1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
    (10_000, "e7500aa862801884e10cb106a27902b1c38c24d6a9016d1c9d3090cc9fb0bac5"),
];

/// Bodies from the test server itself, and through Weir, nginx and HAProxy.
#[test]
fn a_chunked_body_is_echoed_unchanged() {
    let certificates = Certificates::new();
    let origin = common::origin(false, &certificates);
    let weir = common::serve(MODES[0], &certificates, origin.address(), &[]);
    for address in [origin.address(), weir.address()] {
        let post = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
        let answer = Client::connect(address, None).ask(post);
        assert_eq!((answer.text(), answer.fields("transfer-encoding")), ("x", vec!["chunked"]));
    }
    let others = [
        servers::Server::nginx_before(origin.address(), &certificates),
        servers::Server::haproxy_before(origin.address()),
    ];
    let others = others.iter().flatten().map(|server| server.address(false));
    for address in [origin.address(), weir.address()].into_iter().chain(others) {
        echoes(address);
    }
}

fn echoes(address: SocketAddr) {
    const EACH: u64 = 60;
    const SHORT: [&str; 8] = ["-c", "4", "--rate", "200", "-d", "300ms", "--warmup", "0s"];
    let (url, folder) = (format!("http://{address}/echo"), tempfile::tempdir().unwrap());
    let file = folder.path().join("body");
    let echo = [url.as_str(), "--data", file.to_str().unwrap(), "--chunked=4KiB"];
    for (length, sha256) in BODIES {
        fs::write(&file, pattern(length)).unwrap();
        let length = length.to_string();
        let expected = ["--expect-length", &length, "--expect-sha256", sha256];
        let result = clean(&[&echo[..], &SHORT, &expected].concat());
        assert_eq!(result.response.count, EACH, "{length} bytes");
    }
    // The file still contains the last body.
    for (class, flags) in
        [("length", ["--expect-length", "9999"]), ("digest", ["--expect-sha256", BODIES[1].1])]
    {
        let wrong = load(&[&echo[..], &SHORT, &flags].concat()).result;
        // If the machine pauses, some requests may remain unsent.
        let expected = BTreeMap::from([(class.to_owned(), EACH - wrong.unsent.count)]);
        assert_eq!((wrong.errors, wrong.requests), (expected, 0), "{:?}", wrong.error_examples);
    }
}

#[test]
fn connections_carry_the_given_number_of_requests() {
    for (flags, asked, least, most) in [
        (&["--new-connection"][..], "1", 1, 1),
        (&["--requests-per-connection", "3"], "3", 3, 3),
        (&["--requests-per-connection", "2-6"], "2-6", 2, 6),
    ] {
        let server = answering();
        let result = clean(&[&[url(false, &server).as_str()], &PACED[..], flags].concat());
        assert_eq!(result.asked.requests_per_connection, asked);
        assert_eq!(result.connections_opened + TRIAL, server.connections() as u64);
        let mut each = BTreeMap::<usize, Vec<bool>>::new();
        for request in server.requests().iter() {
            each.entry(request.connection).or_default().push(request.fields("connection").contains(&"close"));
        }
        assert_eq!(each.values().map(Vec::len).sum::<usize>(), PLANNED, "{asked}");
        // The run ends before some of them have finished.
        let finished: Vec<_> = each.values().filter(|requests| requests.ends_with(&[true])).collect();
        assert!(finished.len() + 4 >= each.len(), "{asked}: {} of {}", finished.len(), each.len());
        let mut counts = BTreeSet::new();
        for requests in finished {
            assert!((least..=most).contains(&requests.len()), "{asked}: {}", requests.len());
            let last = requests.iter().position(|last| *last).unwrap();
            assert_eq!(last + 1, requests.len(), "{asked}: only the last one announces the close");
            counts.insert(requests.len());
        }
        assert_eq!(counts, (least..=most).collect(), "every number of the range");
    }
}

#[test]
fn connections_use_the_sources_in_turn() {
    let sources = Arc::new(Mutex::new(Vec::<IpAddr>::new()));
    let seen = Arc::clone(&sources);
    let server = Upstream::start(None, move |peer| {
        seen.lock().unwrap().push(peer.stream.tcp().peer_addr().unwrap().ip());
        peer.serve(OK);
    });
    let list = "127.0.0.2,127.0.0.3";
    let flags = ["--source", list, "--new-connection"];
    let result = clean(&[&[url(false, &server).as_str()], &PACED[..], &flags].concat());
    assert_eq!(result.asked.sources, ["127.0.0.2", "127.0.0.3"]);
    let seen = sources.lock().unwrap();
    let of = |last: u8| seen.iter().filter(|ip| **ip == IpAddr::from([127, 0, 0, last])).count();
    let all = PLANNED + TRIAL as usize;
    assert_eq!((of(2) + of(3), seen.len()), (all, all));
    assert!(of(2).abs_diff(of(3)) <= 4, "{} and {}", of(2), of(3));
}

/// Connections may go to another address than the URL's; the request still names the URL's host.
#[test]
fn other_addresses_do_not_change_the_request() {
    let server = answering();
    let port = server.address.port();
    let (resolve, connect) =
        (format!("some.example:8080:{}", server.address.ip()), server.address.to_string());
    // --resolve contains only an address, so the URL contains the port.
    let with_port = format!("some.example:{port}");
    for (host, flags) in [
        (with_port.as_str(), ["--resolve", &resolve.replace("8080", &port.to_string())]),
        ("some.example:8080", ["--connect-to", &connect]),
    ] {
        clean(&[&[format!("http://{host}/x").as_str()], &PACED[..], &flags].concat());
        let requests = std::mem::take(&mut *server.requests());
        assert_eq!(requests.len(), PLANNED + 4, "{flags:?}");
        assert!(requests.iter().all(|request| request.fields("host") == [host]), "{flags:?}");
    }
}

#[test]
fn a_unix_socket_is_a_server_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let hosts = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&hosts);
    std::thread::spawn(move || {
        for stream in listener.incoming().map(Result::unwrap) {
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || {
                for line in BufReader::new(&stream).lines().map_while(Result::ok) {
                    match line.strip_prefix("Host: ") {
                        Some(host) => seen.lock().unwrap().push(host.to_owned()),
                        None if line.is_empty() => (&stream).write_all(OK.as_bytes()).unwrap(),
                        None => {}
                    }
                }
            });
        }
    });
    let flags = ["--unix-socket", path.to_str().unwrap()];
    let result = clean(&[&["http://some.example/"], &PACED[..], &flags].concat());
    assert_eq!(result.response.count, PLANNED as u64);
    let hosts = hosts.lock().unwrap();
    assert!(hosts.len() == PLANNED + 4 && hosts.iter().all(|host| host == "some.example"), "{hosts:?}");
}

/// The name in the ClientHello is verified; without one, the URL's host is.
#[test]
fn the_given_server_name_is_sent_and_verified() {
    let certificates = Certificates::for_names(&["some.example"]);
    let origin = common::origin(true, &certificates);
    let url = format!("{}/bytes/2", origin.urls[0]);
    let ca = certificates.ca.to_str().unwrap();
    clean(&[&[url.as_str(), "--cacert", ca, "--sni", "some.example"], &PACED[..]].concat());
    for flags in [&[][..], &["--sni", "none"]] {
        let ended = Weir::run(&[&["load", &url, "--cacert", ca], &PACED[..], flags].concat());
        assert_eq!(ended.code, Some(1), "the certificate has no 127.0.0.1: {}{}", ended.stdout, ended.stderr);
    }
}

/// Every handshake negotiates what the flags ask for.
#[test]
fn the_given_tls_parameters_are_negotiated() {
    let certificates = Certificates::new();
    let identity = Identity::files(&certificates.cert, &certificates.key);
    let settings = ServerSettings { groups: Group::ALL.to_vec(), ..ServerSettings::new(identity) };
    let server = Upstream::start(Some(Server::new(&settings).unwrap().core()), |peer| peer.serve(OK));
    let url = url(true, &server);
    let ca = certificates.ca.to_str().unwrap();
    for (flags, version, suite, group) in [
        (
            ["--tls", "1.2", "--suite", "ecdhe-ecdsa-aes128-gcm-sha256", "--group", "p256"],
            "1.2",
            "ecdhe-ecdsa-aes128-gcm-sha256",
            "p256",
        ),
        (
            ["--tls", "1.3", "--suite", "aes256-gcm-sha384", "--group", "x25519mlkem768"],
            "1.3",
            "aes256-gcm-sha384",
            "x25519mlkem768",
        ),
        (["--tls", "1.2-1.3", "--signature", "ecdsa-p256-sha256", "--group", "p384"], "1.3", "", "p384"),
    ] {
        let more = ["--cacert", ca, "--new-connection", "--alpn", "http/1.1"];
        let result = clean(&[&[url.as_str()], &PACED[..], &flags, &more].concat());
        assert!(result.asked.verified && result.asked.alpn == ["http/1.1"], "{:?}", result.asked);
        let [one] = &result.handshakes.negotiated[..] else { panic!("{:?}", result.handshakes.negotiated) };
        assert_eq!(
            (one.version.as_str(), one.group.as_deref(), one.kind.as_str()),
            (version, Some(group), "full")
        );
        assert!(suite.is_empty() || one.suite == suite, "{one:?}");
        assert_eq!(one.signature.as_deref(), Some("ecdsa-p256-sha256"));
        assert!(
            one.chain_certificates == Some(1) && one.chain_bytes.is_some_and(|bytes| bytes > 200),
            "{one:?}"
        );
        assert_eq!(one.count, result.handshakes.full);
        let (connects, handshakes) = (result.connect.count, result.handshake["full"].count);
        assert_eq!(connects, handshakes);
        // On a busy machine the last connections start after the window, or never.
        let nearly_all = PLANNED as u64 * 3 / 4..=PLANNED as u64;
        for count in [one.count, connects] {
            let unsent = result.unsent.count;
            assert!(nearly_all.contains(&(count + unsent)), "{count} of {PLANNED}, {unsent} unsent");
        }
    }
}
