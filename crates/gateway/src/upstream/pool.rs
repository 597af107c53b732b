//! The idle connections to one server: last in, first out, so that surplus ones age and are closed.

use super::Upstream;
use crate::keys::{OfUpstream, Store, UpstreamId};

/// The ends of a list that runs through the connections themselves, so that any of them leaves it at once.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    newest: Option<UpstreamId>,
    len: usize,
}

/// An idle connection's neighbours in the list.
#[derive(Debug, Default)]
pub(crate) struct Links {
    newer: Option<UpstreamId>,
    older: Option<UpstreamId>,
}

impl Pool {
    /// Takes out the connection that was used last.
    pub(crate) fn take<S>(&mut self, upstreams: &mut Store<OfUpstream, Upstream<S>>) -> Option<UpstreamId> {
        let id = self.newest?;
        self.forget(id, upstreams);
        Some(id)
    }

    /// Adds a connection, which must not be in it.
    pub(crate) fn put<S>(&mut self, id: UpstreamId, upstreams: &mut Store<OfUpstream, Upstream<S>>) {
        let older = self.newest.replace(id);
        self.len += 1;
        if let Some(upstream) = upstreams.get_mut(id) {
            upstream.links = Links { newer: None, older };
        }
        if let Some(older) = older.and_then(|older| upstreams.get_mut(older)) {
            older.links.newer = Some(id);
        }
    }

    /// Takes out this connection, which must be in it.
    pub(crate) fn forget<S>(&mut self, id: UpstreamId, upstreams: &mut Store<OfUpstream, Upstream<S>>) {
        let Some(upstream) = upstreams.get_mut(id) else { return };
        let Links { newer, older } = std::mem::take(&mut upstream.links);
        self.len -= 1;
        match newer.and_then(|newer| upstreams.get_mut(newer)) {
            Some(newer) => newer.links.older = older,
            None => self.newest = older,
        }
        if let Some(older) = older.and_then(|older| upstreams.get_mut(older)) {
            older.links.newer = newer;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}
