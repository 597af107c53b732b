//! Rejected requests: their status and reason, that none of their bytes reach the upstream, and that the gateway keeps
//! serving.

mod ports;
mod refused;
mod requests;
mod upstreams;
