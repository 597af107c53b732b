//! Facts from single connections: keep-alive, idle timeout, record sizes, delayed acknowledgements.

use super::visit::{Exchange, Visitor};
use crate::fact::Facts;
use std::io;
use std::time::{Duration, Instant};
use weir_load::plural;

/// Enough to get past the first acknowledgements of a connection, which Linux never delays.
const EXCHANGES: usize = 40;

/// The median is that of the last exchanges, this many.
const COUNTED: usize = 12;

/// The maximum time for these exchanges: a slow service needs fewer.
const LONGEST: Duration = Duration::from_secs(4);

/// Longer than the 5 s that servers use by default.
pub(crate) const IDLE: Duration = Duration::from_millis(6500);

/// The observations on single connections.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Visited {
    /// With delayed acknowledgements.
    exchanges: Vec<Exchange>,
    /// With immediate acknowledgements.
    acknowledged: Vec<Exchange>,
    /// The time until the server closed an idle connection.
    idle: Option<Option<Duration>>,
}

impl Visited {
    /// Opens the connections. `progress` receives the next step.
    pub(crate) fn new(visitor: &Visitor, mut progress: impl FnMut(&str)) -> io::Result<Self> {
        let mut visited = Self { exchanges: exchanges(visitor, false)?, ..Self::default() };
        if visited.is_persistent() {
            visited.acknowledged = exchanges(visitor, true)?;
            progress(&format!("waiting up to {} s for an idle connection to close", IDLE.as_secs_f64()));
            let mut visit = visitor.open(false)?;
            visit.exchange()?;
            visited.idle = Some(visit.idle(IDLE)?);
        }
        Ok(visited)
    }

    /// The `Server` field of the response.
    pub(crate) fn server(&self) -> Option<&str> {
        self.exchanges.first()?.server.as_deref()
    }

    /// The status of the response.
    pub(crate) fn status(&self) -> Option<u16> {
        Some(self.exchanges.first()?.status)
    }

    fn is_persistent(&self) -> bool {
        self.exchanges.len() > 1
    }
}

/// Sends requests one after the other, on as few connections as the server allows. Returns the numbers of requests and
/// connections.
pub(crate) fn requests_in_turn(visitor: &Visitor, count: u64) -> io::Result<(u64, u64)> {
    let (mut done, mut opened) = (0, 0);
    // Limit the connections, since a server may close each without a response.
    while done < count && opened < count {
        let mut visit = visitor.open(false)?;
        opened += 1;
        while done < count
            && let Some(exchange) = visit.exchange()?
        {
            done += 1;
            if !exchange.persistent {
                break;
            }
        }
    }
    Ok((done, opened))
}

/// Exchanges on one connection, until there are enough or the server closes it.
fn exchanges(visitor: &Visitor, acks_at_once: bool) -> io::Result<Vec<Exchange>> {
    let mut visit = visitor.open(acks_at_once)?;
    let started = Instant::now();
    let mut all = Vec::new();
    while all.len() < EXCHANGES && started.elapsed() < LONGEST {
        let Some(exchange) = visit.exchange()? else { break };
        let is_last = !exchange.persistent;
        all.push(exchange);
        if is_last {
            break;
        }
    }
    match all.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed without a response")),
        false => Ok(all),
    }
}

impl Facts {
    /// Adds the observations on single connections.
    pub(crate) fn add_visited(&mut self, visited: &Visited) {
        let source = format!("{} on a connection", plural(visited.exchanges.len() as u64, "request"));
        let is_closed = !visited.is_persistent();
        self.add("http.keep_alive", !is_closed, &source);
        self.add("http.requests_in_a_row", visited.exchanges.len() as f64, &source);
        if let Some(idle) = visited.idle {
            match idle {
                Some(time) => self.add("http.keep_alive_s", time.as_secs_f64(), "an idle connection"),
                None => self.add("http.kept_idle_s", IDLE.as_secs_f64(), "an idle connection"),
            }
        }
        let counted = last(&visited.exchanges);
        let records: u64 = counted.iter().map(|one| one.records).sum();
        let bytes: u64 = counted.iter().map(|one| one.record_bytes).sum();
        if records > 0 {
            self.add("http.bytes_per_record", bytes as f64 / records as f64, &source);
        }
        let body: u64 = counted.iter().map(|one| one.body_bytes).sum();
        self.add("http.body_bytes", body as f64 / counted.len().max(1) as f64, &source);
        self.add_known("http.response_ms", median_ms(&visited.exchanges, |one| one.took), &source);
        let spread_ms = |exchanges: &[Exchange]| median_ms(exchanges, |one| one.spread);
        if let (Some(delayed), Some(at_once)) =
            (spread_ms(&visited.exchanges), spread_ms(&visited.acknowledged))
        {
            self.add("http.spread_ms", delayed, &source);
            self.add("http.spread_acked_ms", at_once, "the same, acknowledged at once");
            self.add("http.delayed_ack_ms", delayed - at_once, "the difference");
        }
    }
}

fn last(exchanges: &[Exchange]) -> &[Exchange] {
    &exchanges[exchanges.len().saturating_sub(COUNTED)..]
}

/// The median of a time over the last responses; `None` with too few responses.
fn median_ms(exchanges: &[Exchange], time: impl Fn(&Exchange) -> Duration) -> Option<f64> {
    if exchanges.len() < 2 * COUNTED {
        return None;
    }
    let mut times: Vec<Duration> = last(exchanges).iter().map(time).collect();
    times.sort_unstable();
    Some(times[times.len() / 2].as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchanges(count: usize, spread_ms: u64) -> Vec<Exchange> {
        let one = Exchange {
            status: 200,
            server: None,
            body_bytes: 20_000,
            records: 10,
            record_bytes: 20_400,
            spread: Duration::from_millis(spread_ms),
            took: Duration::from_millis(spread_ms + 2),
            persistent: true,
        };
        vec![one; count]
    }

    #[test]
    fn delayed_acknowledgements_show_as_a_difference() {
        let mut facts = Facts::default();
        let (exchanges, acknowledged) = (exchanges(40, 44), exchanges(40, 1));
        facts.add_visited(&Visited { exchanges, acknowledged, idle: Some(Some(Duration::from_secs(2))) });
        assert_eq!(facts.number("http.delayed_ack_ms"), Some(43.0));
        assert_eq!(facts.number("http.response_ms"), Some(46.0));
        assert_eq!(facts.number("http.bytes_per_record"), Some(2040.0));
        assert_eq!(facts.number("http.keep_alive_s"), Some(2.0));
        assert_eq!(facts.number("http.keep_alive"), Some(1.0));
    }

    #[test]
    fn one_response_is_no_keep_alive_and_no_median() {
        let mut facts = Facts::default();
        facts.add_visited(&Visited { exchanges: exchanges(1, 44), ..Visited::default() });
        assert_eq!(facts.number("http.keep_alive"), Some(0.0));
        assert_eq!(facts.get("http.delayed_ack_ms"), None);
    }
}
