//! `weir relay`: the floor under a gateway.

use crate::Outcome;
use crate::serve::{GatewayArgs, failure};
use clap::Args;

/// Relay bytes without looking at them: the least that a gateway on this loop and this TLS can cost.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  weir relay --listen http://127.0.0.1:8080 --to http://127.0.0.1:3000

SIGTERM or SIGINT ends it at once. SIGHUP, SIGUSR1 and SIGUSR2 do nothing, and say so on stderr.")]
pub(crate) struct RelayArgs {
    #[command(flatten)]
    gateway: GatewayArgs,
}

pub(crate) fn run(args: RelayArgs) -> Outcome {
    let files = args.gateway.files();
    weir_gateway::relay(&args.gateway.settings()).map_err(|error| failure(error, &files))
}
