// The engine is written in C.

use std::ffi::c_int;
use std::process::ExitCode;

unsafe extern "C" {
    fn engine_main() -> c_int;
}

fn main() -> ExitCode {
    // SAFETY: it takes nothing, and runs once, while no other thread is there.
    let status = unsafe { engine_main() };
    if status == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
