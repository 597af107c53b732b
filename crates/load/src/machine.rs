//! The machine, as far as it decides what the engine can do.

use serde::{Deserialize, Serialize};
use std::fmt;
use weir_doctor::Hardware;

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
        let Hardware { cpu, processors: cores, kernel, .. } = Hardware::read();
        Self { cpu, cores, kernel }
    }
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
    fn this_machine_has_cores_and_a_kernel() {
        let machine = Machine::read();
        assert!(machine.cores >= 1 && !machine.kernel.trim().is_empty(), "{machine}");
    }
}
