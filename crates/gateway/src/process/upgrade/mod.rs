//! Upgrades: a new process replaces this one without losing a connection. The new process inherits the listening
//! sockets. This process accepts connections until the new one does, and then drains.

mod certificates;
mod channel;
mod message;
mod new_process;
mod old_process;
mod program;

pub(super) use message::{Handed, State};
pub(super) use old_process::{OldProcess, Received};

use super::admin_listener::AdminListener;
use super::error::GatewayError;
use super::notify::Supervisor;
use super::sockets::{OpenSocket, Rebinder, Rebinding, Rebound};
use crate::config::{Fault, ListenerId, Snapshot};
use crate::observe::journal::Journal;
use crate::worker::Control;
use new_process::{Failure, Handover, Line, NewProcess};
use program::Program;
use serde::Serialize;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_reactor::mailbox::Sender;

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub(crate) enum Outcome {
    Taken { pid: u32 },
    Refused { error: String },
}

/// The state of this process's upgrades: it may attempt several, of which at most one succeeds.
#[derive(Debug)]
pub(crate) struct Upgrades {
    phase: Mutex<Phase>,
    program: Option<Program>,
    workers: Vec<Sender<Control>>,
    admin_listeners: Vec<Arc<AdminListener>>,
    supervisor: Supervisor,
    journal: Journal,
    taken: u64,
    refused: AtomicU64,
}

#[derive(Debug)]
enum Phase {
    /// This process does not accept yet; the old process, if there is one, is still the service.
    Starting(Vec<OpenSocket>),
    Serving(Vec<OpenSocket>),
    /// An upgrade was requested; with a [`Candidate`], it is in progress.
    Upgrading(Vec<OpenSocket>, Option<Candidate>),
    Stopping,
    /// The workers are draining. `taken`: the listeners that the new process has taken over.
    HandedOver {
        pid: u32,
        taken: Arc<[ListenerId]>,
    },
}

#[derive(Debug)]
struct Candidate {
    line: Arc<Line>,
    /// The numbers of the sockets that the process does not take over; `None` until it may begin.
    left: Option<Vec<usize>>,
}

impl Upgrades {
    /// The state of a process with these listening sockets. `before`: the upgrades so far, including the one that
    /// started this process.
    pub(crate) fn new(
        sockets: Vec<OpenSocket>,
        workers: Vec<Sender<Control>>,
        admin_listeners: Vec<Arc<AdminListener>>,
        supervisor: Supervisor,
        journal: Journal,
        before: State,
    ) -> Self {
        Self {
            phase: Mutex::new(Phase::Starting(sockets)),
            program: Program::of_process(),
            workers,
            admin_listeners,
            supervisor,
            journal,
            taken: before.taken,
            refused: AtomicU64::new(before.refused),
        }
    }

    /// The numbers of successful and refused upgrades, including those of old processes.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.taken, self.refused.load(Ordering::Relaxed))
    }

    pub(crate) fn successor(&self) -> Option<u32> {
        match *self.lock() {
            Phase::HandedOver { pid, .. } => Some(pid),
            _ => None,
        }
    }

    /// Checks that changes at run time will last. Errors: a new process is taking over or has done so, and would not
    /// receive them.
    pub(crate) fn lasts(&self) -> Result<(), String> {
        match &*self.lock() {
            Phase::Upgrading(..) => Err(format!("{UPGRADING}: ask again when it is over")),
            Phase::HandedOver { pid, .. } => Err(in_place(*pid)),
            Phase::Starting(_) | Phase::Serving(_) | Phase::Stopping => Ok(()),
        }
    }

    /// Listens on all sockets, and reports to the old process, if there is one, that this one is now the service.
    /// Returns false if a signal has stopped this process. Errors: as listen(2), or the old process continues.
    pub(crate) fn begin_listening(&self, old: Option<&OldProcess>) -> Result<bool, GatewayError> {
        let mut phase = self.lock();
        let Phase::Starting(sockets) = &mut *phase else {
            return match old {
                Some(_) => Err(io::Error::other("upgrade: the new process was told to stop").into()),
                None => Ok(false),
            };
        };
        sockets.iter().filter(|kept| !kept.joins).try_for_each(OpenSocket::begin)?;
        if let Some(old) = old {
            old.serve()?;
        }
        // The upgrade cannot be undone from here on, since the old process cannot accept connections from the queue of
        // a new socket. So an error at a single address is only a warning.
        let added = sockets.iter().filter(|kept| kept.joins).map(OpenSocket::begin);
        for error in added.filter_map(Result::err) {
            self.journal.warn(format_args!("weir: warning: {error}"));
        }
        for kept in sockets.iter().filter(|_| old.is_some()) {
            if let Err(error) = kept.claim() {
                self.journal.warn(format_args!("weir: warning: {error}"));
            }
        }
        *phase = Phase::Serving(std::mem::take(sockets));
        Ok(true)
    }

    /// Applies a change of the listening sockets, and records it in `rebinder`. Errors: the system denies it, or this
    /// process is not the service; then nothing has changed.
    pub(crate) fn rebind(&self, rebinding: Rebinding, rebinder: &mut Rebinder) -> Result<Rebound, Fault> {
        let mut phase = self.lock();
        let (sockets, why) = match &mut *phase {
            // The reload thread also upgrades, so a requested upgrade begins after the reload.
            Phase::Serving(sockets) | Phase::Upgrading(sockets, None) => (sockets, None),
            Phase::Starting(sockets) => (sockets, Some("this process does not serve yet".to_owned())),
            Phase::Upgrading(sockets, Some(_)) => (sockets, Some(UPGRADING.to_owned())),
            Phase::Stopping => (&mut Vec::new(), Some(STOPPING.to_owned())),
            Phase::HandedOver { pid, .. } => (&mut Vec::new(), Some(in_place(*pid))),
        };
        match why.zip(rebinding.changed()) {
            Some((why, key)) => Err(Fault { key: key.to_owned(), message: why }),
            None => rebinding.commit(sockets, rebinder),
        }
    }

    /// Begins an upgrade, which [`Upgrades::run`] then performs. Errors: the reason why it cannot begin now.
    pub(crate) fn begin(&self) -> Result<(), String> {
        let mut phase = self.lock();
        let result = match &mut *phase {
            // A container ends with its process 1, which would exit after the upgrade.
            Phase::Serving(_) if std::process::id() == 1 => {
                Err("this is process 1, and its end would end the container: start a new container instead"
                    .to_owned())
            }
            Phase::Serving(sockets) => {
                *phase = Phase::Upgrading(std::mem::take(sockets), None);
                Ok(())
            }
            Phase::Starting(_) => Err("this process does not serve yet".to_owned()),
            Phase::Upgrading(..) => Err(UPGRADING.to_owned()),
            Phase::Stopping => Err(STOPPING.to_owned()),
            Phase::HandedOver { pid, .. } => Err(format!("{} already", in_place(*pid))),
        };
        if result.is_err() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// Performs an upgrade that has begun, and waits for at most `limit` until the new process serves. The new process
    /// gets the state of `snapshot` that was set at run time.
    pub(crate) fn run(&self, limit: Duration, snapshot: &Snapshot) -> Outcome {
        self.supervisor.status("upgrading");
        let error = match self.attempt(limit, snapshot) {
            Ok(pid) => return Outcome::Taken { pid },
            Err(error) => error,
        };
        self.refused.fetch_add(1, Ordering::Relaxed);
        let mut phase = self.lock();
        let Phase::Upgrading(sockets, _) = &mut *phase else {
            self.journal.error(format_args!("weir: upgrade refused: {STOPPING}"));
            return Outcome::Refused { error: STOPPING.to_owned() };
        };
        *phase = Phase::Serving(std::mem::take(sockets));
        self.journal.error(format_args!("weir: upgrade refused: {error}; this process goes on"));
        self.supervisor.status(format_args!("serving; the last upgrade was refused: {error}"));
        Outcome::Refused { error }
    }

    /// Stops this process: cancels an upgrade in progress, unless the new process already serves, and rejects later
    /// ones. Call it before the workers receive the message to stop.
    pub(crate) fn stop(&self) {
        let mut phase = self.lock();
        if let Phase::Upgrading(_, Some(candidate)) = &*phase {
            let line = Arc::clone(&candidate.line);
            if self.conclude(&mut phase).is_err() {
                // The new process has accepted nothing, so killing it loses no connection.
                line.kill();
            }
        }
        match &*phase {
            // The drain must know the listeners that the other process has taken over, or it would turn their clients
            // away.
            Phase::HandedOver { taken, .. } => return self.drain(taken),
            // The old process, if there is one, is still the service.
            Phase::Starting(_) => {}
            Phase::Serving(_) | Phase::Upgrading(..) | Phase::Stopping => self.supervisor.stopping(),
        }
        // Drops the handles, so that the next process can bind the addresses.
        *phase = Phase::Stopping;
        for listener in &self.admin_listeners {
            listener.drain();
        }
    }

    fn attempt(&self, limit: Duration, snapshot: &Snapshot) -> Result<u32, String> {
        let program = self.program.as_ref().ok_or("it is not known which program this is")?;
        let mut new = {
            let mut phase = self.lock();
            let Phase::Upgrading(_, candidate) = &mut *phase else { return Err(STOPPING.to_owned()) };
            let new = NewProcess::start(program, limit)?;
            *candidate = Some(Candidate { line: Arc::clone(new.line()), left: None });
            new
        };
        if let Err(error) = self.hand_over(&mut new, snapshot) {
            return Err(new.end(error));
        }
        let pid = new.line().id();
        new.leave();
        Ok(pid)
    }

    /// Hands over to the new process, and stops accepting once the new process serves. Errors: the new process does not
    /// serve; then nothing has changed.
    fn hand_over(&self, new: &mut NewProcess, snapshot: &Snapshot) -> Result<(), Failure> {
        let stopping = || Failure::Said(STOPPING.to_owned());
        let (taken, refused) = self.counts();
        let secret = weir_tls::secret_of_process();
        let state = State { taken: taken + 1, refused, has_secret: secret.is_some() };
        let sockets = match &*self.lock() {
            Phase::Upgrading(sockets, _) => sockets.iter().map(OpenSocket::handed).collect::<Result<_, _>>(),
            _ => return Err(stopping()),
        }
        .map_err(Failure::Silent)?;
        let (endpoints, overrides) = (&snapshot.endpoints(), &snapshot.overrides);
        let certificates = &snapshot.set_certificates();
        let handover = Handover { sockets, endpoints, certificates, overrides, state, secret };
        let left = new.prepare(&handover)?;
        match &mut *self.lock() {
            Phase::Upgrading(_, Some(candidate)) => {
                candidate.left = Some(left);
                candidate.line.go().map_err(Failure::Silent)?;
            }
            _ => return Err(stopping()),
        }
        // Waits without the lock, so that a signal can stop this process meanwhile. Both processes hold the sockets,
        // and this one accepts until the new one does.
        new.wait();
        let mut phase = self.lock();
        if matches!(*phase, Phase::Upgrading(..)) {
            self.conclude(&mut phase)?;
        }
        let Phase::HandedOver { taken, .. } = &*phase else { return Err(stopping()) };
        let taken = Arc::clone(taken);
        drop(phase);
        // The admin listeners close before the workers drain: the last responses of the admin address need the workers,
        // and workers without connections exit immediately.
        for listener in &self.admin_listeners {
            listener.clear();
        }
        self.drain(&taken);
        Ok(())
    }

    /// Decides by the new process's last message whether that process is the service from now on. Afterwards, the new
    /// process can send no more messages. Errors: the reason why it is not the service.
    fn conclude(&self, phase: &mut Phase) -> Result<(), Failure> {
        let Phase::Upgrading(sockets, Some(Candidate { line, left: Some(left) })) = &*phase else {
            return Err(Failure::Said("it was not told to go on".to_owned()));
        };
        line.last_word()?;
        let pid = line.id();
        self.supervisor.is_replaced_by(pid);
        line.close();
        let mut taken = Vec::new();
        for (_, kept) in sockets.iter().enumerate().filter(|(number, _)| !left.contains(number)) {
            kept.listener.leave_file();
            taken.extend(kept.site);
        }
        self.journal.line(format_args!("weir: upgraded; process {pid} goes on, and this one drains"));
        *phase = Phase::HandedOver { pid, taken: taken.into() };
        Ok(())
    }

    /// Drains the workers, which leave the listeners in `taken` to the new process immediately.
    fn drain(&self, taken: &Arc<[ListenerId]>) {
        for worker in &self.workers {
            worker.send(Control::HandOver(Arc::clone(taken)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn in_place(pid: u32) -> String {
    format!("process {pid} has taken this one's place")
}

const STOPPING: &str = "this process is stopping";
const UPGRADING: &str = "an upgrade is going on";
