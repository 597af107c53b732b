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
use crate::config::Overrides;
use crate::notify::Supervisor;
use crate::observe::journal::Journal;
use crate::serve::GatewayError;
use crate::sockets::Kept;
use crate::worker::Control;
use program::Program;
use serde::Serialize;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use successor::{Estate, Failure, Line, Successor};
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
    doors: Vec<Arc<Door>>,
    supervisor: Supervisor,
    journal: Journal,
    taken: u64,
    refused: AtomicU64,
}

#[derive(Debug)]
enum Phase {
    /// This process accepts nothing yet, and nobody knows of it but the one before.
    Starting(Vec<Kept>),
    Serving(Vec<Kept>),
    /// One was asked for, or goes on: then its process is there.
    Upgrading(Vec<Kept>, Option<Candidate>),
    Stopping,
    /// Workers drain, but for listeners that the other process does not have.
    HandedOver {
        pid: u32,
        taken: Arc<[bool]>,
    },
}

/// A process that may take this one's place.
#[derive(Debug)]
struct Candidate {
    line: Arc<Line>,
    /// It was told to go on: then it leaves the sockets with these numbers.
    left: Option<Vec<usize>>,
}

impl Upgrades {
    /// `sockets`: all that this process will accept from; `before`: what became of upgrades so far, this process itself included.
    pub(crate) fn new(
        sockets: Vec<Kept>,
        workers: Vec<Sender<Control>>,
        doors: Vec<Arc<Door>>,
        supervisor: Supervisor,
        journal: Journal,
        before: State,
    ) -> Self {
        Self {
            phase: Mutex::new(Phase::Starting(sockets)),
            program: Program::of_process(),
            workers,
            doors,
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
            Phase::HandedOver { pid, .. } => Some(pid),
            _ => None,
        }
    }

    /// Whether what is set in this process now lasts. Errors: another one takes its place, and would not know of it.
    pub(crate) fn lasts(&self) -> Result<(), String> {
        match &*self.lock() {
            Phase::Upgrading(..) => Err(format!("{UPGRADING}: ask again when it is over")),
            Phase::HandedOver { pid, .. } => Err(in_place(*pid)),
            Phase::Starting(_) | Phase::Serving(_) | Phase::Stopping => Ok(()),
        }
    }

    /// Lets clients connect to all sockets, and says so to the process before, if there is one: then this one is the service.
    /// False: a signal has stopped it. Errors: as listen(2), or the process before goes on.
    pub(crate) fn begin_listening(&self, before: Option<&Before>) -> Result<bool, GatewayError> {
        let mut phase = self.lock();
        let Phase::Starting(sockets) = &mut *phase else {
            return match before {
                Some(_) => Err(io::Error::other("upgrade: the new process was told to stop").into()),
                None => Ok(false),
            };
        };
        sockets.iter().filter(|kept| !kept.joins).try_for_each(Kept::begin)?;
        if let Some(before) = before {
            before.serve()?;
        }
        // From here on there is no way back. What is in a queue of a new socket could not be given to the process before, and
        // what is wrong with a file keeps nobody from the other addresses.
        let added = sockets.iter().filter(|kept| kept.joins).map(Kept::begin);
        for error in added.filter_map(Result::err) {
            self.journal.warn(format_args!("weir: warning: {error}"));
        }
        for kept in sockets.iter().filter(|_| before.is_some()) {
            if let Err(error) = kept.claim() {
                self.journal.warn(format_args!("weir: warning: {error}"));
            }
        }
        *phase = Phase::Serving(std::mem::take(sockets));
        Ok(true)
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

    /// Carries out what has begun, and waits until the other process serves, at most for `limit`. It gets what was set for
    /// servers so far.
    pub(crate) fn run(&self, limit: Duration, overrides: &Overrides) -> Outcome {
        self.supervisor.status("upgrading");
        let error = match self.attempt(limit, overrides) {
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

    /// The process stops: an upgrade that goes on is called off, unless the other process serves already, and there will be no
    /// other one. To be called before the workers get their message.
    pub(crate) fn stop(&self) {
        let mut phase = self.lock();
        if let Phase::Upgrading(_, Some(candidate)) = &*phase {
            let line = Arc::clone(&candidate.line);
            if self.conclude(&mut phase).is_err() {
                // It has accepted nothing, and never will.
                line.kill();
            }
        }
        match &*phase {
            // A drain that does not know of the other process would turn its clients away.
            Phase::HandedOver { taken, .. } => return self.drain(taken),
            // The service is the process before, if there is one.
            Phase::Starting(_) => {}
            Phase::Serving(_) | Phase::Upgrading(..) | Phase::Stopping => self.supervisor.stopping(),
        }
        // Without its handles, so that the next process can have the addresses.
        *phase = Phase::Stopping;
        for door in &self.doors {
            door.drain();
        }
    }

    fn attempt(&self, limit: Duration, overrides: &Overrides) -> Result<u32, String> {
        let program = self.program.as_ref().ok_or("it is not known which program this is")?;
        let mut successor = {
            let mut phase = self.lock();
            let Phase::Upgrading(_, candidate) = &mut *phase else { return Err(STOPPING.to_owned()) };
            let successor = Successor::start(program, limit)?;
            *candidate = Some(Candidate { line: Arc::clone(successor.line()), left: None });
            successor
        };
        if let Err(error) = self.hand_over(&mut successor, overrides) {
            return Err(successor.end(error));
        }
        let pid = successor.line().id();
        successor.leave();
        Ok(pid)
    }

    /// Gives all to the other process, and stops accepting once that serves. Errors: it does not, and nothing has changed.
    fn hand_over(&self, successor: &mut Successor, overrides: &Overrides) -> Result<(), Failure> {
        let stopping = || Failure::Said(STOPPING.to_owned());
        let (taken, refused) = self.counts();
        let secret = weir_tls::secret_of_process();
        let state = State { taken: taken + 1, refused, has_secret: secret.is_some() };
        let sockets = match &*self.lock() {
            Phase::Upgrading(sockets, _) => sockets.iter().map(Kept::handed).collect::<Result<_, _>>(),
            _ => return Err(stopping()),
        }
        .map_err(Failure::Silent)?;
        let left = successor.prepare(&Estate { sockets, overrides, state, secret })?;
        match &mut *self.lock() {
            Phase::Upgrading(_, Some(candidate)) => {
                candidate.left = Some(left);
                candidate.line.go().map_err(Failure::Silent)?;
            }
            _ => return Err(stopping()),
        }
        // Not with the lock: who stops this process need not wait for the other one. Both have the sockets, and this one accepts
        // until the other does, so there is always one that does.
        successor.wait();
        let mut phase = self.lock();
        if matches!(*phase, Phase::Upgrading(..)) {
            self.conclude(&mut phase)?;
        }
        let Phase::HandedOver { taken, .. } = &*phase else { return Err(stopping()) };
        let taken = Arc::clone(taken);
        drop(phase);
        // The last answers need the workers, and without connections these end as soon as they know.
        for door in &self.doors {
            door.clear();
        }
        self.drain(&taken);
        Ok(())
    }

    /// Decides whether the other process is the service from now on: it is if it has said so, and otherwise cannot say so any
    /// more. Errors: why it is not.
    fn conclude(&self, phase: &mut Phase) -> Result<(), Failure> {
        let Phase::Upgrading(sockets, Some(Candidate { line, left: Some(left) })) = &*phase else {
            return Err(Failure::Said("it was not told to go on".to_owned()));
        };
        line.last_word()?;
        let pid = line.id();
        self.supervisor.is_replaced_by(pid);
        line.close();
        let listeners = sockets.iter().filter_map(|kept| kept.site).max().map_or(0, |last| last + 1);
        let mut taken = vec![false; listeners];
        for (_, kept) in sockets.iter().enumerate().filter(|(number, _)| !left.contains(number)) {
            kept.listener.leave_file();
            if let Some(site) = kept.site {
                taken[site] = true;
            }
        }
        self.journal.line(format_args!("weir: upgraded; process {pid} goes on, and this one drains"));
        *phase = Phase::HandedOver { pid, taken: taken.into() };
        Ok(())
    }

    /// Workers drain, if they do not yet.
    fn drain(&self, taken: &Arc<[bool]>) {
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
