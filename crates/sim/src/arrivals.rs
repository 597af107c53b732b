//! Overload: more clients arrive than the gateway can complete handshakes for. Counts the clients that the gateway
//! still serves.

use crate::host::Host;
use std::time::Duration;
use weir_gateway::Timeouts;
use weir_gateway::document::Limits;

/// Clients that arrive at a steady rate; each completes a handshake and sends one request. A turn of the gateway takes
/// a millisecond.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    /// New clients per turn. A full handshake takes two handshake steps of the gateway.
    pub per_turn: usize,
    /// As `limits.handshakes_per_turn`.
    pub steps_per_turn: u32,
    /// As `limits.handshakes`.
    pub places: u32,
    /// As `timeouts.handshake`.
    pub limit: Duration,
    /// The round trip in turns: a client sends and receives only once in this number of turns.
    pub way: u64,
    /// Number of turns.
    pub turns: u64,
}

/// The numbers of clients by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Clients with a response.
    pub answered: usize,
    /// Clients that completed their side of the handshake and whose connection the gateway closed without a response.
    pub in_vain: usize,
}

impl Arrivals {
    /// Runs the gateway with these clients.
    #[must_use]
    pub fn run(self) -> Outcomes {
        let limits = Limits {
            handshakes_per_turn: self.steps_per_turn,
            handshakes: Some(self.places),
            ..Limits::default()
        };
        let timeouts = Timeouts { handshake: self.limit, ..Timeouts::default() };
        let mut host = Host::new(1, limits, timeouts, true);
        let mut clients: Vec<(u64, usize)> = Vec::new();
        let mut outcomes = Outcomes::default();
        for turn in 0..self.turns {
            for _ in 0..self.per_turn {
                let client = host.connect(0, true);
                host.say(client, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
                clients.push((turn, client));
            }
            let talking = clients.iter().filter(|(since, _)| (turn - since).is_multiple_of(self.way));
            host.tick(TURN);
            host.turn(talking.map(|(_, client)| *client));
            clients.retain(|(_, client)| {
                let is_answered = host.take(*client).starts_with(b"HTTP/1.1 200 ");
                outcomes.answered += usize::from(is_answered);
                outcomes.in_vain +=
                    usize::from(!is_answered && host.has_ended(*client) && host.has_said_all(*client));
                let is_over = is_answered || host.has_ended(*client);
                if is_over {
                    host.leave(*client);
                }
                !is_over
            });
        }
        outcomes
    }
}

const TURN: Duration = Duration::from_millis(1);
