//! One accounted server: its CPU source and its usage.

use super::cgroup::Cgroup;
use super::command::{self, Sample, Silence};
use super::counters;
use super::family::Family;
use super::process::Process;
use crate::options::{Meter, Server as Named};
use crate::result::{BusyThread, Role, ServerCost};
use crate::usage::Usage;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Server {
    role: Role,
    gauge: Gauge,
    /// How long the trial scan took.
    look: Duration,
}

#[derive(Debug)]
enum Gauge {
    Process(Process),
    Cgroup(Cgroup, String),
    Command(String),
}

#[derive(Debug)]
pub(super) struct Sight {
    family: Family,
    /// When the scan was complete.
    at: Instant,
    sample: Option<Result<Sample, Silence>>,
}

#[derive(Default)]
pub(super) struct Used {
    pub(super) cpu: Option<Duration>,
    /// As [`crate::limit::Part::most`] and [`crate::limit::Part::cores`].
    pub(super) most: f64,
    pub(super) set: Vec<usize>,
    /// Its entry in the result. The CPU is added later; 0 cores means unknown.
    pub(super) report: ServerCost,
}

impl Sight {
    fn busiest_since(&self, before: &Self) -> Option<BusyThread> {
        let (name, used) = self.family.busiest_since(&before.family)?;
        let utilisation = used.as_secs_f64() / self.at.duration_since(before.at).as_secs_f64().max(1e-9);
        Some(BusyThread { name: name.to_owned(), utilisation })
    }
}

impl Server {
    pub(super) fn open(named: &Named) -> Result<Self, Usage> {
        let started = Instant::now();
        let gauge = match &named.meter {
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
                Ok(_) => Gauge::Command(text.clone()),
                Err(silence) => {
                    let expected = format!("{COMMANDS}; the trial run failed: {silence}");
                    return Err(Usage::new("--cpu-command", text, &expected));
                }
            },
        };
        Ok(Self { role: named.role, gauge, look: started.elapsed() })
    }

    /// An entry with nothing but its name.
    pub(super) fn report(&self) -> ServerCost {
        let source = match &self.gauge {
            Gauge::Process(process) => format!("process {}", process.pid),
            Gauge::Cgroup(_, name) => format!("cgroup {name}"),
            Gauge::Command(text) => format!("command {text}"),
        };
        ServerCost { role: self.role, source, ..ServerCost::default() }
    }

    /// Its clocks; empty for a command.
    pub(super) fn read(&self) -> Vec<Option<Duration>> {
        match &self.gauge {
            Gauge::Process(process) => process.read(),
            Gauge::Cgroup(cgroup, _) => vec![cgroup.read()],
            Gauge::Command(_) => Vec::new(),
        }
    }

    /// How long before each edge of the window to start a scan.
    pub(super) fn leads(&self) -> (Duration, Duration) {
        match &self.gauge {
            Gauge::Command(_) => (self.look / 2, self.look / 2),
            Gauge::Process(_) | Gauge::Cgroup(..) => (self.look, Duration::ZERO),
        }
    }

    /// Scans its processes and threads, or runs its command.
    pub(super) fn look(&self) -> Sight {
        let (family, sample) = match &self.gauge {
            Gauge::Process(process) => (process.look(), None),
            Gauge::Cgroup(cgroup, _) => (Family::just(cgroup.pids()), None),
            Gauge::Command(text) => (Family::default(), Some(command::sample(text))),
        };
        Sight { family, at: Instant::now(), sample }
    }

    /// Its usage, or why it is unknown.
    pub(super) fn used(
        &self,
        readings: (&[Option<Duration>], &[Option<Duration>]),
        (before, after): (&Sight, &Sight),
        window: Duration,
    ) -> Result<Used, String> {
        let mut report = self.report();
        let source = &mut report.source;
        let looks = (&before.family, &after.family);
        match &self.gauge {
            Gauge::Process(process) => {
                if readings.1.first().is_none_or(Option::is_none) {
                    return Err(format!("process {} exited before the window's end", process.pid));
                }
                let (cpu, ended) = process.used(readings, looks);
                if ended.known > 0 || !ended.cpu.is_zero() {
                    let seconds = ended.cpu.as_secs_f64();
                    let _ = write!(source, " ({seconds:.2} s of it by exited processes, in 10 ms ticks)");
                }
                report.rss_peak_kib = Some(after.family.rss_peak_kib());
                report.counters = counters::between(looks.0, looks.1);
                Ok(Used::by(cpu, None, (before, after), window, report))
            }
            Gauge::Cgroup(cgroup, _) => {
                let (Some(Some(from)), Some(Some(to))) = (readings.0.first(), readings.1.first()) else {
                    return Err(format!("{source} disappeared before the window's end"));
                };
                report.rss_peak_kib = cgroup.memory_peak_kib();
                Ok(Used::by(to.saturating_sub(*from), cgroup.quota(), (before, after), window, report))
            }
            Gauge::Command(_) => {
                let sample = |sight: &Sight, edge| match &sight.sample {
                    Some(Ok(sample)) => Ok(*sample),
                    Some(Err(silence)) => Err(format!("{source} at the window's {edge}: {silence}")),
                    None => Err(format!("{source} was not run at the window's {edge}")),
                };
                let (from, to) = (sample(before, "start")?, sample(after, "end")?);
                let (cpu, apart) = command::scaled(&from, &to, window).ok_or_else(|| {
                    format!("{source} reported less CPU at the window's end than at its start")
                })?;
                let (apart, window) = (apart.as_secs_f64(), window.as_secs_f64());
                let _ = write!(
                    source,
                    " (scaled from {apart:.3} s to the window of {window:.3} s; cores unknown)"
                );
                Ok(Used { cpu: Some(cpu), report, ..Used::default() })
            }
        }
    }
}

const PIDS: &str = "[gateway=|origin=]PID, the PID of a running process";

const CGROUPS: &str = "[gateway=|origin=]DIR, the directory of a cgroup with `usage_usec` in cpu.stat \
                       (version 2) or with cpuacct.usage (version 1)";

const COMMANDS: &str = "[gateway=|origin=]COMMAND, a shell command that prints within 5 s the CPU used so far: \
                        seconds as a decimal number, a cgroup's cpu.stat, or lines of \
                        /proc/PID/task/*/schedstat";

impl Used {
    /// From threads on this machine.
    fn by(
        cpu: Duration,
        quota: Option<f64>,
        (before, after): (&Sight, &Sight),
        window: Duration,
        mut report: ServerCost,
    ) -> Self {
        let working = after.family.working_since(&before.family, window);
        report.cost.cores = working.usable();
        report.busiest_thread = after.busiest_since(before);
        let most = f64::from(report.cost.cores).min(quota.unwrap_or(f64::INFINITY));
        Self { cpu: Some(cpu), most, set: working.cores, report }
    }
}
