//! What may wait is done beside the workers, which get the result by mail.

use crate::admin::Partial;
use crate::config::{Snapshot, resolve_again};
use crate::observe::Report;
use crate::observe::journal::{self, Journal};
use crate::worker::Control;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use weir_reactor::mailbox::Sender;

/// Resolves the servers' names again and again, and mails a new snapshot when an address is gone from the answer.
/// Addresses need none of this. Errors: when the thread cannot be started.
pub(crate) fn keep_resolving(
    snapshot: Arc<Snapshot>,
    workers: Vec<Sender<Control>>,
    health: Option<Sender<Arc<Snapshot>>>,
    journal: Journal,
) -> io::Result<()> {
    let mut servers = snapshot.services.iter().flat_map(|service| &service.servers);
    if servers.all(|server| !server.place.is_named()) {
        return Ok(());
    }
    thread::Builder::new().name("control".into()).spawn(move || {
        let mut snapshot = (*snapshot).clone();
        let mut failing = BTreeSet::new();
        loop {
            thread::sleep(EVERY);
            if resolve_all(&mut snapshot, &mut failing, &journal) {
                let shared = Arc::new(snapshot.clone());
                for worker in &workers {
                    worker.send(Control::Adopt(Arc::clone(&shared)));
                }
                if let Some(health) = &health {
                    health.send(shared);
                }
            }
        }
    })?;
    Ok(())
}

/// Whether an address has changed. The last good answer stays.
fn resolve_all(snapshot: &mut Snapshot, failing: &mut BTreeSet<String>, journal: &Journal) -> bool {
    let mut changed = false;
    for service in &mut snapshot.services {
        let name = &service.name;
        for server in service.servers.iter_mut().filter(|server| server.place.is_named()) {
            match server.place.addresses() {
                Ok(found) => {
                    failing.remove(&server.authority);
                    if let Some(moved) = resolve_again(server, &found) {
                        journal
                            .line(format_args!("weir: {name}: {} is at {} now", moved.place, moved.address));
                        *server = moved;
                        changed = true;
                    }
                }
                Err(error) => {
                    if failing.insert(server.authority.clone()) {
                        journal.line(format_args!("weir: {name}: {error}; {} stays", server.address));
                    }
                }
            }
        }
    }
    changed
}

/// Writes what all workers have counted so far.
pub(crate) fn tell(workers: &[Sender<Control>]) {
    match gather(workers) {
        Ok(report) => journal::err(format_args!("weir: so far: {}", report.counters)),
        Err(Partial { answered, workers }) => {
            journal::err(format_args!("weir: so far: {answered} of {workers} workers answer"));
        }
    }
}

/// Asks all workers. Errors: some do not answer in time.
pub(crate) fn gather(workers: &[Sender<Control>]) -> Result<Report, Partial> {
    let (reply, replies) = channel();
    for worker in workers {
        worker.send(Control::Tell(reply.clone()));
    }
    drop(reply);
    let mut total = Report::default();
    let by = Instant::now() + WITHIN;
    for answered in 0..workers.len() {
        match replies.recv_timeout(by.saturating_duration_since(Instant::now())) {
            Ok(report) => total.add(&report),
            Err(_) => return Err(Partial { answered, workers: workers.len() }),
        }
    }
    Ok(total)
}

/// A turn takes milliseconds.
const WITHIN: Duration = Duration::from_secs(1);

/// The system's resolver does not say how long an answer holds; between one second and a minute is usual.
const EVERY: Duration = Duration::from_secs(30);
