//! The idle connections to one server: last in, first out, so that surplus connections reach their idle timeout.
//! Connections that were idle before this turn take precedence: the poller would have reported a close or stray bytes
//! on them. `reuse_limits.rs` limits their age, requests and idle time, and `server.rs` their number.

use super::Upstream;
use crate::keys::{OfUpstream, Store, UpstreamId};
use weir_reactor::Socket;

/// An intrusive list of connections, so that each can be removed in constant time.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    newest: Option<UpstreamId>,
    oldest: Option<UpstreamId>,
    /// The newest connection that was idle before turn `turn`.
    settled: Option<UpstreamId>,
    turn: u64,
    len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pooled {
    pub id: UpstreamId,
    /// Whether the connection was idle at the last poll, and holds no part of a TLS record.
    pub is_settled: bool,
}

/// An idle connection's neighbours in the list.
#[derive(Debug, Default)]
pub(crate) struct Links {
    newer: Option<UpstreamId>,
    older: Option<UpstreamId>,
}

impl Pool {
    /// Takes the most recently used connection of those idle before this turn, else the most recently used of all.
    pub(crate) fn take<S: Socket>(
        &mut self,
        turn: u64,
        upstreams: &mut Store<OfUpstream, Upstream<S>>,
    ) -> Option<Pooled> {
        self.turn_to(turn);
        let id = self.settled.or(self.newest)?;
        let was_idle = self.settled.is_some();
        let has_partial_record = self.unlink(id, upstreams)?;
        Some(Pooled { id, is_settled: was_idle && !has_partial_record })
    }

    /// Adds `upstream`, which must not be in the pool, under its ID. Returns its older neighbour for [`join`].
    #[must_use]
    pub(crate) fn put<S>(
        &mut self,
        id: UpstreamId,
        upstream: &mut Upstream<S>,
        turn: u64,
    ) -> Option<UpstreamId> {
        self.turn_to(turn);
        let older = self.newest.replace(id);
        if older.is_none() {
            self.oldest = Some(id);
        }
        self.len += 1;
        upstream.links = Links { newer: None, older };
        older
    }

    /// On the first call in a turn, marks all pooled connections as idle since before it.
    fn turn_to(&mut self, turn: u64) {
        if self.turn != turn {
            self.turn = turn;
            self.settled = self.newest;
        }
    }

    /// Removes this connection, which must be in the pool.
    pub(crate) fn forget<S: Socket>(
        &mut self,
        id: UpstreamId,
        upstreams: &mut Store<OfUpstream, Upstream<S>>,
    ) {
        self.unlink(id, upstreams);
    }

    /// As [`Self::forget`]; returns whether the connection holds part of a record.
    fn unlink<S: Socket>(
        &mut self,
        id: UpstreamId,
        upstreams: &mut Store<OfUpstream, Upstream<S>>,
    ) -> Option<bool> {
        let upstream = upstreams.get_mut(id)?;
        let has_partial_record = upstream.transport.has_partial_record();
        let Links { newer, older } = std::mem::take(&mut upstream.links);
        self.len -= 1;
        if self.settled == Some(id) {
            self.settled = older;
        }
        match newer.and_then(|newer| upstreams.get_mut(newer)) {
            Some(newer) => newer.links.older = older,
            None => self.newest = older,
        }
        if let Some(older) = older.and_then(|older| upstreams.get_mut(older)) {
            older.links.newer = newer;
        }
        if self.oldest == Some(id) {
            self.oldest = newer;
        }
        Some(has_partial_record)
    }

    pub(crate) fn oldest(&self) -> Option<UpstreamId> {
        self.oldest
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// Links a connection that [`Pool::put`] added to its `older` neighbour, if there is one.
pub(crate) fn join<S>(
    older: Option<UpstreamId>,
    newer: UpstreamId,
    upstreams: &mut Store<OfUpstream, Upstream<S>>,
) {
    if let Some(older) = older.and_then(|older| upstreams.get_mut(older)) {
        older.links.newer = Some(newer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{OfServer, ServerId};
    use crate::upstream::Life;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;
    use weir_transport::Transport;

    struct Idle {
        pool: Pool,
        upstreams: Store<OfUpstream, Upstream<OwnedFd>>,
        server: ServerId,
    }

    impl Idle {
        fn new() -> Self {
            let server = Store::<OfServer, ()>::new().insert(());
            Self { pool: Pool::default(), upstreams: Store::new(), server }
        }

        fn put(&mut self, turn: u64) -> UpstreamId {
            let transport = Transport::accepted(OwnedFd::from(UnixStream::pair().unwrap().0), None);
            let id =
                self.upstreams.insert(Upstream::new(transport, self.server, Life::begins(0, Instant::now())));
            let older = self.upstreams.get_mut(id).and_then(|upstream| self.pool.put(id, upstream, turn));
            join(older, id, &mut self.upstreams);
            id
        }

        fn take(&mut self, turn: u64) -> Option<(UpstreamId, bool)> {
            let Pooled { id, is_settled } = self.pool.take(turn, &mut self.upstreams)?;
            Some((id, is_settled))
        }
    }

    #[test]
    fn what_was_idle_before_the_turn_comes_first_and_the_newest_of_it() {
        let mut idle = Idle::new();
        let [a, b] = [idle.put(1), idle.put(1)];
        let [c, d] = [idle.put(2), idle.put(2)];
        assert_eq!(idle.pool.len(), 4);
        let taken: Vec<_> = std::iter::from_fn(|| idle.take(2)).collect();
        assert_eq!(taken, [(b, true), (a, true), (d, false), (c, false)]);
        assert_eq!((idle.pool.len(), idle.take(3)), (0, None));
    }

    #[test]
    fn any_of_them_may_leave() {
        let mut idle = Idle::new();
        let [a, b, c] = [idle.put(1), idle.put(1), idle.put(1)];
        let d = idle.put(2);
        // The newest connection from before turn 2.
        idle.pool.forget(c, &mut idle.upstreams);
        assert_eq!(idle.pool.oldest(), Some(a));
        assert_eq!(idle.take(2), Some((b, true)));
        idle.pool.forget(a, &mut idle.upstreams);
        assert_eq!(idle.pool.oldest(), Some(d));
        assert_eq!(idle.take(2), Some((d, false)));
        let e = idle.put(2);
        assert_eq!(idle.pool.oldest(), Some(e));
        assert_eq!(idle.take(3), Some((e, true)));
        assert_eq!((idle.pool.len(), idle.pool.oldest()), (0, None));
    }
}
