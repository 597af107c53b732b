//! The configuration is read again while the gateway runs: checked as at the start, and taken as a whole or not at all.

use crate::config::document::Reload;
use crate::config::{Changes, Checked, Finding, Findings, OnDisk, Snapshot, restart};
use crate::control::gather;
use crate::in_force::InForce;
use crate::limits::Descriptors;
use crate::names::Keeping;
use crate::notify::Supervisor;
use crate::observe::journal::Journal;
use crate::secrets::Watching;
use crate::settled::Settled;
use crate::standing::Standing;
use crate::upgrade::{self, Upgrades};
use crate::worker::Control;
use serde::Serialize;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use weir_reactor::mailbox;

/// Reads and checks the configuration again. Errors: in the words of the start, its faults, a line each.
pub type Again = Box<dyn Fn() -> Result<Checked, String> + Send>;

/// A wish, and who wants to know what became of it. One is fulfilled after the other, so an upgrade and a reload never meet.
pub(crate) enum Ask {
    Reload(Option<Sender<Outcome>>),
    /// It was [begun](Upgrades::begin).
    Upgrade(Option<Sender<upgrade::Outcome>>),
}

/// What became of a reload.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub(crate) enum Outcome {
    Taken { changed: Changes },
    Refused { error: String },
}

/// The thread's part of the gateway.
pub(crate) struct Reloader {
    pub again: Again,
    /// What is in force. Its snapshot may be older: names move.
    pub checked: Checked,
    pub in_force: Arc<InForce>,
    pub names: Keeping,
    pub secrets: Watching,
    pub standing: Arc<Standing>,
    pub descriptors: Arc<Descriptors>,
    pub workers: Vec<mailbox::Sender<Control>>,
    pub upgrades: Arc<Upgrades>,
    pub supervisor: Supervisor,
    pub journal: Journal,
}

/// Starts the thread, which takes wishes until the process ends. Errors: it cannot be started.
pub(crate) fn start(reloader: Reloader) -> io::Result<Sender<Ask>> {
    let (sender, asks) = channel();
    let seen = Settled::new(reloader.checked.on_disk());
    thread::Builder::new().name("reload".into()).spawn(move || {
        Running { reloader, seen, refused: None }.run(&asks);
    })?;
    Ok(sender)
}

struct Running {
    reloader: Reloader,
    /// The files, as they were followed.
    seen: Settled<OnDisk>,
    refused: Option<Refused>,
}

/// The last reload was refused.
struct Refused {
    why: String,
    /// When it is tried again, though no file has changed: a name may resolve by then.
    again_at: Instant,
}

impl Running {
    fn run(&mut self, asks: &Receiver<Ask>) {
        loop {
            let ask = match self.reloader.checked.config.reload {
                Reload::Signal => asks.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Reload::Watch => asks.recv_timeout(EVERY),
            };
            match ask {
                // Who asked may have gone.
                Ok(Ask::Reload(who)) => {
                    let outcome = self.reload();
                    let _ = who.map(|who| who.send(outcome));
                }
                Ok(Ask::Upgrade(who)) => {
                    let snapshot = self.reloader.in_force.snapshot();
                    let limit = snapshot.policy.timeouts.upgrade;
                    let outcome = self.reloader.upgrades.run(limit, &snapshot.overrides);
                    let _ = who.map(|who| who.send(outcome));
                }
                Err(RecvTimeoutError::Timeout) if self.reloader.upgrades.successor().is_some() => {}
                Err(RecvTimeoutError::Timeout) => self.look(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Looks whether a file has changed.
    fn look(&mut self) {
        let Some(path) = self.reloader.checked.path() else { return };
        if self.seen.next(OnDisk::at(path)).is_some() {
            self.reload();
        } else if let Some(refused) = &mut self.refused
            && refused.again_at <= Instant::now()
        {
            refused.again_at = Instant::now() + AGAIN;
            let why = refused.why.clone();
            match self.reloader.reload() {
                // It is known.
                Err(error) if error == why => {}
                result => drop(self.tell(result)),
            }
        }
    }

    fn reload(&mut self) -> Outcome {
        if let Some(pid) = self.reloader.upgrades.successor() {
            let error = format!("process {pid} has taken this one's place");
            self.reloader.journal.error(format_args!("weir: reload refused: {error}"));
            return Outcome::Refused { error };
        }
        self.reloader.supervisor.reloading();
        // Before they are read: a change from now on is another one.
        if let Some(path) = self.reloader.checked.path() {
            self.seen = Settled::new(OnDisk::at(path));
        }
        let result = self.reloader.reload();
        self.tell(result)
    }

    fn tell(&mut self, result: Result<Changes, String>) -> Outcome {
        let Reloader { journal, standing, supervisor, .. } = &self.reloader;
        match result {
            Ok(changed) => {
                self.refused = None;
                supervisor.ready(format_args!("serving; reloaded; {changed}"));
                journal.line(format_args!("weir: reloaded; {changed}"));
                Outcome::Taken { changed }
            }
            Err(error) => {
                standing.refuse();
                let first = error.lines().next().unwrap_or_default();
                supervisor.ready(format_args!("serving; the last reload was refused: {first}"));
                for line in error.lines() {
                    journal
                        .line(format_args!("weir: reload refused: {line}; the configuration in use stays"));
                }
                self.refused = Some(Refused { why: error.clone(), again_at: Instant::now() + AGAIN });
                Outcome::Refused { error }
            }
        }
    }
}

impl Reloader {
    /// Takes the configuration as it is now, as a whole, and waits until all workers have it. Errors: why nothing has changed.
    fn reload(&mut self) -> Result<Changes, String> {
        let mut checked = self.read()?;
        let bound = self.in_force.snapshot();
        let listeners = std::mem::take(&mut checked.snapshot.listeners);
        let mut findings = Findings::default();
        restart::check(&checked.config, &self.checked.config, &mut findings);
        let arranged = findings.keep(restart::arrange(listeners, &bound.listeners));
        checked.snapshot.listeners = match arranged.filter(|_| findings.faults().next().is_none()) {
            Some(listeners) => listeners,
            None => return Err(checked.in_words(findings)),
        };
        let changes = Changes::between(&checked, &self.checked);
        let is_new = |warning: &&Finding| !self.checked.warnings().any(|known| known.is_same(warning));
        for warning in checked.warnings().filter(is_new) {
            self.journal.line(format_args!("weir: {warning}"));
        }
        let checks = checked.snapshot.health_checks();
        if let Some(fault) = self.descriptors.fault(checked.snapshot.connections, checks)
            && checked.snapshot.connections != self.checked.snapshot.connections
        {
            self.journal.warn(format_args!("weir: warning: {fault}"));
        }
        self.in_force.change(|in_force| {
            checked.take_over(&self.checked, in_force);
            Some(Snapshot::clone(&checked.snapshot))
        });
        self.checked = checked;
        self.follow();
        // A worker that does not answer is one that `/health` tells of; it has the mail nevertheless.
        let _ = gather(&self.workers);
        Ok(changes)
    }

    /// Reads it until no file has changed meanwhile.
    fn read(&self) -> Result<Checked, String> {
        for _ in 0..TRIES {
            let checked = (self.again)()?;
            if checked.is_current() {
                return Ok(checked);
            }
        }
        Err("its files change while they are read".to_owned())
    }

    /// The threads beside the workers go on with it.
    fn follow(&mut self) {
        let journal = &self.journal;
        if let Err(error) = self.names.follow() {
            journal.line(format_args!("weir: names are not resolved again: {error}"));
        }
        let snapshot = &self.checked.snapshot;
        match Watching::start(snapshot, &self.secrets.files(), journal.clone()) {
            Ok(secrets) => self.secrets = secrets,
            Err(error) => journal.line(format_args!("weir: ticket secrets are not watched: {error}")),
        }
        self.standing.take(&self.checked, self.secrets.files());
    }
}

/// A change takes effect when it was seen twice. Reading a hundred files takes a millisecond.
const EVERY: Duration = Duration::from_secs(1);

/// What is refused is tried again this often, in case it did not depend on files alone.
const AGAIN: Duration = Duration::from_secs(5);

/// Who writes its files one after the other is done by then, or begins a reload when it is.
const TRIES: usize = 3;
