#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| weir_ifma_fuzz::p256(input));
