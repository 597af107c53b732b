//! A scripted HTTP/2 server that sends any frames, valid or not, and collects what it receives by stream.

mod connection;

pub(super) use connection::Connection;

use crate::common::{Certificates, DEADLINE, Ending, Peer, Upstream, poll_until};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use weir_http2::{ErrorCode, frame};
use weir_tls::{Identity, Server as TlsServer, ServerSettings};

/// A listener that runs a script for each connection.
pub(super) struct Server {
    upstream: Upstream,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// By connection and stream.
    requests: Mutex<BTreeMap<(usize, u32), Request>>,
    /// The GOAWAY frames received, with their connections.
    go_aways: Mutex<Vec<(usize, ErrorCode)>>,
    has_failed: AtomicBool,
}

/// The received part of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// The number of its connection, from 0.
    pub connection: usize,
    pub stream: u32,
    /// The lines of the head, pseudo-fields first.
    pub head: String,
    pub body: Vec<u8>,
    /// The lines of the trailers.
    pub trailers: String,
    /// DATA frames.
    pub frames: usize,
    /// Whether END_STREAM was received.
    pub ended: bool,
    /// The code of RST_STREAM.
    pub reset: Option<ErrorCode>,
}

impl Server {
    /// A cleartext server.
    pub(super) fn start(script: impl Fn(&mut Connection<'_>) + Send + Sync + 'static) -> Self {
        Self::with_settings(&[], script)
    }

    /// As [`Server::start`], with these settings in the first frame.
    pub(super) fn with_settings(
        settings: &[(u16, u32)],
        script: impl Fn(&mut Connection<'_>) + Send + Sync + 'static,
    ) -> Self {
        let settings = settings.to_vec();
        Self::silent(None, move |connection| {
            frame::write_settings(settings.iter().copied(), &mut connection.out);
            connection.flush();
            script(connection);
        })
    }

    /// A server with TLS that selects `h2`.
    pub(super) fn tls(
        certificates: &Certificates,
        script: impl Fn(&mut Connection<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self::silent(Some(certificates), move |connection| {
            connection.settings(&[]).flush();
            script(connection);
        })
    }

    /// A server that sends no SETTINGS of its own.
    pub(super) fn silent(
        tls: Option<&Certificates>,
        script: impl Fn(&mut Connection<'_>) + Send + Sync + 'static,
    ) -> Self {
        let acceptor = tls.map(|certificates| {
            let identity = Identity::files(&certificates.cert, &certificates.key);
            let settings = ServerSettings { alpn: vec![b"h2".to_vec()], ..ServerSettings::new(identity) };
            TlsServer::new(&settings).unwrap().core()
        });
        let shared = Arc::<Shared>::default();
        let seen = Arc::clone(&shared);
        let upstream = Upstream::start(acceptor, move |peer: &mut Peer| {
            let _guard = Guard(&seen);
            let index = peer.index;
            script(&mut Connection::new(peer, index, Arc::clone(&seen)));
        });
        Self { upstream, shared }
    }

    /// A server that responds to every complete request with status 200 and `ok`.
    pub(super) fn ok() -> Self {
        Self::start(|connection| connection.serve(Connection::ok))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.upstream.address
    }

    /// The number of connections accepted.
    pub(super) fn connections(&self) -> usize {
        self.upstream.connections()
    }

    /// All requests whose heads were received, by connection and stream.
    pub(super) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().values().cloned().collect()
    }

    /// The only request.
    pub(super) fn only(&self) -> Request {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests[0].clone()
    }

    /// Waits until the requests satisfy `condition`; returns them.
    pub(super) fn wait_for(&self, what: &str, condition: impl Fn(&[Request]) -> bool) -> Vec<Request> {
        let mut requests = Vec::new();
        poll_until(DEADLINE, what, || {
            requests = self.requests();
            condition(&requests)
        });
        requests
    }

    /// Waits for this many complete requests.
    pub(super) fn wait_for_complete(&self, count: usize) {
        self.wait_for(&format!("{count} requests"), |requests| {
            requests.iter().filter(|request| request.ended).count() >= count
        });
    }

    /// Waits for the GOAWAY of a connection; returns its code.
    pub(super) fn wait_for_go_away(&self, connection: usize) -> ErrorCode {
        let mut found = None;
        poll_until(DEADLINE, &format!("GOAWAY on connection {connection}"), || {
            let all = self.shared.go_aways.lock().unwrap();
            found = all.iter().find(|(of, _)| *of == connection).map(|(_, code)| *code);
            found.is_some()
        });
        found.unwrap()
    }

    /// Waits until the gateway has closed a connection. The connection's script must be reading.
    pub(super) fn wait_for_ending(&self, connection: usize) -> Ending {
        self.upstream.wait_for_ending(connection)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let has_failed = self.shared.has_failed.load(Ordering::SeqCst);
        assert!(!has_failed || std::thread::panicking(), "the script of a server has panicked");
    }
}

/// Records that a script has panicked, which fails its test.
struct Guard<'a>(&'a Shared);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.has_failed.store(true, Ordering::SeqCst);
        }
    }
}

impl Request {
    /// The value of a field or pseudo-field in the head; empty if absent.
    pub(super) fn field(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(field, _)| *field == name).map(|(_, value)| value).next().unwrap_or_default()
    }

    /// Whether the head has a field.
    pub(super) fn has(&self, name: &str) -> bool {
        self.head.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(": ")))
    }

    pub(super) fn path(&self) -> &str {
        self.field(":path")
    }

    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}
