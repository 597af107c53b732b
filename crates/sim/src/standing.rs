//! The servers that may receive requests, as far as an observer of the gateway can tell.

use crate::setting::{Ejection, origin, server_at};
use crate::world::World;
use std::time::Duration;

/// The state of the upstream servers as each worker knows it.
#[derive(Debug)]
pub(crate) struct Standing(Vec<Vec<Known>>);

/// The state of one server as one worker knows it.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The number of changes of the server's address.
    moves: u8,
    is_down: bool,
    is_drained: bool,
    ejected_until: Duration,
    /// The instant of the last change.
    since: Duration,
}

impl Standing {
    /// The state at the start of a run: all servers are healthy.
    pub(crate) fn new(workers: usize, servers: usize) -> Self {
        Self(vec![vec![Known::default(); servers]; workers])
    }

    /// Records that a worker adopts a configuration. A server with a new address starts without a known state.
    pub(crate) fn adopted(&mut self, worker: usize, moves: &[u8], drained: &[bool], now: Duration) {
        for ((known, moves), is_drained) in self.0[worker].iter_mut().zip(moves).zip(drained) {
            if known.moves != *moves {
                *known = Known { moves: *moves, since: now, ..Known::default() };
            }
            if known.is_drained != *is_drained {
                (known.is_drained, known.since) = (*is_drained, now);
            }
        }
    }

    /// Records that a worker learns that a server is down or up. Has no effect if the server's address has changed
    /// since the report.
    pub(crate) fn is(&mut self, worker: usize, server: usize, moves: u8, is_down: bool, now: Duration) {
        let known = &mut self.0[worker][server];
        if known.moves == moves && known.is_down != is_down {
            (known.is_down, known.since) = (is_down, now);
        }
    }

    /// Records that a worker has ejected the server at this address.
    pub(crate) fn ejected(&mut self, worker: usize, (address, until): Ejection, now: Duration) {
        let Some((server, moves)) = server_at(address) else { return };
        let known = &mut self.0[worker][server];
        if known.moves == moves {
            (known.ejected_until, known.since) = (until, now);
        }
    }

    /// The reason why a worker must not open a connection to a server now: the server is drained, or it is down or
    /// ejected while another server is available. Another server does not count as available if it was ejected in the
    /// same `turn`, possibly before the connection, or if it is the only available one and the worker has just failed
    /// to connect to it.
    pub(crate) fn wrong_connection(
        &self,
        worker: usize,
        to: [u8; 4],
        turn: &[Ejection],
        world: &World,
    ) -> Option<String> {
        self.wrong(worker, to, world.now, turn, world)
    }

    /// The reason why a request sent at `begun` must not arrive at a server, by the same rules as
    /// [`Standing::wrong_connection`].
    pub(crate) fn wrong_request(
        &self,
        worker: usize,
        to: [u8; 4],
        begun: Duration,
        world: &World,
    ) -> Option<String> {
        let (server, _) = server_at(to)?;
        // A change at the same instant may have followed the request.
        let before = begun.checked_sub(Duration::from_nanos(1))?;
        let is_known = self.0[worker].get(server)?.since <= before;
        is_known.then(|| self.wrong(worker, to, before, &[], world)).flatten()
    }

    fn wrong(
        &self,
        worker: usize,
        to: [u8; 4],
        begun: Duration,
        turn: &[Ejection],
        world: &World,
    ) -> Option<String> {
        let (server, moves) = server_at(to)?;
        let known = self.0[worker].get(server).filter(|known| known.moves == moves)?;
        if known.is_drained {
            return Some(format!("server {server} is drained for worker {worker}"));
        }
        if !known.is_down && known.ejected_until <= world.now {
            return None;
        }
        let is_good = |other: &usize| {
            let known = &self.0[worker][*other];
            let at = origin(*other, known.moves);
            let was_ejected = turn.iter().any(|(address, _)| *address == at);
            let was_good = known.ejected_until <= begun && known.since <= begun && !was_ejected;
            *other != server && !known.is_down && !known.is_drained && was_good
        };
        let good: Vec<_> = (0..self.0[worker].len()).filter(is_good).collect();
        let has_failed = |other: usize| {
            let at = origin(other, self.0[worker][other].moves);
            world.failed.get(&at).is_some_and(|at| *at >= begun)
        };
        let is_wrong = match good[..] {
            [] => false,
            [other] => !has_failed(other),
            _ => true,
        };
        let why = if known.is_down { "down" } else { "ejected" };
        is_wrong.then(|| format!("server {server} is {why} for worker {worker}, and {good:?} are not"))
    }
}
