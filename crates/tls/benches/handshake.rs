//! Connections of one request each, in memory, one side of which is measured.
//!
//! `handshake KIND COUNT [TICKETS [VERSION]]` makes COUNT connections: hellos, a request, an answer, close_notify from
//! both. KIND is `full` or `resumed`. Under callgrind only the calls of one side are counted, with
//! `--collect-atstart=no --toggle-collect='*::server_side*'` or `'*::client_side*'`; the difference of two counts is free
//! of what is done once. `handshake idle KIND COUNT ...` ends with the servers' sessions open after an answer, for a
//! heap profiler.
//! docs/decisions/0018-new-connections.md has the commands and the figures.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use weir_tls::issue::{KeyKind, issue};
use weir_tls::{
    Acceptor, Client, ClientSettings, Connector, PeerName, Roots, Server, ServerSettings, Session, Suite,
    Version,
};

const REQUEST: &[u8] = &[b'q'; 100];
const ANSWER: &[u8] = &[b'a'; 300];

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Makes pairs of sessions and keeps the buffers that a core has once.
struct Bench {
    acceptor: Acceptor,
    connector: Connector,
    peer: PeerName,
    resumed: bool,
    wire: Wire,
}

#[derive(Default)]
struct Wire {
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    plaintext: Vec<u8>,
}

impl Bench {
    fn new(kind: &str, tickets: u32, version: Version) -> Outcome<Self> {
        let issued = issue(&["localhost"], KeyKind::EcdsaP256)?;
        let directory = std::env::temp_dir().join(format!("handshake-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let ca = issued.write_to(&directory)?.ca;
        let suites: Vec<Suite> = Suite::ALL.into_iter().filter(|suite| suite.version() == version).collect();
        let server = ServerSettings {
            tickets,
            versions: vec![version],
            suites: suites.clone(),
            ..ServerSettings::new(issued.identity())
        };
        let client = ClientSettings {
            roots: Roots::File(ca),
            versions: vec![version],
            suites,
            ..ClientSettings::default()
        };
        let bench = Self {
            acceptor: Server::new(&server)?.core(),
            connector: Client::new(&client)?.core(),
            peer: "localhost".parse()?,
            resumed: match kind {
                "full" => false,
                "resumed" => true,
                other => return Err(format!("kind {other:?}: expected full or resumed").into()),
            },
            wire: Wire::default(),
        };
        std::fs::remove_dir_all(directory)?;
        Ok(bench)
    }

    /// A connection that has answered its request.
    fn answered(&mut self, resumed: bool) -> (Session, Session) {
        let wire = &mut self.wire;
        wire.to_server.clear();
        let mut client = client_side(|| {
            let mut client = match resumed {
                true => self.connector.connect(&self.peer),
                false => self.connector.connect_full(&self.peer),
            };
            client.receive(&mut [], &mut wire.plaintext, &mut wire.to_server).expect("a hello");
            client
        });
        let mut server = server_side(|| self.acceptor.accept());
        wire.up(&mut server);
        while client.is_handshaking() {
            wire.down(&mut client);
            // With the end of the handshake, as a gateway's client sends it.
            if !client.is_handshaking() && !server.is_handshaking() {
                break;
            }
            wire.up(&mut server);
        }
        client_side(|| client.send(REQUEST, &mut wire.to_server)).expect("the handshake is done");
        wire.up(&mut server);
        assert_eq!(wire.plaintext, REQUEST);
        server_side(|| server.send(ANSWER, &mut wire.to_client)).expect("the handshake is done");
        wire.down(&mut client);
        assert_eq!(wire.plaintext, ANSWER);
        let is_resumption = server.facts().expect("facts").kind.is_resumption();
        assert_eq!(is_resumption, resumed);
        (client, server)
    }

    fn connection(&mut self, resumed: bool) {
        let (mut client, mut server) = self.answered(resumed);
        let wire = &mut self.wire;
        client_side(|| client.close(&mut wire.to_server));
        wire.up(&mut server);
        server_side(|| {
            server.close(&mut wire.to_client);
            drop(server);
        });
        wire.down(&mut client);
        client_side(|| drop(client));
    }
}

impl Wire {
    fn up(&mut self, server: &mut Session) {
        self.plaintext.clear();
        server_side(|| server.receive(&mut self.to_server, &mut self.plaintext, &mut self.to_client))
            .expect("the client is ours");
        self.to_server.clear();
    }

    fn down(&mut self, client: &mut Session) {
        self.plaintext.clear();
        client_side(|| client.receive(&mut self.to_client, &mut self.plaintext, &mut self.to_server))
            .expect("the server is ours");
        self.to_client.clear();
    }
}

/// Everything that the server does.
#[inline(never)]
fn server_side<T>(call: impl FnOnce() -> T) -> T {
    black_box(call())
}

/// Everything that the client does.
#[inline(never)]
fn client_side<T>(call: impl FnOnce() -> T) -> T {
    black_box(call())
}

fn timed(call: impl FnOnce()) -> Duration {
    let start = Instant::now();
    call();
    start.elapsed()
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let mut arguments = arguments.iter().map(String::as_str).peekable();
    let idle = arguments.next_if_eq(&"idle").is_some();
    let kind = arguments.next().unwrap_or("full");
    let count: usize = arguments.next().map_or(Ok(10), str::parse)?;
    let tickets = arguments.next().map_or(Ok(1), str::parse)?;
    let version = arguments.next().map_or(Ok(Version::Tls13), str::parse)?;
    let mut bench = Bench::new(kind, tickets, version)?;
    if bench.resumed {
        bench.connection(false);
    }
    if !idle {
        let fastest = (0..count).map(|_| timed(|| bench.connection(bench.resumed))).min();
        println!("{:?}, the fastest connection, both sides", fastest.unwrap_or_default());
        return Ok(());
    }
    let mut servers = Vec::with_capacity(count);
    for _ in 0..count {
        servers.push(bench.answered(bench.resumed).1);
    }
    println!("{} bytes in the session itself", size_of::<Session>());
    // Not freed, so that a heap profiler sees them at the end.
    std::process::exit(0);
}
