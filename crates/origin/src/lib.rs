//! The test server: known answers, known delays, known cost.
//!
//! | target | answer |
//! | --- | --- |
//! | `/` | a short text |
//! | `/bytes/N` | `N` bytes of a known pattern ([`pattern`]), streamed |
//! | `/echo` | the request's body, streamed, framed as the request was |
//! | `/stats` | what the origin has counted so far ([`Totals`]), JSON |
//!
//! With [`Settings::null`] it is the null server instead, which answers every read with the same bytes and looks at
//! nothing.
//!
//! `?delay_ms=D` has the answer wait D milliseconds, never less; `?chunked=1` has it framed in chunks. Every answer is
//! formed anew, `Date` included. Idle connections are never closed by the origin: when one ends is the business of
//! whoever is being tested.

mod answer;
mod answering;
mod connection;
mod counters;
mod date;
mod desk;
mod null;
pub mod pattern;
mod route;
mod settings;
mod worker;

pub use counters::Totals;
pub use settings::{OriginError, Settings};

use counters::Counters;
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use weir_reactor::mailbox::{Mailbox, Sender, mailbox};
use weir_reactor::stop::{Stop, forward_signals};
use weir_reactor::{Listener, cores, run_workers};
use weir_tls::Server;
use weir_transport::Endpoint;
use worker::{Gate, Worker};

/// A test server whose ports are bound: clients may connect, and are served once [`Origin::run`] runs.
#[derive(Debug)]
pub struct Origin {
    listeners: Vec<(Endpoint, Vec<Listener>)>,
    server: Option<Server>,
    ca: Option<TempDir>,
    cores: Option<cores::Cores>,
    mailboxes: Vec<Mailbox<Stop>>,
    null: Option<Arc<[u8]>>,
    handle: Handle,
}

/// Tells a running origin to stop, and what it has counted.
#[derive(Clone, Debug)]
pub struct Handle {
    senders: Vec<Sender<Stop>>,
    counters: Arc<[Counters]>,
}

impl Origin {
    /// Binds all ports. Errors: when the settings cannot work, or a port cannot be had.
    pub fn bind(settings: &Settings) -> Result<Self, OriginError> {
        if settings.listen.is_empty() {
            return Err(OriginError::NoListener);
        }
        if let Some(length) = settings.null.filter(|length| *length > Settings::MOST_NULL) {
            return Err(OriginError::NullTooLong(length));
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
            let bound = Endpoint { port: group[0].address().port(), ..endpoint.clone() };
            listeners.push((bound, group));
        }
        let (mailboxes, senders): (Vec<_>, Vec<_>) =
            (0..workers).map(|_| mailbox()).collect::<io::Result<_>>()?;
        let counters: Vec<Counters> = (0..workers).map(|_| Counters::default()).collect();
        let handle = Handle { senders, counters: counters.into() };
        let null = settings.null.map(|length| null::answer(length).into());
        Ok(Self { listeners, server, ca, cores: settings.cores.clone(), mailboxes, null, handle })
    }

    /// Where clients find it, in the order of the settings, with the ports that were bound.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.listeners.iter().map(|(endpoint, _)| endpoint)
    }

    /// The addresses that are bound, in the order of the settings.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.listeners.iter().map(|(_, group)| group[0].address())
    }

    /// The certificate of the authority that the origin made for itself, PEM; it is gone when the origin is. `None`
    /// when no certificate was needed, or one was given.
    pub fn ca_file(&self) -> Option<std::path::PathBuf> {
        self.ca.as_ref().map(|directory| Path::join(directory.path(), "ca.pem"))
    }

    /// For another thread, to stop it.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Has SIGTERM and SIGINT drain it, and a second one end it at once. Errors: when the handlers cannot be installed.
    pub fn stop_on_signals(&self) -> Result<(), OriginError> {
        Ok(forward_signals(self.handle.senders.clone())?)
    }

    /// Serves until it is told to stop, and says what it has done.
    /// Errors: when a worker cannot be started or its loop fails.
    pub fn run(self) -> Result<Totals, OriginError> {
        let Self { listeners, server, ca, cores, mailboxes, null, handle } = self;
        let workers = mailboxes.len();
        let mut gates: Vec<Vec<Gate>> = (0..workers).map(|_| Vec::new()).collect();
        for (endpoint, group) in listeners {
            for (gates, listener) in gates.iter_mut().zip(group) {
                let server = server.as_ref().filter(|_| endpoint.tls);
                gates.push(Gate { listener, acceptor: server.map(Server::core) });
            }
        }
        run_workers(gates.into_iter().zip(mailboxes), cores.as_ref(), |index, (gates, mailbox)| {
            Worker::new(index, gates, mailbox, Arc::clone(&handle.counters), null.clone())?.run()
        })?;
        drop(ca);
        Ok(handle.totals())
    }
}

impl Handle {
    /// Accepts no more, finishes what has begun (for at most 5 seconds), and ends.
    pub fn drain(&self) {
        for sender in &self.senders {
            sender.send(Stop::Drain);
        }
    }

    /// What has been counted so far.
    pub fn totals(&self) -> Totals {
        Counters::sum(&self.counters)
    }
}

/// The CPU time that this process has used, by its own clock.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
