#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| weir_http2_fuzz::frames(input));
