//! The state of a configuration's limits.

use super::{Rate, Slots};
use crate::config::{Service, Snapshot};
use std::sync::Arc;

/// The state of a snapshot's limits, which all workers share: token buckets by route, open connections by server.
///
/// The snapshot has the values of these limits and no state. A process makes this state when it adopts a snapshot, and sends both
/// to the workers together.
#[derive(Debug, Default)]
pub(crate) struct SharedLimits {
    /// In the order of [`Snapshot::routes`].
    rates: Vec<Option<Rate>>,
    /// In the order of [`Snapshot::services`] and their servers.
    slots: Vec<Vec<Option<Arc<Slots>>>>,
}

impl SharedLimits {
    /// The state of a snapshot without a predecessor.
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        Self::after(snapshot, &[], &Self::default())
    }

    /// The state of a snapshot that replaces another one with `services` and the state `before`. A server whose limit stays keeps
    /// its slots, so that open connections still count. Token buckets begin anew.
    pub(crate) fn after(snapshot: &Snapshot, services: &[Service], before: &Self) -> Self {
        let rates = snapshot.routes.iter().map(|route| route.rate.map(Rate::new));
        let slots = snapshot.services.iter().map(|service| {
            let old = services.iter().zip(&before.slots).find(|(old, _)| old.name == service.name);
            slots_of(service, old)
        });
        Self { rates: rates.collect(), slots: slots.collect() }
    }

    /// The token buckets of a route, by its place; `None`: it has no limit.
    pub(crate) fn rate(&self, route: usize) -> Option<&Rate> {
        self.rates.get(route)?.as_ref()
    }

    /// The slots of a service's servers, by its place and in their order.
    pub(crate) fn slots(&self, service: usize) -> &[Option<Arc<Slots>>] {
        self.slots.get(service).map_or(&[], Vec::as_slice)
    }
}

fn slots_of(service: &Service, old: Option<(&Service, &Vec<Option<Arc<Slots>>>)>) -> Vec<Option<Arc<Slots>>> {
    let servers = service.servers.iter().map(|server| {
        let most = server.max_connections?;
        let kept = old.and_then(|(old, slots)| {
            let mut known = old.servers.iter().zip(slots);
            let (_, slots) = known.find(|(old, _)| old.place == server.place)?;
            slots.as_ref().filter(|slots| slots.most() == most)
        });
        Some(kept.map_or_else(|| Arc::new(Slots::new(most)), Arc::clone))
    });
    servers.collect()
}
