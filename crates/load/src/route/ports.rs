//! Whether there are enough local ports for the plan.
//!
//! A connection is identified by its 4-tuple, and a run has one destination: so there can be at most as many
//! connections at once as local ports times source addresses. A closed connection keeps its port in TIME_WAIT, on
//! the side that sent the first FIN (RFC 9293 section 3.6.1). Here, that is:
//!
//! * with `--close rst`, neither;
//! * the server, if the last request carries `Connection: close` (RFC 9112 section 9.6) and the engine waits for the
//!   server's FIN before it sends its own. Two FINs that cross leave TIME_WAIT at both ends;
//! * otherwise the engine, that is after a handshake without a request.
//!
//! Behaviour of Linux, measured on loopback (6.18, 500 ports, new connections as fast as possible):
//!
//! | who closes first, and how | connections |
//! | --- | --- |
//! | the client; `tcp_tw_reuse` 2 or 1 with timestamps | 500 per second: a port is free again after 1 s |
//! | the same with `tcp_tw_reuse_delay` of 200 ms (Linux 6.14 and later) | 2500 per second |
//! | the client; `tcp_tw_reuse` 0, or no timestamps | 500, then none for 60 s |
//! | the client; `tcp_tw_reuse` 2 and a local non-loopback address | 500, then none for 60 s |
//! | the same from 127.0.0.1 | 500 per second |
//! | the client; two source addresses, each bound late (`IP_BIND_ADDRESS_NO_PORT`) | twice as many |
//! | the client; its port taken early, by bind(2) | 500, then none for 60 s, `tcp_tw_reuse` or not |
//! | the client; `tcp_max_tw_buckets` 200, `tcp_tw_reuse` 0 | unlimited: those above 200 hold no port |
//! |  as many as it can|neither (RST) || unlimited| as many as it can |
//! | the server, with and without timestamps | unlimited: a new SYN takes over the port from TIME_WAIT |
//!
//! Ports held by other programs, or left in TIME_WAIT by earlier runs, are unknown here; a connection without a port
//! is an error of the class `ports`.

use crate::options::{Close, Options, PerConnection, RateStep, Schedule};
use crate::usage::Usage;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;
use weir_transport::Address;

/// The kernel's settings for local ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// Ephemeral ports: the range without reserved ports.
    pub(crate) ports: u32,
    pub(crate) reuse: Reuse,
    /// How long a port stays in TIME_WAIT before it may be reused.
    pub(crate) reuse_after: Duration,
    /// Maximum connections in TIME_WAIT.
    pub(crate) most_waiting: u64,
}

/// Which ports in TIME_WAIT may be reused for the same destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reuse {
    Never,
    Loopback,
    Always,
}

/// The rate that the ports of a run can sustain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Budget {
    /// Maximum sustained new connections per second; `None` if closed connections hold no port.
    pub(crate) sustainable: Option<f64>,
    /// The available ports, as text.
    there: String,
}

impl Kernel {
    /// Settings of this machine and network namespace; Linux defaults for what cannot be read.
    pub(crate) fn read() -> Self {
        Self::read_from(Path::new("/proc/sys/net/ipv4"))
    }

    fn read_from(directory: &Path) -> Self {
        let text = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
        let (low, high) = first_two(&text("ip_local_port_range")).unwrap_or((32_768, 60_999));
        let reserved = text("ip_local_reserved_ports");
        let within = |port: &u16| !reserved.split(',').any(|range| holds(range.trim(), *port));
        let timestamps = number(&text("tcp_timestamps")) != Some(0);
        let reuse = match number(&text("tcp_tw_reuse")) {
            _ if !timestamps => Reuse::Never,
            Some(0) => Reuse::Never,
            Some(1) => Reuse::Always,
            _ => Reuse::Loopback,
        };
        Self {
            ports: (low..=high).filter(within).count() as u32,
            reuse,
            reuse_after: Duration::from_millis(number(&text("tcp_tw_reuse_delay")).unwrap_or(1000)),
            most_waiting: number(&text("tcp_max_tw_buckets")).unwrap_or(u64::MAX),
        }
    }

    /// How long a connection that we closed first holds its port.
    fn held(&self, loopback: bool) -> Duration {
        match self.reuse {
            Reuse::Always => self.reuse_after,
            Reuse::Loopback if loopback => self.reuse_after,
            Reuse::Loopback | Reuse::Never => TIME_WAIT,
        }
        .min(TIME_WAIT)
    }
}

/// `TCP_TIMEWAIT_LEN` of Linux, a constant.
const TIME_WAIT: Duration = Duration::from_secs(60);

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

fn first_two(text: &str) -> Option<(u16, u16)> {
    let mut words = text.split_whitespace();
    Some((number(words.next()?)?, number(words.next()?)?))
}

/// Whether `7` or `5-9` includes a port.
fn holds(range: &str, port: u16) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    number(first).is_some_and(|first: u16| first <= port)
        && number(last).is_some_and(|last: u16| port <= last)
}

/// Checks that the ports last for the plan. `None` for a Unix domain socket.
/// Errors: more concurrent connections than ports, or an open loop that would run out of ports.
pub(crate) fn budget(options: &Options, address: &Address, kernel: &Kernel) -> Result<Option<Budget>, Usage> {
    let Address::Tcp(to) = address else { return Ok(None) };
    let sources = &options.route.sources;
    let from_loopback =
        !sources.is_empty() && sources.iter().all(|source| source.to_canonical().is_loopback());
    let loopback = to.ip().to_canonical().is_loopback() || from_loopback;
    let (ports, addresses) = (u64::from(kernel.ports), sources.len().max(1) as u64);
    let there =
        format!("{ports} ports x {addresses} source address{}", if addresses == 1 { "" } else { "es" });
    let (all, at_once) = (ports * addresses, u64::from(options.connections));
    let use_sources = |needed: u64| more_sources(needed.div_ceil(ports.max(1)), to.is_ipv4() && loopback);
    let refused = |flag: &'static str, value: &dyn std::fmt::Display, why: String| {
        Err(Usage::new(flag, &value.to_string(), &why))
    };
    if at_once > all {
        let why = format!("at most {all} connections: {there} available; use {}", use_sources(at_once));
        return refused("-c", &options.connections, why);
    }
    if !ends_first(options) {
        return Ok(Some(Budget { sustainable: None, there }));
    }

    let phases = options.phases;
    let held = kernel.held(loopback);
    let span = held.min(phases.warmup + phases.settle + phases.window);
    let free = all - at_once;
    // If the kernel keeps fewer connections in TIME_WAIT than there are ports, they cannot run out.
    let sustainable =
        (free < kernel.most_waiting).then(|| (free as f64 / span.as_secs_f64().max(0.001)).floor());
    let budget = Budget { sustainable, there };
    let Schedule::Open { steps, .. } = &options.schedule else { return Ok(Some(budget)) };
    let (Some(sustainable), waiting) = (sustainable, whole(most_within(options, steps, span))) else {
        return Ok(Some(budget));
    };
    if waiting <= free {
        return Ok(Some(budget));
    }
    let rate = steps.iter().map(|step| step.rate).fold(0.0, f64::max);
    let seconds = span.as_secs_f64();
    let of = if span < held { "of the run" } else { "of TIME_WAIT" };
    let sum = match steps.as_slice() {
        [_] => format!("{rate} connections/s x {seconds} s {of} = {waiting} ports"),
        _ => format!("{waiting} connections within {seconds} s {of} hold as many ports"),
    };
    let more = use_sources(waiting + at_once);
    let why = format!(
        "at most {sustainable} new connections per second: {sum}, and {at_once} concurrent connections (-c); \
         {} available; use {more}, --close rst, or a lower rate",
        budget.there,
    );
    refused("--rate", &rate, why)
}

impl Budget {
    /// A warning after a run whose rate was not known in advance: its ports limited it, or
    /// soon would.
    pub(crate) fn warning(&self, opened: u64, time: Duration) -> Option<String> {
        let (most, rate) = (self.sustainable?, opened as f64 / time.as_secs_f64());
        (rate > most * NEAR).then(|| {
            format!(
                "{rate:.0} new connections per second, but {} sustain {most}: \
                 use more addresses (--source) or --close rst",
                self.there
            )
        })
    }
}

/// Above this share of the sustainable rate, the ports may limit a run.
const NEAR: f64 = 0.9;

/// Whether closed connections leave TIME_WAIT on the engine's side.
fn ends_first(options: &Options) -> bool {
    match (options.policy.close, options.policy.per_connection) {
        (Close::Reset, _) => false,
        // The last request asks the server to close.
        (_, PerConnection::Requests { .. } | PerConnection::Unlimited) => false,
        (Close::Graceful | Close::Fin, PerConnection::Handshake) => true,
    }
}

/// The maximum number of arrivals in any interval of length `span`. The first rate applies from the warm-up, the
/// last until the window's end.
fn most_within(options: &Options, steps: &[RateStep], span: Duration) -> f64 {
    let phases = options.phases;
    let lead = (phases.warmup + phases.settle).as_secs_f64();
    let (end, span) = (lead + phases.window.as_secs_f64(), span.as_secs_f64());
    let (mut pieces, mut at) = (Vec::new(), 0.0);
    for (n, step) in steps.iter().enumerate() {
        let until = lead.max(at) + step.time.as_secs_f64();
        let until = if n + 1 == steps.len() { end } else { until.min(end) };
        pieces.push((at, until, step.rate));
        at = until;
    }
    let arrivals = |from: f64| -> f64 {
        let within = |(begin, until, rate): &(f64, f64, f64)| {
            (until.min(from + span) - begin.max(from)).max(0.0) * rate
        };
        pieces.iter().map(within).sum()
    };
    // The maximum is where the interval starts or ends at a change of rate.
    let edges = pieces.iter().flat_map(|(begin, until, _)| [*begin, *until]);
    edges.flat_map(|edge| [edge, edge - span]).map(arrivals).fold(0.0, f64::max)
}

/// Rounded up, except for floating-point error.
fn whole(arrivals: f64) -> u64 {
    (arrivals - 1e-3).ceil() as u64
}

/// The `--source` flag for that many addresses.
fn more_sources(needed: u64, loopback: bool) -> String {
    let first = Ipv4Addr::LOCALHOST.to_bits();
    match u32::try_from(needed) {
        Ok(needed) if loopback && needed <= 65_536 => {
            format!("--source 127.0.0.1-{}", Ipv4Addr::from_bits(first + needed.max(1) - 1))
        }
        _ => format!("--source with {needed} local addresses"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel() -> Kernel {
        Kernel {
            ports: 28_232,
            reuse: Reuse::Loopback,
            reuse_after: Duration::from_secs(1),
            most_waiting: 131_072,
        }
    }

    /// An open loop of 60 s with handshakes only.
    fn plan(rate: f64) -> Options {
        let mut options = Options::new("https://127.0.0.1/".parse().unwrap());
        options.phases.warmup = Duration::ZERO;
        options.phases.window = Duration::from_secs(60);
        options.schedule = Schedule::constant(rate, options.phases.window);
        options.policy.per_connection = PerConnection::Handshake;
        options
    }

    fn budgeted(options: &Options, address: &str, kernel: &Kernel) -> Result<Option<f64>, String> {
        let address = Address::Tcp(address.parse().unwrap());
        let budget = budget(options, &address, kernel).map_err(|error| error.to_string())?;
        Ok(budget.unwrap().sustainable)
    }

    const NEAR_BY: &str = "127.0.0.1:443";
    const FAR: &str = "192.0.2.1:443";

    #[test]
    fn a_plan_that_would_run_out_is_refused_with_the_arithmetic() {
        assert_eq!(
            budgeted(&plan(5000.0), "127.0.0.1:443", &Kernel { reuse: Reuse::Never, ..kernel() }),
            Err("--rate: invalid value `5000`: expected at most 469 new connections per second: \
                 5000 connections/s x 60 s of TIME_WAIT = 300000 ports, and 64 concurrent connections (-c); \
                 28232 ports x 1 source address available; \
                 use --source 127.0.0.1-127.0.0.11, --close rst, or a lower rate"
                .to_string())
        );
        let error = budgeted(&plan(5000.0), FAR, &kernel()).unwrap_err();
        assert!(error.contains("--source with 11 local addresses"), "{error}");
        assert!(budgeted(&plan(400.0), FAR, &kernel()).is_ok());
    }

    #[test]
    fn how_long_a_port_is_held() {
        let never = Kernel { reuse: Reuse::Never, ..kernel() };
        let always = Kernel { reuse: Reuse::Always, ..kernel() };
        let soon = Kernel { reuse_after: Duration::from_millis(200), ..kernel() };
        for (kernel, address, sustainable) in [
            (kernel(), NEAR_BY, 28_168.0),
            (kernel(), "[::1]:443", 28_168.0),
            (kernel(), "[::ffff:127.0.0.1]:443", 28_168.0),
            (kernel(), FAR, 469.0),
            (never, NEAR_BY, 469.0),
            (always, FAR, 28_168.0),
            (soon, NEAR_BY, 140_840.0),
        ] {
            assert_eq!(budgeted(&plan(1.0), address, &kernel), Ok(Some(sustainable)), "{address} {kernel:?}");
            assert!(budgeted(&plan(sustainable), address, &kernel).is_ok());
            let error = budgeted(&plan(sustainable + 1.0), address, &kernel).unwrap_err();
            assert!(error.contains(&format!("at most {sustainable} new")), "{error}");
        }
        let few = Kernel { reuse: Reuse::Never, most_waiting: 20_000, ..kernel() };
        assert_eq!(budgeted(&plan(5000.0), FAR, &few), Ok(None), "the kernel frees ports");
    }

    #[test]
    fn who_ends_first_and_how_many_addresses_there_are() {
        type Change = fn(&mut Options);
        let table: [(Change, Option<f64>); 6] = [
            (|options| options.policy.close = Close::Fin, Some(469.0)),
            (|options| options.policy.close = Close::Reset, None),
            (|options| options.policy.per_connection = PerConnection::Requests { least: 1, most: 1 }, None),
            (|options| options.policy.per_connection = PerConnection::Unlimited, None),
            (|options| options.route.sources = vec!["192.0.2.7".parse().unwrap(); 2], Some(940.0)),
            (|options| options.route.sources = vec!["127.0.0.2".parse().unwrap()], Some(28_168.0)),
        ];
        for (change, sustainable) in table {
            let mut options = plan(400.0);
            change(&mut options);
            assert_eq!(budgeted(&options, FAR, &kernel()), Ok(sustainable));
        }
        let socket = Address::Unix("/run/a".into());
        assert_eq!(budget(&plan(1e7), &socket, &Kernel { ports: 0, ..kernel() }), Ok(None));
    }

    #[test]
    fn more_connections_at_once_than_ports_are_refused() {
        let mut options = plan(1.0);
        options.policy.per_connection = PerConnection::Unlimited;
        options.connections = 28_232;
        assert_eq!(budgeted(&options, NEAR_BY, &kernel()), Ok(None));
        options.connections = 60_000;
        assert_eq!(
            budgeted(&options, NEAR_BY, &kernel()),
            Err("-c: invalid value `60000`: expected at most 28232 connections: \
                 28232 ports x 1 source address available; use --source 127.0.0.1-127.0.0.3"
                .to_string())
        );
        options.route.sources = (1..=3).map(|n| Ipv4Addr::new(127, 0, 0, n).into()).collect();
        assert_eq!(budgeted(&options, NEAR_BY, &kernel()), Ok(None));
    }

    #[test]
    fn a_short_run_and_a_short_peak_need_fewer_ports() {
        let mut short = plan(2000.0);
        assert!(budgeted(&short, FAR, &kernel()).is_err());
        short.phases.window = Duration::from_secs(10);
        assert_eq!(budgeted(&short, FAR, &kernel()), Ok(Some(2816.0)));
        short.phases.warmup = Duration::from_secs(5);
        let error = budgeted(&short, FAR, &kernel()).unwrap_err();
        assert!(error.contains("2000 connections/s x 15 s of the run = 30000 ports"), "{error}");

        let seconds = Duration::from_secs;
        let mut ramp = plan(1.0);
        ramp.phases.warmup = seconds(10);
        ramp.phases.window = seconds(120);
        let step = |rate, time| RateStep { rate, time: seconds(time) };
        let mut within = |steps: &[RateStep]| {
            ramp.schedule = Schedule::Open { arrivals: Default::default(), steps: steps.to_vec() };
            budgeted(&ramp, FAR, &kernel())
        };
        // 50 s of 100 and 10 s of 2300, then 100 again: 28000 within 60 s.
        assert!(within(&[step(100.0, 50), step(2300.0, 10), step(100.0, 1)]).is_ok());
        let error = within(&[step(100.0, 50), step(2400.0, 10), step(100.0, 1)]).unwrap_err();
        assert!(error.contains("29000 connections within 60 s of TIME_WAIT"), "{error}");
        // The first rate also applies to the warm-up, and the last until the end.
        assert!(within(&[step(400.0, 1), step(1.0, 1)]).is_ok());
        let error = within(&[step(1.0, 1), step(500.0, 1)]).unwrap_err();
        assert!(error.contains("30000 connections within"), "{error}");
    }

    #[test]
    fn a_closed_loop_is_warned_afterwards() {
        let mut options = plan(1.0);
        options.schedule = Schedule::Closed { think: Duration::ZERO };
        let address = Address::Tcp(FAR.parse().unwrap());
        let budget = budget(&options, &address, &kernel()).unwrap().unwrap();
        assert_eq!(budget.warning(400 * 60, Duration::from_secs(60)), None);
        let warning = budget.warning(460 * 60, Duration::from_secs(60)).unwrap();
        assert!(warning.contains("460 new connections") && warning.contains("sustain 469"), "{warning}");
        let free = Budget { sustainable: None, ..budget };
        assert_eq!(free.warning(u64::MAX, Duration::from_secs(1)), None);
    }

    #[test]
    fn what_the_kernel_says() {
        let directory = tempfile::tempdir().unwrap();
        let default = Kernel { most_waiting: u64::MAX, ..kernel() };
        assert_eq!(Kernel::read_from(directory.path()), default);
        let with = |files: &[(&str, &str)]| {
            files.iter().for_each(|(name, text)| fs::write(directory.path().join(name), text).unwrap());
            Kernel::read_from(directory.path())
        };
        let read = with(&[
            ("ip_local_port_range", "40000\t40499\n"),
            ("ip_local_reserved_ports", "40100-40199,40300,50000\n"),
            ("tcp_tw_reuse", "1\n"),
            ("tcp_tw_reuse_delay", "200\n"),
            ("tcp_max_tw_buckets", "4096\n"),
        ]);
        let reuse_after = Duration::from_millis(200);
        assert_eq!(read, Kernel { ports: 399, reuse: Reuse::Always, reuse_after, most_waiting: 4096 });
        assert_eq!(with(&[("tcp_tw_reuse", "0\n")]).reuse, Reuse::Never);
        assert_eq!(with(&[("tcp_tw_reuse", "2\n")]).reuse, Reuse::Loopback);
        assert_eq!(with(&[("tcp_timestamps", "0\n")]).reuse, Reuse::Never);
        assert_eq!(with(&[("ip_local_reserved_ports", "\n")]).ports, 500);
    }
}
