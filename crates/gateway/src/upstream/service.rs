//! One worker's view of a service.

use super::Budget;
use super::Server;
use crate::config;
use crate::keys::{ExchangeId, OfServer, ServerId, Store};
use crate::limits::Slots;
use std::collections::VecDeque;
use std::sync::Arc;

/// A named group of servers, with this worker's state.
#[derive(Debug)]
pub(crate) struct Service {
    pub config: config::Service,
    pub servers: Vec<ServerId>,
    pub retries: Budget,
    /// Exchanges that wait for a connection, the oldest first.
    pub waiting: VecDeque<ExchangeId>,
    /// The candidates of one choice, with their shares; a field so that choices share one allocation.
    pub(super) round: Vec<(ServerId, u64)>,
    pub(super) random: u64,
}

impl Service {
    /// A service and its servers, with their connection `slots`. Servers of `before` with the same settings keep their
    /// connections; the caller closes the others.
    pub(crate) fn new(
        config: &config::Service,
        slots: &[Option<Arc<Slots>>],
        before: Option<&mut Self>,
        servers: &mut Store<OfServer, Server>,
    ) -> Self {
        let mut before = before;
        let waiting = before.as_mut().map(|before| std::mem::take(&mut before.waiting)).unwrap_or_default();
        let before =
            before.filter(|before| config.has_tls_of(before.config.tls.as_ref())).map(|before| &*before);
        let first = before.and_then(|before| servers.get(*before.servers.first()?));
        let mut connector = first.and_then(|server| Some(server.tls.as_ref()?.0.clone()));
        let mut chosen = Vec::with_capacity(config.servers.len());
        for (at, server) in config.servers.iter().enumerate() {
            let known = before.into_iter().flat_map(|before| &before.servers).copied();
            let mut known = known.filter(|id| !chosen.contains(id));
            let kept = known.find(|id| servers.get(*id).is_some_and(|known| known.config == *server));
            chosen.push(kept.unwrap_or_else(|| {
                let tls = config.tls.as_ref().zip(server.name.clone());
                let tls =
                    tls.map(|(tls, name)| (connector.get_or_insert_with(|| tls.client.core()).clone(), name));
                servers.insert(Server::new(server.clone(), slots.get(at).cloned().flatten(), tls))
            }));
        }
        let retries = before.filter(|before| before.config.retry_percent == config.retry_percent);
        let retries = retries.map_or_else(|| Budget::new(config.retry_percent), |before| before.retries);
        Self { config: config.clone(), servers: chosen, retries, waiting, round: Vec::new(), random: 0 }
    }
}
