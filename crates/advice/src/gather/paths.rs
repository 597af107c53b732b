//! The code paths that a crypto library takes, and whether a program is optimised, by the innermost functions of a
//! profile.

use crate::fact::Facts;
use weir_profile::Stacks;

/// Functions for AES and GHASH without special instructions (tables, bit slicing, vector permutes) in OpenSSL, AWS-LC,
/// BoringSSL and Go.
const SOFTWARE_AES: [&str; 12] = [
    "aes_nohw_",
    "gcm_nohw_",
    "vpaes_",
    "_vpaes_",
    "bsaes_",
    "_bsaes_",
    "AES_encrypt",
    "_x86_64_AES_",
    "gcm_gmult_4bit",
    "gcm_ghash_4bit",
    "crypto/internal/fips140/aes.encryptBlockGeneric",
    "crypto/aes.encryptBlockGo",
];

/// RSA functions without IFMA instructions in OpenSSL, AWS-LC, BoringSSL and Go.
const NARROW_RSA: [&str; 9] = [
    "bn_mul_mont",
    "bn_mulx4x_mont",
    "bn_mul4x_mont",
    "bn_sqr8x_",
    "bn_sqrx8x_",
    "__bn_sqr",
    "bn_power5",
    "rsaz_1024_",
    "crypto/internal/fips140/bigmod.addMulVVW",
];

/// One-line functions of the standard libraries of Rust and C++, which optimised builds inline.
const INLINED: [&str; 16] = [
    "<core::cmp::",
    "<core::iter::",
    "<core::ops::range::",
    "<core::slice::iter::",
    "__gnu_cxx::__normal_iterator",
    "core::cmp::impls::",
    "core::iter::range::",
    "core::mem::",
    "core::num::<impl ",
    "core::ops::range::",
    "core::option::Option<",
    "core::ptr::mut_ptr::",
    "core::ptr::non_null::",
    "core::slice::iter::",
    "std::forward<",
    "std::move<",
];

/// Calls of these functions take a smaller share in an optimised build, which inlines most but not all of them.
const UNOPTIMISED: f64 = 0.05;

impl Facts {
    /// Adds the share of samples in code that avoids instructions which the processor may have.
    pub fn add_paths(&mut self, stacks: &Stacks) {
        let source = format!("profile, {} samples", stacks.samples());
        self.add("crypto.software_aes", share(stacks, &SOFTWARE_AES), &source);
        self.add("crypto.narrow_rsa", share(stacks, &NARROW_RSA), &source);
        let inlined = share(stacks, &INLINED);
        if inlined > UNOPTIMISED {
            let words =
                format!("functions that it would inline take {:.0} % of the CPU time", inlined * 100.0);
            self.add("process.debug_build", words, &source);
        }
    }
}

/// The share of samples in which the innermost function's name starts with one of these.
fn share(stacks: &Stacks, starts: &[&str]) -> f64 {
    let is_of = |stack: &weir_profile::Stack| {
        let frame = stack.first().and_then(|index| stacks.frames().get(*index as usize));
        frame.is_some_and(|frame| starts.iter().any(|start| frame.symbol.starts_with(start)))
    };
    let of: u64 = stacks.counts().filter(|(stack, _)| is_of(stack)).map(|(_, samples)| samples).sum();
    of as f64 / stacks.samples().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_a_line_are_called_without_optimisation() {
        let words = |folded: &str| {
            let mut facts = Facts::default();
            facts.add_paths(&Stacks::from_folded(folded).expect("parses"));
            facts.text("process.debug_build").map(str::to_owned)
        };
        assert_eq!(
            words("own::f;core::num::<impl u64>::wrapping_add 12\nown::f;core::option::Option<T>::map;own::g 88\n").as_deref(),
            Some("functions that it would inline take 12 % of the CPU time")
        );
        assert_eq!(
            words("own::f;core::option::Option<T>::map 3\nown::f;core::ptr::drop_in_place 97\n"),
            None
        );
    }

    #[test]
    fn innermost_functions_decide() {
        let stacks = Stacks::from_folded(
            "main;EVP_EncryptUpdate;_vpaes_encrypt_core 30\nmain;RSA_sign;bn_mulx4x_mont 20\nvpaes_x;memcpy 50\n",
        )
        .expect("parses");
        let mut facts = Facts::default();
        facts.add_paths(&stacks);
        assert_eq!(facts.number("crypto.software_aes"), Some(0.3));
        assert_eq!(facts.number("crypto.narrow_rsa"), Some(0.2));
    }
}
