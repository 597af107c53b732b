//! State shared between a worker and its connections.

use crate::counters::Counters;
use crate::date::Date;
use crate::settings::HttpVersions;
use std::sync::Arc;
use std::time::Instant;
use weir_http1::{Limits, RequestHead};
use weir_transport::Wire;

/// State shared by all connections of a worker.
pub(crate) struct Context {
    pub(crate) wire: Wire,
    pub(crate) now: Instant,
    pub(crate) draining: bool,
    pub(crate) date: Date,
    pub(crate) counters: Arc<[Counters]>,
    pub(crate) worker: usize,
    /// The null server's only response.
    pub(crate) null: Option<Arc<[u8]>>,
    pub(crate) input: Vec<u8>,
    pub(crate) out: Vec<u8>,
    pub(crate) head: RequestHead,
    pub(crate) limits: Limits,
    pub(crate) http: HttpVersions,
    /// The head of the current HTTP/2 request.
    pub(crate) h2_head: weir_http2::Head,
    /// A number as text.
    pub(crate) digits: Vec<u8>,
}

/// What a connection needs after a visit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    /// Close it.
    pub(crate) end: bool,
    /// It used up its share of this turn and continues in the next.
    pub(crate) again: bool,
    /// Visit it at this time.
    pub(crate) wake: Option<Instant>,
}

impl Context {
    pub(crate) fn new(
        now: Instant,
        counters: Arc<[Counters]>,
        worker: usize,
        null: Option<Arc<[u8]>>,
        http: HttpVersions,
    ) -> Self {
        Self {
            wire: Wire::default(),
            now,
            draining: false,
            date: Date::new(now),
            counters,
            worker,
            null,
            input: Vec::new(),
            out: Vec::new(),
            head: RequestHead::new(),
            limits: Limits::default(),
            http,
            h2_head: weir_http2::Head::new(),
            digits: Vec::new(),
        }
    }

    pub(crate) fn count(&self) -> &Counters {
        &self.counters[self.worker]
    }
}
