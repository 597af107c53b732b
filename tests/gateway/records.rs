//! The sizes of TLS records and reads, as observed on the wire.

use super::named;
use crate::common::{Certificates, Client, Peer, Upstream, Weir, pattern};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use weir_tls::{Client as TlsClient, ClientSettings, Offer, Roots, Session, Version};

/// A TLS connection that keeps its encrypted bytes.
struct Tap {
    tcp: TcpStream,
    session: Session,
    wire: Vec<u8>,
    plain: Vec<u8>,
}

impl Tap {
    fn new(tcp: TcpStream, session: Session) -> Self {
        let mut tap = Self { tcp, session, wire: Vec::new(), plain: Vec::new() };
        if !tap.session.is_server() {
            tap.feed(&mut []);
        }
        while tap.session.is_handshaking() {
            tap.read();
        }
        tap
    }

    /// Connects with TLS 1.2, where only application data has content type 23.
    fn connect(address: SocketAddr, certificates: &Certificates) -> Self {
        let Offer { versions, suites, groups } =
            Offer { versions: vec![Version::Tls12], ..Offer::default() }.complete();
        let roots = Roots::File(certificates.ca.clone());
        let settings = ClientSettings { roots, versions, suites, groups, ..ClientSettings::default() };
        let session = TlsClient::new(&settings).unwrap().core().connect(&"127.0.0.1".parse().unwrap());
        Self::new(TcpStream::connect(address).unwrap(), session)
    }

    fn send(&mut self, bytes: &str) {
        let mut sealed = Vec::new();
        self.session.send(bytes.as_bytes(), &mut sealed).unwrap();
        self.tcp.write_all(&sealed).unwrap();
    }

    fn feed(&mut self, bytes: &mut [u8]) {
        let mut reply = Vec::new();
        self.session.receive(bytes, &mut self.plain, &mut reply).unwrap();
        self.tcp.write_all(&reply).unwrap();
    }

    fn read(&mut self) {
        let mut some = [0; 4096];
        let length = self.tcp.read(&mut some).unwrap();
        assert!(length > 0, "the stream has ended");
        self.wire.extend_from_slice(&some[..length]);
        self.feed(&mut some[..length]);
    }

    /// The largest application data record of a message with a body of this many bytes, without encryption overhead.
    fn largest_record_of(&mut self, body: usize) -> usize {
        let end = |plain: &[u8]| plain.windows(4).position(|bytes| bytes == b"\r\n\r\n").map(|at| at + 4);
        while end(&self.plain).is_none_or(|head| self.plain.len() < head + body) {
            self.read();
        }
        let (mut rest, mut largest) = (self.wire.as_slice(), 0);
        while let [kind, _, _, high, low, more @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            if *kind == 23 {
                // The explicit nonce and tag of TLS 1.2 with AES-GCM.
                largest = largest.max(length - 24);
            }
            rest = more.get(length..).unwrap_or_default();
        }
        largest
    }
}

fn config(certificates: &Certificates, listener_tls: &str, rest: &str) -> String {
    format!(
        "workers = 1
        [listener.web]
        bind = '127.0.0.1:0'
        tls = {{ {listener_tls} }}
        [[certificate]]
        chain = '{}'
        key = '{}'
        {rest}",
        certificates.cert.display(),
        certificates.key.display()
    )
}

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const BODY: usize = 60_000;

#[test]
fn records_to_clients_have_at_most_the_size_that_is_set() {
    let certificates = Certificates::new();
    let respond = format!("[[route]]\nrespond = {{ status = 200, body = '{}' }}", "x".repeat(BODY));
    for (tls, largest) in [
        ("", 16_384),
        ("record_size = '4KiB'", 4096),
        ("record_size = 1400", 1400),
        ("record_size = 512", 512),
    ] {
        let weir = Weir::configured(&config(&certificates, tls, &respond), 1);
        let mut tap = Tap::connect(weir.address(), &certificates);
        tap.send(GET);
        assert_eq!(tap.largest_record_of(BODY), largest, "{tls}");
    }
}

#[test]
fn records_to_servers_have_at_most_the_size_that_is_set() {
    let certificates = Certificates::new();
    for (tls, largest) in [("", 16_384), ("record_size = '1KiB',", 1024)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let config = format!(
            "workers = 1
            [listener.web]
            bind = '127.0.0.1:0'
            [service.app]
            servers = 'https://{}'
            tls = {{ {tls} ca = '{}', versions = '1.2' }}
            [[route]]
            service = 'app'",
            listener.local_addr().unwrap(),
            certificates.ca.display()
        );
        let weir = Weir::configured(&config, 1);
        let session = certificates.server().core().accept();
        let server = std::thread::spawn(move || {
            let mut tap = Tap::new(listener.accept().unwrap().0, session);
            let found = tap.largest_record_of(BODY);
            tap.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            found
        });
        let body = "x".repeat(BODY);
        let request = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {BODY}\r\n\r\n{body}");
        assert_eq!(Client::connect(weir.address(), None).ask(&request).status, 200);
        let found = server.join().unwrap();
        // The size of a read depends on arrival: the default is a bound here, not a prediction.
        assert!(found <= largest && (tls.is_empty() || found == largest), "{found} of {tls}");
    }
}

#[test]
fn reads_are_as_large_as_their_buffer() {
    let certificates = Certificates::new();
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n").into_bytes();
        answer.extend(pattern(BODY));
        peer.serve(answer);
    });
    let service =
        format!("[service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'", upstream.address);
    // Each read becomes records of up to 16 KiB at once. The head grows on the way, which adds to the size.
    let config = config(&certificates, "", &service);
    let weir = Weir::configured(&format!("{config}\n[buffers]\nread = '4KiB'"), 1);
    let mut tap = Tap::connect(weir.address(), &certificates);
    tap.send(GET);
    let found = tap.largest_record_of(BODY);
    assert!((4096..4096 + 256).contains(&found), "{found}");
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    let certificates = Certificates::new();
    let upstream = named("a");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let plain = "[[route]]\nrespond.status = 200\n";
    let https = format!(
        "{plain}[service.app]\nservers = 'https://{}'\ntls = {{ insecure = true, record_size = '17KiB' }}",
        upstream.address
    );
    for (config, expected) in [
        (
            config(&certificates, "record_size = 511", plain),
            "listener.web.tls.record_size: invalid value `511`: expected 512 to 16384",
        ),
        (
            config(&certificates, "", &https),
            "service.app.tls.record_size: invalid value `17408`: expected 512 to 16384",
        ),
        (
            config(&certificates, "", &format!("{plain}[buffers]\nread = '1KiB'")),
            "buffers.read: invalid value `1024`: expected 4096 to 1048576",
        ),
    ] {
        std::fs::write(&file, config).unwrap();
        let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
        assert!(ended.code == Some(2) && ended.stderr.contains(expected), "{}", ended.stderr);
    }
}
