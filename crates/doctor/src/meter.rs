//! CPU taken from a run's cores by unrelated processes.

use crate::stat::{Ticks, processes};
use crate::system::System;
use rustix::param::clock_ticks_per_second;
use std::time::Instant;

/// The foreign load on the cores, as shares from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taken {
    /// Processes that have nothing to do with the run.
    pub foreign: f64,
    /// Other guests on the hypervisor.
    pub stolen: f64,
}

/// From [`Meter::begin`] to [`Meter::taken`]. Call both outside the measured window: each takes milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    began: Instant,
    ticks: Ticks,
    own: u64,
}

impl Meter {
    /// Starts; `groups` are the process groups of the run so far. `None` if unavailable.
    pub fn begin(cores: &[usize], groups: &[u32]) -> Option<Self> {
        let system = System::local();
        let began = Instant::now();
        Some(Self { began, ticks: Ticks::read(&system, cores)?, own: of_groups(&system, groups) })
    }

    /// The foreign load since then. Ticks of 10 ms make it coarse: good enough to tell a busy machine from a quiet one.
    /// Call it before reaping exited processes.
    pub fn taken(&self, cores: &[usize], groups: &[u32]) -> Option<Taken> {
        let system = System::local();
        let now = Ticks::read(&system, cores)?;
        let busy = now.busy.saturating_sub(self.ticks.busy);
        let own = of_groups(&system, groups).saturating_sub(self.own);
        let available =
            self.began.elapsed().as_secs_f64() * clock_ticks_per_second() as f64 * cores.len() as f64;
        let share = |ticks: u64| (ticks as f64 / available.max(1.0)).min(1.0);
        let stolen = now.steal.saturating_sub(self.ticks.steal);
        Some(Taken { foreign: share(busy.saturating_sub(own)), stolen: share(stolen) })
    }
}

/// CPU of the living and zombie members of process groups, their reaped children included.
fn of_groups(system: &System, groups: &[u32]) -> u64 {
    let members = processes(system).into_values().filter(|process| groups.contains(&process.group));
    members.fold(0, |sum, process| sum.saturating_add(process.own).saturating_add(process.children))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn members_of_the_groups_are_summed_with_their_children() {
        let stat =
            |group: u32, ticks: &str| format!("7 (x) S 1 {group} 7 0 -1 0 0 0 0 0 {ticks} 20 0 1 0 100");
        let tree = Tree::new(&[
            ("proc/7/stat", &stat(7, "1 2 3 4")),
            ("proc/8/stat", &stat(7, "10 0 0 0")),
            ("proc/9/stat", &stat(9, "100 0 0 0")),
            ("proc/10/stat", &stat(10, "1000 0 0 0")),
        ]);
        assert_eq!(of_groups(&tree.system(), &[7, 9]), 120);
        assert_eq!(of_groups(&tree.system(), &[]), 0);
    }

    #[test]
    fn this_machine_tells() {
        let core = System::local().allowed().expect("cores")[0];
        let meter = Meter::begin(&[core], &[]).expect("/proc/stat");
        let Taken { foreign, stolen } = meter.taken(&[core], &[]).expect("/proc/stat");
        assert!((0.0..=1.0).contains(&foreign) && (0.0..=1.0).contains(&stolen));
    }
}
