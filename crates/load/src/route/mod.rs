//! Destinations, local addresses and ports of connections, and a trial connection before the run.

pub(crate) mod destination;
pub(crate) mod ports;
pub(crate) mod source;
pub(crate) mod trial;
