//! Two in-memory sessions, back to back, to count and time the calls of one side.
//!
//! Under callgrind, `--toggle-collect='*::server_side*'` or `'*::client_side*'` counts the calls of that side
//! alone.

#![allow(dead_code, reason = "each bench uses a part")]

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use weir_tls::{
    Acceptor, Client, ClientAuth, ClientSettings, Connector, Group, Identity, PeerName, Roots, Server,
    ServerSettings, Session, Suite, Version,
};

const REQUEST: &[u8] = &[b'q'; 100];
const ANSWER: &[u8] = &[b'a'; 300];

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// The settings of both sides.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub version: Version,
    pub suites: Vec<Suite>,
    pub group: Group,
    /// Tickets per TLS 1.3 handshake. With 0, the server stores TLS 1.2 sessions.
    pub tickets: u32,
    pub record_size: usize,
}

impl Choice {
    /// The default settings for one version.
    pub(crate) fn of(version: Version) -> Self {
        let suites = Suite::ALL.into_iter().filter(|suite| suite.version() == version).collect();
        Self { version, suites, group: Group::X25519, tickets: 1, record_size: 16_384 }
    }
}

/// Creates pairs of sessions and keeps the buffers that a core shares among its connections.
pub(crate) struct Pair {
    acceptor: Acceptor,
    connector: Connector,
    peer: PeerName,
    wire: Wire,
}

#[derive(Default)]
struct Wire {
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    plaintext: Vec<u8>,
    spent: Spent,
}

/// The time spent in the calls of each side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub server: Duration,
    pub client: Duration,
}

impl Pair {
    /// Creates both sides. `server` and `client` are directories with the side's `ca.pem`, `cert.pem` and `key.pem`.
    /// Without `client`, the client has no certificate.
    pub(crate) fn new(choice: &Choice, server: &Path, client: Option<&Path>) -> Outcome<Self> {
        let identity = |of: &Path| Identity::files(of.join("cert.pem"), of.join("key.pem"));
        let server_settings = ServerSettings {
            tickets: choice.tickets,
            versions: vec![choice.version],
            suites: choice.suites.clone(),
            groups: vec![choice.group],
            record_size: choice.record_size,
            client_auth: client.map(|of| ClientAuth::required(of.join("ca.pem"))),
            ..ServerSettings::new(identity(server))
        };
        let client_settings = ClientSettings {
            roots: Roots::File(server.join("ca.pem")),
            versions: vec![choice.version],
            suites: choice.suites.clone(),
            groups: vec![choice.group],
            record_size: choice.record_size,
            identity: client.map(identity),
            ..ClientSettings::default()
        };
        Ok(Self {
            acceptor: Server::new(&server_settings)?.core(),
            connector: Client::new(&client_settings)?.core(),
            peer: "localhost".parse()?,
            wire: Wire::default(),
        })
    }

    /// Opens a connection, and returns its sessions after the first response.
    pub(crate) fn answered(&mut self, resumed: bool) -> (Session, Session) {
        let wire = &mut self.wire;
        wire.to_server.clear();
        let mut client = timed(&mut wire.spent.client, || {
            client_side(|| {
                let mut client = match resumed {
                    true => self.connector.connect(&self.peer),
                    false => self.connector.connect_full(&self.peer),
                };
                client.receive(&mut [], &mut wire.plaintext, &mut wire.to_server).expect("a hello");
                client
            })
        });
        let mut server = timed(&mut wire.spent.server, || server_side(|| self.acceptor.accept()));
        wire.up(&mut server);
        while client.is_handshaking() {
            wire.down(&mut client);
            // Send the request with the client's Finished, as a gateway does.
            if !client.is_handshaking() && !server.is_handshaking() {
                break;
            }
            wire.up(&mut server);
        }
        let Wire { spent, to_server, .. } = wire;
        timed(&mut spent.client, || client_side(|| client.send(REQUEST, to_server)))
            .expect("the handshake is done");
        wire.up(&mut server);
        assert_eq!(wire.plaintext, REQUEST);
        wire.answer(&mut server, ANSWER);
        wire.down(&mut client);
        assert_eq!(wire.plaintext, ANSWER);
        let is_resumption = server.facts().expect("facts").kind.is_resumption();
        assert_eq!(is_resumption, resumed);
        (client, server)
    }

    /// Runs a connection from handshake to close; returns the time spent on each side.
    pub(crate) fn connection(&mut self, resumed: bool) -> Spent {
        self.wire.spent = Spent::default();
        let (mut client, mut server) = self.answered(resumed);
        let wire = &mut self.wire;
        let Wire { spent, to_server, .. } = wire;
        timed(&mut spent.client, || client_side(|| client.close(to_server)));
        wire.up(&mut server);
        let Wire { spent, to_client, .. } = wire;
        timed(&mut spent.server, || {
            server_side(|| {
                server.close(to_client);
                drop(server);
            });
        });
        wire.down(&mut client);
        timed(&mut wire.spent.client, || client_side(|| drop(client)));
        wire.spent
    }

    /// Sends `body` to the client of a pair; returns the time spent on each side.
    pub(crate) fn body(&mut self, (client, server): &mut (Session, Session), body: &[u8]) -> Spent {
        self.wire.spent = Spent::default();
        self.wire.answer(server, body);
        self.wire.down(client);
        assert_eq!(self.wire.plaintext.len(), body.len());
        self.wire.spent
    }
}

impl Wire {
    fn up(&mut self, server: &mut Session) {
        self.plaintext.clear();
        timed(&mut self.spent.server, || {
            server_side(|| server.receive(&mut self.to_server, &mut self.plaintext, &mut self.to_client))
        })
        .expect("the client is ours");
        self.to_server.clear();
    }

    fn answer(&mut self, server: &mut Session, bytes: &[u8]) {
        timed(&mut self.spent.server, || server_side(|| server.send(bytes, &mut self.to_client)))
            .expect("the handshake is done");
    }

    fn down(&mut self, client: &mut Session) {
        self.plaintext.clear();
        timed(&mut self.spent.client, || {
            client_side(|| client.receive(&mut self.to_client, &mut self.plaintext, &mut self.to_server))
        })
        .expect("the server is ours");
        self.to_client.clear();
    }
}

/// Runs the server's part of the work in a stack frame that callgrind can select.
#[inline(never)]
fn server_side<T>(call: impl FnOnce() -> T) -> T {
    black_box(call())
}

/// Runs the client's part of the work in a stack frame that callgrind can select.
#[inline(never)]
fn client_side<T>(call: impl FnOnce() -> T) -> T {
    black_box(call())
}

fn timed<T>(spent: &mut Duration, call: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = call();
    *spent += start.elapsed();
    result
}
