//! `weir guard`: ends what an experiment has started when the lab is killed.

use crate::{Failure, Outcome};
use clap::Args;

/// End the processes listed on standard input when it ends; `weir run` starts one for itself.
#[derive(Args, Debug)]
pub(crate) struct GuardArgs {}

pub(crate) fn run(_: GuardArgs) -> Outcome {
    weir_lab::guard().map_err(Failure::run)
}
