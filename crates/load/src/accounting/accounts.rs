//! What the window cost: the engine, its workers, and the servers that are accounted.

use super::clock;
use super::counters::{self, Held, Own};
use super::server::{Server, Sight, Used};
use super::span::{Reading, Span};
use crate::limit::{self, Part};
use crate::options::Server as Named;
use crate::result::{Cost, Counters, Limit, Role, ServerCost, WorkerCost};
use crate::usage::Usage;
use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

/// The servers to account.
#[derive(Debug)]
pub(crate) struct Accounts(Vec<Server>);

/// The servers near an edge of the window: what need not be read by a worker.
#[derive(Debug)]
pub(crate) struct Look {
    sights: Vec<Sight>,
    /// What the engine itself holds.
    held: Held,
}

/// What was done with the CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Right answers within the window; in a handshake-only run, handshakes.
    pub(crate) requests: u64,
    /// Handshakes finished within the window.
    pub(crate) handshakes: u64,
    /// Each request has a handshake of its own, though an edge may part the two.
    pub(crate) paired: bool,
}

/// What the window cost.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) window: Duration,
    /// When it began, since the machine was booted.
    pub(crate) since_boot: Option<Duration>,
    /// The whole process.
    pub(crate) engine: Cost,
    pub(crate) engine_rss_peak_kib: Option<u64>,
    pub(crate) engine_counters: Counters,
    pub(crate) workers: Vec<WorkerCost>,
    pub(crate) servers: Vec<ServerCost>,
    /// By what each part used of its cores.
    pub(crate) limit: Limit,
    /// Servers whose CPU is not known, and why: reasons to believe no figure of theirs.
    pub(crate) lost: Vec<String>,
}

impl Accounts {
    /// Finds the servers, and tries each command once.
    ///
    /// # Errors
    /// When one does not exist, or its CPU cannot be read: the flag, its value and what is allowed.
    pub(crate) fn open(servers: &[Named]) -> Result<Self, Usage> {
        Ok(Self(servers.iter().map(Server::open).collect::<Result<_, _>>()?))
    }

    /// Reads all clocks: a system call for each process and each cgroup, some microseconds in all.
    pub(super) fn read(&self) -> Reading {
        Reading {
            own: clock::own(),
            counted: Own::read(),
            servers: self.0.iter().map(Server::read).collect(),
        }
    }

    /// How long before the window's start and before its end to call [`Self::look`]: so that the edge comes in the
    /// middle of the commands, and no look at processes falls into the window, where it would count as the engine's.
    pub(crate) fn leads(&self) -> (Duration, Duration) {
        let most = |lead: fn(&Server) -> Duration| self.0.iter().map(lead).max().unwrap_or_default();
        (most(Server::start_lead), most(Server::end_lead))
    }

    /// Looks at processes and threads, and runs the commands, all at once; so this takes milliseconds, with commands
    /// up to [`command::PATIENCE`]. For the thread that conducts the run.
    pub(crate) fn look(&self) -> Look {
        thread::scope(|scope| {
            let sights: Vec<_> = self.0.iter().map(|server| scope.spawn(|| server.look())).collect();
            let sight = |sight: thread::ScopedJoinHandle<'_, Sight>| {
                sight.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            Look { sights: sights.into_iter().map(sight).collect(), held: Held::read() }
        })
    }

    /// What was used between the edges; `None` when the first worker has none.
    pub(crate) fn settle(&self, mut spans: Vec<Span>, looks: &(Look, Look), work: Work) -> Option<Account> {
        spans.sort_unstable_by_key(|span| span.index);
        let first = spans.first()?;
        let (window, from, to) = (first.window(), first.from.reading.as_ref()?, first.to.reading.as_ref()?);
        let seconds = window.as_secs_f64();
        let workers: Vec<WorkerCost> = spans.iter().map(worker).collect();
        let set: BTreeSet<usize> = spans.iter().flat_map(|span| &span.cores).copied().collect();
        let cores = set.len().min(spans.len()).max(1) as u32;
        let mut account = Account {
            window,
            since_boot: clock::since_boot(first.from.at),
            engine: cost(to.own.saturating_sub(from.own), window, cores, work),
            engine_rss_peak_kib: counters::rss_peak_kib(std::process::id()),
            engine_counters: counters::of_this_process(from.counted, to.counted, looks.1.held),
            workers,
            servers: Vec::new(),
            limit: Limit::Neither,
            lost: Vec::new(),
        };
        let mut all = Vec::new();
        for (index, server) in self.0.iter().enumerate() {
            let readings = (&from.servers[index][..], &to.servers[index][..]);
            let sights = (&looks.0.sights[index], &looks.1.sights[index]);
            let used = server.used(readings, sights, window).unwrap_or_else(|lost| {
                account.lost.push(lost);
                Used::nothing(server.name())
            });
            // No figure is told per request where the CPU is not known.
            let work = used.cpu.map_or(Work { requests: 0, ..work }, |_| work);
            account.servers.push(ServerCost {
                role: server.role,
                source: used.source.clone(),
                cost: Cost {
                    cores: used.cores,
                    ..cost(used.cpu.unwrap_or_default(), window, used.cores, work)
                },
                rss_peak_kib: used.rss_peak_kib,
                counters: used.counters,
                busiest_thread: used.busiest_thread.clone(),
            });
            all.push((server.role, used));
        }
        let mut parts: Vec<Part<'_>> = Vec::new();
        for (role, used) in &all {
            let who = match role {
                Role::Gateway => Limit::Gateway,
                Role::Origin => Limit::Origin,
            };
            let cpu = used.cpu.unwrap_or_default().as_secs_f64() / seconds;
            let busiest = used.busiest_thread.as_ref().map_or(0.0, |thread| thread.utilisation);
            parts.push(Part { who, cpu, most: used.most, busiest, cores: &used.set });
        }
        parts.extend(spans.iter().map(|span| Part {
            who: Limit::Load,
            cpu: span.cpu().as_secs_f64() / span.window().as_secs_f64(),
            most: 1.0,
            busiest: 0.0,
            cores: &span.cores,
        }));
        account.limit = limit::of(&parts);
        Some(account)
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

/// A cost as it stands in results. Where the number of cores is not known (0), `utilisation` is that of one core.
pub(super) fn cost(cpu: Duration, window: Duration, cores: u32, work: Work) -> Cost {
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
