//! Accepted connections and handshake steps per turn, and their order.

use std::time::Duration;
use weir_gateway::Timeouts;
use weir_gateway::document::Limits;
use weir_sim::{Arrivals, Host, Outcomes};

const CLIENTS: usize = 12;

#[test]
fn as_many_as_are_set_in_a_turn_and_in_their_order() {
    for most in [1, 3, 64] {
        assert_eq!(
            answered_by_turns(most, Duration::ZERO),
            (0..CLIENTS).collect::<Vec<_>>().chunks(most as usize).map(<[_]>::to_vec).collect::<Vec<_>>()
        );
    }
}

/// Regression test: a hundred large responses made turns of more than 100 ms, each of which accepted four connections
/// and took four handshake steps, so new clients exceeded the handshake timeout.
#[test]
fn a_turn_that_takes_long_goes_on_with_newcomers() {
    assert_eq!(answered_by_turns(1, Duration::from_millis(100)), [(0..CLIENTS).collect::<Vec<_>>()]);
    for (turn, accepted) in [(0, 1), (1, 4), (6, 25), (1000, 50)] {
        let mut host = Host::new(1, Limits::default(), Timeouts::default(), false);
        host.lengthen_turns(Duration::from_millis(turn));
        for _ in 0..50 {
            host.connect(0, false);
        }
        host.turn([]);
        assert_eq!(host.leak_check(0).clients, accepted, "turns of {turn} ms");
    }
}

/// Clients that received the response to their ClientHello, by turn. The gateway does not read a client that waits for
/// its turn.
fn answered_by_turns(handshakes_per_turn: u32, turn: Duration) -> Vec<Vec<usize>> {
    let limits = Limits { handshakes_per_turn, ..Limits::default() };
    let mut host = Host::new(1, limits, Timeouts::default(), true);
    let mut waiting: Vec<_> = (0..CLIENTS).map(|_| host.connect(0, true)).collect();
    for _ in 0..CLIENTS {
        host.turn([]);
    }
    assert!(waiting.iter().all(|client| host.is_read(*client)), "all are accepted");
    host.lengthen_turns(turn);
    host.turn(waiting.clone());
    let mut by_turns = Vec::new();
    while !waiting.is_empty() {
        assert!(by_turns.len() < CLIENTS, "{by_turns:?}");
        let (answered, others) = waiting.into_iter().partition(|client| host.is_read(*client));
        by_turns.push(answered);
        waiting = others;
        host.turn([]);
    }
    by_turns
}

/// Three times more clients arrive than the gateway can complete handshakes for, limited by steps per turn or by
/// places. The gateway spends its steps on clients that it then serves.
#[test]
fn a_handshake_that_begins_is_finished_when_too_many_clients_arrive() {
    let arrivals = Arrivals {
        per_turn: 3,
        steps_per_turn: 2,
        places: u32::MAX,
        limit: Duration::from_millis(100),
        way: 5,
        turns: 500,
    };
    for places in [u32::MAX, 60] {
        let Outcomes { answered, in_vain } = Arrivals { places, ..arrivals }.run();
        assert!(answered > 400 && in_vain < 10, "{places} places: {answered} answered, {in_vain} in vain");
    }
}
