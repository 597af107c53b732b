//! The thread that resolves names again, and moves servers.

use super::ask::Resolver;
use super::choice::{Choice, choose};
use super::schedule::Schedule;
use super::{Found, name_of};
use crate::config::{Server, Snapshot};
use crate::observe::journal::Journal;
use crate::worker::Control;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use weir_reactor::mailbox::Sender;
use weir_transport::Address;

/// Resolves the servers' names whenever their TTL is over, and mails a new snapshot when an address is gone from the answers.
/// Addresses and Unix sockets need none of this. Errors: the thread cannot be started.
pub(crate) fn keep_resolving(
    snapshot: &Snapshot,
    workers: Vec<Sender<Control>>,
    health: Option<Sender<Arc<Snapshot>>>,
    journal: Journal,
) -> io::Result<()> {
    let servers = snapshot.services.iter().flat_map(|service| &service.servers);
    let names: BTreeSet<_> = servers.filter_map(|server| name_of(&server.place)).collect();
    if names.is_empty() {
        return Ok(());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let snapshot = snapshot.clone();
    thread::Builder::new().name("names".into()).spawn(move || {
        let known = &snapshot.names.ttls;
        let names: Vec<_> = names.into_iter().map(|name| (known.get(&name).copied(), name)).collect();
        let dns = &snapshot.names.dns;
        let names = names.into_iter().map(|(ttl, name)| (name, ttl));
        let schedule = Schedule::new(names, dns.min_ttl, dns.max_ttl, Instant::now());
        let resolver = Resolver::new(dns);
        runtime.block_on(Keeper { snapshot, workers, health, journal, schedule, resolver }.run());
    })?;
    Ok(())
}

struct Keeper {
    snapshot: Snapshot,
    workers: Vec<Sender<Control>>,
    health: Option<Sender<Arc<Snapshot>>>,
    journal: Journal,
    schedule: Schedule,
    resolver: Resolver,
}

/// A name, and what became of its lookup.
type Outcome = (String, Result<Found, String>);

impl Keeper {
    async fn run(mut self) {
        let mut lookups = JoinSet::new();
        loop {
            let due = self.schedule.take_due(Instant::now(), AT_ONCE - lookups.len());
            if !due.is_empty() {
                self.resolver.refresh();
            }
            for name in due {
                let find = self.resolver.find(&name);
                lookups.spawn(async move { (name, find.await) });
            }
            let next = self.schedule.next().filter(|_| lookups.len() < AT_ONCE);
            let wait = next.map_or(IDLE, |next| next.saturating_duration_since(Instant::now()));
            // What is pending when the time is over stays in the set.
            let ended = match lookups.is_empty() {
                true => {
                    sleep(wait).await;
                    None
                }
                false => timeout(wait, lookups.join_next()).await.ok().flatten(),
            };
            let mut is_changed = false;
            for outcome in ended.into_iter().chain(std::iter::from_fn(|| lookups.try_join_next())).flatten() {
                is_changed |= self.settle(outcome);
            }
            if is_changed {
                self.publish();
            }
        }
    }

    /// Takes a lookup's outcome; returns whether a server has moved. The last good address stays.
    fn settle(&mut self, (name, outcome): Outcome) -> bool {
        let now = Instant::now();
        match outcome {
            Ok(found) => {
                let (is_changed, unknown) = self.move_servers(&name, &found);
                match unknown {
                    Some(why) => self.fail(&name, &why, now),
                    None if self.schedule.found(&name, found.ttl, now) => {
                        self.journal.line(format_args!("weir: `{name}` resolves again"));
                    }
                    None => {}
                }
                is_changed
            }
            Err(why) => {
                self.fail(&name, &why, now);
                false
            }
        }
    }

    fn fail(&mut self, name: &str, why: &str, now: Instant) {
        if self.schedule.failed(name, now) {
            let journal = &self.journal;
            journal.line(format_args!("weir: cannot resolve `{name}`: {why}; its last address stays in use"));
        }
    }

    /// Moves the servers of a name whose addresses are gone: whether there are any, and why one could not be moved.
    fn move_servers(&mut self, name: &str, found: &Found) -> (bool, Option<String>) {
        let (mut is_changed, mut unknown) = (false, None);
        let prefer = self.snapshot.names.dns.prefer;
        for service in &mut self.snapshot.services {
            let of_name = |server: &&mut Server| name_of(&server.place).is_some_and(|known| known == name);
            for server in service.servers.iter_mut().filter(of_name) {
                let Some(now) = server.address.tcp() else { continue };
                match choose(now.ip(), found, prefer) {
                    Choice::Stays => {}
                    Choice::StaysUnknown(why) => unknown = Some(why),
                    Choice::Moves(next) => {
                        server.address = Address::Tcp(SocketAddr::new(next, now.port()));
                        is_changed = true;
                        let (service, place, at) = (&service.name, &server.place, &server.address);
                        self.journal.line(format_args!("weir: {service}: {place} is at {at} now"));
                    }
                }
            }
        }
        (is_changed, unknown)
    }

    fn publish(&self) {
        let shared = Arc::new(self.snapshot.clone());
        for worker in &self.workers {
            worker.send(Control::Adopt(Arc::clone(&shared)));
        }
        if let Some(health) = &self.health {
            health.send(shared);
        }
    }
}

/// Lookups at the same time: each has two sockets.
const AT_ONCE: usize = 32;

/// There is always a lookup that ends before.
const IDLE: Duration = Duration::from_secs(3600);
