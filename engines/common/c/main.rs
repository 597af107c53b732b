// The engine is written in C.

use std::ffi::c_int;
use std::process::ExitCode;

unsafe extern "C" {
    fn engine_main() -> c_int;
}

fn main() -> ExitCode {
    // SAFETY: it takes no arguments, and runs once, before any other thread exists.
    let status = unsafe { engine_main() };
    if status == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
