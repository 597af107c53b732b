//! A gateway process: everything that can fail is tried before accepting connections.

use crate::Settings;
use crate::core::{Core, Counts, Tally, UpstreamAddress};
use crate::lines;
use crate::log::Log;
use crate::worker::{Frontend, Worker};
use std::io;
use std::sync::{Mutex, PoisonError};
use weir_http1::{RequestHead, ResponseHead};
use weir_reactor::listener::BindError;
use weir_reactor::mailbox::{Mailbox, mailbox};
use weir_reactor::stop::{Stop, forward_signals};
use weir_reactor::{Listener, Reactor, cores, run_workers};
use weir_tls::{Client, PeerName, Roots, Server, SettingsError};
use weir_transport::{Endpoint, Wire};

/// Why a gateway failed.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// Inconsistent settings.
    #[error("{0}")]
    Settings(String),
    /// A certificate, key or TLS parameter.
    #[error("{0}")]
    Tls(#[from] SettingsError),
    /// A port.
    #[error("{0}")]
    Bind(#[from] BindError),
    /// A system error.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl GatewayError {
    /// Whether the settings are at fault, not the state of the system.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Settings(_) | Self::Tls(_))
    }
}

/// The parts of a worker, apart from its thread.
pub(crate) struct Seed {
    pub upstream: UpstreamAddress,
    pub frontends: Vec<Frontend>,
}

/// Runs the gateway until SIGTERM or SIGINT has drained it. Prints a line per listener when ready,
/// and a summary at the end. Errors: when it cannot start: see [`GatewayError`].
pub fn serve(settings: Settings) -> Result<(), GatewayError> {
    let total = Mutex::new(Counts::default());
    let (journal, writer) = lines::journal()?;
    let served = start(&settings, |seed, mailbox| {
        let reactor = Reactor::new()?;
        let core = Core {
            log: Log::new(journal.clone(), reactor.now()),
            reactor,
            settings: settings.clone(),
            upstream: seed.upstream,
            wire: Wire::default(),
            inbox: Vec::new(),
            outbox: Vec::new(),
            request: RequestHead::new(),
            response: ResponseHead::new(),
            counts: Counts::default(),
            draining: false,
        };
        let mut worker = Worker::new(core, seed.frontends, mailbox)?;
        worker.run()?;
        total.lock().unwrap_or_else(PoisonError::into_inner).add(&worker.core.counts);
        Ok(())
    });
    drop(journal);
    writer.finish();
    served?;
    let counts = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    lines::out(format_args!(
        "served {} requests on {} connections (handshakes: {}), {} upstream connections (handshakes: {}); \
         ended early: {}",
        counts.requests,
        counts.connections,
        listing(&counts.handshakes),
        counts.upstream_connections,
        listing(&counts.upstream_handshakes),
        listing(&counts.ended),
    ));
    Ok(())
}

/// Prepares the workers, starts them and waits for them.
pub(crate) fn start(
    settings: &Settings,
    work: impl Fn(Seed, Mailbox<Stop>) -> Result<(), GatewayError> + Sync,
) -> Result<(), GatewayError> {
    let count = match settings.workers {
        Some(0) => {
            return Err(GatewayError::Settings("--workers: invalid value `0`: expected at least 1".into()));
        }
        Some(count) => count,
        None => settings.cores.as_ref().map_or_else(cores::worker_count, |cores| Ok(cores.0.len()))?,
    };
    if let Some(cores) = &settings.cores {
        cores.check().map_err(|error| GatewayError::Settings(format!("--cores: {error}")))?;
    }
    weir_reactor::limits::raise_open_files()?;
    let server = settings.server_tls.as_ref().map(Server::new).transpose()?;
    let client = if settings.to.tls { Some(Client::new(&settings.upstream_tls.client)?) } else { None };
    if settings.to.port == 0 {
        return Err(GatewayError::Settings(format!("--to: {}: invalid port 0", settings.to)));
    }
    let unverified = settings.upstream_tls.client.roots == Roots::DangerouslyNone;
    if unverified && !settings.to.tls {
        let why = format!(
            "--upstream-insecure: --to {} is not https, so there is no certificate to verify",
            settings.to
        );
        return Err(GatewayError::Settings(why));
    }
    let name = settings.upstream_tls.name.as_ref().unwrap_or(&settings.to.host);
    let address = settings.to.resolve().map_err(|error| GatewayError::Settings(format!("--to: {error}")))?;
    let mut groups = Vec::new();
    for endpoint in &settings.listen {
        if endpoint.tls && server.is_none() {
            let why = format!("--listen {endpoint} needs a certificate: give --cert FILE and --key FILE");
            return Err(GatewayError::Settings(why));
        }
        let at = endpoint.resolve().map_err(|error| GatewayError::Settings(format!("--listen: {error}")))?;
        groups.push((endpoint, Listener::bind(at, count)?));
    }
    let bound: Vec<Endpoint> = groups
        .iter()
        .map(|(endpoint, group)| Endpoint { port: group[0].address().port(), ..(*endpoint).clone() })
        .collect();
    let upstream_tls = match &client {
        Some(client) => {
            let wrong = |error| GatewayError::Settings(format!("--to {}: {error}", settings.to));
            Some((client, name.parse::<PeerName>().map_err(wrong)?))
        }
        None => None,
    };
    let mut seeds = Vec::new();
    for _ in 0..count {
        let frontends = groups.iter_mut().filter_map(|(endpoint, group)| {
            let acceptor = if endpoint.tls { server.as_ref().map(Server::core) } else { None };
            group.pop().map(|listener| Frontend { listener, acceptor })
        });
        let tls = upstream_tls.as_ref().map(|(client, name)| (client.core(), name.clone()));
        seeds.push(Seed {
            upstream: UpstreamAddress { address, authority: settings.to.authority(), tls },
            frontends: frontends.collect(),
        });
    }
    let (mailboxes, senders): (Vec<_>, Vec<_>) = (0..count).map(|_| mailbox()).collect::<io::Result<_>>()?;
    forward_signals(senders)?;
    if unverified {
        lines::err(format_args!(
            "weir: warning: --upstream-insecure: the certificate of {} is not verified; a man in the middle can \
             read and change everything",
            settings.to
        ));
    }
    // The reader may stop the process at once.
    for endpoint in bound {
        lines::out(format_args!("listening on {endpoint}"));
    }
    run_workers(seeds.into_iter().zip(mailboxes), settings.cores.as_ref(), |_, (seed, mailbox)| {
        work(seed, mailbox)
    })
}

fn listing(counts: &Tally) -> String {
    let parts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    if parts.is_empty() { "none".to_string() } else { parts.join(", ") }
}
