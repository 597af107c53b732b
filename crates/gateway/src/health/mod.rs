//! Active health checks: a thread with its own event loop checks each server periodically, and mails the workers when a
//! server's health changes.

mod check;

use crate::config::Snapshot;
use crate::observe::journal::Journal;
use check::{Check, Outcome};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use weir_reactor::mailbox::{Mailbox, Sender, mailbox};
use weir_reactor::{Events, Key, Reactor};
use weir_transport::Wire;

/// Whether a configuration has health checks.
pub(crate) fn is_wanted(snapshot: &Snapshot) -> bool {
    snapshot.services.iter().any(|service| service.health.is_some())
}

/// The receiver of changes.
pub(crate) type Report = Box<dyn Fn(Health) + Send>;

/// Starts the thread, which receives new configurations by mail. Errors: the thread cannot be started.
pub(crate) fn start(
    snapshot: &Snapshot,
    report: Report,
    journal: Journal,
) -> io::Result<Sender<Arc<Snapshot>>> {
    let (mailbox, sender) = mailbox()?;
    let mut checker = Checker::new(report, journal)?;
    checker.adopt(snapshot);
    thread::Builder::new().name("health".into()).spawn(move || {
        if let Err(error) = checker.run(&mailbox) {
            checker.journal.line(format_args!("weir: health checks have ended: {error}"));
        }
    })?;
    Ok(sender)
}

struct Checker {
    reactor: Reactor,
    wire: Wire,
    checks: Vec<Check>,
    report: Report,
    journal: Journal,
}

impl Checker {
    fn new(report: Report, journal: Journal) -> io::Result<Self> {
        Ok(Self { reactor: Reactor::new()?, wire: Wire::default(), checks: Vec::new(), report, journal })
    }

    fn run(&mut self, mailbox: &Mailbox<Arc<Snapshot>>) -> io::Result<()> {
        mailbox.register(&self.reactor, MAIL)?;
        let mut events = Events::default();
        loop {
            // Checks are few and each has one deadline, so scanning all costs little.
            let next = self.checks.iter().map(Check::due).min();
            self.reactor.turn(&mut events, next)?;
            for ready in events.ready() {
                if ready.key == MAIL {
                    continue;
                }
                let index = ready.key.index() as usize;
                let Some(check) = self.checks.get_mut(index) else { continue };
                let outcome = check.ready(ready, &mut self.wire);
                self.proceed(index, outcome);
            }
            let now = self.reactor.now();
            for index in 0..self.checks.len() {
                let outcome = match self.checks.get_mut(index) {
                    Some(check) if check.due() <= now => check.time(&mut self.reactor, now),
                    Some(_) | None => continue,
                };
                self.proceed(index, outcome);
            }
            if events.ready().any(|ready| ready.key == MAIL) {
                for snapshot in mailbox.take() {
                    self.adopt(&snapshot);
                }
            }
        }
    }

    /// Waits for the next event of a check, or takes its result.
    fn proceed(&mut self, index: usize, outcome: Option<Outcome>) {
        let now = self.reactor.now();
        let Some(check) = self.checks.get_mut(index) else { return };
        let outcome = outcome.or_else(|| check.watch(&self.reactor, key(index)).err().map(Outcome::Failed));
        let Some(outcome) = outcome else { return };
        let Some(up) = check.finish(&outcome, now) else { return };
        let why = match &outcome {
            Outcome::Passed => String::new(),
            Outcome::Failed(why) => format!(": {why}"),
        };
        let word = if up { "up" } else { "down" };
        self.journal.line(format_args!("weir: {}: {} is {word}{why}", check.service, check.server.place));
        let health = Health { service: check.service.clone(), server: check.server.id, up };
        (self.report)(health);
    }

    /// Adopts another configuration. Checks of unchanged servers keep their state. A server without a check counts as
    /// up.
    fn adopt(&mut self, snapshot: &Snapshot) {
        let now = self.reactor.now();
        let mut before: BTreeMap<_, Vec<Check>> = BTreeMap::new();
        for check in self.checks.drain(..) {
            before.entry((check.service.clone(), check.server.id)).or_default().push(check);
        }
        for service in &snapshot.services {
            let Some(health) = &service.health else { continue };
            for server in &service.servers {
                let known = before.get_mut(&(service.name.clone(), server.id)).and_then(|alike| {
                    let at = alike.iter().position(|check| check.is_of(service, server))?;
                    Some(alike.swap_remove(at))
                });
                let at = now + SPREAD * self.checks.len() as u32;
                let check = known.map(|check| check.again(service, health, at));
                self.checks.push(check.unwrap_or_else(|| Check::new(service, server, health, at)));
            }
        }
        for check in before.into_values().flatten().filter(|check| !check.is_up()) {
            (self.report)(Health { service: check.service, server: check.server.id, up: true });
        }
    }
}

/// A change of a server's health.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    pub service: String,
    /// The server's ID.
    pub server: u64,
    pub up: bool,
}

fn key(index: usize) -> Key {
    Key::fixed(CHECK, index as u32)
}

const MAIL: Key = Key::fixed(0, 0);
const CHECK: u8 = 1;

/// The interval between the first checks, which would otherwise all start at once.
const SPREAD: Duration = Duration::from_millis(5);
