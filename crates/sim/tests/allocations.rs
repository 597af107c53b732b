//! Allocations per warm request: none in cleartext. The production worker runs over kernel sockets in a thread whose
//! allocations the test counts; client and origin run in other threads.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_gateway::Config;
use weir_gateway::document::{Listener, Route, Server, Service, ServiceTls};
use weir_gateway::harness::{Bound, Role, WorkerHarness};
use weir_reactor::Reactor;
use weir_tls::issue::{KeyKind, issue};
use weir_tls::{Acceptor, Client, ClientSettings, PeerName, Roots, ServerSettings, Session};

/// Warm-up rounds, in which lists and stores grow to their final size.
const WARM: usize = 100;
/// Counted rounds.
const ROUNDS: usize = 300;

/// In 300 sequential requests, the worker allocates nothing.
#[test]
fn a_warm_cleartext_request_allocates_nothing() {
    for by_host in [false, true] {
        let counted = Case { by_host, ..Case::cleartext(1) }.count();
        assert_eq!(counted, 0, "in {ROUNDS} requests; by host: {by_host}");
    }
}

/// Sixteen concurrent requests: the number of events per turn varies, so a list may still grow once.
#[test]
fn warm_cleartext_requests_at_once_allocate_nothing() {
    let connections = 16;
    let counted = Case { by_host: true, ..Case::cleartext(connections) }.count();
    let requests = ROUNDS * connections;
    assert!(counted < requests as u64 / 100, "{counted} in {requests} requests");
}

/// On a side with TLS, the TLS library allocates once for the record of a request, and once for that of its response.
#[test]
fn a_warm_request_over_tls_allocates_what_is_known() {
    for (client_tls, upstream_tls, known) in
        [(true, false, ONE_SIDE), (false, true, ONE_SIDE), (true, true, 2 * ONE_SIDE)]
    {
        let counted = Case { client_tls, upstream_tls, ..Case::cleartext(1) }.count();
        println!(
            "TLS to the client {client_tls}, to the server {upstream_tls}: {counted} in {ROUNDS} requests"
        );
        // Counting may include a part of the preceding request.
        assert!(
            counted <= known * (ROUNDS as u64 + 1),
            "{counted} in {ROUNDS} requests, {known} each are known"
        );
    }
}

/// Allocations of the TLS library per request on one side. The exact number also shows that the test counts
/// allocations.
const ONE_SIDE: u64 = 2;

#[derive(Clone, Copy)]
struct Case {
    /// Client connections, each with one request in flight.
    connections: usize,
    /// The route matches by host and path; otherwise it matches all requests.
    by_host: bool,
    client_tls: bool,
    upstream_tls: bool,
}

impl Case {
    fn cleartext(connections: usize) -> Self {
        Self { connections, by_host: false, client_tls: false, upstream_tls: false }
    }

    /// The worker's allocations in all counted rounds.
    fn count(self) -> u64 {
        let issued = issue(&[NAME], KeyKind::EcdsaP256).unwrap();
        let server = weir_tls::Server::new(&ServerSettings::new(issued.identity())).unwrap();
        // The certificates are the test's own; verifying them is not its subject.
        let settings = ClientSettings { roots: Roots::DangerouslyNone, ..ClientSettings::default() };
        let client = Client::new(&settings).unwrap();
        let name: PeerName = NAME.parse().unwrap();

        let origin = serve(self.upstream_tls.then(|| server.core()));
        let listeners = weir_reactor::Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), 1).unwrap();
        let address = listeners[0].address().tcp().unwrap();
        let bound = Bound::new(
            Role::Gateway,
            &self.config(origin),
            self.client_tls.then(|| server.clone()),
            self.upstream_tls.then(|| (client.clone(), name.clone())),
        );
        let (counting, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let asking = std::thread::spawn({
            let (counting, done) = (Arc::clone(&counting), Arc::clone(&done));
            move || {
                let session = || self.client_tls.then(|| client.core().connect(&name));
                let mut peers: Vec<_> =
                    (0..self.connections).map(|_| Peer::connect(address, session())).collect();
                for round in 0..WARM + ROUNDS {
                    counting.store(round >= WARM, Ordering::SeqCst);
                    for peer in &mut peers {
                        peer.send(REQUEST).unwrap();
                    }
                    for peer in &mut peers {
                        assert!(peer.message(ANSWER.len()).unwrap());
                    }
                }
                counting.store(false, Ordering::SeqCst);
                done.store(true, Ordering::SeqCst);
                // Closing the connections wakes the worker.
            }
        });
        let mut harness = WorkerHarness::new(Reactor::new().unwrap(), bound.unwrap(), listeners).unwrap();
        let mut counted = 0;
        while !done.load(Ordering::SeqCst) {
            let turn = allocation_counter::measure(|| harness.turn().unwrap());
            if counting.load(Ordering::SeqCst) {
                counted += turn.count_total;
            }
        }
        asking.join().unwrap();
        assert_eq!(harness.lines(), Vec::<String>::new());
        counted
    }

    fn config(self, origin: SocketAddr) -> Config {
        let scheme = if self.upstream_tls { "https" } else { "http" };
        let server = Server::new(format!("{scheme}://{origin}").parse().unwrap());
        let tls = ServiceTls { insecure: self.upstream_tls, ..ServiceTls::default() };
        let route = Route { service: Some("app".into()), ..Route::default() };
        let listener = Listener::new(vec!["127.0.0.1:0".parse().unwrap()]);
        Config {
            workers: Some(1),
            listeners: [("web".into(), listener)].into(),
            services: [("app".into(), Service { tls, ..Service::new(vec![server]) })].into(),
            routes: match self.by_host {
                false => vec![route],
                true => vec![
                    Route { host: vec![NAME.into()], path: vec!["/a/*".parse().unwrap()], ..route.clone() },
                    Route { host: vec!["*.example.org".into()], ..route },
                ],
            },
            ..Config::default()
        }
    }
}

const NAME: &str = "a.example";
const REQUEST: &[u8] = b"GET /a/b?c=d HTTP/1.1\r\nHost: a.example\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n0123456789";

/// Starts a server that responds to all requests, with a thread for each connection. Returns the address.
fn serve(tls: Option<Acceptor>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let session = tls.as_ref().map(Acceptor::accept);
            std::thread::spawn(move || {
                let mut peer = Peer::new(tcp.unwrap(), session);
                while let Ok(true) = peer.head() {
                    peer.send(ANSWER).unwrap();
                }
            });
        }
    });
    address
}

/// A blocking connection, cleartext or TLS.
struct Peer {
    tcp: TcpStream,
    session: Option<Session>,
    ready: Vec<u8>,
}

impl Peer {
    fn new(tcp: TcpStream, session: Option<Session>) -> Self {
        tcp.set_nodelay(true).unwrap();
        tcp.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self { tcp, session, ready: Vec::new() }
    }

    fn connect(address: SocketAddr, session: Option<Session>) -> Self {
        let mut peer = Self::new(TcpStream::connect(address).unwrap(), session);
        if let Some(session) = &mut peer.session {
            let mut hello = Vec::new();
            session.receive(&mut [], &mut peer.ready, &mut hello).unwrap();
            peer.tcp.write_all(&hello).unwrap();
        }
        while peer.session.as_ref().is_some_and(Session::is_handshaking) {
            assert!(peer.fill().unwrap());
        }
        peer
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(session) = &mut self.session else { return self.tcp.write_all(bytes) };
        let mut sealed = Vec::new();
        session.send(bytes, &mut sealed).map_err(io::Error::other)?;
        self.tcp.write_all(&sealed)
    }

    /// Reads a head without a body; false at the end of the stream.
    fn head(&mut self) -> io::Result<bool> {
        while !self.ready.ends_with(b"\r\n\r\n") {
            if !self.fill()? {
                return Ok(false);
            }
        }
        self.ready.clear();
        Ok(true)
    }

    /// Reads a message of at least `least` bytes that ends with [`ANSWER`]'s body; false at the end of the stream.
    fn message(&mut self, least: usize) -> io::Result<bool> {
        while self.ready.len() < least || !self.ready.ends_with(b"0123456789") {
            if !self.fill()? {
                return Ok(false);
            }
        }
        self.ready.clear();
        Ok(true)
    }

    fn fill(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 4096];
        let count = self.tcp.read(&mut bytes)?;
        match &mut self.session {
            None => self.ready.extend_from_slice(&bytes[..count]),
            Some(session) => {
                let mut replies = Vec::new();
                session
                    .receive(&mut bytes[..count], &mut self.ready, &mut replies)
                    .map_err(io::Error::other)?;
                self.tcp.write_all(&replies)?;
            }
        }
        Ok(count > 0)
    }
}
