//! Where connections go and where they come from: destinations, local addresses and ports, and a look before the run.

pub(crate) mod destination;
pub(crate) mod ports;
pub(crate) mod source;
pub(crate) mod trial;
