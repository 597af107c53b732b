//! What the engine and the servers cost: CPU at the edges of the window, and who was the limit.
//!
//! Three kinds of servers are accounted:
//!
//! - **A process** with its descendants, by their CPU clocks, which count nanoseconds, read at the edges. What
//!   descendants used that came later is told by a look at the family near the edges; of those that ended in between,
//!   only their parents tell, in ticks of 10 ms.
//! - **A cgroup**, by its own account, read at the edges.
//! - **A command**'s numbers, for other machines. It is run near the edges, never on a worker's thread, its figure is
//!   taken for the middle of its run, and the CPU between both is scaled to the length of the window.

mod cgroup;
mod clock;
mod command;
mod edges;
mod family;
mod process;

pub(crate) use edges::{Edges, Span};

use crate::limit::{self, Part};
use crate::options::{Meter, Server as Named};
use crate::result::{Cost, Limit, Role, ServerCost, WorkerCost};
use crate::usage::Usage;
use cgroup::Cgroup;
use command::{Sample, Silence};
use edges::Reading;
use family::{Family, Working};
use process::Process;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

/// The servers to account.
#[derive(Debug)]
pub(crate) struct Accounts(Vec<Server>);

#[derive(Debug)]
struct Server {
    role: Role,
    gauge: Gauge,
}

/// Where a server's CPU is read.
#[derive(Debug)]
enum Gauge {
    Process(Process),
    Cgroup(Cgroup, String),
    /// And how long it took when it was tried.
    Command(String, Duration),
}

/// The servers near an edge of the window: what need not be read by a worker.
#[derive(Debug)]
pub(crate) struct Look(Vec<Sight>);

#[derive(Debug)]
struct Sight {
    family: Family,
    /// What a command told.
    sample: Option<Result<Sample, Silence>>,
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
    /// The whole process.
    pub(crate) engine: Cost,
    pub(crate) workers: Vec<WorkerCost>,
    pub(crate) servers: Vec<ServerCost>,
    /// By what each part used of its cores.
    pub(crate) limit: Limit,
    /// Servers whose CPU is not known, and why: reasons to believe no figure of theirs.
    pub(crate) lost: Vec<String>,
}

/// What one server used.
struct Used {
    cpu: Option<Duration>,
    source: String,
    /// 0 is not known.
    cores: u32,
    /// As [`Part::most`] and [`Part::cores`].
    most: f64,
    set: Vec<usize>,
    rss_peak_kib: Option<u64>,
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
    fn read(&self) -> Reading {
        let clocks = |server: &Server| match &server.gauge {
            Gauge::Process(process) => process.read(),
            Gauge::Cgroup(cgroup, _) => vec![cgroup.read()],
            Gauge::Command(..) => Vec::new(),
        };
        Reading { own: clock::own(), servers: self.0.iter().map(clocks).collect() }
    }

    /// How long before an edge to call [`Self::look`], so that the edge comes in the middle of the commands.
    pub(crate) fn lead(&self) -> Duration {
        let took = self.0.iter().map(|server| match &server.gauge {
            Gauge::Command(_, took) => *took,
            Gauge::Process(_) | Gauge::Cgroup(..) => Duration::ZERO,
        });
        took.max().unwrap_or_default() / 2
    }

    /// Looks at processes and threads, and runs the commands, all at once; so this takes milliseconds, with commands
    /// up to [`command::PATIENCE`]. For the thread that conducts the run.
    pub(crate) fn look(&self) -> Look {
        thread::scope(|scope| {
            let samples: Vec<_> = self
                .0
                .iter()
                .map(|server| match &server.gauge {
                    Gauge::Command(text, _) => Some(scope.spawn(|| command::sample(text))),
                    Gauge::Process(_) | Gauge::Cgroup(..) => None,
                })
                .collect();
            let families = self.0.iter().map(|server| match &server.gauge {
                Gauge::Process(process) => process.look(),
                Gauge::Cgroup(cgroup, _) => Family::just(cgroup.pids()),
                Gauge::Command(..) => Family::default(),
            });
            let families: Vec<Family> = families.collect();
            let sight = |(family, sample): (_, Option<thread::ScopedJoinHandle<'_, _>>)| Sight {
                family,
                sample: sample
                    .map(|sample| sample.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
            };
            Look(families.into_iter().zip(samples).map(sight).collect())
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
            engine: cost(to.own.saturating_sub(from.own), window, cores, work),
            workers,
            servers: Vec::new(),
            limit: Limit::Neither,
            lost: Vec::new(),
        };
        let mut all = Vec::new();
        for (index, server) in self.0.iter().enumerate() {
            let readings = (&from.servers[index][..], &to.servers[index][..]);
            let sights = (&looks.0.0[index], &looks.1.0[index]);
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
            parts.push(Part { who, cpu, most: used.most, cores: &used.set });
        }
        parts.extend(spans.iter().map(|span| Part {
            who: Limit::Load,
            cpu: span.cpu().as_secs_f64() / span.window().as_secs_f64(),
            most: 1.0,
            cores: &span.cores,
        }));
        account.limit = limit::of(&parts);
        Some(account)
    }
}

impl Server {
    fn open(Named { role, meter }: &Named) -> Result<Self, Usage> {
        let gauge = match meter {
            Meter::Process(pid) => match Process::open(*pid) {
                Some(process) => Gauge::Process(process),
                None => return Err(Usage::new("--pid", &pid.to_string(), PIDS)),
            },
            Meter::Cgroup(directory) => {
                let name = directory.display().to_string();
                match Cgroup::open(directory) {
                    Ok(cgroup) => Gauge::Cgroup(cgroup, name),
                    Err(error) => {
                        return Err(Usage::new("--cgroup", &name, &format!("{CGROUPS}; here: {error}")));
                    }
                }
            }
            Meter::Command(text) => match command::sample(text) {
                Ok(sample) => Gauge::Command(text.clone(), sample.took),
                Err(silence) => {
                    let allowed = format!("{COMMANDS}; when it was tried, {silence}");
                    return Err(Usage::new("--cpu-command", text, &allowed));
                }
            },
        };
        Ok(Self { role: *role, gauge })
    }

    fn name(&self) -> String {
        match &self.gauge {
            Gauge::Process(process) => format!("process {}", process.pid),
            Gauge::Cgroup(_, name) => format!("cgroup {name}"),
            Gauge::Command(text, _) => format!("command {text}"),
        }
    }

    /// What it used, or why that is not known.
    fn used(
        &self,
        readings: (&[Option<Duration>], &[Option<Duration>]),
        (before, after): (&Sight, &Sight),
        window: Duration,
    ) -> Result<Used, String> {
        let mut source = self.name();
        let looks = (&before.family, &after.family);
        match &self.gauge {
            Gauge::Process(process) => {
                if readings.1.first().is_none_or(Option::is_none) {
                    return Err(format!("process {} ended before the window did", process.pid));
                }
                let (cpu, ended) = process.used(readings, looks);
                if ended.known > 0 || !ended.cpu.is_zero() {
                    let seconds = ended.cpu.as_secs_f64();
                    let _ =
                        write!(source, " ({seconds:.2} s of it by processes that ended, in ticks of 10 ms)");
                }
                let working = after.family.working_since(&before.family, window);
                Ok(Used::by(cpu, source, working, None, Some(after.family.rss_peak_kib())))
            }
            Gauge::Cgroup(cgroup, _) => {
                let (Some(Some(from)), Some(Some(to))) = (readings.0.first(), readings.1.first()) else {
                    return Err(format!("{source} was gone before the window's end"));
                };
                let working = after.family.working_since(&before.family, window);
                let cpu = to.saturating_sub(*from);
                Ok(Used::by(cpu, source, working, cgroup.quota(), cgroup.memory_peak_kib()))
            }
            Gauge::Command(..) => {
                let sample = |sight: &Sight, edge| match &sight.sample {
                    Some(Ok(sample)) => Ok(*sample),
                    Some(Err(silence)) => Err(format!("{source} at the window's {edge}: {silence}")),
                    None => Err(format!("{source} was not run at the window's {edge}")),
                };
                let (from, to) = (sample(before, "start")?, sample(after, "end")?);
                let (cpu, apart) = command::scaled(&from, &to, window)
                    .ok_or_else(|| format!("{source} told less CPU at the window's end than at its start"))?;
                let (apart, window) = (apart.as_secs_f64(), window.as_secs_f64());
                let _ = write!(
                    source,
                    " (scaled from {apart:.3} s to the window of {window:.3} s; cores not known)"
                );
                Ok(Used { cpu: Some(cpu), ..Used::nothing(source) })
            }
        }
    }
}

const PIDS: &str = "[gateway=|origin=]PID, the id of a process that runs";

const CGROUPS: &str = "[gateway=|origin=]DIR, the directory of a cgroup with `usage_usec` in cpu.stat \
                       (version 2) or with cpuacct.usage (version 1)";

const COMMANDS: &str = "[gateway=|origin=]COMMAND, a shell command that prints within 5 s the CPU used so far: \
                        seconds as a decimal number, a cgroup's cpu.stat, or lines of \
                        /proc/PID/task/*/schedstat";

impl Used {
    /// By threads of this machine.
    fn by(
        cpu: Duration,
        source: String,
        working: Working,
        quota: Option<f64>,
        rss_peak_kib: Option<u64>,
    ) -> Self {
        let cores = working.usable();
        let most = f64::from(cores).min(quota.unwrap_or(f64::INFINITY));
        Self { cpu: Some(cpu), source, cores, most, set: working.cores, rss_peak_kib }
    }

    fn nothing(source: String) -> Self {
        Self { cpu: None, source, cores: 0, most: 0.0, set: Vec::new(), rss_peak_kib: None }
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
