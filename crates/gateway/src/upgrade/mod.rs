//! Another program takes this one's place without losing a connection: it gets the listening sockets, and accepts from where
//! this one stops.

mod before;
mod channel;
mod message;
mod program;
mod successor;

pub(crate) use before::Before;
pub(crate) use message::{Handed, State};

use crate::admin::Door;
use crate::notify::Supervisor;
use crate::observe::journal::Journal;
use crate::sockets::Kept;
use crate::worker::Control;
use program::Program;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Serialize;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use successor::Successor;
use weir_reactor::mailbox::Sender;

/// What became of an upgrade.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub(crate) enum Outcome {
    Taken { pid: u32 },
    Refused { error: String },
}

/// Upgrades of this process: at most one succeeds.
#[derive(Debug)]
pub(crate) struct Upgrades {
    phase: Mutex<Phase>,
    program: Option<Program>,
    workers: Vec<Sender<Control>>,
    admin: Arc<Door>,
    supervisor: Supervisor,
    journal: Journal,
    taken: u64,
    refused: AtomicU64,
}

#[derive(Debug)]
enum Phase {
    Serving(Vec<Kept>),
    /// One was asked for, or goes on: then its process is there, by a descriptor, which never stands for another one.
    Upgrading(Vec<Kept>, Option<OwnedFd>),
    Stopping,
    HandedOver(u32),
}

impl Upgrades {
    /// `sockets`: all that this process accepts from; `before`: what became of upgrades so far, this process itself included.
    pub(crate) fn new(
        sockets: Vec<Kept>,
        workers: Vec<Sender<Control>>,
        admin: Arc<Door>,
        supervisor: Supervisor,
        journal: Journal,
        before: State,
    ) -> Self {
        Self {
            phase: Mutex::new(Phase::Serving(sockets)),
            program: Program::of_process(),
            workers,
            admin,
            supervisor,
            journal,
            taken: before.taken,
            refused: AtomicU64::new(before.refused),
        }
    }

    /// How many succeeded, those of the processes before included, and how many were refused.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.taken, self.refused.load(Ordering::Relaxed))
    }

    /// The process that has taken this one's place.
    pub(crate) fn successor(&self) -> Option<u32> {
        match *self.lock() {
            Phase::HandedOver(pid) => Some(pid),
            _ => None,
        }
    }

    /// Lets clients connect to all sockets. Errors: as listen(2).
    pub(crate) fn begin_listening(&self) -> io::Result<()> {
        match &*self.lock() {
            Phase::Serving(sockets) | Phase::Upgrading(sockets, _) => {
                sockets.iter().try_for_each(Kept::begin)
            }
            Phase::Stopping | Phase::HandedOver(_) => Ok(()),
        }
    }

    /// Begins one, for [`Upgrades::run`] to carry out. Errors: why there can be none now.
    pub(crate) fn begin(&self) -> Result<(), String> {
        let mut phase = self.lock();
        let result = match &mut *phase {
            // The end of process 1 is that of all others in its container.
            Phase::Serving(_) if std::process::id() == 1 => {
                Err("this is process 1, and its end would end the container: start a new container instead"
                    .to_owned())
            }
            Phase::Serving(sockets) => {
                *phase = Phase::Upgrading(std::mem::take(sockets), None);
                Ok(())
            }
            Phase::Upgrading(..) => Err("an upgrade is going on".to_owned()),
            Phase::Stopping => Err(STOPPING.to_owned()),
            Phase::HandedOver(pid) => Err(format!("process {pid} has taken this one's place already")),
        };
        if result.is_err() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// Carries out what has begun, and waits until the other process serves, at most for `limit`.
    pub(crate) fn run(&self, limit: Duration) -> Outcome {
        self.supervisor.status("upgrading");
        let error = match self.attempt(limit) {
            Ok(pid) => return Outcome::Taken { pid },
            Err(error) => error,
        };
        self.refused.fetch_add(1, Ordering::Relaxed);
        let mut phase = self.lock();
        let Phase::Upgrading(sockets, _) = &mut *phase else {
            self.journal.line(format_args!("weir: upgrade refused: {STOPPING}"));
            return Outcome::Refused { error: STOPPING.to_owned() };
        };
        *phase = Phase::Serving(std::mem::take(sockets));
        self.journal.line(format_args!("weir: upgrade refused: {error}; this process goes on"));
        self.supervisor.status(format_args!("serving; the last upgrade was refused: {error}"));
        Outcome::Refused { error }
    }

    /// The process stops: an upgrade that goes on is called off, and there will be no other one.
    pub(crate) fn stop(&self) {
        let mut phase = self.lock();
        match &*phase {
            // After a hand-over the service is another process.
            Phase::HandedOver(_) => return,
            Phase::Upgrading(_, Some(successor)) => {
                // It has accepted nothing yet. An error means that it has ended.
                let _ = pidfd_send_signal(successor, Signal::KILL);
            }
            Phase::Serving(_) | Phase::Upgrading(..) | Phase::Stopping => {}
        }
        *phase = Phase::Stopping;
        self.supervisor.stopping();
    }

    fn attempt(&self, limit: Duration) -> Result<u32, String> {
        let program = self.program.as_ref().ok_or("it is not known which program this is")?;
        let mut successor = {
            let mut phase = self.lock();
            let Phase::Upgrading(_, of_successor) = &mut *phase else { return Err(STOPPING.to_owned()) };
            let successor = Successor::start(program, limit)?;
            match pidfd_open(successor.pid(), PidfdFlags::empty()) {
                Ok(descriptor) => *of_successor = Some(descriptor),
                Err(error) => return Err(successor.end(error.to_string())),
            }
            successor
        };
        if let Err(error) = self.hand_over(&mut successor) {
            return Err(successor.end(error));
        }
        let pid = successor.id();
        successor.leave();
        Ok(pid)
    }

    /// Gives all to the other process, and stops accepting once it is ready. Errors: it is not, and nothing has changed.
    fn hand_over(&self, successor: &mut Successor) -> Result<(), String> {
        let (taken, refused) = self.counts();
        let secret = weir_tls::secret_of_process();
        let state = State { taken: taken + 1, refused, has_secret: secret.is_some() };
        let sockets: Vec<_> = match &*self.lock() {
            Phase::Upgrading(sockets, _) => sockets.iter().map(Kept::handed).collect::<Result<_, _>>(),
            _ => return Err(STOPPING.to_owned()),
        }
        .map_err(|error| error.to_string())?;
        let left = successor.prepare(&sockets, state, secret)?;
        let mut phase = self.lock();
        let Phase::Upgrading(sockets, _) = &*phase else { return Err(STOPPING.to_owned()) };
        self.supervisor.is_replaced_by(successor.id());
        if let Err(error) = successor.go() {
            self.supervisor.is_replaced_by(std::process::id());
            return Err(error);
        }
        let is_taken = |number: usize| !left.contains(&number);
        let listeners = sockets.iter().filter_map(|kept| kept.site).max().map_or(0, |last| last + 1);
        let mut of_listeners = vec![false; listeners];
        for (_, kept) in sockets.iter().enumerate().filter(|(number, _)| is_taken(*number)) {
            kept.listener.leave_file();
            if let Some(site) = kept.site {
                of_listeners[site] = true;
            }
        }
        // Without connections, this process ends as soon as its workers know.
        let pid = successor.id();
        self.journal.line(format_args!("weir: upgraded; process {pid} goes on, and this one drains"));
        let of_listeners: Arc<[bool]> = of_listeners.into();
        self.admin.clear();
        for worker in &self.workers {
            worker.send(Control::HandOver(Arc::clone(&of_listeners)));
        }
        *phase = Phase::HandedOver(pid);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const STOPPING: &str = "this process is stopping";
