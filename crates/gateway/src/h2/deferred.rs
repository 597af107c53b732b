//! Requests that begin once the frames behind them are processed.
//!
//! A client that resets what it has just requested should not make the gateway forward it (*rapid reset*, CVE-2023-44487).
//! So once streams of a connection have been reset, its requests wait until the rest of its input has been processed.
//! Streams that end regularly make up for resets.

use super::{H2, Stream};
use weir_http2::{Head, StreamNo};

/// A request that waits. Its stream exists.
#[derive(Debug)]
pub(crate) struct DeferredRequest {
    pub no: StreamNo,
    /// It has no body.
    pub ended: bool,
    pub head: Head,
}

impl H2 {
    /// Whether the next request waits.
    #[inline]
    pub(crate) fn defers(&self) -> bool {
        self.connection.resets() > 0 || self.has_deferred()
    }

    /// Whether the client has to wait between its frames: it has reset many more requests than have ended regularly. Browsers that leave a
    /// page reset up to 100.
    #[inline]
    pub(crate) fn is_slowed(&self) -> bool {
        self.connection.resets() > SLOWED_FROM
    }

    /// Whether requests wait.
    #[inline]
    pub(crate) fn has_deferred(&self) -> bool {
        self.deferred() > 0
    }

    /// The number of requests that wait.
    pub(crate) fn deferred(&self) -> usize {
        self.rare.as_ref().map_or(0, |rare| rare.deferred.len())
    }

    /// The request of a new stream waits.
    pub(crate) fn defer(&mut self, request: DeferredRequest) {
        self.add(Stream::new(request.no, request.ended));
        self.rare.get_or_insert_default().deferred.push_back(request);
    }

    /// Takes the request that has waited longest.
    pub(crate) fn take_deferred(&mut self) -> Option<DeferredRequest> {
        self.rare.as_mut()?.deferred.pop_front()
    }

    /// Forgets the request of a stream that has ended; returns whether it waited.
    pub(crate) fn forget_deferred(&mut self, no: StreamNo) -> bool {
        let Some(rare) = &mut self.rare else { return false };
        let before = rare.deferred.len();
        rare.deferred.retain(|request| request.no != no);
        rare.deferred.len() < before
    }
}

/// A sixth of the resets that end a connection.
const SLOWED_FROM: u32 = 64;
