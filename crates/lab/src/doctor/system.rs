//! Files of the system, below a root that tests make up.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What the system tells of its processors.
pub(super) const CPU: &str = "sys/devices/system/cpu";

/// Where the system's files are.
#[derive(Debug)]
pub(super) struct System {
    root: PathBuf,
}

impl System {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// A file's text without the white space around it; `None` when it cannot be read.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.root.join(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    pub(super) fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.read(path)?.parse().ok()
    }

    /// The value of the first line `name: value`, or `name : value`, of a file.
    pub(super) fn field(&self, path: &str, name: &str) -> Option<String> {
        self.read(path)?.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    }

    /// The number that begins such a value.
    pub(super) fn number_field(&self, path: &str, name: &str) -> Option<u64> {
        self.field(path, name)?.split_whitespace().next()?.parse().ok()
    }

    /// Names in a directory.
    pub(super) fn list(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// The cores that this process may use. The kernel's list may name cores that could be plugged in.
    pub(super) fn allowed(&self) -> Option<Vec<usize>> {
        let mut allowed = cores(&self.field("proc/self/status", "Cpus_allowed_list")?)?;
        if let Some(online) = self.cores("online") {
            let online: BTreeSet<usize> = online.into_iter().collect();
            allowed.retain(|core| online.contains(core));
        }
        Some(allowed)
    }

    /// A list of cores among the files of all processors.
    pub(super) fn cores(&self, file: &str) -> Option<Vec<usize>> {
        cores(&self.read(&format!("{CPU}/{file}"))?)
    }

    /// The text of a file of each allowed core, for those that have it.
    pub(super) fn of_cores(&self, file: &str) -> Vec<String> {
        let cores = self.allowed().unwrap_or_default();
        cores.iter().filter_map(|core| self.read(&format!("{CPU}/cpu{core}/{file}"))).collect()
    }

    /// Whether this process has a capability, by its number in capabilities(7).
    pub(super) fn capability(&self, number: u32) -> Option<bool> {
        let set = u64::from_str_radix(&self.field("proc/self/status", "CapEff")?, 16).ok()?;
        Some(set >> number & 1 == 1)
    }

    /// Soft and hard limit of this process; `None` in them is no limit.
    pub(super) fn limit(&self, name: &str) -> Option<(Option<u64>, Option<u64>)> {
        let text = self.read("proc/self/limits")?;
        let mut words = text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
        let mut one = || match words.next()? {
            "unlimited" => Some(None),
            number => number.parse().ok().map(Some),
        };
        Some((one()?, one()?))
    }
}

/// More cores than any machine has.
const MOST: usize = 1 << 16;

/// Reads `0,2-3`.
pub(super) fn cores(text: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MOST || cores.len() >= MOST {
            return None;
        }
        cores.extend(first..=last);
    }
    Some(cores)
}

/// The word in brackets of `always [madvise] never`.
pub(super) fn chosen(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}
