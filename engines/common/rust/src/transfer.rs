//! `do transfer`: bytes from server to client over an established connection.

use crate::calls::timed;
use crate::connect::{Outcomes, Pair, Wires, connect, count};
use crate::error::Error;
use crate::measure::{Measured, Worker, measure};
use crate::names::Side;
use crate::scenario::Transfer;
use crate::stack::{End, Session, Stack};
use crate::wire::measure_records;

/// The measurements of one thread.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) client_ns: Vec<u64>,
    pub(crate) server_ns: Vec<u64>,
    /// Bytes written by the server, and verified by the client.
    pub(crate) moved: u64,
    pub(crate) outcomes: Outcomes,
}

/// Measures transfers on all threads.
pub(crate) fn run<S: Stack>(stack: &S, scenario: &Transfer) -> Result<Vec<Measured<Record>>, Error> {
    let server = stack.server(&scenario.connection)?;
    measure(&scenario.load, || Mover::new(stack, scenario, &server))
}

type Ends<S> = Pair<<<S as Stack>::Client as End>::Session, <<S as Stack>::Server as End>::Session>;

struct Mover<'a, S: Stack> {
    scenario: &'a Transfer,
    server: &'a S::Server,
    client: S::Client,
    pair: Ends<S>,
    /// Records that this connection may still protect.
    records_left: usize,
    outcomes: Outcomes,
    wires: Wires,
    payload: Vec<u8>,
    turn: usize,
    plain: Vec<u8>,
}

/// An AES-GCM key protects at most 2^24.5 records; libraries update it or close the connection slightly earlier.
const RECORDS: usize = 1 << 23;
/// The payload starts at a different position each time, so that calls differ.
const TURNS: usize = 251;
/// Maximum record overhead of any version and suite.
const OVERHEAD: usize = 64;

impl<'a, S: Stack> Mover<'a, S> {
    fn new(stack: &S, scenario: &'a Transfer, server: &'a S::Server) -> Result<Mover<'a, S>, Error> {
        let client = stack.client(&scenario.connection)?;
        let (mut outcomes, mut wires) = (Outcomes::new(), Wires::default());
        let pair = open::<S>(&client, server, &mut wires, &mut outcomes)?;
        Ok(Mover {
            scenario,
            server,
            client,
            pair,
            records_left: RECORDS,
            outcomes,
            wires,
            payload: noise(scenario.write + TURNS),
            turn: 0,
            plain: vec![0; scenario.bytes as usize],
        })
    }

    /// A unit: written completely, then read completely, as in every runner, so that caches behave alike.
    /// Returns the time of the server and the client.
    fn step(&mut self) -> Result<(u64, u64), Error> {
        if self.records_left == 0 {
            self.pair = open::<S>(&self.client, self.server, &mut self.wires, &mut self.outcomes)?;
            self.records_left = RECORDS;
        }
        self.turn = (self.turn + 1) % TURNS;
        let Mover { pair: Pair { client, server }, wires, plain, scenario, .. } = self;
        let payload = &self.payload[self.turn..self.turn + scenario.write];
        wires.down.clear();
        let mut server_ns = 0;
        let calls = plain.len().div_ceil(payload.len());
        for call in 0..calls {
            let left = plain.len() - call * payload.len();
            let written = &payload[..left.min(payload.len())];
            server_ns += timed(Side::Server, || server.write(written, &mut wires.down))?.1;
        }
        let (read, client_ns) = timed(Side::Client, || client.read(&wires.down, plain))?;
        let is_right = plain.chunks(payload.len()).all(|part| *part == payload[..part.len()]);
        if read != plain.len() || !is_right {
            let bytes = plain.len();
            let message = format!("{bytes} bytes were written, {read} read, not the same");
            return Err(Error::stack("transfer", message));
        }
        let (largest, records) = measure_records(&wires.down);
        let limit = scenario.connection.record;
        if largest > limit + OVERHEAD {
            return Err(Error::stack(
                "transfer",
                format!("a record of {largest} bytes for {limit} of plaintext"),
            ));
        }
        // Leftovers of an earlier unit must not verify.
        plain.fill(0);
        self.records_left = self.records_left.saturating_sub(records);
        Ok((server_ns, client_ns))
    }
}

impl<S: Stack> Worker for Mover<'_, S> {
    type Record = Record;

    fn unit(&mut self, _most: u64, record: &mut Record) -> Result<u64, Error> {
        let (server_ns, client_ns) = self.step()?;
        record.server_ns.push(server_ns);
        record.client_ns.push(client_ns);
        record.moved += self.scenario.bytes;
        record.outcomes.clone_from(&self.outcomes);
        Ok(1)
    }
}

/// A new connection, outside the timed part.
fn open<S: Stack>(
    client: &S::Client,
    server: &S::Server,
    wires: &mut Wires,
    outcomes: &mut Outcomes,
) -> Result<Ends<S>, Error> {
    let connected = connect(client, server, wires)?;
    count(outcomes, connected.client, connected.server);
    Ok(connected.pair)
}

/// Pseudo-random bytes, the same in each run.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}
