//! The test server: known responses, known delays, known cost, over HTTP/1.1 and HTTP/2.
//!
//! | target | response |
//! | --- | --- |
//! | `/` | a short text |
//! | `/bytes/N` | `N` bytes of a known pattern ([`pattern`]), streamed |
//! | `/echo` | the request's body, streamed, framed as the request was; in HTTP/2 with its trailers |
//! | `/weir.Echo/Unary` | HTTP/2: a gRPC call; its message returns |
//! | `/weir.Echo/Server` | the same, and the message returns `?messages=N` times, by default once |
//! | `/weir.Echo/Client` | the same with any number of messages; their number and size return |
//! | `/weir.Echo/Bidi`, `/grpc.echo..` | the same, each message returns as it arrives |
//! | `/stats` | the counters so far ([`Totals`]), JSON |
//!
//! With [`Settings::null`] it is the null server instead, which responds to every read with the same bytes, without
//! parsing.
//!
//! `?delay_ms=D` delays the response by at least D milliseconds; `?chunked=1` sends it without its length, that is,
//! chunked in HTTP/1.1. CONNECT gets 501. Every response is built anew, `Date` included. The origin never closes idle
//! connections: that is up to the system under test.
//!
//! A connection speaks HTTP/2 after ALPN has selected it, and in cleartext after the client's preface (RFC 9113, section
//! 3.3), unless [`Settings::http`] says otherwise.

mod connection;
mod content;
mod context;
mod counters;
mod date;
mod echo;
mod h2;
mod null;
pub mod pattern;
mod responding;
mod response;
mod route;
mod settings;
mod worker;

pub use counters::Totals;
pub use settings::{HttpVersions, OriginError, Settings};

use counters::Counters;
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use weir_reactor::mailbox::{Mailbox, Sender, mailbox};
use weir_reactor::stop::{Handlers, Stop, forward_signals};
use weir_reactor::{Listener, cores, run_workers};
use weir_tls::Server;
use weir_transport::Endpoint;
use worker::Worker;

/// A test server whose ports are bound: clients may connect, and are served once [`Origin::run`] runs.
#[derive(Debug)]
pub struct Origin {
    listeners: Vec<(Endpoint, Vec<Listener>)>,
    server: Option<Server>,
    ca: Option<TempDir>,
    cores: Option<cores::Cores>,
    mailboxes: Vec<Mailbox<Stop>>,
    null: Option<Arc<[u8]>>,
    http: HttpVersions,
    handle: Handle,
}

/// Stops a running origin and reads its counters.
#[derive(Clone, Debug)]
pub struct Handle {
    senders: Vec<Sender<Stop>>,
    counters: Arc<[Counters]>,
}

impl Origin {
    /// Binds all ports. Errors: invalid settings, or a port that cannot be bound.
    pub fn bind(settings: &Settings) -> Result<Self, OriginError> {
        if settings.listen.is_empty() {
            return Err(OriginError::NoListener);
        }
        if let Some(length) = settings.null.filter(|length| *length > Settings::MOST_NULL) {
            return Err(OriginError::NullTooLong(length));
        }
        if settings.null.is_some() && settings.http == HttpVersions::Http2 {
            return Err(OriginError::NullHttp2);
        }
        let workers = match settings.workers {
            Some(0) => return Err(OriginError::NoWorkers),
            Some(workers) => workers,
            None => cores::worker_count()?,
        };
        if let Some(cores) = &settings.cores {
            cores.check().map_err(OriginError::Cores)?;
        }
        let (mut server, mut ca) = (None, None);
        if settings.listen.iter().any(|endpoint| endpoint.tls) {
            let (identity, made) = settings.identity()?;
            server = Some(Server::new(&settings.tls(identity))?);
            ca = made;
        } else if settings.identity.is_some() {
            return Err(OriginError::UnusedCertificate);
        }
        let mut listeners = Vec::new();
        for endpoint in &settings.listen {
            let address = endpoint.resolve()?;
            let group = Listener::bind(address, workers)?;
            let port = group.first().and_then(|listener| listener.address().tcp()).map_or(0, |at| at.port());
            let bound = Endpoint { port, ..endpoint.clone() };
            listeners.push((bound, group));
        }
        let (mailboxes, senders): (Vec<_>, Vec<_>) =
            (0..workers).map(|_| mailbox()).collect::<io::Result<_>>()?;
        let counters: Vec<Counters> = (0..workers).map(|_| Counters::default()).collect();
        let handle = Handle { senders, counters: counters.into() };
        let null = settings.null.map(|length| null::response(length).into());
        Ok(Self {
            listeners,
            server,
            ca,
            cores: settings.cores.clone(),
            mailboxes,
            null,
            http: settings.http(),
            handle,
        })
    }

    /// The URLs for clients, in the order of the settings, with the bound ports.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.listeners.iter().map(|(endpoint, _)| endpoint)
    }

    /// The bound addresses, in the order of the settings.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.listeners.iter().filter_map(|(_, group)| group.first()?.address().tcp())
    }

    /// The generated CA certificate, PEM; removed when the origin is dropped. `None`
    /// if no certificate was needed, or one was given.
    pub fn ca_file(&self) -> Option<std::path::PathBuf> {
        self.ca.as_ref().map(|directory| Path::join(directory.path(), "ca.pem"))
    }

    /// A handle to stop it from another thread.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Makes SIGTERM and SIGINT drain it, and a second one stop it at once. Errors: when the handlers cannot be
    /// installed.
    pub fn stop_on_signals(&self) -> Result<(), OriginError> {
        Ok(forward_signals(self.handle.senders.clone(), Handlers::default())?)
    }

    /// Serves until stopped; returns the totals.
    /// Errors: when a worker cannot be started or its loop fails.
    pub fn run(self) -> Result<Totals, OriginError> {
        let Self { listeners, server, ca, cores, mailboxes, null, http, handle } = self;
        let workers = mailboxes.len();
        let mut frontends: Vec<Vec<_>> = (0..workers).map(|_| Vec::new()).collect();
        for (endpoint, group) in listeners {
            for (frontends, listener) in frontends.iter_mut().zip(group) {
                let server = server.as_ref().filter(|_| endpoint.tls);
                frontends.push((listener, server.map(Server::core)));
            }
        }
        run_workers(frontends.into_iter().zip(mailboxes), cores.as_ref(), |index, (frontends, mailbox)| {
            let counters = Arc::clone(&handle.counters);
            Worker::new(index, frontends, mailbox, counters, null.clone(), http)?.run()
        })?;
        drop(ca);
        Ok(handle.totals())
    }
}

impl Handle {
    /// Stops accepting, finishes requests in flight (for at most 5 seconds), and exits.
    pub fn drain(&self) {
        for sender in &self.senders {
            sender.send(Stop::Drain);
        }
    }

    /// The totals so far.
    pub fn totals(&self) -> Totals {
        Counters::sum(&self.counters)
    }
}

/// CPU time of this process.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
