//! Adoption of another configuration, in time proportional to its changes.

use super::Worker;
use crate::config::{Delta, ListenerId, Snapshot};
use crate::keys::{ExchangeId, OfServer, OfService, ServerId, ServiceId, Store};
use crate::limits::SharedLimits;
use crate::plan::Plan;
use crate::upstream::{Server, Service};
use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use weir_reactor::Net;
use weir_transport::Wire;

/// A configuration to adopt, with its changes. It is prepared once, outside the workers, so that the adoption delays
/// them less.
#[derive(Debug)]
pub(crate) struct Adoption {
    snapshot: Arc<Snapshot>,
    limits: Arc<SharedLimits>,
    health_checks: usize,
    pub listeners: HashMap<ListenerId, usize>,
    /// The replaced snapshot, and the changes from it.
    before: Weak<Snapshot>,
    delta: Delta,
}

impl Adoption {
    /// Prepares `snapshot`, which replaces `before`. If `before` is `None`, each worker computes the changes itself.
    pub(crate) fn new(
        snapshot: Arc<Snapshot>,
        limits: Arc<SharedLimits>,
        before: Option<&Arc<Snapshot>>,
    ) -> Self {
        let health_checks = snapshot.health_checks();
        let listeners =
            snapshot.listeners.iter().enumerate().map(|(at, listener)| (listener.id, at)).collect();
        let delta = before.map(|before| Delta::between(&snapshot, before)).unwrap_or_default();
        Self {
            snapshot,
            limits,
            health_checks,
            listeners,
            before: before.map(Arc::downgrade).unwrap_or_default(),
            delta,
        }
    }

    /// The changes from `current`, the worker's snapshot.
    fn delta(&self, current: &Arc<Snapshot>) -> Cow<'_, Delta> {
        match std::ptr::eq(self.before.as_ptr(), Arc::as_ptr(current)) {
            true => Cow::Borrowed(&self.delta),
            false => Cow::Owned(Delta::between(&self.snapshot, current)),
        }
    }
}

/// The services of a snapshot without a predecessor, in the snapshot's order.
pub(super) fn services_of(
    snapshot: &Snapshot,
    limits: &SharedLimits,
    services: &mut Store<OfService, Service>,
    servers: &mut Store<OfServer, Server>,
) -> Vec<ServiceId> {
    let new = |(at, config)| {
        let (service, _) = Service::new(config, limits.slots(at), None, servers);
        services.insert(service)
    };
    snapshot.services.iter().enumerate().map(new).collect()
}

/// All services after an adoption, the changed ones, the removed servers, and the exchanges that need a new route.
#[derive(Debug, Default)]
struct Replaced {
    services: Vec<ServiceId>,
    changed: Vec<ServiceId>,
    gone: Vec<ServerId>,
    /// The queued exchanges of removed services.
    stranded: Vec<ExchangeId>,
}

impl<N: Net> Worker<N> {
    /// Applies another configuration, and accepts from `sockets`, the sockets of its new listeners. Closes idle
    /// connections to removed servers; busy ones finish their work first. Removed listeners and their clients drain,
    /// and so do the clients of listeners that now admit clients on other terms. All other client connections keep the
    /// listener settings with which they were accepted.
    pub(super) fn adopt(&mut self, adoption: &Adoption, sockets: Vec<(ListenerId, N::Listener)>) {
        let delta = adoption.delta(&self.core.plan.snapshot);
        let Replaced { services, changed, gone, mut stranded } = self.replace_services(adoption, &delta);
        let (snapshot, limits) = (Arc::clone(&adoption.snapshot), Arc::clone(&adoption.limits));
        self.peers.descriptors.allow(snapshot.connections, adoption.health_checks);
        if snapshot.read_size != self.core.plan.snapshot.read_size {
            self.core.wire = Wire::with_read_size(snapshot.read_size);
        }
        if let (Some(access), Some(log)) = (&mut self.core.access, &snapshot.access) {
            access.follow(log);
        }
        let route_latencies = match &delta.route_names {
            None => self.core.plan.route_latencies.clone(),
            Some(kept) => self.core.plan.route_latencies.replaced(kept),
        };
        let plan = Rc::new(Plan { snapshot, limits, services, route_latencies });
        let before = std::mem::replace(&mut self.core.plan, plan);
        for id in gone {
            self.close_idle(id);
            self.servers.discard(id);
        }
        stranded.extend(self.apply_overrides(&changed));
        self.replace_listeners(adoption, sockets, &before);
        self.waiting -= stranded.len();
        // Each call puts its exchange at the front of a queue, so the exchange that has waited longest comes last.
        for exchange in stranded.into_iter().rev() {
            self.admit(exchange);
        }
    }

    /// Removes and replaces the services that have changed, and adds the new ones. A changed service keeps its ID.
    fn replace_services(&mut self, adoption: &Adoption, delta: &Delta) -> Replaced {
        let mut replaced = Replaced::default();
        let plan = Rc::clone(&self.core.plan);
        for id in delta.gone.iter().filter_map(|at| plan.services.get(*at)) {
            self.core.service_latencies.forget(*id);
            if let Some(service) = self.services.remove(*id) {
                replaced.stranded.extend(service.waiting);
                replaced.gone.extend(service.servers);
            }
        }
        for changed in &delta.changed {
            let config = &adoption.snapshot.services[changed.now];
            let slots = adoption.limits.slots(changed.now);
            let known = changed.before.and_then(|at| plan.services.get(at)).copied();
            let place = known.and_then(|id| self.services.get_mut(id));
            let (service, gone) = Service::new(config, slots, place, &mut self.servers);
            replaced.gone.extend(gone);
            replaced.changed.push(match known.and_then(|id| Some((id, self.services.get_mut(id)?))) {
                Some((id, place)) => {
                    *place = service;
                    id
                }
                None => self.services.insert(service),
            });
        }
        let mut gone = delta.gone.iter().peekable();
        let kept = plan.services.iter().enumerate().filter(|(at, _)| gone.next_if_eq(&at).is_none());
        let mut kept = kept.map(|(_, id)| *id);
        let mut changed = delta.changed.iter().zip(&replaced.changed).peekable();
        replaced.services.reserve_exact(adoption.snapshot.services.len());
        for at in 0..adoption.snapshot.services.len() {
            let id = match changed.next_if(|(changed, _)| changed.now == at) {
                Some((changed, id)) if changed.before.is_none() => Some(*id),
                Some(_) | None => kept.next(),
            };
            replaced.services.extend(id);
        }
        replaced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::document::Config;
    use crate::config::{Findings, compile};
    use crate::keys::look_ups;
    use crate::observe::Log;
    use crate::observe::journal::Journal;
    use crate::worker::Control;
    use std::collections::BTreeMap;
    use std::sync::mpsc::channel;
    use std::time::Duration;
    use weir_reactor::Reactor;

    /// A configuration with services of two servers each, by name and by the port of the second server.
    fn snapshot(services: &[(String, u16)]) -> Arc<Snapshot> {
        let service = |(name, port): &(String, u16)| {
            format!("[service.{name}]\nservers = ['http://127.0.0.1:1', 'http://127.0.0.1:{port}']\n")
        };
        let services: String = services.iter().map(service).collect();
        let text =
            format!("[listener.web]\nbind = '127.0.0.1:0'\n{services}[[route]]\nrespond.status = 200\n");
        let config: Config = toml::from_str(&text).unwrap();
        compile(&config, &mut Findings::default()).unwrap().into()
    }

    fn worker(snapshot: &Arc<Snapshot>) -> Worker<Reactor> {
        let net = Reactor::new().unwrap();
        let log = Log::new(Journal::kept().0, net.now());
        let limits = Arc::new(SharedLimits::new(snapshot));
        Worker::new(net, log, None, Arc::clone(snapshot), limits, Vec::new()).unwrap()
    }

    /// The number of lookups by a worker with `services` services when one of them changes.
    fn work(services: usize) -> u64 {
        let mut all: Vec<_> = (0..services).map(|nth| (format!("s{nth}"), 2)).collect();
        let before = snapshot(&all);
        all[services / 2].1 = 3;
        let now = snapshot(&all);
        let mut worker = worker(&before);
        let adoption = Adoption::new(Arc::clone(&now), Arc::default(), Some(&before));
        let look_ups_before = look_ups();
        worker.adopt(&adoption, Vec::new());
        assert!(Arc::ptr_eq(&worker.core.plan.snapshot, &now));
        look_ups() - look_ups_before
    }

    /// Regression test: a worker compared every service and every server with all others.
    #[test]
    fn its_work_is_proportional_to_what_changes() {
        assert!(work(5) > 0, "it counts look-ups");
        assert_eq!(work(5), work(500));
    }

    #[test]
    fn services_and_unchanged_servers_keep_their_ids() {
        let of = |services: &[(&str, u16)]| {
            snapshot(&services.iter().map(|(name, port)| ((*name).to_owned(), *port)).collect::<Vec<_>>())
        };
        let configs = [
            of(&[("b", 2), ("d", 2), ("e", 2)]),
            of(&[("a", 2), ("b", 2), ("d", 3), ("f", 2)]),
            of(&[("c", 2), ("d", 3)]),
            of(&[]),
            of(&[("d", 3), ("g", 1)]),
        ];
        for is_prepared in [true, false] {
            let mut worker = worker(&configs[0]);
            for pair in configs.windows(2) {
                let (before, now) = (&pair[0], &pair[1]);
                let old_ids = worker.core.plan.services.clone();
                let old_servers: Vec<_> =
                    old_ids.iter().map(|id| worker.services.get(*id).unwrap().servers.clone()).collect();
                let before_if_known = is_prepared.then_some(before);
                let adoption = Adoption::new(Arc::clone(now), Arc::default(), before_if_known);
                worker.adopt(&adoption, Vec::new());
                let ids = &worker.core.plan.services;
                assert_eq!(ids.len(), now.services.len());
                for (config, id) in now.services.iter().zip(ids) {
                    let service = worker.services.get(*id).unwrap();
                    assert!(service.config.is_same(config));
                    let of_config: Vec<_> =
                        service.servers.iter().map(|id| &worker.servers.get(*id).unwrap().config).collect();
                    assert_eq!(of_config, config.servers.iter().collect::<Vec<_>>());
                    let Some(old) = before.service_named(&config.name) else { continue };
                    assert_eq!(*id, old_ids[old]);
                    for (at, server) in config.servers.iter().enumerate() {
                        let is_kept = *server == before.services[old].servers[at];
                        assert_eq!(service.servers[at] == old_servers[old][at], is_kept);
                    }
                }
                let servers: usize = now.services.iter().map(|service| service.servers.len()).sum();
                assert_eq!((worker.services.len(), worker.servers.len()), (now.services.len(), servers));
            }
        }
    }

    /// Regression test: a reload that changed only a server's weight closed the server's connections, and forgot that
    /// the server was down.
    #[test]
    fn a_server_keeps_its_state_unless_its_connections_would_differ() {
        let of = |servers: &str, more: &str| {
            let text = format!(
                "[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = [{servers}]\n{more}\n[[route]]\nrespond.status = 200\n"
            );
            Arc::new(compile(&toml::from_str(&text).unwrap(), &mut Findings::default()).unwrap())
        };
        const BOTH: &str = "'http://127.0.0.1:1', 'http://127.0.0.1:2'";
        let before = of(BOTH, "");
        for (servers, more, kept) in [
            (BOTH, "", [true; 2]),
            ("{ url = 'http://127.0.0.1:1', weight = 3 }, 'http://127.0.0.1:2'", "", [true; 2]),
            ("'http://127.0.0.1:1', { url = 'http://127.0.0.1:2', backup = true }", "", [true; 2]),
            (BOTH, "pool.max_idle = 1", [true; 2]),
            (BOTH, "balance = 'least-in-flight'", [true; 2]),
            ("'http://127.0.0.1:1', 'http://127.0.0.1:3'", "", [true, false]),
            (BOTH, "max_connections = 5", [false; 2]),
            (BOTH, "proxy_protocol = 'v2'", [false; 2]),
            (BOTH, "http2 = true", [false; 2]),
        ] {
            let mut worker = worker(&before);
            let ids = worker.services.get(worker.core.plan.services[0]).unwrap().servers.clone();
            for id in &ids {
                worker.servers.get_mut(*id).unwrap().note_health(false, worker.core.net.now());
            }
            let now = of(servers, more);
            worker.adopt(&Adoption::new(Arc::clone(&now), Arc::default(), Some(&before)), Vec::new());
            let service = worker.services.get(worker.core.plan.services[0]).unwrap();
            for (at, id) in service.servers.iter().enumerate() {
                let server = worker.servers.get(*id).unwrap();
                assert_eq!([*id == ids[at], server.is_down()], [kept[at]; 2], "{servers} {more}");
                assert_eq!(server.config, now.services[0].servers[at]);
                assert_eq!(server.weight(), server.config.weight);
            }
        }
        let twice = "'http://127.0.0.1:1', { url = 'http://127.0.0.1:1', weight = 2 }";
        let turned = "{ url = 'http://127.0.0.1:1', weight = 2 }, 'http://127.0.0.1:1'";
        let (before, now) = (of(twice, ""), of(turned, ""));
        let mut worker = worker(&before);
        let ids = worker.services.get(worker.core.plan.services[0]).unwrap().servers.clone();
        worker.adopt(&Adoption::new(now, Arc::default(), Some(&before)), Vec::new());
        let service = worker.services.get(worker.core.plan.services[0]).unwrap();
        assert_eq!(service.servers, [ids[1], ids[0]]);
    }

    /// The number of responses that a worker has counted, by service and by named route.
    fn counted(worker: &mut Worker<Reactor>) -> [Vec<(String, u64)>; 2] {
        let (reply, report) = channel();
        worker.control(Control::Tell(reply));
        let report = report.recv().unwrap();
        [report.service_latencies, report.route_latencies]
            .map(|all| all.into_iter().map(|(name, latency)| (name, latency.count())).collect())
    }

    fn named(counts: &[(&str, u64)]) -> Vec<(String, u64)> {
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn response_times_are_kept_by_name() {
        // Each route has the name of its service.
        let of = |names: &[&str]| {
            let part = |name: &&str| {
                format!(
                    "[service.{name}]\nservers = 'http://127.0.0.1:1'\n[[route]]\nname = '{name}'\npath = '/{name}'\nservice = '{name}'\n"
                )
            };
            let parts: String = names.iter().map(part).collect();
            let text = format!("[listener.web]\nbind = '127.0.0.1:0'\n{parts}");
            Arc::new(compile(&toml::from_str(&text).unwrap(), &mut Findings::default()).unwrap())
        };
        let (before, now) = (of(&["a", "b", "c"]), of(&["d", "c", "b"]));
        let mut worker = worker(&before);
        // One response for the first service and its route, two for the second, and so on.
        let count = |worker: &mut Worker<Reactor>, plan: &Plan| {
            for (index, times) in (1..=plan.services.len()).enumerate() {
                for _ in 0..times {
                    let measured = worker.core.counters.response(200, Duration::from_millis(1));
                    worker.core.service_latencies.record(plan.services[index], measured, &worker.services);
                    plan.count_on_route(index, measured);
                }
            }
        };
        let first = Rc::clone(&worker.core.plan);
        assert_eq!(counted(&mut worker), [vec![], vec![]]);
        count(&mut worker, &first);
        let all = named(&[("a", 1), ("b", 2), ("c", 3)]);
        assert_eq!(counted(&mut worker), [all.clone(), all]);
        worker.adopt(&Adoption::new(Arc::clone(&now), Arc::default(), Some(&before)), Vec::new());
        let kept = named(&[("b", 2), ("c", 3)]);
        assert_eq!(counted(&mut worker), [kept.clone(), kept]);
        // Responses to exchanges from before the reload still count towards services and routes whose names remain, but
        // not towards removed or new ones.
        count(&mut worker, &first);
        let kept = named(&[("b", 4), ("c", 6)]);
        assert_eq!(counted(&mut worker), [kept.clone(), kept]);
        let second = Rc::clone(&worker.core.plan);
        count(&mut worker, &second);
        // Routes are in the order of the file, services in the order of their names.
        assert_eq!(
            counted(&mut worker),
            [named(&[("b", 5), ("c", 8), ("d", 3)]), named(&[("b", 7), ("c", 8), ("d", 1)])]
        );
        let again = of(&["a"]);
        worker.adopt(&Adoption::new(again, Arc::default(), None), Vec::new());
        assert_eq!(counted(&mut worker), [vec![], vec![]]);
    }

    /// The same snapshot, except that its service at `at` uses servers with these last ports.
    fn with_servers(before: &Snapshot, at: usize, ports: &[u16]) -> Arc<Snapshot> {
        let servers: Vec<_> = ports.iter().map(|port| format!("'http://127.0.0.1:{port}'")).collect();
        let text = format!(
            "[listener.web]\nbind = '127.0.0.1:0'\n[service.x]\nservers = [{}]\n[[route]]\nrespond.status = 200\n",
            if servers.is_empty() { "'http://127.0.0.1:1'".to_owned() } else { servers.join(", ") }
        );
        let config: Config = toml::from_str(&text).unwrap();
        let other = compile(&config, &mut Findings::default()).unwrap();
        let mut next = before.clone();
        let service = Arc::make_mut(&mut next.services[at]);
        service.servers = other.services[0].servers[..servers.len()].to_vec();
        Arc::new(next)
    }

    #[test]
    fn servers_that_stay_in_a_list_keep_their_ids_in_any_order() {
        let mut now = snapshot(&[("a".to_owned(), 2), ("b".to_owned(), 2), ("c".to_owned(), 2)]);
        let mut worker = worker(&now);
        let others: Vec<_> = worker.core.plan.services.clone();
        let mut known: BTreeMap<u16, ServerId> = BTreeMap::new();
        for ports in [&[1, 2][..], &[2, 3, 1], &[3], &[], &[3, 1], &[1, 3]] {
            let next = with_servers(&now, 1, ports);
            worker.adopt(&Adoption::new(Arc::clone(&next), Arc::default(), Some(&now)), Vec::new());
            now = next;
            assert_eq!(worker.core.plan.services, others, "{ports:?}");
            let servers = worker.services.get(others[1]).unwrap().servers.clone();
            let ids: BTreeMap<_, _> = ports.iter().copied().zip(servers).collect();
            for (port, id) in &ids {
                assert_eq!(known.get(port).unwrap_or(id), id, "{ports:?}");
            }
            assert_eq!((ids.len(), worker.servers.len()), (ports.len(), 4 + ports.len()));
            known = ids;
        }
    }
}
