//! rustls 0.23 over aws-lc-rs, with X25519 and ECDSA P-256 signatures of weir-ifma, as in the gateway.

#[path = "../../../crates/tls/src/curves/ecdsa.rs"]
mod ecdsa;
#[path = "../../../crates/tls/src/curves/exchange.rs"]
mod exchange;
mod operations;
mod provider;

use std::process::ExitCode;

use rustls::crypto::aws_lc_rs::Ticketer;
use weir_engine_rustls::{Crypto, Rustls};
use weir_ifma::Ifma;

fn main() -> ExitCode {
    // A provider has no place for an error.
    if let Err(missing) = Ifma::detect() {
        eprintln!("error: {missing}");
        return ExitCode::FAILURE;
    }
    weir_engine::main(&Rustls {
        facts: weir_engine_aws_lc_rs::facts(weir_engine::built!()),
        crypto: Crypto { provider: provider::provider, ticketer: Ticketer::new },
        operation: operations::operation,
    })
}
