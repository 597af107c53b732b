//! wolfSSL, through its own interface.

mod end;
mod ffi;
mod wolfssl;

use std::process::ExitCode;

fn main() -> ExitCode {
    weir_engine::main(&end::Wolfssl)
}
