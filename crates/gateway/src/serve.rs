//! A gateway process: everything that can fail is tried before accepting connections.

use crate::config::{Role, Settings, Snapshot};
use crate::control::{keep_resolving, tell};
use crate::observe::journal::{self, Journal};
use crate::observe::{Counters, Log};
use crate::upstream::Service;
use crate::worker::{Control, Core, Worker};
use std::io;
use std::sync::{Mutex, PoisonError};
use weir_reactor::listener::BindError;
use weir_reactor::mailbox::{Mailbox, mailbox};
use weir_reactor::stop::forward_signals;
use weir_reactor::{Events, Key, Listener, Reactor, cores, run_workers};
use weir_tls::{Acceptor, Client, Connector, PeerName, Roots, Server, SettingsError};
use weir_transport::Endpoint;

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
struct Seed {
    upstream_tls: Option<(Connector, PeerName)>,
    listeners: Vec<(Listener, Option<Acceptor>)>,
}

/// Runs the gateway until SIGTERM or SIGINT has drained it. Prints a line per listener when ready,
/// and a summary at the end. Errors: when it cannot start: see [`GatewayError`].
pub fn serve(settings: &Settings) -> Result<(), GatewayError> {
    let total = run(settings, Role::Gateway)?;
    journal::out(total);
    Ok(())
}

/// Passes bytes without HTTP until SIGTERM or SIGINT has drained it: the least that a gateway with the same loop, TLS and
/// kernel can cost. Each client has its own upstream connection. Errors: as [`serve`].
pub fn relay(settings: &Settings) -> Result<(), GatewayError> {
    run(settings, Role::Tunnel)?;
    Ok(())
}

fn run(settings: &Settings, role: Role) -> Result<Counters, GatewayError> {
    let total = Mutex::new(Counters::default());
    let (journal, writer) = journal::journal()?;
    let served = start(settings, role, journal.clone(), |snapshot, seed, mailbox| {
        let net = Reactor::new()?;
        mailbox.register(&net, MAIL)?;
        let log = Log::new(journal.clone(), net.now());
        let core = Core::new(net, snapshot.policy.clone(), log);
        let service = Service::new(snapshot.service.clone(), seed.upstream_tls);
        let mut worker = Worker::new(core, snapshot.role, service, seed.listeners)?;
        let mut events = Events::default();
        while !worker.is_drained() {
            worker.wait(&mut events)?;
            worker.turn(&events);
            if events.ready().any(|ready| ready.key == MAIL) {
                for message in mailbox.take() {
                    worker.control(message);
                }
            }
        }
        total.lock().unwrap_or_else(PoisonError::into_inner).add(&worker.core.counters);
        Ok(())
    });
    drop(journal);
    writer.finish();
    served?;
    Ok(total.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Prepares the workers, starts them and waits for them.
fn start(
    settings: &Settings,
    role: Role,
    journal: Journal,
    work: impl Fn(&Snapshot, Seed, Mailbox<Control>) -> Result<(), GatewayError> + Sync,
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
        let listeners = groups.iter_mut().filter_map(|(endpoint, group)| {
            let acceptor = if endpoint.tls { server.as_ref().map(Server::core) } else { None };
            group.pop().map(|listener| (listener, acceptor))
        });
        let listeners = listeners.collect();
        let upstream_tls = upstream_tls.as_ref().map(|(client, name)| (client.core(), name.clone()));
        seeds.push(Seed { upstream_tls, listeners });
    }
    let snapshot = Snapshot::new(settings, role, address);
    let (mailboxes, senders): (Vec<_>, Vec<_>) = (0..count).map(|_| mailbox()).collect::<io::Result<_>>()?;
    keep_resolving(snapshot.clone(), settings.to.clone(), senders.clone(), journal)?;
    forward_signals(senders, Some(tell))?;
    if unverified {
        journal::err(format_args!(
            "weir: warning: --upstream-insecure: the certificate of {} is not verified; a man in the middle can \
             read and change everything",
            settings.to
        ));
    }
    // The reader may stop the process at once.
    for endpoint in bound {
        journal::out(format_args!("listening on {endpoint}"));
    }
    run_workers(seeds.into_iter().zip(mailboxes), settings.cores.as_ref(), |_, (seed, mailbox)| {
        work(&snapshot, seed, mailbox)
    })
}

/// The key of a worker's mailbox; those of connections and listeners have other tags.
const MAIL: Key = Key::fixed(0, 0);
