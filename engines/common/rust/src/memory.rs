//! `do memory`: the memory of open connections.

use crate::connect::{Connected, Outcomes, Wires, connect, count};
use crate::error::Error;
use crate::scenario::Memory;
use crate::stack::Stack;
use crate::usage::resident_kib;

/// Resident memory before and with all connections.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) before_kib: u64,
    pub(crate) after_kib: u64,
    pub(crate) outcomes: Outcomes,
}

/// Opens and holds all connections.
pub(crate) fn run<S: Stack>(stack: &S, scenario: &Memory) -> Result<Held, Error> {
    let server = stack.server(&scenario.connection)?;
    let client = stack.client(&scenario.connection)?;
    let mut outcomes = Outcomes::new();
    let mut wires = Wires { up: vec![1; BUFFER], down: vec![1; BUFFER] };
    // Reserved without pages: those are allocated with the connections, and count for them.
    let mut open = Vec::with_capacity(scenario.pairs);

    let before_kib = resident_kib()?;
    for _ in 0..scenario.pairs {
        let Connected { pair, client, server, .. } = connect(&client, &server, &mut wires)?;
        count(&mut outcomes, client, server);
        open.push(pair);
    }
    let after_kib = resident_kib()?;
    drop(open);
    Ok(Held { before_kib, after_kib, outcomes })
}

/// Larger than any flight.
const BUFFER: usize = 65536;
