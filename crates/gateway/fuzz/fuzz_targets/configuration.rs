#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| weir_gateway_fuzz::configuration(input));
