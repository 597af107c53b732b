//! rustls 0.23 over ring, both in their newest versions.

use std::process::ExitCode;

use rustls::crypto::ring::{Ticketer, default_provider};
use weir_engine_rustls::{Crypto, Rustls};

fn main() -> ExitCode {
    weir_engine::main(&Rustls {
        facts: weir_engine::built!().facts(),
        crypto: Crypto { provider: default_provider, ticketer: Ticketer::new },
        operation: weir_engine_ring::operation,
    })
}
