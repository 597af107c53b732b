//! Upstream connections and their pool.

use crate::deadline::Deadline;
use weir_reactor::Key;
use weir_transport::Transport;

/// One upstream connection.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub transport: Transport,
    /// The client of its exchange; `None` in the pool.
    pub client: Option<Key>,
    /// A partial response head.
    pub held: Vec<u8>,
    /// The last read may have left bytes behind.
    pub may_have_more: bool,
    pub deadline: Deadline,
}

/// The idle upstream connections of a core, LIFO, so that surplus ones age
/// and are closed.
#[derive(Debug, Default)]
pub(crate) struct Pool(Vec<Key>);

impl Pool {
    pub(crate) fn take(&mut self) -> Option<Key> {
        self.0.pop()
    }

    pub(crate) fn put(&mut self, key: Key) {
        self.0.push(key);
    }

    /// Removes a connection closed while idle. Usually the oldest, so the search starts there.
    pub(crate) fn forget(&mut self, key: Key) {
        if let Some(at) = self.0.iter().position(|idle| *idle == key) {
            self.0.remove(at);
        }
    }
}
