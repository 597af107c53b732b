#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // Whether it is valid is for the replay.
    weir_gateway_fuzz::configuration(input);
});
