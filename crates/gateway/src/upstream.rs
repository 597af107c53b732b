//! Connections to the upstream, and the pool of those that wait for a request.

use crate::deadline::Deadline;
use weir_reactor::Key;
use weir_transport::Transport;

/// One upstream connection.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub transport: Transport,
    /// Whose exchange it carries; `None` in the pool.
    pub client: Option<Key>,
    /// A part of a response head.
    pub held: Vec<u8>,
    pub deadline: Deadline,
}

/// The idle upstream connections of a core: the last one used is the first to be used again, so that the others grow
/// old and are closed.
#[derive(Debug, Default)]
pub(crate) struct Pool(Vec<Key>);

impl Pool {
    pub(crate) fn take(&mut self) -> Option<Key> {
        self.0.pop()
    }

    pub(crate) fn put(&mut self, key: Key) {
        self.0.push(key);
    }

    /// Forgets a connection that was closed while it was idle. Mostly the oldest: the search begins there.
    pub(crate) fn forget(&mut self, key: Key) {
        if let Some(at) = self.0.iter().position(|idle| *idle == key) {
            self.0.remove(at);
        }
    }
}
