#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| weir_http1_fuzz::response_head(input));
