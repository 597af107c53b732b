//! The configuration with one worker's IDs and counters.

use crate::config::document::AmbiguousPaths;
use crate::config::{Policy, Redirect, Route, Snapshot};
use crate::keys::ServiceId;
use crate::limits::SharedLimits;
use crate::observe::Measured;
use crate::route::{Edits, Routes, is_ambiguous, is_unusual};
use crate::worker_latencies::RouteLatencies;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use weir_http1::RequestHead;

/// The routes that a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Among {
    All,
    /// The routes for ACME challenges, which take precedence over a listener's redirect.
    Challenges,
}

/// A snapshot, with this worker's IDs of its services.
#[derive(Debug)]
pub(crate) struct Plan {
    pub snapshot: Arc<Snapshot>,
    /// The state of the snapshot's limits, shared by all workers.
    pub limits: Arc<SharedLimits>,
    /// The IDs of the services, in the order of [`Snapshot::services`].
    pub services: Vec<ServiceId>,
    /// The response times of the named routes, in the order of [`Snapshot::route_names`].
    pub route_latencies: RouteLatencies,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unrouted {
    NoRoute,
    /// Servers may read the request's path as that of another route.
    Ambiguous,
}

impl Plan {
    /// The policy for a connection until its request has a route.
    #[inline]
    pub(crate) fn policy(&self) -> &Policy {
        &self.snapshot.policy
    }

    /// The policy for an exchange on this route.
    #[inline]
    pub(crate) fn policy_of(&self, route: usize) -> &Policy {
        self.snapshot.routes.get(route).map_or(&self.snapshot.policy, |route| &route.policy)
    }

    /// The response edits of this route, if it has any.
    #[inline]
    pub(crate) fn response_edits(&self, route: usize) -> Option<&Edits> {
        self.snapshot.routes.get(route).map(|route| &route.response).filter(|edits| !edits.is_empty())
    }

    /// Counts a response on this route, if it has a name.
    #[inline]
    pub(crate) fn count_on_route(&self, route: usize, measured: Measured) {
        if !self.route_latencies.is_empty() {
            let name = self.snapshot.routes.get(route).and_then(|route| route.name);
            self.route_latencies.record(name, measured);
        }
    }

    /// The redirect of all requests on a listener, if it has one. The caller exempts ACME challenges.
    #[inline]
    pub(crate) fn redirect(&self, listener: &str) -> Option<&Redirect> {
        let redirects = &self.snapshot.redirects;
        redirects.iter().find(|(name, _)| **name == *listener).map(|(_, redirect)| redirect)
    }

    /// The route of a request whose head was parsed from `buf`, with its index. `among` limits the routes to consider.
    pub(crate) fn route(
        &self,
        head: &RequestHead,
        buf: &[u8],
        client: Option<&SocketAddr>,
        listener: &str,
        among: Among,
    ) -> Result<(usize, &Route), Unrouted> {
        let Snapshot { routes, hosts, .. } = &*self.snapshot;
        if let (Some(only), Among::All) = (hosts.catch_all(), among) {
            return routes.get(only).map(|route| (only, route)).ok_or(Unrouted::NoRoute);
        }
        let client = client.map(SocketAddr::ip);
        let fits = |route: usize| {
            let route = &routes[route];
            (among == Among::All || route.is_for_challenges)
                && route.conditions.are_met(head, buf, client, listener)
        };
        let host = head.host.map_or(&b""[..], |host| host.of(buf));
        let target = head.path.of(buf);
        let path = hosts.path_in(target);
        let find = |path: &[u8]| hosts.find(host, path, &fits);
        let found = find(&path).ok_or(Unrouted::NoRoute)?;
        let route = &routes[found];
        if let Cow::Owned(_) = path
            && route.action.is_forwarded()
        {
            let is_refused = match route.ambiguous_paths {
                AmbiguousPaths::Pass => false,
                AmbiguousPaths::Strict if is_unusual(target) => true,
                AmbiguousPaths::Strict | AmbiguousPaths::Refuse => {
                    is_ambiguous(target, found, route.path.as_ref(), &ByPath { routes, find })
                }
            };
            if is_refused {
                return Err(Unrouted::Ambiguous);
            }
        }
        Ok((found, route))
    }
}

struct ByPath<'a, F> {
    routes: &'a [Route],
    find: F,
}

impl<F: Fn(&[u8]) -> Option<usize>> Routes for ByPath<'_, F> {
    fn of(&self, path: &[u8]) -> Option<usize> {
        (self.find)(path)
    }

    fn is_answered(&self, route: usize) -> bool {
        self.routes.get(route).is_none_or(|route| !route.action.is_forwarded())
    }
}
