//! The CPU quota of a process's cgroup.

use crate::finding::{Finding, Subject};
use crate::system::{SELF, System};

/// The cgroup whose quota limits a process: its own or an ancestor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cgroup {
    version: u8,
    /// The smallest quota in cores, and its cgroup.
    quota: Option<(f64, String)>,
    /// How often it was throttled.
    throttled: Option<u64>,
}

/// The cores that a process may use: those of its affinity, and no more than its CPU quota; `None` if it does not exist.
pub fn usable_cores(pid: u32) -> Option<f64> {
    usable(&System::local(), &pid.to_string())
}

fn usable(system: &System, process: &str) -> Option<f64> {
    let allowed = system.allowed_of(process)?.len() as f64;
    let quota = Cgroup::of(system, process).and_then(|cgroup| cgroup.quota);
    Some(quota.map_or(allowed, |(quota, _)| quota.min(allowed)))
}

/// The CPU quota, and whether it limits this process.
pub(crate) fn quota(system: &System, before: Option<&Cgroup>, after: Option<&Cgroup>) -> Finding {
    let subject = Subject::new(
        "cgroup",
        "Once a quota is used up, all threads of the cgroup stop for the rest of the period (usually 100 ms). That \
         shows in every latency tail.",
    );
    let Some(cgroup) = after else { return subject.unknown() };
    let Some((quota, place)) = &cgroup.quota else {
        return subject.good(format!("no CPU quota (version {})", cgroup.version));
    };
    let earlier = before.and_then(|cgroup| cgroup.throttled);
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
            .bad(value, "Run without a CPU limit; assign whole cores instead (cpuset, docker --cpuset-cpus).")
    } else {
        subject.note(value, "It covers the allowed cores, but threads may still be throttled.")
    }
}

impl Cgroup {
    /// That of this process.
    pub(crate) fn read(system: &System) -> Option<Self> {
        Self::of(system, SELF)
    }

    /// Version 2, or version 1 if its CPU controller is mounted.
    fn of(system: &System, process: &str) -> Option<Self> {
        let membership = system.read(&format!("proc/{process}/cgroup"))?;
        let one = |line: &str| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let is_cpu = controllers.split(',').any(|name| name == "cpu");
            match controllers {
                "" => Some(Self::at(system, 2, ["sys/fs/cgroup", "sys/fs/cgroup/unified"], path)),
                _ if is_cpu => {
                    Some(Self::at(system, 1, ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"], path))
                }
                _ => None,
            }
        };
        let mut all: Vec<Self> = membership.lines().filter_map(one).collect();
        // If both are mounted, the one with a quota has the controller.
        all.sort_by_key(|one| one.quota.is_none());
        all.into_iter().next()
    }

    /// Quotas of ancestors apply too. A container sees its own cgroup under its path or as the root of the mount.
    fn at(system: &System, version: u8, mounts: [&str; 2], path: &str) -> Self {
        let mut least: Option<(f64, String)> = None;
        let mut throttled = None;
        for mount in mounts {
            for above in std::path::Path::new(path).ancestors() {
                let directory = format!("{mount}{}", above.display());
                let directory = directory.trim_end_matches('/');
                let Some(quota) = quota_of(system, version, directory) else { continue };
                if least.as_ref().is_none_or(|(least, _)| quota < *least) {
                    throttled = system.counter(&format!("{directory}/cpu.stat"), "nr_throttled ");
                    least = Some((quota, above.display().to_string()));
                }
            }
        }
        Self { version, quota: least, throttled }
    }
}

/// In cores; `None` without one.
fn quota_of(system: &System, version: u8, directory: &str) -> Option<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;
    use crate::testing::{Tree, expect};

    const ALLOWED: (&str, &str) = ("proc/self/status", "Cpus_allowed_list:\t0-1\n");

    /// Writes `later` between the two readings.
    fn found(tree: &Tree, later: &[(&str, &str)]) -> Finding {
        let system = tree.system();
        let before = Cgroup::read(&system);
        later.iter().for_each(|(path, text)| tree.write(path, text.as_bytes()));
        quota(&system, before.as_ref(), Cgroup::read(&system).as_ref())
    }

    #[test]
    fn a_quota_of_version_1_and_what_it_holds_back() {
        const STAT: &str = "sys/fs/cgroup/cpu/docker/a/cpu.stat";
        let tree = Tree::new(&[
            ALLOWED,
            ("proc/self/cgroup", "9:name=systemd:/x\n4:cpu,cpuacct:/docker/a\n0::/docker/a\n"),
            ("sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us", "150000\n"),
            ("sys/fs/cgroup/cpu/docker/a/cpu.cfs_period_us", "100000\n"),
            (STAT, "nr_periods 90\nnr_throttled 12\nthrottled_time 5\n"),
        ]);
        let found = found(&tree, &[(STAT, "nr_periods 99\nnr_throttled 15\nthrottled_time 9\n")]);
        let expected = "1.50 cores by /docker/a (version 1), throttled 15 times, 3 just now";
        expect(&found, Level::Bad, expected);
    }

    #[test]
    fn the_least_quota_of_version_2_binds() {
        let above = |quota: &str| {
            let tree = Tree::new(&[
                ALLOWED,
                ("proc/self/cgroup", "0::/a/b\n"),
                ("sys/fs/cgroup/a/b/cpu.max", "900000 100000\n"),
                ("sys/fs/cgroup/a/cpu.max", quota),
                ("sys/fs/cgroup/a/cpu.stat", "usage_usec 7\nnr_throttled 0\n"),
            ]);
            found(&tree, &[])
        };
        expect(&above("50000 100000\n"), Level::Bad, "0.50 cores by /a (version 2), throttled 0 times");
        expect(&above("200000 100000\n"), Level::Note, "2.00 cores by /a (version 2)");
    }

    #[test]
    fn usable_cores_are_limited_by_the_least_quota_on_the_way_up() {
        let of = |membership: &str| {
            let tree = Tree::new(&[
                ("proc/42/status", "Cpus_allowed_list:\t0-2\n"),
                ("proc/42/cgroup", membership),
                ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
                ("sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
                ("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "50000\n"),
                ("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n"),
            ]);
            usable(&tree.system(), "42")
        };
        assert_eq!(of("0::/a/b\n"), Some(1.5));
        assert_eq!(of("4:cpu,cpuacct:/c\n0::/\n"), Some(0.5));
        assert_eq!(of("0::/elsewhere\n"), Some(3.0));
        assert_eq!(usable(&Tree::new(&[]).system(), "42"), None);
    }

    #[test]
    fn a_containers_own_cgroup_is_the_root_of_its_mount() {
        let tree = Tree::new(&[
            ALLOWED,
            ("proc/self/cgroup", "0::/docker/elsewhere\n"),
            ("sys/fs/cgroup/cpu.max", "100000 100000\n"),
        ]);
        expect(&found(&tree, &[]), Level::Bad, "1.00 cores by / (version 2), throttling unknown");
    }
}
