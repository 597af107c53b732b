//! The hardware, as far as it affects measurements.

use crate::hypervisor;
use crate::system::{CPU, System, field};
use serde::{Deserialize, Serialize};

/// The machine's processors, kernel and memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardware {
    /// The processor's name, or `unknown`.
    pub cpu: String,
    /// Processors of the machine, allowed or not; not stored.
    #[serde(skip)]
    pub processors: u32,
    /// Processor features that affect the cost of TLS.
    #[serde(rename = "cpu_features")]
    pub features: Vec<String>,
    /// Operating system and kernel.
    pub kernel: String,
    /// Memory in KiB; 0 if unknown.
    pub memory_kib: u64,
    /// The frequency governor of the first core, if known.
    pub governor: Option<String>,
    /// Whether this is known to be a virtual machine.
    pub is_virtual: bool,
}

/// Vector AES and carry-less multiplication speed up records, IFMA speeds up RSA, SHA-NI the handshake's hashes.
pub const FEATURES: [&str; 8] =
    ["aes", "vaes", "pclmulqdq", "vpclmulqdq", "avx2", "avx512f", "avx512ifma", "sha_ni"];

impl Hardware {
    /// Reads this machine; takes no time.
    pub fn read() -> Self {
        Self::of(&System::local())
    }

    fn of(system: &System) -> Self {
        let cpuinfo = system.read("proc/cpuinfo").unwrap_or_default();
        // x86 has `flags`, ARM has `Features`.
        let flags = field(&cpuinfo, "flags").or(field(&cpuinfo, "Features")).unwrap_or_default();
        let flags: Vec<&str> = flags.split(' ').collect();
        let features = FEATURES.into_iter().filter(|name| flags.contains(name));
        let kernel = |name| system.read(&format!("proc/sys/kernel/{name}")).unwrap_or_default();
        Self {
            cpu: field(&cpuinfo, "model name").unwrap_or("unknown").to_owned(),
            processors: processors(&cpuinfo),
            features: features.map(str::to_owned).collect(),
            kernel: format!("{} {}", kernel("ostype"), kernel("osrelease")),
            memory_kib: system.number_field("proc/meminfo", "MemTotal").unwrap_or(0),
            governor: system.read(&format!("{CPU}/cpu0/cpufreq/scaling_governor")),
            is_virtual: hypervisor::is_below(system) == Some(true),
        }
    }
}

/// Number of entries in /proc/cpuinfo.
fn processors(cpuinfo: &str) -> u32 {
    let names = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    names.filter(|(name, _)| name.trim() == "processor").count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn a_machine_is_read_from_its_files() {
        let tree = Tree::new(&[
            (
                "proc/cpuinfo",
                "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: fpu aes hypervisor avx2\n\n\
                 processor\t: 1\nmodel name\t: A CPU\nflags\t\t: fpu aes hypervisor avx2\n",
            ),
            ("proc/sys/kernel/ostype", "Linux\n"),
            ("proc/sys/kernel/osrelease", "6.1.0\n"),
            ("proc/meminfo", "MemTotal:       32000000 kB\nMemFree: 1 kB\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
        ]);
        let expected = Hardware {
            cpu: "A CPU".into(),
            processors: 2,
            features: vec!["aes".into(), "avx2".into()],
            kernel: "Linux 6.1.0".into(),
            memory_kib: 32_000_000,
            governor: Some("performance".into()),
            is_virtual: true,
        };
        assert_eq!(Hardware::of(&tree.system()), expected);
    }

    #[test]
    fn features_are_found_under_arms_name() {
        let tree = Tree::new(&[("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp aes pmull\n")]);
        let hardware = Hardware::of(&tree.system());
        assert_eq!((hardware.features, hardware.cpu), (vec!["aes".to_owned()], "unknown".to_owned()));
    }

    #[test]
    fn a_system_that_tells_nothing_is_no_error() {
        let hardware = Hardware::of(&Tree::new(&[]).system());
        assert_eq!((hardware.cpu.as_str(), hardware.processors), ("unknown", 0));
        assert_eq!((hardware.memory_kib, hardware.governor, hardware.is_virtual), (0, None, false));
    }

    #[test]
    fn this_machine_has_processors_a_kernel_and_memory() {
        let hardware = Hardware::read();
        assert!(hardware.processors >= 1 && hardware.memory_kib > 0, "{hardware:?}");
        assert!(!hardware.kernel.trim().is_empty(), "{hardware:?}");
    }
}
