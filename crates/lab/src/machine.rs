//! What the results were measured on.

use crate::doctor::{self, Finding};
use crate::placement::Placement;
use crate::plan::Targets;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;

/// The machine, the programs and where they were placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Cores that the lab may use.
    pub cores: Vec<usize>,
    /// Processor features that decide what TLS costs: those present of the ones looked for.
    pub cpu_features: Vec<String>,
    /// Operating system and kernel.
    pub kernel: String,
    /// Memory in KiB.
    pub memory_kib: u64,
    /// The frequency governor, where the system tells.
    pub governor: Option<String>,
    /// Whether a hypervisor is known to be below.
    pub is_virtual: bool,
    /// What the network was.
    pub network: String,
    /// Versions of the targets that ran, by name.
    pub versions: BTreeMap<String, String>,
    /// Titles of the targets, by name.
    pub titles: BTreeMap<String, String>,
    /// The folder that each target or engine was read from, by name; empty in older results.
    #[serde(default)]
    pub folders: BTreeMap<String, String>,
    /// What each target is, by name.
    pub about: BTreeMap<String, String>,
    /// Where each part ran.
    pub placement: Option<Placement>,
    /// The seconds since 1970 at which the experiment began.
    pub started_unix: u64,
    /// SHA-256 of this program ([`Self::THIS_PROGRAM`]), of each target's folder and what it has installed, by its name,
    /// and of each file that the load engine is given, by `load.FLAG=PATH`. Empty in older results.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    /// What disturbed, by `weir doctor`, before the first run; empty in older results.
    #[serde(default)]
    pub doctor: Vec<Finding>,
}

/// Vector AES and carry-less multiplication speed up records, IFMA speeds up RSA, SHA-NI the handshake's hashes.
const FEATURES: [&str; 8] =
    ["aes", "vaes", "pclmulqdq", "vpclmulqdq", "avx2", "avx512f", "avx512ifma", "sha_ni"];

impl Machine {
    /// What this program is called among the sources.
    pub const THIS_PROGRAM: &str = "this program";

    /// Reads this machine, which takes no time: [`crate::doctor::examine`] does, and is left to the caller.
    pub fn read(allowed: &[usize], targets: &Targets, placement: &Placement) -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let flags: Vec<&str> =
            field(&cpuinfo, "flags").or(field(&cpuinfo, "Features")).unwrap_or("").split(' ').collect();
        let weir_load::Machine { cpu, kernel, .. } = weir_load::Machine::read();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let memory = field(&meminfo, "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok());
        let governor = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").ok();
        let of_targets = |what: fn(&crate::target::Target) -> &String| {
            let present = targets.present.iter();
            present.map(|(name, target)| (name.clone(), what(target).clone())).collect::<BTreeMap<_, _>>()
        };
        let folders = targets.present.iter();
        let folders = folders.map(|(name, target)| (name.clone(), target.folder().display().to_string()));
        Self {
            cpu,
            cores: allowed.to_vec(),
            cpu_features: FEATURES
                .into_iter()
                .filter(|name| flags.contains(name))
                .map(str::to_owned)
                .collect(),
            kernel,
            memory_kib: memory.unwrap_or(0),
            governor: governor.map(|text| text.trim().to_owned()),
            is_virtual: doctor::is_virtual() == Some(true),
            network: "loopback".into(),
            versions: of_targets(|target| &target.version),
            titles: of_targets(|target| &target.title),
            folders: folders.collect(),
            about: of_targets(|target| &target.about),
            placement: Some(placement.clone()),
            started_unix: std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
            sources: BTreeMap::new(),
            doctor: Vec::new(),
        }
    }
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
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

    #[test]
    fn this_machine_has_a_name_and_memory() {
        let placement = Placement { cores: crate::experiment::CoreSets::default(), note: None };
        let machine = Machine::read(&[0], &Targets::default(), &placement);
        assert!(!machine.kernel.is_empty() && machine.memory_kib > 0, "{machine:?}");
    }
}
