//! The difference between versions of HTTP in a worker.

use super::Worker;
use crate::options::{Options, RequestOptions};
use crate::usage::Usage;
use std::time::Instant;
use weir_reactor::{Key, Ready};

/// A version of HTTP: its requests and connections, and how a worker's users take connections. A worker is compiled for
/// each version, so that none pays for another.
pub(crate) trait Protocol: Default {
    /// A serialised request.
    type Request;
    /// The head of a response, whose storage all connections share.
    type Head: Default;
    /// Limits on what the server sends.
    type Limits: Default;
    type Connection;
    /// A user of a closed loop.
    type User: Copy;

    /// Serialises a request.
    ///
    /// # Errors
    /// A method or field that this version cannot send.
    fn request(asked: &RequestOptions, options: &Options) -> Result<Self::Request, Usage>;

    /// Starts to open connections.
    fn start_opening(worker: &mut Worker<'_, Self>);

    /// Whether all connections are open and idle, or have failed once.
    fn is_settled(worker: &Worker<'_, Self>) -> bool;

    /// Completes a first request on each connection.
    fn use_each(worker: &mut Worker<'_, Self>);

    /// Opens further connections, if the run needs them.
    fn keep_opening(_worker: &mut Worker<'_, Self>) {}

    /// Whether no further connection is being opened.
    fn is_ready(_worker: &Worker<'_, Self>) -> bool {
        true
    }

    /// The users of a closed loop.
    fn take_users(worker: &mut Worker<'_, Self>) -> Vec<Self::User>;

    /// Begins a user's request, planned for `planned`.
    fn begin_for(worker: &mut Worker<'_, Self>, user: Self::User, planned: Instant);

    /// Sends the arrival planned for `planned`; `false` if no connection is free.
    fn send(worker: &mut Worker<'_, Self>, planned: Instant, turn: Turn) -> bool;

    fn ready(worker: &mut Worker<'_, Self>, ready: Ready);

    fn due(worker: &mut Worker<'_, Self>, key: Key);

    /// Sends the output of a turn, before the next poll.
    fn flush(_worker: &mut Worker<'_, Self>) {}

    /// Called several times per second.
    fn tend(_worker: &mut Worker<'_, Self>) {}

    /// Closes all connections; requests still in flight have timed out, unless the run was ended early.
    fn end_all(worker: &mut Worker<'_, Self>);
}

/// The time of sending an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// As soon as the worker sees it.
    Now,
    /// After a wait for a free connection.
    Waited,
}
