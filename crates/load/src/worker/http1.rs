//! HTTP/1.1: a connection has one request at a time, and one user.

use super::{Protocol, Turn, Worker};
use crate::connection::Connection;
use crate::options::{Options, RequestOptions};
use crate::request::Request;
use crate::usage::Usage;
use std::collections::VecDeque;
use std::time::Instant;
use weir_http1::{Limits, ResponseHead};
use weir_reactor::{Key, Ready};

/// The users of connections with HTTP/1.1.
#[derive(Default)]
pub(crate) struct Http1 {
    /// Idle connections, the longest idle first: so all of them are used at any
    /// rate, none times out at the server, and the load spreads over all server workers.
    pub(super) idle: VecDeque<Key>,
    /// Connections that may be opened on demand (without keep-alive).
    pub(super) spare: u32,
    /// Connections opening to get sessions, and how many more may open.
    pub(super) priming: u32,
    pub(super) to_prime: u32,
}

/// A user of a closed loop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum User {
    /// On an open connection.
    Kept(Key),
    /// On a connection yet to be opened.
    New,
}

impl Protocol for Http1 {
    type Request = Request;
    type Head = ResponseHead;
    type Limits = Limits;
    type Connection = Connection;
    type User = User;

    fn request(asked: &RequestOptions, options: &Options) -> Result<Request, Usage> {
        Request::new(asked, options)
    }

    fn start_opening(worker: &mut Worker<'_>) {
        if worker.policy.per_connection.keeps() {
            for _ in 0..worker.policy.connections {
                worker.dial_stock(0);
            }
        } else {
            worker.http.spare = worker.policy.connections;
            if worker.policy.resume > 0.0 {
                worker.http.to_prime = worker.sessions_wanted();
            }
        }
    }

    fn is_settled(worker: &Worker<'_>) -> bool {
        let Http1 { idle, spare, .. } = &worker.http;
        idle.len() + worker.resting.len() + *spare as usize >= worker.policy.connections as usize
    }

    fn use_each(worker: &mut Worker<'_>) {
        for _ in 0..worker.http.idle.len() {
            worker.use_idle(worker.context.now);
        }
    }

    fn keep_opening(worker: &mut Worker<'_>) {
        worker.prime();
    }

    fn is_ready(worker: &Worker<'_>) -> bool {
        worker.http.priming == 0
    }

    fn take_users(worker: &mut Worker<'_>) -> Vec<User> {
        let spare = std::mem::take(&mut worker.http.spare);
        std::iter::repeat_n(User::New, spare as usize)
            .chain(worker.http.idle.drain(..).map(User::Kept))
            .collect()
    }

    fn begin_for(worker: &mut Worker<'_>, user: User, planned: Instant) {
        worker.use_(user, planned);
    }

    fn send(worker: &mut Worker<'_>, planned: Instant, _turn: Turn) -> bool {
        worker.send(planned)
    }

    fn ready(worker: &mut Worker<'_>, ready: Ready) {
        worker.ready(ready);
    }

    fn due(worker: &mut Worker<'_>, key: Key) {
        worker.due(key);
    }

    fn end_all(worker: &mut Worker<'_>) {
        worker.end_all();
    }
}
