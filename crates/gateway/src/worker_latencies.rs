//! One worker's response times by service and by named route. Counting a response takes no lookup by name or in a
//! store.

use crate::keys::{OfService, ServiceId, Store};
use crate::observe::{Latency, LatencyByName, Measured};
use crate::upstream::Service;
use std::cell::RefCell;
use std::rc::Rc;

/// The response times of services, by the slots of their IDs. The first response of a service adds its entry.
#[derive(Debug, Default)]
pub(crate) struct ServiceLatencies(Vec<Option<Box<OfOne>>>);

#[derive(Debug)]
struct OfOne {
    service: ServiceId,
    latency: Latency,
}

impl ServiceLatencies {
    /// Counts a response. `services` contains the service, unless a reload has removed it.
    #[inline]
    pub(crate) fn record(
        &mut self,
        service: ServiceId,
        measured: Measured,
        services: &Store<OfService, Service>,
    ) {
        match self.0.get_mut(slot(service)) {
            Some(Some(known)) if known.service == service => known.latency.record(measured),
            _ => self.record_first(service, measured, services),
        }
    }

    /// Counts the first response of a service. Does not count responses of a removed service, since another service may
    /// use its slot.
    #[cold]
    fn record_first(&mut self, service: ServiceId, measured: Measured, services: &Store<OfService, Service>) {
        if services.get(service).is_none() {
            return;
        }
        let slot = slot(service);
        if self.0.len() <= slot {
            self.0.resize_with(slot + 1, || None);
        }
        let mut latency = Latency::default();
        latency.record(measured);
        self.0[slot] = Some(Box::new(OfOne { service, latency }));
    }

    /// Drops the counts of a removed service, whose slot another service may use.
    pub(crate) fn forget(&mut self, service: ServiceId) {
        if let Some(entry) = self.0.get_mut(slot(service)) {
            *entry = None;
        }
    }

    /// The counts of all services that had a response.
    pub(crate) fn by_name(&self, services: &Store<OfService, Service>) -> LatencyByName {
        let named = |of: &OfOne| {
            let service = services.get(of.service)?;
            Some((service.config.name.clone(), of.latency.clone()))
        };
        self.0.iter().flatten().filter_map(|of| named(of)).collect()
    }
}

fn slot(service: ServiceId) -> usize {
    service.key().index() as usize
}

/// The response times of named routes, in the order of their names. A reload that keeps a name keeps its counts:
/// exchanges with the old and the new configuration count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouteLatencies(Rc<[Rc<OfRoute>]>);

/// The response times of one route; `None` until its first response.
type OfRoute = RefCell<Option<Box<Latency>>>;

impl RouteLatencies {
    pub(crate) fn new(names: usize) -> Self {
        Self((0..names).map(|_| Rc::default()).collect())
    }

    /// The response times for another configuration's route names: `kept` contains, for each of those names, its index
    /// in the current configuration, if it exists there.
    pub(crate) fn replaced(&self, kept: &[Option<usize>]) -> Self {
        let of = |before: &Option<usize>| before.and_then(|at| self.0.get(at)).map(Rc::clone);
        Self(kept.iter().map(|before| of(before).unwrap_or_default()).collect())
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts a response on the route with this name; `None`: the route has no name.
    pub(crate) fn record(&self, name: Option<usize>, measured: Measured) {
        let route = name.and_then(|at| self.0.get(at));
        if let Some(mut latency) = route.and_then(|route| route.try_borrow_mut().ok()) {
            latency.get_or_insert_default().record(measured);
        }
    }

    /// The counts of all routes that had a response, by their `names`.
    pub(crate) fn by_name(&self, names: &[String]) -> LatencyByName {
        let named = |(name, route): (&String, &Rc<OfRoute>)| {
            let latency = route.try_borrow().ok()?.as_deref()?.clone();
            Some((name.clone(), latency))
        };
        names.iter().zip(&*self.0).filter_map(named).collect()
    }
}
