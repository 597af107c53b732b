//! The active snapshot. A reload replaces it as a whole; new addresses of names and an operator's changes replace a
//! part.

use super::sockets::Shares;
use crate::config::{Service, Snapshot};
use crate::health::{self, Health};
use crate::limits::SharedLimits;
use crate::observe::journal::Journal;
use crate::worker::{Adoption, Control};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_reactor::mailbox::Sender;

/// The snapshot that all workers use, or will use after their next message. Changes from different threads reach all
/// workers in the same order.
#[derive(Debug)]
pub(crate) struct ActiveConfig {
    state: Mutex<State>,
    workers: Vec<Sender<Control>>,
    journal: Journal,
}

#[derive(Debug)]
struct State {
    snapshot: Arc<Snapshot>,
    limits: Arc<SharedLimits>,
    /// Snapshots that a worker or one of its exchanges may still use. They stay here so that no worker is the last
    /// owner: freeing a whole configuration would block a worker too long.
    retired: Vec<Retired>,
    /// The health check thread; `None` until a snapshot has health checks.
    health: Option<Sender<Arc<Snapshot>>>,
}

/// A snapshot that is no longer active.
#[derive(Debug)]
struct Retired {
    snapshot: Arc<Snapshot>,
    /// Workers drop it together with `snapshot`, so the reference count of `snapshot` covers both.
    _limits: Arc<SharedLimits>,
}

impl ActiveConfig {
    /// The snapshot that the workers start with. Starts its health checks. Errors: the health check thread cannot be
    /// started.
    pub(crate) fn new(
        snapshot: Arc<Snapshot>,
        limits: Arc<SharedLimits>,
        workers: Vec<Sender<Control>>,
        journal: Journal,
    ) -> io::Result<Self> {
        let health = match health::is_wanted(&snapshot) {
            true => Some(start_health(&snapshot, workers.clone(), journal.clone())?),
            false => None,
        };
        Ok(Self {
            state: Mutex::new(State { snapshot, limits, retired: Vec::new(), health }),
            workers,
            journal,
        })
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.state().snapshot)
    }

    /// Activates the snapshot that `change` derives from the current one, with the same routes, services and servers;
    /// if `change` returns `None`, nothing changes. Keeps the state of the limits.
    pub(crate) fn change(&self, change: impl FnOnce(&Snapshot) -> Option<Snapshot>) {
        let mut state = self.state();
        if let Some(next) = change(&state.snapshot) {
            let limits = Arc::clone(&state.limits);
            self.activate(&mut state, Arc::new(next), limits, Vec::new());
        }
    }

    /// Activates the configuration that `make` derives from the current one. The new configuration inherits the state
    /// of the servers' limits. `sockets` are each worker's sockets of new listeners.
    pub(crate) fn replace(&self, make: impl FnOnce(&Snapshot) -> Arc<Snapshot>, sockets: Shares) {
        let mut state = self.state();
        let next = make(&state.snapshot);
        let limits = SharedLimits::after(&next, &state.snapshot, &state.limits);
        self.activate(&mut state, next, Arc::new(limits), sockets);
    }

    /// Activates the current snapshot with a changed service, which `make` derives from the current one. Remaining
    /// servers and all routes keep the state of their limits.
    pub(crate) fn replace_service(&self, at: usize, make: impl FnOnce(&Service) -> Service) {
        let mut state = self.state();
        let Some(before) = state.snapshot.services.get(at).cloned() else { return };
        let service = Arc::new(make(&before));
        let limits = Arc::new(state.limits.with_service(at, &service, &before));
        let mut next = Snapshot::clone(&state.snapshot);
        next.services[at] = service;
        let overrides = std::mem::take(&mut next.overrides);
        next.take_overrides(overrides);
        self.activate(&mut state, Arc::new(next), limits, Vec::new());
    }

    /// Frees the snapshots that no worker uses. Returns whether some remain.
    pub(crate) fn free_retired(&self) -> bool {
        let mut state = self.state();
        let is_free = |retired: &mut Retired| Arc::strong_count(&retired.snapshot) == 1;
        let free: Vec<_> = state.retired.extract_if(.., is_free).collect();
        let are_left = !state.retired.is_empty();
        drop(state);
        drop(free);
        are_left
    }

    fn activate(&self, state: &mut State, next: Arc<Snapshot>, limits: Arc<SharedLimits>, sockets: Shares) {
        let adoption = Arc::new(Adoption::new(Arc::clone(&next), Arc::clone(&limits), Some(&state.snapshot)));
        let mut sockets = sockets.into_iter();
        for worker in &self.workers {
            let own = sockets.next().unwrap_or_default();
            worker.send(Control::Adopt(Arc::clone(&adoption), own));
        }
        match &state.health {
            Some(health) => health.send(Arc::clone(&next)),
            None if health::is_wanted(&next) => {
                match start_health(&next, self.workers.clone(), self.journal.clone()) {
                    Ok(health) => state.health = Some(health),
                    Err(error) => {
                        self.journal.line(format_args!("weir: health checks cannot be started: {error}"));
                    }
                }
            }
            None => {}
        }
        let snapshot = std::mem::replace(&mut state.snapshot, next);
        let limits = std::mem::replace(&mut state.limits, limits);
        state.retired.retain(|retired| Arc::strong_count(&retired.snapshot) > 1);
        state.retired.push(Retired { snapshot, _limits: limits });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the health checks, which report to all workers.
fn start_health(
    snapshot: &Snapshot,
    workers: Vec<Sender<Control>>,
    journal: Journal,
) -> io::Result<Sender<Arc<Snapshot>>> {
    let report = move |health: Health| {
        for worker in &workers {
            worker.send(Control::Health(health.clone()));
        }
    };
    health::start(snapshot, Box::new(report), journal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::document::Config;
    use crate::config::{Endpoints, Findings, Override, ServersFrom, compile, endpoints};

    /// Services `s0`, `s1`, .. of two servers each, with a route and a limit of connections.
    fn config(services: usize) -> Config {
        let service = |nth: usize| {
            format!(
                "[service.s{nth:03}]\nservers = ['http://127.0.0.1:1', 'http://127.0.0.1:2']\nmax_connections = 3\n\
                 [[route]]\nhost = 'h{nth}'\nservice = 's{nth:03}'\n"
            )
        };
        let services: String = (0..services).map(service).collect();
        toml::from_str(&format!("[listener.web]\nbind = '127.0.0.1:0'\n{services}")).unwrap()
    }

    fn active(config: &Config) -> ActiveConfig {
        let snapshot = Arc::new(compile(config, &mut Findings::default()).unwrap());
        let limits = Arc::new(SharedLimits::new(&snapshot));
        ActiveConfig::new(snapshot, limits, Vec::new(), Journal::kept().0).unwrap()
    }

    /// Replaces the servers of the service with index 1.
    fn replace(config: &Config, active: &ActiveConfig, list: &str) {
        let snapshot = active.snapshot();
        let written = &config.services["s001"];
        let endpoints = Arc::new(Endpoints::new(endpoints(list.as_bytes()).unwrap(), written));
        let service = config.with_endpoints(&snapshot, &snapshot.services[1], &endpoints).unwrap();
        active.replace_service(1, |_| service);
    }

    #[test]
    fn a_replaced_service_leaves_all_others_as_they_are() {
        let config = config(3);
        let active = active(&config);
        let before = active.snapshot();
        let [first, second] = [0, 1].map(|at| before.services[1].servers[at].id);
        active.change(|snapshot| {
            let mut next = snapshot.clone();
            for id in [first, second] {
                next.overrides.set("s001", id, Override { is_drained: true, weight: None });
            }
            Some(next)
        });
        let slots = |at: usize| active.state().limits.slots(1)[at].clone().unwrap();
        let (before_first, taken) = (slots(0), slots(0).take());
        replace(&config, &active, "[\"http://127.0.0.1:3\", \"http://127.0.0.1:1\"]");
        let now = active.snapshot();
        for at in [0, 2] {
            assert!(Arc::ptr_eq(&now.services[at], &before.services[at]), "{at}");
        }
        assert!(Arc::ptr_eq(&now.routes, &before.routes) && Arc::ptr_eq(&now.hosts, &before.hosts));
        let places: Vec<_> = now.services[1].servers.iter().map(|server| server.place.to_string()).collect();
        assert_eq!(places, ["http://127.0.0.1:3", "http://127.0.0.1:1"]);
        assert!(matches!(now.services[1].servers_from, ServersFrom::Admin(_)));
        let kept: Vec<_> = now.overrides.settings().iter().map(|setting| setting.server).collect();
        assert_eq!(kept, [first]);
        assert!(Arc::ptr_eq(&slots(1), &before_first) && slots(0).open() == 0 && slots(1).open() == 1);
        drop(taken);
        replace(&config, &active, "[]");
        assert!(active.snapshot().services[1].servers.is_empty());
    }

    /// A change must copy only its service: the snapshots share all others.
    #[test]
    fn a_replaced_service_allocates_the_same_beside_few_and_many() {
        let allocations = |services: usize| {
            let config = config(services);
            let active = active(&config);
            allocation_counter::measure(|| replace(&config, &active, "[\"http://127.0.0.1:4\"]")).count_total
        };
        let few = allocations(3);
        assert!(few > 0);
        assert_eq!(allocations(300), few);
    }
}
