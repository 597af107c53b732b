//! An origin, by the HTTP version that the gateway speaks to it.

use crate::h2_origin::H2Origin;
use crate::ledger::Ledger;
use crate::origin::{Origin, Site};
use crate::peer::Peer;
use crate::plan::Plan;
use crate::world::World;
use std::time::Duration;

/// One connection from the gateway.
#[derive(Debug)]
pub(crate) enum AnyOrigin {
    H1(Box<Origin>),
    H2(Box<H2Origin>),
    Fresh(Box<Fresh>),
}

/// A connection whose first bytes will determine the HTTP version.
#[derive(Debug)]
pub(crate) struct Fresh {
    pub(crate) peer: Peer,
    pub(crate) site: Site,
}

impl AnyOrigin {
    /// Sends and receives as much as possible now, once the first bytes have determined the HTTP version.
    pub(crate) fn poll(&mut self, plan: &Plan, world: &mut World, ledger: &mut Ledger) {
        if let Self::Fresh(fresh) = self {
            let Fresh { peer, site } = &mut **fresh;
            peer.poll(world, true);
            if peer.input.len() < PREFACE.len() && peer.ended.is_none() {
                return;
            }
            let peer = std::mem::replace(peer, Peer::new(peer.link, None));
            *self = match peer.input.starts_with(PREFACE) {
                true => Self::H2(Box::new(H2Origin::new(peer, *site, plan, world))),
                false => Self::H1(Box::new(Origin::new(peer, *site, world))),
            };
        }
        match self {
            Self::Fresh(_) => {}
            Self::H1(origin) => origin.poll(world, ledger),
            Self::H2(origin) => origin.poll(world, ledger),
        }
    }

    /// Whether the origin has closed its connection.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::H1(origin) => origin.is_done,
            Self::H2(origin) => origin.is_done,
            Self::Fresh(_) => false,
        }
    }

    /// The instants at which the origin acts on its own.
    pub(crate) fn wakes(&self) -> Vec<Duration> {
        match self {
            Self::H1(origin) => origin.wakes().collect(),
            Self::H2(origin) => origin.wakes(),
            Self::Fresh(_) => Vec::new(),
        }
    }

    /// The connection's link.
    pub(crate) fn link(&self) -> usize {
        match self {
            Self::H1(origin) => origin.link(),
            Self::H2(origin) => origin.link(),
            Self::Fresh(fresh) => fresh.peer.link,
        }
    }

    /// Whether no frame to the gateway is in transit.
    pub(crate) fn is_quiet(&self, world: &World) -> bool {
        match self {
            Self::H1(_) | Self::Fresh(_) => true,
            Self::H2(origin) => origin.is_quiet(world),
        }
    }

    /// Resets the connection, since the server has an outage.
    pub(crate) fn goes_dark(&mut self, world: &mut World) {
        match self {
            Self::H1(origin) => origin.goes_dark(world),
            Self::H2(origin) => origin.goes_dark(world),
            Self::Fresh(fresh) => {
                let Fresh { peer, site } = &mut **fresh;
                let peer = std::mem::replace(peer, Peer::new(peer.link, None));
                let mut origin = Origin::new(peer, *site, world);
                origin.goes_dark(world);
                *self = Self::H1(Box::new(origin));
            }
        }
    }
}

/// The first bytes of the HTTP/2 preface; no method of HTTP/1.1 starts with them.
const PREFACE: &[u8] = b"PRI";
