//! A gateway process: everything that can fail is tried before accepting connections.

use crate::admin::{self, Admin, Door};
use crate::clock;
use crate::config::{AccessLog, Checked, Fault, Role, Snapshot, workers};
use crate::control::tell;
use crate::ending::Ending;
use crate::gate::Gate;
use crate::in_force::InForce;
use crate::inherited::Inherited;
use crate::limits::{Descriptors, spare};
use crate::names::Keeping;
use crate::notify::Supervisor;
use crate::observe::access::{self, Access, Buffers, Writer};
use crate::observe::journal::{self, Journal};
use crate::observe::{Counters, Log};
use crate::opening::Opening;
use crate::reload::{self, Again, Ask, Reloader};
use crate::secrets::Watching;
use crate::sockets::Sockets;
use crate::standing::Standing;
use crate::upgrade::Upgrades;
use crate::worker::{Control, Peers, Worker};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use weir_reactor::listener::BindError;
use weir_reactor::mailbox::{Mailbox, mailbox};
use weir_reactor::stop::{Handlers, forward_signals};
use weir_reactor::{Events, Key, Listener, Reactor, limits, run_workers};

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
/// and a summary at the end. It accepts from the sockets that are `inherited`, and binds other addresses. At a reload, `again`
/// reads the configuration.
/// Errors: when it cannot start: see [`GatewayError`].
pub fn serve(config: Checked, inherited: Inherited, again: Again) -> Result<(), GatewayError> {
    let total = run(config, Role::Gateway, inherited, Some(again))?;
    journal::out(total);
    Ok(())
}

/// Passes bytes without HTTP until SIGTERM or SIGINT has drained it: the least that a gateway with the same loop, TLS and
/// kernel can cost. Each client has its own connection to the first service. Errors: as [`serve`].
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
    let ending = Ending::default();
    let served = start(
        config,
        role,
        inherited,
        again,
        journal.clone(),
        |snapshot, listeners, mailbox, peers, gate| {
            let net = Reactor::new()?;
            mailbox.register(&net, MAIL)?;
            let log = Log::new(journal.clone(), net.now());
            let access = snapshot.access.as_ref().zip(buffers.clone());
            let access = access.map(|(log, buffers)| Access::new(log.format.clone(), log.when_full, buffers));
            let mut part = ending.part(peers.all.clone());
            let mut worker = Worker::new(net, log, access, Arc::clone(snapshot), listeners)?.among(peers);
            let mut events = Events::default();
            if !gate.pass() {
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

/// Opens the access log.
fn open(log: &AccessLog, journal: &Journal) -> Result<(Buffers, Writer), GatewayError> {
    let path = log.path.display();
    let fault = |error| Fault { key: "log.access".to_owned(), message: format!("{path}: {error}") };
    Ok(access::start(&log.path, journal.clone()).map_err(fault)?)
}

/// Prepares the workers, starts them and waits for them. `work` prepares one, and runs it once the gate is open.
fn start(
    checked: Checked,
    role: Role,
    inherited: Inherited,
    again: Option<Again>,
    journal: Journal,
    work: impl Fn(
        &Arc<Snapshot>,
        Vec<(usize, Listener)>,
        Mailbox<Control>,
        Peers<OwnedFd>,
        &Gate,
    ) -> Result<(), GatewayError>
    + Sync,
) -> Result<(), GatewayError> {
    let mut checked = checked;
    for listener in &mut checked.snapshot.listeners {
        listener.role = role;
    }
    let count = workers(&checked.config)?;
    let limit = limits::raise_open_files()?.map_or(usize::MAX, |limit| limit as usize);
    let Inherited { sockets, before, overrides, state } = inherited;
    checked.snapshot.take_overrides(overrides);
    let watched: Vec<_> = checked.config.watched().collect();
    let hosts: Vec<_> =
        watched.iter().map(|(rights, admin)| admin.own_hosts(*rights).map(Arc::from)).collect();
    let Sockets { places, shares, watched, kept, left } =
        Sockets::new(&checked.snapshot.listeners, &watched, count, sockets)?;
    let cores = checked.config.cores.clone();
    let snapshot = Arc::new(checked.snapshot.clone());
    let (mailboxes, senders): (Vec<_>, Vec<_>) = (0..count).map(|_| mailbox()).collect::<io::Result<_>>()?;
    let in_force = Arc::new(InForce::new(Arc::clone(&snapshot), senders.clone(), journal.clone())?);
    let secrets = Watching::start(&snapshot, &[], journal.clone())?;
    let names = Keeping::start(Arc::clone(&in_force), journal.clone())?;
    let standing = Arc::new(Standing::new(&checked, secrets.files()));
    clock::watch(Arc::clone(&standing), journal.clone())?;
    let (all, limiter, memory) = (senders.clone(), Arc::default(), Arc::default());
    // Each worker will have a poller.
    let descriptors = Arc::new(Descriptors::new(limit, limits::open_files() + count));
    if let Some(fault) = descriptors.fault(snapshot.connections, snapshot.health_checks()) {
        journal.warn(format_args!("weir: warning: {fault}"));
    }
    let supervisor = Supervisor::of_environment();
    let doors: Vec<_> = watched.iter().map(|_| Ok(Arc::new(Door::new()?))).collect::<io::Result<_>>()?;
    let (workers, told) = (senders.clone(), journal.clone());
    let upgrades = Upgrades::new(kept, workers, doors.clone(), supervisor.clone(), told, state);
    let upgrades = Arc::new(upgrades);
    let reloader = |again| {
        let (standing, workers, upgrades) = (Arc::clone(&standing), senders.clone(), Arc::clone(&upgrades));
        let (in_force, journal, supervisor) = (Arc::clone(&in_force), journal.clone(), supervisor.clone());
        let descriptors = Arc::clone(&descriptors);
        let reloader = Reloader {
            again,
            checked,
            in_force,
            names,
            secrets,
            standing,
            descriptors,
            workers,
            upgrades,
            supervisor,
            journal,
        };
        reload::start(reloader)
    };
    let reload = again.map(reloader).transpose()?;
    forward_signals(senders.clone(), handlers(reload.as_ref(), &upgrades))?;
    let gate = Arc::new(Gate::default());
    let threads = count + watched.len();
    let mut places_of_state = Vec::new();
    for (((rights, listener), hosts), door) in watched.into_iter().zip(hosts).zip(&doors) {
        let (standing, upgrades) = (Arc::clone(&standing), Arc::clone(&upgrades));
        places_of_state.push((rights.name(), admin::place(&listener)));
        let admin = Admin {
            rights,
            workers: senders.clone(),
            standing,
            in_force: Arc::clone(&in_force),
            journal: journal.clone(),
            reload: reload.clone(),
            upgrades,
            most: spare(limit) / 2 / doors.len(),
            hosts,
        };
        admin::start(listener, door, &gate, admin)?;
    }
    let open = Opening { before, left, upgrades, watched: places_of_state, places, supervisor };
    let ended = thread::scope(|scope| {
        let opening = thread::Builder::new().name("opening".into());
        let opening = opening.spawn_scoped(scope, || open.run(&gate, threads))?;
        let parts = shares.into_iter().zip(mailboxes);
        let ended = run_workers(parts, cores.as_ref(), |own, (listeners, mailbox)| {
            let descriptors = Arc::clone(&descriptors);
            let (all, limiter, memory) = (all.clone(), Arc::clone(&limiter), Arc::clone(&memory));
            let peers = Peers { own, all, limiter, descriptors, memory };
            let ended = work(&snapshot, listeners, mailbox, peers, &gate);
            // If it could not be prepared, the others would wait for it for ever.
            gate.give_up();
            ended
        });
        gate.give_up();
        let opened = opening.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.and(opened)
    });
    // If nothing has begun, its thread waits there.
    gate.give_up();
    for door in doors {
        door.finish();
    }
    ended
}

fn handlers(reload: Option<&Sender<Ask>>, upgrades: &Arc<Upgrades>) -> Handlers<Control> {
    // The thread that is asked ends with the process.
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
        tell: Some(tell),
        reload: reload.map(|reload| asking(|| Ask::Reload(None), reload)),
        upgrade: reload.map(upgrading),
        stopping: Some(Box::new(move |_| stopped.stop())),
    }
}

/// The key of a worker's mailbox; those of connections and listeners have other tags.
const MAIL: Key = Key::fixed(0, 0);
