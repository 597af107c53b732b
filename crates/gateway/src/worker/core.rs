//! The part of a worker that all its code uses: net, buffers, plan, logs and counters.

use super::slowed::Slowed;
use crate::config::{Action, Route};
use crate::drain::Drain;
use crate::exchange::{Exchange, HeldHead};
use crate::heads::date::Date;
use crate::heads::ids::Ids;
use crate::keys::{ClientId, OfService, Store, UpstreamId};
use crate::observe::access::Access;
use crate::observe::{Context, Counters, Log};
use crate::plan::Plan;
use crate::reason::Reason;
use crate::upstream::Service;
use crate::worker_latencies::ServiceLatencies;
use std::rc::Rc;
use std::time::Duration;
use weir_http1::{Limits, Part, RequestHead, ResponseHead};
use weir_reactor::{Net, Socket};
use weir_transport::{Fault, Received, Transport, Wire};

/// The part of a worker's state that code for single connections borrows as a whole.
#[derive(Debug)]
pub(crate) struct Core<N> {
    pub net: N,
    pub plan: Rc<Plan>,
    pub wire: Wire,
    /// The input buffer. A read takes it out of the worker, so that handlers of the input can borrow the worker.
    inbox: Vec<u8>,
    /// The request head and the response head that were parsed last. The next parse reuses their storage.
    pub request: RequestHead,
    pub response: ResponseHead,
    /// The HTTP/2 head that was decoded last, of any stream.
    pub streamed: weir_http2::Head,
    /// A buffer for field lines, empty between uses.
    pub lines: Vec<u8>,
    /// Unused heads. Storing the next request head reuses their memory.
    #[expect(clippy::vec_box, reason = "exchanges hold them boxed")]
    spare_heads: Vec<Box<HeldHead>>,
    pub date: Date,
    pub ids: Ids,
    pub log: Log,
    pub access: Option<Access>,
    pub counters: Counters,
    pub service_latencies: ServiceLatencies,
    pub drain: Drain,
    pub touched: Touched,
    /// Clients whose held input, such as pipelined requests, the worker processes in this turn.
    pub resumable: Vec<ClientId>,
    /// Clients with frames that the worker processes in its next turn.
    pub postponed: Vec<ClientId>,
    /// HTTP/2 clients that the worker serves only once per millisecond.
    pub slowed: Slowed,
    /// Turns so far, from 1.
    pub turn: u64,
    /// Whether the poller has reported every descriptor that was ready in this turn.
    pub knows_all: bool,
    /// Whether memory is short: the connections of all workers have reached `limits.memory`.
    pub is_short: bool,
    /// The number of requests so far whose routes have a mirror. The hash of this number decides whether the request is
    /// mirrored.
    pub drawn: u64,
    /// The point of the last request that a split route assigned to one of its services.
    pub split_point: u32,
    /// Bytes of incomplete heads; each parse of a head counts all its bytes again.
    pub in_vain: u64,
}

/// Connections with output, or whose poller interest or deadline may have changed, in this turn.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    pub clients: Vec<ClientId>,
    pub upstreams: Vec<UpstreamId>,
}

impl<N: Net> Core<N> {
    pub(crate) fn new(net: N, plan: Plan, log: Log, access: Option<Access>) -> Self {
        Self {
            net,
            wire: Wire::with_read_size(plan.snapshot.read_size),
            plan: Rc::new(plan),
            inbox: Vec::new(),
            request: RequestHead::new(),
            response: ResponseHead::new(),
            streamed: weir_http2::Head::default(),
            lines: Vec::new(),
            spare_heads: Vec::new(),
            date: Date::new(),
            ids: Ids::new(),
            log,
            access,
            counters: Counters::default(),
            service_latencies: ServiceLatencies::default(),
            drain: Drain::No,
            touched: Touched::default(),
            resumable: Vec::new(),
            postponed: Vec::new(),
            slowed: Slowed::default(),
            turn: 1,
            knows_all: false,
            is_short: false,
            drawn: 0,
            split_point: 0,
            in_vain: 0,
        }
    }

    /// Takes the input buffer: [`HEADROOM`] bytes, followed by the bytes that an earlier read left in `held`.
    pub(crate) fn take_inbox(&mut self, held: &mut Vec<u8>) -> Vec<u8> {
        let mut inbox = std::mem::take(&mut self.inbox);
        inbox.resize(HEADROOM, 0);
        if !held.is_empty() {
            inbox.append(&mut std::mem::take(held));
        }
        inbox
    }

    /// Receives more of a head whose first part is in `held`. If the head is worth parsing now, or the stream has
    /// ended, the returned input buffer contains all of the head after the headroom. Otherwise `held` contains the head
    /// so far, and the buffer only the headroom. A head that arrives byte by byte is thus neither copied nor parsed
    /// again for each byte.
    #[cold]
    pub(crate) fn receive_more<S: Socket>(
        &mut self,
        transport: &mut Transport<S>,
        held: &mut Vec<u8>,
        part: Part,
        limits: &Limits,
    ) -> (Vec<u8>, Result<Received, Fault>) {
        let mut inbox = self.take_inbox(&mut Vec::new());
        let received = transport.receive(&mut self.wire, &mut inbox);
        let more = &inbox[HEADROOM..];
        let has_ended = received.as_ref().is_ok_and(|received| received.end.is_some());
        if has_ended || part.is_worth_parsing(held.len(), more, limits) {
            inbox.splice(HEADROOM..HEADROOM, std::mem::take(held));
        } else {
            if held.capacity() - held.len() < more.len() {
                // Grow by an eighth instead of doubling: many connections may hold partial heads.
                held.reserve_exact(more.len().max(held.len() / 8));
            }
            held.extend_from_slice(more);
            inbox.truncate(HEADROOM);
        }
        (inbox, received)
    }

    /// Stores the request head that was parsed last, from `buf`.
    pub(crate) fn hold_head(&mut self, buf: &[u8]) -> Box<HeldHead> {
        let mut head = self.spare_heads.pop().unwrap_or_default();
        head.take(&mut self.request, buf);
        head
    }

    /// Returns a head's storage for reuse.
    pub(crate) fn give_back_head(&mut self, head: Box<HeldHead>) {
        if self.spare_heads.len() < SPARE_HEADS && head.bytes.capacity() <= SPARE_HEAD {
            self.spare_heads.push(head);
        }
    }

    /// Drops the request that an exchange keeps for further attempts.
    #[inline]
    pub(crate) fn forget_request(&mut self, exchange: &mut Exchange) {
        if let Some(head) = exchange.head.take() {
            self.give_back_head(head);
        }
        exchange.sent_body = None;
    }

    /// Counts the bytes of an incomplete head; returns its state for the next read.
    pub(crate) fn note_part(&mut self, head: &[u8]) -> Part {
        self.in_vain += head.len() as u64;
        Part::of(head)
    }

    pub(crate) fn put_inbox(&mut self, inbox: Vec<u8>) {
        self.inbox = inbox;
    }

    /// Counts the response of an exchange, also by its service and its route.
    #[inline]
    pub(crate) fn count_response(
        &mut self,
        exchange: &Exchange,
        status: u16,
        services: &Store<OfService, Service>,
    ) {
        let took = self.net.now().saturating_duration_since(exchange.times.head);
        let measured = self.counters.response(status, took);
        self.service_latencies.record(exchange.service, measured, services);
        exchange.plan.count_on_route(exchange.route, measured);
    }

    /// Counts the gateway's own response to a request without an exchange, also by its route in `plan` and that route's
    /// service.
    pub(crate) fn count_own_response(
        &mut self,
        status: u16,
        route: Option<(&Route, &Plan)>,
        services: &Store<OfService, Service>,
    ) {
        let measured = self.counters.response(status, Duration::ZERO);
        let Some((route, plan)) = route else { return };
        if let Action::Pass { service } = route.action
            && let Some(service) = plan.services.get(service)
        {
            self.service_latencies.record(*service, measured, services);
        }
        plan.route_latencies.record(route.name, measured);
    }

    pub(crate) fn note_end(&mut self, reason: &Reason, context: Context<'_>) {
        self.counters.end(reason);
        self.log.ended(self.net.now(), reason, context);
    }
}

/// Spare heads beyond this number, or larger than [`SPARE_HEAD`], are freed.
const SPARE_HEADS: usize = 64;
const SPARE_HEAD: usize = 4 * 1024;

/// Space before the input for a rewritten head that is longer than the received one. With this space, the gateway sends
/// head and first body bytes in one write, without moving the body.
pub(crate) const HEADROOM: usize = 256;
