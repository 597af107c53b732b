//! How much of a run's cores went to processes that have nothing to do with it.

use crate::stats;
use rustix::param::clock_ticks_per_second;
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::Instant;
use weir_load::plural;

/// From here to [`Meter::foreign_share`]. Both ends lie outside the measured window: reading costs a few milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    began: Instant,
    busy: u64,
    own: u64,
}

impl Meter {
    /// Begins; `groups` are the process groups of the run so far. `None` where the system does not tell.
    pub(crate) fn begin(cores: &[usize], groups: &[u32]) -> Option<Self> {
        Some(Self { began: Instant::now(), busy: busy_ticks(cores)?, own: group_ticks(groups) })
    }

    /// The share of the cores' time since that other processes used, from 0 to 1. Ticks of 10 ms make it coarse: it
    /// tells a busy machine from a quiet one, and no more. Processes that have ended must not have been reaped yet.
    pub(crate) fn foreign_share(&self, cores: &[usize], groups: &[u32]) -> Option<f64> {
        let busy = busy_ticks(cores)?.saturating_sub(self.busy);
        let own = group_ticks(groups).saturating_sub(self.own);
        let available =
            self.began.elapsed().as_secs_f64() * clock_ticks_per_second() as f64 * cores.len() as f64;
        Some((busy.saturating_sub(own) as f64 / available.max(1.0)).min(1.0))
    }
}

/// What processes outside the experiment used of its cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Foreign {
    /// Median share over the runs of the blocks, from 0 to 1; null where the system does not tell.
    pub median: Option<f64>,
    /// Runs in which it was above [`FOREIGN_MUCH`].
    pub much: u32,
    /// All runs of the blocks.
    pub runs: u32,
}

/// Such a share of foreign work is more than the few per cent that a quiet machine and the lab itself need.
pub const FOREIGN_MUCH: f64 = 0.1;

impl Foreign {
    /// From the share in each run; `None` where it is not known.
    pub(crate) fn of(shares: impl Iterator<Item = Option<f64>>) -> Self {
        let all: Vec<Option<f64>> = shares.collect();
        let known: Vec<f64> = all.iter().copied().flatten().collect();
        let much = known.iter().filter(|share| **share > FOREIGN_MUCH).count() as u32;
        Self { median: stats::median(&known), much, runs: all.len() as u32 }
    }

    /// What has to be known of it before any number is read: nothing on a machine that was quiet in nine of ten runs.
    pub(crate) fn label(&self) -> Option<String> {
        let Self { median, much, runs } = *self;
        let median = median.filter(|_| much * 10 > runs)?;
        Some(format!(
            "BUSY: in {much} of {} other processes used more than {:.0} % of the cores (median {:.0} %). Costs and \
             latencies are worse and less certain than on a quiet machine.",
            plural(runs.into(), "run"),
            FOREIGN_MUCH * 100.0,
            median * 100.0,
        ))
    }
}

/// What the cores have worked since the machine started: user, nice, system, irq and softirq.
fn busy_ticks(cores: &[usize]) -> Option<u64> {
    sum_busy(&fs::read_to_string("/proc/stat").ok()?, cores)
}

pub(crate) fn sum_busy(stat: &str, cores: &[usize]) -> Option<u64> {
    let mut sum = 0;
    for core in cores {
        let name = format!("cpu{core} ");
        let line = stat.lines().find_map(|line| line.strip_prefix(&name))?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let busy = [0, 1, 2, 5, 6].iter().filter_map(|field| ticks.get(*field));
        sum = busy.copied().fold(sum, u64::saturating_add);
    }
    Some(sum)
}

/// What the living and unreaped members of process groups have used, their reaped children included.
fn group_ticks(groups: &[u32]) -> u64 {
    let mut sum = 0;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit)
            && let Ok(stat) = fs::read_to_string(entry.path().join("stat"))
            && let Some((group, ticks)) = of_stat(&stat)
            && groups.contains(&group)
        {
            sum += ticks;
        }
    }
    sum
}

/// Group and ticks of a `/proc/PID/stat`, whose second field may hold anything between its parentheses.
fn of_stat(stat: &str) -> Option<(u32, u64)> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // Counted from the third field of the whole: 2 is the group, 11 to 14 are utime, stime, cutime, cstime.
    let ticks = fields.get(11..15)?.iter().filter_map(|word| word.parse::<u64>().ok()).sum();
    Some((fields.get(2)?.parse().ok()?, ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cores_asked_for_are_summed() {
        let stat = "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 10 1 5 900 7 2 3 50 0 0\ncpu1 20 0 5 900 7 0 1 50 0 0\ncpu10 1 1 1 1 1 1 1\n";
        assert_eq!(sum_busy(stat, &[0]), Some(21));
        assert_eq!(sum_busy(stat, &[0, 1]), Some(47));
        assert_eq!(sum_busy(stat, &[7]), None);
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_is_no_trouble() {
        let stat = "42 (a) b (c) S 1 77 42 0 -1 4194304 100 0 0 0 5 6 7 8 20 0 1 0 100 0 0";
        assert_eq!(of_stat(stat), Some((77, 26)));
    }

    #[test]
    fn a_machine_is_called_busy_where_more_than_one_run_in_ten_was_disturbed() {
        let label = |shares: &[Option<f64>]| Foreign::of(shares.iter().copied()).label();
        assert_eq!(label(&[]), None);
        assert_eq!(label(&[None, None]), None, "older results do not tell");
        let mut runs = vec![Some(0.02); 10];
        runs[0] = Some(0.3);
        assert_eq!(label(&runs), None);
        runs[1] = Some(0.5);
        let said = label(&runs).expect("two of ten");
        assert!(said.starts_with("BUSY: in 2 of 10 runs other processes used more than 10 %"), "{said}");
        let one = label(&[Some(0.4)]).expect("all of one");
        assert!(one.contains("in 1 of 1 run other") && one.contains("(median 40 %)"), "{one}");
    }

    #[test]
    fn this_machine_tells() {
        let core = crate::process::allowed_cores().expect("cores")[0];
        let meter = Meter::begin(&[core], &[]).expect("/proc/stat");
        let share = meter.foreign_share(&[core], &[]).expect("/proc/stat");
        assert!((0.0..=1.0).contains(&share));
    }
}
