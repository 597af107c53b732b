//! Active health checks: a thread with its own event loop checks each server periodically, and notifies the workers
//! when a server's health changes. `Check::finish` counts `rise` and `fall`.

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

pub(crate) fn is_wanted(snapshot: &Snapshot) -> bool {
    snapshot.services.iter().any(|service| service.health.is_some())
}

/// A function that receives changes of servers' health.
pub(crate) type Report = Box<dyn Fn(Health) + Send>;

/// Starts the thread, which receives new configurations through a mailbox. Errors: the thread cannot be started.
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
    /// The checks by the number in their keys, which is stable while a check is in progress.
    checks: BTreeMap<u32, Check>,
    report: Report,
    journal: Journal,
}

impl Checker {
    fn new(report: Report, journal: Journal) -> io::Result<Self> {
        Ok(Self { reactor: Reactor::new()?, wire: Wire::default(), checks: BTreeMap::new(), report, journal })
    }

    fn run(&mut self, mailbox: &Mailbox<Arc<Snapshot>>) -> io::Result<()> {
        mailbox.register(&self.reactor, MAIL)?;
        let mut events = Events::default();
        loop {
            // There are few checks with one deadline each, so scanning them is cheap.
            let next = self.checks.values().map(Check::due).min();
            self.reactor.turn(&mut events, next)?;
            for ready in events.ready() {
                if ready.key == MAIL {
                    continue;
                }
                let number = ready.key.index();
                let Some(check) = self.checks.get_mut(&number) else { continue };
                let outcome = check.ready(ready, &mut self.wire);
                self.proceed(number, outcome);
            }
            let now = self.reactor.now();
            let due = self.checks.iter().filter(|(_, check)| check.due() <= now);
            for number in due.map(|(number, _)| *number).collect::<Vec<_>>() {
                let Some(check) = self.checks.get_mut(&number) else { continue };
                let outcome = check.time(&mut self.reactor, now);
                self.proceed(number, outcome);
            }
            if events.ready().any(|ready| ready.key == MAIL) {
                for snapshot in mailbox.take() {
                    self.adopt(&snapshot);
                }
            }
        }
    }

    /// Continues to watch a check or, if it has an `outcome`, records the outcome and reports a change of health.
    fn proceed(&mut self, number: u32, outcome: Option<Outcome>) {
        let now = self.reactor.now();
        let Some(check) = self.checks.get_mut(&number) else { return };
        let key = Key::fixed(CHECK, number);
        let outcome = outcome.or_else(|| check.watch(&self.reactor, key).err().map(Outcome::Failed));
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

    /// Adopts another configuration. Checks of unchanged servers continue, including those in progress: otherwise every
    /// change of another server would restart them, and frequent changes would keep them from ending. A server without
    /// a check counts as up.
    fn adopt(&mut self, snapshot: &Snapshot) {
        let now = self.reactor.now();
        let mut before: BTreeMap<_, Vec<(u32, Check)>> = BTreeMap::new();
        for (number, check) in std::mem::take(&mut self.checks) {
            before.entry((check.service.clone(), check.server.id)).or_default().push((number, check));
        }
        let mut new = Vec::new();
        for service in &snapshot.services {
            let Some(health) = &service.health else { continue };
            for server in &service.servers {
                let known = before.get_mut(&(service.name.clone(), server.id)).and_then(|alike| {
                    let at = alike.iter().position(|(_, check)| check.is_of(service, server))?;
                    Some(alike.swap_remove(at))
                });
                let at = now + SPREAD * new.len() as u32;
                match known {
                    Some((number, check)) if check.has_settings(service, health) => {
                        self.checks.insert(number, check);
                    }
                    Some((_, check)) => new.push(check.again(service, health, at)),
                    None => new.push(Check::new(service, server, health, at)),
                }
            }
        }
        let known = std::mem::take(&mut self.checks);
        let free = (0..).filter(|number| !known.contains_key(number));
        self.checks = free.zip(new).collect();
        self.checks.extend(known);
        for (_, check) in before.into_values().flatten().filter(|(_, check)| !check.is_up()) {
            (self.report)(Health { service: check.service, server: check.server.id, up: true });
        }
    }
}

/// A change of a server's health.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    pub service: String,
    pub server: u64,
    pub up: bool,
}

const MAIL: Key = Key::fixed(0, 0);
const CHECK: u8 = 1;

/// The interval between the first checks, so that they do not all start at once. `Check::finish` sets later times.
const SPREAD: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::document::Config;
    use crate::config::{Findings, compile};
    use std::net::TcpListener;
    use std::time::Instant;

    fn snapshot(servers: &str, timeout: &str) -> Snapshot {
        let text = format!(
            "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\n\
             [service.app]\nservers = [{servers}]\nhealth = {{ path = '/', timeout = '{timeout}' }}"
        );
        let config: Config = toml::from_str(&text).unwrap();
        compile(&config, &mut Findings::default()).unwrap()
    }

    /// Regression test: each change of another server restarted the checks in progress, so a silent server stayed up
    /// while changes were more frequent than the timeout.
    #[test]
    fn a_check_in_progress_continues_when_other_servers_change() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let silent = format!("'http://{}'", silent.local_addr().unwrap());
        let mut checker = Checker::new(Box::new(|_| {}), Journal::kept().0).unwrap();
        checker.adopt(&snapshot(&format!("'http://192.0.2.1', {silent}"), "1h"));
        let number = 1;
        let now = Instant::now();
        assert!(checker.checks.get_mut(&number).unwrap().time(&mut checker.reactor, now).is_none());
        let is_running = |checker: &mut Checker| {
            let check = checker.checks.get_mut(&number).unwrap();
            check.time(&mut checker.reactor, now).is_some()
        };
        checker.adopt(&snapshot(&format!("{silent}, 'http://192.0.2.2', 'http://192.0.2.3'"), "1h"));
        assert_eq!(checker.checks.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
        assert!(is_running(&mut checker), "the server stays");
        checker.adopt(&snapshot(&silent, "1h"));
        assert_eq!(checker.checks.len(), 1);
        assert!(is_running(&mut checker), "it is the only one left");
        checker.adopt(&snapshot(&silent, "2h"));
        assert!(checker.checks.values().all(|check| check.due() < now + Duration::from_secs(60)));
    }
}
