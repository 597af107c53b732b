//! rustls 0.23 over graviola, both in their newest versions.

mod operations;

use std::process::ExitCode;

use rustls_graviola::{Ticketer, default_provider};
use weir_engine_rustls::{Crypto, Rustls};

fn main() -> ExitCode {
    weir_engine::main(&Rustls {
        facts: weir_engine::built!(),
        crypto: Crypto { provider: default_provider, ticketer: Ticketer::new },
        operation: operations::operation,
    })
}
