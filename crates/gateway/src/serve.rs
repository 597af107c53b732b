//! A gateway process: everything that can fail is tried before accepting connections.

use crate::admin::{self, Admin};
use crate::config::document::Bind;
use crate::config::{AccessLog, Checked, Fault, Listener as Site, Role, Snapshot, document, workers};
use crate::control::tell;
use crate::in_force::InForce;
use crate::names::Keeping;
use crate::observe::access::{self, Access, Buffers, Writer};
use crate::observe::journal::{self, Journal};
use crate::observe::{Counters, Log};
use crate::reload::{self, Again, Reloader};
use crate::resources::{Descriptors, spare};
use crate::secrets::Watching;
use crate::standing::Standing;
use crate::worker::{Control, Peers, Worker};
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use weir_reactor::listener::BindError;
use weir_reactor::mailbox::{Mailbox, mailbox};
use weir_reactor::stop::{self, forward_signals};
use weir_reactor::{Events, Key, Listener, Reactor, limits, run_workers};
use weir_transport::{Address, Endpoint, Place};

/// Why a gateway failed.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// An invalid configuration.
    #[error(transparent)]
    Config(#[from] Fault),
    /// A port.
    #[error("{0}")]
    Bind(#[from] BindError),
    /// A system error.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Runs the gateway until SIGTERM or SIGINT has drained it. Prints a line per listener when ready,
/// and a summary at the end. At a reload, `again` reads the configuration.
/// Errors: when it cannot start: see [`GatewayError`].
pub fn serve(config: Checked, again: Again) -> Result<(), GatewayError> {
    let total = run(config, Role::Gateway, Some(again))?;
    journal::out(total);
    Ok(())
}

/// Passes bytes without HTTP until SIGTERM or SIGINT has drained it: the least that a gateway with the same loop, TLS and
/// kernel can cost. Each client has its own connection to the first service. Errors: as [`serve`].
pub fn relay(config: Checked) -> Result<(), GatewayError> {
    run(config, Role::Tunnel, None)?;
    Ok(())
}

fn run(config: Checked, role: Role, again: Option<Again>) -> Result<Counters, GatewayError> {
    let total = Mutex::new(Counters::default());
    let (journal, writer) = journal::journal()?;
    let access = match &config.snapshot.access {
        Some(log) => Some(open(log, &journal)?),
        None => None,
    };
    let buffers = access.as_ref().map(|(buffers, _)| buffers.clone());
    let served = start(config, role, again, journal.clone(), |snapshot, listeners, mailbox, peers| {
        let net = Reactor::new()?;
        mailbox.register(&net, MAIL)?;
        let log = Log::new(journal.clone(), net.now());
        let access = snapshot.access.as_ref().zip(buffers.clone());
        let access = access.map(|(log, buffers)| Access::new(log.format.clone(), log.when_full, buffers));
        let mut worker = Worker::new(net, log, access, Arc::clone(snapshot), listeners)?.among(peers);
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
        if let Some(access) = &mut worker.core.access {
            access.flush();
        }
        total.lock().unwrap_or_else(PoisonError::into_inner).add(&worker.core.counters);
        Ok(())
    });
    drop(buffers);
    if let Some((buffers, writer)) = access {
        drop(buffers);
        writer.finish();
    }
    drop(journal);
    writer.finish();
    served?;
    Ok(total.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Opens the access log.
fn open(log: &AccessLog, journal: &Journal) -> Result<(Buffers, Writer), GatewayError> {
    let path = log.path.display();
    let fault = |error| Fault { key: "log.access".to_owned(), message: format!("{path}: {error}") };
    Ok(access::start(&log.path, journal.clone()).map_err(fault)?)
}

/// Prepares the workers, starts them and waits for them.
fn start(
    checked: Checked,
    role: Role,
    again: Option<Again>,
    journal: Journal,
    work: impl Fn(&Arc<Snapshot>, Vec<Listener>, Mailbox<Control>, Peers<OwnedFd>) -> Result<(), GatewayError>
    + Sync,
) -> Result<(), GatewayError> {
    let mut checked = checked;
    for listener in &mut checked.snapshot.listeners {
        listener.role = role;
    }
    let count = workers(&checked.config)?;
    let limit = limits::raise_open_files()?.map_or(usize::MAX, |limit| limit as usize);
    let (bound, shares) = bind(&checked.snapshot.listeners, count)?;
    let admin = checked.config.admin.as_ref().map(bind_admin).transpose()?;
    let cores = checked.config.cores.clone();
    let snapshot = Arc::new(checked.snapshot.clone());
    let (mailboxes, senders): (Vec<_>, Vec<_>) = (0..count).map(|_| mailbox()).collect::<io::Result<_>>()?;
    let in_force = Arc::new(InForce::new(Arc::clone(&snapshot), senders.clone(), journal.clone())?);
    let secrets = Watching::start(&snapshot, &[], journal.clone())?;
    let names = Keeping::start(Arc::clone(&in_force), journal.clone())?;
    let standing = Arc::new(Standing::new(&checked, secrets.files()));
    let (all, crowd, memory) = (senders.clone(), Arc::default(), Arc::default());
    // Each worker will have a poller, and each check that is made at one time a connection.
    let descriptors = Arc::new(Descriptors::new(limit, limits::open_files() + count + checks(&snapshot)));
    if let Some(fault) = descriptors.fault(snapshot.connections) {
        journal.line(format_args!("weir: warning: {fault}"));
    }
    let reloader = |again| {
        let (standing, workers) = (Arc::clone(&standing), senders.clone());
        let descriptors = Arc::clone(&descriptors);
        reload::start(Reloader {
            again,
            checked,
            in_force,
            names,
            secrets,
            standing,
            descriptors,
            workers,
            journal,
        })
    };
    let reload = again.map(reloader).transpose()?;
    let at_signal = reload.clone().map(|reload| -> stop::Reload {
        // Its thread ends with the process.
        Box::new(move || drop(reload.send(None)))
    });
    forward_signals(senders.clone(), Some(tell), at_signal)?;
    let admin = admin.map(Arc::new);
    if let Some(listener) = &admin {
        journal::out(format_args!("admin on {}", listener.place()?));
        admin::start(
            Arc::clone(listener),
            Admin { workers: senders, standing, reload, most: spare(limit) / 2 },
        )?;
    }
    // The reader may stop the process at once.
    for place in bound {
        journal::out(format_args!("listening on {place}"));
    }
    let ended =
        run_workers(shares.into_iter().zip(mailboxes), cores.as_ref(), |own, (listeners, mailbox)| {
            let descriptors = Arc::clone(&descriptors);
            let (all, crowd, memory) = (all.clone(), Arc::clone(&crowd), Arc::clone(&memory));
            let peers = Peers { own, all, crowd, descriptors, memory };
            work(&snapshot, listeners, mailbox, peers)
        });
    if let Some(listener) = admin {
        listener.close();
    }
    ended
}

/// How many servers are asked for their health.
fn checks(snapshot: &Snapshot) -> usize {
    let checked = snapshot.services.iter().filter(|service| service.health.is_some());
    checked.map(|service| service.servers.len()).sum()
}

/// Binds the admin address. Errors: it is in use, say.
fn bind_admin(admin: &document::Admin) -> Result<admin::Listener, GatewayError> {
    let fault = |message: String| GatewayError::from(Fault { key: "admin.bind".to_owned(), message });
    match &admin.bind {
        Some(Bind::Unix(path)) => {
            let mode = admin.mode.unwrap_or_default().0;
            let group = Listener::bind_unix(path, mode, 1).map_err(|error| fault(error.to_string()))?;
            Ok(admin::Listener::Unix(group.into_iter().next().ok_or_else(|| fault("no socket".to_owned()))?))
        }
        Some(Bind::Tcp { .. }) | None => {
            let at = admin.address();
            let listener = TcpListener::bind(&at).map_err(|error| fault(format!("{at}: {error}")))?;
            Ok(admin::Listener::Tcp(listener))
        }
    }
}

/// Binds each listener once for each worker: where they listen, and each worker's share in their order.
fn bind(sites: &[Site], workers: usize) -> Result<(Vec<Place>, Vec<Vec<Listener>>), GatewayError> {
    let mut bound = Vec::new();
    let mut shares: Vec<Vec<Listener>> = (0..workers).map(|_| Vec::new()).collect();
    for Site { place, mode, key, .. } in sites {
        let at = place.resolve().map_err(|error| Fault { key: key.clone(), message: error.to_string() })?;
        let group = match &at {
            Address::Tcp(at) => Listener::bind(*at, workers)?,
            Address::Unix(path) => Listener::bind_unix(path, *mode, workers)?,
        };
        let port = group.first().and_then(|first| first.address().tcp()).map(|at| at.port());
        bound.push(match (place, port) {
            (Place::Url(endpoint), Some(port)) => Endpoint { port, ..endpoint.clone() }.into(),
            (place, _) => place.clone(),
        });
        for (share, listener) in shares.iter_mut().zip(group) {
            share.push(listener);
        }
    }
    Ok((bound, shares))
}

/// The key of a worker's mailbox; those of connections and listeners have other tags.
const MAIL: Key = Key::fixed(0, 0);
