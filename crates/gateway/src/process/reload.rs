//! Reloads: they read and check the configuration as at startup, and apply it as a whole or not at all.

use super::active_config::ActiveConfig;
use super::certificates::{CertificateChange, report_renewed};
use super::config_status::ConfigStatus;
use super::endpoints::{EndpointChange, report_outdated};
use super::notify::Supervisor;
use super::reports::confirm;
use super::sockets::{Rebinder, Rebound};
use super::upgrade::{self, Upgrades};
use super::watch::{Debounce, NameWatch, SecretsWatch};
use crate::config::document::Reload;
use crate::config::{Changes, Checked, Finding, Findings, OnDisk, Snapshot, restart};
use crate::limits::Descriptors;
use crate::observe::journal::Journal;
use crate::worker::Control;
use serde::Serialize;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use weir_reactor::mailbox;

/// Reads and checks the configuration again. The argument is the active configuration, whose certificates are reused if
/// their files are unchanged. Errors: the faults, one per line, worded as at startup.
pub type Again = Box<dyn Fn(&Checked) -> Result<Checked, String> + Send>;

/// A request, and the sender for its outcome. One thread handles all requests in order, so an upgrade and a reload
/// never overlap.
pub(crate) enum Ask {
    Reload(Option<Sender<Outcome>>),
    /// Performs the upgrade that [`Upgrades::begin`] has begun.
    Upgrade(Option<Sender<upgrade::Outcome>>),
    Endpoints(EndpointChange),
    Certificate(CertificateChange),
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub(crate) enum Outcome {
    Taken { changed: Changes },
    Refused { error: String },
}

pub(crate) struct Reloader {
    pub again: Again,
    /// The configuration of the last start or reload. The active snapshot may be newer: name resolution and the admin
    /// address change it without a reload.
    pub checked: Arc<Checked>,
    pub active: Arc<ActiveConfig>,
    pub names: NameWatch,
    pub secrets: SecretsWatch,
    pub status: Arc<ConfigStatus>,
    pub descriptors: Arc<Descriptors>,
    pub workers: Vec<mailbox::Sender<Control>>,
    pub upgrades: Arc<Upgrades>,
    pub rebinder: Rebinder,
    pub supervisor: Supervisor,
    pub journal: Journal,
}

/// Starts the thread, which handles requests until the process exits. Errors: the thread cannot be started.
pub(crate) fn start(reloader: Reloader) -> io::Result<Sender<Ask>> {
    let (sender, asks) = channel();
    let seen = Debounce::new(reloader.checked.on_disk());
    let running = Running { reloader, seen, refused: None, has_reloaded: false, asks };
    let thread = start_thread()?;
    // The new thread waits for this message, so sending succeeds.
    let _ = thread.send(running);
    Ok(sender)
}

/// Starts a thread that continues with the state it receives. After each reload it passes the state to a new thread:
/// the allocator uses a heap per thread, so two configurations share no page, and the pages of the replaced one return
/// to the system.
fn start_thread() -> io::Result<Sender<Running>> {
    let (sender, begin) = channel::<Running>();
    thread::Builder::new().name("reload".into()).spawn(move || {
        let Ok(mut running) = begin.recv() else { return };
        while running.run() == Until::Reloaded {
            weir_heap::trim();
            // If no other thread can start, this one continues.
            if let Ok(next) = start_thread() {
                let _ = next.send(running);
                return;
            }
        }
    })?;
    Ok(sender)
}

struct Running {
    reloader: Reloader,
    /// The contents of the files, as last read.
    seen: Debounce<OnDisk>,
    refused: Option<Refused>,
    /// Whether a reload has replaced a configuration that is not freed yet.
    has_reloaded: bool,
    asks: Receiver<Ask>,
}

#[derive(PartialEq, Eq)]
enum Until {
    /// After a reload, the replaced configuration has been freed.
    Reloaded,
    Ended,
}

/// A refused reload, until the next successful one.
struct Refused {
    why: String,
    /// The time of the next attempt even if no file changes, since a name may resolve by then.
    again_at: Instant,
}

impl Running {
    fn run(&mut self) -> Until {
        loop {
            let are_left = self.reloader.active.free_retired();
            if self.has_reloaded && !are_left {
                self.has_reloaded = false;
                return Until::Reloaded;
            }
            let ask = match self.reloader.checked.config.reload {
                Reload::Signal if !are_left => self.asks.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Reload::Signal | Reload::Watch => self.asks.recv_timeout(EVERY),
            };
            match ask {
                // Sending fails if the requester no longer waits.
                Ok(Ask::Reload(who)) => {
                    let outcome = self.reload();
                    let _ = who.map(|who| who.send(outcome));
                }
                Ok(Ask::Upgrade(who)) => {
                    let snapshot = self.reloader.active.snapshot();
                    let limit = snapshot.policy.timeouts.upgrade;
                    let outcome = self.reloader.upgrades.run(limit, &snapshot);
                    let _ = who.map(|who| who.send(outcome));
                }
                Ok(Ask::Endpoints(EndpointChange { service, edit, reply })) => {
                    let _ = reply.send(self.reloader.change_endpoints(&service, edit));
                }
                Ok(Ask::Certificate(CertificateChange { name, edit, reply })) => {
                    let _ = reply.send(self.reloader.change_certificate(&name, edit));
                }
                Err(RecvTimeoutError::Timeout) => match self.reloader.checked.config.reload {
                    Reload::Watch if self.reloader.upgrades.successor().is_none() => self.check_files(),
                    Reload::Watch | Reload::Signal => {}
                },
                Err(RecvTimeoutError::Disconnected) => return Until::Ended,
            }
        }
    }

    fn check_files(&mut self) {
        let Some(path) = self.reloader.checked.path() else { return };
        let found = self.seen.last().again(path);
        if self.seen.next(found).is_some() {
            self.reload();
        } else if let Some(refused) = &mut self.refused
            && refused.again_at <= Instant::now()
        {
            refused.again_at = Instant::now() + AGAIN;
            let why = refused.why.clone();
            match self.reloader.reload() {
                // The log already contains this error.
                Err(error) if error == why => {}
                result => drop(self.report(result)),
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
        // Record the files before reading them, so that a later change causes another reload, even if this one is
        // refused.
        if self.reloader.checked.config.reload == Reload::Watch
            && let Some(path) = self.reloader.checked.path()
        {
            self.seen = Debounce::new(self.seen.last().again(path));
        }
        let result = self.reloader.reload();
        if result.is_ok() {
            self.seen = Debounce::new(self.reloader.checked.on_disk());
        }
        self.report(result)
    }

    /// Reports a result to the log, the status and the supervisor.
    fn report(&mut self, result: Result<Changes, String>) -> Outcome {
        let Reloader { journal, status, supervisor, .. } = &self.reloader;
        match result {
            Ok(changed) => {
                self.refused = None;
                self.has_reloaded = true;
                supervisor.ready(format_args!("serving; reloaded; {changed}"));
                journal.line(format_args!("weir: reloaded; {changed}"));
                Outcome::Taken { changed }
            }
            Err(error) => {
                status.refuse();
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
    /// Reads the configuration, applies it as a whole, and waits until the workers use it. Errors: the reason why
    /// nothing has changed.
    fn reload(&mut self) -> Result<Changes, String> {
        let mut checked = self.read()?;
        let active = self.active.snapshot();
        let outdated = checked.take_endpoints(&active.endpoints(), Some(&active));
        let outdated = outdated.map_err(|fault| checked.in_words(fault.into()))?;
        let renewed = checked.take_certificates(&active.set_certificates());
        let renewed = renewed.map_err(|fault| checked.in_words(fault.into()))?;
        drop(active);
        let mut findings = Findings::default();
        restart::check(&checked.config, &self.checked.config, &mut findings);
        if findings.faults().next().is_some() {
            return Err(checked.in_words(findings));
        }
        let listeners = &mut Arc::make_mut(&mut checked.snapshot).listeners;
        let rebound = self.rebinder.prepare(listeners).and_then(|rebinding| {
            self.upgrades.rebind(rebinding, &mut self.rebinder).map_err(Findings::from)
        });
        let Rebound { shares, opened, closed, more, fewer } = match rebound {
            Ok(rebound) => rebound,
            Err(findings) => return Err(checked.in_words(findings)),
        };
        self.descriptors.listen(more, fewer);
        let changes = Changes::between(&checked, &self.checked);
        let known: HashSet<_> = self.checked.warnings().map(Finding::identity).collect();
        for warning in checked.warnings().filter(|warning| !known.contains(&warning.identity())) {
            self.journal.line(format_args!("weir: {warning}"));
        }
        let checks = checked.snapshot.health_checks();
        if let Some(fault) = self.descriptors.fault(checked.snapshot.connections, checks)
            && checked.snapshot.connections != self.checked.snapshot.connections
        {
            self.journal.warn(format_args!("weir: warning: {fault}"));
        }
        report_outdated(outdated, &self.journal);
        report_renewed(renewed, &self.journal);
        let next = |active: &Snapshot| {
            checked.inherit_state(&self.checked, active);
            Arc::clone(&checked.snapshot)
        };
        self.active.replace(next, shares);
        self.checked = Arc::new(checked);
        self.follow();
        // A worker that does not respond in time handles the message later; `/health` reports such a worker.
        confirm(&self.workers);
        for place in opened {
            self.journal.line(format_args!("weir: listening on {place}"));
        }
        for place in closed {
            self.journal.line(format_args!("weir: no longer listening on {place}"));
        }
        self.active.free_retired();
        Ok(changes)
    }

    /// Reads the configuration, and again if a file changes meanwhile, up to [`TRIES`] times.
    fn read(&self) -> Result<Checked, String> {
        for _ in 0..TRIES {
            let checked = (self.again)(&self.checked)?;
            if checked.is_current() {
                return Ok(checked);
            }
        }
        Err("its files change while they are read".to_owned())
    }

    /// Starts to resolve the names of the active configuration.
    pub(super) fn follow_names(&mut self) {
        if let Err(error) = self.names.follow() {
            self.journal.line(format_args!("weir: names are not resolved again: {error}"));
        }
    }

    /// Passes the new configuration to the threads other than the workers, and to the status.
    fn follow(&mut self) {
        self.follow_names();
        let journal = &self.journal;
        let snapshot = &self.checked.snapshot;
        match SecretsWatch::start(snapshot, &self.secrets.files(), journal.clone()) {
            Ok(secrets) => self.secrets = secrets,
            Err(error) => journal.line(format_args!("weir: ticket secrets are not watched: {error}")),
        }
        self.status.take(&self.checked, self.secrets.files());
    }
}

/// The interval between checks of the files, and of replaced configurations that workers still use. A change takes
/// effect when two checks in a row find it. Reading a hundred files takes a millisecond.
const EVERY: Duration = Duration::from_secs(1);

/// The interval between attempts after a refused reload, in case the fault was not in the files.
const AGAIN: Duration = Duration::from_secs(5);

/// The maximum number of attempts to read the files without a change in the meantime. An operator who is still writing
/// files will reload again.
const TRIES: usize = 3;
