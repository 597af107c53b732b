//! The machine, as far as it decides what the engine can do.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;

/// What a ceiling was measured on, and holds for alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Cores of the machine, whether or not this process may use them.
    pub cores: u32,
    /// Operating system and kernel.
    pub kernel: String,
}

impl Machine {
    /// Reads this machine.
    pub fn read() -> Self {
        let kernel = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
            text.trim().to_owned()
        };
        let (cpu, cores) = processors(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default());
        Self { cpu, cores, kernel: format!("{} {}", kernel("ostype"), kernel("osrelease")) }
    }
}

/// Name and number of the processors in /proc/cpuinfo.
fn processors(cpuinfo: &str) -> (String, u32) {
    let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let fields = fields.map(|(name, value)| (name.trim(), value.trim()));
    let name = fields.clone().find(|(name, _)| *name == "model name").map_or("unknown", |(_, value)| value);
    (name.to_owned(), fields.filter(|(name, _)| *name == "processor").count() as u32)
}

impl fmt::Display for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, {} cores, {}", self.cpu, self.cores, self.kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_in_cpuinfo() {
        let text = "processor\t: 0\nmodel name\t: A CPU\n\nprocessor\t: 1\nmodel name\t: A CPU\n";
        assert_eq!(processors(text), ("A CPU".to_owned(), 2));
        assert_eq!(processors(""), ("unknown".to_owned(), 0));
    }

    #[test]
    fn this_machine_has_cores_and_a_kernel() {
        let machine = Machine::read();
        assert!(machine.cores >= 1 && !machine.kernel.trim().is_empty(), "{machine}");
    }
}
