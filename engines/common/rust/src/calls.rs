//! Timed calls into the library.
//!
//! Instruction counters find these functions by name, to count one side and nothing of the loops.
#![allow(unsafe_code)] // they are found by their unmangled names

use std::hint::black_box;
use std::time::Instant;

use crate::error::Error;
use crate::names::Side;

/// Runs `work` for a side; returns the time in nanoseconds.
pub(crate) fn timed<T>(side: Side, mut work: impl FnMut() -> Result<T, Error>) -> Result<(T, u64), Error> {
    let mut result = None;
    let mut call = || result = Some(work());
    let start = Instant::now();
    match side {
        Side::Client => weir_engine_client(&mut call),
        Side::Server | Side::Operation => weir_engine_server(&mut call),
    }
    let took = nanoseconds(start);
    match result {
        Some(result) => Ok((result?, took)),
        None => Err(Error::runner("timed call", "was not made")),
    }
}

/// Nanoseconds since `start`.
pub(crate) fn nanoseconds(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

/// All timed client code runs in here.
#[inline(never)]
#[unsafe(no_mangle)]
fn weir_engine_client(work: &mut dyn FnMut()) {
    work();
    // Code after the call keeps this frame on the stack. It must differ in the two functions, or they are merged.
    black_box(Side::Client);
}

/// All timed server code, and primitives, run in here.
#[inline(never)]
#[unsafe(no_mangle)]
fn weir_engine_server(work: &mut dyn FnMut()) {
    work();
    black_box(Side::Server);
}
