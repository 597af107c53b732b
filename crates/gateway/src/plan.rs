//! The configuration as one worker uses it.

use crate::config::{Policy, Route, Snapshot};
use crate::keys::ServiceId;
use crate::route::Edits;
use std::net::SocketAddr;
use std::sync::Arc;
use weir_http1::RequestHead;

/// A snapshot, with this worker's ids of its services.
#[derive(Debug)]
pub(crate) struct Plan {
    pub snapshot: Arc<Snapshot>,
    /// In the order of [`Snapshot::services`].
    pub services: Vec<ServiceId>,
}

impl Plan {
    /// What a connection is held to until its request has a route.
    #[inline]
    pub(crate) fn policy(&self) -> &Policy {
        &self.snapshot.policy
    }

    /// What an exchange on this route is held to.
    #[inline]
    pub(crate) fn policy_of(&self, route: usize) -> &Policy {
        self.snapshot.routes.get(route).map_or(&self.snapshot.policy, |route| &route.policy)
    }

    /// What an exchange on this route changes about its answer.
    #[inline]
    pub(crate) fn response_edits(&self, route: usize) -> Option<&Edits> {
        self.snapshot.routes.get(route).map(|route| &route.response).filter(|edits| !edits.is_empty())
    }

    /// The route of a request, whose head was parsed from `buf`, and its place among all.
    pub(crate) fn route(
        &self,
        head: &RequestHead,
        buf: &[u8],
        client: Option<&SocketAddr>,
        listener: &str,
    ) -> Option<(usize, &Route)> {
        let routes = &self.snapshot.routes;
        if let Some(only) = self.snapshot.hosts.catch_all() {
            return Some((only, routes.get(only)?));
        }
        let client = client.map(SocketAddr::ip);
        let fits = |route: usize| routes[route].conditions.fit(head, buf, client, listener);
        let host = head.host.map_or(&b""[..], |host| host.of(buf));
        let found = self.snapshot.hosts.find(host, head.path.of(buf), &fits)?;
        Some((found, &routes[found]))
    }
}
