//! Requests that begin only once the frames after them are processed.
//!
//! The gateway should not forward requests that the client resets right away (*rapid reset*, CVE-2023-44487). So after
//! resets on a connection, its requests wait until the remaining input has been processed. Streams that end regularly
//! offset resets.

use super::{H2, Stream};
use weir_http2::{Head, StreamNo};

/// A request that waits. Its stream exists already.
#[derive(Debug)]
pub(crate) struct DeferredRequest {
    pub no: StreamNo,
    /// Whether the request has no body.
    pub ended: bool,
    pub head: Head,
}

impl H2 {
    /// Whether the next request must wait: after resets, and while earlier requests wait.
    #[inline]
    pub(crate) fn defers(&self) -> bool {
        self.connection.resets() > 0 || self.has_deferred()
    }

    /// Whether the client must wait between its frames: it has reset many more requests than have ended regularly. A
    /// browser that leaves a page resets up to 100 requests, so this may delay it, but not end its connection.
    #[inline]
    pub(crate) fn is_slowed(&self) -> bool {
        self.connection.resets() > SLOWED_FROM
    }

    #[inline]
    pub(crate) fn has_deferred(&self) -> bool {
        self.deferred() > 0
    }

    pub(crate) fn deferred(&self) -> usize {
        self.rare.as_ref().map_or(0, |rare| rare.deferred.len())
    }

    /// Defers the request of a new stream.
    pub(crate) fn defer(&mut self, request: DeferredRequest) {
        self.add(Stream::new(request.no, request.ended));
        self.rare.get_or_insert_default().deferred.push_back(request);
    }

    /// Takes the request that has waited longest.
    pub(crate) fn take_deferred(&mut self) -> Option<DeferredRequest> {
        self.rare.as_mut()?.deferred.pop_front()
    }

    /// Drops the deferred request of a stream that has ended; returns whether there was one.
    pub(crate) fn forget_deferred(&mut self, no: StreamNo) -> bool {
        let Some(rare) = &mut self.rare else { return false };
        let before = rare.deferred.len();
        rare.deferred.retain(|request| request.no != no);
        rare.deferred.len() < before
    }
}

/// The number of resets above which a client must wait: about a sixth of the number that ends its connection.
const SLOWED_FROM: u32 = 64;
