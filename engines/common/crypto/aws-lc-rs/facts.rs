//! AWS-LC's facts at run time.
#![allow(unsafe_code)] // AWS-LC is C: its version is a C string, the detected CPU features a C variable

use std::ffi::CStr;

use weir_engine::Facts;

/// The facts of an engine built with aws-lc-rs, plus AWS-LC's own.
pub fn facts(facts: Facts) -> Facts {
    aws_lc_rs::init();
    Facts { crypto: format!("{}, {}", facts.crypto, version()), features: features(), ..facts }
}

fn version() -> String {
    // SAFETY: the call takes a number and returns a string that lives as long as the program.
    let text = unsafe { CStr::from_ptr(aws_lc_sys::OpenSSL_version(0)) };
    text.to_string_lossy().into_owned()
}

/// AWS-LC's CPU capabilities after masking (OPENSSL_ia32cap).
#[cfg(target_arch = "x86_64")]
fn features() -> Vec<String> {
    /// The word and the bits of it, as CPUID has them.
    const FEATURES: [(&str, usize, u32); 16] = [
        ("pclmulqdq", 1, 1 << 1),
        ("ssse3", 1, 1 << 9),
        ("aes", 1, 1 << 25),
        ("avx", 1, 1 << 28),
        ("bmi1", 2, 1 << 3),
        ("avx2", 2, 1 << 5),
        ("bmi2", 2, 1 << 8),
        ("avx512f", 2, 1 << 16),
        ("avx512dq", 2, 1 << 17),
        ("adx", 2, 1 << 19),
        ("avx512ifma", 2, 1 << 21),
        ("sha_ni", 2, 1 << 29),
        ("avx512bw", 2, 1 << 30),
        ("avx512vl", 2, 1 << 31),
        ("vaes", 3, 1 << 9),
        ("vpclmulqdq", 3, 1 << 10),
    ];
    let has = |(_, word, bits): &&(&str, usize, u32)| symbols::CAPABILITIES[*word] & bits == *bits;
    FEATURES.iter().filter(has).map(|(name, ..)| (*name).to_owned()).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn features() -> Vec<String> {
    Vec::new()
}

/// Declared by the build script.
#[cfg(target_arch = "x86_64")]
mod symbols {
    include!(concat!(env!("OUT_DIR"), "/symbols.rs"));
}
