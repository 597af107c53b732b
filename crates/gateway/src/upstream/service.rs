//! One worker's view of a service, and the state that it keeps at a reload.

use super::Budget;
use super::Server;
use crate::config;
use crate::keys::{ExchangeId, OfServer, ServerId, Store};
use crate::limits::Slots;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A named group of servers, with this worker's state.
#[derive(Debug)]
pub(crate) struct Service {
    pub config: Arc<config::Service>,
    pub servers: Vec<ServerId>,
    pub retries: Budget,
    /// Exchanges that wait for a connection, the oldest first.
    pub waiting: VecDeque<ExchangeId>,
    /// The candidates of one choice, with their shares. The field exists so that all choices share one allocation.
    pub(super) round: Vec<(ServerId, u64)>,
    pub(super) random: u64,
}

impl Service {
    /// A service and its servers, with their connection `slots`. Servers of `before` that
    /// [continue](config::Server::continues), with the same TLS settings, keep their connections, health and ejection;
    /// the other servers are returned, for the caller to close their connections. The caller then applies the
    /// overrides, which puts changed weights in force.
    pub(crate) fn new(
        config: &Arc<config::Service>,
        slots: &[Option<Arc<Slots>>],
        before: Option<&mut Self>,
        servers: &mut Store<OfServer, Server>,
    ) -> (Self, Vec<ServerId>) {
        let mut before = before;
        let waiting = before.as_mut().map(|before| std::mem::take(&mut before.waiting)).unwrap_or_default();
        // The previous servers, by their ID in the configuration. Servers with the same ID keep their order.
        let mut rest: BTreeMap<u64, VecDeque<ServerId>> = BTreeMap::new();
        for id in before.iter().flat_map(|before| &before.servers) {
            if let Some(server) = servers.get(*id) {
                rest.entry(server.config.id).or_default().push_back(*id);
            }
        }
        let before =
            before.filter(|before| config.has_tls_of(before.config.tls.as_ref())).map(|before| &*before);
        let first = before.and_then(|before| servers.get(*before.servers.first()?));
        let mut connector = first.and_then(|server| Some(server.tls.as_ref()?.0.clone()));
        let mut chosen = Vec::with_capacity(config.servers.len());
        for (at, server) in config.servers.iter().enumerate() {
            let kept = before.and(rest.get_mut(&server.id)).and_then(|alike| {
                let position = |is_same: fn(&config::Server, &config::Server) -> bool| {
                    alike
                        .iter()
                        .position(|id| servers.get(*id).is_some_and(|old| is_same(server, &old.config)))
                };
                // An address may occur twice: an equal entry is the same server before a similar one is.
                let at = position(PartialEq::eq).or_else(|| position(config::Server::continues))?;
                alike.remove(at)
            });
            if let Some(kept) = kept.and_then(|id| servers.get_mut(id)) {
                kept.config = server.clone();
            }
            chosen.push(kept.unwrap_or_else(|| {
                let tls = config.tls.as_ref().zip(server.name.clone());
                let tls =
                    tls.map(|(tls, name)| (connector.get_or_insert_with(|| tls.client.core()).clone(), name));
                servers.insert(Server::new(server.clone(), slots.get(at).cloned().flatten(), tls))
            }));
        }
        let retries = before.filter(|before| before.config.retry_percent == config.retry_percent);
        let retries = retries.map_or_else(|| Budget::new(config.retry_percent), |before| before.retries);
        let (round, random) = (Vec::new(), 0);
        let service = Self { config: Arc::clone(config), servers: chosen, retries, waiting, round, random };
        (service, rest.into_values().flatten().collect())
    }
}
