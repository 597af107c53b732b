//! Which cores a process may use, and how a thread is put on one.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr;

/// The cores of the affinity mask of this process.
///
/// # Errors
/// As sched_getaffinity(2).
pub fn allowed() -> io::Result<Cores> {
    let set = sched_getaffinity(None)?;
    Ok(Cores((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()))
}

/// How many workers make sense here: the affinity mask, cut down to the cgroup's CPU quota; never the machine's count.
///
/// # Errors
/// As sched_getaffinity(2).
pub fn worker_count() -> io::Result<usize> {
    let cores = allowed()?.0.len();
    Ok(quota(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup"))
        .map_or(cores, |quota| quota.min(cores)))
}

/// Puts the calling thread on one core.
///
/// # Errors
/// When the core does not exist or is not allowed.
pub fn pin(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

/// Keeps the calling thread off `cores` for as long as the guard lives; `None` where it may run nowhere else.
pub fn keep_off(cores: &Cores) -> Option<KeptOff> {
    let before = sched_getaffinity(None).ok()?;
    let mut others = before;
    cores.0.iter().for_each(|core| others.unset(*core));
    if others.count() == 0 {
        return None;
    }
    sched_setaffinity(None, &others).ok()?;
    Some(KeptOff { before })
}

/// See [`keep_off`]. Dropped on the thread that made it, it lets that thread run where it ran before.
#[derive(Debug)]
pub struct KeptOff {
    before: CpuSet,
}

impl Drop for KeptOff {
    fn drop(&mut self) {
        // Where it may not go back, it stays.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// A list of cores, written `0,2-3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores(pub Vec<usize>);

impl Cores {
    /// Whether this process may run on all of them.
    ///
    /// # Errors
    /// The first that it may not run on, with those that it may; or as sched_getaffinity(2).
    pub fn check(&self) -> io::Result<()> {
        let allowed = allowed()?;
        match self.0.iter().find(|core| !allowed.0.contains(core)) {
            None => Ok(()),
            Some(core) => {
                let why = format!("core {core} cannot be used: this process may run on {allowed}");
                Err(io::Error::new(io::ErrorKind::InvalidInput, why))
            }
        }
    }
}

impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| match part.trim().parse() {
            Ok(core) if core < CpuSet::MAX_CPU => Ok(core),
            _ => Err(format!("`{part}` is not a core: write numbers and ranges, such as 0,2-3")),
        };
        let mut cores = Vec::new();
        for part in text.split(',') {
            match part.split_once('-') {
                Some((first, last)) => cores.extend(number(first)?..=number(last)?),
                None => cores.push(number(part)?),
            }
        }
        cores.sort_unstable();
        cores.dedup();
        if cores.is_empty() { Err(format!("`{text}` holds no core")) } else { Ok(Self(cores)) }
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&cores.join(","))
    }
}

/// The cgroup's CPU quota in whole cores, at least 1; `None` without a quota. Version 2 first, then version 1.
fn quota(membership: &Path, mount: &Path) -> Option<usize> {
    let membership = fs::read_to_string(membership).ok()?;
    let read = |path: String| fs::read_to_string(mount.join(path.trim_start_matches('/'))).ok();
    let ratio = |quota: &str, period: &str| -> Option<f64> {
        let (quota, period): (f64, f64) = (quota.trim().parse().ok()?, period.trim().parse().ok()?);
        (quota > 0.0 && period > 0.0).then_some(quota / period)
    };
    // A container sees its own cgroup either under its path or as the root of the mount; a parent's quota binds too.
    let up = |path: &str| -> Vec<String> {
        let mut paths: Vec<String> = Path::new(path)
            .ancestors()
            .map(|p| p.to_string_lossy().trim_end_matches('/').to_string())
            .collect();
        paths.dedup();
        paths
    };
    let mut quotas = Vec::new();
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        if controllers.is_empty() {
            quotas.extend(up(path).into_iter().filter_map(|p| {
                let text = read(format!("{p}/cpu.max"))?;
                let (quota, period) = text.trim().split_once(' ')?;
                ratio(quota, period)
            }));
        } else if controllers.split(',').any(|name| name == "cpu") {
            for directory in ["cpu", "cpu,cpuacct"] {
                quotas.extend(up(path).into_iter().filter_map(|p| {
                    let quota = read(format!("{directory}{p}/cpu.cfs_quota_us"))?;
                    ratio(&quota, &read(format!("{directory}{p}/cpu.cfs_period_us"))?)
                }));
            }
        }
    }
    let least = quotas.into_iter().reduce(f64::min)?;
    Some((least.floor() as usize).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_kept_off_cores_comes_back() {
        let before = allowed().unwrap();
        let first = Cores(vec![before.0[0]]);
        let kept = keep_off(&first);
        assert_eq!(kept.is_some(), before.0.len() > 1, "with one core there is nowhere to go");
        if kept.is_some() {
            assert!(!allowed().unwrap().0.contains(&before.0[0]));
        }
        drop(kept);
        assert_eq!(allowed().unwrap(), before);
        assert!(keep_off(&before).is_none());
    }

    #[test]
    fn core_lists() {
        let table: [(&str, Option<&[usize]>); 8] = [
            ("0", Some(&[0])),
            ("0,2-3", Some(&[0, 2, 3])),
            ("3,1,1", Some(&[1, 3])),
            ("", None),
            ("a", None),
            ("1-", None),
            ("3-1", None),
            ("99999", None),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse::<Cores>().ok(), expected.map(|cores| Cores(cores.to_vec())), "{text}");
        }
    }

    #[test]
    fn quotas_of_both_cgroup_versions() {
        let dir = std::env::temp_dir().join(format!("weir-quota-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let at = |membership: &str| {
            write("membership", membership);
            quota(&dir.join("membership"), &dir)
        };
        write("a/b/cpu.max", "250000 100000\n");
        write("a/cpu.max", "max 100000\n");
        assert_eq!(at("0::/a/b\n"), Some(2));
        assert_eq!(at("0::/a\n"), None);
        write("a/cpu.max", "50000 100000\n");
        assert_eq!(at("0::/a/b\n"), Some(1), "the parent's half core binds; a worker needs one");
        write("cpu/j/cpu.cfs_quota_us", "300000\n");
        write("cpu/j/cpu.cfs_period_us", "100000\n");
        assert_eq!(at("1:cpu,cpuacct:/j\n"), Some(3));
        write("cpu/j/cpu.cfs_quota_us", "-1\n");
        assert_eq!(at("1:cpu:/j\n"), None);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_pinned_thread_runs_on_its_core() {
        let core = allowed().unwrap().0[0];
        std::thread::spawn(move || {
            pin(core).unwrap();
            assert_eq!(allowed().unwrap().0, [core]);
        })
        .join()
        .unwrap();
        assert!(worker_count().unwrap() >= 1);
    }
}
