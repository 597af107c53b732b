//! Execution of the lanes by the processor: the crate's only `unsafe` code.
//!
//! The unsafe code transmutes 256-bit values, and calls functions that need processor features and take no pointers.
//! The calls are sound where the features exist, which an [`Ifma`] proves: [`kernel`] and the constructors of [`Simd`]
//! require one, and the methods of `Simd` require an existing value.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;
#[cfg(target_arch = "x86_64")]
use core::mem::transmute;

#[cfg(target_arch = "x86_64")]
use crate::lanes::Lanes;
#[cfg(target_arch = "x86_64")]
use crate::processor::Ifma;

/// Defines a function that takes an `Ifma` and these arguments, compiled for processors with IFMA. The function passes
/// all of its arguments to the `#[inline(always)]` function after `=`. The symbol contains the function's name twice,
/// as in `ladder::ladder`.
macro_rules! kernel {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),*) -> $output:ty = $body:path;) => {
        $(#[$attribute])*
        #[cfg(target_arch = "x86_64")]
        $visibility fn $name(token: $crate::Ifma, $($argument: $type),*) -> $output {
            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512ifma")]
            #[inline(never)]
            fn $name(token: $crate::Ifma, $($argument: $type),*) -> $output {
                $body(token, $($argument),*)
            }
            // SAFETY: the token proves that the processor has the features.
            #[allow(unsafe_code)]
            unsafe {
                $name(token, $($argument),*)
            }
        }

        $(#[$attribute])*
        #[cfg(not(target_arch = "x86_64"))]
        #[allow(unused_variables)]
        $visibility fn $name(token: $crate::Ifma, $($argument: $type),*) -> $output {
            token.unreachable()
        }
    };
}

pub(crate) use kernel;

/// Four lanes in a register of 256 bits.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Simd(__m256i);

#[cfg(target_arch = "x86_64")]
impl Simd {
    #[inline(always)]
    pub(crate) fn store(self) -> [u64; 4] {
        // SAFETY: both types are 256 bits, and every bit pattern is valid.
        unsafe { transmute(self.0) }
    }
}

/// Methods that compile to a single instruction.
#[cfg(target_arch = "x86_64")]
macro_rules! instructions {
    ($(fn $name:ident($($operand:ident),+) -> $output:ident = $intrinsic:ident;)+) => {
        $(
            #[inline(always)]
            fn $name(self, $($operand: Self),+) -> instructions!(@type $output) {
                // SAFETY: this `Simd` exists, so the `Ifma` that created it does, too.
                unsafe { instructions!(@value $output $intrinsic(self.0, $($operand.0),+)) }
            }
        )+
    };
    (@type Lanes) => { Self };
    (@type Mask) => { __mmask8 };
    (@value Lanes $call:expr) => { Self($call) };
    (@value Mask $call:expr) => { $call };
}

#[cfg(target_arch = "x86_64")]
impl Lanes for Simd {
    type Token = Ifma;
    type Mask = __mmask8;

    #[inline(always)]
    fn splat(_: Ifma, x: u64) -> Self {
        // SAFETY: the token proves that the processor has AVX-512.
        Self(unsafe { _mm256_set1_epi64x(x.cast_signed()) })
    }

    #[inline(always)]
    fn load(_: Ifma, lanes: [u64; 4]) -> Self {
        // SAFETY: both types are 256 bits, and every bit pattern is valid.
        Self(unsafe { transmute::<[u64; 4], __m256i>(lanes) })
    }

    instructions! {
        fn add(other) -> Lanes = _mm256_add_epi64;
        fn sub(other) -> Lanes = _mm256_sub_epi64;
        fn and(other) -> Lanes = _mm256_and_si256;
        fn xor(other) -> Lanes = _mm256_xor_si256;
        fn madd_lo(x, y) -> Lanes = _mm256_madd52lo_epu64;
        fn madd_hi(x, y) -> Lanes = _mm256_madd52hi_epu64;
        fn madd_lo_of_low(x, y) -> Lanes = _mm256_madd52lo_epu64;
        fn madd_hi_of_low(x, y) -> Lanes = _mm256_madd52hi_epu64;
        fn equals(other) -> Mask = _mm256_cmpeq_epi64_mask;
        fn below(other) -> Mask = _mm256_cmplt_epu64_mask;
    }

    #[inline(always)]
    fn shr<const BITS: i32>(self) -> Self {
        // SAFETY: this `Simd` exists, so the `Ifma` that created it does, too.
        Self(unsafe { _mm256_srli_epi64::<BITS>(self.0) })
    }

    #[inline(always)]
    fn sar<const BITS: i32>(self) -> Self {
        // SAFETY: this `Simd` exists, so the `Ifma` that created it does, too. The count may be variable; the compiler
        // turns a constant into an immediate operand.
        Self(unsafe { _mm256_sra_epi64(self.0, _mm_cvtsi32_si128(BITS)) })
    }

    #[inline(always)]
    fn shl<const BITS: i32>(self) -> Self {
        // SAFETY: this `Simd` exists, so the `Ifma` that created it does, too.
        Self(unsafe { _mm256_slli_epi64::<BITS>(self.0) })
    }

    #[inline(always)]
    fn permute<const ORDER: i32>(self) -> Self {
        // SAFETY: this `Simd` exists, so the `Ifma` that created it does, too.
        Self(unsafe { _mm256_permute4x64_epi64::<ORDER>(self.0) })
    }

    #[inline(always)]
    fn permute_by(self, order: Self) -> Self {
        // SAFETY: this `Simd` exists, so the `Ifma` that created it does, too.
        Self(unsafe { _mm256_permutexvar_epi64(order.0, self.0) })
    }

    #[inline(always)]
    fn blend<const LANES: u8>(self, other: Self) -> Self {
        // SAFETY: this `Simd` exists, so the `Ifma` that created it does, too.
        Self(unsafe { _mm256_mask_blend_epi64(LANES, self.0, other.0) })
    }

    #[inline(always)]
    fn select(mask: __mmask8, yes: Self, no: Self) -> Self {
        // SAFETY: this `Simd` exists, so the `Ifma` that created it does, too.
        Self(unsafe { _mm256_mask_blend_epi64(mask, no.0, yes.0) })
    }
}

/// XCR0, the set of registers that the operating system saves; zero if XSAVE is not enabled.
#[cfg(target_arch = "x86_64")]
pub(crate) fn saved_registers() -> u64 {
    #[target_feature(enable = "xsave")]
    fn xcr0() -> u64 {
        // SAFETY: the function needs XSAVE, which its caller must prove.
        unsafe { _xgetbv(0) }
    }

    /// OSXSAVE: the processor has XSAVE and the system has enabled it.
    const ENABLED: u32 = 1 << 27;
    if __cpuid(1).ecx & ENABLED == 0 {
        return 0;
    }
    // SAFETY: CPUID reports that the processor has XSAVE and that the system has enabled it.
    unsafe { xcr0() }
}
