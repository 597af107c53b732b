//! The borrowed parts of a worker with which `proxy` forwards one exchange.

use crate::downstream::Client;
use crate::exchange::Exchange;
use crate::keys::{OfService, Store, UpstreamId};
use crate::upstream::{Service, Upstream};
use crate::worker::Core;
use weir_reactor::Net;

/// An exchange with both of its connections. Only the worker creates a `Flow`, and only while the exchange and both
/// connections exist.
#[derive(Debug)]
pub(crate) struct Flow<'a, N: Net> {
    pub exchange: &'a mut Exchange,
    pub client: &'a mut Client<N::Socket>,
    pub upstream: &'a mut Upstream<N::Socket>,
    pub upstream_id: UpstreamId,
    pub services: &'a Store<OfService, Service>,
    pub core: &'a mut Core<N>,
}

impl<N: Net> Flow<'_, N> {
    /// Marks the client's connection for an update of output, poller interest and deadline at the turn's end.
    #[inline]
    pub(crate) fn touch_client(&mut self) {
        self.client.touch_leg(self.exchange.leg(), &mut self.core.touched.clients);
    }

    /// As [`Self::touch_client`], for the server's connection.
    #[inline]
    pub(crate) fn touch_upstream(&mut self) {
        let stream = self.exchange.upstream_stream();
        self.upstream.touch_leg(self.upstream_id, stream, &mut self.core.touched.upstreams);
    }
}
