//! System files, below a root that tests can replace.

use crate::cores;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of the processors.
pub(crate) const CPU: &str = "sys/devices/system/cpu";

/// This process among those of /proc.
pub(crate) const SELF: &str = "self";

/// The root of the system's files.
#[derive(Debug)]
pub(crate) struct System {
    root: PathBuf,
}

impl System {
    /// The real system.
    pub(crate) fn local() -> Self {
        Self::new(Path::new("/"))
    }

    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// A file's text, trimmed; `None` if it cannot be read.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.root.join(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.read(path)?.parse().ok()
    }

    /// The value of a [`field`] of a file.
    pub(crate) fn field(&self, path: &str, name: &str) -> Option<String> {
        field(&self.read(path)?, name).map(str::to_owned)
    }

    /// The number at the start of such a value.
    pub(crate) fn number_field(&self, path: &str, name: &str) -> Option<u64> {
        self.field(path, name)?.split_whitespace().next()?.parse().ok()
    }

    /// The number in the first line that starts with `name`, in a file without colons.
    pub(crate) fn counter(&self, path: &str, name: &str) -> Option<u64> {
        self.read(path)?.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }

    pub(crate) fn list(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// The allowed cores of this process. The kernel's list may include hot-pluggable cores.
    pub(crate) fn allowed(&self) -> Option<Vec<usize>> {
        self.allowed_of(SELF)
    }

    /// Those of a process.
    pub(crate) fn allowed_of(&self, process: &str) -> Option<Vec<usize>> {
        let status = format!("proc/{process}/status");
        let mut allowed = cores::parse(&self.field(&status, "Cpus_allowed_list")?)?;
        if let Some(online) = self.cores("online") {
            let online: BTreeSet<usize> = online.into_iter().collect();
            allowed.retain(|core| online.contains(core));
        }
        Some(allowed)
    }

    /// A list of cores among the files of all processors.
    pub(crate) fn cores(&self, file: &str) -> Option<Vec<usize>> {
        cores::parse(&self.read(&format!("{CPU}/{file}"))?)
    }

    /// The value of a file per allowed core, where it exists.
    pub(crate) fn of_cores<T: std::str::FromStr>(&self, file: &str) -> Vec<T> {
        let cores = self.allowed().unwrap_or_default();
        cores.iter().filter_map(|core| self.number(&format!("{CPU}/cpu{core}/{file}"))).collect()
    }

    /// Whether this process has a capability, by its number in capabilities(7).
    pub(crate) fn capability(&self, number: u32) -> Option<bool> {
        let set = u64::from_str_radix(&self.field("proc/self/status", "CapEff")?, 16).ok()?;
        Some(set >> number & 1 == 1)
    }

    /// Soft and hard limit of this process; `None` within means unlimited.
    pub(crate) fn limit(&self, name: &str) -> Option<(Option<u64>, Option<u64>)> {
        let text = self.read("proc/self/limits")?;
        let mut words = text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
        let mut one = || match words.next()? {
            "unlimited" => Some(None),
            number => number.parse().ok().map(Some),
        };
        Some((one()?, one()?))
    }
}

/// The value of the first line `name: value`, or `name : value`; it is trimmed.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// The word in brackets of `always [madvise] never`.
pub(crate) fn chosen(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc_files() {
        let text = "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: fpu aes\n";
        assert_eq!(field(text, "model name"), Some("A CPU"));
        assert_eq!(field(text, "flags"), Some("fpu aes"));
        assert_eq!(field(text, "bugs"), None);
    }
}
