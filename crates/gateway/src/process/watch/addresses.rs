//! Resolves the names of servers again when their TTL expires, and moves servers whose name has lost their address.

use crate::config::document::Dns;
use crate::config::{Names, Snapshot};
use crate::observe::journal::Journal;
use crate::process::ActiveConfig;
use crate::resolve::{Choice, Found, Resolver, Schedule, choose, name_of};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::select;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;
use weir_transport::Address;

/// Resolves each server name again when its TTL expires, and changes the active snapshot when a name has lost an
/// address. IP addresses and Unix sockets need no resolution, so only the first name starts the thread.
#[derive(Debug)]
pub(crate) struct NameWatch {
    active: Arc<ActiveConfig>,
    journal: Journal,
    /// Notified when another configuration is active; `None` without a thread.
    config_changed: Option<Arc<Notify>>,
}

impl NameWatch {
    /// Starts to watch the names of the active snapshot. Errors: the thread cannot be started.
    pub(crate) fn start(active: Arc<ActiveConfig>, journal: Journal) -> io::Result<Self> {
        let mut watch = Self { active, journal, config_changed: None };
        watch.follow()?;
        Ok(watch)
    }

    /// Adopts the names and settings of the active configuration. Errors: the thread cannot be started.
    pub(crate) fn follow(&mut self) -> io::Result<()> {
        if let Some(changed) = &self.config_changed {
            changed.notify_one();
            return Ok(());
        }
        let snapshot = self.active.snapshot();
        if names_of(&snapshot).is_empty() {
            return Ok(());
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (active, journal, config_changed) =
            (Arc::clone(&self.active), self.journal.clone(), Arc::new(Notify::new()));
        self.config_changed = Some(Arc::clone(&config_changed));
        thread::Builder::new().name("names".into()).spawn(move || {
            let keeper = Keeper {
                schedule: schedule(&snapshot),
                resolver: Resolver::new(&snapshot.names.dns.name_servers()),
                names: names_of(&snapshot),
                dns: snapshot.names.dns.clone(),
                active,
                journal,
                config_changed,
            };
            drop(snapshot);
            runtime.block_on(keeper.run());
        })?;
        Ok(())
    }
}

fn names_of(snapshot: &Snapshot) -> BTreeSet<String> {
    let servers = snapshot.services.iter().flat_map(|service| &service.servers);
    servers.filter_map(|server| name_of(&server.place)).collect()
}

fn schedule(snapshot: &Snapshot) -> Schedule {
    let Names { dns, ttls } = &snapshot.names;
    Schedule::new(with_ttls(names_of(snapshot), ttls), dns.min_ttl, dns.max_ttl, Instant::now())
}

fn with_ttls(
    names: BTreeSet<String>,
    ttls: &BTreeMap<String, Duration>,
) -> impl Iterator<Item = (String, Option<Duration>)> {
    names.into_iter().map(|name| {
        let ttl = ttls.get(&name).copied();
        (name, ttl)
    })
}

struct Keeper {
    active: Arc<ActiveConfig>,
    journal: Journal,
    config_changed: Arc<Notify>,
    schedule: Schedule,
    resolver: Resolver,
    names: BTreeSet<String>,
    dns: Dns,
}

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
            // After a timeout, pending lookups stay in the set.
            let ended = select! {
                () = self.config_changed.notified() => {
                    self.follow();
                    None
                }
                () = sleep(wait) => None,
                Some(ended) = lookups.join_next() => Some(ended),
            };
            for outcome in ended.into_iter().chain(std::iter::from_fn(|| lookups.try_join_next())).flatten() {
                self.apply(outcome);
            }
        }
    }

    /// Adopts another active configuration. Names keep their due times unless the settings change.
    fn follow(&mut self) {
        let snapshot = self.active.snapshot();
        let names = names_of(&snapshot);
        let Names { dns, ttls } = &snapshot.names;
        if *dns != self.dns {
            self.resolver = Resolver::new(&dns.name_servers());
            self.dns.clone_from(dns);
            self.schedule = schedule(&snapshot);
        } else if names != self.names {
            self.schedule.follow(with_ttls(names.clone(), ttls), Instant::now());
        }
        self.names = names;
    }

    /// Applies a lookup's outcome. After a failed lookup, the last good address stays in use.
    fn apply(&mut self, (name, outcome): Outcome) {
        let now = Instant::now();
        match outcome {
            Ok(found) => match self.move_servers(&name, &found) {
                Some(why) => self.fail(&name, &why, now),
                None if self.schedule.found(&name, found.ttl, now) => {
                    self.journal.line(format_args!("weir: `{name}` resolves again"));
                }
                None => {}
            },
            Err(why) => self.fail(&name, &why, now),
        }
    }

    fn fail(&mut self, name: &str, why: &str, now: Instant) {
        if self.schedule.failed(name, now) {
            let journal = &self.journal;
            journal.line(format_args!("weir: cannot resolve `{name}`: {why}; its last address stays in use"));
        }
    }

    /// Moves each server whose address the name has lost to another address of the name. Returns the reason why an
    /// address could not be confirmed, if any.
    fn move_servers(&self, name: &str, found: &Found) -> Option<String> {
        let mut unknown = None;
        self.active.change(|snapshot| {
            let prefer = snapshot.names.dns.prefer;
            let mut moved = None;
            for (at_service, service) in snapshot.services.iter().enumerate() {
                for (at_server, server) in service.servers.iter().enumerate() {
                    let Some(now) = server.address.tcp() else { continue };
                    if name_of(&server.place).is_none_or(|known| known != name) {
                        continue;
                    }
                    match choose(now.ip(), found, prefer) {
                        Choice::Stays => {}
                        Choice::StaysUnknown(why) => unknown = Some(why),
                        Choice::Moves(next) => {
                            let next = Address::Tcp(SocketAddr::new(next, now.port()));
                            let (name, place) = (&service.name, &server.place);
                            self.journal.line(format_args!("weir: {name}: {place} is at {next} now"));
                            let moved = moved.get_or_insert_with(|| snapshot.clone());
                            let service = Arc::make_mut(&mut moved.services[at_service]);
                            service.servers[at_server].address = next;
                        }
                    }
                }
            }
            moved
        });
        unknown
    }
}

/// The maximum number of concurrent lookups; each uses two sockets.
const AT_ONCE: usize = 32;

/// The timeout while all lookups are in flight; at least one always ends sooner.
const IDLE: Duration = Duration::from_secs(3600);
