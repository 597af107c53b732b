//! More clients than the gateway can shake hands with: how many of them it serves all the same.

use crate::host::Host;
use std::time::Duration;
use weir_gateway::Timeouts;
use weir_gateway::document::Limits;

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
    /// Their handshake was finished for their part, but their connection was ended before their request had an answer.
    pub in_vain: usize,
}

impl Storm {
    /// Plays it.
    #[must_use]
    pub fn blow(self) -> Toll {
        let limits = Limits {
            handshakes_per_turn: self.steps_per_turn,
            handshakes: Some(self.places),
            ..Limits::default()
        };
        let timeouts = Timeouts { handshake: self.limit, ..Timeouts::default() };
        let mut host = Host::new(1, limits, timeouts, true);
        let mut clients: Vec<(u64, usize)> = Vec::new();
        let mut toll = Toll::default();
        for turn in 0..self.turns {
            for _ in 0..self.per_turn {
                let guest = host.connect(0, true);
                host.say(guest, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
                clients.push((turn, guest));
            }
            let talking = clients.iter().filter(|(since, _)| (turn - since).is_multiple_of(self.way));
            host.tick(TURN);
            host.turn(talking.map(|(_, guest)| *guest));
            clients.retain(|(_, guest)| {
                let is_answered = host.take(*guest).starts_with(b"HTTP/1.1 200 ");
                toll.answered += usize::from(is_answered);
                toll.in_vain +=
                    usize::from(!is_answered && host.has_ended(*guest) && host.has_said_all(*guest));
                let is_over = is_answered || host.has_ended(*guest);
                if is_over {
                    host.leave(*guest);
                }
                !is_over
            });
        }
        toll
    }
}

const TURN: Duration = Duration::from_millis(1);
