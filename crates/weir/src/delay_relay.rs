//! `weir delay-relay`: round-trip time and loss for the lab's networks; hidden, since the lab alone starts it.

use crate::{Failure, Outcome};

pub(crate) fn run() -> Outcome {
    let said = weir_netem::relay::run();
    said.map_err(|error| Failure::run(format!("delay-relay: {error}")))
}
