//! One request and its response: their state, and the decisions about them. Uses no sockets and no clock.

mod body;
mod expect_continue;
mod halves;
mod held;
mod interim_limit;
mod line;
mod response_head;
mod retry_rules;
mod step;
mod timing;

pub(crate) use crate::observe::Times;
pub(crate) use body::{Body, Passed, Trailers};
pub(crate) use expect_continue::AwaitsContinue;
pub(crate) use halves::{RequestHalf, ResponseHalf};
pub(crate) use held::{HeldBody, HeldHead, SentBody};
pub(crate) use interim_limit::Interims;
pub(crate) use line::RequestLine;
pub(crate) use response_head::{Head, HeadStep};
pub(crate) use step::{Event, Step};
pub(crate) use timing::ExchangeTimer;

use crate::config::Policy;
use crate::deadlines::BodyDeadlines;
use crate::grpc::Call;
use crate::heads::ids::RequestIds;
use crate::heads::websocket::Accept;
use crate::keys::{ClientId, ServerId, ServiceId, UpstreamId};
use crate::mirror::Copied;
use crate::observe::access::Entry;
use crate::plan::Plan;
use std::borrow::Cow;
use std::rc::Rc;
use weir_http::Method;
use weir_http1::{Framing, Limits, Version};
use weir_http2::StreamNo;

/// An exchange, from the request's complete head to the response's last byte.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub client: ClientId,
    pub stream: Option<StreamNo>,
    pub stage: Stage,
    /// The latest attempt; `None` while the request has no connection.
    pub attempt: Option<Attempt>,
    pub method: Method,
    pub version: Version,
    /// Whether the client's connection may persist after this exchange, by the request and the part of the exchange so
    /// far.
    pub persistent: bool,
    /// Whether a field of the request or response authenticates the upstream connection (NTLM, Negotiate), which must
    /// then serve no other client.
    pub authenticates_connection: bool,
    pub asks_upgrade: bool,
    /// The `Sec-WebSocket-Accept` for an HTTP/1.1 client whose WebSocket goes to an HTTP/2 server.
    pub accept: Option<Box<Accept>>,
    pub accepts_trailers: bool,
    pub awaits_continue: AwaitsContinue,
    /// Whether the gateway buffered the request's body.
    pub was_held: bool,
    pub request: RequestHalf,
    pub response: ResponseHalf,
    pub interims: Interims,
    /// The request's head, while the gateway may have to send it, for the first time or again.
    pub head: Option<Box<HeldHead>>,
    /// The part of the body that was sent to a server, while the request may be sent again.
    pub sent_body: Option<Box<SentBody>>,
    /// Whether the request may be processed twice, so that the gateway may send it again even after a server received
    /// bytes of it.
    pub is_repeatable: bool,
    pub times: Times,
    /// The timer; `None` before the first deadline.
    pub timer: Option<Box<ExchangeTimer>>,
    /// The limits on bodies in transit, in either direction.
    pub body_deadlines: Option<Box<BodyDeadlines>>,
    /// Whether bytes have moved since the deadline of the exchange's wait was last updated.
    pub moved: bool,
    /// As `moved`, for the wait for a server's stream.
    pub server_moved: bool,
    /// Method and target for the log.
    pub line: RequestLine,
    /// The configuration at the exchange's start, and the index of the request's route in it.
    pub plan: Rc<Plan>,
    pub route: usize,
    pub service: ServiceId,
    /// The parser's limits for the response.
    pub limits: Limits,
    /// The hash of the request property by which load balancing selects the server.
    pub key: u64,
    /// The number of other servers to try if the first one cannot be reached or responds with an error.
    pub others: u8,
    /// The servers whose error responses led to further attempts, the most recent first.
    pub asked: [Option<ServerId>; 2],
    /// Whether the response must set the sticky cookie: the request has none that leads to this server.
    pub sets_cookie: bool,
    /// The response's status; 0 before its head.
    pub status: u16,
    /// Received bytes of the request's body.
    pub received: u64,
    pub retries: u8,
    /// The IDs that the gateway assigned to the request, if it assigns any.
    pub ids: Option<Box<RequestIds>>,
    pub grpc: Option<Box<Call>>,
    /// Whether the client's or the server's stream is a tunnel, so that its bytes are not HTTP.
    pub is_tunnel: bool,
    /// A copy for another service, while the request is incomplete.
    pub copy: Option<Box<Copied>>,
    /// The request's part of its access log line, if there is a log.
    pub entry: Option<Box<Entry>>,
}

/// The stage of a request on its way to a server's connection.
#[derive(Debug)]
pub(crate) enum Stage {
    Holding(Box<HeldBody>),
    /// The request waits for a connection, or for the SETTINGS of an HTTP/2 server.
    Queued,
    /// The request has a connection.
    Forwarding,
}

/// One attempt of a request, on one upstream connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub upstream: UpstreamId,
    /// The stream on this connection, if the server speaks HTTP/2.
    pub stream: Option<StreamNo>,
    /// Whether the connection has served other requests, so that its server may close it at any moment.
    pub reused: bool,
}

/// The client's side of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leg {
    pub client: ClientId,
    /// `None`: the whole connection, in HTTP/1.1.
    pub stream: Option<StreamNo>,
}

impl Leg {
    /// The framing in which a request's body reaches its decoder. `declared` is the framing for HTTP/1.1 servers: on a
    /// stream, a chunked body arrives without chunks, until the stream ends.
    pub(crate) fn framing(self, declared: Framing) -> Framing {
        match (self.stream, declared) {
            (Some(_), Framing::Chunked) => Framing::UntilClose,
            _ => declared,
        }
    }
}

impl Exchange {
    #[inline]
    pub(crate) fn leg(&self) -> Leg {
        Leg { client: self.client, stream: self.stream }
    }

    /// The server's connection, once the exchange has one.
    #[inline]
    pub(crate) fn upstream(&self) -> Option<UpstreamId> {
        self.attempt.map(|attempt| attempt.upstream)
    }

    /// The stream on the server's connection, if the server speaks HTTP/2.
    #[inline]
    pub(crate) fn upstream_stream(&self) -> Option<StreamNo> {
        self.attempt.and_then(|attempt| attempt.stream)
    }

    /// The request's host, from the stored head or the log entry; empty if neither exists.
    pub(crate) fn host(&self) -> Cow<'_, str> {
        match &self.head {
            Some(head) => head.host(),
            None => self.entry.as_deref().map_or("", Entry::host).into(),
        }
    }

    #[inline]
    pub(crate) fn policy(&self) -> &Policy {
        self.plan.policy_of(self.route)
    }

    /// The server has switched protocols, and at least one side is an HTTP/2 stream: forwards all further bytes, in
    /// both directions.
    pub(crate) fn become_tunnel(&mut self) {
        let bytes = || Body::new(Framing::UntilClose, false, &self.limits);
        let response = ResponseHalf::Forwarding { body: bytes(), upstream_persists: false };
        (self.request, self.response) = (RequestHalf::Forwarding(bytes()), response);
        self.is_tunnel = true;
        self.status = if self.stream.is_some() { 200 } else { 101 };
        self.persistent = false;
    }

    /// Whether the client's connection persists if this exchange ends early: the gateway has read the whole request,
    /// which neither asks to switch protocols nor authenticates the connection.
    pub(crate) fn outlives_its_end(&self) -> bool {
        self.persistent && self.request.is_done() && !self.asks_upgrade && !self.authenticates_connection
    }

    /// Whether each connection is in sync at the end, and can carry another request.
    pub(crate) fn outcome(&self) -> Outcome {
        let ResponseHalf::Forwarding { upstream_persists, .. } = self.response else {
            return Outcome { client_persists: false, upstream_persists: false };
        };
        Outcome {
            client_persists: self.persistent && self.request.is_done(),
            upstream_persists: upstream_persists && self.request.is_passed_on(),
        }
    }
}

/// Whether the connections of a complete exchange persist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub client_persists: bool,
    pub upstream_persists: bool,
}
