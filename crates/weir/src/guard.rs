//! `weir guard`: ends what an experiment has started when the lab is killed.

use crate::{Failure, Outcome};
use clap::Args;

/// End the processes listed on standard input when it ends; `weir run` starts one for itself.
#[derive(Args, Debug)]
pub(crate) struct GuardArgs {
    /// The pid of the `weir` whose processes and network namespaces they are
    #[arg(long, value_name = "PID")]
    lab: u32,
}

pub(crate) fn run(args: GuardArgs) -> Outcome {
    weir_lab::guard(args.lab).map_err(Failure::run)
}
