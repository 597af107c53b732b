//! A client, by the HTTP version that it speaks.

use crate::client::Client;
use crate::h2::H2Client;
use crate::ledger::Ledger;
use crate::message::Ask;
use crate::world::World;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// One client on one connection.
#[derive(Debug)]
pub(crate) enum AnyClient {
    H1(Box<Client>),
    H2(Box<H2Client>),
}

impl AnyClient {
    /// Sends and receives as much as possible now.
    pub(crate) fn poll(&mut self, world: &mut World, ledger: &mut Ledger) {
        match self {
            Self::H1(client) => client.poll(world, ledger),
            Self::H2(client) => client.poll(world, ledger),
        }
    }

    /// Whether the client has closed its connection.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::H1(client) => client.is_done,
            Self::H2(client) => client.is_done,
        }
    }

    /// The instants at which the client acts on its own.
    pub(crate) fn wakes(&self) -> Vec<Duration> {
        match self {
            Self::H1(client) => vec![client.wake],
            Self::H2(client) => client.wakes(),
        }
    }

    /// The unsent requests, for another connection.
    pub(crate) fn into_rest(self) -> VecDeque<Ask> {
        match self {
            Self::H1(client) => client.into_rest(),
            Self::H2(client) => client.into_rest(),
        }
    }

    /// The address, as the gateway knows it, of a client that has become idle: its last stream has ended, and the
    /// gateway has read all its bytes. Returned once per client.
    pub(crate) fn take_idle(&mut self) -> Option<SocketAddr> {
        match self {
            Self::H1(_) => None,
            Self::H2(client) => client.take_idle(),
        }
    }
}
