//! Listeners with `tcp`: connections of protocols other than HTTP.

use super::preface::announced;
use crate::common::{
    Certificates, Client, DEADLINE, Ending, Peer, Stream, Upstream, Weir, pattern, poll_until,
};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;

const GREETING: &[u8] = b"220 ready\r\n";
const V1: &str = "PROXY TCP4 192.0.2.7 198.51.100.1 4711 5432\r\n";

/// A server that speaks first, and echoes all received bytes once the client has ended its stream.
fn echo(certificates: Option<&Certificates>) -> Upstream {
    let tls = certificates.map(|certificates| certificates.server().core());
    Upstream::start(tls, |peer: &mut Peer| {
        peer.answer(GREETING);
        let mut all = Vec::new();
        if let Some(Ending::Clean) = until_end(peer, &mut all) {
            peer.answer(&all);
            peer.stream.finish();
        }
    })
}

fn until_end(peer: &mut Peer, into: &mut Vec<u8>) -> Option<Ending> {
    loop {
        if let Some(ending) = peer.receive(into) {
            return Some(ending);
        }
    }
}

/// Sends bytes and ends the stream; returns all bytes that follow.
fn exchange(mut client: Client, bytes: &[u8]) -> (Vec<u8>, Ending) {
    client.send(bytes);
    client.stream.finish();
    client.read_to_end()
}

fn config(listener: &str, service: &str, rest: &str) -> String {
    format!(
        "workers = 1\n[listener.db]\nbind = '127.0.0.1:0'\ntcp.service = 'db'\n{listener}\n[service.db]\n{service}\n{rest}"
    )
}

fn certificate(certificates: &Certificates) -> String {
    let (chain, key) = (certificates.cert.display(), certificates.key.display());
    format!("[[certificate]]\nchain = '{chain}'\nkey = '{key}'\n")
}

/// The lines of the access log, once there are this many.
fn lines(file: &Path, count: usize) -> Vec<Value> {
    let read = || fs::read_to_string(file).unwrap_or_default();
    poll_until(DEADLINE, &format!("{count} lines"), || read().lines().count() >= count);
    read().lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

#[test]
fn a_connection_reaches_its_server_and_has_a_line_in_the_log() {
    let (upstream, folder) = (echo(None), tempfile::tempdir().unwrap());
    let file = folder.path().join("access.log");
    let rest = format!("[log]\naccess = '{}'\n[admin]\nbind = '127.0.0.1:0'", file.display());
    let weir = Weir::configured(&config("", &format!("servers = 'tcp://{}'", upstream.address), &rest), 1);
    assert!(weir.urls[0].starts_with("tcp://127.0.0.1:"), "{:?}", weir.urls);
    let mut client = Client::connect(weir.address(), None);
    client.send("hello");
    let mut greeting = Vec::new();
    while greeting.len() < GREETING.len() {
        assert_eq!(client.stream.receive(&mut greeting), None);
    }
    let status: Value = serde_json::from_str(weir.ask_admin("GET /status").text()).unwrap();
    assert_eq!(status["tunnels"], 1, "{status}");
    client.stream.finish();
    assert_eq!(client.read_to_end(), (b"hello".to_vec(), Ending::Clean));
    let line = &lines(&file, 1)[0];
    assert_eq!((&line["protocol"], &line["listener"]), (&"TCP".into(), &"db".into()), "{line}");
    assert_eq!((&line["received"], &line["sent"]), (&5.into(), &16.into()), "{line}");
    let ended = weir.stop();
    assert!(ended.stdout.contains("ended early: none"), "{}", ended.stdout);
}

#[test]
fn tls_is_terminated_and_originated() {
    let certificates = Certificates::new();
    let (upstream, bytes) = (echo(Some(&certificates)), pattern(300_000));
    let service = format!("servers = 'tls://{}'\ntls.ca = '{}'", upstream.address, certificates.ca.display());
    let weir = Weir::configured(&config("tls = {}", &service, &certificate(&certificates)), 1);
    assert!(weir.urls[0].starts_with("tls://127.0.0.1:"), "{:?}", weir.urls);
    // This client offers HTTP by ALPN. The listener negotiates no protocol, and ignores the offer.
    let client = Client::connect(weir.address(), Some(certificates.session()));
    let (received, ending) = exchange(client, &bytes);
    assert!(received == [GREETING, &bytes[..]].concat(), "{} bytes", received.len());
    assert_eq!(ending, Ending::Clean);
    // A client without TLS gets no HTTP response, and the gateway opens no connection to the server.
    let (received, _) = exchange(Client::connect(weir.address(), None), b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(!received.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&received));
    weir.wait_for_stderr(&["not_tls"]);
    assert_eq!(upstream.connections(), 1);
    weir.stop();
}

#[test]
fn both_headers_name_the_client() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        let mut all = Vec::new();
        until_end(peer, &mut all);
        peer.answer(&all);
        peer.stream.finish();
    });
    let certificates = Certificates::new();
    for tls in [false, true] {
        let listener = if tls { "tls = {}" } else { "" };
        let weir = Weir::configured(
            &config(
                &format!("proxy_protocol = '127.0.0.1'\nallow = '192.0.2.7'\n{listener}"),
                &format!("servers = 'tcp://{}'\nproxy_protocol = 'v1'", upstream.address),
                &certificate(&certificates).repeat(usize::from(tls)),
            ),
            1,
        );
        let session = tls.then(|| certificates.session());
        let (received, ending) = exchange(announced(weir.address(), V1.as_bytes(), session), b"hello");
        assert_eq!(String::from_utf8_lossy(&received), format!("{V1}hello"));
        assert_eq!(ending, Ending::Clean);
        let other = V1.replace("192.0.2.7", "192.0.2.8");
        assert_eq!(announced(weir.address(), other.as_bytes(), None).read_to_end().0, b"");
        weir.wait_for_stderr(&["client_denied", "client=192.0.2.8:4711"]);
        weir.stop();
    }
}

#[test]
fn servers_that_are_down_get_no_connections() {
    let (upstream, down) = (echo(None), TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let health = "health = { every = '20ms', rise = 1, fall = 1 }";
    let servers = format!("servers = ['tcp://{down}', 'tcp://{}']\n{health}", upstream.address);
    let weir = Weir::configured(&config("", &servers, ""), 1);
    weir.wait_for_stderr(&["db: tcp://", "is down"]);
    for _ in 0..4 {
        let (received, _) = exchange(Client::connect(weir.address(), None), b"a");
        assert_eq!(received, [GREETING, b"a"].concat());
    }
    weir.stop();
    let alone = Weir::configured(&config("", &format!("servers = 'tcp://{down}'\n{health}"), ""), 1);
    alone.wait_for_stderr(&["db: tcp://", "is down"]);
    poll_until(DEADLINE, "the worker knows", || {
        match Stream::connect(alone.address(), None) {
            Ok(stream) => assert_eq!(Client { stream }.read_to_end(), (Vec::new(), Ending::Reset)),
            // The reset may arrive before connect(2) returns.
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        alone.stderr().contains("no_server")
    });
    alone.stop();
}

/// A reload gives a listener another service; existing connections keep theirs.
#[test]
fn connections_outlive_a_reload() {
    let (old, new, folder) = (echo(None), echo(None), tempfile::tempdir().unwrap());
    let file = folder.path().join("weir.toml");
    let write = |upstream: &Upstream| {
        fs::write(&file, config("", &format!("servers = 'tcp://{}'", upstream.address), "")).unwrap();
    };
    write(&old);
    let weir = Weir::of_file(&file, 1);
    let mut client = Client { stream: Stream::connect(weir.address(), None).unwrap() };
    client.send("be");
    poll_until(DEADLINE, "a connection", || old.received_bytes() == 2);
    write(&new);
    weir.signal(Signal::HUP);
    poll_until(DEADLINE, "the new server", || {
        let (received, _) = exchange(Client::connect(weir.address(), None), b"x");
        assert_eq!(received, [GREETING, b"x"].concat());
        new.connections() > 0
    });
    assert_eq!(exchange(client, b"fore"), ([GREETING, b"before"].concat(), Ending::Clean));
    weir.stop();
}
