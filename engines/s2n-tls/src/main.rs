//! s2n-tls, over the AWS-LC in aws-lc-rs.

mod end;
mod s2n;

use std::process::ExitCode;

fn main() -> ExitCode {
    s2n_tls::init::init();
    weir_engine::main(&end::S2n)
}
