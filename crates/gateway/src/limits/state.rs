//! The state of a configuration's limits.

use super::{Rate, Slots};
use crate::config::{Service, Snapshot};
use std::collections::HashMap;
use std::sync::Arc;

/// The state of a snapshot's limits, which all workers share: token buckets by route, open connections by server.
///
/// A snapshot contains the values of the limits, but no state. The process creates the state when it adopts a snapshot,
/// and sends both to the workers together.
#[derive(Debug, Default)]
pub(crate) struct SharedLimits {
    /// The token buckets of routes, in the order of [`Snapshot::routes`].
    rates: Arc<[Option<Rate>]>,
    /// The slots of servers, in the order of [`Snapshot::services`] and their servers.
    slots: Vec<ServiceSlots>,
}

/// The slots of a service's servers; empty if no server has a limit.
type ServiceSlots = Arc<[Option<Arc<Slots>>]>;

impl SharedLimits {
    /// The state of a snapshot without a predecessor.
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let slots = snapshot.services.iter().map(|service| slots_of(service, None));
        Self::with(snapshot, slots)
    }

    /// The state of a snapshot that replaces `old`, which has the state `before`. A server with an unchanged limit
    /// keeps its slots, so that open connections still count. Token buckets start full.
    pub(crate) fn after(snapshot: &Snapshot, old: &Snapshot, before: &Self) -> Self {
        let slots = snapshot.services.iter().map(|service| {
            let old = old.service_named(&service.name).map(|at| (&*old.services[at], before.slots(at)));
            slots_of(service, old)
        });
        Self::with(snapshot, slots)
    }

    /// The state of a snapshot in which only the service at `at` differs: it was `old` and is `now`. Token buckets keep
    /// their tokens.
    pub(crate) fn with_service(&self, at: usize, now: &Service, old: &Service) -> Self {
        let mut slots = self.slots.clone();
        if let Some(place) = slots.get_mut(at) {
            *place = slots_of(now, Some((old, self.slots(at))));
        }
        Self { rates: Arc::clone(&self.rates), slots }
    }

    fn with(snapshot: &Snapshot, slots: impl Iterator<Item = ServiceSlots>) -> Self {
        let rates = snapshot.routes.iter().map(|route| route.rate.map(Rate::new));
        Self { rates: rates.collect(), slots: slots.collect() }
    }

    /// The token buckets of the route with this index; `None`: no limit.
    pub(crate) fn rate(&self, route: usize) -> Option<&Rate> {
        self.rates.get(route)?.as_ref()
    }

    /// The slots of the servers of the service with this index, in the servers' order; empty if no server has a limit.
    pub(crate) fn slots(&self, service: usize) -> &[Option<Arc<Slots>>] {
        self.slots.get(service).map_or(&[], AsRef::as_ref)
    }
}

fn slots_of(service: &Service, old: Option<(&Service, &[Option<Arc<Slots>>])>) -> ServiceSlots {
    if service.servers.iter().all(|server| server.max_connections.is_none()) {
        return Arc::default();
    }
    let mut known: HashMap<u64, &Arc<Slots>> = HashMap::new();
    for (server, slots) in old.iter().flat_map(|(old, slots)| old.servers.iter().zip(*slots)) {
        if let Some(slots) = slots {
            known.entry(server.id).or_insert(slots);
        }
    }
    let servers = service.servers.iter().map(|server| {
        let most = server.max_connections?;
        let kept = known.get(&server.id).filter(|slots| slots.most() == most);
        Some(kept.map_or_else(|| Arc::new(Slots::new(most)), |slots| Arc::clone(slots)))
    });
    servers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::document::Config;
    use crate::config::{Findings, compile};
    use crate::limits::ClientKey;
    use std::time::Instant;

    /// A configuration with one route and services of one server each, by name and limit.
    fn snapshot(services: &[(&str, &str)]) -> Snapshot {
        let service = |(name, limit): &(&str, &str)| {
            format!("[service.{name}]\nservers = ['http://192.0.2.1']\n{limit}\n")
        };
        let text = format!(
            "[listener.web]\nbind = '127.0.0.1:0'\n{}[[route]]\nservice = 'app'\nrate = {{ requests = 1, per = '1h' }}\n",
            services.iter().map(service).collect::<String>()
        );
        let config: Config = toml::from_str(&text).unwrap();
        compile(&config, &mut Findings::default()).unwrap()
    }

    fn one(limits: &SharedLimits, service: usize) -> Option<&Arc<Slots>> {
        limits.slots(service).first()?.as_ref()
    }

    #[test]
    fn open_connections_still_count_after_a_reload_unless_their_limit_is_another_one() {
        let before = snapshot(&[("app", "max_connections = 2"), ("b", "max_connections = 2"), ("c", "")]);
        let limits = SharedLimits::new(&before);
        let slot = one(&limits, 0).and_then(Slots::take);
        assert!(slot.is_some() && one(&limits, 2).is_none());
        assert!(!Arc::ptr_eq(one(&limits, 0).unwrap(), one(&limits, 1).unwrap()), "each service has its own");
        // Another service is now the first.
        let after = snapshot(&[
            ("a", "max_connections = 2"),
            ("app", "max_connections = 2"),
            ("b", "max_connections = 3"),
        ]);
        let limits = SharedLimits::after(&after, &before, &limits);
        let open: Vec<_> = (0..3).map(|service| one(&limits, service).unwrap().open()).collect();
        assert_eq!(open, [0, 1, 0]);
        assert_eq!(one(&limits, 2).unwrap().most(), 3);
        drop(slot);
        assert_eq!(one(&limits, 1).unwrap().open(), 0);
    }

    #[test]
    fn token_buckets_begin_anew_with_a_reload() {
        let (snapshot, now) = (snapshot(&[("app", "")]), Instant::now());
        let limits = SharedLimits::new(&snapshot);
        let take = |limits: &SharedLimits| limits.rate(0).unwrap().take(ClientKey::of(None), now);
        assert!(take(&limits).is_ok() && take(&limits).is_err());
        let service = &snapshot.services[0];
        assert!(take(&limits.with_service(0, service, service)).is_err(), "not with other servers");
        let limits = SharedLimits::after(&snapshot, &snapshot, &limits);
        assert!(take(&limits).is_ok());
        assert!(limits.rate(1).is_none());
    }
}
