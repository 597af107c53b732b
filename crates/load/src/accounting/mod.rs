//! CPU accounting of the engine and the servers over the window, and which of them was the limit.
//!
//! Three sources:
//!
//! - **A process** with its descendants, by their CPU clocks (nanoseconds), read at the edges.
//!   Descendants that start later are seen by scans near the edges; those that exit in between are known
//!   only from their parents, in 10 ms ticks. Scans also read memory, switches, page faults and open files.
//! - **A cgroup**, by its own counter, read at the edges.
//! - **A command**, for other machines. It runs near the edges, never on a worker's thread; its figure counts for
//!   the middle of its run, and the difference is scaled to the length of the window.

mod cgroup;
mod clock;
mod command;
mod counters;
mod family;
mod proc;
mod process;
mod server;

pub use clock::since_boot;

use crate::limit::{self, Part};
use crate::options::Server as Named;
use crate::result::{Cost, Counters, EngineCost, Limit, Role, ServerCost, WorkerCost};
use crate::usage::Usage;
use server::{Server, Sight, Used};
use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};
use weir_reactor::cores;

#[derive(Debug)]
pub(crate) struct Accounts(Vec<Server>);

/// A scan of the servers near an edge of the window: everything a worker need not read.
#[derive(Debug)]
pub(crate) struct Look {
    sights: Vec<Sight>,
    held: Counters,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Correct responses within the window; in a handshake-only run, handshakes.
    pub(crate) requests: u64,
    pub(crate) handshakes: u64,
    /// Each request has its own handshake, though an edge of the window may separate the two.
    pub(crate) paired: bool,
}

#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) window: Duration,
    /// Its start, since boot.
    pub(crate) since_boot: Option<Duration>,
    /// Without the event loop's lag.
    pub(crate) engine: EngineCost,
    pub(crate) servers: Vec<ServerCost>,
    pub(crate) limit: Limit,
    /// Servers whose CPU is unknown, and why. Their figures are invalid.
    pub(crate) lost: Vec<String>,
}

/// CPU times at one instant: ours, with our counters, and each server's.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    own: Duration,
    counted: Counters,
    /// Per server its processes' or cgroup's clocks; empty for a command.
    servers: Vec<Vec<Option<Duration>>>,
}

/// One worker's readings at the edges of the window.
#[derive(Debug)]
pub(crate) struct Edges<'a> {
    index: usize,
    /// Only the first worker reads the servers' clocks.
    accounts: Option<&'a Accounts>,
    cores: Vec<usize>,
    start: Option<Edge>,
    end: Option<Edge>,
}

#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) index: usize,
    /// Its allowed cores.
    pub(crate) cores: Vec<usize>,
    pub(crate) from: Edge,
    pub(crate) to: Edge,
}

#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) at: Instant,
    pub(crate) thread: Duration,
    pub(crate) reading: Option<Reading>,
}

impl Accounts {
    /// Finds the servers, and tries each command once.
    /// Errors: a server that does not exist, or whose CPU cannot be read, with flag, value and what was expected.
    pub(crate) fn open(servers: &[Named]) -> Result<Self, Usage> {
        Ok(Self(servers.iter().map(Server::open).collect::<Result<_, _>>()?))
    }

    /// Reads all clocks: one system call per process and cgroup, some microseconds in all.
    fn read(&self) -> Reading {
        Reading {
            own: clock::own(),
            counted: counters::own(),
            servers: self.0.iter().map(Server::read).collect(),
        }
    }

    /// How long before each edge of the window to call [`Self::look`], so that the edge falls in the
    /// middle of the commands and no process scan falls into the window, where it would count as the engine's.
    pub(crate) fn leads(&self) -> (Duration, Duration) {
        let (start, end): (Vec<_>, Vec<_>) = self.0.iter().map(Server::leads).unzip();
        (start.into_iter().max().unwrap_or_default(), end.into_iter().max().unwrap_or_default())
    }

    /// Scans processes and threads and runs the commands, in parallel. Takes milliseconds, with commands
    /// up to [`command::PATIENCE`]. Called on the conductor's thread.
    pub(crate) fn look(&self) -> Look {
        thread::scope(|scope| {
            let sights: Vec<_> = self.0.iter().map(|server| scope.spawn(|| server.look())).collect();
            let sight = |sight: thread::ScopedJoinHandle<'_, Sight>| {
                sight.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            Look { sights: sights.into_iter().map(sight).collect(), held: counters::held() }
        })
    }

    /// Usage between the workers' edges, in their order; `None` when the first has none.
    pub(crate) fn settle(&self, spans: &[Span], looks: &(Look, Look), work: Work) -> Option<Account> {
        let first = spans.first()?;
        let (window, from, to) = (first.window(), first.from.reading.as_ref()?, first.to.reading.as_ref()?);
        let set: BTreeSet<usize> = spans.iter().flat_map(|span| &span.cores).copied().collect();
        let cores = set.len().min(spans.len()).max(1) as u32;
        let engine = EngineCost {
            cost: cost(to.own.saturating_sub(from.own), window, cores, work),
            rss_peak_kib: proc::rss_peak_kib(std::process::id()),
            counters: counters::of_this_process(from.counted, to.counted, looks.1.held),
            workers: spans.iter().map(worker).collect(),
            ..EngineCost::default()
        };
        let (mut all, mut lost) = (Vec::new(), Vec::new());
        for (index, server) in self.0.iter().enumerate() {
            let readings = (&from.servers[index][..], &to.servers[index][..]);
            let sights = (&looks.0.sights[index], &looks.1.sights[index]);
            let mut used = server.used(readings, sights, window).unwrap_or_else(|why| {
                lost.push(why);
                Used { report: server.report(), ..Used::default() }
            });
            // Without the CPU there is no figure per request.
            let work = used.cpu.map_or(Work { requests: 0, ..work }, |_| work);
            used.report.cost = cost(used.cpu.unwrap_or_default(), window, used.report.cost.cores, work);
            all.push(used);
        }
        let mut parts: Vec<Part<'_>> = Vec::new();
        for Used { cpu, most, set, report } in &all {
            let who = match report.role {
                Role::Gateway => Limit::Gateway,
                Role::Origin => Limit::Origin,
            };
            let cpu = cpu.unwrap_or_default().as_secs_f64() / window.as_secs_f64();
            let busiest = report.busiest_thread.as_ref().map_or(0.0, |thread| thread.utilisation);
            parts.push(Part { who, cpu, most: *most, busiest, cores: set });
        }
        parts.extend(spans.iter().map(|span| Part {
            who: Limit::Load,
            cpu: span.cpu().as_secs_f64() / span.window().as_secs_f64(),
            most: 1.0,
            busiest: 0.0,
            cores: &span.cores,
        }));
        let limit = limit::of(&parts);
        let servers = all.into_iter().map(|used| used.report).collect();
        Some(Account { window, since_boot: clock::since_boot(first.from.at), engine, servers, limit, lost })
    }
}

impl<'a> Edges<'a> {
    pub(crate) fn new(index: usize, accounts: &'a Accounts) -> Self {
        let cores = cores::allowed().map(|cores| cores.0).unwrap_or_default();
        Self { index, accounts: (index == 0).then_some(accounts), cores, start: None, end: None }
    }

    pub(crate) fn start(&mut self) {
        self.start = Some(self.edge());
    }

    pub(crate) fn end(&mut self) {
        self.end = Some(self.edge());
    }

    /// Both edges, once the window is over.
    pub(crate) fn both(self) -> Option<Span> {
        let Self { index, cores, start, end, .. } = self;
        Some(Span { index, cores, from: start?, to: end? })
    }

    fn edge(&self) -> Edge {
        let reading = self.accounts.map(Accounts::read);
        Edge { at: Instant::now(), thread: weir_doctor::proc::own_thread_cpu(), reading }
    }
}

impl Span {
    pub(crate) fn window(&self) -> Duration {
        self.to.at - self.from.at
    }

    pub(crate) fn cpu(&self) -> Duration {
        self.to.thread.saturating_sub(self.from.thread)
    }
}

fn worker(span: &Span) -> WorkerCost {
    let cpu = span.cpu().as_secs_f64();
    let core = match span.cores[..] {
        [core] => Some(core),
        _ => None,
    };
    WorkerCost { core, cpu_us: cpu * 1e6, utilisation: cpu / span.window().as_secs_f64() }
}

/// A cost as reported. If the number of cores is unknown (0), `utilisation` is that of one core.
fn cost(cpu: Duration, window: Duration, cores: u32, work: Work) -> Cost {
    let cpu_us = cpu.as_secs_f64() * 1e6;
    let Work { requests, handshakes, paired } = work;
    let each_has_one = requests > 0 && handshakes > 0 && (paired || handshakes >= requests);
    Cost {
        cpu_us,
        cpu_us_per_request: (requests > 0).then(|| cpu_us / requests as f64),
        cpu_us_per_handshake: each_has_one.then(|| cpu_us / handshakes as f64),
        utilisation: cpu.as_secs_f64() / (window.as_secs_f64() * f64::from(cores.max(1))),
        cores,
    }
}

#[cfg(test)]
mod tests;
