//! HTTP/2: a connection has one request in flight per stream.
//!
//! * [`request`]: a request, its head encoded once.
//! * [`pending`]: a request that waits for a stream.
//! * [`stream`]: a request in flight, and the check of its response.
//! * [`call`]: the check of a gRPC call's response.
//! * [`waits`]: what the body of a request waits for.
//! * [`connection`]: a connection with its streams: bytes in and out.
//! * [`balance`]: the least loaded connection.
//! * [`users`]: the worker's side: selects connections for requests, and handles connections that open, respond or end.
//! * [`trial`]: tests whether a server speaks HTTP/2.
//! * [`tally`]: the figures that HTTP/1.1 does not have.
//!
//! A closed loop has one user for each stream of each connection. The server may allow fewer streams: then requests wait
//! for one, and the wait is a part of their response times.

mod balance;
mod call;
mod connection;
mod pending;
mod request;
mod stream;
pub(crate) mod tally;
pub(crate) mod trial;
mod users;
mod waits;

use crate::options::{Options, RequestOptions};
use crate::usage::Usage;
use crate::worker::{Protocol, Turn, Worker};
use balance::Balance;
use connection::Connection;
use pending::Pending;
use request::Request;
use std::collections::VecDeque;
use std::time::Instant;
use stream::Done;
use weir_reactor::{Key, Ready};

/// The users of connections with HTTP/2.
#[derive(Default)]
pub(crate) struct Http2 {
    /// Requests that wait for a stream, the longest waiting first. In an open loop, new ones wait in the schedule.
    waiting: VecDeque<Pending>,
    /// The open connections that take another stream.
    balance: Balance,
    /// Open connections that do not drain.
    open: u32,
    /// Connections with output for the end of the turn.
    dirty: Vec<Key>,
    /// The requests that ended in the current event.
    done: Vec<Done>,
    /// Control frames of one connection.
    control: Vec<u8>,
}

impl Protocol for Http2 {
    type Request = Request;
    type Head = weir_http2::Head;
    type Limits = ();
    type Connection = Connection;
    type User = ();

    fn request(asked: &RequestOptions, options: &Options) -> Result<Request, Usage> {
        Request::new(asked, options)
    }

    fn start_opening(worker: &mut Worker<'_, Self>) {
        for _ in 0..worker.policy.connections {
            worker.dial(0);
        }
    }

    fn is_settled(worker: &Worker<'_, Self>) -> bool {
        let failed = worker.resting.len() as u32;
        // Without a connection, first requests cannot end.
        let is_idle = worker.busy == 0 || worker.http.open == 0;
        is_idle && worker.http.open + failed >= worker.policy.connections
    }

    /// Sends a request on every stream, since a gateway may open an upstream connection for each.
    fn use_each(worker: &mut Worker<'_, Self>) {
        for _ in 0..worker.http.open * worker.policy.streams {
            worker.ask(worker.context.now);
        }
    }

    fn take_users(worker: &mut Worker<'_, Self>) -> Vec<()> {
        let all = worker.policy.connections * worker.policy.streams;
        vec![(); all.saturating_sub(worker.busy) as usize]
    }

    fn begin_for(worker: &mut Worker<'_, Self>, (): (), planned: Instant) {
        worker.ask(planned);
    }

    fn send(worker: &mut Worker<'_, Self>, planned: Instant, turn: Turn) -> bool {
        worker.send(planned, turn)
    }

    fn ready(worker: &mut Worker<'_, Self>, ready: Ready) {
        worker.ready(ready);
    }

    fn due(worker: &mut Worker<'_, Self>, key: Key) {
        worker.due(key);
    }

    fn flush(worker: &mut Worker<'_, Self>) {
        worker.flush();
    }

    fn tend(worker: &mut Worker<'_, Self>) {
        worker.expire_waiting();
    }

    fn end_all(worker: &mut Worker<'_, Self>) {
        worker.end_all();
    }
}
