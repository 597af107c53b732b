//! A gateway process: prepares everything that can fail, then starts the workers and waits for them.

use super::active_config::ActiveConfig;
use super::admin_listener::AdminListener;
use super::certificates::report_renewed;
use super::config_status::ConfigStatus;
use super::endpoints::report_outdated;
use super::error::GatewayError;
use super::inherited::Inherited;
use super::notify::Supervisor;
use super::reload::{self, Again, Ask, Reloader};
use super::reports;
use super::shutdown::Shutdown;
use super::sockets::{Rebinder, Sockets};
use super::start_barrier::StartBarrier;
use super::startup::Startup;
use super::upgrade::Upgrades;
use super::watch::{NameWatch, SecretsWatch, clock};
use crate::admin::{self, Admin};
use crate::config::{AccessLog, Checked, Fault, ListenerId, Role, Snapshot, workers};
use crate::limits::{Descriptors, SharedLimits, spare};
use crate::observe::access::{self, Access, Buffers, Writer};
use crate::observe::journal::{self, Journal};
use crate::observe::{Counters, Log};
use crate::worker::{Control, Peers, Worker};
use std::io;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use weir_reactor::mailbox::{Mailbox, mailbox};
use weir_reactor::stop::{Handlers, forward_signals};
use weir_reactor::{Events, Key, Listener, Reactor, limits, run_workers};

/// Runs the gateway until SIGTERM or SIGINT has drained it. Prints a line per listener when ready, and a summary at the
/// end. Accepts from the sockets in `inherited`, and binds other addresses. A reload reads the configuration with
/// `again`. Errors: the gateway cannot start, see [`GatewayError`].
pub fn serve(config: Checked, inherited: Inherited, again: Again) -> Result<(), GatewayError> {
    let total = run(config, Role::Gateway, inherited, Some(again))?;
    journal::out(total);
    Ok(())
}

/// Forwards bytes without HTTP until SIGTERM or SIGINT has drained it, to measure the lower bound of a gateway's cost
/// with the same event loop, TLS and kernel. Each client gets its own connection to the first service. Errors: as
/// [`serve`].
pub fn relay(config: Checked) -> Result<(), GatewayError> {
    run(config, Role::Tunnel, Inherited::default(), None)?;
    Ok(())
}

fn run(
    config: Checked,
    role: Role,
    inherited: Inherited,
    again: Option<Again>,
) -> Result<Counters, GatewayError> {
    let total = Mutex::new(Counters::default());
    let (journal, writer) = journal::journal()?;
    let access = match &config.snapshot.access {
        Some(log) => Some(open(log, &journal)?),
        None => None,
    };
    let buffers = access.as_ref().map(|(buffers, _)| buffers.clone());
    let shutdown = Shutdown::default();
    let served = start(
        config,
        role,
        inherited,
        again,
        journal.clone(),
        |snapshot, limits, listeners, mailbox, peers, barrier| {
            let net = Reactor::new()?;
            mailbox.register(&net, MAIL)?;
            let log = Log::new(journal.clone(), net.now());
            let access = snapshot.access.as_ref().zip(buffers.clone());
            let access = access.map(|(log, buffers)| Access::new(log.format.clone(), log.when_full, buffers));
            let mut part = shutdown.part(peers.all.clone());
            let mut worker = Worker::new(net, log, access, snapshot, limits, listeners)?.among(peers);
            let mut events = Events::default();
            if !barrier.pass() {
                return Ok(());
            }
            while !part.is_over(|| worker.is_drained()) {
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
        },
    );
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

/// Opens the access log, and starts the thread that writes it. Errors: the log's path, and why it cannot be opened.
fn open(log: &AccessLog, journal: &Journal) -> Result<(Buffers, Writer), GatewayError> {
    let path = log.path.display();
    let fault = |error| Fault { key: "log.access".to_owned(), message: format!("{path}: {error}") };
    Ok(access::start(&log.path, journal.clone()).map_err(fault)?)
}

/// Prepares the process, starts the workers and waits for them. `work` prepares a worker, and runs it once the barrier
/// opens.
fn start(
    checked: Checked,
    role: Role,
    inherited: Inherited,
    again: Option<Again>,
    journal: Journal,
    work: impl Fn(
        Arc<Snapshot>,
        Arc<SharedLimits>,
        Vec<(ListenerId, Listener)>,
        Mailbox<Control>,
        Peers<Reactor>,
        &StartBarrier,
    ) -> Result<(), GatewayError>
    + Sync,
) -> Result<(), GatewayError> {
    let mut checked = checked;
    for listener in &mut Arc::make_mut(&mut checked.snapshot).listeners {
        listener.role = role;
    }
    let count = workers(&checked.config)?;
    let limit = limits::raise_open_files()?.map_or(usize::MAX, |limit| limit as usize);
    let Inherited { sockets, old, endpoints, certificates, overrides, state } = inherited;
    report_outdated(checked.take_endpoints(&endpoints, None)?, &journal);
    report_renewed(checked.take_certificates(&certificates)?, &journal);
    Arc::make_mut(&mut checked.snapshot).take_overrides(overrides);
    let admins: Vec<_> = checked.config.watched().collect();
    let hosts: Vec<_> =
        admins.iter().map(|(rights, admin)| admin.own_hosts(*rights).map(Arc::from)).collect();
    let Sockets { places, shares, admin: admin_sockets, kept, left } =
        Sockets::new(&checked.snapshot.listeners, &admins, count, sockets)?;
    let rebinder = Rebinder::new(&checked.snapshot.listeners, &kept, count);
    let cores = checked.config.cores.clone();
    let snapshot = Arc::clone(&checked.snapshot);
    let checked = Arc::new(checked);
    let shared = Arc::new(SharedLimits::new(&snapshot));
    let (mailboxes, senders): (Vec<_>, Vec<_>) = (0..count).map(|_| mailbox()).collect::<io::Result<_>>()?;
    let active = Arc::new(ActiveConfig::new(
        Arc::clone(&snapshot),
        Arc::clone(&shared),
        senders.clone(),
        journal.clone(),
    )?);
    let secrets = SecretsWatch::start(&snapshot, &[], journal.clone())?;
    let names = NameWatch::start(Arc::clone(&active), journal.clone())?;
    let status = Arc::new(ConfigStatus::new(&checked, secrets.files()));
    clock::watch(Arc::clone(&status), journal.clone())?;
    let (all, limiter, memory) = (senders.clone(), Arc::default(), Arc::default());
    // The count includes a poller for each worker, which the worker will open later.
    let descriptors = Arc::new(Descriptors::new(limit, limits::open_files() + count));
    if let Some(fault) = descriptors.fault(snapshot.connections, snapshot.health_checks()) {
        journal.warn(format_args!("weir: warning: {fault}"));
    }
    let supervisor = Supervisor::of_environment();
    let admin_listeners: Vec<_> =
        admin_sockets.iter().map(|_| Ok(Arc::new(AdminListener::new()?))).collect::<io::Result<_>>()?;
    let (workers, log) = (senders.clone(), journal.clone());
    let upgrades = Upgrades::new(kept, workers, admin_listeners.clone(), supervisor.clone(), log, state);
    let upgrades = Arc::new(upgrades);
    let reloader = |again| {
        let (status, workers, upgrades) = (Arc::clone(&status), senders.clone(), Arc::clone(&upgrades));
        let (active, journal, supervisor) = (Arc::clone(&active), journal.clone(), supervisor.clone());
        let descriptors = Arc::clone(&descriptors);
        let reloader = Reloader {
            again,
            checked,
            active,
            names,
            secrets,
            status,
            descriptors,
            workers,
            upgrades,
            rebinder,
            supervisor,
            journal,
        };
        reload::start(reloader)
    };
    let reload = again.map(reloader).transpose()?;
    forward_signals(senders.clone(), handlers(reload.as_ref(), &upgrades))?;
    let barrier = Arc::new(StartBarrier::default());
    let threads = count + admin_sockets.len();
    let mut admin_places = Vec::new();
    for (((rights, socket), hosts), listener) in admin_sockets.into_iter().zip(hosts).zip(&admin_listeners) {
        let (status, upgrades) = (Arc::clone(&status), Arc::clone(&upgrades));
        admin_places.push((rights.name(), admin::place(&socket)));
        let admin = Admin {
            rights,
            workers: senders.clone(),
            status,
            active: Arc::clone(&active),
            journal: journal.clone(),
            reload: reload.clone(),
            upgrades,
            most: spare(limit) / 2 / admin_listeners.len(),
            hosts,
        };
        admin::start(socket, listener, &barrier, admin)?;
    }
    // Each worker takes over a reference, and this thread keeps none, so that a reload can free the snapshot.
    let configs = vec![(snapshot, shared); count];
    let startup = Startup { old, left, upgrades, admin_places, places, supervisor };
    let ended = thread::scope(|scope| {
        let thread = thread::Builder::new().name("startup".into());
        let started = thread.spawn_scoped(scope, || startup.run(&barrier, threads))?;
        let parts = shares.into_iter().zip(mailboxes).zip(configs);
        let ended = run_workers(parts, cores.as_ref(), |own, ((listeners, mailbox), (snapshot, shared))| {
            let descriptors = Arc::clone(&descriptors);
            let (all, limiter, memory) = (all.clone(), Arc::clone(&limiter), Arc::clone(&memory));
            let peers = Peers { own, all, limiter, descriptors, memory };
            let ended = work(snapshot, shared, listeners, mailbox, peers, &barrier);
            // If preparing this worker failed, the other threads must not wait for it.
            barrier.give_up();
            ended
        });
        barrier.give_up();
        let started = started.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.and(started)
    });
    // If the start has failed, the admin threads still wait at the barrier.
    barrier.give_up();
    for listener in admin_listeners {
        listener.finish();
    }
    ended
}

fn handlers(reload: Option<&Sender<Ask>>, upgrades: &Arc<Upgrades>) -> Handlers<Control> {
    // The reload thread lives as long as the process, so sending succeeds.
    let asking = |ask: fn() -> Ask, reload: &Sender<Ask>| -> Box<dyn Fn() + Send> {
        let reload = reload.clone();
        Box::new(move || drop(reload.send(ask())))
    };
    let upgrading = |reload: &Sender<Ask>| -> Box<dyn Fn() + Send> {
        let (reload, upgrades) = (reload.clone(), Arc::clone(upgrades));
        Box::new(move || match upgrades.begin() {
            Ok(()) => drop(reload.send(Ask::Upgrade(None))),
            Err(error) => journal::err(format_args!("weir: upgrade refused: {error}")),
        })
    };
    let stopped = Arc::clone(upgrades);
    Handlers {
        tell: Some(reports::print),
        reload: reload.map(|reload| asking(|| Ask::Reload(None), reload)),
        upgrade: reload.map(upgrading),
        stopping: Some(Box::new(move |_| stopped.stop())),
    }
}

/// The key of a worker's mailbox; keys of connections and listeners use other tags.
const MAIL: Key = Key::fixed(0, 0);
