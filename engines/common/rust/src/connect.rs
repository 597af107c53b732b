//! One in-memory handshake.

use std::collections::BTreeMap;

use crate::calls::timed;
use crate::error::Error;
use crate::names::Side;
use crate::stack::{End, Kind, Outcome, Session};
use crate::wire::Seen;

/// Both sides of a connection.
pub(crate) struct Pair<C, S> {
    pub(crate) client: C,
    pub(crate) server: S,
}

/// Bytes in transit between the sides.
#[derive(Debug, Default)]
pub(crate) struct Wires {
    pub(crate) up: Vec<u8>,
    pub(crate) down: Vec<u8>,
}

/// The times of a handshake, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) client: u64,
    pub(crate) server: u64,
    /// Creating the session objects, included in the times above.
    pub(crate) client_session: u64,
    pub(crate) server_session: u64,
}

/// Outcomes of handshakes, per side, with counts.
pub(crate) type Outcomes = BTreeMap<(Side, Outcome), u64>;

/// A connection after its handshake.
pub(crate) struct Connected<C, S> {
    pub(crate) pair: Pair<C, S>,
    pub(crate) times: Times,
    pub(crate) client: Outcome,
    pub(crate) server: Outcome,
    /// Tickets of TLS 1.2.
    pub(crate) tickets: u32,
}

/// A handshake takes a few; more than this is an endless loop.
const ROUNDS: usize = 20;

/// Connects two new sides: they exchange bytes until neither has any left.
pub(crate) fn connect<C: End, S: End>(
    client: &C,
    server: &S,
    wires: &mut Wires,
) -> Result<Connected<C::Session, S::Session>, Error> {
    let mut seen = Seen::default();
    let mut times = Times::default();
    wires.up.clear();

    let (mut client, took) = timed(Side::Client, || client.session())?;
    times.client_session = took;
    let ((), took) = timed(Side::Client, || client.send(&mut wires.up))?;
    times.client = times.client_session + took;
    let (mut server, took) = timed(Side::Server, || server.session())?;
    times.server_session = took;
    times.server = took;

    for _ in 0..ROUNDS {
        wires.down.clear();
        times.server += exchange(Side::Server, &mut server, &wires.up, &mut wires.down)?;
        wires.up.clear();
        if wires.down.is_empty() {
            let over = |outcome: Option<Outcome>| {
                let outcome = outcome.map(|outcome| complete(outcome, seen));
                outcome.ok_or_else(|| Error::stack("handshake", "stopped before its end"))
            };
            let (at_client, at_server) = (over(client.outcome())?, over(server.outcome())?);
            let pair = Pair { client, server };
            return Ok(Connected {
                pair,
                times,
                client: at_client,
                server: at_server,
                tickets: seen.tickets,
            });
        }
        seen.look(&wires.down);
        times.client += exchange(Side::Client, &mut client, &wires.down, &mut wires.up)?;
    }
    Err(Error::stack("handshake", format!("not over after {ROUNDS} rounds")))
}

/// Drops both sides, and adds that time.
pub(crate) fn close<C, S>(pair: Pair<C, S>, times: &mut Times) -> Result<(), Error> {
    times.client += drop_timed(Side::Client, pair.client)?;
    times.server += drop_timed(Side::Server, pair.server)?;
    Ok(())
}

/// Counts the outcome of a connection.
pub(crate) fn count(outcomes: &mut Outcomes, client: Outcome, server: Outcome) {
    *outcomes.entry((Side::Client, client)).or_default() += 1;
    *outcomes.entry((Side::Server, server)).or_default() += 1;
}

fn exchange(
    side: Side,
    session: &mut impl Session,
    input: &[u8],
    output: &mut Vec<u8>,
) -> Result<u64, Error> {
    if input.is_empty() {
        return Ok(0);
    }
    let ((), took) = timed(side, || {
        session.receive(input)?;
        session.send(output)
    })?;
    Ok(took)
}

/// Adds facts from the wire that the library does not expose.
fn complete(mut outcome: Outcome, seen: Seen) -> Outcome {
    outcome.group = outcome.group.or(seen.group);
    if seen.retry && outcome.kind == Kind::Full {
        outcome.kind = Kind::FullWithHelloRetry;
    }
    outcome
}

fn drop_timed<T>(side: Side, end: T) -> Result<u64, Error> {
    let mut end = Some(end);
    let ((), took) = timed(side, || {
        drop(end.take());
        Ok(())
    })?;
    Ok(took)
}
