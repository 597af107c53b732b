//! `do handshake`: connections from start to end.

use std::sync::Arc;

use crate::connect::{Connected, Outcomes, Times, Wires, close, connect, count};
use crate::error::Error;
use crate::measure::{Measured, Worker, measure};
use crate::names::{Resumption, Version};
use crate::notes::{self, LOCKS, Notes, SPANS, Sum};
use crate::scenario::{Connection, Handshake};
use crate::stack::{Kind, Outcome, Stack};

/// The measurements of one thread.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) client_ns: Vec<u64>,
    pub(crate) server_ns: Vec<u64>,
    pub(crate) outcomes: Outcomes,
    pub(crate) client_session: Sum,
    pub(crate) server_session: Sum,
    /// Handshakes with the span, not its calls.
    pub(crate) spans: [Sum; SPANS.len()],
    pub(crate) locks: [Sum; LOCKS.len()],
}

/// Measures handshakes on all threads.
pub(crate) fn run<S: Stack>(stack: &S, scenario: &Handshake) -> Result<Vec<Measured<Record>>, Error> {
    let server = Arc::new(stack.server(&scenario.connection)?);
    measure(&scenario.load, || Connector::new(stack, scenario, server.clone()))
}

struct Connector<'a, S: Stack> {
    stack: &'a S,
    scenario: &'a Handshake,
    server: Arc<S::Server>,
    client: S::Client,
    wires: Wires,
}

impl<'a, S: Stack> Connector<'a, S> {
    /// With resumption, creates the first session.
    fn new(stack: &'a S, scenario: &'a Handshake, server: Arc<S::Server>) -> Result<Connector<'a, S>, Error> {
        let client = stack.client(&scenario.connection)?;
        let mut connector = Connector { stack, scenario, server, client, wires: Wires::default() };
        if scenario.connection.resumption != Resumption::None {
            connector.connect()?;
        }
        Ok(connector)
    }

    /// One connection from start to end.
    fn connect(&mut self) -> Result<Seen, Error> {
        notes::take();
        let connected = connect(&self.client, &*self.server, &mut self.wires)?;
        let Connected { pair, mut times, client, server, tickets } = connected;
        close(pair, &mut times)?;
        let notes = notes::take();
        check_tickets(&self.scenario.connection, client.kind, tickets, notes.tickets)?;
        Ok(Seen { client, server, times, notes })
    }
}

struct Seen {
    client: Outcome,
    server: Outcome,
    times: Times,
    notes: Notes,
}

impl<S: Stack> Worker for Connector<'_, S> {
    type Record = Record;

    fn unit(&mut self, _most: u64, record: &mut Record) -> Result<u64, Error> {
        if self.scenario.cold {
            self.server = Arc::new(self.stack.server(&self.scenario.connection)?);
            self.client = self.stack.client(&self.scenario.connection)?;
        }
        let seen = self.connect()?;
        if self.scenario.connection.resumption != Resumption::None && seen.client.kind != Kind::Resumed {
            let why = "the client had no session, or the server did not take it";
            return Err(Error::stack("a handshake that was to resume was a full one", why));
        }
        record.add(&seen);
        Ok(1)
    }
}

impl Record {
    fn add(&mut self, seen: &Seen) {
        self.client_ns.push(seen.times.client);
        self.server_ns.push(seen.times.server);
        self.client_session.add(seen.times.client_session);
        self.server_session.add(seen.times.server_session);
        count(&mut self.outcomes, seen.client, seen.server);
        for (sum, part) in self.spans.iter_mut().zip(seen.notes.spans) {
            if part.count > 0 {
                sum.add(part.ns);
            }
        }
        for (sum, part) in self.locks.iter_mut().zip(seen.notes.locks) {
            sum.merge(part);
        }
    }
}

/// Tickets cost server time: a different number would be a different measurement. A TLS 1.2 server may keep the
/// ticket that it received.
fn check_tickets(connection: &Connection, kind: Kind, in_clear: u32, read: u32) -> Result<(), Error> {
    let (tickets, fewest) = match (connection.version, kind) {
        (Version::Tls13, _) => (read, connection.tickets),
        (Version::Tls12, Kind::Resumed) => (in_clear, 0),
        (Version::Tls12, _) => (in_clear, connection.tickets),
    };
    if (fewest..=connection.tickets).contains(&tickets) {
        return Ok(());
    }
    Err(Error::stack(
        "tickets",
        format!("{tickets} were sent and read, {} were asked for", connection.tickets),
    ))
}
