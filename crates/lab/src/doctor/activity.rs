//! What happens on the machine just now.

use super::system::System;
use super::{Finding, Subject};
use crate::busy;
use std::collections::BTreeMap;

/// What the kernel has counted at an instant.
#[derive(Debug, Default)]
pub(super) struct Sample {
    /// Of the allowed cores, in ticks.
    cores: Option<Ticks>,
    /// Each process but this one, by its id.
    processes: BTreeMap<u32, Process>,
    /// Pages moved to and from swap.
    swapped: Option<u64>,
    cgroup: Option<Cgroup>,
}

/// Ticks of cores since the machine was booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    steal: u64,
    all: u64,
}

/// What a process has used so far, in ticks.
#[derive(Debug)]
struct Process {
    name: String,
    started: u64,
    ticks: u64,
}

/// The cgroup of this process whose quota binds: its own or one above.
#[derive(Clone, Debug, PartialEq)]
struct Cgroup {
    version: u8,
    /// The smallest quota in cores, and where it stands.
    quota: Option<(f64, String)>,
    /// How often it has held its processes back.
    throttled: Option<u64>,
}

/// As many names of other processes are told.
const NAMES: usize = 3;

/// And only those that used this share of a core.
const TELLING: f64 = 0.05;

impl Sample {
    pub(super) fn take(system: &System) -> Self {
        Self {
            cores: system.allowed().and_then(|cores| ticks(&system.read("proc/stat")?, &cores)),
            processes: processes(system),
            swapped: swapped(system),
            cgroup: Cgroup::read(system),
        }
    }
}

/// Other processes' use of the cores.
pub(super) fn others(system: &System, before: &Sample, after: &Sample) -> Finding {
    let subject = Subject::new(
        "others",
        "What else runs takes cores and caches from all parts of a run, and not from all runs alike.",
    );
    let (Some(from), Some(to)) = (before.cores, after.cores) else { return subject.unknown() };
    let all = to.all.saturating_sub(from.all).max(1);
    let share = to.busy.saturating_sub(from.busy) as f64 / all as f64;
    let cores = system.allowed().map_or(1, |cores| cores.len()).max(1);
    let of_one = all as f64 / cores as f64;
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for (pid, process) in &after.processes {
        // The id may be another process's now; its name may change, and a kernel's worker changes it with each task.
        let earlier = before.processes.get(pid).filter(|earlier| earlier.started == process.started);
        let had = earlier.map_or(0, |earlier| earlier.ticks);
        let sum = by_name.entry(&process.name).or_default();
        *sum = sum.saturating_add(process.ticks.saturating_sub(had));
    }
    let mut users: Vec<(u64, &str)> = by_name.into_iter().map(|(name, ticks)| (ticks, name)).collect();
    users.retain(|(ticks, _)| *ticks as f64 >= TELLING * of_one);
    users.sort_unstable_by_key(|(ticks, _)| std::cmp::Reverse(*ticks));
    let users: Vec<String> = users
        .iter()
        .take(NAMES)
        .map(|(ticks, name)| format!("{name} {:.0} % of a core", 100.0 * *ticks as f64 / of_one))
        .collect();
    let mut value = format!("{:.0} % of {cores} cores just now", share * 100.0);
    if !users.is_empty() {
        value += &format!(": {}", users.join(", "));
    }
    let advice = "End what else runs, or wait until it has.";
    match share {
        share if share >= 0.1 => subject.bad(value, advice),
        share if share >= 0.03 => subject.note(value, advice),
        _ => subject.good(value),
    }
    .mend_unless_good("ps -eo pid,pcpu,comm --sort=-pcpu | head")
}

/// The load average.
pub(super) fn load(system: &System) -> Finding {
    let subject = Subject::new(
        "load",
        "A machine that was just busy is warm, and its caches and disks are not at rest.",
    );
    let average = || system.read("proc/loadavg")?.split(' ').next()?.parse::<f64>().ok();
    let average = average().filter(|average| average.is_finite());
    let (Some(average), Some(cores)) = (average, system.allowed()) else { return subject.unknown() };
    let value = format!("{average:.2} over the last minute, on {} cores", cores.len());
    let advice = "Wait until it has fallen.";
    match average / cores.len().max(1) as f64 {
        each if each >= 0.75 => subject.bad(value, advice),
        each if each >= 0.25 => subject.note(value, advice),
        _ => subject.good(value),
    }
}

/// What the hypervisor gave to others.
pub(super) fn steal(_: &System, before: &Sample, after: &Sample) -> Finding {
    let subject = Subject::new(
        "steal",
        "While the hypervisor runs other guests on a core, a request on it waits, and no clock of ours says why.",
    );
    let (Some(from), Some(to)) = (before.cores, after.cores) else { return subject.unknown() };
    let share = |steal: u64, all: u64| steal as f64 / all.max(1) as f64;
    let recent = share(to.steal.saturating_sub(from.steal), to.all.saturating_sub(from.all));
    let ever = share(to.steal, to.all);
    let value = format!("{:.1} % just now, {:.1} % since boot", recent * 100.0, ever * 100.0);
    match (recent, ever) {
        (recent, _) if recent >= 0.02 => {
            subject.bad(value, "Move to a host with cores of its own, or measure at another time.")
        }
        (recent, ever) if recent > 0.0 || ever >= 0.005 => {
            subject.note(value, "Neighbours use this host: measure more blocks, and look at the A/A pair.")
        }
        _ => subject.good(value),
    }
}

/// The CPU quota, and whether it binds.
pub(super) fn cgroup(system: &System, before: &Sample, after: &Sample) -> Finding {
    let subject = Subject::new(
        "cgroup",
        "A quota stops all threads of the cgroup for the rest of each period, mostly of 100 ms, once it is used up: that \
         is in the tail of every latency.",
    );
    let Some(cgroup) = &after.cgroup else { return subject.unknown() };
    let Some((quota, place)) = &cgroup.quota else {
        return subject.good(format!("no CPU quota (version {})", cgroup.version));
    };
    let earlier = before.cgroup.as_ref().and_then(|cgroup| cgroup.throttled);
    let throttled = match (cgroup.throttled, earlier) {
        (Some(all), Some(earlier)) => {
            format!("throttled {all} times, {} just now", all.saturating_sub(earlier))
        }
        _ => "throttling unknown".to_owned(),
    };
    let value = format!("{quota:.2} cores by {place} (version {}), {throttled}", cgroup.version);
    let allowed = system.allowed().map_or(1, |cores| cores.len());
    if *quota < allowed as f64 || cgroup.throttled > earlier {
        subject
            .bad(value, "Run without a CPU limit: give whole cores instead (cpuset, docker --cpuset-cpus).")
    } else {
        subject.note(value, "It is no less than the cores allowed, but threads may still be stopped by it.")
    }
}

/// Memory on disk.
pub(super) fn swap(system: &System, before: &Sample, after: &Sample) -> Finding {
    let subject = Subject::new(
        "swap",
        "A page that has to come back from a disk costs as much as thousands of requests.",
    );
    let kib = |name| system.number_field("proc/meminfo", name);
    let (Some(total), Some(free)) = (kib("SwapTotal"), kib("SwapFree")) else { return subject.unknown() };
    if total == 0 {
        return subject.good("none");
    }
    let used = total.saturating_sub(free);
    let moved = after.swapped.unwrap_or(0).saturating_sub(before.swapped.unwrap_or(0));
    let value = format!("{} of {} MiB used, {moved} pages moved just now", used >> 10, total >> 10);
    match (moved, used) {
        (1.., _) => subject.bad(value, "Free memory, and turn it off.").mend("sudo swapoff -a"),
        (0, 1..) => subject
            .note(value, "Turn it off, so that nothing comes back from it meanwhile.")
            .mend("sudo swapoff -a"),
        (0, 0) => subject.good(value),
    }
}

impl Finding {
    fn mend_unless_good(self, command: &str) -> Self {
        if self.level == super::Level::Good { self } else { self.mend(command) }
    }
}

impl Cgroup {
    /// Version 2, or 1 where its controller for CPU is mounted.
    fn read(system: &System) -> Option<Self> {
        let membership = system.read("proc/self/cgroup")?;
        let mut found: Option<Self> = None;
        for line in membership.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            let is_cpu = controllers.split(',').any(|name| name == "cpu");
            let (version, mounts): (u8, &[&str]) = match controllers {
                "" => (2, &["sys/fs/cgroup", "sys/fs/cgroup/unified"]),
                _ if is_cpu => (1, &["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"]),
                _ => continue,
            };
            let one = Self::at(system, version, mounts, path);
            // Where both are mounted, the one with a quota has the controller.
            if found.as_ref().is_none_or(|found| found.quota.is_none())
                && (one.quota.is_some() || found.is_none())
            {
                found = Some(one);
            }
        }
        found
    }

    /// A quota above binds as well. A container sees its own cgroup under its path or as the root of the mount.
    fn at(system: &System, version: u8, mounts: &[&str], path: &str) -> Self {
        let mut least: Option<(f64, String)> = None;
        let mut throttled = None;
        for mount in mounts {
            for above in std::path::Path::new(path).ancestors() {
                let directory = format!("{mount}{}", above.display());
                let directory = directory.trim_end_matches('/');
                let Some(quota) = quota(system, version, directory) else { continue };
                if least.as_ref().is_none_or(|(least, _)| quota < *least) {
                    throttled = system.read(&format!("{directory}/cpu.stat")).and_then(|text| {
                        text.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.parse().ok())
                    });
                    least = Some((quota, above.display().to_string()));
                }
            }
        }
        Self { version, quota: least, throttled }
    }
}

/// In cores; `None` without one.
fn quota(system: &System, version: u8, directory: &str) -> Option<f64> {
    let (quota, period) = match version {
        2 => {
            let text = system.read(&format!("{directory}/cpu.max"))?;
            let (quota, period) = text.split_once(' ')?;
            (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?)
        }
        _ => (
            system.number(&format!("{directory}/cpu.cfs_quota_us"))?,
            system.number(&format!("{directory}/cpu.cfs_period_us"))?,
        ),
    };
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

/// Of these cores in /proc/stat; `None` when one of them is not in it.
fn ticks(stat: &str, cores: &[usize]) -> Option<Ticks> {
    let mut sum = Ticks { busy: busy::sum_busy(stat, cores)?, steal: 0, all: 0 };
    for core in cores {
        let name = format!("cpu{core} ");
        let line = stat.lines().find_map(|line| line.strip_prefix(&name))?;
        // Guests' time, behind these eight, is in that of users.
        let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).take(8).collect();
        sum.steal = sum.steal.saturating_add(ticks.get(7).copied().unwrap_or(0));
        sum.all = ticks.into_iter().fold(sum.all, u64::saturating_add);
    }
    Some(sum)
}

fn processes(system: &System) -> BTreeMap<u32, Process> {
    let pids = system.list("proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
    let one = |pid: u32| Some((pid, process(&system.read(&format!("proc/{pid}/stat"))?)?));
    pids.filter(|pid| *pid != std::process::id()).filter_map(one).collect()
}

/// A `/proc/PID/stat`, whose second field may hold anything between its parentheses.
fn process(stat: &str) -> Option<Process> {
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Process {
        name: name.chars().map(|c| if c.is_ascii_graphic() { c } else { '?' }).take(15).collect(),
        started: field(22)?,
        ticks: field(14)?.saturating_add(field(15)?),
    })
}

fn swapped(system: &System) -> Option<u64> {
    let text = system.read("proc/vmstat")?;
    let number =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some(number("pswpin ")?.saturating_add(number("pswpout ")?))
}
