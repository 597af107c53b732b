//! Current activity on the machine.

use crate::cgroup::Cgroup;
use crate::finding::{Finding, Level, Subject};
use crate::stat::{Process, Ticks, processes};
use crate::system::System;
use std::collections::BTreeMap;

/// Kernel counters at an instant.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    /// Ticks of the allowed cores.
    cores: Option<Ticks>,
    /// By PID.
    processes: BTreeMap<u32, Process>,
    /// Pages moved to and from swap.
    swapped: Option<u64>,
    pub(crate) cgroup: Option<Cgroup>,
}

/// Maximum number of other processes to name.
const NAMES: usize = 3;

/// Minimum share of a core to be named.
const TELLING: f64 = 0.05;

impl Sample {
    pub(crate) fn take(system: &System) -> Self {
        Self {
            cores: system.allowed().and_then(|cores| Ticks::read(system, &cores)),
            processes: processes(system),
            swapped: swapped(system),
            cgroup: Cgroup::read(system),
        }
    }
}

/// Other processes' use of the cores.
pub(crate) fn others(system: &System, before: &Sample, after: &Sample) -> Finding {
    let subject = Subject::new(
        "others",
        "Other processes take cores and caches from every part of a run, and from some runs more than from others.",
    );
    let (Some(from), Some(to)) = (before.cores, after.cores) else { return subject.unknown() };
    let all = to.all.saturating_sub(from.all).max(1);
    let share = to.busy.saturating_sub(from.busy) as f64 / all as f64;
    let cores = system.allowed().map_or(1, |cores| cores.len()).max(1);
    let of_one = all as f64 / cores as f64;
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for (pid, process) in after.processes.iter().filter(|(pid, _)| **pid != std::process::id()) {
        // PIDs are reused, and names change: a kernel worker changes it with each task.
        let earlier = before.processes.get(pid).filter(|earlier| earlier.started == process.started);
        let had = earlier.map_or(0, |earlier| earlier.own);
        let sum = by_name.entry(&process.name).or_default();
        *sum = sum.saturating_add(process.own.saturating_sub(had));
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
    subject
        .found(level(share, 0.03, 0.1), value, "Stop other processes, or wait for them.")
        .fix("ps -eo pid,pcpu,comm --sort=-pcpu | head")
}

pub(crate) fn load(system: &System) -> Finding {
    let subject =
        Subject::new("load", "A recently busy machine is warm, and its caches and disks have not settled.");
    let average = || system.read("proc/loadavg")?.split(' ').next()?.parse::<f64>().ok();
    let average = average().filter(|average| average.is_finite());
    let (Some(average), Some(cores)) = (average, system.allowed()) else { return subject.unknown() };
    let value = format!("{average:.2} over the last minute, on {} cores", cores.len());
    let each = average / cores.len().max(1) as f64;
    subject.found(level(each, 0.25, 0.75), value, "Wait until it drops.")
}

/// Note from `note`, bad from `bad`.
fn level(value: f64, note: f64, bad: f64) -> Level {
    match value {
        value if value >= bad => Level::Bad,
        value if value >= note => Level::Note,
        _ => Level::Good,
    }
}

/// Time stolen by the hypervisor.
pub(crate) fn steal(before: &Sample, after: &Sample) -> Finding {
    let subject = Subject::new(
        "steal",
        "While the hypervisor runs other guests on a core, a request on it waits, and no clock in the guest shows why.",
    );
    let (Some(from), Some(to)) = (before.cores, after.cores) else { return subject.unknown() };
    let share = |steal: u64, all: u64| steal as f64 / all.max(1) as f64;
    let recent = share(to.steal.saturating_sub(from.steal), to.all.saturating_sub(from.all));
    let ever = share(to.steal, to.all);
    let value = format!("{:.1} % just now, {:.1} % since boot", recent * 100.0, ever * 100.0);
    match (recent, ever) {
        (recent, _) if recent >= 0.02 => {
            subject.bad(value, "Use a host with dedicated cores, or measure at another time.")
        }
        (recent, ever) if recent > 0.0 || ever >= 0.005 => {
            subject.note(value, "Other guests use this host: measure more blocks, and check the A/A pair.")
        }
        _ => subject.good(value),
    }
}

/// Swap.
pub(crate) fn swap(system: &System, before: &Sample, after: &Sample) -> Finding {
    let subject =
        Subject::new("swap", "Reading a page back from disk costs as much as thousands of requests.");
    let kib = |name| system.number_field("proc/meminfo", name);
    let (Some(total), Some(free)) = (kib("SwapTotal"), kib("SwapFree")) else { return subject.unknown() };
    if total == 0 {
        return subject.good("none");
    }
    let used = total.saturating_sub(free);
    let moved = after.swapped.unwrap_or(0).saturating_sub(before.swapped.unwrap_or(0));
    let value = format!("{} of {} MiB used, {moved} pages moved just now", used >> 10, total >> 10);
    match (moved, used) {
        (1.., _) => subject.bad(value, "Free memory, and turn swap off.").fix("sudo swapoff -a"),
        (0, 1..) => subject
            .note(value, "Turn it off, so that no page is read back during a run.")
            .fix("sudo swapoff -a"),
        (0, 0) => subject.good(value),
    }
}

fn swapped(system: &System) -> Option<u64> {
    let number = |name| system.counter("proc/vmstat", name);
    Some(number("pswpin ")?.saturating_add(number("pswpout ")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tree, expect};

    const STAT: &str = "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 100 0 100 800 0 0 0 0 0 0\n\
                        cpu1 100 0 100 800 0 0 0 0 0 0\ncpu2 9 9 9 9 9 9 9 9 9 9\n";

    /// Before and after `later` is written.
    fn samples(tree: &Tree, later: &[(&str, &str)]) -> (Sample, Sample) {
        let before = Sample::take(&tree.system());
        later.iter().for_each(|(path, text)| tree.write(path, text.as_bytes()));
        (before, Sample::take(&tree.system()))
    }

    #[test]
    fn others_are_named_with_what_they_use() {
        let process = |pid: u32, name: &str, ticks: u64, started: u64| {
            format!("{pid} ({name}) R 1 9 9 0 -1 0 1 2 3 4 {ticks} 0 0 0 20 0 1 0 {started} 0 0")
        };
        let tree = Tree::new(&[
            ("proc/self/status", "Cpus_allowed_list:\t0-1\n"),
            ("proc/stat", STAT),
            ("proc/9/stat", &process(9, "a worker:1", 500, 5)),
            ("proc/10/stat", &process(10, "quiet", 9999, 5)),
            ("proc/11/stat", &process(11, "ended", 9999, 5)),
        ]);
        let (before, after) = samples(
            &tree,
            &[
                ("proc/stat", "cpu0 150 0 100 850 0 0 0 0 0 0\ncpu1 100 0 100 896 0 0 0 4 0 0\n"),
                ("proc/9/stat", &process(9, "cargo build", 530, 5)),
                ("proc/11/stat", &process(11, "cargo build", 15, 99)),
                (&format!("proc/{}/stat", std::process::id()), &process(7, "this program", 50, 5)),
            ],
        );
        let found = others(&tree.system(), &before, &after);
        expect(&found, Level::Bad, "25 % of 2 cores just now: cargo?build 45 % of a core");
        assert!(!found.value.contains("quiet") && !found.value.contains("this"), "{found:?}");
        expect(&steal(&before, &after), Level::Bad, "2.0 % just now, 0.2 % since boot");
        // Nothing has moved since.
        let (before, after) = samples(&tree, &[]);
        expect(&others(&tree.system(), &before, &after), Level::Good, "0 % of 2 cores");
        expect(&steal(&before, &after), Level::Good, "0.0 % just now");
    }

    #[test]
    fn the_load_is_judged_by_core() {
        let tree = Tree::new(&[
            ("proc/self/status", "Cpus_allowed_list:\t0-1\n"),
            ("proc/loadavg", "1.60 0.5 0.1 1/1 1"),
        ]);
        expect(&load(&tree.system()), Level::Bad, "1.60 over the last minute, on 2 cores");
    }

    #[test]
    fn pages_that_move_are_worse_than_pages_that_lie_there() {
        let tree = Tree::new(&[
            ("proc/meminfo", "SwapTotal: 2048 kB\nSwapFree: 1024 kB\n"),
            ("proc/vmstat", "pswpin 5\npswpout 6\n"),
        ]);
        let (before, after) = samples(&tree, &[]);
        expect(&swap(&tree.system(), &before, &after), Level::Note, "0 pages moved just now");
        let (before, after) = samples(&tree, &[("proc/vmstat", "pswpin 8\npswpout 6\n")]);
        expect(&swap(&tree.system(), &before, &after), Level::Bad, "3 pages moved just now");
    }
}
