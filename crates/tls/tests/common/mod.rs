//! Two in-memory sessions, back to back, and certificates for them.

#![allow(unreachable_pub)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use weir_tls::issue::{Authority, Files, Issued, KeyKind};
use weir_tls::{
    Acceptor, Client, ClientSettings, Connector, Facts, PeerName, Roots, Server, ServerSettings, Session,
    SystemTime, TimeProvider, TlsError, UnixTime, Version,
};

/// A certificate for `localhost` and `127.0.0.1` and its CA, on disk.
pub struct Pki {
    pub authority: Authority,
    pub issued: Issued,
    pub files: Files,
    _directory: TempDir,
}

impl Pki {
    pub fn new(kind: KeyKind) -> Self {
        Self::issued_by(Authority::new().unwrap(), kind)
    }

    pub fn issued_by(authority: Authority, kind: KeyKind) -> Self {
        let issued = authority.issue(&["localhost", "127.0.0.1"], kind).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let files = issued.write_to(directory.path()).unwrap();
        Self { authority, issued, files, _directory: directory }
    }

    pub fn server_settings(&self) -> ServerSettings {
        ServerSettings::new(self.issued.identity())
    }

    pub fn client_settings(&self) -> ClientSettings {
        ClientSettings { roots: Roots::File(self.files.ca.clone()), ..ClientSettings::default() }
    }

    pub fn acceptor(&self, change: impl FnOnce(&mut ServerSettings)) -> Acceptor {
        let mut settings = self.server_settings();
        change(&mut settings);
        Server::new(&settings).unwrap().core()
    }

    pub fn connector(&self, change: impl FnOnce(&mut ClientSettings)) -> Connector {
        let mut settings = self.client_settings();
        change(&mut settings);
        Client::new(&settings).unwrap().core()
    }
}

/// A wall clock that only the test moves.
#[derive(Debug)]
pub struct Clock(AtomicU64);

impl Clock {
    pub fn new(seconds: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(seconds)))
    }

    /// Starts at the system's time and stands still until the test moves it.
    pub fn stopped_now() -> Arc<Self> {
        Self::new(SystemTime.current_time().unwrap().as_secs())
    }

    pub fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    pub fn retreat(&self, seconds: u64) {
        self.0.fetch_sub(seconds, Ordering::SeqCst);
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(self.0.load(Ordering::SeqCst))))
    }
}

/// The default ticket lifetime, in seconds.
pub const EPOCH: u64 = 12 * 60 * 60;

/// Restricts a client to one version.
pub fn only(version: Version) -> impl Fn(&mut ClientSettings) {
    move |settings| {
        settings.versions = vec![version];
        settings.suites.retain(|suite| suite.version() == version);
    }
}

pub fn localhost() -> PeerName {
    "localhost".parse().unwrap()
}

/// A client and a server, with the bytes in transit.
pub struct Pair {
    pub client: Session,
    pub server: Session,
    pub to_server: Vec<u8>,
    pub to_client: Vec<u8>,
    /// The bytes that each side has decrypted.
    pub at_server: Vec<u8>,
    pub at_client: Vec<u8>,
}

impl Pair {
    pub fn new(connector: &Connector, acceptor: &Acceptor) -> Self {
        Self::to(&localhost(), connector, acceptor)
    }

    pub fn to(name: &PeerName, connector: &Connector, acceptor: &Acceptor) -> Self {
        Self::of(connector.connect(name), acceptor)
    }

    pub fn of(client: Session, acceptor: &Acceptor) -> Self {
        Self {
            client,
            server: acceptor.accept(),
            to_server: Vec::new(),
            to_client: Vec::new(),
            at_server: Vec::new(),
            at_client: Vec::new(),
        }
    }

    /// Carries bytes until both sides are silent. Returns the first error of the client and of the server.
    pub fn settle(&mut self) -> (Option<TlsError>, Option<TlsError>) {
        let (mut client_error, mut server_error) = (None, None);
        if self.client.is_handshaking() && self.to_client.is_empty() {
            let started = self.client.receive(&mut [], &mut self.at_client, &mut self.to_server);
            client_error = started.err();
        }
        while !self.to_server.is_empty() || !self.to_client.is_empty() {
            let mut bytes = std::mem::take(&mut self.to_server);
            if !bytes.is_empty() && server_error.is_none() {
                let result = self.server.receive(&mut bytes, &mut self.at_server, &mut self.to_client);
                server_error = result.err();
            }
            let mut bytes = std::mem::take(&mut self.to_client);
            if !bytes.is_empty() && client_error.is_none() {
                let result = self.client.receive(&mut bytes, &mut self.at_client, &mut self.to_server);
                client_error = result.err();
            }
        }
        (client_error, server_error)
    }

    /// Completes the handshake, sends a message in each direction, closes the client's side, and returns the
    /// handshake's facts. Both sides must agree on them, except for the certificates: each side reports the
    /// other's.
    pub fn exchange(&mut self) -> Facts {
        assert_eq!(self.settle(), (None, None));
        self.client.send(b"request", &mut self.to_server).unwrap();
        self.server.send(b"answer", &mut self.to_client).unwrap();
        assert_eq!(self.settle(), (None, None));
        assert_eq!((&self.at_server[..], &self.at_client[..]), (&b"request"[..], &b"answer"[..]));
        self.client.close(&mut self.to_server);
        assert_eq!(self.settle(), (None, None));
        assert!(self.server.peer_closed() && !self.client.peer_closed());
        let facts = self.client.facts().unwrap().clone();
        assert_eq!(self.server.facts().map(without_chain), Some(without_chain(&facts)));
        facts
    }
}

/// The client's first flight: a record with its ClientHello.
pub fn client_hello(client: &mut Session) -> Vec<u8> {
    let mut hello = Vec::new();
    client.receive(&mut [], &mut Vec::new(), &mut hello).unwrap();
    hello
}

/// The client's facts as the server reports them.
pub fn without_chain(facts: &Facts) -> Facts {
    Facts { chain: None, ..facts.clone() }
}

pub fn handshake(connector: &Connector, acceptor: &Acceptor) -> Facts {
    Pair::new(connector, acceptor).exchange()
}
