//! Bytes before HTTP: PROXY protocol headers in both directions, and ClientHellos with a server name that selects a
//! passthrough service.

use super::named;
use crate::common::{
    Answer, Certificates, Client, DEADLINE, Ending, Peer, Stream, Upstream, Weir, poll_until,
};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use weir_http::Method;
use weir_tls::Session;

const V1: &[u8] = b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\xc6\x33\x64\x01\x12\x67\x01\xbb";
const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// A gateway with these listener lines and services.
fn gateway(listener: &str, rest: &str) -> Weir {
    let config = format!(
        "workers = 1
        [listener.web]
        bind = '127.0.0.1:0'
        {listener}
        {rest}
        [[route]]
        service = 'app'"
    );
    Weir::configured(&config, 1)
}

fn service(name: &str, address: SocketAddr) -> String {
    format!("[service.{name}]\nservers = 'http://{address}'\n")
}

fn certificate(certificates: &Certificates) -> String {
    let (chain, key) = (certificates.cert.display(), certificates.key.display());
    format!("[[certificate]]\nchain = '{chain}'\nkey = '{key}'\n")
}

/// Sends bytes before the client's own.
pub(super) fn announced(address: SocketAddr, header: &[u8], session: Option<Session>) -> Client {
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.write_all(header).unwrap();
    Client { stream: Stream::over(tcp, session).unwrap() }
}

/// Relays a connection, byte by byte towards the address.
fn trickling(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut server = TcpStream::connect(to).unwrap();
        server.set_nodelay(true).unwrap();
        let (mut back, mut answers) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
        let mut byte = [0];
        while matches!(client.read(&mut byte), Ok(1)) {
            if server.write_all(&byte).is_err() {
                break;
            }
        }
    });
    address
}

fn session(certificates: &Certificates, name: &str) -> Session {
    certificates.client().core().connect(&name.parse().unwrap())
}

fn forwarded_for(answer: &Answer) -> &str {
    let line = answer.text().lines().find_map(|line| line.strip_prefix("X-Forwarded-For: "));
    line.unwrap_or_else(|| panic!("{}", answer.text()))
}

#[test]
fn a_load_balancer_says_who_the_client_is() {
    let certificates = Certificates::new();
    let upstream = named("a");
    let app = service("app", upstream.address);
    let clear = gateway("proxy_protocol = '127.0.0.0/8'", &app);
    let secure =
        gateway("proxy_protocol = '127.0.0.0/8'\ntls = {}", &format!("{}{app}", certificate(&certificates)));
    for header in [V1, V2] {
        for to in [clear.address(), trickling(clear.address())] {
            let mut client = announced(to, header, None);
            for _ in 0..2 {
                assert_eq!(forwarded_for(&client.ask(GET)), "192.0.2.7", "for every request");
            }
        }
        for to in [secure.address(), trickling(secure.address())] {
            let mut client = announced(to, header, Some(certificates.session()));
            assert_eq!(forwarded_for(&client.ask(GET)), "192.0.2.7");
        }
    }
    // A connection of the proxy itself.
    let mut client = announced(clear.address(), b"PROXY UNKNOWN\r\n", None);
    assert_eq!(forwarded_for(&client.ask(GET)), "127.0.0.1");
    // A header and a request in one segment.
    let mut client = announced(clear.address(), &[V1, GET.as_bytes()].concat(), None);
    assert_eq!(forwarded_for(&client.answer(Method::Get)), "192.0.2.7");
}

#[test]
fn a_connection_without_its_header_or_from_elsewhere_is_closed() {
    let upstream = named("a");
    let app = service("app", upstream.address);
    let weir = gateway("proxy_protocol = '127.0.0.1'", &app);
    announced(weir.address(), GET.as_bytes(), None).expect_end();
    weir.wait_for_stderr(&["bad_proxy_header", "no PROXY protocol header"]);
    let stranger = gateway("proxy_protocol = '192.0.2.0/24'", &app);
    // The gateway did not read the header, so its close may be a reset.
    assert_eq!(announced(stranger.address(), V1, None).read_to_end().0, b"");
    stranger.wait_for_stderr(&["untrusted_proxy", "client=127.0.0.1"]);
    assert_eq!(upstream.connections(), 0);
}

#[test]
fn a_connection_that_does_not_say_whose_it_is_ends_in_time() {
    let upstream = named("a");
    let weir = gateway(
        "proxy_protocol = '127.0.0.1'",
        &format!("{}[timeouts]\nhandshake = '100ms'\n", service("app", upstream.address)),
    );
    let (answer, ending) = announced(weir.address(), b"PROXY TCP4 ", None).read_to_end();
    assert_eq!((answer.as_slice(), ending), (&b""[..], Ending::Reset));
    weir.wait_for_stderr(&["handshake_timeout"]);
}

/// An upstream connection with a PROXY header belongs to one client.
#[test]
fn a_server_learns_who_the_client_is() {
    let upstream = named("a");
    for version in ["v1", "v2"] {
        let inner = gateway("proxy_protocol = '127.0.0.1'", &service("app", upstream.address));
        let announces = format!("{}proxy_protocol = '{version}'\n", service("app", inner.address()));
        let outer = gateway("proxy_protocol = '127.0.0.1'", &announces);
        for client in ["192.0.2.7", "192.0.2.8"] {
            let header = format!("PROXY TCP4 {client} 198.51.100.1 4711 443\r\n");
            let mut connection = announced(outer.address(), header.as_bytes(), None);
            for _ in 0..2 {
                assert_eq!(forwarded_for(&connection.ask(GET)), client, "{version}");
            }
        }
    }
}

/// The header precedes the TLS handshake, for requests and for health checks.
#[test]
fn a_server_with_tls_gets_the_header_in_the_clear() {
    let certificates = Certificates::new();
    let upstream = named("a");
    let inner = gateway(
        "proxy_protocol = '127.0.0.1'\ntls = {}",
        &format!("{}{}", certificate(&certificates), service("app", upstream.address)),
    );
    let outer = gateway(
        "",
        &format!(
            "[service.app]
            servers = 'https://{}'
            proxy_protocol = 'v2'
            tls.ca = '{}'
            health = {{ path = '/', every = '50ms', rise = 1, fall = 1 }}",
            inner.address(),
            certificates.ca.display()
        ),
    );
    upstream.wait_for_requests(2);
    assert_eq!(Client::connect(outer.address(), None).ask(GET).status, 200);
    assert!(!outer.stderr().contains("is down"), "{}", outer.stderr());
}

#[test]
fn connections_are_passed_on_by_name_without_being_decrypted() {
    let ours = Certificates::for_names(&["www.example.org"]);
    let theirs = Certificates::for_names(&["db.example.org", "a.b.legacy.example.org"]);
    let answer = |peer: &mut Peer| peer.serve("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ntheirs");
    let hidden = Upstream::start(Some(theirs.server().core()), answer);
    let app = named("ours");
    let weir = gateway(
        "tls = {}
        passthrough = [{ name = ['db.example.org', '*.legacy.example.org'], service = 'db' }]",
        &[certificate(&ours), service("app", app.address), service("db", hidden.address)].concat(),
    );
    assert!(weir.urls[0].starts_with("https://"), "{:?}", weir.urls);
    for name in ["db.example.org", "a.b.legacy.example.org", "DB.example.org"] {
        for to in [weir.address(), trickling(weir.address())] {
            let mut client = Client::connect(to, Some(session(&theirs, name)));
            assert_eq!(client.ask(GET).text(), "theirs", "{name}");
        }
    }
    for to in [weir.address(), trickling(weir.address())] {
        let mut client = Client::connect(to, Some(session(&ours, "www.example.org")));
        assert!(client.ask(GET).text().starts_with("ours"));
    }
    // A cleartext request gets a 400, as on any TLS listener.
    assert_eq!(Client::connect(weir.address(), None).ask(GET).status, 400);
}

#[test]
fn a_listener_without_certificates_passes_on_or_refuses() {
    let theirs = Certificates::for_names(&["db.example.org", "other.example.org"]);
    let answer = |peer: &mut Peer| peer.serve("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ntheirs");
    let hidden = Upstream::start(Some(theirs.server().core()), answer);
    let weir = gateway(
        "passthrough = [{ name = 'db.example.org', service = 'app' }]",
        &service("app", hidden.address),
    );
    let mut client = Client::connect(weir.address(), Some(session(&theirs, "db.example.org")));
    assert_eq!(client.ask(GET).text(), "theirs");
    let refused = Stream::connect(weir.address(), Some(session(&theirs, "other.example.org")));
    let error = refused.err().expect("nothing is here for this name").to_string();
    assert!(error.to_lowercase().contains("unrecognized"), "{error}");
    weir.wait_for_stderr(&["unknown_name", "detail=\"other.example.org\""]);
    announced(weir.address(), GET.as_bytes(), None).expect_end();
    weir.wait_for_stderr(&["bad_client_hello", "not TLS"]);
    let all = gateway("passthrough = [{ name = '*', service = 'app' }]", &service("app", hidden.address));
    let mut client = Client::connect(all.address(), Some(session(&theirs, "other.example.org")));
    assert_eq!(client.ask(GET).text(), "theirs");
}

#[test]
fn a_drain_ends_connections_that_have_not_said_anything() {
    let upstream = named("a");
    let app = service("app", upstream.address);
    let weir = gateway("proxy_protocol = '127.0.0.1'", &format!("{app}[timeouts]\ndrain = '500ms'\n"));
    let mut silent = announced(weir.address(), b"PROXY", None);
    let mut working = announced(weir.address(), V1, None);
    assert_eq!(working.ask(GET).status, 200);
    assert_eq!(weir.stop().code, Some(0));
    silent.expect_end();
}

#[test]
fn a_tunnel_whose_server_cannot_be_reached_ends() {
    let certificates = Certificates::for_names(&["db.example.org"]);
    let weir = gateway(
        "passthrough = [{ name = '*', service = 'app' }]",
        "[service.app]\nservers = 'http://127.0.0.9:1'\n",
    );
    assert!(Stream::connect(weir.address(), Some(session(&certificates, "db.example.org"))).is_err());
    poll_until(DEADLINE, "a line", || weir.stderr().contains("upstream_connect"));
}
