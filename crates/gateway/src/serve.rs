//! A gateway process: everything that can fail is tried before accepting connections.

use crate::config::{Checked, Fault, Listener as Site, Role, Snapshot};
use crate::control::{keep_resolving, tell};
use crate::observe::journal::{self, Journal};
use crate::observe::{Counters, Log};
use crate::worker::{Control, Worker};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use weir_reactor::listener::BindError;
use weir_reactor::mailbox::{Mailbox, mailbox};
use weir_reactor::stop::forward_signals;
use weir_reactor::{Events, Key, Listener, Reactor, cores, run_workers};
use weir_transport::Endpoint;

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
/// and a summary at the end. Errors: when it cannot start: see [`GatewayError`].
pub fn serve(config: Checked) -> Result<(), GatewayError> {
    let total = run(config, Role::Gateway)?;
    journal::out(total);
    Ok(())
}

/// Passes bytes without HTTP until SIGTERM or SIGINT has drained it: the least that a gateway with the same loop, TLS and
/// kernel can cost. Each client has its own connection to the first service. Errors: as [`serve`].
pub fn relay(config: Checked) -> Result<(), GatewayError> {
    run(config, Role::Tunnel)?;
    Ok(())
}

fn run(config: Checked, role: Role) -> Result<Counters, GatewayError> {
    let total = Mutex::new(Counters::default());
    let (journal, writer) = journal::journal()?;
    let served = start(config, role, journal.clone(), |snapshot, listeners, mailbox| {
        let net = Reactor::new()?;
        mailbox.register(&net, MAIL)?;
        let log = Log::new(journal.clone(), net.now());
        let mut worker = Worker::new(net, log, Arc::clone(snapshot), listeners)?;
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
    Checked { config, mut snapshot }: Checked,
    role: Role,
    journal: Journal,
    work: impl Fn(&Arc<Snapshot>, Vec<Listener>, Mailbox<Control>) -> Result<(), GatewayError> + Sync,
) -> Result<(), GatewayError> {
    for listener in &mut snapshot.listeners {
        listener.role = role;
    }
    let count = match (config.workers, &config.cores) {
        (Some(count), _) => count,
        (None, Some(cores)) => cores.0.len(),
        (None, None) => cores::worker_count()?,
    };
    weir_reactor::limits::raise_open_files()?;
    let (bound, shares) = bind(&snapshot.listeners, count)?;
    let snapshot = Arc::new(snapshot);
    let (mailboxes, senders): (Vec<_>, Vec<_>) = (0..count).map(|_| mailbox()).collect::<io::Result<_>>()?;
    keep_resolving(Arc::clone(&snapshot), senders.clone(), journal)?;
    forward_signals(senders, Some(tell))?;
    // The reader may stop the process at once.
    for endpoint in bound {
        journal::out(format_args!("listening on {endpoint}"));
    }
    run_workers(shares.into_iter().zip(mailboxes), config.cores.as_ref(), |_, (listeners, mailbox)| {
        work(&snapshot, listeners, mailbox)
    })
}

/// Binds each listener once for each worker: where they listen, and each worker's share in their order.
fn bind(sites: &[Site], workers: usize) -> Result<(Vec<Endpoint>, Vec<Vec<Listener>>), GatewayError> {
    let mut bound = Vec::new();
    let mut shares: Vec<Vec<Listener>> = (0..workers).map(|_| Vec::new()).collect();
    for Site { endpoint, key, .. } in sites {
        let at =
            endpoint.resolve().map_err(|error| Fault { key: key.clone(), message: error.to_string() })?;
        let group = Listener::bind(at, workers)?;
        if let Some(first) = group.first() {
            bound.push(Endpoint { port: first.address().port(), ..endpoint.clone() });
        }
        for (share, listener) in shares.iter_mut().zip(group) {
            share.push(listener);
        }
    }
    Ok((bound, shares))
}

/// The key of a worker's mailbox; those of connections and listeners have other tags.
const MAIL: Key = Key::fixed(0, 0);
