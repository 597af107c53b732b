//! Allowed cores, and pinning threads to them.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fmt;
use std::io;
use std::str::FromStr;

/// The cores in this process's affinity mask. Errors: those of sched_getaffinity(2).
pub fn allowed() -> io::Result<Cores> {
    let set = sched_getaffinity(None)?;
    Ok(Cores((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()))
}

/// A sensible number of workers: the size of the affinity mask, limited by the CPU quotas of the cgroup and its parents
/// (version 1 or 2), and at least 1. The machine's core count is irrelevant. Errors: those of
/// [`std::thread::available_parallelism`].
pub fn worker_count() -> io::Result<usize> {
    Ok(std::thread::available_parallelism()?.get())
}

/// Pins the calling thread to one core. Fails if the core does not exist or is not allowed.
pub fn pin(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

/// Keeps the calling thread off `cores` while the guard lives; `None` if no other core is allowed.
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

/// The guard of [`keep_off`]. Dropping it on the thread that created it restores the thread's affinity.
#[derive(Debug)]
pub struct KeptOff {
    before: CpuSet,
}

impl Drop for KeptOff {
    fn drop(&mut self) {
        // If this fails, the thread stays off the cores.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// A list of cores, written `0,2-3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores(pub Vec<usize>);

impl Cores {
    /// Checks that this process may use every core of the list. The error names the first core that is not allowed and
    /// lists the allowed ones, or is that of sched_getaffinity(2).
    pub fn check(&self) -> io::Result<()> {
        let allowed = allowed()?;
        match self.0.iter().find(|core| !allowed.0.contains(core)) {
            None => Ok(()),
            Some(core) => {
                let why = format!("core {core} is not available: expected any of {allowed}");
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
            _ => Err(format!("invalid core `{part}`: expected numbers and ranges, such as 0,2-3")),
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
        if cores.is_empty() {
            Err(format!("empty core list `{text}`: expected numbers and ranges, such as 0,2-3"))
        } else {
            Ok(Self(cores))
        }
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&cores.join(","))
    }
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
