//! Rejected requests: the tests check status and reason, that no byte reaches the upstream, and that the gateway keeps
//! serving.

mod ports;
mod refused;
mod requests;
mod upstreams;
