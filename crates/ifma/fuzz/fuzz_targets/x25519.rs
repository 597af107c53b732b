#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| weir_ifma_fuzz::x25519(input));
