//! More clients than the gateway can shake hands with: how many of them it serves all the same.

use crate::net::{SimListener, SimNet};
use crate::peer::Peer;
use crate::tls;
use crate::world::{Weather, World};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use weir_gateway::bare::{Bare, Bound, Role};
use weir_gateway::document::{Limits, Listener, Respond, Route};
use weir_gateway::{Config, Timeouts};

/// Clients that come evenly, each with one request behind its handshake. A turn of the gateway takes a millisecond.
#[derive(Clone, Copy, Debug)]
pub struct Storm {
    /// Clients that come in each turn. A whole handshake takes two steps of the gateway.
    pub per_turn: usize,
    /// As `limits.handshakes_per_turn`.
    pub steps_per_turn: u32,
    /// As `limits.handshakes`.
    pub places: u32,
    /// As `timeouts.handshake`.
    pub limit: Duration,
    /// Turns that a client takes to answer.
    pub way: u64,
    /// Turns in which clients come; after that the storm is cut short.
    pub turns: u64,
}

/// What became of the clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toll {
    /// They have got their answer.
    pub answered: usize,
    /// They had got an answer to their first message, but their connection was ended before the request had one.
    pub in_vain: usize,
}

impl Storm {
    /// Plays it.
    pub fn blow(self) -> Toll {
        let weather = Weather { rough: false, tiny: false, refusals: 0, shortages: 0, corrupts: false };
        let world = Rc::new(RefCell::new(World::new(0, weather, 1)));
        let net = SimNet::new(Rc::clone(&world), 0);
        let mut gateway = Bare::new(net, self.bound(), vec![SimListener]).expect("nothing here can fail");
        let mut clients: Vec<(u64, Peer)> = Vec::new();
        let mut toll = Toll::default();
        for turn in 0..self.turns {
            let mut world_now = world.borrow_mut();
            world_now.now += TURN;
            for _ in 0..self.per_turn {
                let Some(link) = world_now.connect() else { continue };
                let mut peer = Peer::new(link, Some(tls::client_session(false)));
                peer.say(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
                clients.push((turn, peer));
            }
            for (since, peer) in &mut clients {
                if (turn - *since).is_multiple_of(self.way) {
                    peer.poll(&mut world_now, true);
                }
            }
            world_now.arrive();
            drop(world_now);
            gateway.turn().expect("nothing here can fail");
            clients.retain(|(_, peer)| {
                let is_answered = peer.input.starts_with(b"HTTP/1.1 200 ");
                toll.answered += usize::from(is_answered);
                toll.in_vain += usize::from(!is_answered && peer.ended.is_some() && peer.is_flushed());
                let is_over = is_answered || peer.ended.is_some();
                if is_over {
                    world.borrow_mut().close_peer(peer.link);
                }
                !is_over
            });
        }
        toll
    }

    fn bound(self) -> Bound {
        let listener = Listener::new(vec!["192.0.2.1:443".parse().expect("a valid address")]);
        let config = Config {
            workers: Some(1),
            listeners: [("web".to_owned(), listener)].into(),
            routes: vec![Route {
                respond: Some(Respond { status: 200, body: None, content_type: None }),
                ..Route::default()
            }],
            limits: Limits {
                handshakes_per_turn: self.steps_per_turn,
                handshakes: Some(self.places),
                ..Limits::default()
            },
            timeouts: Timeouts { handshake: self.limit, ..Timeouts::default() },
            ..Config::default()
        };
        let server = Some(tls::server().clone());
        Bound::new(Role::Gateway, &config, server, None).expect("a valid configuration")
    }
}

const TURN: Duration = Duration::from_millis(1);
