//! Who waits for a connection, or to try one again.

use weir_reactor::Key;

/// Who sends requests in a closed loop.
#[derive(Clone, Copy, Debug)]
pub(super) enum User {
    /// On a connection that stands.
    Kept(Key),
    /// On one that is still to be made.
    New,
}

/// A connection that failed, until it is tried again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resting {
    pub(super) failures: u32,
}
