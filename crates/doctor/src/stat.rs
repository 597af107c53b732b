//! Kernel counters in ticks: /proc/stat for the cores, /proc/PID/stat for each process (proc(5)).

use crate::proc::Stat;
use crate::system::System;
use std::collections::BTreeMap;

/// Ticks of cores since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// User, nice, system, irq and softirq.
    pub(crate) busy: u64,
    /// Stolen by the hypervisor for other guests.
    pub(crate) steal: u64,
    pub(crate) all: u64,
}

/// The fields of busy ticks in a core's line.
const BUSY: [usize; 5] = [0, 1, 2, 5, 6];
const STEAL: usize = 7;
/// The guest fields after these are included in user time.
const COUNTED: usize = 8;

impl Ticks {
    /// Sum over these cores; `None` if one is missing.
    pub(crate) fn read(system: &System, cores: &[usize]) -> Option<Self> {
        Self::of(&system.read("proc/stat")?, cores)
    }

    fn of(stat: &str, cores: &[usize]) -> Option<Self> {
        let mut sum = Self::default();
        for core in cores {
            let name = format!("cpu{core} ");
            let line = stat.lines().find_map(|line| line.strip_prefix(&name))?;
            let words = line.split_whitespace().map_while(|word| word.parse().ok());
            let ticks: Vec<u64> = words.take(COUNTED).collect();
            let busy = BUSY.iter().filter_map(|field| ticks.get(*field)).copied();
            sum.busy = busy.fold(sum.busy, u64::saturating_add);
            sum.steal = sum.steal.saturating_add(ticks.get(STEAL).copied().unwrap_or(0));
            sum.all = ticks.into_iter().fold(sum.all, u64::saturating_add);
        }
        Some(sum)
    }
}

/// A process, alive or a zombie, and its ticks so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    /// First 15 bytes, made printable.
    pub(crate) name: String,
    pub(crate) group: u32,
    /// Ticks since boot when it started.
    pub(crate) started: u64,
    /// Own ticks.
    pub(crate) own: u64,
    /// Ticks of its reaped children.
    pub(crate) children: u64,
}

/// All processes, by PID.
pub(crate) fn processes(system: &System) -> BTreeMap<u32, Process> {
    let pids = system.list("proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
    let one = |pid: u32| Some((pid, Process::of(&system.read(&format!("proc/{pid}/stat"))?)?));
    pids.filter_map(one).collect()
}

impl Process {
    fn of(line: &str) -> Option<Self> {
        let stat = Stat::parse(line)?;
        let field = |number| stat.field(number);
        Some(Self {
            name: stat.name.chars().map(|c| if c.is_ascii_graphic() { c } else { '?' }).take(15).collect(),
            group: u32::try_from(field(5)?).ok()?,
            started: field(22)?,
            own: field(14)?.saturating_add(field(15)?),
            children: field(16)?.saturating_add(field(17)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cores_asked_for_are_summed() {
        let stat = "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 10 1 5 900 7 2 3 50 9 0\ncpu1 20 0 5 900 7 0 1 50 0 0\ncpu10 1 1 1 1 1 1 1\n";
        assert_eq!(Ticks::of(stat, &[0]), Some(Ticks { busy: 21, steal: 50, all: 978 }));
        assert_eq!(Ticks::of(stat, &[0, 1]), Some(Ticks { busy: 47, steal: 100, all: 1961 }));
        assert_eq!(Ticks::of(stat, &[10]), Some(Ticks { busy: 5, steal: 0, all: 7 }));
        assert_eq!(Ticks::of(stat, &[7]), None);
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_is_no_trouble() {
        let stat = "42 (a) b (c) S 1 77 42 0 -1 4194304 100 0 0 0 5 6 7 8 20 0 1 0 100 0 0";
        let expected = Process { name: "a)?b?(c".into(), group: 77, started: 100, own: 11, children: 15 };
        assert_eq!(Process::of(stat), Some(expected));
        assert_eq!(Process::of("42 (short) S 1 77"), None);
    }
}
