//! rustls 0.21, which has ring built in.

use std::process::ExitCode;

use weir_engine_rustls::{Crypto, Rustls};

fn main() -> ExitCode {
    weir_engine::main(&Rustls {
        facts: weir_engine::built!(),
        crypto: Crypto,
        operation: weir_engine_ring::operation,
    })
}
