//! rustls, since 0.22, over aws-lc-rs, in the versions of the engine's manifest.

use std::process::ExitCode;

use rustls::crypto::aws_lc_rs::{Ticketer, default_provider};
use weir_engine_rustls::{Crypto, Rustls};

fn main() -> ExitCode {
    weir_engine::main(&Rustls {
        facts: weir_engine_aws_lc_rs::facts(weir_engine::built!()),
        crypto: Crypto { provider: default_provider, ticketer: Ticketer::new },
        operation: weir_engine_aws_lc_rs::operation,
    })
}
