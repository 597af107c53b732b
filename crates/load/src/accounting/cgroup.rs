//! A cgroup's CPU: `cpu.stat` in version 2, `cpuacct.usage` in version 1. Includes short-lived processes.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

type Parse = fn(&str) -> Option<Duration>;

/// A cgroup with its CPU file held open: a reading is one system call.
#[derive(Debug)]
pub(crate) struct Cgroup {
    directory: PathBuf,
    account: File,
    parse: Parse,
}

impl Cgroup {
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        // In version 1, cpu.stat may also exist, but only reports throttling.
        let kinds: [(&str, Parse); 2] = [("cpu.stat", cpu_stat), ("cpuacct.usage", nanoseconds)];
        fs::read_dir(directory)?;
        for (name, parse) in kinds {
            match File::open(directory.join(name)) {
                Ok(account) => {
                    let cgroup = Self { directory: directory.to_owned(), account, parse };
                    if cgroup.read().is_some() {
                        return Ok(cgroup);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("neither reports CPU time"))
    }

    /// CPU time since the cgroup was created; `None` once it is removed.
    pub(crate) fn read(&self) -> Option<Duration> {
        let mut text = [0; 4096];
        let length = self.account.read_at(&mut text, 0).ok()?;
        (self.parse)(std::str::from_utf8(&text[..length]).ok()?)
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        let mut directories = vec![self.directory.clone()];
        let mut pids = Vec::new();
        while let Some(directory) = directories.pop() {
            let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
            // 0 is a process in another PID namespace.
            pids.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()).filter(|pid| *pid != 0));
            let entries = fs::read_dir(&directory).into_iter().flatten().filter_map(Result::ok);
            let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            directories.extend(below.map(|entry| entry.path()));
        }
        pids
    }

    /// Peak memory, page cache included (`memory.peak`, version 2); `None` where that is not
    /// available.
    pub(crate) fn memory_peak_kib(&self) -> Option<u64> {
        let text = fs::read_to_string(self.directory.join("memory.peak")).ok()?;
        Some(text.trim().parse::<u64>().ok()? / 1024)
    }

    /// Its own CPU quota in cores; `None` without one. Quotas of parent cgroups are ignored.
    pub(crate) fn quota(&self) -> Option<f64> {
        let read = |name| fs::read_to_string(self.directory.join(name)).ok();
        match read("cpu.max") {
            Some(text) => {
                let (quota, period) = text.trim().split_once(' ')?;
                ratio(quota, period)
            }
            None => ratio(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?),
        }
    }
}

/// `usage_usec` of a `cpu.stat`.
pub(crate) fn cpu_stat(text: &str) -> Option<Duration> {
    let value = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(Duration::from_micros(value.trim().parse().ok()?))
}

fn nanoseconds(text: &str) -> Option<Duration> {
    Some(Duration::from_nanos(text.trim().parse().ok()?))
}

/// `max`, or -1 in version 1, means no quota.
fn ratio(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (f64, f64) = (quota.trim().parse().ok()?, period.trim().parse().ok()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    #[test]
    fn usage_in_cpu_stat() {
        for (text, expected) in [
            ("usage_usec 1234567\nuser_usec 1\nsystem_usec 2\n", Some(1_234_567)),
            ("nr_periods 0\nusage_usec 0\n", Some(0)),
            ("nr_periods 0\nnr_throttled 0\nthrottled_time 0\n", None),
            ("usage_usec\n", None),
            ("usage_usec -1\n", None),
            ("", None),
        ] {
            assert_eq!(cpu_stat(text), expected.map(Duration::from_micros), "{text:?}");
        }
    }

    #[test]
    fn quotas_of_both_versions() {
        for (quota, period, expected) in
            [("150000", "100000", Some(1.5)), ("max", "100000", None), ("-1\n", "100000\n", None)]
        {
            assert_eq!(ratio(quota, period), expected);
        }
    }

    #[test]
    fn files_that_look_like_a_cgroup() {
        let directory = std::env::temp_dir().join(format!("weir-cgroup-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert!(Cgroup::open(&directory).is_err());
        write("cpu.stat", "nr_periods 0\n");
        assert!(Cgroup::open(&directory).is_err(), "version 1 without cpuacct");
        write("cpuacct.usage", "2500000000\n");
        let cgroup = Cgroup::open(&directory).unwrap();
        assert_eq!(cgroup.read(), Some(Duration::from_millis(2500)));
        write("cgroup.procs", "7\n0\n");
        write("below/deeper/cgroup.procs", "8\n9\n");
        assert_eq!(cgroup.pids(), [7, 8, 9]);
        assert_eq!((cgroup.memory_peak_kib(), cgroup.quota()), (None, None));
        write("cpu.cfs_quota_us", "50000\n");
        write("cpu.cfs_period_us", "100000\n");
        assert_eq!(cgroup.quota(), Some(0.5));
        write("cpu.stat", "usage_usec 7\n");
        write("cpu.max", "max 100000\n");
        write("memory.peak", "2048000\n");
        let cgroup = Cgroup::open(&directory).unwrap();
        assert_eq!((cgroup.read(), cgroup.quota()), (Some(Duration::from_micros(7)), None));
        assert_eq!(cgroup.memory_peak_kib(), Some(2000));
        fs::remove_dir_all(&directory).unwrap();
    }

    /// A cgroup created for this test; `None`, with the reason printed, without permission.
    fn made() -> Option<PathBuf> {
        for mount in ["/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/cpuacct"] {
            let directory = Path::new(mount).join(format!("weir-test-{}", std::process::id()));
            if Path::new(mount).join("cgroup.procs").is_file() && fs::create_dir(&directory).is_ok() {
                return Some(directory);
            }
        }
        println!("skipped: cannot create a cgroup here");
        None
    }

    #[test]
    fn a_real_cgroup_counts_what_comes_and_goes_in_it() {
        let Some(directory) = made() else { return };
        let cgroup = Cgroup::open(&directory).unwrap();
        let script = "echo $$ > \"$0/cgroup.procs\" || exit 1; echo in; read x; \
                      (while :; do :; done) & read x; kill $!";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut stdin, stdout) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(stdout), &mut line).unwrap();
        if line == "in\n" {
            let before = cgroup.read().unwrap();
            assert_eq!(cgroup.pids(), [shell.id()]);
            io::Write::write_all(&mut stdin, b"\n").unwrap();
            let deadline = Instant::now() + Duration::from_secs(20);
            while cgroup.read().unwrap() - before < Duration::from_millis(100) {
                assert!(Instant::now() < deadline, "the burner gets no CPU");
            }
            io::Write::write_all(&mut stdin, b"\n").unwrap();
        } else {
            println!("skipped: cannot move a process into {}", directory.display());
        }
        drop(stdin);
        shell.wait().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while fs::remove_dir(&directory).is_err() {
            assert!(Instant::now() < deadline, "{} cannot be removed", directory.display());
        }
    }
}
