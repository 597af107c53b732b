//! How the callers of a sampled function are found.

use object::read::ReadCache;
use object::read::elf::ElfFile64;
use object::{Endianness, Object as _};
use std::fs::File;

/// How stacks are unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwind {
    /// By the unwind tables of each module, from a copy of the stack. Costs more, and finds callers through code without
    /// frame pointers, as most cryptography is.
    Dwarf,
    /// By frame pointers: cheap, and right for programs that keep them.
    FramePointers,
}

/// The section that the linker of Go puts into each program.
const GO: &str = ".go.buildinfo";

impl Unwind {
    /// As suits a language: Go keeps frame pointers, and its assembly has no unwind tables; a JVM keeps them on request
    /// (`-XX:+PreserveFramePointer`), and its compiled methods have no unwind tables.
    pub fn of_language(language: &str) -> Self {
        match language {
            "go" | "java" => Self::FramePointers,
            _ => Self::Dwarf,
        }
    }

    /// As suits a running process.
    pub(crate) fn of_process(pid: u32) -> Self {
        let arguments = weir_doctor::proc::text(&format!("{pid}/cmdline")).unwrap_or_default();
        let keeps = arguments.contains("-XX:+PreserveFramePointer");
        if keeps || is_go(pid) { Self::FramePointers } else { Self::Dwarf }
    }
}

/// Whether a Go toolchain linked the program of a process.
pub fn is_go(pid: u32) -> bool {
    let Ok(program) = File::open(format!("/proc/{pid}/exe")) else { return false };
    // A program may have a hundred megabytes; its headers are a few kilobytes.
    let program = ReadCache::new(program);
    let parsed = ElfFile64::<Endianness, _>::parse(&program);
    parsed.is_ok_and(|program| program.section_by_name(GO).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression test: a search for the mark of Go's linker found it in this program, which has it as a constant.
    #[test]
    fn this_program_is_not_written_in_go() {
        assert!(!is_go(std::process::id()));
    }
}
