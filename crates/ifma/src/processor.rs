//! Detection of the processor's instructions, without the standard library.

use core::fmt;

/// Proof that this processor has AVX-512 F, VL, DQ and IFMA, and that the system saves their registers.
#[derive(Clone, Copy, Debug)]
pub struct Ifma(Proof);

impl Ifma {
    /// Detects the instructions by CPUID. This takes about 10 microseconds in a virtual machine, where each CPUID exits
    /// to the hypervisor, so detect once.
    ///
    /// # Errors
    ///
    /// The first missing feature.
    pub fn detect() -> Result<Self, Missing> {
        proof().map(Self)
    }

    /// Marks code that needs an [`Ifma`] as unreachable on architectures where none can exist.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn unreachable(self) -> ! {
        match self.0 {}
    }
}

/// A feature that this processor or its operating system lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing(&'static str);

impl Missing {
    /// The feature's name, such as `AVX-512 IFMA`.
    pub fn feature(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "the processor lacks {}", self.0)
    }
}

impl core::error::Error for Missing {}

#[cfg(target_arch = "x86_64")]
type Proof = ();

#[cfg(not(target_arch = "x86_64"))]
type Proof = core::convert::Infallible;

#[cfg(not(target_arch = "x86_64"))]
fn proof() -> Result<Proof, Missing> {
    Err(Missing("AVX-512"))
}

/// Checks CPUID leaves 1 and 7, and XCR0 (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1,
/// section 15.2).
#[cfg(target_arch = "x86_64")]
fn proof() -> Result<Proof, Missing> {
    use core::arch::x86_64::{__cpuid, __cpuid_count};

    /// The bits of XCR0 for the registers of SSE and AVX, and for the three parts of AVX-512's.
    const REGISTERS: u64 = 0b1110_0110;

    if __cpuid(0).eax < 7 {
        return Err(Missing("AVX-512 F"));
    }
    if crate::simd::saved_registers() & REGISTERS != REGISTERS {
        return Err(Missing("AVX-512 registers, which the operating system must save"));
    }
    let features = __cpuid_count(7, 0).ebx;
    for (bit, name) in [(16, "AVX-512 F"), (17, "AVX-512 DQ"), (21, "AVX-512 IFMA"), (31, "AVX-512 VL")] {
        if features >> bit & 1 == 0 {
            return Err(Missing(name));
        }
    }
    Ok(())
}
